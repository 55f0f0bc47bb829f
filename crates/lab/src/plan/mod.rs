//! Plan of an experiment: a list of points, and the number of their runs. A point is the scenario with settings applied to
//! it.
//!
//! Runs are paired: run *n* has the same placement, movement and random streams at every point. Points are compared by the
//! differences within these pairs.

mod file;
mod keep;
pub mod keys;
mod overrides;
#[cfg(test)]
mod tests;

pub use file::Effort;
pub(crate) use file::Purpose;
pub use keep::{Keep, KeepNodes, KeepPairs, KeepSeries};
pub use overrides::reject_varied;
pub(crate) use overrides::{KeySetter, Overrides, reject_overridden};

use crate::engine::{self, Engine, KernelOptions, Kernels};
use crate::objective::{MetricSelection, Objective};
use crate::record::FlowEnds;
use crate::stats::{CONFIDENCE, Confidence, Precision};
use hopline_config::document::Setting;
use hopline_config::source::{Problem, Problems};
use hopline_scenario::{Axis, Scenario};
use serde_json::{Value as Json, json};
use sha2::{Digest, Sha256};
use std::collections::BTreeSet;
use std::path::Path;

/// Points of an experiment, and the number of their runs.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Name of the experiment.
    pub name: String,
    /// The question in words, if the plan has one.
    pub title: Option<String>,
    /// The points, at least one.
    pub points: Vec<Point>,
    /// Number of runs of each point.
    pub runs: Runs,
    /// Flows of run 1 of all points, those of the first point first. Flows with equal name, kind and class appear once.
    pub flows: Vec<FlowEnds>,
    /// Question of the experiment.
    pub objective: Objective,
    /// The question as written.
    pub objective_as_written: hopline_scenario::Objective,
    /// Confidence of every interval.
    pub confidence: Confidence,
    /// Selection of the data that are stored of each run.
    pub keep: Keep,
    /// Engine that makes the runs.
    pub engine: Engine,
}

/// A scenario with settings applied to it.
#[derive(Clone, Debug)]
pub struct Point {
    /// Label that distinguishes the point: the name of its variant, then the varied settings, as in `SACK tcp.window=2`. If
    /// there is neither, the name of the scenario.
    pub label: String,
    /// Name of its variant, if the plan has variants.
    pub variant: Option<String>,
    /// Settings that distinguish the point: those of its variant, then the varied ones.
    pub settings: Vec<Setting>,
    /// The scenario with the settings applied.
    pub scenario: Scenario,
    /// Number of the point that is its baseline for gains. A baseline has its own number here.
    pub baseline: usize,
}

/// Number of runs of each point. Runs are numbered from 1.
#[derive(Clone, Debug, PartialEq)]
pub enum Runs {
    /// This number.
    Fixed(u64),
    /// As many as needed until the metric is precise enough at every point.
    Until {
        /// Required half-width of the confidence interval, relative to the mean.
        precision: Precision,
        /// Metric that must be precise.
        target: MetricSelection,
        /// Initial number of runs.
        first: u64,
        /// Maximum number of runs.
        max: u64,
    },
}

/// Difference of a point from the scenario: the name of its variant, if there is one, and settings.
#[derive(Clone, Debug, Default)]
struct Difference {
    variant: Option<String>,
    /// Settings of the variant. Labels contain its name in place of them.
    named: Vec<Setting>,
    varied: Vec<Setting>,
}

/// Maximum number of points of an experiment.
pub const MAX_POINTS: usize = 10_000;

impl Plan {
    /// Creates the product of `axes` over `scenario`, with the scenario's number of runs; the last axis
    /// varies fastest. Without axes the scenario is the only point. The first point is the baseline of all
    /// others.
    ///
    /// # Errors
    ///
    /// All errors of any of the points.
    pub fn new(scenario: &Scenario, axes: &[Axis]) -> Result<Self, Problems> {
        let points = product(&[Difference::default()], &steps(axes)?)?;
        let points = resolve(scenario, &points, |_| 0)?;
        let new = Self {
            name: scenario.name(),
            title: None,
            flows: flows(&points)?,
            points,
            runs: Runs::Fixed(scenario.runs()),
            objective_as_written: scenario.objective(),
            objective: Objective::default_for(&[]),
            confidence: CONFIDENCE,
            keep: Keep { series: KeepSeries::FirstRun, nodes: KeepNodes::Keep, pairs: KeepPairs::Drop },
            engine: Engine::Simulator,
        };
        new.with_objective(hopline_scenario::Objective::default())
    }

