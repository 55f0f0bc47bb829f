//! Competitive mode, beside flows that keep the queue full: a window as theirs, by CUBIC (RFC 9438), with only the losses
//! of the queue.
//!
//! The functions are those of `tcp::congestion::cubic`. Its stages are not used, since they give other windows:
//!
//! | | here | `tcp::congestion::cubic` |
//! |---|---|---|
//! | step | a round trip, in which a full window is acknowledged | an acknowledgment |
//! | start of a stage | the reduction | the first acknowledgment after it |
//! | *K* | from β·W_max (RFC 8312 §4.1) | from the window after the reduction (RFC 9438 §4.2) |
//! | growth of W_est | α throughout | α, and 1 from the window before the reduction on (RFC 9438 §4.3) |
//!
//! Windows of both after reductions at 100 and 80 packets are in the tests.

use super::super::controller::cubic::MIN_WINDOW;
use crate::tcp::CubicConfig;
use hopline_core::Instant;

/// Longest stay in competitive mode, round trips, since several flows of this algorithm may take each other for loss-based flows. Without it
/// Jain's index of two flows with round trips of 20 and 150 ms is 0.92 in place of 0.98.
const MAX_ROUNDS: u32 = 192;

/// CUBIC window of competitive mode, packets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct CompetitiveWindow {
    window: f64,
    /// Window at the last reduction, with fast convergence: `W_max`.
    w_max: f64,
    /// Time of the last reduction.
    last_reduction: Instant,
    /// Estimate of Reno's window (RFC 9438 §4.3).
    w_est: f64,
    /// Round trips since the start of competitive mode.
    rounds: u32,
    last_round: RoundEffect,
}

/// Effect of a round trip on the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RoundEffect {
    Grown,
    /// The window was reduced. Losses found in the next round trip were sent before that.
    Reduced,
}

impl CompetitiveWindow {
    /// Creates the window with `packets` packets.
    pub(super) fn new(now: Instant, packets: f64) -> Self {
        let window = packets.max(MIN_WINDOW);
        Self {
            window,
            w_max: window,
            last_reduction: now,
            w_est: window,
            rounds: 0,
            last_round: RoundEffect::Grown,
        }
    }

    /// Returns the number of packets that may be in flight.
    pub(super) const fn window(&self) -> f64 {
        self.window
    }

    /// Returns the same window for a new stay in competitive mode.
    pub(super) const fn restarted(self) -> Self {
        Self { rounds: 0, ..self }
    }

    /// Returns whether the stay in competitive mode has been long enough.
    pub(super) const fn is_stay_over(&self) -> bool {
        self.rounds >= MAX_ROUNDS
    }

    /// Processes the end of a round trip of `seconds` seconds. Returns whether the window was reduced.
    pub(super) fn on_round(&mut self, now: Instant, seconds: f64, lost: QueueLoss) -> bool {
        self.rounds += 1;
        let last = core::mem::replace(&mut self.last_round, RoundEffect::Grown);
        match (last, lost) {
            (RoundEffect::Reduced, _) => false,
            (RoundEffect::Grown, QueueLoss::None) => {
                self.grow(now, seconds);
                false
            }
            (RoundEffect::Grown, QueueLoss::Overflow) => {
                self.reduce(now);
                self.last_round = RoundEffect::Reduced;
                true
            }
        }
    }

    fn grow(&mut self, now: Instant, seconds: f64) {
        let k = CubicConfig::RFC9438.k(self.w_max, self.w_max * CubicConfig::RFC9438.beta);
        let t = now.since(self.last_reduction).as_secs_f64() + seconds;
        let cubic = CubicConfig::RFC9438.w_cubic(self.w_max, k, t);
        self.w_est += CubicConfig::RFC9438.alpha();
        // RFC 9438 §4.4: by half in a round trip at most.
        self.window = cubic.max(self.w_est).clamp(self.window, self.window * 1.5);
    }

