//! Counters of one direction of a flow.

use super::packet::FlowPacket;
use super::sequence::{ReceivedBytes, SentSequence};
use hopline_core::{Duration, Instant};
use hopline_sim::outcome::{FlowSample, PacketCounts};

/// One direction: what one end has sent, and what of it has arrived at the other.
#[derive(Clone, Debug, Default)]
pub(super) struct Direction {
    pub(super) counts: PacketCounts,
    /// Packets with payload sent.
    pub(super) segments_sent: u64,
    /// Of these, those with bytes that were sent before. TCP only.
    pub(super) retransmissions: u64,
    /// Packets with new payload that arrived.
    pub(super) segments_received: u64,
    /// Packets that arrived with payload that had come before.
    pub(super) duplicates: u64,
    /// Bytes of the payload sent.
    pub(super) payload_sent: u64,
    /// Distinct bytes delivered; of TCP in order.
    pub(super) payload_received: u64,
    /// Time of the last arrival of new payload.
    pub(super) last_progress: Option<Instant>,
    pub(super) longest_silence: Duration,
    sent: SentSequence,
    received: ReceivedBytes,
    /// State at the end of each second in which something has arrived.
    samples: Vec<FlowSample>,
}

impl Direction {
    /// Records that a packet enters the network at its source. Returns the offset of its first byte, of TCP.
    pub(super) fn record_sent(&mut self, now: Instant, packet: &FlowPacket) -> Option<u64> {
        self.counts.record_sent(now, packet.len);
        self.segments_sent += u64::from(packet.payload > 0);
        self.payload_sent += u64::from(packet.payload);
        let segment = packet.segment?;
        let place = self.sent.record(segment.sequence, packet.payload, segment.is_first);
        self.retransmissions += u64::from(place.is_repeated);
        Some(place.offset)
    }

    /// Records that a packet arrives at its destination. `offset`: that of its first byte, of TCP. `since`: the begin of
    /// the flow.
    pub(super) fn record_received(&mut self, now: Instant, arrival: Arrival, since: Instant) {
        self.counts.record_received(now, arrival.len, now.since(arrival.sent), arrival.forwarded);
        if arrival.payload > 0 {
            let is_new = match arrival.offset {
                Some(offset) => self.received.record(offset, arrival.payload),
                None => true,
            };
            self.segments_received += u64::from(is_new);
            self.duplicates += u64::from(!is_new);
            self.payload_received = match arrival.offset {
                Some(_) => self.received.in_order(),
                None => self.payload_received + u64::from(arrival.payload),
            };
            if is_new {
                let silence = now.since(self.last_progress.unwrap_or(since));
                self.longest_silence = self.longest_silence.max(silence);
                self.last_progress = Some(now);
            }
        }
        self.sample(now);
    }

    fn sample(&mut self, now: Instant) {
        let at = Instant::from_secs(now.as_nanos() / 1_000_000_000 + 1);
        let sample = FlowSample {
            at,
            bytes_received: self.payload_received,
            packets_received: self.counts.received,
            delay_sum: self.counts.delays.sum(),
            ..FlowSample::default()
        };
        match self.samples.last_mut().filter(|last| last.at == at) {
            Some(last) => *last = sample,
            None => self.samples.push(sample),
        }
    }

    /// Returns the state at the end of each of the first `seconds` seconds.
    pub(super) fn series(&self, seconds: u64) -> Vec<FlowSample> {
        let mut samples = self.samples.iter().peekable();
        let mut latest = FlowSample::default();
        let sample = |second| {
            let at = Instant::from_secs(second);
            while let Some(sample) = samples.next_if(|sample| sample.at <= at) {
                latest = *sample;
            }
            FlowSample { at, ..latest }
        };
        (1..=seconds).map(sample).collect()
    }
}

/// A packet that has arrived.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arrival {
    /// Time at which it entered the network.
    pub(super) sent: Instant,
    pub(super) len: u32,
    pub(super) payload: u32,
    /// Offset of its first byte, of TCP.
    pub(super) offset: Option<u64>,
    /// Number of nodes that have passed it on.
    pub(super) forwarded: u8,
}
