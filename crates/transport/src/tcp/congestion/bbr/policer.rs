//! Long-term bandwidth sampling: detection of policers (v1; `bbr_lt_bw_sampling` and related functions of `tcp_bbr.c`).
//!
//! A token-bucket policer lets bursts through and then drops. The largest delivery rate of a round is therefore above its
//! long-term rate. The detector compares two consecutive intervals, each from loss to loss with a high loss rate. If they
//! delivered at nearly the same rate, a policer is assumed, and the mean of the two rates is used as the bandwidth for a
//! while.

use super::common::RoundCounter;
use crate::tcp::delivery_rate::SendLimit;
use hopline_core::{Duration, Instant};

/// Least and largest number of rounds of an interval.
const MIN_INTERVAL_ROUNDS: u32 = 4;
const MAX_INTERVAL_ROUNDS: u32 = 4 * MIN_INTERVAL_ROUNDS;
/// Lost bytes per delivered byte from which on an interval counts.
const LOSS_THRESHOLD: f64 = 50.0 / 256.0;
/// Two rates are equal if they differ by at most this share of the first, or by at most this many bytes per second.
const RATE_RATIO: f64 = 1.0 / 8.0;
const RATE_DIFFERENCE: f64 = 500.0;
/// Number of rounds for which the rate is used.
const MAX_USE_ROUNDS: u32 = 48;
const MIN_INTERVAL: Duration = Duration::from_millis(1);

/// State of the policer detector.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PolicerDetector {
    state: State,
    /// Rate of the last interval that counted, or of the policer, bytes per second; 0: none.
    rate: f64,
    interval_start: IntervalStart,
    rounds: u32,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    /// No loss so far.
    #[default]
    Waiting,
    /// An interval is under way.
    Sampling,
    /// A policer is detected.
    Detected,
}

/// Start of an interval.
#[derive(Clone, Copy, Debug, Default)]
struct IntervalStart {
    at: Instant,
    delivered: u64,
    lost: u64,
}

/// Input of the detector from an acknowledgment or a time-out.
#[derive(Clone, Copy, Debug)]
pub(super) struct DetectorInput {
    /// Time of the last delivery.
    pub(super) delivered_at: Instant,
    /// Totals of delivered and lost bytes.
    pub(super) delivered: u64,
    pub(super) lost: u64,
    /// Bytes lost on this event.
    pub(super) newly_lost: u64,
    pub(super) limit: SendLimit,
}

/// Result of an update.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DetectorResult {
    /// No change.
    None,
    /// The rate of the policer has been used for long enough: the path is probed again.
    Expired,
}

impl PolicerDetector {
    /// Returns the policer's rate, bytes per second, if one was detected.
    pub(super) fn rate(&self) -> Option<f64> {
        (self.state == State::Detected).then_some(self.rate)
    }

    /// Resets the detector.
    pub(super) fn reset(&mut self, sign: DetectorInput) {
        *self = Self { interval_start: IntervalStart::of(sign), ..Self::default() };
    }

    /// Updates the detector. `probing`: state of bandwidth probing.
    pub(super) fn update(
        &mut self,
        sign: DetectorInput,
        rounds: RoundCounter,
        probing: BwProbing,
    ) -> DetectorResult {
        match self.state {
            State::Detected => {
                if probing == BwProbing::GainCycling && rounds.round_start {
                    self.rounds += 1;
                    if self.rounds >= MAX_USE_ROUNDS {
                        self.reset(sign);
                        return DetectorResult::Expired;
                    }
                }
                return DetectorResult::None;
            }
            State::Waiting if sign.newly_lost == 0 => return DetectorResult::None,
            State::Waiting => {
                self.restart_interval(sign);
                self.state = State::Sampling;
            }
            State::Sampling => {}
        }
        if sign.limit == SendLimit::Application {
            self.reset(sign);
            return DetectorResult::None;
        }
        self.rounds += u32::from(rounds.round_start);
        if self.rounds > MAX_INTERVAL_ROUNDS {
            self.reset(sign);
        } else if self.rounds >= MIN_INTERVAL_ROUNDS && sign.newly_lost > 0 {
            self.end_interval(sign);
        }
        DetectorResult::None
    }

    /// Ends the interval if it is long enough and lossy enough. It ends at a loss, so that the bucket is empty.
    fn end_interval(&mut self, sign: DetectorInput) {
        let lost = (sign.lost - self.interval_start.lost) as f64;
        let delivered = (sign.delivered - self.interval_start.delivered) as f64;
        let time = sign.delivered_at.since(self.interval_start.at);
        if delivered < 1.0 || lost < LOSS_THRESHOLD * delivered || time < MIN_INTERVAL {
            return;
        }
        let rate = delivered / time.as_secs_f64();
        let apart = (rate - self.rate).abs();
        if self.rate > 0.0 && (apart <= RATE_RATIO * self.rate || apart <= RATE_DIFFERENCE) {
            self.rate = f64::midpoint(rate, self.rate);
            self.state = State::Detected;
            self.rounds = 0;
            return;
        }
        self.rate = rate;
        self.restart_interval(sign);
    }

    fn restart_interval(&mut self, sign: DetectorInput) {
        self.interval_start = IntervalStart::of(sign);
        self.rounds = 0;
    }
}

impl IntervalStart {
    fn of(sign: DetectorInput) -> Self {
        Self { at: sign.delivered_at, delivered: sign.delivered, lost: sign.lost }
    }
}

/// State of bandwidth probing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BwProbing {
    /// The gain cycle is running: PROBE_BW.
    GainCycling,
    /// Any other state.
    Inactive,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Delivers a megabyte a second in rounds of 100 ms, with `lost_percent` per cent more lost, for `rounds` rounds.
    fn run_detector(lost_percent: u64, rounds: u64, limit: SendLimit) -> PolicerDetector {
        let mut policer = PolicerDetector::default();
        let (mut delivered, mut lost_so_far) = (0, 0);
        for round in 1..=rounds {
            delivered += 100_000;
            let lost = 1000 * lost_percent;
            lost_so_far += lost;
            let delivered_at = Instant::from_millis(100 * round);
            let sign = DetectorInput { delivered_at, delivered, lost: lost_so_far, newly_lost: lost, limit };
            let mut rounds = RoundCounter::default();
            rounds.update(delivered, delivered);
            policer.update(sign, rounds, BwProbing::GainCycling);
        }
        policer
    }

    #[test]
    fn two_lossy_intervals_of_equal_rate_detect_a_policer() {
        assert_eq!(run_detector(25, 4, SendLimit::Path).rate(), None, "one interval");
        let rate = run_detector(25, 10, SendLimit::Path).rate().expect("two intervals");
        assert!((rate - 1e6).abs() < 1.0, "{rate}");
    }

    #[test]
    fn moderate_losses_or_an_application_limit_detect_no_policer() {
        assert_eq!(run_detector(10, 100, SendLimit::Path).rate(), None);
        assert_eq!(run_detector(25, 100, SendLimit::Application).rate(), None);
        assert_eq!(run_detector(0, 100, SendLimit::Path).rate(), None);
    }

    #[test]
    fn the_rate_of_a_policer_is_used_for_48_rounds() {
        let first =
            (1..100).find(|&n| run_detector(25, n, SendLimit::Path).rate().is_some()).expect("it is found");
        assert!(run_detector(25, first + 47, SendLimit::Path).rate().is_some());
        assert!(run_detector(25, first + 48, SendLimit::Path).rate().is_none());
    }
}
