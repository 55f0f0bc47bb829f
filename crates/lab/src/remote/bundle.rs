//! Plan in a portable form, for execution on another machine.

use super::records;
use super::{Batch, RemoteError};
use crate::digest::hex;
use crate::execute::run_one;
use crate::plan::{Keep, Plan, Point};
use crate::run::{Interrupted, Observer};
use hopline_config::document::Setting;
use hopline_config::source::{Problems, Source};
use hopline_scenario::folder::Folder;
use hopline_scenario::{CustomAlgorithms, Scenario};
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::{Arc, OnceLock};

/// Documents of a plan, the files that they name, and the differences of its points.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Bundle {
    version: String,
    scenario: BundleText,
    /// Folder of the scenario on the machine of origin; names of files begin with it.
    folder: String,
    files: Vec<BundleText>,
    points: Vec<Settings>,
    keep: Keep,
    /// Scenario of all points, once it has been read.
    #[serde(skip)]
    base: OnceLock<Scenario>,
    /// User-defined algorithms; they are not transferred, and must be supplied on the other machine.
    #[serde(skip)]
    machines: CustomAlgorithms,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
struct BundleText {
    name: String,
    text: String,
}

/// Settings over the scenario at a point.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Settings {
    settings: Vec<(String, Json)>,
    /// SHA-256 of the resulting parameters.
    sha256: String,
}

impl Bundle {
    /// Creates the bundle of `plan`, which contains all that another machine needs to make its runs.
    #[must_use]
    pub fn of(plan: &Plan) -> Self {
        let first = &plan.points[0].scenario;
        let text = |source: &Source| BundleText { name: source.name.clone(), text: source.text.clone() };
        let named = plan.points.iter().flat_map(|point| point.scenario.sources().into_iter().skip(1));
        let files: BTreeMap<&str, BundleText> =
            named.map(|source| (source.name.as_str(), text(source))).collect();
        Self {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            scenario: text(first.source()),
            folder: first.folder().path().display().to_string(),
            files: files.into_values().collect(),
            points: plan.points.iter().map(Settings::of).collect(),
            keep: plan.keep,
            base: OnceLock::new(),
            machines: first.machines().clone(),
        }
    }

    /// Sets the user-defined algorithms that scenarios may name; they must be the same as on the machine of
    /// origin.
    #[must_use]
    pub fn with_machines(self, machines: CustomAlgorithms) -> Self {
        Self { base: OnceLock::new(), machines, ..self }
    }

    /// Returns the bundle as bytes.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("a bundle is made of strings and numbers")
    }

    /// Reads a bundle of another machine.
    ///
    /// # Errors
    ///
    /// If it was made by another version, or is damaged.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, RemoteError> {
        #[derive(Deserialize)]
        struct BundleVersion {
            version: String,
        }
        let damaged = |e: serde_json::Error| RemoteError::Damaged(e.to_string());
        // The format of another version may differ.
        let BundleVersion { version } = serde_json::from_slice(bytes).map_err(damaged)?;
        let ours = env!("CARGO_PKG_VERSION");
        if version != ours {
            return Err(RemoteError::OtherVersion { theirs: version, ours });
        }
        serde_json::from_slice(bytes).map_err(damaged)
    }

    /// Makes the runs of `batch`, and returns their records.
    ///
    /// # Errors
    ///
    /// If the batch is of another plan, or [`RemoteError::Interrupted`]. A run that fails is a result.
    pub fn execute(&self, batch: &Batch, watch: &dyn Observer) -> Result<Vec<u8>, RemoteError> {
        let mut scenarios: BTreeMap<usize, Scenario> = BTreeMap::new();
        let mut made = Vec::with_capacity(batch.runs.len());
        for &(point, run) in &batch.runs {
            let scenario = match scenarios.entry(point) {
                Entry::Occupied(known) => known.into_mut(),
                Entry::Vacant(new) => new.insert(self.scenario(point)?),
            };
            let record = run_one(scenario, (point, run), self.keep, watch);
            made.push(record.map_err(|Interrupted| RemoteError::Interrupted)?);
        }
        records::write(&made)
    }

    /// Returns the scenario of all points, as in its file.
    fn base(&self) -> Result<&Scenario, RemoteError> {
        if let Some(known) = self.base.get() {
            return Ok(known);
        }
        let source = |text: &BundleText| Source { name: text.name.clone(), text: text.text.clone() };
        let folder = Folder::transferred(&self.folder, self.files.iter().map(source));
        let base = Scenario::parse_with(Arc::new(source(&self.scenario)), folder, &[], self.machines.clone());
        let base = base.map_err(|e| RemoteError::Damaged(e.to_string()))?;
        Ok(self.base.get_or_init(|| base))
    }

    fn scenario(&self, point: usize) -> Result<Scenario, RemoteError> {
        let Some(wanted) = self.points.get(point) else {
            return Err(RemoteError::Damaged(format!("there is no point {point}")));
        };
        let base = self.base()?;
        let differs = |why: String| RemoteError::Differs { point, why };
        let setting = |(path, value): &(String, Json)| Setting::of_value("setting", path, value);
        let settings: Result<Vec<Setting>, _> = wanted.settings.iter().map(setting).collect();
        let scenario = settings.map_err(Problems::from).and_then(|settings| base.with(&settings));
        let scenario = scenario.map_err(|e| differs(e.to_string()))?;
        if digest(&scenario) == wanted.sha256 {
            Ok(scenario)
        } else {
            Err(differs("its parameters are others".into()))
        }
    }
}

impl Settings {
    fn of(point: &Point) -> Self {
        let settings = point.scenario.settings().iter().map(|s| (s.path.clone(), s.json()));
        Self { settings: settings.collect(), sha256: digest(&point.scenario) }
    }
}

fn digest(scenario: &Scenario) -> String {
    hex(&Sha256::digest(scenario.parameters().to_string()))
}
