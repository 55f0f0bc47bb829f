//! What an experiment runs: points, each a scenario with settings put over it, and how often to run each.
//!
//! Every point meets the same runs: run 3 of each has the same placement, movement and random streams, so that
//! differences between points are differences within pairs.

mod file;
pub mod keys;
mod over;
#[cfg(test)]
mod tests;

pub use file::Effort;
pub use over::refuse_varied;
pub(crate) use over::{Over, Setter, refuse_overridden};

use crate::question::{Asked, Question};
use crate::record::FlowEnds;
use crate::stats::{CONFIDENCE, Confidence, Precision};
use hopline_config::document::Setting;
use hopline_config::source::{Problem, Problems};
use hopline_scenario::{Axis, Scenario};
use serde::{Deserialize, Serialize};
use serde_json::{Value as Json, json};
use sha2::{Digest, Sha256};
use std::collections::BTreeSet;

/// Points and how often to run each.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Name of the experiment.
    pub name: String,
    /// The question in words, if the plan has one.
    pub title: Option<String>,
    /// The points, at least one.
    pub points: Vec<Point>,
    /// How often to run each.
    pub runs: Runs,
    /// The flows of run 1 of all points, those of the first before others; of one name, kind and class once.
    pub flows: Vec<FlowEnds>,
    /// What is asked.
    pub question: Question,
    /// The same as it is written.
    pub written: hopline_scenario::Question,
    /// Confidence of every interval.
    pub confidence: Confidence,
    /// What is kept of a run beside the metrics of the run and of its flows.
    pub keep: Keep,
}

/// A scenario with settings put over it.
#[derive(Clone, Debug)]
pub struct Point {
    /// What distinguishes it: the name of its variant, for what that sets, and what is varied beside it, as in
    /// `SACK tcp.window=2`; the name of the scenario if nothing does.
    pub label: String,
    /// The variant of the plan that it belongs to, if the plan names any.
    pub variant: Option<String>,
    /// The settings that distinguish it.
    pub settings: Vec<Setting>,
    /// The scenario with the settings put over it.
    pub scenario: Scenario,
    /// The point that its gains are taken against; its own number if it is a baseline.
    pub baseline: usize,
}

/// How often each point is run. Runs are numbered from 1.
#[derive(Clone, Debug, PartialEq)]
pub enum Runs {
    /// So often.
    Fixed(u64),
    /// Until every point is precise enough.
    Until {
        /// Half the width of the interval that is aimed at, relative to the mean.
        precision: Precision,
        /// What is to be precise.
        target: Asked,
        /// Runs to begin with.
        first: u64,
        /// Most runs.
        most: u64,
    },
}

/// What is kept of a run beside the metrics of the run and of its flows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Keep {
    /// Per-second series.
    pub series: KeepSeries,
    /// Metrics of nodes.
    pub nodes: KeepNodes,
    /// Metrics of pairs of flows.
    pub pairs: KeepPairs,
}

/// Of which runs the per-second series are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum KeepSeries {
    /// Of run 1 of each point.
    FirstRun,
    /// Of all runs.
    All,
    /// Of none.
    None,
}

/// Whether the metrics of each node are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum KeepNodes {
    /// They are.
    Keep,
    /// They are not.
    Drop,
}

/// Whether the metrics of every two flows are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum KeepPairs {
    /// They are.
    Keep,
    /// They are not.
    Drop,
}

/// What tells one point from another: a name, if it has one, and settings.
#[derive(Clone, Debug, Default)]
struct Difference {
    variant: Option<String>,
    /// What the name of the variant stands for.
    named: Vec<Setting>,
    varied: Vec<Setting>,
}

/// Most points of one experiment.
pub const MOST_POINTS: usize = 10_000;

