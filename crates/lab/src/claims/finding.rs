//! Computation of a number with its interval from the runs of a claim's points.

use super::ablation::{FigureRuns, Switch};
use super::measure::{Measure, Quantity, SecondRatio};
use super::selector::{Aggregate, Selector, named_points};
use super::verdict::Scale;
use crate::comparison::{Comparison, Versus};
use crate::metrics::{Better, Level};
use crate::stats::{Confidence, Estimate, GainStatistic, Gains, Interval, RelativeDifference, SignTest};
use hopline_config::source::Problem;

/// Reason why there is no number.
pub(super) type Missing = &'static str;

/// Result at the points of a claim in one figure.
pub(super) struct ClaimResult<'a> {
    /// Measured place.
    pub(super) measured: PointMetric<'a>,
    /// Place that it is compared with.
    pub(super) against: Option<PointMetric<'a>>,
    /// The second ratio, for a ratio of ratios.
    pub(super) second: Option<[PointMetric<'a>; 2]>,
    /// Choice among several points and their number, if there are several.
    pub(super) aggregate: Option<(Aggregate, usize)>,
    /// Number that results.
    pub(super) finding: Result<Finding, Missing>,
}

impl<'a> ClaimResult<'a> {
    /// Evaluates `measure` by the runs of a figure, and by those of the figure that it is compared with,
    /// which may be the same.
    pub(super) fn of(
        measure: &'a Measure,
        runs: FigureRuns<'a>,
        against: FigureRuns<'a>,
        switch: Switch,
    ) -> Result<Self, Problem> {
        let level = measure.metric.level();
        let metric = |subject: &'a str| (level, subject, measure.metric.name);
        let better = measure.metric.better;
        let points = runs.with_switch(measure.point.find_all(named_points(runs.comparison))?, switch)?;
        let of_several = measure.point.aggregate.map(|of| (of, points.len())).filter(|(_, n)| *n > 1);
        let candidates =
            PointMetric::all(runs.comparison, points, &measure.point, metric(&measure.subject), better);
        let elsewhere =
            match measure.against.as_ref().and_then(|other| Some((other.point.as_ref()?, &other.subject))) {
                Some((selector, subject)) => {
                    let found = selector.find_all(named_points(against.comparison))?;
                    let points = against.with_switch(found, switch)?;
                    Some(
                        PointMetric::all(against.comparison, points, selector, metric(subject), better)
                            .swap_remove(0),
                    )
                }
                None => None,
            };
        let beside = |place: &PointMetric<'a>| match (&measure.against, &elsewhere) {
            (Some(other), None) => Some(place.with_metric(metric(&other.subject))),
            _ => elsewhere.clone(),
        };
        let second = measure.over.as_ref().map(|over| over.places(measure, runs, switch)).transpose()?;
        let finding = |place: &PointMetric<'a>, against: Option<&PointMetric<'a>>| match (&second, against) {
            (Some([over, over_against]), Some(against)) => {
                Finding::ratio_of_ratios([place, against, over, over_against])
            }
            _ => Finding::of(measure, place, against),
        };
        let mut found: Vec<_> = candidates
            .into_iter()
            .map(|place| (beside(&place), place))
            .map(|(against, place)| (finding(&place, against.as_ref()), place, against))
            .collect();
        // Findings without a number come first, and are chosen only if there are no other ones.
        found.sort_by(|(a, ..), (b, ..)| values_of(a).total_cmp(&values_of(b)));
        let without = found.iter().filter(|(finding, ..)| finding.is_err()).count();
        let rank = |count: usize| match measure.point.aggregate {
            Some(Aggregate::Max) => count - 1,
            Some(Aggregate::Median) => (count - 1) / 2,
            _ => 0,
        };
        let chosen = match found.len() - without {
            0 => 0,
            count => without + rank(count),
        };
        let (finding, place, against) = found.swap_remove(chosen);
        Ok(Self { measured: place, against, second, aggregate: of_several, finding })
    }
}

