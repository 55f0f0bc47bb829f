//! Distributions of delays and response times of a run.

use crate::metrics::{self, Level};
use crate::run::Run;
use hopline_sim::Spec;
use hopline_sim::outcome::{DelayStats, FlowOutcome};
use hopline_sim::spec::{FlowSpec, Traffic};
use serde::{Deserialize, Serialize};

/// Percentiles that are stored.
pub const PERCENT: [f64; 27] = [
    0.0, 1.0, 2.5, 5.0, 10.0, 15.0, 20.0, 25.0, 30.0, 35.0, 40.0, 45.0, 50.0, 55.0, 60.0, 65.0, 70.0, 75.0,
    80.0, 85.0, 90.0, 92.5, 95.0, 97.5, 99.0, 99.9, 100.0,
];
/// Maximum number of flows for which distributions of single flows are stored, besides those of kinds,
/// classes and all flows.
const MAX_FLOWS: usize = 50;

/// Measured times of a distribution.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Times {
    /// One-way delays of packets of data.
    Delay,
    /// Times from a request to the end of its response.
    Response,
}

/// The distribution of one run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Distribution {
    /// Measured times.
    pub times: Times,
    /// Name of the flow, kind or class; empty: all flows together.
    pub of: String,
    /// `true` for a flow; otherwise it is a kind, a class or all.
    pub of_flow: bool,
    /// Quantiles at [`PERCENT`], in seconds.
    pub quantiles_s: Vec<f64>,
}

/// Returns the distributions of `run`: of all flows, of each kind and class if there are several, and of each
/// flow if they are few.
pub(super) fn of(spec: &Spec, run: &Run) -> Vec<Distribution> {
    let flows: Vec<(&FlowSpec, &FlowOutcome)> = spec.flows.iter().zip(&run.outcome.flows).collect();
    let mut all = delays_and_responses("", Level::Run, &flows);
    for group in metrics::groups_of(spec) {
        let members: Vec<_> = flows.iter().copied().filter(|(flow, _)| group.has(flow)).collect();
        all.extend(delays_and_responses(group.name, Level::Group, &members));
    }
    if (2..=MAX_FLOWS).contains(&flows.len()) {
        all.extend(
            flows
                .iter()
                .flat_map(|one| delays_and_responses(&one.0.name, Level::Flow, std::slice::from_ref(one))),
        );
    }
    all
}

/// Returns the distributions of delays and, for flows with requests, of response times.
fn delays_and_responses(of: &str, level: Level, flows: &[(&FlowSpec, &FlowOutcome)]) -> Vec<Distribution> {
    let sum = |values: fn(&FlowOutcome) -> &DelayStats, counts: fn(&FlowSpec) -> bool| {
        let counted = flows.iter().filter(|(flow, _)| counts(flow));
        counted.fold(DelayStats::default(), |all, (_, outcome)| all.with(values(outcome)))
    };
    let asks = |flow: &FlowSpec| matches!(flow.traffic, Traffic::Exchange { .. });
    let of_times = [
        (Times::Delay, sum(|outcome| &outcome.data.delays, |_| true)),
        (Times::Response, sum(|outcome| &outcome.responses, asks)),
    ];
    let distribution = |(times, values): (Times, DelayStats)| {
        let quantiles = PERCENT.iter().map(|percent| Some(values.quantile(percent / 100.0)?.as_secs_f64()));
        let quantiles_s = quantiles.collect::<Option<Vec<f64>>>()?;
        Some(Distribution { times, of: of.to_owned(), of_flow: level == Level::Flow, quantiles_s })
    };
    of_times.into_iter().filter_map(distribution).collect()
}
