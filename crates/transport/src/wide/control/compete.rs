//! Competitive mode, beside flows that keep the queue full: a window as theirs, by CUBIC (RFC 9438), with only the losses
//! of the queue.

use hopline_core::Instant;

/// Multiplicative decrease factor, and growth factor in packets per second cubed (RFC 9438 §5).
const BETA: f64 = 0.7;
const C: f64 = 0.4;
/// Least window, packets.
const LEAST: f64 = 2.0;

/// CUBIC window of competitive mode, packets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Cubic {
    window: f64,
    largest: f64,
    since: Instant,
    /// Estimate of Reno's window (RFC 9438 §4.3).
    reno: f64,
    /// Round trips since the start of competitive mode.
    rounds: u32,
    last: Round,
}

/// Effect of a round trip on the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Round {
    Grown,
    /// The window was reduced. Losses found in the next round trip were sent before that.
    Reduced,
}

impl Cubic {
    /// Creates the window with `packets` packets.
    pub(super) fn new(now: Instant, packets: f64) -> Self {
        let window = packets.max(LEAST);
        Self { window, largest: window, since: now, reno: window, rounds: 0, last: Round::Grown }
    }

    /// Returns the number of packets that may be in flight.
    pub(super) const fn window(&self) -> f64 {
        self.window
    }

    /// Returns the same window for a new stay in competitive mode.
    pub(super) const fn again(self) -> Self {
        Self { rounds: 0, ..self }
    }

    /// Returns the round trips since the start of competitive mode.
    pub(super) const fn rounds(&self) -> u32 {
        self.rounds
    }

    /// Processes the end of a round trip of `seconds` seconds. Returns whether the window was reduced.
    pub(super) fn round(&mut self, now: Instant, seconds: f64, lost: Lost) -> bool {
        self.rounds += 1;
        let last = core::mem::replace(&mut self.last, Round::Grown);
        match (last, lost) {
            (Round::Reduced, _) => false,
            (Round::Grown, Lost::Nothing) => {
                self.grow(now, seconds);
                false
            }
            (Round::Grown, Lost::InTheQueue) => {
                self.lose(now);
                self.last = Round::Reduced;
                true
            }
        }
    }

    fn grow(&mut self, now: Instant, seconds: f64) {
        let k = libm::cbrt((self.largest - self.window_at_loss()).max(0.0) / C);
        let t = now.since(self.since).as_secs_f64() + seconds - k;
        let cubic = C * t * t * t + self.largest;
        self.reno += 3.0 * (1.0 - BETA) / (1.0 + BETA);
        // RFC 9438 §4.4: by half in a round trip at most.
        self.window = cubic.max(self.reno).clamp(self.window, self.window * 1.5);
    }

    fn lose(&mut self, now: Instant) {
        // RFC 9438 §4.7: room for others if the window did not come back to where it was.
        self.largest =
            if self.window < self.largest { self.window * (1.0 + BETA) / 2.0 } else { self.window };
        self.window = (self.window * BETA).max(LEAST);
        (self.since, self.reno) = (now, self.window);
    }

    fn window_at_loss(&self) -> f64 {
        self.largest * BETA
    }
}

/// Losses above the baseline of the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lost {
    Nothing,
    InTheQueue,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_overflow_takes_three_tenths_though_it_is_seen_in_two_round_trips() {
        let mut cubic = Cubic::new(Instant::ZERO, 100.0);
        let at = Instant::from_millis;
        assert!(cubic.round(at(50), 0.05, Lost::InTheQueue));
        assert!(!cubic.round(at(100), 0.05, Lost::InTheQueue));
        assert!((cubic.window() - 70.0).abs() < 1e-9);
        assert!(cubic.round(at(150), 0.05, Lost::InTheQueue));
        assert!((cubic.window() - 49.0).abs() < 1e-9);
        assert_eq!((cubic.rounds(), cubic.again().rounds()), (3, 0));
    }

    #[test]
    fn what_was_lost_comes_back_within_seconds() {
        let mut cubic = Cubic::new(Instant::ZERO, 100.0);
        cubic.round(Instant::ZERO, 0.05, Lost::InTheQueue);
        // RFC 9438 §4.2: K = ∛(100 · 0.3 / 0.4) = 4.2 s.
        let mut ms = 0;
        while cubic.window() < 99.0 {
            ms += 50;
            cubic.round(Instant::from_millis(ms), 0.05, Lost::Nothing);
        }
        assert!((2_500..4_300).contains(&ms), "{ms}");
    }
}