impl SecondRatio {
    /// Returns the places of the second ratio; of several points the best in the metric.
    fn places<'a>(
        &'a self,
        measure: &'a Measure,
        runs: FigureRuns<'a>,
        switch: Switch,
    ) -> Result<[PointMetric<'a>; 2], Problem> {
        let (level, name) = (measure.metric.level(), measure.metric.name);
        let place = |selector: &'a Selector| {
            let points = runs.with_switch(selector.find_all(named_points(runs.comparison))?, switch)?;
            let metric = (level, self.subject.as_str(), name);
            let better = measure.metric.better;
            Ok::<_, Problem>(
                PointMetric::all(runs.comparison, points, selector, metric, better).swap_remove(0),
            )
        };
        Ok([place(&self.point)?, place(&self.against)?])
    }
}

fn values_of(finding: &Result<Finding, Missing>) -> f64 {
    finding.as_ref().map_or(f64::NEG_INFINITY, Finding::value)
}

/// A metric of a point, or its average over several points, run by run.
#[derive(Clone)]
pub(super) struct PointMetric<'a> {
    comparison: &'a Comparison,
    points: Vec<usize>,
    metric: (Level, &'a str, &'a str),
}

impl<'a> PointMetric<'a> {
    /// Returns the places of a selector that picked `points`: one place, unless it is the least, the middle
    /// or the most of several.
    fn all(
        comparison: &'a Comparison,
        points: Vec<usize>,
        selector: &Selector,
        metric: (Level, &'a str, &'a str),
        better: Better,
    ) -> Vec<Self> {
        let place = |points: Vec<usize>| Self { comparison, points, metric };
        match selector.aggregate {
            None | Some(Aggregate::Best) => vec![place(vec![best(comparison, &points, metric, better)])],
            Some(Aggregate::Mean) => vec![place(points)],
            Some(Aggregate::Min | Aggregate::Median | Aggregate::Max) => {
                points.into_iter().map(|point| place(vec![point])).collect()
            }
        }
    }

    /// Returns the place with another metric at the same points.
    fn with_metric(&self, metric: (Level, &'a str, &'a str)) -> Self {
        Self { metric, ..self.clone() }
    }

    /// Returns its label.
    pub(super) fn label(&self) -> String {
        match self.points[..] {
            [point] => self.comparison.description.points[point].label.clone(),
            _ => format!("the mean of {} points", self.points.len()),
        }
    }

    /// Returns its label after `other` has been named.
    pub(super) fn described_after(&self, other: &PointMetric<'_>) -> String {
        let (flow, label) = (self.metric.1, self.label());
        if flow == other.metric.1 {
            label
        } else if self.points == other.points {
            flow.to_owned()
        } else {
            format!("{flow} of {label}")
        }
    }

    /// Returns one value for each run, NaN where there is none.
    fn values(&self) -> Vec<f64> {
        self.comparison.averaged(&self.points, self.metric).unwrap_or_default()
    }

    fn estimate(&self) -> Result<Estimate, Missing> {
        let values = finite(self.values());
        if values.is_empty() { Err("no run has the metric") } else { Ok(Estimate::of(&values)) }
    }

    fn pairs_with(&self, other: &PointMetric<'_>) -> bool {
        std::ptr::eq(self.comparison, other.comparison)
    }

    fn versus(&self, other: &PointMetric<'_>) -> Result<Versus, Missing> {
        Versus::of(&self.values(), &other.values()).ok_or("no pair of runs has the metric")
    }

    /// Returns the difference to `other` in percent of that; over pairs of runs, if both are of one figure.
    fn percent_above(&self, other: &PointMetric<'_>) -> Result<RelativeDifference, Missing> {
        const ZERO: Missing = "what it is compared with is zero";
        if self.pairs_with(other) {
            return self.versus(other)?.percent.ok_or(ZERO);
        }
        other.estimate()?;
        self.estimate()?;
        RelativeDifference::of_independent(&finite(self.values()), &finite(other.values())).ok_or(ZERO)
    }

