//! Baseline loss rate of the path, and detection of losses above it.
//!
//! A radio loses a share of the packets at any rate; a queue or a policer drops the excess. Losses therefore indicate
//! congestion only above the baseline. The baseline is learnt while the rate grows without a larger share of losses, and
//! by a test: a loss rate that stays when the sending rate is reduced is not caused by the rate. Among many flows that
//! test shows nothing. A large baseline is therefore used only after a verification: a queue has drained, and the losses
//! have stayed.

use super::super::config::VerificationConfig;
use super::competitive::QueueLoss;
use hopline_core::{Duration, Instant};

/// Least number of packets for a verdict. Fewer have no loss rate: of 48 packets, one lost is 2 %. Own choice, not swept.
const MIN_PACKETS: f64 = 48.0;
/// Least number of packets to compare the loss rates of a growing rate. Less than above, since in Startup a late verdict
/// costs a queue. Own choice, not swept.
const MIN_GROWTH_PACKETS: f64 = 16.0;
/// Least number of packets settled after drains for a verification. A drain has few packets, so those of several are added
/// up. Own choice, not swept.
const MIN_DRAIN_PACKETS: f64 = 24.0;
/// Increase of the loss rate in Startup that is still attributed to chance, beside the standard deviation: losses come in
/// bursts, and few packets are counted. Own choice, not swept.
const GROWTH_MARGIN: f64 = 0.1;
/// Number of packets over which the baseline is smoothed. Own choice, not swept.
const BASELINE_MEMORY: f64 = 500.0;
/// Largest loss rate that is attributed to a path; more is attributed to the rate. The protocol is for paths that lose up
/// to 30 %, with a margin for the error of the estimate. Own choice, not swept.
pub(super) const MAX_PATH_LOSS: f64 = 0.4;
/// Least lifetime of a verification, round trips. Own choice, not swept.
const VERIFIED_ROUNDS: u64 = 256;
/// Least length of a probation, round trips. Own choice, not swept.
const PROBATION_ROUNDS: u64 = 64;
/// Number of packets. The time to send them is also a lower bound of a probation, since a verdict takes long at a low packet
/// rate. Own choice, not swept; as many as [`MAX_TEST_PACKETS`].
const PROBATION_PACKETS: f64 = 300.0;
/// Upper bound of that sending time. Own choice, not swept.
const MAX_PROBATION_FOR_PACKETS: Duration = Duration::from_secs(10);
/// Time without probation after one, as a multiple of its length. If all competing flows were on probation for half of
/// the time, they would measure each other's losses. Own choice, not swept.
const PROBATION_PAUSE: u64 = 3;
/// Least number of packets settled while the queue is clearly below its maximum, for an estimate of the path's losses. Own
/// choice, not swept.
const MIN_BELOW_PACKETS: f64 = 24.0;
/// Number of those packets above which the counts are halved, so that old losses are forgotten. Own choice, not swept.
const BELOW_WINDOW: f64 = 200.0;
/// Number of packets for the random variation of losses in competitive mode; only losses above it are attributed to the
/// queue. Own choice, not swept.
const CHANCE_PACKETS: f64 = 15.0;
/// Losses that remain at a rate below the limit, as a share of those before: a reduced rate does not end all of them. Own
/// choice, not swept.
const RESIDUAL_SHARE: f64 = 0.1;
/// Least loss rate in a likelihood, so that its logarithm exists: below one packet of 500. Own choice.
const MIN_LOSS_RATE: f64 = 0.002;
/// Number of packets at which a test is decided even if both causes are about as likely, so that it ends. Own choice, not
/// swept.
const MAX_TEST_PACKETS: f64 = 300.0;
/// Initial variance of the losses relative to independent ones, and its largest effect in a likelihood: four losses in a
/// burst, which is usual on a radio, count as one. Own choice, not swept.
const INITIAL_DISPERSION: f64 = 4.0;

/// Verdict on the last packets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Verdict {
    /// Undecided: too few packets.
    Undecided,
    /// At the baseline; the loss rate.
    Baseline(f64),
    /// Above the baseline; the loss rate.
    Excess(f64),
}

/// Loss statistics.
#[derive(Clone, Debug)]
pub(super) struct LossEstimator {
    threshold: f64,
    config: VerificationConfig,
    /// Baseline loss rate.
    baseline: f64,
    /// Variance of the losses relative to independent ones, for which it is 1.
    dispersion: f64,
    verification: Verification,
    /// Packets settled, and packets lost, just after queues had drained.
    drain_counts: [f64; 2],
    settled: f64,
    lost: f64,
    /// The same counts while the rate grew.
    growth_counts: [f64; 2],
    /// The same counts while the queue was clearly below its maximum.
    below_counts: [f64; 2],
    /// Losses above those of the path in competitive mode, packets.
    excess: f64,
}

