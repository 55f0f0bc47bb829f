//! The tables of an experiment, made of its records in the order of points and runs.

use super::table::{Cell, Kind, Table};
use super::{Store, StoreError};
use crate::comparison::Fingerprint;
use crate::description::Description;
use crate::metrics::Level;
use crate::record::{Done, Neighborhood, Record};
use serde_json::Value as Json;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

/// Those that are there only if a neighbourhood was observed.
const NEIGHBORHOODS: [&str; 2] = ["neighborhoods.csv", "neighborhoods.parquet"];

/// Every file that [`write`] makes.
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

/// What is said of the whole.
pub(super) struct Totals {
    pub(super) fingerprints: Vec<Fingerprint>,
    pub(super) failed: u64,
    pub(super) cpu_s: f64,
}

/// Writes all tables of runs 1 to `runs`, and hands every record on to `each`.
pub(super) fn write(
    store: &mut Store,
    runs: u64,
    each: &mut dyn FnMut(Record),
) -> Result<Totals, StoreError> {
    let path = store.path.clone();
    let drafts = tempfile::Builder::new().prefix(".tables-").tempdir_in(&path);
    let drafts = drafts.map_err(|e| StoreError::io(&path, e))?;
    let failed = |e: io::Error| StoreError::io(&path, e);
    let mut tables = Tables::new(drafts.path(), &store.manifest.description).map_err(failed)?;
    store.each(runs, |record| {
        tables.add(&record).map_err(failed)?;
        each(record);
        Ok::<(), StoreError>(())
    })?;
    let totals = tables.finish().map_err(failed)?;
    for name in FILES {
        match fs::rename(drafts.path().join(name), path.join(name)) {
            Err(e) if e.kind() == io::ErrorKind::NotFound && NEIGHBORHOODS.contains(&name) => {}
            other => other.map_err(failed)?,
        }
    }
    Ok(totals)
}

struct Tables {
    points: Vec<Vec<OwnedCell>>,
    runs: Table,
    metrics: Table,
    series: Table,
    neighborhoods: Table,
    /// Its rows.
    observed: u64,
    folder: PathBuf,
    timing: csv::Writer<File>,
    fingerprints: Vec<Fingerprint>,
    failed: u64,
    cpu_s: f64,
}

/// A setting of a point, as it stands in every row of the point.
enum OwnedCell {
    Text(String),
    Real(f64),
    Empty,
}

impl Tables {
    fn new(folder: &Path, description: &Description) -> io::Result<Self> {
        let keys = Key::of(description);
        let table = |name: &str, columns: &[(&str, Kind)]| {
            let key = keys.iter().map(|key| (key.name.clone(), key.kind));
            let own = columns.iter().map(|(name, kind)| ((*name).to_owned(), *kind));
            let head = [("point".to_owned(), Kind::Whole), ("variant".to_owned(), Kind::Text)];
            let columns: Vec<_> = head.into_iter().chain(key).chain(own).collect();
            let file = |extension: &str| File::create(folder.join(format!("{name}.{extension}")));
            Table::new(file("csv")?, file("parquet")?, &columns)
        };
        use Kind::{Real, Text, Whole};
        let mut timing = csv::Writer::from_writer(File::create(folder.join("timing.csv"))?);
        timing.write_record(["point", "run", "cpu_s", "wall_s"])?;
        Ok(Self {
            points: (0..description.points.len()).map(|i| settings(description, &keys, i)).collect(),
            runs: table(
                "runs",
                &[("run", Whole), ("fingerprint", Text), ("events", Whole), ("sim_s", Real), ("error", Text)],
            )?,
            metrics: table(
                "metrics",
                &[
                    ("run", Whole),
                    ("group", Text),
                    ("flow", Text),
                    ("node", Text),
                    ("metric", Text),
                    ("value", Real),
                ],
            )?,
            series: table(
                "series",
                &[
                    ("run", Whole),
                    ("flow", Text),
                    ("time_s", Real),
                    ("goodput_bps", Real),
                    ("cwnd_bytes", Whole),
                    ("srtt_s", Real),
                    ("queue_packets", Whole),
                    ("delay_mean_s", Real),
                ],
            )?,
            neighborhoods: table(
                "neighborhoods",
                &[
                    ("run", Whole),
                    ("node", Text),
                    ("time_s", Real),
                    ("queue_packets", Whole),
                    ("estimate_packets", Real),
                    ("latest_packets", Real),
                ],
            )?,
            observed: 0,
            folder: folder.to_owned(),
            timing,
            fingerprints: vec![Fingerprint::default(); description.points.len()],
            failed: 0,
            cpu_s: 0.0,
        })
    }

    fn add(&mut self, record: &Record) -> io::Result<()> {
        match &record.result {
            Ok(done) => {
                self.fingerprints[record.point].add(done.fingerprint);
                self.cpu_s += done.cpu_s;
                self.add_done(record.point, record.run, done)
            }
            Err(why) => {
                self.failed += 1;
                let own = [Cell::Whole(record.run), Cell::Empty, Cell::Empty, Cell::Empty, Cell::Text(why)];
                self.runs.row(&cells(&self.points, record.point, &own))
            }
        }
    }