    /// Returns the difference to `other` in per cent of its mean, which counts as exact. If the metric is zero in
    /// every run, the ratio has neither a logarithm nor an error: only the spread of the differences shows how
    /// rare the event may be.
    fn differences_in_percent(&self, other: &PointMetric<'_>) -> Result<Estimate, Missing> {
        let (difference, mean) = if self.pairs_with(other) {
            let versus = self.versus(other)?;
            (versus.difference, versus.baseline_mean)
        } else {
            let (ours, theirs) = (finite(self.values()), finite(other.values()));
            (Estimate::of_independent(&ours, &theirs), other.estimate()?.mean)
        };
        Ok(difference.scaled(100.0 / mean))
    }

    /// Returns the logarithm of the ratio to `other`; `None` if one of them is zero in every run.
    fn log_ratio_to(&self, other: &PointMetric<'_>) -> Option<Estimate> {
        if self.pairs_with(other) {
            return self.versus(other).ok()?.pairs.log_ratio();
        }
        Estimate::of_independent_log_ratio(&finite(self.values()), &finite(other.values()))
    }
}

/// A number, and the data of its interval.
#[derive(Clone)]
pub(super) enum Finding {
    /// A mean.
    Estimate(Estimate),
    /// A gain in per cent.
    Gain(RelativeDifference),
    /// A gain in percent, as the logarithm of its ratio, or of its ratio of ratios.
    LogRatio(Estimate),
    /// A statistic of gains, which exists.
    Gains(Gains, GainStatistic),
    /// A statistic of gains over that of gains in another figure; both exist.
    Ratio(Gains, Gains, GainStatistic),
}

impl Finding {
    fn of(
        measure: &Measure,
        place: &PointMetric<'_>,
        against: Option<&PointMetric<'_>>,
    ) -> Result<Self, Missing> {
        let Some(against) = against else { return place.estimate().map(Self::Estimate) };
        let (Quantity::StatisticOfGains(statistic) | Quantity::RatioToFigure(statistic, _)) =
            &measure.quantity
        else {
            let percent = place.percent_above(against)?;
            return Ok(match measure.scale {
                Scale::Linear => Self::Gain(percent),
                Scale::LogRatio => match place.log_ratio_to(against) {
                    Some(log_ratio) => Self::LogRatio(log_ratio),
                    None => Self::Estimate(place.differences_in_percent(against)?),
                },
            });
        };
        let gains = place.versus(against)?.pairs.gains();
        match gains.value(*statistic) {
            Some(_) => Ok(Self::Gains(gains, *statistic)),
            None if gains.pct.is_empty() => Err("what it is compared with is zero in every run"),
            None if gains.pct.len() < 2 => Err("a single run has no spread"),
            None => Err("the mean gain is not above zero"),
        }
    }

