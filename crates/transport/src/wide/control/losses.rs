//! Baseline loss rate of the path, and detection of losses above it.
//!
//! A radio loses a share of the packets at any rate; a queue or a policer drops the excess. Losses therefore indicate
//! congestion only above the baseline. The baseline is learnt while the rate grows without a larger share of losses, and
//! by a test: a loss rate that stays when the sending rate is reduced is not caused by the rate. Among many flows that
//! test shows nothing. A large baseline is therefore used only after a verification: a queue has drained, and the losses
//! have stayed.

use super::super::config::TrustConfig;
use super::compete::Lost;
use hopline_core::{Duration, Instant};

/// Least number of packets for a verdict.
const LEAST: f64 = 48.0;
/// Least number of packets to compare the loss rates of a growing rate.
const LEAST_GROWING: f64 = 16.0;
/// Least number of settled packets after a drain for a verification.
const LEAST_DRAINED: f64 = 24.0;
/// Increase of the loss rate that is attributed to the sending rate.
const GROWN: f64 = 0.1;
/// Number of packets over which the baseline is smoothed.
const MEMORY: f64 = 500.0;
/// Largest loss rate that is attributed to a path. Losses above it are attributed to the rate.
pub(super) const MOST: f64 = 0.4;
/// Least lifetime of a verification, and least length of a probation, round trips.
const PROOF_ROUNDS: u64 = 256;
const CREDIT_ROUNDS: u64 = 64;
/// Time for this many packets, up to a limit, is also a lower bound of a probation, since a verdict takes long at a low
/// packet rate.
const CREDIT_PACKETS: f64 = 300.0;
const CREDIT_MOST: Duration = Duration::from_secs(10);
/// Time without probation after one, as a multiple of its length. If all competing flows were on probation for half of
/// the time, they would measure each other's losses.
const WITHOUT: u64 = 3;
/// Least number of packets settled while the queue is clearly below its maximum, for an estimate of the path's losses;
/// and size of the window of the estimate.
const LEAST_BELOW: f64 = 24.0;
const MOST_BELOW: f64 = 200.0;
/// Number of packets for the random variation of losses; only losses above it are attributed to the queue.
const CHANCE_OF: f64 = 15.0;
/// Losses that remain at a rate below the limit: share of those before, and of all packets.
const SOME: f64 = 0.1;
const FEW: f64 = 0.002;
/// Largest number of packets in a test.
const MOST_TESTED: f64 = 300.0;
/// Initial variance of the losses relative to independent ones, since bursts are usual on a radio.
const BURSTY: f64 = 4.0;

/// Verdict on the last packets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Verdict {
    /// Undecided: too few packets.
    Open,
    /// At the baseline; the loss rate.
    Usual(f64),
    /// Above the baseline; the loss rate.
    Excess(f64),
}

/// Loss statistics.
#[derive(Clone, Debug)]
pub(super) struct Losses {
    excess: f64,
    config: TrustConfig,
    /// Baseline loss rate.
    usual: f64,
    /// Variance of the losses relative to independent ones, for which it is 1.
    spread: f64,
    trust: Trust,
    /// Packets settled, and packets lost, just after queues had drained.
    drained: [f64; 2],
    settled: f64,
    lost: f64,
    /// The same counts while the rate grew.
    growing: [f64; 2],
    /// The same counts while the queue was clearly below its maximum.
    below: [f64; 2],
    /// Losses above those of the path in competitive mode, packets.
    beyond: f64,
}

impl Losses {
    pub(super) const fn new(excess: f64, config: TrustConfig) -> Self {
        Self {
            excess,
            config,
            usual: 0.0,
            spread: BURSTY,
            trust: Trust::Begin,
            drained: [0.0; 2],
            settled: 0.0,
            lost: 0.0,
            growing: [0.0; 2],
            below: [0.0; 2],
            beyond: 0.0,
        }
    }

    /// Returns the baseline loss rate, limited without verification.
    pub(super) fn usual(&self) -> f64 {
        self.usual.min(if self.is_trusted() { MOST } else { self.config.unproven })
    }

    /// Returns whether a large loss rate is attributed to the path.
    pub(super) fn is_trusted(&self) -> bool {
        !matches!(self.trust, Trust::None { .. })
    }

