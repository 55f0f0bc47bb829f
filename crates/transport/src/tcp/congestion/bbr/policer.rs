//! Long-term bandwidth sampling: detection of policers (v1; `bbr_lt_bw_sampling` and related functions of `tcp_bbr.c`).
//!
//! A token-bucket policer lets bursts through and then drops. The largest delivery rate of a round is therefore above its
//! long-term rate. The detector compares two consecutive intervals, each from loss to loss with a high loss rate. If they
//! delivered at nearly the same rate, a policer is assumed, and the mean of the two rates is used as the bandwidth for a
//! while.

use super::parts::Rounds;
use crate::tcp::delivery_rate::Limit;
use hopline_core::{Duration, Instant};

/// Least and largest number of rounds of an interval.
const LEAST_ROUNDS: u32 = 4;
const MOST_ROUNDS: u32 = 4 * LEAST_ROUNDS;
/// Lost bytes per delivered byte from which on an interval counts.
const LOSSY: f64 = 50.0 / 256.0;
/// Two rates are equal if they differ by at most this share of the first, or by at most this many bytes per second.
const SAME_SHARE: f64 = 1.0 / 8.0;
const SAME_RATE: f64 = 500.0;
/// Number of rounds for which the rate is used.
const HOLDS: u32 = 48;
const LEAST_TIME: Duration = Duration::from_millis(1);

/// State of the policer detector.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Policer {
    state: State,
    /// Rate of the last interval that counted, or of the policer, bytes per second; 0: none.
    rate: f64,
    since: Mark,
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
    Found,
}

/// Start of an interval.
#[derive(Clone, Copy, Debug, Default)]
struct Mark {
    at: Instant,
    delivered: u64,
    lost: u64,
}

/// Input of the detector from an acknowledgment or a time-out.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sign {
    /// Time of the last delivery.
    pub(super) delivered_at: Instant,
    /// Totals of delivered and lost bytes.
    pub(super) delivered: u64,
    pub(super) lost_so_far: u64,
    /// Bytes lost on this event.
    pub(super) lost: u64,
    pub(super) limit: Limit,
}

/// Result of an update.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Finding {
    /// No change.
    Nothing,
    /// The rate of the policer has been used for long enough: the path is probed again.
    Over,
}

impl Policer {
    /// Returns the policer's rate, bytes per second, if one was detected.
    pub(super) fn rate(&self) -> Option<f64> {
        (self.state == State::Found).then_some(self.rate)
    }

    /// Resets the detector.
    pub(super) fn reset(&mut self, sign: Sign) {
        *self = Self { since: Mark::of(sign), ..Self::default() };
    }

    /// Updates the detector. `probing`: state of bandwidth probing.
    pub(super) fn look(&mut self, sign: Sign, rounds: Rounds, probing: Probing) -> Finding {
        match self.state {
            State::Found => {
                if probing == Probing::InTurns && rounds.starts {
                    self.rounds += 1;
                    if self.rounds >= HOLDS {
                        self.reset(sign);
                        return Finding::Over;
                    }
                }
                return Finding::Nothing;
            }
            State::Waiting if sign.lost == 0 => return Finding::Nothing,
            State::Waiting => {
                self.restart(sign);
                self.state = State::Sampling;
            }
            State::Sampling => {}
        }
        if sign.limit == Limit::Application {
            self.reset(sign);
            return Finding::Nothing;
        }
        self.rounds += u32::from(rounds.starts);
        if self.rounds > MOST_ROUNDS {
            self.reset(sign);
        } else if self.rounds >= LEAST_ROUNDS && sign.lost > 0 {
            self.end(sign);
        }
        Finding::Nothing
    }

    /// Ends the interval if it is long enough and lossy enough. It ends at a loss, so that the bucket is empty.
    fn end(&mut self, sign: Sign) {
        let lost = (sign.lost_so_far - self.since.lost) as f64;
        let delivered = (sign.delivered - self.since.delivered) as f64;
        let time = sign.delivered_at.since(self.since.at);
        if delivered < 1.0 || lost < LOSSY * delivered || time < LEAST_TIME {
            return;
        }
        let rate = delivered / time.as_secs_f64();
        let apart = (rate - self.rate).abs();
        if self.rate > 0.0 && (apart <= SAME_SHARE * self.rate || apart <= SAME_RATE) {
            self.rate = f64::midpoint(rate, self.rate);
            self.state = State::Found;
            self.rounds = 0;
            return;
        }
        self.rate = rate;
        self.restart(sign);
    }

    fn restart(&mut self, sign: Sign) {
        self.since = Mark::of(sign);
        self.rounds = 0;
    }
}

impl Mark {
    fn of(sign: Sign) -> Self {
        Self { at: sign.delivered_at, delivered: sign.delivered, lost: sign.lost_so_far }
    }
}

/// State of bandwidth probing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Probing {
    /// The gain cycle is running: PROBE_BW.
    InTurns,
    /// Any other state.
    NotNow,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Delivers a megabyte a second in rounds of 100 ms, with `lost_percent` per cent more lost, for `rounds` rounds.
    fn police(lost_percent: u64, rounds: u64, limit: Limit) -> Policer {
        let mut policer = Policer::default();
        let (mut delivered, mut lost_so_far) = (0, 0);
        for round in 1..=rounds {
            delivered += 100_000;
            let lost = 1000 * lost_percent;
            lost_so_far += lost;
            let delivered_at = Instant::from_millis(100 * round);
            let sign = Sign { delivered_at, delivered, lost_so_far, lost, limit };
            let mut rounds = Rounds::default();
            rounds.update(delivered, delivered);
            policer.look(sign, rounds, Probing::InTurns);
        }
        policer
    }

    #[test]
    fn two_intervals_of_one_rate_with_a_fifth_lost_are_a_policer() {
        assert_eq!(police(25, 4, Limit::Path).rate(), None, "one interval");
        let rate = police(25, 10, Limit::Path).rate().expect("two intervals");
        assert!((rate - 1e6).abs() < 1.0, "{rate}");
    }

    #[test]
    fn losses_of_a_tenth_are_not_and_neither_is_an_application_that_pauses() {
        assert_eq!(police(10, 100, Limit::Path).rate(), None);
        assert_eq!(police(25, 100, Limit::Application).rate(), None);
        assert_eq!(police(0, 100, Limit::Path).rate(), None);
    }

    #[test]
    fn its_rate_holds_for_48_rounds() {
        let first = (1..100).find(|&n| police(25, n, Limit::Path).rate().is_some()).expect("it is found");
        assert!(police(25, first + 47, Limit::Path).rate().is_some());
        assert!(police(25, first + 48, Limit::Path).rate().is_none());
    }
}