impl Plan {
    /// The product of `axes` over `scenario`, run as often as the scenario says: the last axis varies fastest. Without
    /// axes the scenario stands alone. The first point is the baseline of all others.
    ///
    /// # Errors
    ///
    /// Everything that is wrong with any of the points.
    pub fn new(scenario: &Scenario, axes: &[Axis]) -> Result<Self, Problems> {
        let points = product(&[Difference::default()], &steps(axes)?)?;
        let points = resolve(scenario, &points, |_| 0)?;
        let new = Self {
            name: scenario.name(),
            title: None,
            flows: flows(&points)?,
            points,
            runs: Runs::Fixed(scenario.runs()),
            written: scenario.question(),
            question: Question::usual(&[]),
            confidence: CONFIDENCE,
            keep: Keep { series: KeepSeries::FirstRun, nodes: KeepNodes::Keep, pairs: KeepPairs::Drop },
        };
        new.asking(hopline_scenario::Question::default())
    }

    /// The same plan, asked what `over` says, and for the rest what it was asked before.
    ///
    /// # Errors
    /// A question that is not understood, or of flows that no point has.
    pub fn asking(mut self, over: hopline_scenario::Question) -> Result<Self, Problems> {
        self.written = over.or(self.written);
        self.question = Question::parse(&self.written, &self.flows)?;
        Ok(self)
    }

    /// Virtual time of `runs` runs of every point together, in seconds.
    #[must_use]
    pub fn total_s(&self, runs: u64) -> f64 {
        runs as f64 * self.points.iter().map(|p| p.scenario.duration().as_secs_f64()).sum::<f64>()
    }

    /// Reduces the plan to these of its points, compared with their baselines as far as those are among them.
    ///
    /// # Errors
    /// A question about flows that none of the points has.
    pub fn only(mut self, points: &[usize]) -> Result<Self, Problems> {
        let place = |number: usize| points.iter().position(|&kept| kept == number);
        let kept = points.iter().enumerate().map(|(new, &old)| {
            let point = &self.points[old];
            Point { baseline: place(point.baseline).unwrap_or(new), ..point.clone() }
        });
        self.points = kept.collect();
        self.flows = flows(&self.points)?;
        self.asking(hopline_scenario::Question::default())
    }

    /// Keys that the points differ in, in the order in which they were given.
    #[must_use]
    pub fn keys(&self) -> Vec<&str> {
        let mut keys: Vec<&str> = Vec::new();
        for setting in self.points.iter().flat_map(|p| &p.settings) {
            if !keys.contains(&setting.path.as_str()) {
                keys.push(&setting.path);
            }
        }
        keys
    }

    /// SHA-256 over everything that results depend on but the number of runs: the points with their parameters, and the
    /// texts of all files. 64 hexadecimal digits.
    #[must_use]
    pub fn identity(&self) -> String {
        let mut hash = Sha256::new();
        for point in &self.points {
            let mut parameters = point.scenario.parameters();
            // How many there are, what is asked of runs, or shown of them, changes none.
            for key in ["runs", "question", "animation"] {
                parameters.as_object_mut().and_then(|all| all.remove(key));
            }
            let parameters = parameters.to_string();
            hash.update(json!([point.label, point.baseline, parameters]).to_string());
            for source in point.scenario.sources().into_iter().skip(1) {
                hash.update(json!(source.text).to_string());
            }
        }
        hash.update(json!([format!("{:?}", self.keep), self.confidence.fraction()]).to_string());
        crate::digest::hex(&hash.finalize())
    }
}

impl Point {
    /// Whether gains are taken against it.
    #[must_use]
    pub const fn is_baseline(&self, number: usize) -> bool {
        self.baseline == number
    }

    /// Its settings by key.
    #[must_use]
    pub(crate) fn settings_json(&self) -> Json {
        self.settings_object().into()
    }

    /// Its settings by key, as an object.
    #[must_use]
    pub(crate) fn settings_object(&self) -> serde_json::Map<String, Json> {
        self.settings.iter().map(|s| (s.path.clone(), s.json())).collect()
    }
}

