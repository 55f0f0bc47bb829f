//! Snapshot of a connection, in the units of Linux's `TCP_INFO`.

use super::congestion::RecoveryPhase;
use super::ecn::EcnNegotiation;
use super::endpoint::Endpoint;
use super::sent_segments::{SegmentState, TransmissionCount};
use crate::connection::State;
use crate::pacing::Pacer;
use hopline_core::{Duration, Payload};

/// State of a connection at one moment, as `getsockopt(TCP_INFO)` of Linux reports it. Counts of segments are rounded up to
/// whole segments of the negotiated size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Info {
    /// State of congestion control (`tcpi_ca_state`).
    pub ca_state: CaState,
    /// Segments sent and not cumulatively acknowledged (`tcpi_unacked`).
    pub unacked: u64,
    /// Of these, selectively acknowledged, or duplicate acknowledgments without SACK (`tcpi_sacked`).
    pub sacked: u64,
    /// Of these, considered lost, sent again or not (`tcpi_lost`). Without RACK, there are no records, and the count is zero.
    pub lost: u64,
    /// Of these, sent again and still in flight (`tcpi_retrans`).
    pub retransmitted: u64,
    /// Congestion window, segments (`tcpi_snd_cwnd`).
    pub cwnd: u32,
    /// Slow start threshold, segments; Linux's 2³¹ − 1 if unlimited (`tcpi_snd_ssthresh`).
    pub ssthresh: u32,
    /// Payload of a full segment, bytes (`tcpi_snd_mss`).
    pub mss: u32,
    /// Largest segment that the peer may send, bytes (`tcpi_advmss`).
    pub advertised_mss: u32,
    /// State of the connection (`tcpi_state`).
    pub state: State,
    /// Smoothed round-trip time (`tcpi_rtt`); zero before the first sample.
    pub srtt: Duration,
    /// Least round-trip time (`tcpi_min_rtt`); `None` without RACK, or before the first sample.
    pub min_rtt: Option<Duration>,
    /// Number of times that the retransmission timeout doubled (`tcpi_backoff`).
    pub backoff: u32,
    /// Window probes without an answer (`tcpi_probes`).
    pub probes: u32,
    /// Extent of reordering, segments (`tcpi_reordering`): the threshold of duplicate acknowledgments, or more if segments arrived
    /// farther out of order. Without RACK, the threshold.
    pub reordering: u32,
    /// Timestamps are in use (`TCPI_OPT_TIMESTAMPS`).
    pub timestamps: bool,
    /// Selective acknowledgments are in use (`TCPI_OPT_SACK`).
    pub sack: bool,
    /// Explicit congestion notification is in use (`TCPI_OPT_ECN`).
    pub ecn: bool,
    /// Shifts of the peer's and of our window (`tcpi_snd_wscale`, `tcpi_rcv_wscale`); `None` without scaling
    /// (`TCPI_OPT_WSCALE`).
    pub window_scales: Option<(u8, u8)>,
}

/// State of congestion control, as Linux names it (`TCP_CA_Open` …).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CaState {
    /// Nothing is wrong.
    Open,
    /// Duplicate acknowledgments or SACK blocks, but no loss yet.
    Disorder,
    /// The window is reduced for an ECN mark.
    Cwr,
    /// Fast recovery.
    Recovery,
    /// After a time-out.
    Loss,
}

/// Slow start threshold that stands for "unlimited": Linux's `TCP_INFINITE_SSTHRESH`.
const UNLIMITED_SSTHRESH: u32 = 0x7fff_ffff;
/// Largest extent of reordering that is reported, segments: Linux's `tcp_max_reordering`.
const LARGEST_REORDERING: u32 = 300;
/// Slow start threshold of an endpoint before the first loss, bytes.
const LARGEST_SSTHRESH: u32 = 1 << 30;

