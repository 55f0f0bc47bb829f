//! Directory that stores an experiment during and after its execution: records survive any interruption.
//!
//! `manifest.json` describes the experiment; `records.jsonl` has a line for each run, appended as runs end.
//! When the experiment is complete, tables are made of the records: `runs`, `metrics` and `series`, each as
//! CSV and, in a build with the feature `parquet`, as Parquet. They depend on the plan alone; `timing.csv`
//! does not.

mod error;
mod journal;
#[cfg(feature = "parquet")]
pub(crate) mod parquet_table;
mod table;
mod tables;
#[cfg(test)]
mod tests;

pub use error::StoreError;

use crate::description::Description;
use crate::execute::Sink;
use crate::objective::MetricSelection;
use crate::output::{OutputError, check_directory, replace_file};
use crate::record::Record;
use journal::{Access, Journal};
use serde::{Deserialize, Serialize};
use std::fs::{self, File, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Name of the file that identifies a directory.
pub const MANIFEST: &str = "manifest.json";
/// Name of the file of records.
pub const RECORDS: &str = "records.jsonl";
/// Name of the HTML report.
pub const REPORT: &str = "report.html";
/// Number of records that [`Store::cheapest`] examines.
const MAX_COMPARED: usize = 100;
/// Value of `format` in a manifest: the writer, and the version of the layout.
pub const FORMAT: &str = "hopline-experiment-1";

/// Directory of results.
#[derive(Debug)]
pub struct Store {
    path: PathBuf,
    manifest: Manifest,
    journal: Journal,
    /// Lock, held while the directory is written.
    _lock: Option<File>,
}

/// Manifest of a directory.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Manifest {
    format: String,
    status: Status,
    /// Runs of each point; 0 while unknown.
    runs: u64,
    #[serde(flatten)]
    description: Description,
    /// For a complete experiment: by point, the hash of the fingerprints of its runs.
    fingerprints: Vec<String>,
    failed_runs: u64,
    cpu_s: f64,
}

/// State of an experiment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// Some runs are missing.
    Unfinished,
    /// All runs and tables are present.
    Complete,
}

/// A stored run that can be repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sample {
    pub(crate) point: usize,
    pub(crate) run: u64,
    pub(crate) fingerprint: u64,
}

/// Handling of existing results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// Continue with existing results, if they are of the same experiment.
    Resume,
    /// Begin anew, replacing existing results, even of another experiment.
    Restart,
}

impl Store {
    /// Opens `path` to store the experiment of `description`; it is created if it is missing.
    ///
    /// # Errors
    ///
    /// If it holds other data, another process writes it, or the file system refuses.
    pub fn open(path: &Path, description: &Description, start: Start) -> Result<Self, StoreError> {
        if let Err(OutputError::WrongKind { target, why }) = check_directory(path) {
            return Err(StoreError::foreign(&target, why));
        }
        let found = Self::found(path)?;
        fs::create_dir_all(path).map_err(|e| StoreError::io(path, e))?;
        let lock = lock(path)?;
        match (&found, start) {
            (Some(found), Start::Resume) => {
                found.matches(path, description)?;
                tables::check_writable(path)?;
            }
            (Some(_), Start::Restart) => clear(path)?,
            (None, _) => {}
        }
        let manifest = Manifest::new(description);
        write(path, MANIFEST, |file| manifest.write(file))?;
        let journal = Journal::open(&path.join(RECORDS), Access::Append)?;
        Ok(Self { path: path.to_owned(), manifest, journal, _lock: Some(lock) })
    }

    /// Opens `path` for reading.
    ///
    /// # Errors
    ///
    /// If it holds no results, or results of another version, or the file system refuses.
    pub fn read(path: &Path) -> Result<Self, StoreError> {
        let manifest =
            Self::found(path)?.ok_or_else(|| StoreError::foreign(path, "it holds no manifest.json"))?;
        manifest.check_version(path)?;
        let journal = Journal::open(&path.join(RECORDS), Access::Read)?;
        Ok(Self { path: path.to_owned(), manifest, journal, _lock: None })
    }

