//! Tables of medians in Markdown, also legible in a terminal.

use crate::cable::Fast;
use crate::run::Measured;
use std::fmt::Write;
use versus::table::{aligned, cell, distinct, median};

/// One quantity: heading, value, digits.
type Column = (&'static str, fn(&Measured) -> Option<f64>, usize);

const COLUMNS: [Column; 6] = [
    ("Goodput, Mb/s", |m| Some(m.goodput_mbps), 2),
    ("Packets sent per full packet's worth delivered", |m| Some(m.packets_per_delivered), 2),
    ("Bytes sent per byte delivered", |m| Some(m.bytes_per_byte), 2),
    ("Dropped by the full queue, % of what was sent", |m| Some(m.queue_drop_pct), 1),
    ("Smoothed round-trip time at the end, as the transport says, ms", |m| m.srtt_ms, 0),
    ("Mean wait in the queue, ms", |m| Some(m.queue_wait_ms), 0),
];

/// Returns all tables: for each rate and delay one of each quantity.
pub(crate) fn tables(runs: &[Measured]) -> String {
    let mut text = String::new();
    for link in distinct(runs.iter().map(|m| (m.rate_mbps, m.delay_ms))) {
        let at: Vec<&Measured> = runs.iter().filter(|m| (m.rate_mbps, m.delay_ms) == link).collect();
        for (heading, value, digits) in COLUMNS {
            let (rate, delay) = link;
            let _ = writeln!(text, "### {rate} Mb/s, {delay} ms one way: {heading}\n");
            text.push_str(&table(&at, value, digits));
            text.push('\n');
        }
    }
    text
}

/// Returns the lateness of the link.
pub(crate) fn lateness(runs: &[Measured]) -> String {
    let n = runs.len().max(1) as f64;
    let mean = runs.iter().map(|m| m.link_late_mean_ms).sum::<f64>() / n;
    let over = runs.iter().map(|m| m.link_late_over_1ms_pct).sum::<f64>() / n;
    let worst = runs.iter().map(|m| m.link_late_max_ms).fold(0.0, f64::max);
    let p99 = median(runs.iter().map(|m| m.link_late_p99_ms).collect());
    let late = runs.iter().filter(|m| m.late).count();
    format!(
        "Lateness of the link over {} runs: mean {mean:.3} ms, p99 of the median run {p99:.2} ms, maximum {worst:.1} ms. \
         Late by more than 1 ms: {over:.2} % of packets. Runs beyond the bound (2 %) at each attempt: {late}, marked `*`.\n",
        runs.len()
    )
}

/// One quantity over the cable.
type FastColumn = (&'static str, fn(&Fast) -> f64, usize);

const FAST_COLUMNS: [FastColumn; 5] = [
    ("Mb/s", |m| m.goodput_mbps, 0),
    ("sender, s/GB", |m| m.sender_s_per_gb, 2),
    ("receiver, s/GB", |m| m.receiver_s_per_gb, 2),
    ("ksoftirqd, s/GB", |m| m.kernel_s_per_gb, 2),
    ("together, s/GB", |m| m.sender_s_per_gb + m.receiver_s_per_gb + m.kernel_s_per_gb, 2),
];

/// Returns goodput and cost over the cable, a table for each unit that crosses it.
pub(crate) fn cable(runs: &[Fast]) -> String {
    let mut text = String::new();
    for crossing in distinct(runs.iter().map(|m| m.crossing)) {
        let _ =
            writeln!(text, "### Over a cable, {crossing}: goodput, and processor seconds per 10⁹ bytes\n");
        let at = || runs.iter().filter(|m| m.crossing == crossing);
        let mut rows = vec![
            std::iter::once("").chain(FAST_COLUMNS.iter().map(|c| c.0)).map(String::from).collect::<Vec<_>>(),
        ];
        for peer in distinct(at().map(|m| m.peer.as_str())) {
            let of = |value: fn(&Fast) -> f64| at().filter(|m| m.peer == peer).map(value).collect();
            let cells = FAST_COLUMNS.iter().map(|&(_, value, digits)| cell(of(value), digits));
            rows.push(std::iter::once(peer.to_owned()).chain(cells).collect());
        }
        text.push_str(&aligned(&rows));
        text.push('\n');
    }
    text
}

fn table(runs: &[&Measured], value: fn(&Measured) -> Option<f64>, digits: usize) -> String {
    let conditions = distinct(runs.iter().map(|m| m.condition.as_str()));
    let peers = distinct(runs.iter().map(|m| m.peer.as_str()));
    let mut rows =
        vec![std::iter::once("").chain(conditions.iter().copied()).map(String::from).collect::<Vec<_>>()];
    for peer in peers {
        let mut row = vec![peer.to_owned()];
        for condition in &conditions {
            let of = runs.iter().filter(|m| m.peer == peer && m.condition == *condition);
            let of: Vec<&Measured> = of.copied().collect();
            let mark = if of.iter().any(|m| m.late) { "*" } else { "" };
            row.push(format!("{}{mark}", cell(of.iter().filter_map(|m| value(m)).collect(), digits)));
        }
        rows.push(row);
    }
    aligned(&rows)
}