impl<P: Payload> Endpoint<P> {
    /// Returns a snapshot of the connection.
    #[must_use]
    pub fn info(&self) -> Info {
        let segments = |bytes: u64| bytes.div_ceil(u64::from(self.snd.mss.max(1)));
        let [_, lost, sacked, retransmitted] = self.bytes_by_state();
        Info {
            ca_state: self.ca_state(sacked),
            unacked: segments(self.snd.max - self.snd.una),
            sacked: segments(sacked),
            lost: segments(lost + retransmitted),
            retransmitted: segments(retransmitted),
            cwnd: self.control.cwnd() / self.snd.mss.max(1),
            ssthresh: match self.control.ssthresh() {
                LARGEST_SSTHRESH.. => UNLIMITED_SSTHRESH,
                bytes => bytes / self.snd.mss.max(1),
            },
            mss: self.snd.mss,
            advertised_mss: self.config.mss,
            state: self.state(),
            srtt: self.rto.srtt().unwrap_or(Duration::ZERO),
            min_rtt: self.rack.as_ref().and_then(|rack| rack.min_rtt()),
            backoff: self.rto.backoff_factor().ilog2(),
            probes: self.snd.probes,
            reordering: self.reordering(),
            timestamps: self.options.timestamps,
            sack: self.options.sack,
            ecn: self.ecn.negotiation == EcnNegotiation::Full,
            window_scales: self.rcv.scale_agreed.then_some((self.snd.scale, self.rcv.scale)),
        }
    }

    /// Returns the minimum round-trip time of RACK or BBR; `None` without both, or before the first sample.
    #[must_use]
    pub fn min_rtt(&self) -> Option<Duration> {
        let of_rack = self.rack.as_ref().and_then(|rack| rack.min_rtt());
        of_rack.or_else(|| self.bbr().and_then(|model| model.min_rtt))
    }

    /// Returns the mean deviation of the round-trip time (RTTVAR); `None` before the first sample.
    #[must_use]
    pub fn rtt_deviation(&self) -> Option<Duration> {
        self.rto.rtt_deviation()
    }

    /// Returns the pacing rate, data bytes per second; `None`: segments are not paced.
    #[must_use]
    pub fn pacing_rate(&self) -> Option<f64> {
        match self.pacing.as_deref()? {
            Pacer::Adaptive(pacing) => {
                let interval = pacing.interval().as_secs_f64();
                (interval > 0.0).then(|| f64::from(self.snd.mss) / interval)
            }
            Pacer::Rate(pacing) => Some(pacing.bytes_per_sec()),
        }
    }

    /// Returns whether losses are detected by RACK (RFC 8985).
    #[must_use]
    pub fn uses_rack(&self) -> bool {
        self.rack.is_some()
    }

    fn reordering(&self) -> u32 {
        let extent = self.rack.as_ref().and_then(|rack| rack.reordering_extent());
        // The segment itself counts too.
        let segments = extent.map_or(0, |bytes| bytes.div_ceil(u64::from(self.snd.mss.max(1))) + 1);
        self.config.dup_ack_threshold.max(segments.min(u64::from(LARGEST_REORDERING)) as u32)
    }

    /// Returns the bytes in flight, lost, selectively acknowledged, and of those in flight the retransmitted ones.
    fn bytes_by_state(&self) -> [u64; 4] {
        let mut bytes = [0; 4];
        let Some(rack) = self.rack.as_deref() else {
            bytes[SegmentState::Sacked as usize] = self.scoreboard.sacked_below(self.snd.max);
            return bytes;
        };
        for (range, segment) in rack.segments.iter() {
            let len = range.end - range.start;
            bytes[segment.state as usize] += len;
            if (segment.state, segment.transmissions) == (SegmentState::InFlight, TransmissionCount::Several)
            {
                bytes[3] += len;
            }
        }
        bytes
    }

    fn ca_state(&self, sacked: u64) -> CaState {
        match self.control.phase() {
            RecoveryPhase::Recovery => CaState::Recovery,
            RecoveryPhase::Loss => CaState::Loss,
            RecoveryPhase::Open if self.control.is_reducing_for_mark(self.snd.una) => CaState::Cwr,
            RecoveryPhase::Open if sacked > 0 || self.control.dup_acks() > 0 => CaState::Disorder,
            RecoveryPhase::Open => CaState::Open,
        }
    }
}
