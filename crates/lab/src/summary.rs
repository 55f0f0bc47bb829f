//! What one run says, as `--json` prints it and result files keep it.

use crate::run::Run;
use hopline_core::Duration;
use hopline_sim::outcome::{Connected, Delays, FlowOutcome};
use hopline_sim::spec::{FlowSpec, Traffic};
use hopline_sim::{Outcome, Spec};
use hopline_transport::tcp::Variant;
use serde::Serialize;

/// One run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Summary {
    /// Hash of the event trajectory, 16 hexadecimal digits.
    pub fingerprint: String,
    /// Virtual time simulated, in seconds.
    pub sim_s: f64,
    /// CPU time used, in seconds.
    pub cpu_s: f64,
    /// Events processed.
    pub events: u64,
    /// One entry a flow, in scenario order.
    pub flows: Vec<FlowSummary>,
    /// Sum of the flows' goodputs, in bits per second.
    pub aggregate_goodput_bps: f64,
    /// Jain's fairness index of the goodputs.
    pub jain: f64,
    /// Jain's index of what 2 s intervals delivered, averaged.
    pub jain_2s: f64,
}

/// One flow of a run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FlowSummary {
    /// Name of the flow.
    pub id: String,
    /// Name of the sending node.
    pub src: String,
    /// Name of the receiving node.
    pub dst: String,
    /// `tcp-newreno`, `tcp-sack`, `tcp-reno`, `udp-cbr` or `udp-on-off`.
    pub transport: &'static str,
    /// Distinct bytes delivered over the time the flow was active, in bits per second.
    pub goodput_bps: f64,
    /// Distinct bytes delivered.
    pub bytes_received: u64,
    /// Data segments or packets sent, retransmissions included.
    pub segments_sent: u64,
    /// Data segments sent again.
    pub retransmissions: u64,
    /// Retransmission timeouts.
    pub timeouts: u64,
    /// Segments sent again per hundred distinct segments received.
    pub rtx_index_pct: f64,
    /// Packets from `src` to `dst` lost per hundred whose fate is known.
    pub packet_loss_pct: Option<f64>,
    /// Median of the one-way delay from `src` to `dst`, in seconds.
    pub delay_p50_s: Option<f64>,
    /// 95th percentile of it.
    pub delay_p95_s: Option<f64>,
    /// Time to the last byte of what had an end and came to it, in seconds.
    pub completion_s: Option<f64>,
    /// Responses that arrived whole; of requests and responses only.
    pub responses: Option<u64>,
    /// Median of the response times, in seconds.
    pub response_p50_s: Option<f64>,
    /// 95th percentile of them.
    pub response_p95_s: Option<f64>,
}

impl Summary {
    /// What `run` of `spec` says.
    #[must_use]
    pub fn of(spec: &Spec, run: &Run) -> Self {
        let outcome = &run.outcome;
        Self {
            fingerprint: format!("{:016x}", outcome.fingerprint),
            sim_s: outcome.sim_time.as_secs_f64(),
            cpu_s: run.cpu_s,
            events: outcome.events,
            flows: spec.flows.iter().zip(&outcome.flows).map(|(s, o)| FlowSummary::of(spec, s, o)).collect(),
            aggregate_goodput_bps: outcome.aggregate_goodput_bps(),
            jain: outcome.jain(),
            jain_2s: outcome.jain_2s(),
        }
    }
}

/// Retransmission index over all flows together, in percent: segments sent again per hundred distinct segments
/// received. 0 if none was.
#[must_use]
pub fn total_rtx_index_pct(outcome: &Outcome) -> f64 {
    let sum = |count: fn(&FlowOutcome) -> u64| outcome.flows.iter().map(count).sum::<u64>() as f64;
    let received = sum(|f| f.segments_received);
    if received > 0.0 { 100.0 * sum(|f| f.retransmissions) / received } else { 0.0 }
}

impl FlowSummary {
    fn of(spec: &Spec, flow: &FlowSpec, outcome: &FlowOutcome) -> Self {
        let name = |id: hopline_core::NodeId| spec.nodes[id.index()].name.clone();
        Self {
            id: flow.name.clone(),
            src: name(flow.src),
            dst: name(flow.dst),
            transport: transport(&flow.traffic),
            goodput_bps: outcome.goodput_bps(),
            bytes_received: outcome.bytes_received,
            segments_sent: outcome.segments_sent,
            retransmissions: outcome.retransmissions,
            timeouts: outcome.timeouts,
            rtx_index_pct: outcome.rtx_index_pct(),
            packet_loss_pct: outcome.data.loss_pct(),
            delay_p50_s: quantile(&outcome.data.delays, 0.5),
            delay_p95_s: quantile(&outcome.data.delays, 0.95),
            completion_s: outcome.completion.map(Duration::as_secs_f64),
            responses: matches!(flow.traffic, Traffic::Exchange { .. }).then(|| outcome.responses.count()),
            response_p50_s: quantile(&outcome.responses, 0.5),
            response_p95_s: quantile(&outcome.responses, 0.95),
        }
    }
}

fn quantile(delays: &Delays, q: f64) -> Option<f64> {
    delays.quantile(q).map(Duration::as_secs_f64)
}

/// The name of a flow's transport, as scenario files write it.
#[must_use]
pub fn transport(traffic: &Traffic) -> &'static str {
    let tcp = match traffic {
        Traffic::Cbr { .. } => return "udp-cbr",
        Traffic::OnOff { .. } => return "udp-on-off",
        Traffic::Bulk { tcp, .. } | Traffic::Exchange { tcp, .. } => tcp,
    };
    match tcp.variant {
        Variant::NewReno(_) => "tcp-newreno",
        Variant::Sack(_) => "tcp-sack",
        Variant::Reno(_) => "tcp-reno",
    }
}

/// The flows that never delivered a byte, by name, and why that may be.
pub fn never_connected<'a>(
    spec: &'a Spec,
    run: &'a Run,
) -> impl Iterator<Item = (&'a FlowSpec, &'static str)> {
    let pairs = spec.flows.iter().zip(&run.outcome.flows);
    pairs.filter(|(_, outcome)| outcome.connected == Connected::Never).map(|(flow, _)| {
        let started = flow.start.since(hopline_core::Instant::ZERO) < spec.duration;
        (
            flow,
            if started { "not one byte arrived" } else { "it would have started after the end of the run" },
        )
    })
}
