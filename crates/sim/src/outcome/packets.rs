//! Fate of the packets of one direction of a flow.

use super::DelayStats;
use hopline_core::{Duration, Instant};

/// IP packets of one direction of a flow, from the source's IP layer to the destination's. Lengths include
/// the IP header. A packet counts once, and arrives by itself or by a copy that a middlebox has made of it.
/// Definitions as ns-3's FlowMonitor has them, except `lost`, which needs no time-out: a simulator knows
/// where its packets are.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PacketCounts {
    /// Packets in flight when counting began, at the end of a warm-up. They arrive or are lost as other
    /// packets do. The sum `carried + sent + made` equals the sum of `received`, `absorbed`, `lost` and the
    /// packets in flight.
    pub initially_in_flight: u64,
    /// Their bytes.
    pub initially_in_flight_bytes: u64,
    /// Packets handed to the IP layer.
    pub sent: u64,
    /// Their bytes.
    pub sent_bytes: u64,
    /// Packets that middleboxes made in the source's name. Copies of packets that had passed them do not
    /// count.
    pub middlebox_made: u64,
    /// Their bytes.
    pub middlebox_made_bytes: u64,
    /// Packets that middleboxes took and kept: they are neither received nor lost. One that was sent on after
    /// all counts as received once it, or a copy of it, arrives.
    pub absorbed: u64,
    /// Their bytes.
    pub absorbed_bytes: u64,
    /// Distinct packets that arrived, by themselves or by a copy.
    pub received: u64,
    /// Their bytes.
    pub received_bytes: u64,
    /// Packets that exist no more and did not arrive, nor a copy of them. A packet in flight at the end of
    /// the run is not lost.
    pub lost: u64,
    /// Their bytes.
    pub lost_bytes: u64,
    /// Number of times that packets that arrived were forwarded by nodes on their route.
    pub forwarded: u64,
    /// From the hand-over to the IP layer to the arrival, be it of a copy.
    pub delays: DelayStats,
    /// Absolute differences between the delays of packets that arrived one after the other, summed.
    pub jitter_sum: Duration,
    /// Delay of the packet that arrived last.
    pub last_delay: Option<Duration>,
    /// Time at which the first packet was sent.
    pub first_sent: Option<Instant>,
    /// Time at which the last packet was sent.
    pub last_sent: Option<Instant>,
    /// Time at which the first packet arrived.
    pub first_received: Option<Instant>,
    /// Time at which the last packet arrived.
    pub last_received: Option<Instant>,
}

impl PacketCounts {
    /// Records that a packet is handed to the IP layer.
    pub fn record_sent(&mut self, now: Instant, len_bytes: u32) {
        self.sent += 1;
        self.sent_bytes += u64::from(len_bytes);
        self.first_sent.get_or_insert(now);
        self.last_sent = Some(now);
    }

    /// Records that a middlebox makes a packet.
    pub(crate) fn record_made(&mut self, len_bytes: u32) {
        self.middlebox_made += 1;
        self.middlebox_made_bytes += u64::from(len_bytes);
    }

    /// Records that a middlebox takes a packet, and keeps it.
    pub(crate) fn record_absorbed(&mut self, len_bytes: u32) {
        self.absorbed += 1;
        self.absorbed_bytes += u64::from(len_bytes);
    }

    /// Records that a packet that a middlebox had absorbed is sent on after all.
    pub(crate) fn record_resumed(&mut self, len_bytes: u32) {
        self.absorbed -= 1;
        self.absorbed_bytes -= u64::from(len_bytes);
    }

    /// Counts the same for a packet absorbed before counting began: it is in flight, and was so then.
    pub(crate) fn record_initially_in_flight(&mut self, len_bytes: u32) {
        self.initially_in_flight += 1;
        self.initially_in_flight_bytes += u64::from(len_bytes);
    }

    /// Records that a packet arrives for the first time, `delay` after it was sent, passed on `forwarded`
    /// times.
    pub fn record_received(&mut self, now: Instant, len_bytes: u32, delay: Duration, forwarded: u8) {
        self.received += 1;
        self.received_bytes += u64::from(len_bytes);
        self.forwarded += u64::from(forwarded);
        self.delays.record(delay);
        if let Some(last) = self.last_delay.replace(delay) {
            self.jitter_sum += delay.abs_diff(last);
        }
        self.first_received.get_or_insert(now);
        self.last_received = Some(now);
    }

    /// Restarts the counters, with `held` packets of `held_bytes` in flight.
    pub(crate) fn restart(&mut self, held: u64, held_bytes: u64) {
        *self = Self { initially_in_flight: held, initially_in_flight_bytes: held_bytes, ..Self::default() };
    }

    /// Settles the counters at the end of the run: a packet that was sent and has not arrived is lost, unless
    /// it is `held` somewhere.
    pub fn finish(&mut self, held: u64, held_bytes: u64) {
        self.lost =
            self.initially_in_flight + self.sent + self.middlebox_made - self.received - self.absorbed - held;
        self.lost_bytes = self.initially_in_flight_bytes + self.sent_bytes + self.middlebox_made_bytes
            - self.received_bytes
            - self.absorbed_bytes
            - held_bytes;
    }

    /// Returns the lost packets per hundred of known fate. `None` if there are none.
    #[must_use]
    pub fn loss_pct(&self) -> Option<f64> {
        let known = self.lost + self.received;
        (known > 0).then(|| 100.0 * self.lost as f64 / known as f64)
    }

    /// Returns the mean jitter in seconds. `None` if fewer than two packets arrived.
    #[must_use]
    pub fn jitter_mean_s(&self) -> Option<f64> {
        (self.received > 1).then(|| self.jitter_sum.as_secs_f64() / (self.received - 1) as f64)
    }

    /// Returns the mean number of hops of the packets that arrived. `None` if none did.
    #[must_use]
    pub fn hops_mean(&self) -> Option<f64> {
        (self.received > 0).then(|| 1.0 + self.forwarded as f64 / self.received as f64)
    }
}
