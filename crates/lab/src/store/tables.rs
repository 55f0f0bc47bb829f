//! Tables of an experiment, made of its records in the order of points and runs.

use super::StoreError;
use super::journal::Journal;
use super::table::Files;
use crate::comparison::Fingerprint;
use crate::description::Description;
use crate::record::Record;
use crate::tables::{LeadingCells, Table};
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

/// Tables that exist only if a neighbourhood was observed.
const NEIGHBORHOODS: [&str; 2] = ["neighborhoods.csv", "neighborhoods.parquet"];

/// All files that [`write`] makes; Parquet only in a build with the feature `parquet`.
pub(super) const FILES: [&str; 9] = [
    "runs.csv",
    "runs.parquet",
    "metrics.csv",
    "metrics.parquet",
    "series.csv",
    "series.parquet",
    NEIGHBORHOODS[0],
    NEIGHBORHOODS[1],
    "timing.csv",
];

/// Totals of the experiment.
pub(super) struct Totals {
    pub(super) fingerprints: Vec<Fingerprint>,
    pub(super) failed: u64,
    pub(super) cpu_s: f64,
}

/// Writes all tables of runs 1 to `runs`, and passes every record to `each`.
pub(super) fn write(
    path: &Path,
    description: &Description,
    journal: &mut Journal,
    runs: u64,
    each: &mut dyn FnMut(Record),
) -> Result<Totals, StoreError> {
    let drafts = tempfile::Builder::new().prefix(".tables-").tempdir_in(path);
    let drafts = drafts.map_err(|e| StoreError::io(path, e))?;
    let failed = |e: io::Error| StoreError::io(path, e);
    let mut tables = Tables::new(drafts.path(), description).map_err(failed)?;
    journal.each(runs, |record| {
        tables.add(&record).map_err(failed)?;
        each(record);
        Ok::<(), StoreError>(())
    })?;
    let totals = tables.finish().map_err(failed)?;
    FILES.iter().try_for_each(|name| place(drafts.path(), path, name)).map_err(failed)?;
    Ok(totals)
}

/// Moves the draft called `name` to its place, if there is one.
fn place(drafts: &Path, path: &Path, name: &str) -> io::Result<()> {
    let optional = NEIGHBORHOODS.contains(&name) || !is_written(name);
    match fs::rename(drafts.join(name), path.join(name)) {
        Err(e) if optional && e.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

/// Returns whether this build writes the file called `name`.
fn is_written(name: &str) -> bool {
    cfg!(feature = "parquet") || !name.ends_with(".parquet")
}

/// Checks that this build writes all tables that exist in `path`: otherwise some would be out of date.
pub(super) fn check_writable(path: &Path) -> Result<(), StoreError> {
    match FILES.iter().any(|name| !is_written(name) && path.join(name).exists()) {
        true => Err(StoreError::NeedsParquet { path: path.to_owned() }),
        false => Ok(()),
    }
}

struct Tables {
    heads: LeadingCells,
    runs: Files,
    metrics: Files,
    series: Files,
    neighborhoods: Files,
    folder: PathBuf,
    timing: csv::Writer<File>,
    fingerprints: Vec<Fingerprint>,
    failed: u64,
    cpu_s: f64,
}

impl Tables {
    fn new(folder: &Path, description: &Description) -> io::Result<Self> {
        let heads = LeadingCells::of(description);
        let files = |name: &str, table: Table| Files::create(folder, name, &table.columns(&heads));
        let mut timing = csv::Writer::from_writer(File::create(folder.join("timing.csv"))?);
        timing.write_record(["point", "run", "cpu_s", "wall_s"])?;
        Ok(Self {
            runs: files("runs", Table::Runs)?,
            metrics: files("metrics", Table::Metrics)?,
            series: files("series", Table::Series)?,
            neighborhoods: files("neighborhoods", Table::Neighborhoods)?,
            heads,
            folder: folder.to_owned(),
            timing,
            fingerprints: vec![Fingerprint::default(); description.points.len()],
            failed: 0,
            cpu_s: 0.0,
        })
    }

    fn add(&mut self, record: &Record) -> io::Result<()> {
        let files = [
            (Table::Runs, &mut self.runs),
            (Table::Metrics, &mut self.metrics),
            (Table::Series, &mut self.series),
            (Table::Neighborhoods, &mut self.neighborhoods),
        ];
        for (table, files) in files {
            table.rows(&self.heads, record, &mut |cells| files.row(cells))?;
        }
        let Ok(done) = &record.result else {
            self.failed += 1;
            return Ok(());
        };
        self.fingerprints[record.point].add(done.fingerprint);
        self.cpu_s += done.cpu_s;
        let numbers = [record.point.to_string(), record.run.to_string()];
        let times = [done.cpu_s.to_string(), done.wall_s.to_string()];
        Ok(self.timing.write_record(numbers.iter().chain(&times))?)
    }

    fn finish(mut self) -> io::Result<Totals> {
        let unobserved = self.neighborhoods.is_empty();
        for files in [self.runs, self.metrics, self.series, self.neighborhoods] {
            files.finish()?;
        }
        if unobserved {
            let drafts = NEIGHBORHOODS.map(|name| self.folder.join(name));
            drafts.iter().filter(|path| path.exists()).try_for_each(fs::remove_file)?;
        }
        self.timing.flush()?;
        Ok(Totals { fingerprints: self.fingerprints, failed: self.failed, cpu_s: self.cpu_s })
    }
}
