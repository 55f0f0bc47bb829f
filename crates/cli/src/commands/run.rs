//! `hopline run`.

use super::experiment::{self, ReportFile};
use crate::args::Run as Args;
use crate::console;
use crate::problems::Failure;
use crate::progress::Progress;
use crate::table::{Align, kbps, render};
use hopline_core::NodeId;
use hopline_lab::animation::{self, Animation};
use hopline_lab::comparison::GOODPUT;
use hopline_lab::description::Description;
use hopline_lab::metrics::Level;
use hopline_lab::output::{self, Captured, Directory, Existing, Extra};
use hopline_lab::plan::{Keep, KeepNodes, KeepPairs, KeepSeries};
use hopline_lab::record::{ByKey, Done, FlowEnds, Record};
use hopline_lab::{Comparison, Plan, Problem, Run, Scenario, Spec, Watch, Work, run};
use hopline_scenario::source::nearest;
use std::collections::BTreeSet;
use std::fmt::Write;

/// Runs a scenario once.
pub(crate) fn execute(args: &Args) -> Result<(), Failure> {
    let scenario = super::load(&args.common.given, &[])?;
    let spec = scenario.spec(args.run)?;
    // What is wrong with its question is said before anything is run.
    let plan = Plan::new(&scenario, &[])?;
    let extras = extras(args, &spec)?;
    let report = args.report.as_deref().map(|path| experiment::report_file(Some(path), &scenario.name()));
    report.as_ref().map(ReportFile::check).transpose()?;
    let window = super::window(args.animate, &scenario)?;
    console::catch_interrupts()?;
    let existing = if args.force { Existing::Replace } else { Existing::Refuse };
    let directory = args.output.as_deref().map(|path| Directory::create(path, existing)).transpose()?;
    let progress = Progress::new(args.common.quiet);
    let total_s = scenario.duration().as_secs_f64();
    progress.planned(Work { total_s, left_s: vec![total_s], ..Work::default() });
    let run = match &directory {
        Some(directory) => output::traced(directory, &spec, args.run, &extras, &progress)?,
        None => run::untraced(&spec, args.run, &progress)?,
    };
    let played = window.filter(|_| report.is_some());
    let animation = played.map(|window| animation::single(&spec, args.run, window, &progress)).transpose()?;
    drop(progress);
    let done = Done::of(
        &spec,
        &run,
        args.run,
        Keep { series: KeepSeries::All, nodes: KeepNodes::Keep, pairs: KeepPairs::Drop },
    );
    if let Some(directory) = directory {
        output::write(&directory, &scenario, args.run, &done, &extras)?;
        directory.finish()?;
    }
    if let Some(report) = &report {
        report.write(&page(&plan, args.run, done.clone(), animation)?)?;
    }
    if args.common.json {
        let record = Record { point: 0, run: args.run, result: Ok(done) };
        return console::print(&format!("{}\n", record.json()));
    }
    console::print(&describe(&scenario, &spec, args, &run, &done))
}

/// The page of a single run.
fn page(plan: &Plan, number: u64, done: Done, animation: Option<Animation>) -> Result<String, Failure> {
    let description = Description::of_run(plan, experiment::command(), number)?;
    let mut comparison = Comparison::of_run(description, number, done);
    comparison.points[0].animation = animation;
    Ok(experiment::page(&comparison))
}

/// What the directory is to hold besides tables and manifest.
fn extras(args: &Args, spec: &Spec) -> Result<Vec<Extra>, Problem> {
    let capture = captured(args, spec)?.map(Extra::Capture);
    let others = [(args.ns2_trace, Extra::Ns2Trace), (args.flowmon, Extra::Flowmon)];
    let others = others.into_iter().filter(|(asked, _)| *asked).map(|(_, extra)| extra);
    Ok(capture.into_iter().chain(others).collect())
}

/// Of which nodes there is to be a capture, if there is to be one.
fn captured(args: &Args, spec: &Spec) -> Result<Option<Captured>, Problem> {
    if args.pcap_node.is_empty() {
        return Ok(args.pcap.then_some(Captured::All));
    }
    let nodes: BTreeSet<NodeId> =
        args.pcap_node.iter().map(|name| node_named(name, spec)).collect::<Result<_, _>>()?;
    Ok(Some(Captured::Only(nodes)))
}

