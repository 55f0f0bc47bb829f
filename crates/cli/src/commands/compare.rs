//! `hopline compare`.

use super::experiment;
use crate::args::Compare as Args;
use crate::console;
use crate::problems::Failure;
use crate::progress::Progress;
use hopline_config::document::Setting;
use hopline_lab::comparison::Comparison;
use hopline_lab::experiment::RunOptions;
use hopline_lab::plan::reject_varied;
use hopline_lab::record::Record;
use hopline_lab::text::table::{Align, kbps, render};
use hopline_lab::{Plan, Problem, comparison, text};
use hopline_scenario::{Axis, parse_vary};

/// Compares variants of a scenario.
pub(crate) fn execute(args: &Args) -> Result<(), Failure> {
    let runs = args.runs.map(|n| Setting::of_option("--runs", "runs", n));
    let scenario = super::load(&args.common.given, runs.as_slice())?;
    let axes: Vec<Axis> = match args.vary.is_empty() {
        true => scenario.sweep()?,
        false => args.vary.iter().map(|text| parse_vary(text)).collect::<Result<_, _>>()?,
    };
    reject_varied(scenario.settings(), &axes)?;
    let plan = Plan::new(&scenario, &axes)?.with_objective(args.asked.objective())?;
    let window = super::animation_window(args.animate, &scenario)?;
    let reported = args.report.is_some() || !(args.no_report || args.common.json || args.output.is_some());
    if args.animate.is_some() && !reported && args.output.is_none() {
        return Err(Problem::new("--animate: there is no report to play it in")
            .help("name one with --report FILE: with --json there is none otherwise")
            .into());
    }
    let report = reported.then(|| experiment::report_file(args.report.as_deref(), &plan.name));
    report.as_ref().map(experiment::ReportFile::check).transpose()?;
    console::catch_interrupts()?;
    experiment::print_missing_formats(args.output.as_deref(), args.common.quiet);
    let command = experiment::command();
    let progress = Progress::new(args.common.quiet);
    let how = RunOptions { jobs: args.jobs.map(Into::into), command: &command, watch: &progress };
    let (mut comparison, records) = match &args.output {
        None => hopline_lab::experiment::in_memory(&plan, how)?,
        Some(path) => {
            let (comparison, mut store) = experiment::run_in_directory(&plan, how, window, path, args.force)?;
            let mut records = Vec::new();
            store.for_each(comparison.runs, |record| {
                records.push(record);
                Ok::<_, Failure>(())
            })?;
            (comparison, records)
        }
    };
    if let (Some(window), Some(_)) = (window, &report) {
        hopline_lab::experiment::animate(&plan, &mut comparison, window, how)?;
    }
    drop(progress);
    if let Some(report) = &report {
        report.write(&experiment::page(&comparison))?;
    }
    if args.common.json {
        console::print(&format!("{}\n", comparison::json_with_runs(&comparison, &records)))?;
        return experiment::check_all_ran(&comparison);
    }
    let mut shown = text::comparison::describe(&comparison) + &text::comparison::conclusion(&comparison);
    if args.common.verbose {
        shown.push_str(&run_lines(&comparison, &records));
    }
    let written = report.as_ref().map(|r| r.path().display().to_string());
    let kept = args.output.as_ref().map(|path| format!("{} (report.html, tables)", path.display()));
    for place in written.into_iter().chain(kept) {
        shown.push_str(&format!("\nreport in {place}\n"));
    }
    console::print(&shown)?;
    experiment::check_all_ran(&comparison)
}

fn run_lines(comparison: &Comparison, records: &[Record]) -> String {
    let header = [
        ("variant", Align::Left),
        ("run", Align::Right),
        ("goodput kb/s", Align::Right),
        ("rtx index %", Align::Right),
        ("CPU s", Align::Right),
        ("fingerprint", Align::Left),
    ];
    let rows = records.iter().map(|r| {
        let mut row = vec![comparison.description.points[r.point].label.clone(), r.run.to_string()];
        match &r.result {
            Ok(done) => row.extend([
                done.of_run(comparison::GOODPUT.2).map_or_else(|| "-".into(), kbps),
                done.of_run("rtx_index_pct").map_or_else(|| "-".into(), |x| format!("{x:.2}")),
                format!("{:.2}", done.cpu_s),
                format!("{:016x}", done.fingerprint),
            ]),
            Err(why) => row.extend(["failed".into(), "-".into(), "-".into(), why.clone()]),
        }
        row
    });
    format!("\n{}", render(&header, &rows.collect::<Vec<_>>()))
}