    /// Creates a plan with a point for each of the `variants`: a name, and settings over `scenario`. The first is the baseline.
    ///
    /// # Errors
    ///
    /// All errors of any of the points.
    pub fn of_variants(scenario: &Scenario, variants: &[(String, Vec<Setting>)]) -> Result<Self, Problems> {
        let difference = |(name, settings): &(String, Vec<Setting>)| Difference {
            variant: Some(name.clone()),
            named: settings.clone(),
            varied: Vec::new(),
        };
        let differences: Vec<Difference> = variants.iter().map(difference).collect();
        let points = resolve(scenario, &differences, |_| 0)?;
        Ok(Self { flows: flows(&points)?, points, ..Self::new(scenario, &[])? })
    }

    /// Changes the question to `over`. Parts that `over` does not specify stay as before.
    ///
    /// # Errors
    /// If the question is invalid, or about flows that no point has.
    pub fn with_objective(mut self, over: hopline_scenario::Objective) -> Result<Self, Problems> {
        self.objective_as_written = over.or(self.objective_as_written);
        self.objective = Objective::parse(&self.objective_as_written, &subjects(&self.points, &self.flows)?)?;
        Ok(self)
    }

    /// Returns the plan with runs over Linux kernels, which the command `hopline` at `command` makes.
    ///
    /// # Errors
    ///
    /// If there is no kernel, or a point cannot be emulated.
    pub fn with_kernels(self, command: &Path, options: KernelOptions) -> Result<Self, Problem> {
        if self.keep.pairs == KeepPairs::Keep {
            return Err(Problem::new("runs over kernels keep no pairs of flows")
                .help("leave out `pairs` of the plan"));
        }
        let targets = match &self.runs {
            Runs::Fixed(_) => None,
            Runs::Until { target, .. } => Some(target),
        };
        let asked = std::iter::once(&self.objective.asked)
            .chain(self.objective.bound.as_ref().map(|bound| &bound.asked));
        asked.chain(targets).try_for_each(|metric| engine::check_metric(metric, !self.flows.is_empty()))?;
        let scenarios: Vec<&Scenario> = self.points.iter().map(|point| &point.scenario).collect();
        let kernels = Kernels::find(command, options, &scenarios, self.keep)?;
        Ok(Self { engine: Engine::Kernels(kernels), ..self })
    }

    /// Returns the label of the first point that has kernels and a simulated routing protocol, which emulated nodes do not run:
    /// its kernels get no routes.
    #[must_use]
    pub fn without_routes(&self) -> Option<&str> {
        let Engine::Kernels(kernels) = &self.engine else { return None };
        if kernels.has_no_routes() {
            return None;
        }
        let lacks = |point: &&Point| point.scenario.spec(1).is_ok_and(|spec| spec.routing.has_agents());
        self.points.iter().find(lacks).map(|point| point.label.as_str())
    }

    /// Returns the total virtual time in seconds of `runs` runs of every point.
    #[must_use]
    pub fn total_s(&self, runs: u64) -> f64 {
        runs as f64 * self.points.iter().map(|p| p.scenario.duration().as_secs_f64()).sum::<f64>()
    }

    /// Reduces the plan to these points. A point without its baseline among them becomes its own baseline.
    ///
    /// # Errors
    /// If the question is about flows that none of the points has.
    pub fn reduced_to(mut self, points: &[usize]) -> Result<Self, Problems> {
        let place = |number: usize| points.iter().position(|&kept| kept == number);
        let kept = points.iter().enumerate().map(|(new, &old)| {
            let point = &self.points[old];
            Point { baseline: place(point.baseline).unwrap_or(new), ..point.clone() }
        });
        self.points = kept.collect();
        self.flows = flows(&self.points)?;
        self.with_objective(hopline_scenario::Objective::default())
    }

