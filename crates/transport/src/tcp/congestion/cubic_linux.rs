//! Integer arithmetic of CUBIC in Linux: growth in whole segments, at a rate that is decided from time to time.
//!
//! Between two decisions, the window grows by one segment per fixed number of acknowledged segments (`cnt`). A decision
//! holds until the window changes, or for a 32nd of a second. Over short round trips that is several of them, and a
//! window that was just reduced stays constant for as long. Facts of `net/ipv4/tcp_cubic.c` (6.18) and of
//! `tcp_cong_avoid_ai`.

use hopline_core::{Duration, Instant};

/// Lifetime of a decision while the window stays the same: `HZ / 32` ticks.
const DECISION_LIFETIME: Duration = Duration::from_nanos(1_000_000_000 / 32);
/// Acknowledged segments per added segment, in multiples of the window, while the function is not above the window.
const NO_GROWTH_COUNT: f64 = 100.0;
/// Largest number of acknowledged segments per added segment while `W_max` is unknown.
const MAX_COUNT_WITHOUT_W_MAX: f64 = 20.0;
/// Least number of acknowledged segments per added segment: a window grows by at most half per round trip.
const MIN_COUNT: f64 = 2.0;

/// Growth of the window in one congestion avoidance stage.
#[derive(Clone, Copy, Debug)]
pub(super) struct LinuxGrowth {
    /// Acknowledged segments per added segment: `cnt`.
    cnt: f64,
    /// Window and time of the last decision.
    last_decision: Option<(f64, Instant)>,
    /// Acknowledged segments counted towards the next segment: `snd_cwnd_cnt`.
    cwnd_cnt: f64,
    /// Estimate of Reno's window, whole segments: `tcp_cwnd`.
    tcp_cwnd: f64,
    /// Acknowledged segments counted towards the next segment of the estimate: `ack_cnt`.
    ack_cnt: f64,
}

/// Inputs of a decision.
#[derive(Clone, Copy, Debug)]
pub(super) struct DecisionInput {
    /// Cubic function one round trip from now, segments.
    pub(super) target: f64,
    /// `alpha_cubic` (RFC 9438 §4.3).
    pub(super) alpha: f64,
    /// Knowledge of `W_max`.
    pub(super) w_max: WMaxKnowledge,
}

/// Knowledge of `W_max`, which the first loss shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WMaxKnowledge {
    Known,
    Unknown,
}

impl LinuxGrowth {
    pub(super) fn new(cwnd: f64) -> Self {
        Self { cnt: MIN_COUNT, last_decision: None, cwnd_cnt: 0.0, tcp_cwnd: cwnd, ack_cnt: 0.0 }
    }

    /// Returns the window, in whole segments, after `acked` segments were acknowledged that found the window `cwnd` in
    /// use.
    pub(super) fn grow(
        &mut self,
        now: Instant,
        cwnd: f64,
        acked: f64,
        outlook: impl Fn() -> DecisionInput,
    ) -> f64 {
        self.ack_cnt += acked;
        let lasts = |(window, at): (f64, Instant)| {
            window.total_cmp(&cwnd).is_eq() && now.since(at) <= DECISION_LIFETIME
        };
        if !self.last_decision.is_some_and(lasts) {
            self.decide(cwnd, &outlook());
            self.last_decision = Some((cwnd, now));
        }
        cwnd + self.count_acked(acked)
    }

    fn decide(&mut self, cwnd: f64, outlook: &DecisionInput) {
        let cubic =
            if outlook.target > cwnd { cwnd / (outlook.target - cwnd) } else { NO_GROWTH_COUNT * cwnd };
        let cubic = match outlook.w_max {
            WMaxKnowledge::Known => cubic,
            WMaxKnowledge::Unknown => cubic.min(MAX_COUNT_WITHOUT_W_MAX),
        };
        self.update_tcp_cwnd(cwnd / outlook.alpha);
        let reno = if self.tcp_cwnd > cwnd { cwnd / (self.tcp_cwnd - cwnd) } else { f64::INFINITY };
        self.cnt = libm::floor(cubic.min(reno)).max(MIN_COUNT);
    }

