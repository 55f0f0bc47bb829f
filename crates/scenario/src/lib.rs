//! Scenario files: TOML in, a resolved [`Spec`] out, and for everything else an error that points at the place.
//!
//! A file goes through four steps: [`document`] keeps TOML values with the place of each; `--set` and sweep values are put
//! over it; [`schema`] checks the result against the tables in [`keys`]; `resolve` makes a [`Spec`] of it for one run.
//! The format is described for its users in scenarios/README.md and docs/scenario-keys.md.

pub mod csv;
mod degrees;
pub mod endpoint;
pub mod folder;
pub mod keys;
pub mod movements;
pub mod parameters;
mod program;
pub mod rate_trace;
pub mod recorded;
mod resolve;
#[cfg(test)]
mod tests;
mod user_defined;

use document::{Node, Setting, Value};
use folder::Folder;
use hopline_config::json_schema::FileKind;
use hopline_config::{choice, document, field, key_owners, middlebox, schema, separated, source};
use hopline_core::Duration;
pub use hopline_sim::custom::CustomAlgorithms;
use hopline_sim::spec::Spec;
pub use program::{EMULATION_VARIABLE, Program, address_variable};
use schema::{Section, join};
use source::{Origin, Problem, Problems, Source};
use std::ffi::OsStr;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use user_defined::{ScenarioUse, ScenarioWithMachines};

/// Scenario files, for their JSON Schema and reference.
pub const FILE_KIND: FileKind =
    FileKind { name: "scenario", title: "a scenario of hopline", keys: keys::SCENARIO };

/// A checked scenario.
#[derive(Clone, Debug)]
pub struct Scenario {
    source: Arc<Source>,
    /// Folder against which files are resolved.
    folder: Folder,
    document: Node,
    settings: Vec<Setting>,
    files: resolve::Files,
    /// User-defined algorithms that it may name.
    machines: CustomAlgorithms,
    used_for: ScenarioUse,
}

/// One swept key and its values.
pub type Axis = Vec<Setting>;

impl Scenario {
    /// Reads a scenario file and puts `settings` over it, in order.
    ///
    /// # Errors
    ///
    /// Everything that is wrong with the file, with the settings, or with the files that it names.
    pub fn load(path: &Path, settings: &[Setting]) -> Result<Self, Problems> {
        Self::load_with(path, settings, CustomAlgorithms::default())
    }

    /// Does the same for an emulation: the scenario needs no flows, and may have programs.
    ///
    /// # Errors
    ///
    /// As [`load`](Self::load).
    pub fn load_network(path: &Path, settings: &[Setting]) -> Result<Self, Problems> {
        Self::parse_network(Source::read(path)?, path.parent().unwrap_or(Path::new("")), settings)
    }

    /// Reads a scenario for an emulation from `source`, with file names relative to `folder`.
    ///
    /// # Errors
    ///
    /// Everything that is wrong with it.
    pub fn parse_network(
        source: Arc<Source>,
        folder: impl Into<Folder>,
        settings: &[Setting],
    ) -> Result<Self, Problems> {
        Self {
            used_for: ScenarioUse::Emulation,
            ..Self::unchecked(source, folder.into(), CustomAlgorithms::default())?
        }
        .with(settings)
    }

    /// Returns whether it was read for an emulation.
    #[must_use]
    pub fn is_network(&self) -> bool {
        self.used_for == ScenarioUse::Emulation
    }

    /// Does the same for a scenario that may name the user-defined algorithms `machines`, as may all that is
    /// derived from it.
    ///
    /// # Errors
    ///
    /// As [`load`](Self::load).
    pub fn load_with(
        path: &Path,
        settings: &[Setting],
        machines: CustomAlgorithms,
    ) -> Result<Self, Problems> {
        let source = Source::read(path)?;
        Self::parse_with(source, path.parent().unwrap_or(Path::new("")), settings, machines)
    }

    /// Reads a scenario from `source`, with file names relative to `folder`, and puts `settings` over it, in order.
    ///
    /// # Errors
    ///
    /// Everything that is wrong with it.
    pub fn parse(
        source: Arc<Source>,
        folder: impl Into<Folder>,
        settings: &[Setting],
    ) -> Result<Self, Problems> {
        Self::parse_with(source, folder, settings, CustomAlgorithms::default())
    }

    /// Does the same for a scenario that may name the user-defined algorithms `machines`, as may all that is
    /// derived from it.
    ///
    /// # Errors
    ///
    /// As [`parse`](Self::parse).
    pub fn parse_with(
        source: Arc<Source>,
        folder: impl Into<Folder>,
        settings: &[Setting],
        machines: CustomAlgorithms,
    ) -> Result<Self, Problems> {
        Self::unchecked(source, folder.into(), machines)?.with(settings)
    }

