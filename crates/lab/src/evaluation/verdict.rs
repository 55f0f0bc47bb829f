//! Verdicts: comparison of the runs of a network with its criteria.

use super::criterion::{Criterion, Limit, Reference};
use super::network::Network;
use crate::comparison::Comparison;
use crate::metrics::Better;
use crate::objective::Side;
use serde::Serialize;

/// Verdict on an algorithm by a criterion, or by all criteria of a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Every run meets it.
    Meets,
    /// Some runs meet it.
    Varies,
    /// No run meets it.
    Misses,
    /// A run failed or lacks the metric.
    NoValue,
}

impl Verdict {
    /// All of them, best first.
    pub const ALL: [Self; 4] = [Self::Meets, Self::Varies, Self::Misses, Self::NoValue];

    /// Returns it in words.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Meets => "meets",
            Self::Varies => "varies",
            Self::Misses => "misses",
            Self::NoValue => "no value",
        }
    }

    /// Returns it as a character.
    #[must_use]
    pub const fn symbol(self) -> &'static str {
        match self {
            Self::Meets => "✓",
            Self::Varies => "~",
            Self::Misses => "✗",
            Self::NoValue => "?",
        }
    }
}

/// Share of a limit by which it is tightened and loosened to find verdicts that are close.
pub const CLOSE: f64 = 0.05;

/// Results of a network.
#[derive(Clone, Debug, PartialEq)]
pub struct NetworkResult {
    /// Results by criterion.
    pub criteria: Vec<CriterionResult>,
    /// Verdict on each algorithm: the worst of all criteria.
    pub verdicts: Vec<Verdict>,
    /// Failed runs of each algorithm, with the reasons.
    pub failed: Vec<Vec<(u64, String)>>,
}

impl NetworkResult {
    /// Returns whether the verdict on the algorithm at index `law` is another one with limits that are all stricter by
    /// [`CLOSE`], or all looser.
    #[must_use]
    pub fn is_close(&self, law: usize) -> bool {
        let verdict = |share| self.criteria.iter().map(|c| c.laws[law].verdict_if(share)).max();
        let as_it_is = verdict(0.0);
        verdict(CLOSE) != as_it_is || verdict(-CLOSE) != as_it_is
    }
}

/// Results of a criterion.
#[derive(Clone, Debug, PartialEq)]
pub struct CriterionResult {
    /// Results by algorithm.
    pub laws: Vec<LawResult>,
}

/// Result of an algorithm by one criterion.
#[derive(Clone, Debug, PartialEq)]
pub struct LawResult {
    /// Verdict.
    pub verdict: Verdict,
    /// Value of each run, in the unit of the catalogue of metrics; NaN where there is none.
    pub runs: Vec<f64>,
    /// Limit in each run; NaN where a reference has no value, or 0 is the least that is required.
    pub limits: Vec<f64>,
    /// Allowed side of the limit.
    pub side: Side,
    /// `true` if the limits are a share of these very values, so that the verdict says nothing about the algorithm.
    pub is_reference: bool,
}

impl LawResult {
    /// Returns the mean of the runs; `None` if one has no value.
    #[must_use]
    pub fn mean(&self) -> Option<f64> {
        let mean = self.runs.iter().sum::<f64>() / self.runs.len() as f64;
        mean.is_finite().then_some(mean)
    }

    /// Returns the verdict with limits that are stricter by this share of them; negative: looser. Limits of a reference's
    /// own values do not change.
    #[must_use]
    pub fn verdict_if(&self, stricter: f64) -> Verdict {
        let towards = match self.side {
            Side::AtLeast | Side::Above => 1.0,
            Side::AtMost | Side::Below => -1.0,
        };
        let stricter = if self.is_reference { 0.0 } else { stricter };
        let limit = |limit: f64| limit + towards * stricter * limit.abs();
        let is_complete =
            self.runs.iter().chain(&self.limits).all(|value| value.is_finite()) && !self.runs.is_empty();
        let kept = self.runs.iter().zip(&self.limits).filter(|(run, l)| self.side.allows(**run, limit(**l)));
        match kept.count() {
            _ if !is_complete => Verdict::NoValue,
            0 => Verdict::Misses,
            n if n == self.runs.len() => Verdict::Meets,
            _ => Verdict::Varies,
        }
    }