    /// Updates the verification at the end of a round trip. `packet`: packet interval.
    pub(super) fn age(&mut self, now: Instant, srtt: Duration, packet: Duration) {
        let lasts = |rounds, least: Duration| srtt.saturating_mul(rounds).max(least);
        let for_verdicts = Duration::from_secs_f64(packet.as_secs_f64() * CREDIT_PACKETS).min(CREDIT_MOST);
        let of_credit = lasts(CREDIT_ROUNDS, self.config.credit).max(for_verdicts);
        let credit = Trust::Credit { until: now + of_credit };
        self.trust = match self.trust {
            Trust::Begin => credit,
            Trust::Proven => Trust::Held { until: now + lasts(PROOF_ROUNDS, self.config.proof) },
            Trust::Credit { until } | Trust::Held { until } if until <= now => {
                Trust::None { until: now + of_credit.saturating_mul(WITHOUT) }
            }
            Trust::None { until } if until <= now => credit,
            same => same,
        };
    }

    /// Counts packets that arrived or were lost. `late`: packets among the arrived ones that were declared lost before.
    pub(super) fn take(&mut self, delivered: u64, lost: u64, late: u64) {
        self.settled = (self.settled + (delivered + lost) as f64 - late as f64).max(0.0);
        self.lost = (self.lost + lost as f64 - late as f64).max(0.0);
    }

    /// As [`Self::take`], while the queue is clearly below its maximum.
    pub(super) fn take_below(&mut self, delivered: u64, lost: u64, late: u64) {
        let [settled, lost] = [(delivered + lost) as f64 - late as f64, lost as f64 - late as f64];
        self.below = [(self.below[0] + settled).max(0.0), (self.below[1] + lost).max(0.0)];
        if self.below[0] > MOST_BELOW {
            self.below = self.below.map(|count| count / 2.0);
        }
    }

    /// Returns the loss rate of the path independent of the queue; zero while unknown.
    fn of_the_path(&self) -> f64 {
        let [n, lost] = self.below;
        if n < LEAST_BELOW { 0.0 } else { self.usual().min(lost / n) }
    }

    /// Gives a verdict after a round trip with a higher rate than those before.
    pub(super) fn growing(&mut self, learns: Learns) -> Verdict {
        if self.settled < LEAST_GROWING {
            return Verdict::Open;
        }
        let (n, lost) = (self.settled, self.lost);
        let [before, lost_before] = self.growing;
        let share = lost / n;
        if before >= LEAST_GROWING {
            let base = lost_before / before;
            // None lost of few does not mean that none are.
            let likely = (lost_before + 1.0) / (before + 2.0);
            let deviation = (self.spread * likely * (1.0 - likely) * (1.0 / n + 1.0 / before)).sqrt();
            if share > base + GROWN + self.excess * deviation {
                return Verdict::Excess(share);
            }
        }
        if learns == Learns::Yes {
            self.growing = [before + n, lost_before + lost];
            self.usual = (self.growing[1] / self.growing[0]).min(MOST);
        }
        self.begin_anew();
        Verdict::Usual(share)
    }

    /// Gives a verdict after a round trip. The baseline is updated only if the rate has not grown, so that it does not
    /// drift with the rate.
    pub(super) fn round(&mut self, learns: Learns) -> Verdict {
        if self.settled < LEAST {
            return Verdict::Open;
        }
        let (n, lost) = (self.settled, self.lost);
        let (share, expected) = (lost / n, self.usual() * n);
        let beyond = lost - expected;
        self.begin_anew();
        let spread = if self.is_trusted() { self.spread } else { 1.0 };
        if beyond > 1.0 + self.excess * (spread * expected.max(0.5)).sqrt() {
            return Verdict::Excess(share);
        }
        if learns == Learns::Yes {
            let weight = n / (n + MEMORY);
            if expected > 1.0 {
                self.spread += weight * ((beyond * beyond / expected).max(1.0) - self.spread);
            }
            self.learn(share, n);
        }
        Verdict::Usual(share)
    }