fn node_named(name: &str, spec: &Spec) -> Result<NodeId, Problem> {
    const SHOWN: usize = 8;
    let known = || spec.nodes.iter().map(|node| node.name.as_str());
    if let Some((id, _)) = (0..).map(NodeId).zip(known()).find(|(_, known)| *known == name) {
        return Ok(id);
    }
    let guess = nearest(name, known()).map(|near| format!("did you mean `{near}`? ")).unwrap_or_default();
    let more = if spec.nodes.len() > SHOWN { ", …" } else { "" };
    let some = known().take(SHOWN).collect::<Vec<_>>().join(", ");
    Err(Problem::new(format!("--pcap-node: there is no node `{name}`"))
        .help(format!("{guess}the nodes are {some}{more}")))
}

fn describe(scenario: &Scenario, spec: &Spec, args: &Args, run: &Run, done: &Done) -> String {
    let uncounted = match spec.warmup.as_secs_f64() {
        0.0 => String::new(),
        warmup_s => format!(" of which the first {warmup_s} do not count"),
    };
    let mut text = format!(
        "{}: {} nodes, {} s{uncounted}, seed {}, run {}\n\n",
        scenario.name(),
        spec.nodes.len(),
        done.sim_s,
        spec.seed,
        args.run
    );
    let values = done.by_key();
    text.push_str(&flows(done, &values));
    text.push_str(&responses(done, &values));
    let mut say = |line: String| writeln!(text, "{line}").expect("strings take everything");
    say(String::new());
    for (flow, why) in run.never_connected(spec) {
        let name = |id: usize| &spec.nodes[id].name;
        let (src, dst) = (name(flow.src.index()), name(flow.dst.index()));
        say(format!("flow {} ({src} -> {dst}) never connected: {why}", flow.name));
    }
    say(total(done, &values));
    say(format!("fingerprint {:016x}, {} events, {:.2} CPU s", done.fingerprint, done.events, done.cpu_s));
    if let Some(output) = &args.output {
        say(format!("results in {}", output.display()));
    }
    if args.common.verbose {
        text.push_str(&nodes(spec, &values));
    }
    if let Some(report) = &args.report {
        text.push_str(&format!("report in {}\n", report.display()));
    }
    text
}

/// What all flows have together, each kind for itself: what browses and what streams is not added up.
fn total(done: &Done, values: &ByKey<'_>) -> String {
    let mut kinds: Vec<&str> = Vec::new();
    for flow in &done.flows {
        if !kinds.contains(&flow.kind.as_str()) {
            kinds.push(&flow.kind);
        }
    }
    if kinds.len() > 1 {
        let of_kind = |kind: &&str| {
            let jain = values.get(&(Level::Group, kind, "jain"));
            let jain = jain.map_or_else(String::new, |jain| format!(", Jain {jain:.3}"));
            format!("{kind} {} kb/s{jain}", cell(values, (Level::Group, kind, "goodput_bps"), 1e-3, 1))
        };
        return format!("total of {}", kinds.iter().map(of_kind).collect::<Vec<_>>().join("; of "));
    }
    let goodput = kbps(done.of_run(GOODPUT.2).unwrap_or(0.0));
    match (done.of_run("jain"), done.of_run("jain_2s")) {
        (Some(jain), Some(jain_2s)) => {
            format!("total {goodput} kb/s, Jain {jain:.3} (2 s samples: {jain_2s:.3})")
        }
        _ => format!("total {goodput} kb/s"),
    }
}

fn flows(done: &Done, values: &ByKey<'_>) -> String {
    let header = [
        ("flow", Align::Left),
        ("from", Align::Left),
        ("to", Align::Left),
        ("transport", Align::Left),
        ("goodput kb/s", Align::Right),
        ("received kB", Align::Right),
        ("sent", Align::Right),
        ("resent", Align::Right),
        ("rtx index %", Align::Right),
        ("timeouts", Align::Right),
    ];
    let row = |flow: &FlowEnds| {
        let cell = |name, factor, digits| cell(values, (Level::Flow, &flow.id, name), factor, digits);
        let numbers = [
            cell("goodput_bps", 1e-3, 1),
            cell("bytes_received", 1e-3, 1),
            cell("segments_sent", 1.0, 0),
            cell("retransmissions", 1.0, 0),
            cell("rtx_index_pct", 1.0, 2),
            cell("timeouts", 1.0, 0),
        ];
        let ends = [&flow.id, &flow.src, &flow.dst, &flow.transport].map(String::clone);
        ends.into_iter().chain(numbers).collect()
    };
    render(&header, &done.flows.iter().map(row).collect::<Vec<_>>())
}