impl LossEstimator {
    pub(super) const fn new(threshold: f64, config: VerificationConfig) -> Self {
        Self {
            threshold,
            config,
            baseline: 0.0,
            dispersion: INITIAL_DISPERSION,
            verification: Verification::Initial,
            drain_counts: [0.0; 2],
            settled: 0.0,
            lost: 0.0,
            growth_counts: [0.0; 2],
            below_counts: [0.0; 2],
            excess: 0.0,
        }
    }

    /// Returns the baseline loss rate, limited without verification.
    pub(super) fn baseline(&self) -> f64 {
        self.baseline.min(if self.is_verified() { MAX_PATH_LOSS } else { self.config.unverified_max })
    }

    /// Returns whether a large loss rate is attributed to the path.
    pub(super) fn is_verified(&self) -> bool {
        !matches!(self.verification, Verification::Unverified { .. })
    }

    /// Updates the verification at the end of a round trip. `packet`: packet interval.
    pub(super) fn update_verification(&mut self, now: Instant, srtt: Duration, packet: Duration) {
        let lasts = |rounds, least: Duration| srtt.saturating_mul(rounds).max(least);
        let for_verdicts =
            Duration::from_secs_f64(packet.as_secs_f64() * PROBATION_PACKETS).min(MAX_PROBATION_FOR_PACKETS);
        let of_credit = lasts(PROBATION_ROUNDS, self.config.probation).max(for_verdicts);
        let credit = Verification::Probation { until: now + of_credit };
        self.verification = match self.verification {
            Verification::Initial => credit,
            Verification::JustVerified => {
                Verification::Verified { until: now + lasts(VERIFIED_ROUNDS, self.config.lifetime) }
            }
            Verification::Probation { until } | Verification::Verified { until } if until <= now => {
                Verification::Unverified { until: now + of_credit.saturating_mul(PROBATION_PAUSE) }
            }
            Verification::Unverified { until } if until <= now => credit,
            same => same,
        };
    }

    /// Counts packets that arrived or were lost. `late`: packets among the arrived ones that were declared lost before.
    pub(super) fn record(&mut self, delivered: u64, lost: u64, late: u64) {
        self.settled = (self.settled + (delivered + lost) as f64 - late as f64).max(0.0);
        self.lost = (self.lost + lost as f64 - late as f64).max(0.0);
    }

    /// As [`Self::record`], while the queue is clearly below its maximum.
    pub(super) fn record_below_maximum(&mut self, delivered: u64, lost: u64, late: u64) {
        let [settled, lost] = [(delivered + lost) as f64 - late as f64, lost as f64 - late as f64];
        self.below_counts =
            [(self.below_counts[0] + settled).max(0.0), (self.below_counts[1] + lost).max(0.0)];
        if self.below_counts[0] > BELOW_WINDOW {
            self.below_counts = self.below_counts.map(|count| count / 2.0);
        }
    }

    /// Returns the loss rate of the path independent of the queue; zero while unknown.
    fn path_loss(&self) -> f64 {
        let [n, lost] = self.below_counts;
        if n < MIN_BELOW_PACKETS { 0.0 } else { self.baseline().min(lost / n) }
    }

    /// Gives a verdict after a round trip with a higher rate than those before.
    pub(super) fn on_growth(&mut self, learning: BaselineUpdates) -> Verdict {
        if self.settled < MIN_GROWTH_PACKETS {
            return Verdict::Undecided;
        }
        let (n, lost) = (self.settled, self.lost);
        let [before, lost_before] = self.growth_counts;
        let share = lost / n;
        if before >= MIN_GROWTH_PACKETS {
            let base = lost_before / before;
            // None lost of few does not mean that none are.
            let likely = (lost_before + 1.0) / (before + 2.0);
            let deviation = (self.dispersion * likely * (1.0 - likely) * (1.0 / n + 1.0 / before)).sqrt();
            if share > base + GROWTH_MARGIN + self.threshold * deviation {
                return Verdict::Excess(share);
            }
        }
        if learning == BaselineUpdates::On {
            self.growth_counts = [before + n, lost_before + lost];
            self.baseline = (self.growth_counts[1] / self.growth_counts[0]).min(MAX_PATH_LOSS);
        }
        self.reset_counts();
        Verdict::Baseline(share)
    }

    /// Gives a verdict after a round trip. The baseline is updated only if the rate has not grown, so that it does not
    /// drift with the rate.
    pub(super) fn on_round(&mut self, learning: BaselineUpdates) -> Verdict {
        if self.settled < MIN_PACKETS {
            return Verdict::Undecided;
        }
        let (n, lost) = (self.settled, self.lost);
        let (share, expected) = (lost / n, self.baseline() * n);
        let beyond = lost - expected;
        self.reset_counts();
        let dispersion = if self.is_verified() { self.dispersion } else { 1.0 };
        if beyond > 1.0 + self.threshold * (dispersion * expected.max(0.5)).sqrt() {
            return Verdict::Excess(share);
        }
        if learning == BaselineUpdates::On {
            let weight = n / (n + BASELINE_MEMORY);
            if expected > 1.0 {
                self.dispersion += weight * ((beyond * beyond / expected).max(1.0) - self.dispersion);
            }
            self.update_baseline(share, n);
        }
        Verdict::Baseline(share)
    }

