//! Common parts of compare, sweep, report and reproduce: running a plan, and its report.

use crate::problems::{Failure, print_error_line};
use hopline_lab::Plan;
use hopline_lab::animation::Window;
use hopline_lab::comparison::Comparison;
use hopline_lab::experiment::RunOptions;
use hopline_lab::report;
use hopline_lab::store::{REPORT, Start, Store};
use hopline_lab::view;
use std::path::Path;

pub(crate) use hopline_lab::output::ReportFile;

/// Runs `plan` in a directory, and writes the report beside its tables. The report animates `window`, if there is one.
pub(crate) fn run_in_directory(
    plan: &Plan,
    how: RunOptions<'_>,
    window: Option<Window>,
    path: &Path,
    force: bool,
) -> Result<(Comparison, Store), Failure> {
    let start = if force { Start::Restart } else { Start::Resume };
    let (mut comparison, store) = hopline_lab::experiment::in_directory(plan, how, path, start)
        .map_err(|error| Failure::of_experiment(error, path))?;
    if let Some(window) = window {
        hopline_lab::experiment::animate(plan, &mut comparison, window, how)?;
    }
    store.put(REPORT, page(&comparison).as_bytes())?;
    Ok((comparison, store))
}

/// Prints once that a directory of results will contain no Parquet, if this build writes none.
pub(crate) fn print_missing_formats(directory: Option<&Path>, quiet: bool) {
    if directory.is_some() && !quiet && !cfg!(feature = "parquet") {
        print_error_line(
            "tables are CSV only: this build writes no Parquet; `make build` makes one that does",
        );
    }
}

/// Returns the report of one experiment.
pub(crate) fn page(comparison: &Comparison) -> String {
    report::html(&view::report(comparison))
}

/// Returns the file of a report: the requested one, or one named after the experiment.
pub(crate) fn report_file(asked: Option<&Path>, name: &str) -> ReportFile {
    let plain = |c: char| if c.is_alphanumeric() || "-_.".contains(c) { c } else { '-' };
    let usual = || format!("hopline-{}.html", name.chars().map(plain).collect::<String>());
    ReportFile::new(asked.map_or_else(|| usual().into(), Path::to_owned))
}

/// Returns the command line.
pub(crate) fn command() -> Vec<String> {
    let words = std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned());
    std::iter::once("hopline".to_owned()).chain(words).collect()
}

/// Returns an error, hence an exit code, if runs failed.
pub(crate) fn check_all_ran(comparison: &Comparison) -> Result<(), Failure> {
    check_failed(comparison.failed())
}

/// Returns an error if the number of failed runs is not 0.
pub(crate) fn check_failed(number: usize) -> Result<(), Failure> {
    match number {
        0 => Ok(()),
        n => Err(Failure::Other(format!("{n} run{} failed", if n == 1 { "" } else { "s" }))),
    }
}
