//! Baseline loss rate of the path, and detection of losses above it.
//!
//! A radio loses a share of the packets at any rate; a queue or a policer drops the excess. Losses therefore indicate
//! congestion only above the baseline. The baseline is learnt while the rate grows without a larger share of losses, and
//! by a test: a loss rate that stays when the sending rate is reduced is not caused by the rate. Among many flows that
//! test shows nothing. So the baseline is limited by what was lost while the queue was short, and by a small loss rate without such an
//! observation: a full queue never is short, so that flows which fill it together cannot take its losses for the path's.

use super::competitive::QueueLoss;
use super::queue_maximum::QueueLevel;

/// Least number of packets of which a loss rate is known. Own choice: with 48 for verdicts and 16 for comparisons at the start, the
/// mean performance on 200 random networks was 0.2 % higher.
const MIN_PACKETS: f64 = 24.0;
/// Number of packets over which loss rates are smoothed, and in which an observation of the path fades to a third. Own choice: with 400
/// for what was observed while the queue was short, and 2000 for its lifetime, the mean performance on 200 random networks was 0.2 %
/// higher.
const MEMORY: f64 = 500.0;
/// Largest loss rate that is attributed to a path; more is attributed to the rate. The protocol is for paths that lose up
/// to 30 %, with a margin for the error of the estimate. Own choice, not swept.
pub(super) const MAX_PATH_LOSS: f64 = 0.4;
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
    /// Largest loss rate that is attributed to the path without an observation.
    max_unobserved: f64,
    /// Baseline loss rate.
    baseline: f64,
    /// Variance of the losses relative to independent ones, for which it is 1.
    dispersion: f64,
    level: QueueLevel,
    /// Packets settled, and packets lost.
    settled: f64,
    lost: f64,
    /// The same counts while the rate grew.
    growth_counts: [f64; 2],
    /// The same counts while the queue was short.
    short_counts: [f64; 2],
    /// Losses above those of the path in competitive mode, packets.
    excess: f64,
}

impl LossEstimator {
    pub(super) const fn new(threshold: f64, max_unobserved: f64) -> Self {
        Self {
            threshold,
            max_unobserved,
            baseline: 0.0,
            dispersion: INITIAL_DISPERSION,
            level: QueueLevel::Invisible,
            settled: 0.0,
            lost: 0.0,
            growth_counts: [0.0; 2],
            short_counts: [0.0; 2],
            excess: 0.0,
        }
    }

    /// Returns the baseline loss rate.
    pub(super) fn baseline(&self) -> f64 {
        self.baseline.min(self.largest_path_loss())
    }

    /// Returns whether the losses of the path have been observed apart from those of a queue.
    pub(super) fn is_path_observed(&self) -> bool {
        self.level != QueueLevel::Invisible && self.short_counts[0] >= MIN_PACKETS
    }

    /// Returns whether more packets were lost than the baseline explains, one aside.
    pub(super) fn is_above_baseline(&self) -> bool {
        self.lost > self.baseline() * self.settled + 1.0
    }

    /// Sets the level of the queue, to which packets are counted from now on.
    pub(super) const fn set_level(&mut self, level: QueueLevel) {
        self.level = level;
    }

    /// Counts packets that arrived or were lost. `late`: packets among the arrived ones that were declared lost before.
    pub(super) fn record(&mut self, delivered: u64, lost: u64, late: u64) {
        let counts = [(delivered + lost) as f64 - late as f64, lost as f64 - late as f64];
        [self.settled, self.lost] = add([self.settled, self.lost], counts);
        let kept = (1.0 - counts[0].max(0.0) / MEMORY).max(0.0);
        self.short_counts = self.short_counts.map(|count| count * kept);
        if self.level == QueueLevel::Short {
            self.short_counts = add(self.short_counts, counts);
            if self.short_counts[0] > MEMORY {
                self.short_counts = self.short_counts.map(|count| count / 2.0);
            }
        }
    }

    /// Returns the largest loss rate that is attributed to the path: a standard deviation above the observed one.
    fn largest_path_loss(&self) -> f64 {
        let [n, lost] = self.short_counts;
        if n < MIN_PACKETS {
            return self.max_unobserved;
        }
        let deviation = (self.dispersion * lost.max(1.0)).sqrt();
        ((lost + deviation) / n).clamp(self.max_unobserved, MAX_PATH_LOSS.max(self.max_unobserved))
    }

    /// Returns the loss rate of the path independent of the queue; zero while unknown.
    fn path_loss(&self) -> f64 {
        let [n, lost] = self.short_counts;
        if n < MIN_PACKETS { 0.0 } else { self.baseline().min(lost / n) }
    }

