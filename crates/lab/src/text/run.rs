//! Text of a single run for a terminal.

use super::table::{Align, cell, kbps, render};
use crate::comparison::GOODPUT;
use crate::counted::count_text;
use crate::metrics::Level;
use crate::record::{ByKey, CompletedRun, FlowEnds};
use crate::run::Run;
use hopline_scenario::Scenario;
use hopline_sim::Spec;
use std::fmt::Write;

/// Describes run number `number` of `scenario`, with specification `spec`: its flows, and its fingerprint.
#[must_use]
pub fn describe(scenario: &Scenario, spec: &Spec, number: u64, run: &Run, done: &CompletedRun) -> String {
    let uncounted = match spec.warmup.as_secs_f64() {
        0.0 => String::new(),
        warmup_s => format!(" of which the first {warmup_s} do not count"),
    };
    let mut text = format!(
        "{}: {}, {} s{uncounted}, seed {}, run {}\n\n",
        scenario.name(),
        count_text(spec.nodes.len(), "node"),
        done.sim_s,
        spec.seed,
        number
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
    text
}

/// Returns the total of all flows of each kind: flows of different kinds are not added up.
fn total(done: &CompletedRun, values: &ByKey<'_>) -> String {
    let mut kinds: Vec<&str> = Vec::new();
    for flow in &done.flows {
        if !kinds.contains(&flow.kind.as_str()) {
            kinds.push(&flow.kind);
        }
    }
    if kinds.len() > 1 {
        let of_kind = |kind: &&str| {
            let jain = values.get(&(Level::Group, kind, "jain"));
            let jain = jain.map_or_else(String::new, |jain| format!(", Jain's index {jain:.3}"));
            format!("{kind} {} kb/s{jain}", cell(values, (Level::Group, kind, "goodput_bps"), 1e-3, 1))
        };
        return format!("total of {}", kinds.iter().map(of_kind).collect::<Vec<_>>().join("; of "));
    }
    let goodput = kbps(done.of_run(GOODPUT.2).unwrap_or(0.0));
    match (done.of_run("jain"), done.of_run("jain_2s")) {
        (Some(jain), Some(jain_2s)) => {
            format!("total {goodput} kb/s, Jain's index {jain:.3} (2 s intervals: {jain_2s:.3})")
        }
        _ => format!("total {goodput} kb/s"),
    }
}

fn flows(done: &CompletedRun, values: &ByKey<'_>) -> String {
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

/// Returns the response times of the flows that have them; empty if there are none.
fn responses(done: &CompletedRun, values: &ByKey<'_>) -> String {
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

/// Column of the table of nodes.
struct NodeColumn {
    title: &'static str,
    metric: &'static str,
    digits: usize,
    condition: ColumnCondition,
}

/// Condition for a column to be shown.
#[derive(PartialEq, Eq)]
enum ColumnCondition {
    Always,
    /// If some node has a value other than zero.
    IfAny,
}

const fn airtime(title: &'static str, metric: &'static str) -> NodeColumn {
    NodeColumn { title, metric, digits: 1, condition: ColumnCondition::Always }
}

const fn count(title: &'static str, metric: &'static str, shown: ColumnCondition) -> NodeColumn {
    NodeColumn { title, metric, digits: 0, condition: shown }
}

const NODE_COLUMNS: [NodeColumn; 17] = [
    airtime("sending %", "transmitting_pct"),
    airtime("receiving %", "receiving_pct"),
    airtime("sensing %", "sensing_pct"),
    airtime("NAV %", "nav_pct"),
    airtime("idle %", "idle_pct"),
    count("notices", "notices_sent", ColumnCondition::IfAny),
    count("marks", "marks", ColumnCondition::IfAny),
    count("for neighbors", "drops_neighborhood", ColumnCondition::IfAny),
    count("early", "drops_early", ColumnCondition::IfAny),
    count("queue full", "drops_queue_full", ColumnCondition::Always),
    count("retry limit", "drops_retry_limit", ColumnCondition::Always),
    count("address", "drops_unresolved", ColumnCondition::IfAny),
    count("no route", "drops_no_route", ColumnCondition::Always),
    count("hop limit", "drops_ttl", ColumnCondition::IfAny),
    count("policed", "drops_policed", ColumnCondition::IfAny),
    count("link error", "drops_link_error", ColumnCondition::Always),
    count("outage", "drops_outage", ColumnCondition::IfAny),
];

/// Returns airtime and drops of each node.
#[must_use]
pub fn nodes(spec: &Spec, values: &ByKey<'_>) -> String {
    let is_some = |name: &String, metric| {
        values.get(&(Level::Node, name.as_str(), metric)).is_some_and(|&value| value != 0.0)
    };
    let occurs = |metric| spec.nodes.iter().any(|node| is_some(&node.name, metric));
    let columns: Vec<_> = NODE_COLUMNS
        .iter()
        .filter(|column| column.condition == ColumnCondition::Always || occurs(column.metric))
        .collect();
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
