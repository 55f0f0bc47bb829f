//! Traces of link rates from the files of a folder.

use hopline_config::source::{Problem, Problems, Source};
use hopline_core::{Duration, RandomStream};
use hopline_scenario::rate_trace::TraceFile;
use hopline_sim::spec::links::RateTrace;
use serde_json::Value as Json;
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::Path;
use std::sync::Arc;

/// Folder of the traces beside a scenario, so that no file of theirs has the name of a scenario.
const FOLDER: &str = "traces";
/// Interval of a mean rate of mahimahi's format, milliseconds: the default of `[[link.rate_trace]]`.
const INTERVAL_MS: u64 = 20;
/// Least mean rate of a stretch, as a share of that of its trace. Without it a stretch could be one long stop.
const LEAST_SHARE: f64 = 0.1;

/// Traces of link rates, in the order of the names of their files.
#[derive(Clone, Debug, Default)]
pub struct Traces {
    files: Vec<Arc<Trace>>,
}

/// A trace of link rates.
#[derive(Debug, PartialEq)]
pub struct Trace {
    /// Text of the file; its name is the path relative to a scenario.
    pub source: Arc<Source>,
    /// `true`: mahimahi's format, of which rates are made over intervals.
    has_opportunities: bool,
    /// Rates from the start of the trace on.
    rates: RateTrace,
}

impl Trace {
    /// Returns the name of the file in its folder.
    #[must_use]
    pub fn file_name(&self) -> &str {
        self.source.name.rsplit('/').next().unwrap_or_default()
    }
}

impl Traces {
    /// Reads all files of `folder`. Folders in it and hidden files do not count.
    ///
    /// # Errors
    ///
    /// The folder does not exist or has no files. For each file that is not a trace or has no rate, the first error in it.
    pub fn load(folder: &Path) -> Result<Self, Problems> {
        let (mut files, mut problems) = (Vec::new(), Vec::new());
        for name in names(folder)? {
            match read(folder, &name) {
                Ok(file) => files.push(Arc::new(file)),
                Err(problem) => problems.push(problem),
            }
        }
        if problems.is_empty() { Ok(Self { files }) } else { Err(Problems(problems)) }
    }

    /// Returns the number of files.
    #[must_use]
    pub fn len(&self) -> usize {
        self.files.len()
    }

    /// Returns whether there is no file.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// Draws a stretch of `length_s` seconds from one of the files, which are at least one.
    pub(super) fn stretch(&self, random: &mut RandomStream, length_s: f64) -> Stretch {
        let trace = &self.files[random.below(self.files.len() as u32) as usize];
        let period_s = trace.rates.period().as_secs_f64();
        let first_s = random.unit() * period_s;
        let least_bps = LEAST_SHARE * trace.rates.mean_bps() as f64;
        // Consecutive stretches cover the trace, so that at least one of them has half its mean rate.
        let starts = (0_u32..).map(|number| (first_s + length_s * f64::from(number)) % period_s);
        let mut stretches = starts.map(|start_s| {
            let offset = Duration::from_millis((start_s * 1e3) as u64);
            Stretch { trace: trace.clone(), offset, length_s }
        });
        stretches.find(|stretch| stretch.mean_bps() >= least_bps).expect("one of them has half the mean rate")
    }
}

/// Part of a trace, as long as a run, that gives a network its rates.
#[derive(Clone, Debug, PartialEq)]
pub struct Stretch {
    /// The trace.
    pub trace: Arc<Trace>,
    /// Time of the repeated trace at which a run starts.
    pub offset: Duration,
    /// Length, seconds.
    length_s: f64,
}

impl Stretch {
    /// Returns the mean rate, bit/s.
    pub(super) fn mean_bps(&self) -> f64 {
        self.bits(0.0, self.length_s) / self.length_s
    }

    /// Returns the number of bits between two times of a run, seconds.
    pub(super) fn bits(&self, from_s: f64, to_s: f64) -> f64 {
        let by = |seconds| self.trace.rates.bits_by(self.offset + Duration::from_secs_f64(seconds));
        (by(to_s) - by(from_s)) as f64
    }

    /// Returns the keys of a link with these rates.
    pub(super) fn keys(&self) -> String {
        let file = Json::from(self.trace.source.name.as_str());
        let offset_s = self.offset.as_secs_f64();
        let interval = if self.trace.has_opportunities {
            format!("\ninterval_ms = {INTERVAL_MS}")
        } else {
            String::new()
        };
        format!("[[link.rate_trace]]\nfile = {file}\noffset_s = {offset_s:.3}{interval}")
    }
}

/// Returns the names of the files in `folder`, sorted.
fn names(folder: &Path) -> Result<Vec<OsString>, Problem> {
    const WHERE: &str = "--traces takes a folder whose files are traces of link rates";
    let shown = folder.display();
    let refused = |error: io::Error| match error.kind() {
        io::ErrorKind::NotFound => Problem::new(format!("{shown}: there is no such folder")).help(WHERE),
        io::ErrorKind::NotADirectory => Problem::new(format!("{shown}: not a folder")).help(WHERE),
        _ => Problem::new(format!("{shown}: {error}")),
    };
    let mut names = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(refused)? {
        let entry = entry.map_err(refused)?;
        let is_hidden = entry.file_name().as_encoded_bytes().starts_with(b".");
        if !is_hidden && !entry.path().is_dir() {
            names.push(entry.file_name());
        }
    }
    names.sort();
    if names.is_empty() {
        return Err(Problem::new(format!("{shown}: a folder without files")).help(WHERE));
    }
    Ok(names)
}

/// Reads the trace `name` of `folder`.
fn read(folder: &Path, name: &OsStr) -> Result<Trace, Problem> {
    let path = folder.join(name);
    let shown = path.display();
    let plain = name.to_str().filter(|name| !name.contains(char::is_control));
    let plain = plain.ok_or_else(|| {
        Problem::new(format!("{shown}: a name that no scenario can contain"))
            .help("rename the file: UTF-8 without control characters")
    })?;
    let file = TraceFile::parse(Source::read(&path)?)?;
    let rates = file.rates(INTERVAL_MS, Duration::ZERO).ok_or_else(|| {
        Problem::new(format!("{shown}: a trace with less than 1 bit/s on average"))
            .help("the trace repeats from its last time on: check the units of that time")
    })?;
    let source = Source { name: format!("{FOLDER}/{plain}"), text: file.source.text.clone() };
    Ok(Trace { source: Arc::new(source), has_opportunities: file.has_opportunities(), rates })
}

#[cfg(test)]
mod tests;
