//! JSON objects with the results of an interval or of the whole test, for one stream or the sum of several.

use hopline_tools::bench::DatagramStats;
use serde::Serialize;
use std::time::Duration;

/// Result of one stream or of all streams, with iperf3's keys. Unknown values are left out.
#[derive(Default, Serialize)]
pub(super) struct Row {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) socket: Option<usize>,
    pub(super) start: f64,
    pub(super) end: f64,
    pub(super) seconds: f64,
    pub(super) bytes: u64,
    pub(super) bits_per_second: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) retransmits: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) snd_cwnd: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) snd_wnd: Option<u64>,
    /// Smoothed round-trip time, microseconds; `null` before the first sample, absent if unknown. The same holds for all
    /// round-trip times below.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) rtt: Option<Option<u64>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) rttvar: Option<Option<u64>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) pmtu: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) max_snd_cwnd: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) max_snd_wnd: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) max_rtt: Option<Option<u64>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) min_rtt: Option<Option<u64>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) mean_rtt: Option<Option<u64>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) jitter_ms: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) lost_packets: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) packets: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) lost_percent: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) out_of_order: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) omitted: Option<bool>,
    pub(super) sender: bool,
}

/// Side that counted the datagrams. Only the receiver's count includes losses.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum CountedBy {
    Sender,
    Receiver,
}

impl Row {
    /// Returns a row with times, bytes and rate, without datagram counters.
    pub(super) fn new(start: Duration, end: Duration, bytes: u64, sender: bool) -> Self {
        let seconds = end.saturating_sub(start).as_secs_f64();
        Self {
            start: start.as_secs_f64(),
            end: end.as_secs_f64(),
            seconds,
            bytes,
            bits_per_second: if seconds > 0.0 { bytes as f64 * 8.0 / seconds } else { 0.0 },
            sender,
            ..Self::default()
        }
    }

    /// Adds the datagram counters of the side `counted`.
    pub(super) fn with_datagrams(self, datagrams: Option<DatagramStats>, counted: CountedBy) -> Self {
        let Some(seen) = datagrams else { return self };
        let packets = Some(seen.packets);
        match counted {
            CountedBy::Sender => Self { packets, ..self },
            CountedBy::Receiver => self.with_losses(Some(seen), seen.packets),
        }
    }

    /// Adds jitter, losses and the number of datagrams. `lost_percent` is relative to `all` datagrams.
    pub(super) fn with_losses(self, datagrams: Option<DatagramStats>, all: u64) -> Self {
        let Some(seen) = datagrams else { return self };
        Self {
            jitter_ms: Some(seen.jitter.as_secs_f64() * 1e3),
            lost_packets: Some(seen.lost),
            packets: Some(seen.packets),
            lost_percent: Some(DatagramStats { packets: all, ..seen }.lost_percent()),
            ..self
        }
    }
}

/// Returns the number of datagrams that the sender counted, or, if it reports none, the receiver's estimate.
pub(super) fn datagrams_sent(sent: Option<DatagramStats>, arrived: Option<DatagramStats>) -> u64 {
    let packets = |side: Option<DatagramStats>| side.map(|seen| seen.packets).filter(|&packets| packets > 0);
    packets(sent).or(packets(arrived)).unwrap_or(0)
}
