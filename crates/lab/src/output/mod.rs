//! Result directories: manifest.json, flows.csv, series.csv, and trace files; directories of qlog files.
//!
//! A directory is written under another name beside its place and renamed at the end: an interruption or a
//! full disk leaves nothing behind, and what a killed process leaves is removed by the next one.

mod directory;
mod error;
mod file;
mod locked_folder;
mod movements;
mod names;
mod page;
mod tables;

pub use directory::{Directory, check_directory};
pub use error::{Existing, OutputError};
pub(crate) use file::replace_file;
pub use file::{check_file, write_file};
pub use hopline_sim::trace::CaptureFilter;
pub use locked_folder::LockedFolder;
pub use movements::movements;
pub use names::{CAPTURE, DRAWS_FORMAT, FLOWMON, FLOWS, FORMAT, MANIFEST, NEIGHBORHOODS, NS2_TRACE, SERIES};
pub use page::ReportFile;

use crate::description::NamedFile;
use crate::digest::hex;
use crate::export::flowmon;
use crate::export::qlog::QlogTracer;
use crate::record::CompletedRun;
use crate::run::{self, Observer, Run, RunError};
use hopline_scenario::Scenario;
use hopline_sim::Spec;
use hopline_sim::trace::{Ns2Tracer, PcapTracer};
use serde::Serialize;
use serde_json::{Map, Value as Json};
use sha2::{Digest, Sha256};
use std::io::Write;

/// Writes the tables and the manifest of `done`, which was run number `number` of `scenario`. The `extras`
/// exist already: [`traced`] wrote them.
///
/// # Errors
///
/// If a file cannot be written.
pub fn write(
    directory: &Directory,
    scenario: &Scenario,
    number: u64,
    done: &CompletedRun,
    extras: &[Extra],
) -> Result<(), OutputError> {
    directory.write(FLOWS, |file| tables::flows(file, done))?;
    directory.write(SERIES, |file| tables::series(file, &done.series))?;
    if !done.neighborhoods.is_empty() {
        directory.write(NEIGHBORHOODS, |file| tables::neighborhoods(file, &done.neighborhoods))?;
    }
    let manifest = Manifest::of(scenario, number, done, extras);
    directory.write(MANIFEST, |file| {
        serde_json::to_writer_pretty(&mut *file, &manifest)?;
        file.write_all(b"\n")
    })
}

/// Files that are written while a run goes on.
#[derive(Clone, Copy, Debug, Default)]
pub struct Traces<'a> {
    /// Result directory, and what it has besides tables and manifest.
    pub results: Option<(&'a Directory, &'a [Extra])>,
    /// Directory of qlog files, and their title.
    pub qlog: Option<(&'a Directory, &'a str)>,
}

/// Runs `spec` as run number `number`, and writes the traces.
///
/// # Errors
///
/// [`RunError`], or if a file cannot be written.
pub fn traced(
    traces: Traces<'_>,
    spec: &Spec,
    number: u64,
    watch: &dyn Observer,
) -> Result<Run, TracedError> {
    let run = with_traces(traces, spec, number, watch)?;
    if let Some((directory, extras)) = traces.results
        && extras.contains(&Extra::Flowmon)
    {
        directory.write(FLOWMON, |file| flowmon::write(file, spec, &run.outcome))?;
    }
    Ok(run)
}

