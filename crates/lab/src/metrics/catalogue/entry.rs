//! Entries of the catalogue, by the level of their subjects.

use super::super::definition::{Better, Measure, MetricInfo};
use hopline_sim::Outcome;
use hopline_sim::outcome::{FlowOutcome, NodeOutcome};
use hopline_sim::spec::FlowSpec;

type OfRun = fn(&Outcome) -> Option<f64>;

type OfFlow = fn(&FlowSpec, &FlowOutcome) -> Option<f64>;

type OfPair = fn(&FlowOutcome, &FlowOutcome) -> Option<f64>;

type OfNode = fn(&NodeOutcome) -> Option<f64>;

pub(super) const fn run(
    n: &'static str,
    unit: &'static str,
    better: Better,
    doc: &'static str,
    of: OfRun,
) -> MetricInfo {
    MetricInfo { name: n, unit, doc, better, measure: Measure::Run(of) }
}

pub(super) const fn flow(
    n: &'static str,
    unit: &'static str,
    better: Better,
    doc: &'static str,
    of: OfFlow,
) -> MetricInfo {
    MetricInfo { name: n, unit, doc, better, measure: Measure::Flow(of) }
}

pub(super) const fn pair(
    n: &'static str,
    unit: &'static str,
    better: Better,
    doc: &'static str,
    of: OfPair,
) -> MetricInfo {
    MetricInfo { name: n, unit, doc, better, measure: Measure::Pair(of) }
}

pub(super) const fn node(
    n: &'static str,
    unit: &'static str,
    better: Better,
    doc: &'static str,
    of: OfNode,
) -> MetricInfo {
    MetricInfo { name: n, unit, doc, better, measure: Measure::Node(of) }
}
