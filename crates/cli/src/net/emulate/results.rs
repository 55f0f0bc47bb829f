//! Results of an emulation in the form of the lab's: flows of programs stand beside simulated ones.

use crate::commands::experiment;
use crate::problems::Failure;
use hopline_core::{Duration, Instant, NodeId};
use hopline_emulate::{FlowProtocol, NetworkReport, RealFlow};
use hopline_lab::animation::Animation;
use hopline_lab::description::Description;
use hopline_lab::engine::{ENDPOINT_METRICS, FAIRNESS_METRICS};
use hopline_lab::map::Map;
use hopline_lab::metrics::{self, Level};
use hopline_lab::plan::{Keep, KeepNodes, KeepPairs, KeepSeries};
use hopline_lab::record::{CompletedRun, PROGRAM_KIND, Value};
use hopline_lab::{Comparison, Plan, Run, Scenario, Spec};
use hopline_sim::outcome::Outcome;
use hopline_sim::spec::{FlowLabels, FlowSpec, Traffic, Transport};
use hopline_transport::tcp::Config;
use std::net::SocketAddr;

/// Metric of programs without packets.
const GOODPUT: &str = "goodput_bps";
/// Most flows of programs with series: those with the most data.
const MAX_SERIES: usize = 100;

/// Metrics of a flow that its packets show. Only its endpoints know the others.
const MEASURED: [&str; 24] = [
    "goodput_bps",
    "bytes_received",
    "longest_silence_s",
    "segments_sent",
    "segments_received",
    "retransmissions",
    "rtx_index_pct",
    "spurious_rtx",
    "spurious_rtx_pct",
    "packets_sent",
    "packets_received",
    "delivery_pct",
    "packet_loss_pct",
    "delay_mean_s",
    "delay_p50_s",
    "delay_p95_s",
    "delay_p99_s",
    "delay_max_s",
    "jitter_mean_s",
    "hops_mean",
    "back_packets_sent",
    "back_packet_loss_pct",
    "back_delay_mean_s",
    "warm_up_s",
];

/// Real time that an emulation took.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cost {
    /// Of the thread that simulates the network.
    pub(super) cpu: Duration,
    /// From its start to its end.
    pub(super) wall: Duration,
}

/// An emulation as a run of the lab.
pub(super) struct Emulated {
    /// The network, with the flows of programs behind its own. It lasts as long as the emulation did.
    pub(super) spec: Spec,
    /// The run.
    pub(super) done: CompletedRun,
}

impl Emulated {
    /// Returns the run number `number` of `spec`.
    pub(super) fn of(spec: &Spec, number: u64, report: &NetworkReport, cost: Cost) -> Self {
        let mut spec = Spec { duration: report.outcome.sim_time, ..spec.clone() };
        let mut outcome = report.outcome.clone();
        let simulated = spec.flows.len();
        for flow in &report.flows.flows {
            spec.flows.push(flow_spec(&spec, flow));
            outcome.flows.push(flow.outcome.clone());
        }
        let mut done = completed(&spec, number, cost, outcome);
        for (ends, flow) in done.flows[simulated..].iter_mut().zip(&report.flows.flows) {
            for (end, node, address) in
                [(&mut ends.src, flow.nodes[0], flow.src), (&mut ends.dst, flow.nodes[1], flow.dst)]
            {
                if node.is_none() {
                    *end = address.ip().to_string();
                }
            }
        }
        leave_out_unmeasured(&mut done, simulated);
        Self { spec, done }
    }

    /// Returns the run as a sweep keeps it. The flows of programs have other ends in each run, so that they are kept as one.
    ///
    /// `simulated`: the number of flows of the scenario.
    pub(super) fn into_record(self, number: u64, keep: Keep, simulated: usize) -> CompletedRun {
        let mut done = self.done;
        let programs = done.flows.split_off(simulated.min(done.flows.len()));
        if programs.is_empty() {
            // Without packets of programs there is no flow, and their goodput is zero.
            let value = |metric| Value { metric, subject: PROGRAM_KIND.to_owned(), value: 0.0 };
            done.metrics.extend(metrics::find(Level::Group, GOODPUT).map(value));
        }
        let is_kept = |subject: &str| !programs.iter().any(|flow| flow.id == subject);
        done.metrics.retain(|value| match value.metric.level() {
            Level::Flow => is_kept(&value.subject),
            Level::Node => keep.nodes == KeepNodes::Keep,
            _ => true,
        });
        done.series.retain(|series| is_kept(&series.flow));
        done.distributions.retain(|distribution| !distribution.of_flow || is_kept(&distribution.of));
        if keep.series == KeepSeries::None || keep.series == KeepSeries::FirstRun && number != 1 {
            (done.series, done.neighborhoods, done.distributions) = Default::default();
        }
        done
    }