    /// Returns whether the verdict is another one with a limit that is stricter or looser by [`CLOSE`].
    #[must_use]
    pub fn is_close(&self) -> bool {
        self.verdict_if(CLOSE) != self.verdict || self.verdict_if(-CLOSE) != self.verdict
    }

    /// Returns the distance of the runs from their limits, as a share of the limit: of the run that is nearest to another
    /// verdict, positive if it meets the requirement. `None` if the runs vary or lack a value, if the limit is 0, and for
    /// the values that the limit is a share of.
    #[must_use]
    pub fn margin(&self) -> Option<f64> {
        let towards = match self.side {
            Side::AtLeast | Side::Above => 1.0,
            Side::AtMost | Side::Below => -1.0,
        };
        let margins = self.runs.iter().zip(&self.limits).map(|(run, l)| towards * (run - l) / l.abs());
        let nearest = match self.verdict {
            _ if self.is_reference => None,
            Verdict::Meets => margins.reduce(f64::min),
            Verdict::Misses => margins.reduce(f64::max),
            Verdict::Varies | Verdict::NoValue => None,
        };
        nearest.filter(|margin| margin.is_finite())
    }
}

/// Judges the runs of a network; `made` is the comparison of its plan.
pub(super) fn judge(network: &Network, made: &Comparison, references: usize) -> NetworkResult {
    let criteria: Vec<CriterionResult> =
        network.criteria.iter().map(|criterion| judge_one(criterion, made, references)).collect();
    let worst = |law: usize| criteria.iter().map(|c| c.laws[law].verdict).max();
    let verdicts = (0..made.points.len()).map(|law| worst(law).unwrap_or(Verdict::NoValue)).collect();
    let failed = made.points.iter().map(|point| point.failed.clone()).collect();
    NetworkResult { criteria, verdicts, failed }
}

fn judge_one(criterion: &Criterion, made: &Comparison, references: usize) -> CriterionResult {
    let runs = made.runs as usize;
    let values = |point: usize| {
        let mut all = made.points[point].all(criterion.metric.key()).unwrap_or_default().to_vec();
        all.resize(runs, f64::NAN);
        all
    };
    let (limits, reference) = match &criterion.limit {
        Limit::Value(limit) => (vec![*limit; runs], None),
        Limit::Share { factor, of } => {
            let reference = match of {
                Reference::Law(index) => *index,
                Reference::Best => best(criterion, made, references),
            };
            // At least a share of nothing is no requirement.
            let is_one = |limit: &f64| criterion.side == Side::AtMost || *limit != 0.0;
            let share = |value: f64| Some(value * factor).filter(is_one).unwrap_or(f64::NAN);
            (values(reference).into_iter().map(share).collect(), Some(reference))
        }
    };
    let law = |point: usize| {
        let mut result = LawResult {
            verdict: Verdict::NoValue,
            runs: values(point),
            limits: limits.clone(),
            side: criterion.side,
            is_reference: reference == Some(point),
        };
        result.verdict = result.verdict_if(0.0);
        result
    };
    CriterionResult { laws: (0..made.points.len()).map(law).collect() }
}

/// Returns the reference with the best mean; the first if none has a value.
fn best(criterion: &Criterion, made: &Comparison, references: usize) -> usize {
    let mean = |point: usize| made.points[point].estimate(criterion.metric.key()).map(|e| e.mean);
    let is_better = |one: f64, other: f64| match criterion.metric.metric.better {
        Better::Lower => one < other,
        Better::Higher | Better::Neither => one > other,
    };
    let mut best = 0;
    for point in 1..references {
        if let Some(new) = mean(point)
            && mean(best).is_none_or(|old| is_better(new, old))
        {
            best = point;
        }
    }
    best
}

/// Number of networks by verdict.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VerdictCount([usize; Verdict::ALL.len()]);

impl VerdictCount {
    /// Returns the number of networks with `verdict`.
    #[must_use]
    pub const fn of(self, verdict: Verdict) -> usize {
        self.0[verdict as usize]
    }
}

/// Counts the verdicts on the algorithm at index `law`.
#[must_use]
pub fn count(results: &[NetworkResult], law: usize) -> VerdictCount {
    let mut count = VerdictCount::default();
    for result in results {
        count.0[result.verdicts[law] as usize] += 1;
    }
    count
}