    /// Returns the keys in which points differ, in the order in which they were given.
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

    /// Returns the SHA-256, as 64 hexadecimal digits, over everything on which results depend except the number of runs. This
    /// is: the points with their parameters, the texts of the files that scenarios name, the selection of stored data, and
    /// the confidence.
    #[must_use]
    pub fn identity(&self) -> String {
        let mut hash = Sha256::new();
        for point in &self.points {
            let mut parameters = point.scenario.parameters();
            // The number of runs, the question and the animation do not change any run.
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
        if let Engine::Kernels(kernels) = &self.engine {
            hash.update(kernels.identity());
        }
        crate::digest::hex(&hash.finalize())
    }
}

impl Point {
    /// Returns whether this point, with the number `number`, is a baseline.
    #[must_use]
    pub const fn is_baseline(&self, number: usize) -> bool {
        self.baseline == number
    }

    /// Returns its settings by key, as a JSON value.
    #[must_use]
    pub(crate) fn settings_json(&self) -> Json {
        self.settings_object().into()
    }

    /// Returns its settings by key, as an object.
    #[must_use]
    pub(crate) fn settings_object(&self) -> serde_json::Map<String, Json> {
        self.settings.iter().map(|s| (s.path.clone(), s.json())).collect()
    }
}

/// Returns the flows of run 1 of `points`. Of flows with equal name, kind and class, only the first is returned.
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

/// Returns the flows that questions may be about: `flows`, and those of programs.
fn subjects(points: &[Point], flows: &[FlowEnds]) -> Result<Vec<FlowEnds>, Problems> {
    let mut programs = false;
    for point in points {
        programs = programs || point.scenario.is_network() && !point.scenario.programs(1)?.is_empty();
    }
    Ok(flows.iter().cloned().chain(programs.then(FlowEnds::of_programs)).collect())
}

/// Returns the steps of a product: one step for each axis, with one difference for each value of the axis.
fn steps(axes: &[Axis]) -> Result<Vec<Vec<Difference>>, Problem> {
    let step = |axis: &Axis| {
        reject_duplicates(axis)?;
        Ok(axis.iter().map(|s| Difference::varied(vec![s.clone()])).collect())
    };
    axes.iter().map(step).collect()
}

/// Rejects an axis with a repeated value, because a point would be compared with itself.
fn reject_duplicates(axis: &Axis) -> Result<(), Problem> {
    let mut known = BTreeSet::new();
    match axis.iter().find(|setting| !known.insert(setting.text())) {
        Some(twice) => Err(Problem::new(format!("`{}` is varied over {} twice", twice.path, twice.text()))
            .at(&twice.node.origin)
            .help("remove one of the two")),
        None => Ok(()),
    }
}

/// Returns every combination of `heads` with one difference of each step; the last step varies fastest.
fn product(heads: &[Difference], steps: &[Vec<Difference>]) -> Result<Vec<Difference>, Problem> {
    let count = steps.iter().map(Vec::len).try_fold(heads.len(), usize::checked_mul);
    if count.is_none_or(|n| n > MAX_POINTS) {
        return Err(Problem::new(format!("more than {MAX_POINTS} points")).help("vary fewer keys"));
    }
    let mut combined = heads.to_vec();
    for step in steps {
        let extended = combined.iter().flat_map(|head| step.iter().map(|tail| head.combined_with(tail)));
        combined = extended.collect();
    }
    Ok(combined)
}

impl Difference {
    fn varied(settings: Vec<Setting>) -> Self {
        Self { varied: settings, ..Self::default() }
    }

    fn combined_with(&self, other: &Self) -> Self {
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

/// Adds the label of the point to the messages of `problems`, except to those about a place in the given `settings`.
fn at_point(label: &str, settings: &[Setting], mut problems: Problems) -> Problems {
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

/// Returns the points of `differences` over `scenario`.
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
            scenario: with_settings.map_err(|problems| at_point(&label, &settings, problems))?,
            label,
            variant: difference.variant.clone(),
            settings,
            baseline: baseline(number),
        })
    };
    differences.iter().enumerate().map(point).collect()
}
