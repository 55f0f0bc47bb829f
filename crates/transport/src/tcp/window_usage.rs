//! Use of the congestion window over a round trip, as Linux decides whether the window may grow (`tcp_is_cwnd_limited`).
//!
//! The flight of the moment misleads: it falls as acknowledgments arrive, before the sender has a chance to fill the window
//! again. Therefore the largest flight of the window counts.

/// Use of the congestion window. Positions are stream offsets.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct WindowUsage {
    /// Position that has to be acknowledged to end the round.
    round_end: u64,
    /// Largest flight of the round, bytes.
    max_flight: u64,
    /// `true` if the window stopped the sender in this round.
    was_full: bool,
}

impl WindowUsage {
    /// Records a transmission that leaves `flight` bytes in flight, of `cwnd` that are permitted.
    pub(super) fn on_sent(&mut self, una: u64, nxt: u64, flight: u64, cwnd: u64, mss: u64) {
        let is_full = flight + mss > cwnd;
        if una >= self.round_end || is_full || (!self.was_full && flight > self.max_flight) {
            *self = Self { round_end: nxt, max_flight: flight, was_full: is_full };
        }
    }

    /// Returns whether the window may grow. In slow start half of it in use is enough, since it doubles each round trip.
    pub(super) fn permits_growth(&self, cwnd: u64, is_slow_start: bool) -> bool {
        self.was_full || (is_slow_start && cwnd < 2 * self.max_flight)
    }
}
