//! Text of flows as their packets show them, for a terminal.

use super::table::{Align, cell, render};
use crate::metrics::Level;
use crate::record::{CompletedRun, FlowEnds};

/// Most rows of the table.
const MAX_ROWS: usize = 20;

/// Returns a table of the flows with most data; empty if there is no flow.
#[must_use]
pub fn flows(done: &CompletedRun) -> String {
    let values = done.by_key();
    let mut all: Vec<&FlowEnds> = done.flows.iter().collect();
    if all.is_empty() {
        return String::new();
    }
    all.sort_by(|a, b| {
        let bytes = |flow: &FlowEnds| values.get(&(Level::Flow, flow.id.as_str(), "bytes_received")).copied();
        bytes(b).unwrap_or(0.0).total_cmp(&bytes(a).unwrap_or(0.0))
    });
    let header = [
        ("flow", Align::Left),
        ("from", Align::Left),
        ("to", Align::Left),
        ("goodput kb/s", Align::Right),
        ("received kB", Align::Right),
        ("packets", Align::Right),
        ("lost %", Align::Right),
        ("resent", Align::Right),
        ("delay ms", Align::Right),
        ("95 % within ms", Align::Right),
    ];
    let row = |flow: &&FlowEnds| {
        let cell = |name, factor, digits| cell(&values, (Level::Flow, &flow.id, name), factor, digits);
        let numbers = [
            cell("goodput_bps", 1e-3, 1),
            cell("bytes_received", 1e-3, 1),
            cell("packets_sent", 1.0, 0),
            cell("packet_loss_pct", 1.0, 1),
            cell("retransmissions", 1.0, 0),
            cell("delay_p50_s", 1e3, 1),
            cell("delay_p95_s", 1e3, 1),
        ];
        [&flow.id, &flow.src, &flow.dst].map(String::clone).into_iter().chain(numbers).collect()
    };
    let rows: Vec<Vec<String>> = all.iter().take(MAX_ROWS).map(row).collect();
    let mut text = render(&header, &rows);
    if all.len() > MAX_ROWS {
        text.push_str(&format!("and {} flows with less data\n", all.len() - MAX_ROWS));
    }
    text
}
