//! Result directories: manifest.json, flows.csv, series.csv, and what a trace adds.
//!
//! A directory is written under another name beside its place and renamed at the end: a run that is interrupted or
//! meets a full disk leaves nothing behind.

mod directory;
mod file;
mod movements;
mod tables;

pub use directory::{Directory, Existing, OutputError};
pub use file::write_file;
pub use movements::movements;

use crate::run::{self, Interrupted, Run, Watch};
use crate::scenario::Scenario;
use crate::summary::Summary;
use hopline_sim::Spec;
use hopline_sim::trace::Pcap;
use serde::Serialize;
use serde_json::Value as Json;
use sha2::{Digest, Sha256};
use std::io::Write;

/// Name of the file by which a result directory is known.
pub const MANIFEST: &str = "manifest.json";
/// Name of the table of flows.
pub const FLOWS: &str = "flows.csv";
/// Name of the table of series.
pub const SERIES: &str = "series.csv";
/// Name of the trace.
pub const TRACE: &str = "run.pcapng";
/// Value of `format` in a manifest: what wrote it, and the version of the layout.
pub const FORMAT: &str = "hopline-run-1";

/// Writes the tables and the manifest of `run`. `trace` says whether [`TRACE`] is there already.
///
/// # Errors
///
/// A file that cannot be written.
pub fn write(
    directory: &Directory,
    scenario: &Scenario,
    spec: &Spec,
    number: u64,
    run: &Run,
    trace: Trace,
) -> Result<(), OutputError> {
    let summary = Summary::of(spec, run);
    directory.write(FLOWS, |file| tables::flows(file, &summary))?;
    directory.write(SERIES, |file| tables::series(file, spec, &run.outcome))?;
    let manifest = Manifest::of(scenario, number, &summary, trace);
    directory.write(MANIFEST, |file| {
        serde_json::to_writer_pretty(&mut *file, &manifest)?;
        file.write_all(b"\n")
    })
}

/// Runs `spec` as run number `number`, with a capture of everything in [`TRACE`].
///
/// # Errors
///
/// A file that cannot be written, or [`Interrupted`].
pub fn traced(
    directory: &Directory,
    spec: &Spec,
    number: u64,
    watch: &dyn Watch,
) -> Result<Run, TracedError> {
    let path = |error| TracedError::Output(directory.refused(TRACE, error));
    let capture = Pcap::new(directory.file(TRACE)?, spec).map_err(path)?;
    let (run, capture) = run::traced(spec, number, capture, watch).map_err(TracedError::Interrupted)?;
    capture.finish().and_then(|mut file| file.flush()).map_err(path)?;
    Ok(run)
}

/// Why a traced run did not come to its end.
#[derive(Debug)]
pub enum TracedError {
    /// The watcher asked to give up.
    Interrupted(Interrupted),
    /// The capture cannot be written.
    Output(OutputError),
}

impl From<OutputError> for TracedError {
    fn from(error: OutputError) -> Self {
        Self::Output(error)
    }
}

/// Whether a run was traced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trace {
    /// No trace.
    None,
    /// [`TRACE`].
    Pcapng,
}

/// What a result directory says of itself.
#[derive(Serialize)]
struct Manifest<'a> {
    format: &'static str,
    /// Of hopline.
    version: &'static str,
    scenario: String,
    scenario_file: &'a str,
    /// As `sha256sum` of the scenario file.
    scenario_sha256: String,
    /// What was put over the file.
    settings: Vec<String>,
    seed: u64,
    run: u64,
    fingerprint: &'a str,
    sim_s: f64,
    cpu_s: f64,
    events: u64,
    aggregate_goodput_bps: f64,
    jain: f64,
    jain_2s: f64,
    files: Vec<&'static str>,
    /// Every parameter that is given or has a default.
    parameters: Json,
}

impl<'a> Manifest<'a> {
    fn of(scenario: &'a Scenario, run: u64, summary: &'a Summary, trace: Trace) -> Self {
        Self {
            format: FORMAT,
            version: env!("CARGO_PKG_VERSION"),
            scenario: scenario.name(),
            scenario_file: &scenario.source().name,
            scenario_sha256: hex(&Sha256::digest(&scenario.source().text)),
            settings: scenario.settings().iter().map(|s| format!("{}={}", s.path, s.text())).collect(),
            seed: scenario.seed(),
            run,
            fingerprint: &summary.fingerprint,
            sim_s: summary.sim_s,
            cpu_s: summary.cpu_s,
            events: summary.events,
            aggregate_goodput_bps: summary.aggregate_goodput_bps,
            jain: summary.jain,
            jain_2s: summary.jain_2s,
            files: match trace {
                Trace::None => vec![FLOWS, SERIES],
                Trace::Pcapng => vec![FLOWS, SERIES, TRACE],
            },
            parameters: scenario.parameters(),
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}
