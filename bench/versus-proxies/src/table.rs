//! Tables of medians in Markdown, also legible in a terminal.

use crate::run::Measured;
use std::fmt::Write;
use versus::table::{aligned, cell, distinct, median};

/// One quantity: heading, value, digits.
type Column = (&'static str, fn(&Measured) -> Option<f64>, usize);

const COLUMNS: [Column; 5] = [
    ("goodput, Mb/s", |m| Some(m.goodput_mbps), 2),
    ("packets on the last hop per full packet's worth delivered", |m| Some(m.packets_per_delivered), 2),
    ("round trip of a ping beside it, median, ms", |m| m.ping_median_ms, 0),
    ("the same, of 20 the second longest (p95), ms", |m| m.ping_p95_ms, 0),
    ("processor time of the proxy at the router, s/GB", |m| m.router_s_per_gb, 1),
];

const MEMORY: [Column; 4] = [
    ("processor time at the router, s/GB", |m| m.router_s_per_gb, 1),
    ("of the other end at the mobile host, s/GB", |m| m.mobile_s_per_gb, 1),
    ("memory of the proxy at the router before, MB", |m| m.idle_memory_mb, 1),
    ("more with one flow, kB", |m| m.flow_memory_kb, 0),
];

/// Returns all tables: for each place of the queue, rate and sender one of each quantity, then cost and
/// memory.
pub(crate) fn tables(runs: &[Measured]) -> String {
    let mut text = String::new();
    for (place, mbps) in distinct(runs.iter().map(|m| (m.bottleneck, m.mbps))) {
        let _ = writeln!(text, "## {mbps} Mb/s, {place}\n");
        let here: Vec<&Measured> = runs.iter().filter(|m| (m.bottleneck, m.mbps) == (place, mbps)).collect();
        for (heading, value, digits) in COLUMNS {
            for sender in distinct(here.iter().map(|m| m.sender)) {
                let of: Vec<&Measured> = here.iter().filter(|m| m.sender == sender).copied().collect();
                let _ = writeln!(text, "### {mbps} Mb/s, {place}, senders {sender}: {heading}\n");
                text.push_str(&table(&of, value, digits));
                text.push('\n');
            }
        }
        let _ = writeln!(text, "### {mbps} Mb/s, {place}: what it costs, all runs\n");
        text.push_str(&memory(&here));
        text.push('\n');
    }
    text
}

/// Returns the lateness of the links.
pub(crate) fn lateness(runs: &[Measured]) -> String {
    let n = runs.len().max(1) as f64;
    let mean = runs.iter().map(|m| m.late_mean_ms).sum::<f64>() / n;
    let over = runs.iter().map(|m| m.late_over_1ms_pct).sum::<f64>() / n;
    let worst = runs.iter().map(|m| m.late_max_ms).fold(0.0, f64::max);
    let p99 = median(runs.iter().map(|m| m.late_p99_ms).collect());
    let late = runs.iter().filter(|m| m.late).count();
    format!(
        "Lateness of the later of both links over {} runs: mean {mean:.3} ms, p99 of the median run {p99:.2} ms, maximum \
         {worst:.1} ms. Late by more than 1 ms: {over:.2} % of packets. Runs beyond the bound (2 %) at each attempt: {late}, \
         marked `*`.\n",
        runs.len()
    )
}

fn table(runs: &[&Measured], value: fn(&Measured) -> Option<f64>, digits: usize) -> String {
    let conditions = distinct(runs.iter().map(|m| m.condition.as_str()));
    let mut rows =
        vec![std::iter::once("").chain(conditions.iter().copied()).map(String::from).collect::<Vec<_>>()];
    for proxy in distinct(runs.iter().map(|m| m.proxy.as_str())) {
        let mut row = vec![proxy.to_owned()];
        for condition in &conditions {
            let of: Vec<&&Measured> =
                runs.iter().filter(|m| m.proxy == proxy && m.condition == *condition).collect();
            let mark = if of.iter().any(|m| m.late) { "*" } else { "" };
            row.push(format!("{}{mark}", cell(of.iter().filter_map(|m| value(m)).collect(), digits)));
        }
        rows.push(row);
    }
    // A quantity without any value, such as the cost of no proxy, has no row.
    rows.retain(|row| row.iter().skip(1).any(|value| value != "–"));
    aligned(&rows)
}

fn memory(runs: &[&Measured]) -> String {
    let mut rows = vec![std::iter::once("").chain(MEMORY.map(|c| c.0)).map(String::from).collect::<Vec<_>>()];
    for proxy in distinct(runs.iter().map(|m| m.proxy.as_str())) {
        let of = |value: fn(&Measured) -> Option<f64>| {
            runs.iter().filter(|m| m.proxy == proxy).filter_map(|m| value(m)).collect::<Vec<f64>>()
        };
        let cells = MEMORY.map(|(_, value, digits)| cell(of(value), digits));
        rows.push(std::iter::once(proxy.to_owned()).chain(cells).collect());
    }
    rows.retain(|row| row.iter().skip(1).any(|value| value != "–"));
    aligned(&rows)
}