    /// Updates the estimate of Reno's window, which grows by one segment per `cnt` acknowledged segments.
    fn update_tcp_cwnd(&mut self, per_segment: f64) {
        let segments = libm::floor(self.ack_cnt / per_segment);
        self.tcp_cwnd += segments;
        self.ack_cnt -= segments * per_segment;
    }

    fn count_acked(&mut self, acked: f64) -> f64 {
        let mut segments = 0.0;
        // What was counted at a slower pace makes one segment, however much it is.
        if self.cwnd_cnt >= self.cnt {
            self.cwnd_cnt = 0.0;
            segments += 1.0;
        }
        self.cwnd_cnt += acked;
        let more = libm::floor(self.cwnd_cnt / self.cnt);
        self.cwnd_cnt -= more * self.cnt;
        segments + more
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::from_millis(millis)
    }

    fn known(target: f64) -> impl Fn() -> DecisionInput {
        move || DecisionInput { target, alpha: 0.9 / 1.7, w_max: WMaxKnowledge::Known }
    }

    /// Acknowledges one segment per millisecond, for `n` milliseconds from `start` on.
    fn acknowledge(
        pace: &mut LinuxGrowth,
        cwnd: f64,
        start: u64,
        n: u64,
        outlook: impl Fn() -> DecisionInput,
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
    fn below_the_function_the_window_grows_by_one_per_cnt_segments() {
        let mut pace = LinuxGrowth::new(10.0);
        let windows = acknowledge(&mut pace, 10.0, 0, 10, known(12.0)); // 10 / 2 = 5
        assert_eq!(windows, [10.0, 10.0, 10.0, 10.0, 11.0, 11.0, 11.0, 11.0, 11.0, 11.0]);
        assert!((pace.cnt - 11.0).abs() < 1e-9, "decided anew for 11: 11 / 1");
    }

    #[test]
    fn after_a_reduction_the_window_is_constant_for_hz_over_32() {
        // Reno's would be a segment larger after 13.2 ACKs.
        let mut pace = LinuxGrowth::new(7.0);
        let windows = acknowledge(&mut pace, 7.0, 0, 60, known(7.0));
        let grown = windows.iter().position(|window| *window > 7.0);
        assert_eq!(grown, Some(32), "decided at 0 and at 32 ms, with credit for one segment");
        assert!((windows[31] - 7.0).abs() < 1e-9 && pace.tcp_cwnd > 8.5);
    }

    #[test]
    fn a_window_grows_by_at_most_half_per_round_trip() {
        let mut pace = LinuxGrowth::new(10.0);
        let windows = acknowledge(&mut pace, 10.0, 0, 10, known(1e6));
        assert_eq!(windows.last(), Some(&15.0));
    }

    #[test]
    fn without_w_max_growth_is_at_least_a_twentieth() {
        let mut pace = LinuxGrowth::new(100.0);
        let unknown = || DecisionInput { w_max: WMaxKnowledge::Unknown, ..known(0.0)() };
        assert_eq!(acknowledge(&mut pace, 100.0, 0, 20, unknown).last(), Some(&101.0));
    }

    #[test]
    fn excess_counts_after_a_faster_decision_add_one_segment() {
        let mut pace = LinuxGrowth::new(10.0);
        acknowledge(&mut pace, 10.0, 0, 30, known(0.0));
        assert!((pace.grow(at(100), 10.0, 1.0, known(20.0)) - 11.0).abs() < 1e-9);
        assert!(pace.cwnd_cnt <= 1.0);
    }

    #[test]
    fn segments_acknowledged_together_count_each() {
        let mut pace = LinuxGrowth::new(10.0);
        assert!((pace.grow(at(0), 10.0, 10.0, known(12.0)) - 12.0).abs() < 1e-9);
    }
}