    /// Gives a verdict after a round trip with a higher rate than those before.
    pub(super) fn on_growth(&mut self, learning: BaselineUpdates) -> Verdict {
        if self.settled < MIN_PACKETS {
            return Verdict::Undecided;
        }
        let (n, lost) = (self.settled, self.lost);
        let [before, lost_before] = self.growth_counts;
        let share = lost / n;
        if before >= MIN_PACKETS {
            let base = lost_before / before;
            // None lost of few does not mean that none are.
            let likely = (lost_before + 1.0) / (before + 2.0);
            let deviation = (self.dispersion * likely * (1.0 - likely) * (1.0 / n + 1.0 / before)).sqrt();
            if share > base + self.threshold * deviation {
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
        let (n, lost) = (self.settled, self.lost);
        let expected = self.baseline() * n;
        let (share, beyond) = (lost / n.max(1.0), lost - expected);
        // Few packets suffice if most of them are lost: a flow of two packets per round trip must not wait for more.
        if beyond > 1.0 + self.threshold * (self.dispersion * expected.max(0.5)).sqrt() {
            self.reset_counts();
            return Verdict::Excess(share);
        }
        if n < MIN_PACKETS {
            return Verdict::Undecided;
        }
        self.reset_counts();
        if learning == BaselineUpdates::On {
            let weight = n / (n + MEMORY);
            if expected > 1.0 {
                self.dispersion += weight * ((beyond * beyond / expected).max(1.0) - self.dispersion);
            }
            self.update_baseline(share, n);
        }
        Verdict::Baseline(share)
    }

    /// Returns whether the queue lost packets, after a round trip in competitive mode. A round trip has few packets, so
    /// losses above those of the path are added up.
    pub(super) fn queue_loss(&mut self) -> QueueLoss {
        let path = self.path_loss();
        self.excess = (self.excess + self.lost - path * self.settled).max(0.0);
        self.reset_counts();
        // A part of a packet is no loss.
        if self.excess <= 0.5 {
            return QueueLoss::None;
        }
        self.excess = 0.0;
        QueueLoss::Overflow
    }

    /// Discards what was observed while the queue was short.
    pub(super) const fn forget_path(&mut self) {
        self.short_counts = [0.0; 2];
    }

    /// Sets the baseline to a loss rate that is attributed to the path.
    pub(super) fn attribute_to_path(&mut self, share: f64) {
        self.baseline = share.min(MAX_PATH_LOSS);
    }

    fn update_baseline(&mut self, share: f64, n: f64) {
        self.baseline = (self.baseline + n / (n + MEMORY) * (share - self.baseline)).min(MAX_PATH_LOSS);
    }

    /// Tests the cause of losses after the rate was reduced by `factor`, with a loss rate of `before` before that: the rate, if the loss
    /// rate is nearer to what is then expected than to `before`. Returns the cause and the loss rate now; `None`: undecided.
    pub(super) fn test_result(&mut self, before: f64, factor: f64) -> Option<(Cause, f64)> {
        let [n, lost] = [self.settled, self.lost];
        if n < MIN_PACKETS {
            return None;
        }
        // If what goes through stays the same.
        let if_rate = (1.0 - (1.0 - before) / factor).max(0.0);
        let share = lost / n;
        let cause = if share < (before + if_rate) / 2.0 { Cause::Rate } else { Cause::Path };
        self.baseline =
            if cause == Cause::Path { share.min(MAX_PATH_LOSS) } else { share.min(self.baseline) };
        self.reset_counts();
        Some((cause, share))
    }

    /// Discards the counts, since packets in flight belong to another rate.
    pub(super) fn reset_counts(&mut self) {
        (self.settled, self.lost) = (0.0, 0.0);
    }
}

/// Adds counts, which do not become negative.
fn add([settled, lost]: [f64; 2], counts: [f64; 2]) -> [f64; 2] {
    [(settled + counts[0]).max(0.0), (lost + counts[1]).max(0.0)]
}

/// Permission to update the baseline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BaselineUpdates {
    On,
    Off,
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

    const MAX_UNOBSERVED: f64 = super::super::super::config::Config::DEFAULT.control.max_unobserved_loss;

    /// Returns statistics with a baseline of 30 %, observed while the queue was short.
    fn lossy() -> LossEstimator {
        let mut losses = LossEstimator::new(2.5, MAX_UNOBSERVED);
        losses.set_level(QueueLevel::Short);
        for _ in 0..4 {
            losses.record(70, 30, 0);
            losses.on_growth(BaselineUpdates::On);
        }
        losses
    }

    /// Counts losses of 30 % at this level.
    fn lose(losses: &mut LossEstimator, level: QueueLevel) {
        losses.set_level(level);
        for _ in 0..20 {
            losses.record(70, 30, 0);
            losses.on_growth(BaselineUpdates::On);
        }
    }

    #[test]
    fn high_loss_is_attributed_to_the_path_only_if_it_occurs_while_the_queue_is_short() {
        for (level, least, most) in [
            (QueueLevel::Short, 0.29, 0.31),
            (QueueLevel::MaybeFull, MAX_UNOBSERVED, MAX_UNOBSERVED),
            (QueueLevel::Invisible, MAX_UNOBSERVED, MAX_UNOBSERVED),
        ] {
            let mut losses = LossEstimator::new(2.5, MAX_UNOBSERVED);
            lose(&mut losses, level);
            assert!((least..=most).contains(&losses.baseline()), "{level:?}: {}", losses.baseline());
            assert_eq!(losses.is_path_observed(), level == QueueLevel::Short, "{level:?}");
        }
    }

    #[test]
    fn what_a_full_queue_loses_in_addition_is_excess() {
        let mut losses = LossEstimator::new(2.5, MAX_UNOBSERVED);
        losses.set_level(QueueLevel::Short);
        losses.record(190, 10, 0);
        losses.reset_counts();
        lose(&mut losses, QueueLevel::MaybeFull);
        assert!(losses.baseline() < 0.15, "a twentieth was observed: {}", losses.baseline());
        losses.record(70, 30, 0);
        assert!(matches!(losses.on_round(BaselineUpdates::On), Verdict::Excess(_)));
    }

    #[test]
    fn an_observation_fades_if_the_queue_is_never_short_again() {
        let mut losses = lossy();
        losses.set_level(QueueLevel::MaybeFull);
        losses.record(250, 0, 0);
        assert!(losses.is_path_observed());
        (0..50).for_each(|_| losses.record(100, 0, 0));
        assert!(!losses.is_path_observed());
        assert!((losses.baseline() - MAX_UNOBSERVED).abs() < 1e-9);
    }

    #[test]
    fn few_packets_suffice_for_excess_if_most_are_lost() {
        let mut losses = LossEstimator::new(2.5, MAX_UNOBSERVED);
        losses.record(3, 4, 0);
        assert_eq!(losses.on_round(BaselineUpdates::On), Verdict::Undecided, "a burst");
        losses.record(1, 2, 0);
        assert_eq!(losses.on_round(BaselineUpdates::On), Verdict::Excess(0.6));
    }

    #[test]
    fn a_test_detects_a_policer_by_the_nearer_of_two_loss_rates() {
        // A fifth was too much, and a fifth less is sent.
        let mut policed = lossy();
        policed.record(100, 0, 0);
        assert_eq!(policed.test_result(0.2, 0.8), Some((Cause::Rate, 0.0)));
        let mut radio = lossy();
        radio.record(80, 20, 0);
        assert_eq!(radio.test_result(0.2, 0.8), Some((Cause::Path, 0.2)));
        // A twelfth was lost: with a fifth less, none are expected to be.
        let mut open = lossy();
        open.record(23, 0, 0);
        assert_eq!(open.test_result(0.083, 0.8), None, "too few");
        open.record(73, 4, 0);
        assert_eq!(open.test_result(0.083, 0.8), Some((Cause::Rate, 0.04)));
        open.record(95, 5, 0);
        assert_eq!(open.test_result(0.083, 0.8), Some((Cause::Path, 0.05)));
    }

    #[test]
    fn excess_losses_accumulate_over_round_trips_with_few_packets() {
        let mut losses = lossy();
        losses.set_level(QueueLevel::MaybeFull);
        let mut cuts = |lost_of_ten: u64| {
            let of_twenty = (0..20).filter(|_| {
                losses.record(10 - lost_of_ten, lost_of_ten, 0);
                losses.queue_loss() == QueueLoss::Overflow
            });
            of_twenty.count()
        };
        assert_eq!((cuts(3), cuts(2), cuts(4)), (0, 0, 20), "each loss above three of ten counts");
        losses.record(99, 31, 0);
        assert_eq!(losses.queue_loss(), QueueLoss::None, "less than expected of the path");
    }

    #[test]
    fn old_losses_of_a_short_queue_are_forgotten() {
        let mut losses = lossy();
        assert!((losses.path_loss() - 0.3).abs() < 1e-9);
        (0..20).for_each(|_| losses.record(100, 0, 0));
        assert!(losses.path_loss() < 0.01);
        losses.record(10, 0, 300);
        assert_eq!(losses.path_loss(), 0.0, "late ones were not lost, however many");
    }
}