    /// Returns a scenario of which nothing but the syntax is checked.
    fn unchecked(source: Arc<Source>, folder: Folder, machines: CustomAlgorithms) -> Result<Self, Problems> {
        let document = document::parse(&source)?;
        let (settings, files, used_for) = (Vec::new(), resolve::Files::default(), ScenarioUse::Simulation);
        Ok(Self { source, folder, document, settings, files, machines, used_for })
    }

    /// Returns the same scenario with more settings put over it.
    ///
    /// # Errors
    ///
    /// Everything that is wrong with the settings or with what becomes of the scenario.
    pub fn with(&self, settings: &[Setting]) -> Result<Self, Problems> {
        let mut changed = self.clone();
        for setting in settings {
            document::set(&mut changed.document, setting)?;
        }
        changed.settings.extend_from_slice(settings);
        schema::check_document(&changed.document, "the scenario", keys::SCENARIO)?;
        changed.files = resolve::Files::load(changed.section(), &changed.folder, &self.files)?;
        changed.spec(1)?;
        Ok(changed)
    }

    /// Returns the name of the scenario: what it says, or that of its file. A file called `scenario.toml` is
    /// one of many, and known by its folder.
    #[must_use]
    pub fn name(&self) -> String {
        const USUAL: &str = "scenario";
        let name = |part: Option<&OsStr>| part.map(|part| part.to_string_lossy().into_owned());
        let of_file = || name(Path::new(&self.source.name).file_stem()).filter(|stem| stem != USUAL);
        let of_folder = || {
            let here = match self.folder.path() {
                path if path.as_os_str().is_empty() => Path::new("."),
                path => path,
            };
            // `.` and `..` have no name as they stand.
            name(fs::canonicalize(here).as_deref().unwrap_or(here).file_name())
        };
        let given = self.section().word("name").map(str::to_owned);
        given.or_else(of_file).or_else(of_folder).unwrap_or_else(|| USUAL.into())
    }

    /// Returns the text of the file.
    #[must_use]
    pub fn source(&self) -> &Source {
        &self.source
    }

    /// Returns the folder against which files are resolved.
    #[must_use]
    pub const fn folder(&self) -> &Folder {
        &self.folder
    }

    /// Returns the settings that override the file.
    #[must_use]
    pub fn settings(&self) -> &[Setting] {
        &self.settings
    }

    /// Returns the seed of the experiment.
    #[must_use]
    pub fn seed(&self) -> u64 {
        self.section().get(keys::scenario::SEED)
    }

    /// Runs of each variant of a comparison.
    #[must_use]
    pub fn runs(&self) -> u64 {
        self.section().get(keys::scenario::RUNS)
    }

    /// Returns the virtual time of a run.
    #[must_use]
    pub fn duration(&self) -> Duration {
        Duration::from_secs_f64(self.section().get(keys::scenario::DURATION_S))
    }

    /// Returns the metric and the bound of `[question]`, as written.
    #[must_use]
    pub fn objective(&self) -> Objective {
        Objective::of(self.section())
    }

    /// Returns the part of a run that reports play, if the scenario asks for one: from where, and up to where
    /// or to the end.
    #[must_use]
    pub fn animation(&self) -> Option<(Duration, Option<Duration>)> {
        let animation = self.section().section("animation");
        let to = animation.number("to_s").map(Duration::from_secs_f64);
        animation.is_given().then(|| (Duration::from_secs_f64(animation.get(keys::animation::FROM_S)), to))
    }

    /// Returns the document as written, with all settings that override it.
    #[must_use]
    pub fn as_written(&self) -> serde_json::Value {
        self.document.json_value()
    }

    /// Returns every parameter in effect, defaults included, by section. User-defined algorithms stand under
    /// `custom_algorithms`, each with its digest.
    #[must_use]
    pub fn parameters(&self) -> serde_json::Value {
        let mut parameters = parameters::of(self.section());
        if self.machines.is_empty() {
            return parameters;
        }
        // A checked scenario has a first run.
        let used = self.spec(1).map(|spec| spec.custom_algorithms()).unwrap_or_default();
        if let (false, Some(all)) = (used.is_empty(), parameters.as_object_mut()) {
            all.insert("own_machines".into(), parameters::of_machines(&used));
        }
        parameters
    }

    /// Returns the same scenario with the user-defined algorithms `machines` that it may name, in place of
    /// those that it had.
    ///
    /// # Errors
    ///
    /// It names one that is not among them.
    pub fn with_machines(&self, machines: CustomAlgorithms) -> Result<Self, Problems> {
        let changed = Self { machines, ..self.clone() };
        changed.spec(1)?;
        Ok(changed)
    }

    /// Returns the user-defined algorithms that it may name.
    #[must_use]
    pub fn machines(&self) -> &CustomAlgorithms {
        &self.machines
    }

    /// Returns the specification of run number `run`. Where nodes are random or move, each run has its own.
    ///
    /// # Errors
    ///
    /// What is wrong with the scenario that its keys alone do not show: unknown nodes, overlaps, broken files.
    pub fn spec(&self, run: u64) -> Result<Spec, Problems> {
        resolve::spec(self.whole(), &self.files, run).map_err(Problems::from)
    }