    /// Returns whether the queue lost packets, after a round trip in competitive mode. A round trip has few packets, so
    /// losses above those of the path are added up until they exceed chance.
    pub(super) fn queue_loss(&mut self) -> QueueLoss {
        let path = self.path_loss();
        self.excess = (self.excess + self.lost - path * self.settled).max(0.0);
        self.reset_counts();
        if self.excess <= 0.5 + (self.dispersion * path * CHANCE_PACKETS).sqrt() {
            return QueueLoss::None;
        }
        self.excess = 0.0;
        QueueLoss::Overflow
    }

    /// Sets the baseline to a loss rate that is attributed to the path.
    pub(super) fn attribute_to_path(&mut self, share: f64) {
        self.baseline = share.min(MAX_PATH_LOSS);
    }

    /// Records losses that no queue can have caused, as a verification.
    pub(super) fn verify(&mut self) {
        self.verification = Verification::JustVerified;
    }

    fn update_baseline(&mut self, share: f64, n: f64) {
        self.baseline =
            (self.baseline + n / (n + BASELINE_MEMORY) * (share - self.baseline)).min(MAX_PATH_LOSS);
    }

    /// Processes a drain: the rate was reduced by `factor`, and at most half of the queue is left. It is a verification
    /// only if there was a queue before, since a queue that is always full looks like none.
    pub(super) fn on_drain(&mut self, factor: f64, before: QueueBeforeDrain) {
        self.drain_counts[0] += self.settled;
        self.drain_counts[1] += self.lost;
        self.reset_counts();
        let [n, lost] = self.drain_counts;
        if n >= MIN_DRAIN_PACKETS {
            let share = lost / n;
            match self.cause(self.baseline, [n, lost], factor) {
                Cause::Rate => self.baseline = share.min(self.baseline),
                Cause::Path => self.update_baseline(share, n),
            }
            if before == QueueBeforeDrain::Yes {
                self.verify();
            }
            self.drain_counts = [0.0; 2];
        }
    }

    /// Tests the cause of losses after the rate was reduced by `factor`, with a loss rate of `before` before that.
    /// Returns the cause and the loss rate now; `None`: undecided.
    pub(super) fn test_result(&mut self, before: f64, factor: f64) -> Option<(Cause, f64)> {
        let [n, lost] = [self.settled, self.lost];
        let ratio = self.log_likelihood_ratio(before, [n, lost], factor);
        if n < MIN_PACKETS || (ratio.abs() < self.config.decision && n < MAX_TEST_PACKETS) {
            return None;
        }
        let share = lost / n;
        let cause = if ratio > 0.0 { Cause::Rate } else { Cause::Path };
        self.baseline =
            if cause == Cause::Path { share.min(MAX_PATH_LOSS) } else { share.min(self.baseline) };
        self.reset_counts();
        Some((cause, share))
    }

    /// Returns the likelier cause of the losses: the loss rate was `before`, and `lost` of `n` packets after the rate was
    /// reduced by `factor`.
    fn cause(&self, before: f64, sample: [f64; 2], factor: f64) -> Cause {
        if self.log_likelihood_ratio(before, sample, factor) > 0.0 { Cause::Rate } else { Cause::Path }
    }

    /// Returns the log-likelihood ratio, by Poisson's law, of the rate as the cause to the path as the cause. A burst counts
    /// as one loss.
    fn log_likelihood_ratio(&self, before: f64, [n, lost]: [f64; 2], factor: f64) -> f64 {
        // If what goes through stays the same.
        let rate_share = 1.0 - (1.0 - before) / factor;
        let if_rate = n * rate_share.max(before * RESIDUAL_SHARE).max(MIN_LOSS_RATE);
        let if_path = n * before.max(MIN_LOSS_RATE);
        (if_path - if_rate + lost * libm::log(if_rate / if_path))
            / self.dispersion.clamp(1.0, INITIAL_DISPERSION)
    }

    /// Discards the counts, since packets in flight belong to another rate.
    pub(super) fn reset_counts(&mut self) {
        (self.settled, self.lost) = (0.0, 0.0);
    }
}

/// Verification of the loss baseline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verification {
    Initial,
    /// On probation, without verification.
    Probation {
        until: Instant,
    },
    /// Verified just now.
    JustVerified,
    /// Verified recently.
    Verified {
        until: Instant,
    },
    /// Not verified for a long time.
    Unverified {
        until: Instant,
    },
}

