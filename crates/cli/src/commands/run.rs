//! `hopline run`.

use super::experiment::{self, ReportFile};
use crate::args::Run as Args;
use crate::console;
use crate::problems::Failure;
use crate::progress::Progress;
use hopline_config::source::nearest;
use hopline_core::NodeId;
use hopline_lab::animation::{self, Animation};
use hopline_lab::description::Description;
use hopline_lab::export::qlog;
use hopline_lab::output::{self, CaptureFilter, Directory, Existing, Extra, Traces};
use hopline_lab::plan::{Keep, KeepNodes, KeepPairs, KeepSeries};
use hopline_lab::record::{CompletedRun, Record};
use hopline_lab::{Comparison, Observer, Plan, Problem, Spec, Work, text};
use std::collections::BTreeSet;

/// Runs a scenario once.
pub(crate) fn execute(args: &Args) -> Result<(), Failure> {
    let scenario = super::load(&args.common.given, &[])?;
    let spec = scenario.spec(args.run)?;
    // Errors in the selected metric are reported before a run begins.
    let plan = Plan::new(&scenario, &[])?;
    let extras = extras(args, &spec)?;
    check_qlog(args, &spec)?;
    let report = args.report.as_deref().map(|path| experiment::report_file(Some(path), &scenario.name()));
    report.as_ref().map(ReportFile::check).transpose()?;
    let window = super::animation_window(args.animate, &scenario)?;
    console::catch_interrupts()?;
    let existing = if args.force { Existing::Replace } else { Existing::Refuse };
    let directory = args.output.as_deref().map(|path| Directory::create(path, existing)).transpose()?;
    let logs = args.qlog.as_deref().map(|path| Directory::create(path, existing)).transpose()?;
    let progress = Progress::new(args.common.quiet);
    let total_s = scenario.duration().as_secs_f64();
    progress.planned(Work { total_s, left_s: vec![total_s], ..Work::default() });
    let title = format!("{}, run {}", scenario.name(), args.run);
    let traces = Traces {
        results: directory.as_ref().map(|directory| (directory, &*extras)),
        qlog: logs.as_ref().map(|directory| (directory, &*title)),
    };
    let run = output::traced(traces, &spec, args.run, &progress)?;
    let played = window.filter(|_| report.is_some());
    let animation = played.map(|window| animation::single(&spec, args.run, window, &progress)).transpose()?;
    drop(progress);
    let done = CompletedRun::of(
        &spec,
        &run,
        args.run,
        Keep { series: KeepSeries::All, nodes: KeepNodes::Keep, pairs: KeepPairs::Drop },
    );
    if let Some(directory) = directory {
        output::write(&directory, &scenario, args.run, &done, &extras)?;
        directory.finish()?;
    }
    logs.map(Directory::finish).transpose()?;
    if let Some(report) = &report {
        report.write(&page(&plan, args.run, done.clone(), animation)?)?;
    }
    if args.common.json {
        let record = Record { point: 0, run: args.run, result: Ok(done) };
        return console::print(&format!("{}\n", record.json()));
    }
    let mut shown = text::run::describe(&scenario, &spec, args.run, &run, &done);
    if let Some(output) = &args.output {
        shown.push_str(&format!("results in {}\n", output.display()));
    }
    if let Some(logs) = &args.qlog {
        shown.push_str(&format!("qlog files in {}\n", logs.display()));
    }
    if args.common.verbose {
        shown.push_str(&text::run::nodes(&spec, &done.by_key()));
    }
    if let Some(report) = &args.report {
        shown.push_str(&format!("report in {}\n", report.display()));
    }
    console::print(&shown)
}

/// Returns the report of a single run.
fn page(
    plan: &Plan,
    number: u64,
    done: CompletedRun,
    animation: Option<Animation>,
) -> Result<String, Failure> {
    let description = Description::of_run(plan, experiment::command(), number)?;
    let mut comparison = Comparison::of_run(description, number, done);
    comparison.points[0].animation = animation;
    Ok(experiment::page(&comparison))
}

/// Returns the contents of the directory in addition to tables and manifest.
fn extras(args: &Args, spec: &Spec) -> Result<Vec<Extra>, Problem> {
    let capture = capture_nodes(args.pcap, &args.pcap_node, spec)?.map(Extra::Capture);
    let others = [(args.ns2_trace, Extra::Ns2Trace), (args.flowmon, Extra::Flowmon)];
    let others = others.into_iter().filter(|(asked, _)| *asked).map(|(_, extra)| extra);
    Ok(capture.into_iter().chain(others).collect())
}

/// Checks that there is something to log, and that neither directory is in the other: each appears as a whole.
fn check_qlog(args: &Args, spec: &Spec) -> Result<(), Problem> {
    let Some(logs) = &args.qlog else { return Ok(()) };
    if !qlog::has_connections(spec) {
        return Err(Problem::new("--qlog: no flow has a transport protocol, so there is nothing to log")
            .help("give a flow a `transport` such as \"tcp-newreno\""));
    }
    let Some(output) = &args.output else { return Ok(()) };
    let [a, b] = [logs, output].map(|path| std::path::absolute(path).unwrap_or_else(|_| path.clone()));
    if a.starts_with(&b) || b.starts_with(&a) {
        return Err(Problem::new(format!("--qlog: {} and {} overlap", logs.display(), output.display()))
            .help("choose two directories beside each other"));
    }
    Ok(())
}

/// Returns the nodes with a capture, if one is requested: `all`, or those of these names.
pub(crate) fn capture_nodes(
    all: bool,
    names: &[String],
    spec: &Spec,
) -> Result<Option<CaptureFilter>, Problem> {
    if names.is_empty() {
        return Ok(all.then_some(CaptureFilter::All));
    }
    let nodes: BTreeSet<NodeId> =
        names.iter().map(|name| find_node("--pcap-node", name, spec)).collect::<Result<_, _>>()?;
    Ok(Some(CaptureFilter::Only(nodes)))
}

/// Returns the node that an option names.
pub(crate) fn find_node(option: &str, name: &str, spec: &Spec) -> Result<NodeId, Problem> {
    const SHOWN: usize = 8;
    let known = || spec.nodes.iter().map(|node| node.name.as_str());
    if let Some((id, _)) = (0..).map(NodeId).zip(known()).find(|(_, known)| *known == name) {
        return Ok(id);
    }
    let guess = nearest(name, known()).map(|near| format!("did you mean `{near}`? ")).unwrap_or_default();
    let more = if spec.nodes.len() > SHOWN { ", …" } else { "" };
    let some = known().take(SHOWN).collect::<Vec<_>>().join(", ");
    Err(Problem::new(format!("{option}: there is no node `{name}`"))
        .help(format!("{guess}the nodes are {some}{more}")))
}