    /// Returns the logarithm of the ratio of the first two places over the ratio of the last two, of the runs
    /// that have all four.
    fn ratio_of_ratios(places: [&PointMetric<'_>; 4]) -> Result<Self, Missing> {
        let values = places.map(PointMetric::values);
        let runs = values.iter().map(Vec::len).min().unwrap_or(0);
        let all_four = |run: &usize| values.iter().all(|of_place| of_place[*run].is_finite());
        let kept: Vec<usize> = (0..runs).filter(all_four).collect();
        if kept.is_empty() {
            return Err("no run has the metric at all four points");
        }
        let of_kept = values.map(|of_place| kept.iter().map(|&run| of_place[run]).collect::<Vec<f64>>());
        match Estimate::of_log_ratio_of_ratios(of_kept.each_ref().map(Vec::as_slice)) {
            Some(estimate) => Ok(Self::LogRatio(estimate)),
            None => Err("one of the four means is zero"),
        }
    }

    /// Returns the ratio to `other`, both statistics of gains.
    pub(super) fn over(self, other: Self) -> Result<Self, Missing> {
        let (Self::Gains(ours, statistic), Self::Gains(others, _)) = (self, other) else {
            unreachable!("only statistics of gains are taken over a figure")
        };
        match ours.ratio(&others, statistic) {
            Some(_) => Ok(Self::Ratio(ours, others, statistic)),
            None => Err("what it is taken over is zero"),
        }
    }

    /// Returns the number.
    pub(super) fn value(&self) -> f64 {
        match self {
            Self::Estimate(estimate) => estimate.mean,
            Self::Gain(gain) => gain.mean,
            Self::LogRatio(estimate) => percent(estimate.mean),
            Self::Gains(gains, statistic) => gains.value(*statistic).unwrap_or(f64::NAN),
            Self::Ratio(ours, others, statistic) => ours.ratio(others, *statistic).unwrap_or(f64::NAN),
        }
    }

    /// Returns the number of runs.
    pub(super) fn n(&self) -> usize {
        match self {
            Self::Estimate(estimate) | Self::LogRatio(estimate) => estimate.n,
            Self::Gain(gain) => gain.n,
            Self::Gains(gains, statistic) | Self::Ratio(gains, _, statistic) => gains.counted(*statistic),
        }
    }

    /// Returns the number of runs left out because their baseline is zero, so that there is no gain.
    pub(super) fn excluded(&self) -> usize {
        match self {
            Self::Estimate(_) | Self::Gain(_) | Self::LogRatio(_) => 0,
            Self::Gains(gains, statistic) => gains.excluded(*statistic),
            Self::Ratio(ours, others, statistic) => ours.excluded(*statistic) + others.excluded(*statistic),
        }
    }

    /// Returns the sign test of a share.
    pub(super) fn sign_test(&self) -> Option<SignTest> {
        match self {
            Self::Gains(gains, GainStatistic::PositiveShare) => Some(gains.sign_test()),
            _ => None,
        }
    }

    pub(super) fn interval(&self, seed: u64, confidence: Confidence) -> Option<Interval> {
        match self {
            Self::Estimate(estimate) => estimate.interval(confidence),
            Self::Gain(gain) => gain.interval(confidence),
            Self::LogRatio(estimate) => {
                let Interval { low, high } = estimate.interval(confidence)?;
                Some(Interval { low: percent(low), high: percent(high) })
            }
            Self::Gains(gains, statistic) => gains.interval(*statistic, seed, confidence),
            Self::Ratio(ours, others, statistic) => {
                ours.interval_of_ratio(others, *statistic, seed, confidence)
            }
        }
    }
}

/// Converts the logarithm of a ratio into a gain in percent.
fn percent(log_ratio: f64) -> f64 {
    libm::expm1(log_ratio) * 100.0
}

/// Returns the best of `points` by the mean of a metric; the first of equals, and of points that all lack it.
fn best(comparison: &Comparison, points: &[usize], metric: (Level, &str, &str), better: Better) -> usize {
    let mean = |point: usize| {
        let values = finite(comparison.averaged(&[point], metric).unwrap_or_default());
        (!values.is_empty()).then(|| Estimate::of(&values).mean)
    };
    let beats = |a: Option<f64>, b: Option<f64>| match (a, b, better) {
        (Some(_), None, _) => true,
        (Some(a), Some(b), Better::Lower) => a < b,
        (Some(a), Some(b), _) => a > b,
        (None, ..) => false,
    };
    let of_two = |best: usize, next: usize| if beats(mean(next), mean(best)) { next } else { best };
    points.iter().copied().reduce(of_two).expect("a selector picks a point")
}

/// Returns the finite values.
fn finite(values: Vec<f64>) -> Vec<f64> {
    values.into_iter().filter(|x| x.is_finite()).collect()
}
