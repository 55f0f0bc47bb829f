//! Metrics of handoffs, of all mobile hosts of a run and of each.

use super::super::Better::{Lower, Neither};
use super::super::{Better, MetricInfo};
use super::{node, run};
use hopline_sim::Outcome;
use hopline_sim::outcome::{DelayStats, Handoffs, NodeOutcome};

/// Metrics of a run.
pub(super) const OF_RUNS: &[MetricInfo] = &[
    run(COMPLETED.0, "1", COMPLETED.1, COMPLETED.2, |o| of_run(o, completed)),
    run(TIME.0, "s", TIME.1, TIME.2, |o| of_run(o, time_s)),
    run(PAUSE.0, "s", PAUSE.1, PAUSE.2, |o| of_run(o, pause_s)),
    run(LONGEST.0, "s", LONGEST.1, LONGEST.2, |o| of_run(o, longest_pause_s)),
];

/// Metrics of a node.
pub(super) const OF_NODES: &[MetricInfo] = &[
    node(COMPLETED.0, "1", COMPLETED.1, COMPLETED.2, |n| of_node(n, completed)),
    node(TIME.0, "s", TIME.1, TIME.2, |n| of_node(n, time_s)),
    node(PAUSE.0, "s", PAUSE.1, PAUSE.2, |n| of_node(n, pause_s)),
    node(LONGEST.0, "s", LONGEST.1, LONGEST.2, |n| of_node(n, longest_pause_s)),
];

/// Name, better direction, documentation.
type About = (&'static str, Better, &'static str);

const COMPLETED: About = ("handoffs", Neither, "changes of a mobile host from one base station to another");
const TIME: About = ("handoff_s", Lower, "median time from a request to the new station to its answer");
const PAUSE: About = (
    "handoff_pause_s",
    Lower,
    "median of the longest times without a packet in a handoff, until the first one from the new station",
);
const LONGEST: About = ("handoff_pause_max_s", Lower, "the longest of these times");

fn of_run(outcome: &Outcome, of: fn(&Handoffs) -> Option<f64>) -> Option<f64> {
    let all = outcome.nodes.iter().map(|node| &node.handoffs).fold(Handoffs::default(), Handoffs::with);
    (all.completed.count() > 0).then(|| of(&all)).flatten()
}

fn of_node(node: &NodeOutcome, of: fn(&Handoffs) -> Option<f64>) -> Option<f64> {
    (node.handoffs.completed.count() > 0).then(|| of(&node.handoffs)).flatten()
}

fn completed(handoffs: &Handoffs) -> Option<f64> {
    Some(handoffs.completed.count() as f64)
}

fn time_s(handoffs: &Handoffs) -> Option<f64> {
    median_s(&handoffs.completed)
}

fn pause_s(handoffs: &Handoffs) -> Option<f64> {
    median_s(&handoffs.pauses)
}

fn longest_pause_s(handoffs: &Handoffs) -> Option<f64> {
    handoffs.pauses.max().map(|time| time.as_secs_f64())
}

fn median_s(times: &DelayStats) -> Option<f64> {
    times.quantile(0.5).map(|time| time.as_secs_f64())
}
