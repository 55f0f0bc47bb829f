//! `hopline run`.

use crate::args::Run as Args;
use crate::console;
use crate::problems::Failure;
use crate::progress::Progress;
use crate::table::{Align, kbps, render};
use hopline_lab::output::{self, Directory, Existing, Extra};
use hopline_lab::plan::{Keep, KeepNodes, KeepSeries};
use hopline_lab::record::{Done, Record};
use hopline_lab::summary::never_connected;
use hopline_lab::{Run, Scenario, Spec, Summary, Watch, run};
use std::fmt::Write;

/// Runs a scenario once.
pub(crate) fn execute(args: &Args) -> Result<(), Failure> {
    let scenario = super::load(&args.common, &[])?;
    let spec = scenario.spec(args.run)?;
    console::catch_interrupts()?;
    let existing = if args.force { Existing::Replace } else { Existing::Refuse };
    let directory = args.output.as_deref().map(|path| Directory::create(path, existing)).transpose()?;
    let progress = Progress::new(args.common.quiet);
    progress.planned(scenario.duration().as_secs_f64());
    let extras = extras(args);
    let done = match &directory {
        Some(directory) => output::traced(directory, &spec, args.run, &extras, &progress)?,
        None => run::untraced(&spec, args.run, &progress)?,
    };
    drop(progress);
    if let Some(directory) = directory {
        output::write(&directory, &scenario, &spec, args.run, &done, &extras)?;
        directory.finish()?;
    }
    let summary = Summary::of(&spec, &done);
    if args.common.json {
        let keep = Keep { series: KeepSeries::None, nodes: KeepNodes::Drop };
        let result = Ok(Done::of(&spec, &done, args.run, keep));
        return console::print(&format!("{}\n", Record { point: 0, run: args.run, result }.json()));
    }
    let mut text = describe(&scenario, &spec, args, &done, &summary);
    if args.common.verbose {
        text.push_str(&nodes(&spec, &done));
    }
    console::print(&text)
}

/// What the directory is to hold besides tables and manifest.
fn extras(args: &Args) -> Vec<Extra> {
    let asked =
        [(args.pcap, Extra::Capture), (args.ns2_trace, Extra::Ns2Trace), (args.flowmon, Extra::Flowmon)];
    asked.into_iter().filter(|(asked, _)| *asked).map(|(_, extra)| extra).collect()
}

fn describe(scenario: &Scenario, spec: &Spec, args: &Args, done: &Run, summary: &Summary) -> String {
    let mut text = format!(
        "{}: {} nodes, {} s, seed {}, run {}\n\n",
        scenario.name(),
        spec.nodes.len(),
        summary.sim_s,
        spec.seed,
        args.run
    );
    text.push_str(&flows(summary));
    if summary.flows.iter().any(|flow| flow.responses.is_some()) {
        text.push('\n');
        text.push_str(&responses(summary));
    }
    let mut say = |line: String| writeln!(text, "{line}").expect("strings take everything");
    say(String::new());
    for (flow, why) in never_connected(spec, done) {
        let name = |id: usize| &spec.nodes[id].name;
        let (src, dst) = (name(flow.src.index()), name(flow.dst.index()));
        say(format!("flow {} ({src} -> {dst}) never connected: {why}", flow.name));
    }
    let fairness = format!(", Jain {:.3} (2 s samples: {:.3})", summary.jain, summary.jain_2s);
    let fairness = if summary.flows.len() > 1 { fairness } else { String::new() };
    say(format!("total {} kb/s{fairness}", kbps(summary.aggregate_goodput_bps)));
    say(format!(
        "fingerprint {}, {} events, {:.2} CPU s",
        summary.fingerprint, summary.events, summary.cpu_s
    ));
    if let Some(output) = &args.output {
        say(format!("results in {}", output.display()));
    }
    text
}

fn flows(summary: &Summary) -> String {
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
    let row = |f: &hopline_lab::summary::FlowSummary| {
        vec![
            f.id.clone(),
            f.src.clone(),
            f.dst.clone(),
            f.transport.to_owned(),
            kbps(f.goodput_bps),
            format!("{:.1}", f.bytes_received as f64 / 1e3),
            f.segments_sent.to_string(),
            f.retransmissions.to_string(),
            format!("{:.2}", f.rtx_index_pct),
            f.timeouts.to_string(),
        ]
    };
    render(&header, &summary.flows.iter().map(row).collect::<Vec<_>>())
}

/// Response times of the flows that have them.
fn responses(summary: &Summary) -> String {
    let header = [
        ("flow", Align::Left),
        ("responses", Align::Right),
        ("median s", Align::Right),
        ("95 % within s", Align::Right),
    ];
    let seconds = |time: Option<f64>| time.map_or_else(|| "-".to_owned(), |t| format!("{t:.3}"));
    let rows = summary.flows.iter().filter_map(|flow| {
        let count = flow.responses?.to_string();
        Some(vec![flow.id.clone(), count, seconds(flow.response_p50_s), seconds(flow.response_p95_s)])
    });
    render(&header, &rows.collect::<Vec<_>>())
}

/// Airtime and drops of each node.
fn nodes(spec: &Spec, done: &Run) -> String {
    let header = [
        ("node", Align::Left),
        ("sending %", Align::Right),
        ("receiving %", Align::Right),
        ("sensing %", Align::Right),
        ("NAV %", Align::Right),
        ("idle %", Align::Right),
        ("queue full", Align::Right),
        ("retry limit", Align::Right),
        ("no route", Align::Right),
        ("link error", Align::Right),
    ];
    let row = |(node, outcome): (&hopline_lab::NodeSpec, &hopline_lab::NodeOutcome)| {
        let air = &outcome.airtime;
        let total = (done.outcome.sim_time - done.outcome.warmup).as_secs_f64();
        let states = [air.transmitting, air.receiving, air.sensing, air.nav, air.idle];
        let shares = states.map(|t| format!("{:.1}", 100.0 * t.as_secs_f64() / total));
        let drops = &outcome.drops;
        let drops = [drops.queue_full, drops.retry_limit, drops.no_route, drops.link_error];
        let drops = drops.map(|n| n.to_string());
        std::iter::once(node.name.clone()).chain(shares).chain(drops).collect()
    };
    let rows: Vec<Vec<String>> = spec.nodes.iter().zip(&done.outcome.nodes).map(row).collect();
    format!("\n{}", render(&header, &rows))
}