    /// Returns the manifest in `path`; `None` if there is none.
    fn found(path: &Path) -> Result<Option<Manifest>, StoreError> {
        let mut entries = match fs::read_dir(path) {
            Ok(entries) => entries,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(e) if e.kind() == io::ErrorKind::NotADirectory => {
                return Err(StoreError::foreign(path, "it is not a directory"));
            }
            Err(e) => return Err(StoreError::io(path, e)),
        };
        let text = match fs::read(path.join(MANIFEST)) {
            Ok(text) => text,
            Err(e) if e.kind() == io::ErrorKind::NotFound => {
                let left_over = |entry: io::Result<fs::DirEntry>| entry.is_ok_and(|e| e.file_name() == LOCK);
                return if entries.all(left_over) {
                    Ok(None)
                } else {
                    Err(StoreError::foreign(path, "it holds files but no manifest.json of an experiment"))
                };
            }
            Err(e) => return Err(StoreError::io(path, e)),
        };
        let format =
            |text: &[u8]| serde_json::from_slice::<serde_json::Value>(text).map(|m| m["format"].clone());
        match (serde_json::from_slice(&text), format(&text)) {
            (Ok(manifest), _) => Ok(Some(manifest)),
            (Err(_), Ok(format)) if format == crate::output::FORMAT => {
                Err(StoreError::foreign(path, "it holds a single run, of `hopline run`"))
            }
            (Err(e), Ok(format)) if format == FORMAT => {
                Err(StoreError::Damaged { path: path.join(MANIFEST), line: e.line(), why: e.to_string() })
            }
            _ => Err(StoreError::foreign(path, "its manifest.json is not that of an experiment")),
        }
    }

    /// Returns the description of the experiment.
    #[must_use]
    pub const fn description(&self) -> &Description {
        &self.manifest.description
    }

    /// Returns the state of the experiment.
    #[must_use]
    pub const fn status(&self) -> Status {
        self.manifest.status
    }

    /// Returns the number of stored runs of all points.
    #[must_use]
    pub fn len(&self) -> usize {
        self.journal.len()
    }

    /// Returns whether no run is stored.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the number of runs of each point: of a complete experiment, or the largest of any point so
    /// far.
    #[must_use]
    pub fn runs(&self) -> u64 {
        match self.manifest.status {
            Status::Complete => self.manifest.runs,
            Status::Unfinished => self.journal.keys().into_iter().map(|(_, run)| run).max().unwrap_or(0),
        }
    }

    /// Returns the run with the fewest events among the first that did not fail: the cheapest to repeat.
    ///
    /// # Errors
    ///
    /// If records cannot be read.
    pub(crate) fn cheapest(&mut self) -> Result<Option<Sample>, StoreError> {
        let mut cheapest: Option<(u64, Sample)> = None;
        for (point, run) in self.journal.keys().into_iter().take(MAX_COMPARED) {
            let Some(Record { result: Ok(done), .. }) = self.journal.read(point, run)? else { continue };
            if cheapest.as_ref().is_none_or(|(events, _)| done.events < *events) {
                cheapest = Some((done.events, Sample { point, run, fingerprint: done.fingerprint }));
            }
        }
        Ok(cheapest.map(|(_, sample)| sample))
    }

    /// Passes every record up to run `runs` to `each`, by point and run.
    ///
    /// # Errors
    ///
    /// If records cannot be read, and errors of `each`.
    pub fn for_each<E: From<StoreError>>(
        &mut self,
        runs: u64,
        each: impl FnMut(Record) -> Result<(), E>,
    ) -> Result<(), E> {
        self.journal.each(runs, each)
    }

    /// Completes the experiment with `runs` runs of each point: writes the tables and the state. Passes every
    /// record to `each`, by point and run.
    ///
    /// # Errors
    ///
    /// If files cannot be written; the records remain.
    pub fn complete(&mut self, runs: u64, each: &mut dyn FnMut(Record)) -> Result<(), StoreError> {
        let totals = tables::write(&self.path, &self.manifest.description, &mut self.journal, runs, each)?;
        self.manifest.status = Status::Complete;
        self.manifest.runs = runs;
        self.manifest.fingerprints = totals.fingerprints.iter().map(ToString::to_string).collect();
        self.manifest.failed_runs = totals.failed;
        self.manifest.cpu_s = totals.cpu_s;
        write(&self.path, MANIFEST, |file| self.manifest.write(file))
    }

    /// Writes a file beside the tables.
    ///
    /// # Errors
    ///
    /// If the file cannot be written.
    pub fn put(&self, name: &str, content: &[u8]) -> Result<(), StoreError> {
        write(&self.path, name, |file| file.write_all(content))
    }
}