    /// Returns the report of run number `number` of `scenario`.
    pub(super) fn page(
        &self,
        scenario: &Scenario,
        number: u64,
        animation: Option<Animation>,
    ) -> Result<String, Failure> {
        let plan = Plan::new(scenario, &[])?;
        let description = Description::of_run(&plan, experiment::command(), number)?;
        let (flows, map) = (self.done.flows.clone(), Map::of(&self.spec));
        let description = Description { flows, map, duration_s: rounded(self.done.sim_s), ..description };
        let mut comparison = Comparison::of_run(description, number, self.done.clone());
        comparison.points[0].animation = animation;
        Ok(experiment::page(&comparison))
    }
}

/// Returns seconds to the millisecond: the length of an emulation is no number of a file.
fn rounded(seconds: f64) -> f64 {
    (seconds * 1e3).round() / 1e3
}

fn completed(spec: &Spec, number: u64, cost: Cost, outcome: Outcome) -> CompletedRun {
    let run = Run { outcome, cpu_s: cost.cpu.as_secs_f64(), wall_s: cost.wall.as_secs_f64() };
    let keep = Keep { series: KeepSeries::All, nodes: KeepNodes::Keep, pairs: KeepPairs::Drop };
    CompletedRun::of(spec, &run, number, keep)
}

/// Removes metrics that were not measured, and the series of small flows. The first `simulated` flows are simulated.
fn leave_out_unmeasured(done: &mut CompletedRun, simulated: usize) {
    let real = &done.flows[simulated..];
    done.metrics.retain(|value| match value.metric.level() {
        Level::Flow if real.iter().any(|flow| flow.id == value.subject) => {
            MEASURED.contains(&value.metric.name)
        }
        Level::Run | Level::Group if FAIRNESS_METRICS.contains(&value.metric.name) => false,
        Level::Group if value.subject == PROGRAM_KIND => !ENDPOINT_METRICS.contains(&value.metric.name),
        Level::Run if simulated == 0 => !ENDPOINT_METRICS.contains(&value.metric.name),
        _ => true,
    });
    let mut bytes: Vec<u64> = done.series[simulated..]
        .iter()
        .map(|series| series.bytes_received.last().copied().unwrap_or(0))
        .collect();
    bytes.sort_unstable_by(|a, b| b.cmp(a));
    let least = bytes.get(MAX_SERIES).copied();
    let mut number = 0;
    done.series.retain_mut(|series| {
        number += 1;
        // The window of a connection is not seen.
        series.segment_bytes = if number > simulated { 0 } else { series.segment_bytes };
        number <= simulated
            || least.is_none_or(|least| series.bytes_received.last().is_some_and(|&b| b > least))
    });
}

fn flow_spec(spec: &Spec, flow: &RealFlow) -> FlowSpec {
    let (transport, traffic) = match flow.protocol {
        FlowProtocol::Tcp => ("tcp", Traffic::Bulk { over: Transport::Tcp(Config::modern()), bytes: None }),
        FlowProtocol::Udp => ("udp", Traffic::Cbr { packet_bytes: 1, interval: Duration::from_secs(1) }),
    };
    let [src, dst] = [flow.src, flow.dst].map(|end| end_name(spec, end));
    // An end without a node is named by its address.
    let [from, to] = [0, 1].map(|end| flow.nodes[end].or(flow.nodes[1 - end]).unwrap_or(NodeId(0)));
    FlowSpec {
        name: format!("{transport} {src} > {dst}"),
        src: from,
        dst: to,
        start: flow.outcome.counting_since,
        stop: Instant::FAR_FUTURE,
        traffic,
        end_transports: [None, None],
        labels: FlowLabels { transport: transport.into(), kind: PROGRAM_KIND.into(), class: String::new() },
    }
}

/// Returns an end with the name of the node that has had its address from the start, or as it is.
fn end_name(spec: &Spec, end: SocketAddr) -> String {
    let SocketAddr::V4(v4) = end else { return end.to_string() };
    let node = NodeId::from_ipv4(*v4.ip()).and_then(|node| spec.nodes.get(node.index()));
    node.map_or_else(|| end.to_string(), |node| format!("{}:{}", node.name, end.port()))
}
