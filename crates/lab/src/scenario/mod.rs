//! Scenario files: TOML in, a resolved [`Spec`] out, and for everything else an error that points at the place.
//!
//! A file goes through four steps: [`document`] keeps TOML values with the place of each; `--set` and sweep values are put
//! over it; [`schema`] checks the result against the tables in [`keys`]; `resolve` makes a [`Spec`] of it for one run.
//! The format is described for its users in scenarios/README.md.

pub mod csv;
pub mod document;
pub mod keys;
mod parameters;
mod reference;
mod resolve;
pub mod schema;
pub mod source;
#[cfg(test)]
mod tests;

pub use reference::reference;

use document::{Node, Setting, Value};
use hopline_core::Duration;
use hopline_sim::spec::Spec;
use schema::{Section, join};
use source::{Problem, Problems, Source};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A checked scenario.
#[derive(Clone, Debug)]
pub struct Scenario {
    source: Arc<Source>,
    /// Folder against which files are resolved.
    folder: PathBuf,
    document: Node,
    settings: Vec<Setting>,
    files: resolve::Files,
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
        let source = Source::read(path)?;
        let folder = path.parent().unwrap_or(Path::new("")).to_owned();
        Self::parse(source, folder, settings)
    }

    /// Reads a scenario from `source`, with file names relative to `folder`, and puts `settings` over it, in order.
    ///
    /// # Errors
    ///
    /// Everything that is wrong with it.
    pub fn parse(source: Arc<Source>, folder: PathBuf, settings: &[Setting]) -> Result<Self, Problems> {
        let document = document::parse(&source)?;
        let scenario =
            Self { source, folder, document, settings: Vec::new(), files: resolve::Files::default() };
        scenario.with(settings)
    }

    /// The same scenario with more settings put over it.
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
        let Value::Table(table) = &changed.document.value else { unreachable!("a TOML document is a table") };
        let mut problems = Vec::new();
        schema::check(table, &changed.document.origin, "", keys::SCENARIO, &mut problems);
        if !problems.is_empty() {
            problems.sort_by_key(|p| p.at.as_ref().map(|at| (at.source.name.clone(), at.span.start)));
            return Err(Problems(problems));
        }
        changed.files = resolve::Files::load(changed.section(), &changed.folder)?;
        changed.spec(1)?;
        Ok(changed)
    }

    /// The name of the scenario: what it says, or its folder's name.
    #[must_use]
    pub fn name(&self) -> String {
        let folder = || self.folder.file_name().map(|n| n.to_string_lossy().into_owned());
        let given = self.section().word("name").map(str::to_owned);
        given.or_else(folder).unwrap_or_else(|| "scenario".into())
    }

    /// The text of the file.
    #[must_use]
    pub fn source(&self) -> &Source {
        &self.source
    }

    /// What was put over the file.
    #[must_use]
    pub fn settings(&self) -> &[Setting] {
        &self.settings
    }

    /// Seed of the experiment.
    #[must_use]
    pub fn seed(&self) -> u64 {
        self.section().integer("seed").expect("has a default")
    }

    /// Runs of each variant of a comparison.
    #[must_use]
    pub fn runs(&self) -> u64 {
        self.section().integer("runs").expect("has a default")
    }

    /// Virtual time of a run.
    #[must_use]
    pub fn duration(&self) -> Duration {
        Duration::from_secs_f64(self.section().number("duration_s").expect("is required"))
    }

    /// Every parameter in effect, defaults included, by section.
    #[must_use]
    pub fn parameters(&self) -> serde_json::Value {
        parameters::of(self.section())
    }

    /// What to simulate in run number `run`: where nodes are random or move, each run has its own.
    ///
    /// # Errors
    ///
    /// What is wrong with the scenario that its keys alone do not show: unknown nodes, overlaps, broken files.
    pub fn spec(&self, run: u64) -> Result<Spec, Problems> {
        resolve::spec(self.section(), &self.files, run).map_err(Problems::from)
    }

    /// The axes of `[sweep]`, in the order of the file.
    ///
    /// # Errors
    ///
    /// A key that no scenario has, or a value that is not a list.
    pub fn sweep(&self) -> Result<Vec<Axis>, Problems> {
        let mut axes = Vec::new();
        if let Some(node) = self.section().node("sweep") {
            collect_axes(node, "", &mut axes)?;
        }
        axes.sort_by_key(|axis: &Axis| axis[0].key.span.start);
        Ok(axes)
    }

    fn section(&self) -> Section<'_> {
        Section::new(&self.document, keys::SCENARIO)
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

fn collect_axes(node: &Node, path: &str, axes: &mut Vec<Axis>) -> Result<(), Problem> {
    let Value::Table(table) = &node.value else { unreachable!("[sweep] and what is below it are tables") };
    for (name, entry) in table {
        let path = join(path, name);
        match &entry.node.value {
            Value::Table(_) => collect_axes(&entry.node, &path, axes)?,
            Value::Array(values) if !values.is_empty() => {
                let setting =
                    |node: &Node| Setting { path: path.clone(), key: entry.key.clone(), node: node.clone() };
                axes.push(values.iter().map(setting).collect());
            }
            other => {
                return Err(Problem::new(format!(
                    "`sweep.{path}` takes a list of values, not {}",
                    other.kind()
                ))
                .at(&entry.node.origin)
                .help(format!("for example: \"{path}\" = [1, 2, 3]")));
            }
        }
    }
    Ok(())
}