/// Response times of the flows that have them; nothing if none has.
fn responses(done: &Done, values: &ByKey<'_>) -> String {
    let header = [
        ("flow", Align::Left),
        ("responses", Align::Right),
        ("median s", Align::Right),
        ("95 % within s", Align::Right),
    ];
    let asks = |flow: &&FlowEnds| values.contains_key(&(Level::Flow, flow.id.as_str(), "responses"));
    let row = |flow: &FlowEnds| {
        let cell = |name, digits| cell(values, (Level::Flow, &flow.id, name), 1.0, digits);
        vec![flow.id.clone(), cell("responses", 0), cell("response_p50_s", 3), cell("response_p95_s", 3)]
    };
    let rows: Vec<Vec<String>> = done.flows.iter().filter(asks).map(row).collect();
    if rows.is_empty() { String::new() } else { format!("\n{}", render(&header, &rows)) }
}

/// A column of the table of nodes.
struct NodeColumn {
    title: &'static str,
    metric: &'static str,
    digits: usize,
    shown: Shown,
}

/// When a column is there.
#[derive(PartialEq, Eq)]
enum Shown {
    Always,
    /// If some node has other than nothing.
    IfAny,
}

const fn airtime(title: &'static str, metric: &'static str) -> NodeColumn {
    NodeColumn { title, metric, digits: 1, shown: Shown::Always }
}

const fn count(title: &'static str, metric: &'static str, shown: Shown) -> NodeColumn {
    NodeColumn { title, metric, digits: 0, shown }
}

const NODE_COLUMNS: [NodeColumn; 16] = [
    airtime("sending %", "transmitting_pct"),
    airtime("receiving %", "receiving_pct"),
    airtime("sensing %", "sensing_pct"),
    airtime("NAV %", "nav_pct"),
    airtime("idle %", "idle_pct"),
    count("notices", "notices_sent", Shown::IfAny),
    count("marks", "marks", Shown::IfAny),
    count("for neighbors", "drops_neighborhood", Shown::IfAny),
    count("early", "drops_early", Shown::IfAny),
    count("queue full", "drops_queue_full", Shown::Always),
    count("retry limit", "drops_retry_limit", Shown::Always),
    count("address", "drops_unresolved", Shown::IfAny),
    count("no route", "drops_no_route", Shown::Always),
    count("hop limit", "drops_ttl", Shown::IfAny),
    count("link error", "drops_link_error", Shown::Always),
    count("outage", "drops_outage", Shown::IfAny),
];

/// Airtime and drops of each node.
fn nodes(spec: &Spec, values: &ByKey<'_>) -> String {
    let is_some = |name: &String, metric| {
        values.get(&(Level::Node, name.as_str(), metric)).is_some_and(|&value| value != 0.0)
    };
    let occurs = |metric| spec.nodes.iter().any(|node| is_some(&node.name, metric));
    let columns: Vec<_> =
        NODE_COLUMNS.iter().filter(|column| column.shown == Shown::Always || occurs(column.metric)).collect();
    let titles = columns.iter().map(|column| (column.title, Align::Right));
    let header: Vec<(&str, Align)> = std::iter::once(("node", Align::Left)).chain(titles).collect();
    let row = |name: &String| {
        let value =
            |column: &&NodeColumn| cell(values, (Level::Node, name, column.metric), 1.0, column.digits);
        std::iter::once(name.clone()).chain(columns.iter().map(value)).collect()
    };
    let rows: Vec<Vec<String>> = spec.nodes.iter().map(|node| row(&node.name)).collect();
    format!("\n{}", render(&header, &rows))
}

/// A metric times `factor`, or a dash where it does not exist.
fn cell(values: &ByKey<'_>, key: (Level, &str, &'static str), factor: f64, digits: usize) -> String {
    values.get(&key).map_or_else(|| "-".to_owned(), |value| format!("{:.digits$}", value * factor))
}