    fn reduce(&mut self, now: Instant) {
        self.w_max = CubicConfig::RFC9438.w_max(self.window, self.w_max);
        self.window = (self.window * CubicConfig::RFC9438.beta).max(MIN_WINDOW);
        (self.last_reduction, self.w_est) = (now, self.window);
    }
}

/// Losses above the baseline of the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum QueueLoss {
    None,
    Overflow,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tcp::congestion::cubic::{AckStep, Cubic};
    use hopline_core::Duration;

    #[test]
    fn one_overflow_reduces_once_even_if_detected_in_two_round_trips() {
        let mut cubic = CompetitiveWindow::new(Instant::ZERO, 100.0);
        let at = Instant::from_millis;
        assert!(cubic.on_round(at(50), 0.05, QueueLoss::Overflow));
        assert!(!cubic.on_round(at(100), 0.05, QueueLoss::Overflow));
        assert!((cubic.window() - 70.0).abs() < 1e-9);
        assert!(cubic.on_round(at(150), 0.05, QueueLoss::Overflow));
        assert!((cubic.window() - 49.0).abs() < 1e-9);
        assert_eq!((cubic.rounds, cubic.restarted().rounds), (3, 0));
    }

    #[test]
    fn the_window_recovers_within_seconds() {
        let mut cubic = CompetitiveWindow::new(Instant::ZERO, 100.0);
        cubic.on_round(Instant::ZERO, 0.05, QueueLoss::Overflow);
        // RFC 9438 §4.2: K = ∛(100 · 0.3 / 0.4) = 4.2 s.
        let mut ms = 0;
        while cubic.window() < 99.0 {
            ms += 50;
            cubic.on_round(Instant::from_millis(ms), 0.05, QueueLoss::None);
        }
        assert!((2_500..4_300).contains(&ms), "{ms}");
    }

    /// Windows of both in packets, at each second for ten seconds after reductions at 100 and at 80 packets, with round
    /// trips of 50 ms.
    fn compare_with_tcp() -> Vec<(f64, f64)> {
        const ROUND: u64 = 50;
        let seconds = Duration::from_millis(ROUND).as_secs_f64();
        let (mut here, mut tcp) = (CompetitiveWindow::new(Instant::ZERO, 100.0), Cubic::default());
        here.on_round(Instant::ZERO, seconds, QueueLoss::Overflow);
        here.last_round = RoundEffect::Grown;
        (here.window, here.w_est) = (80.0, 80.0);
        here.on_round(Instant::ZERO, seconds, QueueLoss::Overflow);
        here.last_round = RoundEffect::Grown;
        tcp.reduce(&CubicConfig::RFC9438, 100.0);
        tcp.reduce(&CubicConfig::RFC9438, 80.0);
        let mut cwnd = 80.0 * CubicConfig::RFC9438.beta;
        let mut windows = Vec::new();
        for round in 1..=10_000 / ROUND {
            let now = Instant::from_millis(round * ROUND);
            here.on_round(now, seconds, QueueLoss::None);
            let round_trip = Duration::from_millis(ROUND);
            cwnd = tcp.grow(
                &CubicConfig::RFC9438,
                cwnd,
                AckStep { now, srtt: round_trip, acked: cwnd, ack_count: cwnd },
            );
            if round.is_multiple_of(1000 / ROUND) {
                windows.push((here.window(), cwnd));
            }
        }
        windows
    }

    #[test]
    fn the_window_differs_from_that_of_tcp_cubic() {
        let windows: Vec<_> =
            compare_with_tcp().iter().map(|(here, tcp)| format!("{here:.2} {tcp:.2}")).collect();
        assert_eq!(
            windows,
            [
                "66.59 66.59",
                "77.18 77.18",
                "87.76 94.35",
                "98.35 114.35",
                "108.94 134.35",
                "119.53 154.35",
                "130.12 174.35",
                "140.71 194.35",
                "151.29 214.35",
                "170.01 234.35",
            ]
        );
    }
}
