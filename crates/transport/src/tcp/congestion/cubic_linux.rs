//! Integer arithmetic of CUBIC in Linux: growth in whole segments, at a rate that is decided from time to time.
//!
//! Between two decisions, the window grows by one segment per fixed number of acknowledged segments (`cnt`). A decision
//! holds until the window changes, or for a 32nd of a second. Over short round trips that is several of them, and a
//! window that was just reduced stays constant for as long. Facts of `net/ipv4/tcp_cubic.c` (6.18) and of
//! `tcp_cong_avoid_ai`.

use hopline_core::{Duration, Instant};

/// Lifetime of a decision while the window stays the same: `HZ / 32` ticks.
const LASTS: Duration = Duration::from_nanos(1_000_000_000 / 32);
/// Acknowledged segments per added segment, in multiples of the window, while the function is not above the window.
const STANDSTILL: f64 = 100.0;
/// Largest number of acknowledged segments per added segment while `W_max` is unknown.
const SLOWEST_UNKNOWN: f64 = 20.0;
/// Least number of acknowledged segments per added segment: a window grows by at most half per round trip.
const FASTEST: f64 = 2.0;

/// Growth of the window in one congestion avoidance stage.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    /// Acknowledged segments per added segment: `cnt`.
    per_segment: f64,
    /// Window and time of the last decision.
    decided: Option<(f64, Instant)>,
    /// Acknowledged segments counted towards the next segment: `snd_cwnd_cnt`.
    credit: f64,
    /// Estimate of Reno's window, whole segments: `tcp_cwnd`.
    estimate: f64,
    /// Acknowledged segments counted towards the next segment of the estimate: `ack_cnt`.
    counted: f64,
}

/// Inputs of a decision.
#[derive(Clone, Copy, Debug)]
pub(super) struct Outlook {
    /// Cubic function one round trip from now, segments.
    pub(super) target: f64,
    /// `alpha_cubic` (RFC 9438 §4.3).
    pub(super) alpha: f64,
    /// Knowledge of `W_max`.
    pub(super) maximum: Maximum,
}

/// Knowledge of `W_max`, which the first loss shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Maximum {
    Known,
    Unknown,
}

impl Pace {
    pub(super) fn new(cwnd: f64) -> Self {
        Self { per_segment: FASTEST, decided: None, credit: 0.0, estimate: cwnd, counted: 0.0 }
    }

    /// Returns the window, in whole segments, after `acked` segments were acknowledged that found the window `cwnd` in
    /// use.
    pub(super) fn grow(&mut self, now: Instant, cwnd: f64, acked: f64, outlook: impl Fn() -> Outlook) -> f64 {
        self.counted += acked;
        let lasts = |(window, at): (f64, Instant)| window.total_cmp(&cwnd).is_eq() && now.since(at) <= LASTS;
        if !self.decided.is_some_and(lasts) {
            self.decide(cwnd, &outlook());
            self.decided = Some((cwnd, now));
        }
        cwnd + self.segments_for(acked)
    }

    fn decide(&mut self, cwnd: f64, outlook: &Outlook) {
        let cubic = if outlook.target > cwnd { cwnd / (outlook.target - cwnd) } else { STANDSTILL * cwnd };
        let cubic = match outlook.maximum {
            Maximum::Known => cubic,
            Maximum::Unknown => cubic.min(SLOWEST_UNKNOWN),
        };
        self.follow_reno(cwnd / outlook.alpha);
        let reno = if self.estimate > cwnd { cwnd / (self.estimate - cwnd) } else { f64::INFINITY };
        self.per_segment = libm::floor(cubic.min(reno)).max(FASTEST);
    }

    /// Updates the estimate of Reno's window, which grows by one segment per `per_segment` acknowledged segments.
    fn follow_reno(&mut self, per_segment: f64) {
        let segments = libm::floor(self.counted / per_segment);
        self.estimate += segments;
        self.counted -= segments * per_segment;
    }

    fn segments_for(&mut self, acked: f64) -> f64 {
        let mut segments = 0.0;
        // What was counted at a slower pace makes one segment, however much it is.
        if self.credit >= self.per_segment {
            self.credit = 0.0;
            segments += 1.0;
        }
        self.credit += acked;
        let more = libm::floor(self.credit / self.per_segment);
        self.credit -= more * self.per_segment;
        segments + more
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::from_millis(millis)
    }

    fn known(target: f64) -> impl Fn() -> Outlook {
        move || Outlook { target, alpha: 0.9 / 1.7, maximum: Maximum::Known }
    }

    /// Acknowledges one segment per millisecond, for `n` milliseconds from `start` on.
    fn acknowledge(
        pace: &mut Pace,
        cwnd: f64,
        start: u64,
        n: u64,
        outlook: impl Fn() -> Outlook,
    ) -> Vec<f64> {
        let mut cwnd = cwnd;
        (start..start + n)
            .map(|now| {
                cwnd = pace.grow(at(now), cwnd, 1.0, &outlook);
                cwnd
            })
            .collect()
    }

    #[test]
    fn a_window_below_the_function_grows_by_one_for_so_many_segments() {
        let mut pace = Pace::new(10.0);
        let windows = acknowledge(&mut pace, 10.0, 0, 10, known(12.0)); // 10 / 2 = 5
        assert_eq!(windows, [10.0, 10.0, 10.0, 10.0, 11.0, 11.0, 11.0, 11.0, 11.0, 11.0]);
        assert!((pace.per_segment - 11.0).abs() < 1e-9, "decided anew for 11: 11 / 1");
    }

    #[test]
    fn a_window_that_was_just_reduced_stands_still_for_a_32nd_of_a_second() {
        // Reno's would be a segment larger after 13.2 ACKs.
        let mut pace = Pace::new(7.0);
        let windows = acknowledge(&mut pace, 7.0, 0, 60, known(7.0));
        let grown = windows.iter().position(|window| *window > 7.0);
        assert_eq!(grown, Some(32), "decided at 0 and at 32 ms, with credit for one segment");
        assert!((windows[31] - 7.0).abs() < 1e-9 && pace.estimate > 8.5);
    }

    #[test]
    fn a_window_grows_by_half_in_a_round_trip_at_most() {
        let mut pace = Pace::new(10.0);
        let windows = acknowledge(&mut pace, 10.0, 0, 10, known(1e6));
        assert_eq!(windows.last(), Some(&15.0));
    }

    #[test]
    fn where_no_maximum_is_known_growth_is_a_twentieth_at_least() {
        let mut pace = Pace::new(100.0);
        let unknown = || Outlook { maximum: Maximum::Unknown, ..known(0.0)() };
        assert_eq!(acknowledge(&mut pace, 100.0, 0, 20, unknown).last(), Some(&101.0));
    }

    #[test]
    fn what_was_counted_at_a_slower_pace_makes_one_segment() {
        let mut pace = Pace::new(10.0);
        acknowledge(&mut pace, 10.0, 0, 30, known(0.0));
        assert!((pace.grow(at(100), 10.0, 1.0, known(20.0)) - 11.0).abs() < 1e-9);
        assert!(pace.credit <= 1.0);
    }

    #[test]
    fn segments_acknowledged_together_count_each() {
        let mut pace = Pace::new(10.0);
        assert!((pace.grow(at(0), 10.0, 10.0, known(12.0)) - 12.0).abs() < 1e-9);
    }
}