    /// Returns the programs of `[[program]]`, in the order of the file, at the nodes of run number `run`. Only
    /// a scenario [for an emulation](Self::load_network) has any.
    ///
    /// # Errors
    ///
    /// As [`spec`](Self::spec).
    pub fn programs(&self, run: u64) -> Result<Vec<Program>, Problems> {
        resolve::programs(self.whole(), &self.files, run).map_err(Problems::from)
    }

    /// Returns the axes of `[sweep]`, in the order of the file.
    ///
    /// # Errors
    ///
    /// A key that no scenario has, or a value that is not a list.
    pub fn sweep(&self) -> Result<Vec<Axis>, Problems> {
        Ok(self.section().node("sweep").map(|node| axes(node, "sweep")).transpose()?.unwrap_or_default())
    }

    /// Returns the texts that the scenario was read from: the file itself, and those that it names.
    #[must_use]
    pub fn sources(&self) -> Vec<&Source> {
        std::iter::once(&*self.source).chain(self.files.sources.iter().map(|source| &**source)).collect()
    }

    fn whole(&self) -> ScenarioWithMachines<'_> {
        ScenarioWithMachines { scenario: self.section(), machines: &self.machines, used_for: self.used_for }
    }

    fn section(&self) -> Section<'_> {
        Section::new(&self.document, keys::SCENARIO)
    }
}

/// A question as it is written, each part with the place where it stands.
#[derive(Clone, Debug, Default)]
pub struct Objective {
    /// Metric by which variants are compared.
    pub metric: Option<(String, Origin)>,
    /// Bound that a variant must also meet.
    pub bound: Option<(String, Origin)>,
}

impl Objective {
    /// Returns the question that `[question]` of a file asks, below `section`.
    #[must_use]
    pub fn of(section: Section<'_>) -> Self {
        let question = section.section("question");
        let part = |key| Some((question.word(key)?.to_owned(), question.origin_of(key).clone()));
        Self { metric: part("metric"), bound: part("bound") }
    }

    /// Returns this question. Parts that it leaves open are those of `other`.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self { metric: self.metric.or(other.metric), bound: self.bound.or(other.bound) }
    }

    /// Returns the question of two options of a command line.
    #[must_use]
    pub fn of_options(metric: Option<&str>, bound: Option<&str>) -> Self {
        let part = |option: &str, text: Option<&str>| {
            text.map(|text| (text.to_owned(), Origin::of_option(option, text)))
        };
        Self { metric: part("--metric", metric), bound: part("--bound", bound) }
    }
}

/// Reads `--vary key=v1,v2,…`.
///
/// # Errors
///
/// Text that is not of that form.
pub fn parse_vary(text: &str) -> Result<Axis, Problem> {
    let whole = Setting::parse("--vary", text)?;
    let source = whole.key.source.clone();
    let mut start = text.find('=').expect("checked by Setting::parse") + 1;
    let mut axis = Vec::new();
    for word in text[start..].split(',') {
        let lead = word.len() - word.trim_start().len();
        let span = start + lead..start + lead + word.trim().len();
        let node = document::parse_word(&source, span)?;
        axis.push(Setting { node, ..whole.clone() });
        start += word.len() + 1;
    }
    Ok(axis)
}

/// Returns the axes of a table of lists called `table`, in the order of the file.
///
/// # Errors
///
/// A value that is not a list.
pub fn axes(node: &Node, table: &str) -> Result<Vec<Axis>, Problem> {
    let axis = |whole: Setting| match &whole.node.value {
        Value::Array(values) if !values.is_empty() => {
            Ok(values.iter().map(|node| Setting { node: node.clone(), ..whole.clone() }).collect())
        }
        other => Err(Problem::new(format!(
            "`{table}.{}` takes a list of values, not {}",
            whole.path,
            match other {
                Value::Array(_) => "an empty one",
                other => other.kind(),
            }
        ))
        .at(&whole.node.origin)
        .help(format!("for example: \"{}\" = [1, 2, 3]", whole.path))),
    };
    settings(node).into_iter().map(axis).collect()
}

/// Returns the settings of a table of dotted keys, in the order of the file: `[tcp] window = 2` sets
/// `tcp.window`, as `"tcp.window" = 2` does.
#[must_use]
pub fn settings(node: &Node) -> Vec<Setting> {
    let mut found = Vec::new();
    collect(node, "", &mut found);
    found.sort_by_key(|setting| setting.key.span.start);
    found
}

fn collect(node: &Node, path: &str, found: &mut Vec<Setting>) {
    let Value::Table(table) = &node.value else { unreachable!("settings are kept in tables") };
    for (name, entry) in table {
        let path = join(path, name);
        match &entry.node.value {
            Value::Table(_) => collect(&entry.node, &path, found),
            _ => found.push(Setting { path, key: entry.key.clone(), node: entry.node.clone() }),
        }
    }
}