fn with_traces(
    traces: Traces<'_>,
    spec: &Spec,
    number: u64,
    watch: &dyn Observer,
) -> Result<Run, TracedError> {
    let refused =
        |directory: &Directory, name: &str, error| TracedError::Output(directory.file_error(name, error));
    let has = |extra| traces.results.filter(|(_, extras)| extras.contains(&extra));
    let captured = traces
        .results
        .and_then(|(directory, extras)| Some((directory, extras.iter().find_map(Extra::captured)?)));
    let capture = captured.map(|(directory, captured)| {
        let tracer = PcapTracer::with_filter(directory.file(CAPTURE)?, spec, captured);
        Ok::<_, TracedError>((directory, tracer.map_err(|error| refused(directory, CAPTURE, error))?))
    });
    let ns2 = has(Extra::Ns2Trace).map(|(directory, _)| {
        Ok::<_, TracedError>((directory, Ns2Tracer::new(directory.file(NS2_TRACE)?, spec)))
    });
    let qlog =
        traces.qlog.map(|(directory, title)| (directory, QlogTracer::new(spec, title, directory.appender())));
    let (in_capture, capture) = capture.transpose()?.unzip();
    let (in_ns2, ns2) = ns2.transpose()?.unzip();
    let (in_qlog, qlog) = qlog.unzip();
    if capture.is_none() && ns2.is_none() && qlog.is_none() {
        return run::untraced(spec, number, watch).map_err(TracedError::Run);
    }
    let (run, (capture, (ns2, qlog))) =
        run::traced(spec, number, (capture, (ns2, qlog)), watch).map_err(TracedError::Run)?;
    if let (Some(directory), Some(capture)) = (in_capture, capture) {
        let finished = capture.finish().and_then(|mut file| file.flush());
        finished.map_err(|error| refused(directory, CAPTURE, error))?;
    }
    if let (Some(directory), Some(ns2)) = (in_ns2, ns2) {
        ns2.finish().map_err(|error| refused(directory, NS2_TRACE, error))?;
    }
    if let (Some(directory), Some(qlog)) = (in_qlog, qlog) {
        qlog.finish().map_err(|(name, error)| refused(directory, &name, error))?;
    }
    Ok(run)
}

/// Reason for which a traced run was not completed.
#[derive(Debug)]
pub enum TracedError {
    /// The run failed.
    Run(RunError),
    /// A trace cannot be written.
    Output(OutputError),
}

impl From<OutputError> for TracedError {
    fn from(error: OutputError) -> Self {
        Self::Output(error)
    }
}

/// Optional file of a result directory, besides tables and manifest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Extra {
    /// [`CAPTURE`], of these nodes.
    Capture(CaptureFilter),
    /// [`NS2_TRACE`].
    Ns2Trace,
    /// [`FLOWMON`].
    Flowmon,
}

impl Extra {
    /// Returns the name of the file.
    #[must_use]
    pub const fn file(&self) -> &'static str {
        match self {
            Self::Capture(_) => CAPTURE,
            Self::Ns2Trace => NS2_TRACE,
            Self::Flowmon => FLOWMON,
        }
    }

    /// Returns the nodes of the capture, if it is one.
    fn captured(&self) -> Option<&CaptureFilter> {
        match self {
            Self::Capture(captured) => Some(captured),
            Self::Ns2Trace | Self::Flowmon => None,
        }
    }
}

/// Manifest of a result directory.
#[derive(Serialize)]
struct Manifest<'a> {
    format: &'static str,
    /// Version of hopline.
    version: &'static str,
    scenario: String,
    scenario_file: &'a str,
    /// As `sha256sum` of the scenario file.
    scenario_sha256: String,
    /// Files that the scenario names.
    named_files: Vec<NamedFile>,
    /// Settings over the scenario file.
    settings: Vec<String>,
    seed: u64,
    run: u64,
    fingerprint: String,
    sim_s: f64,
    cpu_s: f64,
    events: u64,
    /// Metrics of the run.
    #[serde(flatten)]
    totals: Map<String, Json>,
    files: Vec<&'static str>,
    /// All parameters that are given or have a default.
    parameters: Json,
}

impl<'a> Manifest<'a> {
    fn of(scenario: &'a Scenario, run: u64, done: &CompletedRun, extras: &[Extra]) -> Self {
        Self {
            format: FORMAT,
            version: env!("CARGO_PKG_VERSION"),
            scenario: scenario.name(),
            scenario_file: &scenario.source().name,
            scenario_sha256: hex(&Sha256::digest(&scenario.source().text)),
            named_files: NamedFile::of([scenario]),
            settings: scenario.settings().iter().map(|s| format!("{}={}", s.path, s.text())).collect(),
            seed: scenario.seed(),
            run,
            fingerprint: format!("{:016x}", done.fingerprint),
            sim_s: done.sim_s,
            cpu_s: done.cpu_s,
            events: done.events,
            totals: done.totals(),
            files: [FLOWS, SERIES].into_iter().chain(extras.iter().map(|extra| extra.file())).collect(),
            parameters: scenario.parameters(),
        }
    }
}