impl Sink for Store {
    type Error = StoreError;

    fn has(&self, point: usize, run: u64) -> bool {
        self.journal.has(point, run)
    }

    fn values(&mut self, point: usize, target: &MetricSelection, runs: u64) -> Result<Vec<f64>, StoreError> {
        let mut values = Vec::new();
        for run in 1..=runs {
            let record = self.journal.read(point, run)?;
            values.extend(record.and_then(|r| r.result.ok()).and_then(|done| done.value(target)));
        }
        Ok(values)
    }

    fn store(&mut self, record: Record) -> Result<(), StoreError> {
        self.journal.append(&record)
    }
}

impl Manifest {
    fn new(description: &Description) -> Self {
        Self {
            format: FORMAT.to_owned(),
            status: Status::Unfinished,
            runs: 0,
            description: description.clone(),
            fingerprints: Vec::new(),
            failed_runs: 0,
            cpu_s: 0.0,
        }
    }

    /// Checks that results of `asked` may be added to the stored ones.
    fn matches(&self, path: &Path, asked: &Description) -> Result<(), StoreError> {
        self.check_version(path)?;
        if self.description.identity == asked.identity {
            return Ok(());
        }
        Err(StoreError::OtherPlan { path: path.to_owned(), why: difference(&self.description, asked) })
    }

    fn check_version(&self, path: &Path) -> Result<(), StoreError> {
        let ours = env!("CARGO_PKG_VERSION");
        if self.format == FORMAT && self.description.version == ours {
            return Ok(());
        }
        let theirs = self.description.version.clone();
        Err(StoreError::OtherVersion { path: path.to_owned(), theirs })
    }

    fn write(&self, file: &mut dyn Write) -> io::Result<()> {
        serde_json::to_writer_pretty(&mut *file, self)?;
        file.write_all(b"\n")
    }
}

/// Returns the first difference between two experiments.
fn difference(theirs: &Description, ours: &Description) -> String {
    let differ = |what: &str, a: &dyn std::fmt::Display, b: &dyn std::fmt::Display| {
        format!("{what} {a}, this plan has {b}")
    };
    if theirs.points.len() != ours.points.len() {
        return differ("it has points:", &theirs.points.len(), &ours.points.len());
    }
    if theirs.seed != ours.seed {
        return differ("it has seed", &theirs.seed, &ours.seed);
    }
    if theirs.kernel != ours.kernel {
        let of =
            |kernel: &Option<String>| kernel.as_ref().map_or("no kernels".into(), |v| format!("kernels {v}"));
        return differ("it has", &of(&theirs.kernel), &of(&ours.kernel));
    }
    let labels = theirs.points.iter().zip(&ours.points);
    if let Some((a, b)) = labels.map(|(a, b)| (&a.label, &b.label)).find(|(a, b)| a != b) {
        return differ("it has a point", a, b);
    }
    if theirs.scenario_sha256 != ours.scenario_sha256 {
        return "the scenario file was another".to_owned();
    }
    let mut files = theirs.named_files.iter().zip(&ours.named_files);
    if let Some((_, ours)) = files.find(|(a, b)| a.sha256 != b.sha256) {
        return format!("the file {} that the scenario names was another", ours.file);
    }
    "a parameter, a machine of your own, a file that the scenario names, or what is kept of a run was another"
        .to_owned()
}

/// Name of the file that is locked while the directory is written.
const LOCK: &str = ".lock";

/// Locks a directory; the lock ends with the process.
fn lock(path: &Path) -> Result<File, StoreError> {
    let name = path.join(LOCK);
    let file = File::create(&name).map_err(|e| StoreError::io(&name, e))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(StoreError::Busy { path: path.to_owned() }),
        Err(TryLockError::Error(e)) => Err(StoreError::io(&name, e)),
    }
}

/// Removes the results in `path`.
fn clear(path: &Path) -> Result<(), StoreError> {
    for name in [RECORDS, REPORT].into_iter().chain(tables::FILES) {
        let name = path.join(name);
        match fs::remove_file(&name) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(StoreError::io(&name, e)),
            _ => {}
        }
    }
    Ok(())
}

/// Writes a file of the directory atomically.
fn write(
    folder: &Path,
    name: &str,
    content: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<(), StoreError> {
    let target = folder.join(name);
    replace_file(&target, content).map_err(|e| StoreError::io(&target, e))
}
