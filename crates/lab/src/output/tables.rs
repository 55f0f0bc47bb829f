//! The tables of a run, one row per flow and one per flow and second.

use crate::summary::Summary;
use hopline_sim::outcome::{FlowOutcome, FlowSample};
use hopline_sim::{Outcome, Spec};
use serde::Serialize;
use std::io::{self, Write};

/// One row per flow, with the keys of `--json` as header.
pub(super) fn flows(out: &mut dyn Write, summary: &Summary) -> io::Result<()> {
    let mut table = csv::Writer::from_writer(out);
    for flow in &summary.flows {
        table.serialize(flow).map_err(io::Error::from)?;
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
pub(super) fn series(out: &mut dyn Write, spec: &Spec, outcome: &Outcome) -> io::Result<()> {
    let mut table = csv::Writer::from_writer(out);
    let seconds = outcome.flows.iter().map(|f| f.series.len()).max().unwrap_or(0);
    for second in 0..seconds {
        for (flow, result) in spec.flows.iter().zip(&outcome.flows) {
            if let Some(row) = row(&flow.name, result, second) {
                table.serialize(row).map_err(io::Error::from)?;
            }
        }
    }
    table.flush()
}

fn row<'a>(flow: &'a str, result: &FlowOutcome, second: usize) -> Option<Row<'a>> {
    let sample = result.series.get(second)?;
    let before = second.checked_sub(1).map(|i| result.series[i]);
    Some(Row {
        time_s: sample.at.as_secs_f64(),
        flow,
        goodput_bps: rate(before, sample),
        cwnd_bytes: (sample.cwnd_bytes > 0).then_some(sample.cwnd_bytes),
        srtt_s: sample.srtt.map(|t| t.as_secs_f64()),
        queue_packets: sample.queue_packets,
    })
}

/// What arrived since `before`, or since the start of the run.
fn rate(before: Option<FlowSample>, sample: &FlowSample) -> f64 {
    let (bytes, at) = before.map_or((0, hopline_core::Instant::ZERO), |b| (b.bytes_received, b.at));
    let elapsed = sample.at.since(at).as_secs_f64();
    if elapsed > 0.0 { (sample.bytes_received - bytes) as f64 * 8.0 / elapsed } else { 0.0 }
}
