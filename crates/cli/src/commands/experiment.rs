//! What compare, sweep, report and reproduce share: running a plan, its table, its page.

use crate::problems::Failure;
use crate::table::{Align, render};
use hopline_lab::comparison::{Comparison, GOODPUT};
use hopline_lab::experiment::How;
use hopline_lab::report;
use hopline_lab::store::{REPORT, Start, Store};
use hopline_lab::view;
use hopline_lab::{Estimate, Plan};
use std::path::Path;

pub(crate) use hopline_lab::output::ReportFile;

/// Runs `plan` in a directory, and puts the page beside its tables.
pub(crate) fn kept(
    plan: &Plan,
    how: How<'_>,
    path: &Path,
    force: bool,
) -> Result<(Comparison, Store), Failure> {
    let start = if force { Start::Anew } else { Start::Resume };
    let (comparison, store) = hopline_lab::experiment::in_directory(plan, how, path, start)
        .map_err(|error| Failure::of_experiment(error, path))?;
    store.put(REPORT, page(&comparison).as_bytes())?;
    Ok((comparison, store))
}

/// The page of one experiment.
pub(crate) fn page(comparison: &Comparison) -> String {
    report::html(&view::report(comparison))
}

/// The file of a report: the one that was asked for, or one named after the experiment.
pub(crate) fn report_file(asked: Option<&Path>, name: &str) -> ReportFile {
    let plain = |c: char| if c.is_alphanumeric() || "-_.".contains(c) { c } else { '-' };
    let usual = || format!("hopline-{}.html", name.chars().map(plain).collect::<String>());
    ReportFile::new(asked.map_or_else(|| usual().into(), Path::to_owned))
}

/// The command as it was given.
pub(crate) fn command() -> Vec<String> {
    let words = std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned());
    std::iter::once("hopline".to_owned()).chain(words).collect()
}

/// The comparison as a table.
pub(crate) fn describe(comparison: &Comparison) -> String {
    let description = &comparison.description;
    let interval = match comparison.runs {
        0 | 1 => "; one run has no interval".to_owned(),
        _ => format!("; ± is the {} interval of the mean", description.confidence()),
    };
    let points = counted(comparison.points.len(), "variant");
    let runs = counted(comparison.runs as usize, "paired run");
    let head = format!("{}: {points}, {runs}, seed {}{interval}\n\n", description.name, description.seed);
    head + &table(comparison) + &failures(comparison)
}

/// What the exit code says of runs that failed.
pub(crate) fn all_ran(comparison: &Comparison) -> Result<(), Failure> {
    match comparison.failed() {
        0 => Ok(()),
        n => Err(Failure::Other(format!("{} failed", counted(n, "run")))),
    }
}

/// "1 run", "2 runs".
fn counted(n: usize, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}

/// A column of estimates: its title, its metric, by how much that is multiplied, and its digits after the point.
type Column = (&'static str, &'static str, f64, usize);

/// Columns of every comparison.
const ALWAYS: &[Column] = &[("rtx index %", "rtx_index_pct", 1.0, 2), ("timeouts", "timeouts", 1.0, 1)];
/// Of one with several flows.
const OF_SEVERAL: &[Column] = &[("Jain", "jain", 1.0, 3)];
/// Of one with hosts that move between base stations.
const OF_HANDOFFS: &[Column] = &[
    ("handoffs", "handoffs", 1.0, 1),
    ("handoff ms", "handoff_s", 1e3, 1),
    ("pause ms", "handoff_pause_s", 1e3, 1),
    ("lost %", "packet_loss_pct", 1.0, 2),
];

fn table(comparison: &Comparison) -> String {
    let points = &comparison.points;
    let several = points.iter().any(|point| point.flows().len() > 1);
    let moves = points.iter().any(|point| point.estimate("handoffs").is_some());
    let none: &[Column] = &[];
    let columns = ALWAYS.iter().chain(if several { OF_SEVERAL } else { none }).chain(if moves {
        OF_HANDOFFS
    } else {
        none
    });
    let right = |title| (title, Align::Right);
    let mut header = vec![("variant", Align::Left), right("goodput kb/s"), right("gain %")];
    header.extend(columns.clone().map(|column| right(column.0)));
    header.extend([right("CPU s"), ("fingerprint", Align::Left)]);
    let row = |number: usize| {
        let point = &points[number];
        let cell = |metric: &str, factor: f64, digits: usize| match point.estimate(metric) {
            Some(estimate) => with_interval(comparison, &estimate.scaled(factor), digits),
            None => "-".to_owned(),
        };
        let label = comparison.description.points[number].label.clone();
        let mut row = vec![label, cell(GOODPUT, 1e-3, 1), gain(comparison, number)];
        row.extend(columns.clone().map(|&(_, metric, factor, digits)| cell(metric, factor, digits)));
        row.extend([format!("{:.2}", point.cpu_s), point.fingerprint.to_string()]);
        row
    };
    render(&header, &(0..points.len()).map(row).collect::<Vec<_>>())
}

fn gain(comparison: &Comparison, point: usize) -> String {
    if comparison.description.is_baseline(point) {
        return "baseline".to_owned();
    }
    match comparison.versus_baseline(point, GOODPUT).and_then(|versus| versus.percent) {
        Some(percent) => match half_width(comparison, &percent) {
            Some(half) => format!("{:+.1} ± {half:.1}", percent.mean),
            None => format!("{:+.1}", percent.mean),
        },
        None => "-".to_owned(),
    }
}

fn with_interval(comparison: &Comparison, e: &Estimate, digits: usize) -> String {
    match half_width(comparison, e) {
        Some(half) => format!("{:.digits$} ± {half:.digits$}", e.mean),
        None => format!("{:.digits$}", e.mean),
    }
}

fn half_width(comparison: &Comparison, e: &Estimate) -> Option<f64> {
    let interval = e.interval(comparison.description.confidence())?;
    Some((interval.high - interval.low) / 2.0)
}

/// The runs that failed: a few of them, and how many there are.
fn failures(comparison: &Comparison) -> String {
    const SHOWN: usize = 5;
    let points = comparison.points.iter().zip(&comparison.description.points);
    let failed: Vec<String> = points
        .flat_map(|(p, d)| {
            p.failed.iter().map(move |(run, why)| format!("  {}, run {run}: {why}\n", d.label))
        })
        .collect();
    if failed.is_empty() {
        return String::new();
    }
    let more = failed.len().saturating_sub(SHOWN);
    let more = if more > 0 { format!("  and {more} more\n") } else { String::new() };
    let shown = failed.iter().take(SHOWN).cloned().collect::<String>();
    format!("\n{} failed and not counted in:\n{shown}{more}", counted(failed.len(), "run"))
}
