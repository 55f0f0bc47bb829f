//! Properties of wired links beyond carrying packets at one rate.

use hopline_core::{Duration, Instant};

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
    /// Other rates from these moments on, bits per second, not 0; the earliest first. Of both directions.
    pub rates: Vec<(Instant, u64)>,
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