/// Permission to update the baseline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BaselineUpdates {
    On,
    Off,
}

/// Presence of a queue before a drain. Only losses that stay without it are a verification.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum QueueBeforeDrain {
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

    const VERIFICATION: VerificationConfig =
        super::super::super::config::Config::DEFAULT.control.verification;
    const SRTT: Duration = Duration::from_millis(50);
    const PACKET: Duration = Duration::from_millis(1);

    fn at(seconds: u64) -> Instant {
        Instant::from_secs(seconds)
    }

    /// Returns statistics with a baseline of 30 %.
    fn lossy() -> LossEstimator {
        let mut losses = LossEstimator::new(2.5, VERIFICATION);
        losses.update_verification(at(0), SRTT, PACKET);
        for _ in 0..4 {
            losses.record(70, 30, 0);
            losses.on_growth(BaselineUpdates::On);
        }
        losses
    }

    #[test]
    fn high_loss_is_attributed_to_the_path_on_probation_and_then_only_after_verification() {
        let mut losses = lossy();
        assert!((losses.baseline() - 0.3).abs() < 1e-9);
        losses.update_verification(at(3), SRTT, PACKET);
        assert!((losses.baseline() - 0.3).abs() < 1e-9, "64 round trips are 3.2 s");
        losses.update_verification(at(4), SRTT, PACKET);
        assert!((losses.baseline() - VERIFICATION.unverified_max).abs() < 1e-9);
        losses.record(70, 30, 0);
        losses.on_drain(0.7, QueueBeforeDrain::No);
        losses.update_verification(at(4), SRTT, PACKET);
        assert!((losses.baseline() - VERIFICATION.unverified_max).abs() < 1e-9, "nothing has drained");
        losses.record(70, 30, 0);
        losses.on_drain(0.7, QueueBeforeDrain::Yes);
        losses.update_verification(at(4), SRTT, PACKET);
        assert!(losses.baseline() > 0.25, "{}", losses.baseline());
        losses.update_verification(at(16), SRTT, PACKET);
        assert!(losses.baseline() > 0.25, "a proof holds for 15 s");
        losses.update_verification(at(20), SRTT, PACKET);
        assert!((losses.baseline() - VERIFICATION.unverified_max).abs() < 1e-9);
        losses.update_verification(at(29), SRTT, PACKET);
        assert!((losses.baseline() - VERIFICATION.unverified_max).abs() < 1e-9);
        losses.update_verification(at(30), SRTT, PACKET);
        assert!(losses.baseline() > 0.25, "from time to time a proof may be looked for");
    }

    #[test]
    fn a_test_detects_a_policer_and_continues_while_undecided() {
        // A fifth was too much, and a fifth less is sent.
        let mut policed = lossy();
        policed.record(100, 0, 0);
        assert_eq!(policed.test_result(0.2, 0.8), Some((Cause::Rate, 0.0)));
        let mut radio = lossy();
        radio.record(80, 20, 0);
        assert_eq!(radio.test_result(0.2, 0.8), Some((Cause::Path, 0.2)));
        // A thirtieth was lost: one of 60 says little.
        let mut open = lossy();
        open.record(59, 1, 0);
        assert_eq!(open.test_result(0.033, 0.8), None);
        open.record(250, 9, 0);
        assert!(matches!(open.test_result(0.033, 0.8), Some((Cause::Path, _))), "it comes to a verdict");
    }

    #[test]
    fn excess_losses_accumulate_over_round_trips_with_few_packets() {
        let mut losses = lossy();
        losses.record(4, 1, 0);
        assert_eq!(losses.queue_loss(), QueueLoss::Overflow, "nothing is known of the path's losses");
        losses.record_below_maximum(70, 30, 0);
        let mut cuts = |lost_of_ten: u64| {
            let of_a_hundred = (0..100).filter(|_| {
                losses.record(10 - lost_of_ten, lost_of_ten, 0);
                losses.queue_loss() == QueueLoss::Overflow
            });
            of_a_hundred.count()
        };
        assert_eq!((cuts(3), cuts(2)), (0, 0));
        assert!((15..30).contains(&cuts(4)), "each loss beyond them counts");
    }

    #[test]
    fn old_losses_below_the_queue_maximum_are_forgotten() {
        let mut losses = lossy();
        (0..10).for_each(|_| losses.record_below_maximum(70, 30, 0));
        assert!((losses.path_loss() - 0.3).abs() < 1e-9);
        (0..10).for_each(|_| losses.record_below_maximum(100, 0, 0));
        assert!(losses.path_loss() < 0.01);
        losses.record_below_maximum(10, 0, 300);
        assert_eq!(losses.path_loss(), 0.0, "late ones were not lost, however many");
    }
}