    fn add_done(&mut self, point: usize, run: u64, done: &Done) -> io::Result<()> {
        let fingerprint = format!("{:016x}", done.fingerprint);
        let own = [
            Cell::Whole(run),
            Cell::Text(&fingerprint),
            Cell::Whole(done.events),
            Cell::Real(done.sim_s),
            Cell::Empty,
        ];
        self.runs.row(&cells(&self.points, point, &own))?;
        for value in &done.metrics {
            let subject = Cell::Text(&value.subject);
            let (group, flow, node) = match value.metric.level() {
                Level::Run => (Cell::Empty, Cell::Empty, Cell::Empty),
                Level::Group => (subject, Cell::Empty, Cell::Empty),
                Level::Flow | Level::Pair => (Cell::Empty, subject, Cell::Empty),
                Level::Node => (Cell::Empty, Cell::Empty, subject),
            };
            let own =
                [Cell::Whole(run), group, flow, node, Cell::Text(value.metric.name), Cell::Real(value.value)];
            self.metrics.row(&cells(&self.points, point, &own))?;
        }
        for series in &done.series {
            for second in series.seconds() {
                let own = [
                    Cell::Whole(run),
                    Cell::Text(&series.flow),
                    Cell::Real(second.time_s),
                    Cell::Real(second.goodput_bps),
                    second.cwnd_bytes.map_or(Cell::Empty, Cell::Whole),
                    second.srtt_s.map_or(Cell::Empty, Cell::Real),
                    Cell::Whole(second.queue_packets.into()),
                    second.delay_s.map_or(Cell::Empty, Cell::Real),
                ];
                self.series.row(&cells(&self.points, point, &own))?;
            }
        }
        for node in &done.neighborhoods {
            self.add_neighborhood(point, run, node)?;
        }
        let times = [point.to_string(), run.to_string(), done.cpu_s.to_string(), done.wall_s.to_string()];
        Ok(self.timing.write_record(times)?)
    }

    fn add_neighborhood(&mut self, point: usize, run: u64, node: &Neighborhood) -> io::Result<()> {
        for (i, time_s) in node.time_s.iter().enumerate() {
            let own = [
                Cell::Whole(run),
                Cell::Text(&node.node),
                Cell::Real(*time_s),
                Cell::Whole(node.queue_packets[i].into()),
                Cell::Real(node.estimate_packets[i]),
                Cell::Real(node.latest_packets[i]),
            ];
            self.neighborhoods.row(&cells(&self.points, point, &own))?;
            self.observed += 1;
        }
        Ok(())
    }

    fn finish(mut self) -> io::Result<Totals> {
        self.runs.finish()?;
        self.metrics.finish()?;
        self.series.finish()?;
        self.neighborhoods.finish()?;
        if self.observed == 0 {
            NEIGHBORHOODS.iter().try_for_each(|name| fs::remove_file(self.folder.join(name)))?;
        }
        self.timing.flush()?;
        Ok(Totals { fingerprints: self.fingerprints, failed: self.failed, cpu_s: self.cpu_s })
    }
}

/// A column of settings.
struct Key {
    name: String,
    kind: Kind,
}

impl Key {
    /// A column for each key: of numbers where every point that has the key has a number.
    fn of(description: &Description) -> Vec<Self> {
        let key = |name: &String| {
            let mut values = description.points.iter().filter_map(|p| p.settings.get(name));
            let kind = if values.all(Json::is_number) { Kind::Real } else { Kind::Text };
            Self { name: name.clone(), kind }
        };
        description.keys.iter().map(key).collect()
    }
}

/// Label and settings of a point, one a column.
fn settings(description: &Description, keys: &[Key], point: usize) -> Vec<OwnedCell> {
    let point = &description.points[point];
    let label = point.variant.as_ref().unwrap_or(&point.label);
    let cell = |key: &Key| match (key.kind, point.settings.get(&key.name)) {
        (_, None) => OwnedCell::Empty,
        (Kind::Real, Some(value)) => value.as_f64().map_or(OwnedCell::Empty, OwnedCell::Real),
        (_, Some(Json::String(text))) => OwnedCell::Text(text.clone()),
        (_, Some(value)) => OwnedCell::Text(value.to_string()),
    };
    std::iter::once(OwnedCell::Text(label.clone())).chain(keys.iter().map(cell)).collect()
}

/// A whole row: the point, its settings, and what the row itself has.
fn cells<'a>(points: &'a [Vec<OwnedCell>], point: usize, own: &[Cell<'a>]) -> Vec<Cell<'a>> {
    let settings = points[point].iter().map(|cell| match cell {
        OwnedCell::Text(text) => Cell::Text(text),
        OwnedCell::Real(x) => Cell::Real(*x),
        OwnedCell::Empty => Cell::Empty,
    });
    std::iter::once(Cell::Whole(point as u64)).chain(settings).chain(own.iter().copied()).collect()
}