/// The flows of run 1 of `points`; of those of one name, kind and class the first.
fn flows(points: &[Point]) -> Result<Vec<FlowEnds>, Problems> {
    let mut flows: Vec<FlowEnds> = Vec::new();
    let mut known = BTreeSet::new();
    for point in points {
        let new = FlowEnds::of(&point.scenario.spec(1)?);
        let key = |flow: &FlowEnds| (flow.id.clone(), flow.kind.clone(), flow.class.clone());
        flows.extend(new.into_iter().filter(|flow| known.insert(key(flow))));
    }
    Ok(flows)
}

/// The steps of a product: one for each axis, with a difference for each of its values.
fn steps(axes: &[Axis]) -> Result<Vec<Vec<Difference>>, Problem> {
    let step = |axis: &Axis| {
        refuse_twice(axis)?;
        Ok(axis.iter().map(|s| Difference::varied(vec![s.clone()])).collect())
    };
    axes.iter().map(step).collect()
}

/// A point that is there twice would be compared with itself.
fn refuse_twice(axis: &Axis) -> Result<(), Problem> {
    let mut known = BTreeSet::new();
    match axis.iter().find(|setting| !known.insert(setting.text())) {
        Some(twice) => Err(Problem::new(format!("`{}` is varied over {} twice", twice.path, twice.text()))
            .at(&twice.node.origin)
            .help("remove one of the two")),
        None => Ok(()),
    }
}

/// Every combination of `heads` with one difference of each step; the last step varies fastest.
fn product(heads: &[Difference], steps: &[Vec<Difference>]) -> Result<Vec<Difference>, Problem> {
    let count = steps.iter().map(Vec::len).try_fold(heads.len(), usize::checked_mul);
    if count.is_none_or(|n| n > MOST_POINTS) {
        return Err(Problem::new(format!("more than {MOST_POINTS} points")).help("vary fewer keys"));
    }
    let mut combined = heads.to_vec();
    for step in steps {
        let extended = combined.iter().flat_map(|head| step.iter().map(|tail| head.and(tail)));
        combined = extended.collect();
    }
    Ok(combined)
}

impl Difference {
    fn varied(settings: Vec<Setting>) -> Self {
        Self { varied: settings, ..Self::default() }
    }

    fn and(&self, other: &Self) -> Self {
        Self {
            variant: self.variant.clone().or_else(|| other.variant.clone()),
            named: [self.named.as_slice(), &other.named].concat(),
            varied: [self.varied.as_slice(), &other.varied].concat(),
        }
    }

    fn settings(&self) -> Vec<Setting> {
        [self.named.as_slice(), &self.varied].concat()
    }

    fn label(&self, scenario: &Scenario) -> String {
        let settings = self.varied.iter().map(|s| format!("{}={}", s.path, s.text()));
        let parts: Vec<String> = self.variant.iter().cloned().chain(settings).collect();
        if parts.is_empty() { scenario.name() } else { parts.join(" ") }
    }
}

/// What is wrong with a point, saying which.
fn of_point(label: &str, settings: &[Setting], mut problems: Problems) -> Problems {
    let shown_as_given = |problem: &Problem| {
        problem.at.as_ref().is_some_and(|at| settings.iter().any(|s| *at == s.node.origin || *at == s.key))
    };
    if !settings.is_empty() {
        for problem in problems.0.iter_mut().filter(|problem| !shown_as_given(problem)) {
            problem.message = format!("{label}: {}", problem.message);
        }
    }
    problems
}

/// Points of `differences` over `scenario`.
fn resolve(
    scenario: &Scenario,
    differences: &[Difference],
    baseline: impl Fn(usize) -> usize,
) -> Result<Vec<Point>, Problems> {
    let point = |(number, difference): (usize, &Difference)| {
        let settings = difference.settings();
        let label = difference.label(scenario);
        let with_settings = scenario.with(&settings);
        Ok(Point {
            scenario: with_settings.map_err(|problems| of_point(&label, &settings, problems))?,
            label,
            variant: difference.variant.clone(),
            settings,
            baseline: baseline(number),
        })
    };
    differences.iter().enumerate().map(point).collect()
}
