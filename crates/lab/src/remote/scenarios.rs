//! Scenarios in a portable form, for execution in another process or on another machine.

use super::error::RemoteError;
use crate::digest::hex;
use crate::plan::Keep;
use hopline_config::document::Setting;
use hopline_config::source::{Problems, Source};
use hopline_scenario::folder::Folder;
use hopline_scenario::{CustomAlgorithms, Scenario};
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

/// Scenarios of points: their documents, the files that they name, and their differences.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Scenarios {
    version: String,
    scenario: BundleText,
    /// Folder of the scenario on the machine of origin; names of files begin with it.
    folder: String,
    files: Vec<BundleText>,
    points: Vec<Settings>,
    keep: Keep,
    /// `true` if the scenarios were read for an emulation.
    is_network: bool,
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

impl Scenarios {
    /// Returns the portable form of `scenarios`, which is not empty. Another machine needs nothing else to make their runs.
    #[must_use]
    pub fn of(scenarios: &[&Scenario], keep: Keep) -> Self {
        let first = scenarios[0];
        let text = |source: &Source| BundleText { name: source.name.clone(), text: source.text.clone() };
        let named = scenarios.iter().flat_map(|scenario| scenario.sources().into_iter().skip(1));
        let files: BTreeMap<&str, BundleText> =
            named.map(|source| (source.name.as_str(), text(source))).collect();
        Self {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            scenario: text(first.source()),
            folder: first.folder().path().display().to_string(),
            files: files.into_values().collect(),
            points: scenarios.iter().map(|scenario| Settings::of(scenario)).collect(),
            keep,
            is_network: first.is_network(),
            base: OnceLock::new(),
            machines: first.machines().clone(),
        }
    }

    /// Returns the selection of the data that are stored of each run.
    #[must_use]
    pub const fn keep(&self) -> Keep {
        self.keep
    }

    /// Returns the number of its points.
    #[must_use]
    pub fn points(&self) -> usize {
        self.points.len()
    }

    /// Checks that the portable form `json` is of this version of hopline.
    ///
    /// # Errors
    ///
    /// If it is of another version, or damaged.
    pub fn check_version(json: &Json) -> Result<(), RemoteError> {
        let ours = env!("CARGO_PKG_VERSION");
        match json["version"].as_str() {
            Some(version) if version == ours => Ok(()),
            Some(version) => Err(RemoteError::OtherVersion { theirs: version.to_owned(), ours }),
            None => Err(RemoteError::Damaged("it has no version".into())),
        }
    }

    /// Sets the user-defined algorithms that scenarios may name; they must be the same as on the machine of
    /// origin.
    #[must_use]
    pub fn with_machines(self, machines: CustomAlgorithms) -> Self {
        Self { base: OnceLock::new(), machines, ..self }
    }

    /// Returns the scenario of all points, as in its file.
    fn base(&self) -> Result<&Scenario, RemoteError> {
        if let Some(known) = self.base.get() {
            return Ok(known);
        }
        let source = |text: &BundleText| Source { name: text.name.clone(), text: text.text.clone() };
        let folder = Folder::transferred(&self.folder, self.files.iter().map(source));
        let scenario = Arc::new(source(&self.scenario));
        let base = match self.is_network {
            true => Scenario::parse_network(scenario, folder, &[]),
            false => Scenario::parse_with(scenario, folder, &[], self.machines.clone()),
        };
        let base = base.map_err(|e| RemoteError::Damaged(e.to_string()))?;
        Ok(self.base.get_or_init(|| base))
    }

    /// Returns the scenario of a point.
    ///
    /// # Errors
    ///
    /// If there is no such point, or it differs from that on the machine of origin.
    pub fn scenario(&self, point: usize) -> Result<Scenario, RemoteError> {
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
    fn of(scenario: &Scenario) -> Self {
        let settings = scenario.settings().iter().map(|s| (s.path.clone(), s.json()));
        Self { settings: settings.collect(), sha256: digest(scenario) }
    }
}

fn digest(scenario: &Scenario) -> String {
    hex(&Sha256::digest(scenario.parameters().to_string()))
}