    /// Returns whether the queue lost packets, after a round trip in competitive mode. A round trip has few packets, so
    /// losses above those of the path are added up until they exceed chance.
    pub(super) fn queue_lost(&mut self) -> Lost {
        let path = self.of_the_path();
        self.beyond = (self.beyond + self.lost - path * self.settled).max(0.0);
        self.begin_anew();
        if self.beyond <= 0.5 + (self.spread * path * CHANCE_OF).sqrt() {
            return Lost::Nothing;
        }
        self.beyond = 0.0;
        Lost::InTheQueue
    }

    /// Sets the baseline to a loss rate that is attributed to the path.
    pub(super) fn believe(&mut self, share: f64) {
        self.usual = share.min(MOST);
    }

    /// Records losses that no queue can have caused, as a verification.
    pub(super) fn prove(&mut self) {
        self.trust = Trust::Proven;
    }

    fn learn(&mut self, share: f64, n: f64) {
        self.usual = (self.usual + n / (n + MEMORY) * (share - self.usual)).min(MOST);
    }

    /// Processes a drain: the rate was reduced by `factor`, and at most half of the queue is left. It is a verification
    /// only if there was a queue before, since a queue that is always full looks like none.
    pub(super) fn drained(&mut self, factor: f64, proof: Proof) {
        self.drained[0] += self.settled;
        self.drained[1] += self.lost;
        self.begin_anew();
        let [n, lost] = self.drained;
        if n >= LEAST_DRAINED {
            let share = lost / n;
            match self.cause(self.usual, [n, lost], factor) {
                Cause::Rate => self.usual = share.min(self.usual),
                Cause::Path => self.learn(share, n),
            }
            if proof == Proof::Yes {
                self.prove();
            }
            self.drained = [0.0; 2];
        }
    }

    /// Tests the cause of losses after the rate was reduced by `factor`, with a loss rate of `before` before that.
    /// Returns the cause and the loss rate now; `None`: undecided.
    pub(super) fn test(&mut self, before: f64, factor: f64) -> Option<(Cause, f64)> {
        let [n, lost] = [self.settled, self.lost];
        let likelier = self.likelier_ours(before, [n, lost], factor);
        if n < LEAST || (likelier.abs() < self.config.decided && n < MOST_TESTED) {
            return None;
        }
        let share = lost / n;
        let cause = if likelier > 0.0 { Cause::Rate } else { Cause::Path };
        self.usual = if cause == Cause::Path { share.min(MOST) } else { share.min(self.usual) };
        self.begin_anew();
        Some((cause, share))
    }

    /// Returns the likelier cause of the losses: the loss rate was `before`, and `lost` of `n` packets after the rate was
    /// reduced by `factor`.
    fn cause(&self, before: f64, seen: [f64; 2], factor: f64) -> Cause {
        if self.likelier_ours(before, seen, factor) > 0.0 { Cause::Rate } else { Cause::Path }
    }

    /// Returns the log-likelihood ratio, by Poisson's law, of a cause by the rate to a cause by the path. A burst counts
    /// as one loss.
    fn likelier_ours(&self, before: f64, [n, lost]: [f64; 2], factor: f64) -> f64 {
        // If what goes through stays the same.
        let ours = 1.0 - (1.0 - before) / factor;
        let if_ours = n * ours.max(before * SOME).max(FEW);
        let if_theirs = n * before.max(FEW);
        (if_theirs - if_ours + lost * libm::log(if_ours / if_theirs)) / self.spread.clamp(1.0, BURSTY)
    }

    /// Discards the counts, since packets in flight belong to another rate.
    pub(super) fn begin_anew(&mut self) {
        (self.settled, self.lost) = (0.0, 0.0);
    }
}

/// Verification of the loss baseline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Trust {
    Begin,
    /// On probation, without verification.
    Credit {
        until: Instant,
    },
    /// Verified just now.
    Proven,
    /// Verified recently.
    Held {
        until: Instant,
    },
    /// Not verified for a long time.
    None {
        until: Instant,
    },
}

/// Permission to update the baseline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Learns {
    Yes,
    No,
}

/// Significance of losses that stay without a queue as a verification.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Proof {
    Yes,
    No,
}

