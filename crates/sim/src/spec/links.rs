//! Properties of wired links beyond carrying packets at one rate.

pub use super::rate_trace::RateTrace;
use hopline_core::{Duration, Instant};
use std::sync::Arc;

/// Properties of a link by direction: what `a` sends, and what `b` sends.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LinkImpairments {
    /// Each packet takes up to so much longer, drawn uniformly, and none overtakes another; zero: none does.
    pub jitter: [Duration; 2],
    /// Packets leave only at multiples of so long, all that were sent since the last one together, as a radio
    /// aggregates or a schedule (TDMA) lets it; zero: as they come.
    pub slots: [Duration; 2],
    /// Some packets are overtaken.
    pub reordering: [Option<Reordering>; 2],
    /// Policer for each direction: packets beyond a rate are dropped in front of the queue.
    pub policer: [Option<Policer>; 2],
    /// Shaper for each direction: packets beyond a rate wait in the queue.
    pub shaper: [Option<Shaper>; 2],
    /// Other rates from these moments on, bits per second, not 0; the earliest first. Of both directions.
    pub rates: Vec<(Instant, u64)>,
    /// Rates of each direction that repeat, in place of all others of that direction.
    pub rate_traces: [Option<Arc<RateTrace>>; 2],
    /// Other propagation delays of packets that leave from these moments on; the earliest first. Of both directions. After
    /// a change to a shorter delay, packets overtake those that left before, as after a change of the path.
    pub delays: Vec<(Instant, Duration)>,
}

/// Packets that take longer than others, as over another path.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reordering {
    /// Share of the packets, 0–1; drawn for each.
    pub share: f64,
    /// Additional delay.
    pub extra_delay: Duration,
}

/// A token bucket: packets that find too few tokens are dropped. It is full at first.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Policer {
    /// Bits per second, not 0.
    pub rate_bps: u64,
    /// Size of the bucket, bytes. A packet that is longer never passes.
    pub burst_bytes: u64,
}

/// A shaper between queue and link. A packet leaves the queue when the credit is not negative, and its length is taken from
/// the credit, which grows at the rate. The credit is full at first.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shaper {
    /// Bits per second, not 0.
    pub rate_bps: u64,
    /// Greatest credit, bytes: an idle link can send so much and one more packet at once. Zero spaces all packets.
    pub burst_bytes: u64,
    /// Bytes that count for each packet in addition to its length, such as framing of the link behind.
    pub overhead_bytes: u32,
    /// Least number of bytes that a packet counts as, overhead included (minimum packet unit).
    pub mpu_bytes: u32,
}
