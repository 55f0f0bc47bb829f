//! `hopline run`.

use crate::args::Run as Args;
use crate::console;
use crate::problems::Failure;
use crate::progress::Progress;
use crate::table::{Align, kbps, render};
use hopline_lab::comparison::GOODPUT;
use hopline_lab::metrics::Level;
use hopline_lab::output::{self, Directory, Existing, Extra};
use hopline_lab::plan::{Keep, KeepNodes, KeepPairs, KeepSeries};
use hopline_lab::record::{ByKey, Done, FlowEnds, Record};
use hopline_lab::{Run, Scenario, Spec, Watch, Work, run};
use std::fmt::Write;

/// Runs a scenario once.
pub(crate) fn execute(args: &Args) -> Result<(), Failure> {
    let scenario = super::load(&args.common.given, &[])?;
    let spec = scenario.spec(args.run)?;
    console::catch_interrupts()?;
    let existing = if args.force { Existing::Replace } else { Existing::Refuse };
    let directory = args.output.as_deref().map(|path| Directory::create(path, existing)).transpose()?;
    let progress = Progress::new(args.common.quiet);
    progress.planned(Work { total_s: scenario.duration().as_secs_f64(), ..Work::default() });
    let extras = extras(args);
    let run = match &directory {
        Some(directory) => output::traced(directory, &spec, args.run, &extras, &progress)?,
        None => run::untraced(&spec, args.run, &progress)?,
    };
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
    if args.common.json {
        let record = Record { point: 0, run: args.run, result: Ok(done) };
        return console::print(&format!("{}\n", record.json()));
    }
    console::print(&describe(&scenario, &spec, args, &run, &done))
}

/// What the directory is to hold besides tables and manifest.
fn extras(args: &Args) -> Vec<Extra> {
    let asked =
        [(args.pcap, Extra::Capture), (args.ns2_trace, Extra::Ns2Trace), (args.flowmon, Extra::Flowmon)];
    asked.into_iter().filter(|(asked, _)| *asked).map(|(_, extra)| extra).collect()
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
    say(total(done));
    say(format!("fingerprint {:016x}, {} events, {:.2} CPU s", done.fingerprint, done.events, done.cpu_s));
    if let Some(output) = &args.output {
        say(format!("results in {}", output.display()));
    }
    if args.common.verbose {
        text.push_str(&nodes(spec, &values));
    }
    text
}

/// What all flows have together.
fn total(done: &Done) -> String {
    let goodput = kbps(done.of_run(GOODPUT).unwrap_or(0.0));
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

/// Airtime and drops of each node.
fn nodes(spec: &Spec, values: &ByKey<'_>) -> String {
    const COLUMNS: [(&str, &str, usize); 9] = [
        ("sending %", "transmitting_pct", 1),
        ("receiving %", "receiving_pct", 1),
        ("sensing %", "sensing_pct", 1),
        ("NAV %", "nav_pct", 1),
        ("idle %", "idle_pct", 1),
        ("queue full", "drops_queue_full", 0),
        ("retry limit", "drops_retry_limit", 0),
        ("no route", "drops_no_route", 0),
        ("link error", "drops_link_error", 0),
    ];
    let columns = COLUMNS.iter().map(|(title, ..)| (*title, Align::Right));
    let header: Vec<(&str, Align)> = std::iter::once(("node", Align::Left)).chain(columns).collect();
    let row = |name: &String| {
        let cells =
            COLUMNS.iter().map(|(_, metric, digits)| cell(values, (Level::Node, name, metric), 1.0, *digits));
        std::iter::once(name.clone()).chain(cells).collect()
    };
    let rows: Vec<Vec<String>> = spec.nodes.iter().map(|node| row(&node.name)).collect();
    format!("\n{}", render(&header, &rows))
}

/// A metric times `factor`, or a dash where it does not exist.
fn cell(values: &ByKey<'_>, key: (Level, &str, &'static str), factor: f64, digits: usize) -> String {
    values.get(&key).map_or_else(|| "-".to_owned(), |value| format!("{:.digits$}", value * factor))
}
