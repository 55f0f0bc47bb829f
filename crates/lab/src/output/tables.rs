//! The tables of a run, one row per flow and one per flow and second.

use crate::metrics::{CATALOGUE, Level};
use crate::record::{Done, Series, number};
use serde::Serialize;
use std::io::{self, Write};

/// One row per flow: its ends, and every metric of flows in the order of the catalogue; empty where a flow has it not.
pub(super) fn flows(out: &mut dyn Write, done: &Done) -> io::Result<()> {
    let mut table = csv::Writer::from_writer(out);
    let metrics = || CATALOGUE.iter().filter(|info| info.level() == Level::Flow).map(|info| info.name);
    table.write_record(["id", "src", "dst", "transport"].into_iter().chain(metrics()))?;
    let values = done.by_key();
    for flow in &done.flows {
        let cell = |name| values.get(&(Level::Flow, flow.id.as_str(), name)).map(|&x| number(x).to_string());
        let ends = [&flow.id, &flow.src, &flow.dst, &flow.transport].map(String::clone);
        table.write_record(ends.into_iter().chain(metrics().map(|name| cell(name).unwrap_or_default())))?;
    }
    table.flush()
}

/// One row per flow and second.
#[derive(Serialize)]
struct Row<'a> {
    /// End of the second.
    time_s: f64,
    flow: &'a str,
    /// Over this second.
    goodput_bps: f64,
    /// Empty for a flow without a congestion window.
    cwnd_bytes: Option<u64>,
    /// Empty before the first sample.
    srtt_s: Option<f64>,
    /// In the interface queue of the source.
    queue_packets: u32,
}

/// The state of every flow, second by second.
pub(super) fn series(out: &mut dyn Write, flows: &[Series]) -> io::Result<()> {
    let mut table = csv::Writer::from_writer(out);
    let goodput: Vec<Vec<f64>> = flows.iter().map(Series::goodput_bps).collect();
    let seconds = flows.iter().map(|flow| flow.time_s.len()).max().unwrap_or(0);
    for second in 0..seconds {
        for (flow, goodput) in flows.iter().zip(&goodput) {
            table.serialize(Row {
                time_s: flow.time_s[second],
                flow: &flow.flow,
                goodput_bps: goodput[second],
                cwnd_bytes: Some(flow.cwnd_bytes[second]).filter(|&cwnd| cwnd > 0),
                srtt_s: flow.srtt_s[second],
                queue_packets: flow.queue_packets[second],
            })?;
        }
    }
    table.flush()
}
