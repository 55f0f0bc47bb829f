//! Verdicts: comparison of the runs of a network with its criteria.

use super::criterion::{Criterion, Limit, Reference};
use super::network::Network;
use crate::comparison::Comparison;
use crate::metrics::Better;
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

/// Results of a network.
#[derive(Clone, Debug, PartialEq)]
pub struct NetworkResult {
    /// Results by criterion.
    pub criteria: Vec<CriterionResult>,
    /// Verdict on each algorithm: the worst of all criteria.
    pub verdicts: Vec<Verdict>,
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
    /// Limit in each run; NaN where a reference has no value.
    pub limits: Vec<f64>,
}

impl LawResult {
    /// Returns the mean of the runs; `None` if one has no value.
    #[must_use]
    pub fn mean(&self) -> Option<f64> {
        let mean = self.runs.iter().sum::<f64>() / self.runs.len() as f64;
        mean.is_finite().then_some(mean)
    }

    fn of(criterion: &Criterion, runs: Vec<f64>, limits: Vec<f64>) -> Self {
        let is_complete = runs.iter().chain(&limits).all(|value| value.is_finite()) && !runs.is_empty();
        let kept = runs.iter().zip(&limits).filter(|(run, limit)| criterion.side.allows(**run, **limit));
        let verdict = match kept.count() {
            _ if !is_complete => Verdict::NoValue,
            0 => Verdict::Misses,
            n if n == runs.len() => Verdict::Meets,
            _ => Verdict::Varies,
        };
        Self { verdict, runs, limits }
    }
}

/// Judges the runs of a network; `made` is the comparison of its plan.
pub(super) fn judge(network: &Network, made: &Comparison, references: usize) -> NetworkResult {
    let criteria: Vec<CriterionResult> =
        network.criteria.iter().map(|criterion| judge_one(criterion, made, references)).collect();
    let worst = |law: usize| criteria.iter().map(|c| c.laws[law].verdict).max();
    let verdicts = (0..made.points.len()).map(|law| worst(law).unwrap_or(Verdict::NoValue)).collect();
    NetworkResult { criteria, verdicts }
}

fn judge_one(criterion: &Criterion, made: &Comparison, references: usize) -> CriterionResult {
    let runs = made.runs as usize;
    let values = |point: usize| {
        let mut all = made.points[point].all(criterion.metric.key()).unwrap_or_default().to_vec();
        all.resize(runs, f64::NAN);
        all
    };
    let limits = match &criterion.limit {
        Limit::Value(limit) => vec![*limit; runs],
        Limit::Share { factor, of } => {
            let reference = match of {
                Reference::Law(index) => *index,
                Reference::Best => best(criterion, made, references),
            };
            values(reference).into_iter().map(|value| value * factor).collect()
        }
    };
    let law = |point: usize| LawResult::of(criterion, values(point), limits.clone());
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
