//! The catalogue of metrics, one line each.

mod flows;
mod groups;
mod handoffs;
mod nodes;
mod runs;

use super::{Better, Measure, MetricInfo};
use hopline_sim::Outcome;
use hopline_sim::outcome::{FlowOutcome, NodeOutcome};
use hopline_sim::spec::FlowSpec;

/// All metrics: of the run, of groups of flows, of flows, of pairs of flows, and of nodes. Names are unique
/// within a level, and mean the same on every level on which they occur.
pub const CATALOGUE: &[MetricInfo] = &all();

const LISTS: [&[MetricInfo]; 8] = [
    groups::OF_RUNS,
    runs::RUNS,
    handoffs::OF_RUNS,
    groups::GROUPS,
    flows::FLOWS,
    flows::PAIRS,
    nodes::NODES,
    handoffs::OF_NODES,
];

/// Concatenates the lists.
const fn all() -> [MetricInfo; count()] {
    let mut all = [LISTS[0][0]; count()];
    let (mut at, mut list) = (0, 0);
    while list < LISTS.len() {
        let mut n = 0;
        while n < LISTS[list].len() {
            all[at] = LISTS[list][n];
            (at, n) = (at + 1, n + 1);
        }
        list += 1;
    }
    all
}

const fn count() -> usize {
    let (mut count, mut list) = (0, 0);
    while list < LISTS.len() {
        count += LISTS[list].len();
        list += 1;
    }
    count
}

type OfRun = fn(&Outcome) -> Option<f64>;
type OfFlow = fn(&FlowSpec, &FlowOutcome) -> Option<f64>;
type OfPair = fn(&FlowOutcome, &FlowOutcome) -> Option<f64>;
type OfNode = fn(&NodeOutcome) -> Option<f64>;

const fn run(
    n: &'static str,
    unit: &'static str,
    better: Better,
    doc: &'static str,
    of: OfRun,
) -> MetricInfo {
    MetricInfo { name: n, unit, doc, better, measure: Measure::Run(of) }
}

const fn flow(
    n: &'static str,
    unit: &'static str,
    better: Better,
    doc: &'static str,
    of: OfFlow,
) -> MetricInfo {
    MetricInfo { name: n, unit, doc, better, measure: Measure::Flow(of) }
}

const fn pair(
    n: &'static str,
    unit: &'static str,
    better: Better,
    doc: &'static str,
    of: OfPair,
) -> MetricInfo {
    MetricInfo { name: n, unit, doc, better, measure: Measure::Pair(of) }
}

const fn node(
    n: &'static str,
    unit: &'static str,
    better: Better,
    doc: &'static str,
    of: OfNode,
) -> MetricInfo {
    MetricInfo { name: n, unit, doc, better, measure: Measure::Node(of) }
}
