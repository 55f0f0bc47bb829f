//! Description of an experiment for its results: a plan without anything that is needed to run it.

use crate::digest::hex;
use crate::map::Map;
use crate::objective::Objective;
use crate::plan::Plan;
use crate::record::FlowEnds;
use crate::stats::Confidence;
use hopline_scenario::Scenario;
use serde::{Deserialize, Serialize};
use serde_json::{Map as Object, Value as Json};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;

/// Information on the plan for a reader of results.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Description {
    /// Name of the experiment.
    pub name: String,
    /// The question in words, if the plan has one.
    pub title: Option<String>,
    /// Version of hopline that runs it.
    pub version: String,
    /// [`Plan::identity`].
    pub identity: String,
    /// The command that makes these results from the beginning.
    pub command: Vec<String>,
    /// Path of the scenario file, as it was given.
    pub scenario_file: String,
    /// As `sha256sum` of the scenario file.
    pub scenario_sha256: String,
    /// Files that the scenarios of the points name; empty in results of earlier versions.
    #[serde(default)]
    pub named_files: Vec<NamedFile>,
    /// Seed that all runs share, unless a point sets its own.
    pub seed: u64,
    /// Virtual time of a run of the first point, in seconds.
    pub duration_s: f64,
    /// Confidence of every interval: a fraction.
    pub confidence: f64,
    /// Keys that the points differ in.
    pub keys: Vec<String>,
    /// Question of the experiment; `None` in results that were made before there were questions.
    #[serde(default)]
    pub question: Option<Objective>,
    /// Flows of all points, those of the first point before any other.
    #[serde(default)]
    pub flows: Vec<FlowEnds>,
    /// Version of the Linux kernels that ran programs at nodes; `None`: the runs were simulated alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel: Option<String>,
    /// The points.
    pub points: Vec<PointDescription>,
    /// All parameters in effect at the first point.
    pub parameters: Json,
    /// Network of run 1 of the first point.
    pub map: Map,
}

/// File that a scenario names: movements, nodes, flows, a recording, or a trace of link rates.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NamedFile {
    /// Path: that of the scenario's folder as it was given, and the name in the scenario.
    pub file: String,
    /// As `sha256sum` of the file.
    pub sha256: String,
}

impl NamedFile {
    /// Returns the files of `scenarios`, each once, sorted by path.
    pub(crate) fn of<'a>(scenarios: impl IntoIterator<Item = &'a Scenario>) -> Vec<Self> {
        let named = scenarios.into_iter().flat_map(|scenario| scenario.sources().into_iter().skip(1));
        let texts: BTreeMap<&str, &str> =
            named.map(|source| (source.name.as_str(), source.text.as_str())).collect();
        let described =
            |(file, text): (&str, &str)| Self { file: file.to_owned(), sha256: hex(&Sha256::digest(text)) };
        texts.into_iter().map(described).collect()
    }
}

/// Description of a point.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PointDescription {
    /// Label that distinguishes it.
    pub label: String,
    /// Variant of the plan that it belongs to, if the plan names any.
    pub variant: Option<String>,
    /// Settings that distinguish it.
    pub settings: Object<String, Json>,
    /// Number of its baseline, over which its gains are taken; its own if it is a baseline.
    pub baseline: usize,
}

impl Description {
    /// Returns the description of `plan`, which `command` runs.
    ///
    /// # Errors
    ///
    /// All errors of run 1 of the first point; there are none if the plan was read without errors.
    pub fn of(plan: &Plan, command: Vec<String>) -> Result<Self, crate::Problems> {
        let first = &plan.points[0].scenario;
        let spec = first.spec(1)?;
        Ok(Self {
            name: plan.name.clone(),
            title: plan.title.clone(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            identity: plan.identity(),
            command,
            scenario_file: first.source().name.clone(),
            scenario_sha256: hex(&Sha256::digest(&first.source().text)),
            named_files: NamedFile::of(plan.points.iter().map(|point| &point.scenario)),
            seed: first.seed(),
            duration_s: first.duration().as_secs_f64(),
            confidence: plan.confidence.fraction(),
            question: Some(plan.objective.clone()),
            flows: plan.flows.clone(),
            kernel: plan.engine.kernel().map(str::to_owned),
            keys: plan.keys().into_iter().map(str::to_owned).collect(),
            points: plan.points.iter().map(PointDescription::of).collect(),
            parameters: first.parameters(),
            map: Map::of(&spec),
        })
    }

    /// As [`of`](Self::of), for run number `number`: its network differs if positions are random.
    ///
    /// # Errors
    ///
    /// All errors of that run.
    pub fn of_run(plan: &Plan, command: Vec<String>, number: u64) -> Result<Self, crate::Problems> {
        let spec = plan.points[0].scenario.spec(number)?;
        Ok(Self { map: Map::of(&spec), flows: FlowEnds::of(&spec), ..Self::of(plan, command)? })
    }

    /// Returns the flows that questions may be about: its own, and those of programs.
    pub(crate) fn subjects(&self) -> Vec<FlowEnds> {
        let programs = self.kernel.is_some().then(FlowEnds::of_programs);
        self.flows.iter().cloned().chain(programs).collect()
    }

    /// Returns the confidence of every interval.
    #[must_use]
    pub fn confidence(&self) -> Confidence {
        Confidence::new(self.confidence).unwrap_or(crate::stats::CONFIDENCE)
    }

    /// Returns whether point `number` is a baseline.
    #[must_use]
    pub fn is_baseline(&self, number: usize) -> bool {
        self.points[number].baseline == number
    }
}

impl PointDescription {
    fn of(point: &crate::plan::Point) -> Self {
        Self {
            label: point.label.clone(),
            variant: point.variant.clone(),
            settings: point.settings.iter().map(|s| (s.path.clone(), s.json())).collect(),
            baseline: point.baseline,
        }
    }
}
