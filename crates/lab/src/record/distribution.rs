//! Distributions of the packet delays and response times of a run.

use crate::metrics::{self, Level};
use crate::run::Run;
use hopline_sim::Spec;
use hopline_sim::outcome::{DelayStats, FlowOutcome};
use hopline_sim::spec::{FlowSpec, Traffic};
use serde::{Deserialize, Serialize};

/// Percentages of the stored percentiles. 0 is the minimum, 100 the maximum.
pub const PERCENT: [f64; 27] = [
    0.0, 1.0, 2.5, 5.0, 10.0, 15.0, 20.0, 25.0, 30.0, 35.0, 40.0, 45.0, 50.0, 55.0, 60.0, 65.0, 70.0, 75.0,
    80.0, 85.0, 90.0, 92.5, 95.0, 97.5, 99.0, 99.9, 100.0,
];
/// Maximum number of flows of a run with a distribution for each flow. If there are more, only the distributions of all
/// flows, and of each kind of traffic and each `class` of flows, are stored.
const MAX_FLOWS: usize = 50;

/// Kind of the times in a distribution.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Times {
    /// One-way delays of packets of data.
    Delay,
    /// Response times: from a request to the end of its response.
    Response,
}

/// Distribution of delays or response times of a flow, or of several flows, in one run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Distribution {
    /// Kind of the times.
    pub times: Times,
    /// Name of the flow, of the kind of traffic, or of the class; empty: all flows together.
    pub of: String,
    /// `true` for a single flow; `false` for a kind of traffic, a class or all flows.
    pub of_flow: bool,
    /// Quantiles at [`PERCENT`], in seconds.
    pub quantiles_s: Vec<f64>,
}

/// Returns the distributions of `run`: of all flows together, of each kind of traffic and each class if there are several,
/// and of each flow if there are 2 to [`MAX_FLOWS`].
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

/// Returns the distribution of delays and, if some of `flows` send requests, that of response times.
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
