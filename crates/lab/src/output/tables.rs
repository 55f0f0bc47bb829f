//! Tables of a run, one row per flow and one per flow and second.

use crate::metrics::{CATALOGUE, Level};
use crate::record::{CompletedRun, Neighborhood, Second, Series, number};
use std::io::{self, Write};

/// Writes one row per flow: its ends, every metric of flows in the order of the catalogue, its kind and
/// class; empty where there is no value.
pub(super) fn flows(out: &mut dyn Write, done: &CompletedRun) -> io::Result<()> {
    let mut table = csv::Writer::from_writer(out);
    let metrics = || CATALOGUE.iter().filter(|info| info.level() == Level::Flow).map(|info| info.name);
    table.write_record(
        ["id", "src", "dst", "transport"].into_iter().chain(metrics()).chain(["kind", "class"]),
    )?;
    let values = done.by_key();
    for flow in &done.flows {
        let cell = |name| values.get(&(Level::Flow, flow.id.as_str(), name)).map(|&x| number(x).to_string());
        let ends = [&flow.id, &flow.src, &flow.dst, &flow.transport].map(String::clone);
        let values = metrics().map(|name| cell(name).unwrap_or_default());
        table.write_record(ends.into_iter().chain(values).chain([flow.kind.clone(), flow.class.clone()]))?;
    }
    table.flush()
}

/// Writes the state of every flow, second by second.
pub(super) fn series(out: &mut dyn Write, flows: &[Series]) -> io::Result<()> {
    let mut table = csv::Writer::from_writer(out);
    table.write_record([
        "time_s",
        "flow",
        "goodput_bps",
        "cwnd_bytes",
        "srtt_s",
        "queue_packets",
        "delay_mean_s",
    ])?;
    let rows: Vec<Vec<Second>> = flows.iter().map(|flow| flow.seconds().collect()).collect();
    for second in 0..rows.iter().map(Vec::len).max().unwrap_or(0) {
        for (flow, rows) in flows.iter().zip(&rows) {
            let Second { time_s, goodput_bps, cwnd_bytes, srtt_s, queue_packets, delay_s } = rows[second];
            table.serialize((time_s, &flow.flow, goodput_bps, cwnd_bytes, srtt_s, queue_packets, delay_s))?;
        }
    }
    table.flush()
}

/// Writes the queues of neighbourhoods and their estimates, every 100 ms.
pub(super) fn neighborhoods(out: &mut dyn Write, nodes: &[Neighborhood]) -> io::Result<()> {
    let mut table = csv::Writer::from_writer(out);
    table.write_record([
        "time_s",
        "node",
        "queue_packets",
        "average_queue_packets",
        "estimate_packets",
        "latest_packets",
    ])?;
    for node in nodes {
        for (i, time_s) in node.time_s.iter().enumerate() {
            let average = node.average_queue_packets.get(i);
            let estimates = (node.estimate_packets[i], node.latest_packets[i]);
            table.serialize((time_s, &node.node, node.queue_packets[i], average, estimates))?;
        }
    }
    table.flush()
}