/// Cause of losses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cause {
    /// The path, at any rate.
    Path,
    /// A rate that is too high.
    Rate,
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRUST: TrustConfig = super::super::super::config::Config::DEFAULT.control.trust;
    const SRTT: Duration = Duration::from_millis(50);
    const PACKET: Duration = Duration::from_millis(1);

    fn at(seconds: u64) -> Instant {
        Instant::from_secs(seconds)
    }

    /// Returns statistics with a baseline of 30 %.
    fn lossy() -> Losses {
        let mut losses = Losses::new(2.5, TRUST);
        losses.age(at(0), SRTT, PACKET);
        for _ in 0..4 {
            losses.take(70, 30, 0);
            losses.growing(Learns::Yes);
        }
        losses
    }

    #[test]
    fn much_is_believed_for_a_while_and_then_only_once_a_queue_has_drained() {
        let mut losses = lossy();
        assert!((losses.usual() - 0.3).abs() < 1e-9);
        losses.age(at(3), SRTT, PACKET);
        assert!((losses.usual() - 0.3).abs() < 1e-9, "64 round trips are 3.2 s");
        losses.age(at(4), SRTT, PACKET);
        assert!((losses.usual() - TRUST.unproven).abs() < 1e-9);
        losses.take(70, 30, 0);
        losses.drained(0.7, Proof::No);
        losses.age(at(4), SRTT, PACKET);
        assert!((losses.usual() - TRUST.unproven).abs() < 1e-9, "nothing has drained");
        losses.take(70, 30, 0);
        losses.drained(0.7, Proof::Yes);
        losses.age(at(4), SRTT, PACKET);
        assert!(losses.usual() > 0.25, "{}", losses.usual());
        losses.age(at(16), SRTT, PACKET);
        assert!(losses.usual() > 0.25, "a proof holds for 15 s");
        losses.age(at(20), SRTT, PACKET);
        assert!((losses.usual() - TRUST.unproven).abs() < 1e-9);
        losses.age(at(29), SRTT, PACKET);
        assert!((losses.usual() - TRUST.unproven).abs() < 1e-9);
        losses.age(at(30), SRTT, PACKET);
        assert!(losses.usual() > 0.25, "from time to time a proof may be looked for");
    }

    #[test]
    fn a_test_finds_a_policer_and_goes_on_while_both_causes_are_as_likely() {
        // A fifth was too much, and a fifth less is sent.
        let mut policed = lossy();
        policed.take(100, 0, 0);
        assert_eq!(policed.test(0.2, 0.8), Some((Cause::Rate, 0.0)));
        let mut radio = lossy();
        radio.take(80, 20, 0);
        assert_eq!(radio.test(0.2, 0.8), Some((Cause::Path, 0.2)));
        // A thirtieth was lost: one of 60 says little.
        let mut open = lossy();
        open.take(59, 1, 0);
        assert_eq!(open.test(0.033, 0.8), None);
        open.take(250, 9, 0);
        assert!(matches!(open.test(0.033, 0.8), Some((Cause::Path, _))), "it comes to a verdict");
    }

    #[test]
    fn of_few_packets_a_round_trip_what_is_lost_beyond_the_paths_losses_adds_up() {
        let mut losses = lossy();
        losses.take(4, 1, 0);
        assert_eq!(losses.queue_lost(), Lost::InTheQueue, "nothing is known of the path's losses");
        losses.take_below(70, 30, 0);
        let mut cuts = |lost_of_ten: u64| {
            let of_a_hundred = (0..100).filter(|_| {
                losses.take(10 - lost_of_ten, lost_of_ten, 0);
                losses.queue_lost() == Lost::InTheQueue
            });
            of_a_hundred.count()
        };
        assert_eq!((cuts(3), cuts(2)), (0, 0));
        assert!((15..30).contains(&cuts(4)), "each loss beyond them counts");
    }

    #[test]
    fn what_is_lost_below_the_longest_queue_is_forgotten_for_what_is_lost_now() {
        let mut losses = lossy();
        (0..10).for_each(|_| losses.take_below(70, 30, 0));
        assert!((losses.of_the_path() - 0.3).abs() < 1e-9);
        (0..10).for_each(|_| losses.take_below(100, 0, 0));
        assert!(losses.of_the_path() < 0.01);
        losses.take_below(10, 0, 300);
        assert_eq!(losses.of_the_path(), 0.0, "late ones were not lost, however many");
    }
}
