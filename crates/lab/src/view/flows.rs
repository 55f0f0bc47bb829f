//! Metrics, rows and distributions of flows.

use super::measured::measured_of;
use crate::comparison::Comparison;
use crate::metrics::{self, Level};
use crate::objective::MetricSelection;
use crate::record::distribution::Times;
use crate::report::{Distributed, FlowRow, Measured};

/// Metrics in a table of flows, if any flow has them.
const SHOWN: [&str; 7] = [
    "goodput_bps",
    "response_p95_s",
    "delay_p95_s",
    "packet_loss_pct",
    "rtx_index_pct",
    "timeouts",
    "completion_s",
];

/// Returns the metrics of flows: that of the question first, if flows have it.
pub(super) fn metrics(comparison: &Comparison, points: &[usize]) -> Vec<MetricSelection> {
    let asked = comparison.objective.asked.metric.name;
    let mut all: Vec<MetricSelection> = Vec::new();
    for name in std::iter::once(asked).chain(SHOWN) {
        let Some(metric) = metrics::find(Level::Flow, name) else { continue };
        let there = points.iter().any(|&point| {
            let point = &comparison.points[point];
            point.flows().iter().any(|flow| point.estimate((Level::Flow, flow, metric.name)).is_some())
        });
        if there && !all.iter().any(|asked| asked.metric == metric) {
            all.push(MetricSelection { metric, subject: String::new() });
        }
    }
    all
}

/// Returns the first flow of a kind or a class.
pub(super) fn first_of(comparison: &Comparison, group: &str) -> String {
    let mut flows = comparison.description.flows.iter();
    flows
        .find(|flow| flow.kind == group || flow.class == group)
        .map_or_else(String::new, |flow| flow.id.clone())
}

/// Returns the flows of the first of `points`, in the order of the scenario.
pub(super) fn rows(comparison: &Comparison, points: &[usize]) -> Vec<FlowRow> {
    let metrics = metrics(comparison, points);
    let confidence = comparison.description.confidence();
    let rows = comparison.description.flows.iter().map(|flow| {
        let value = |asked: &MetricSelection, point: usize| -> Option<Measured> {
            let key = (Level::Flow, flow.id.as_str(), asked.metric.name);
            let (factor, _) = asked.metric.display_unit();
            let estimate = comparison.points[point].estimate(key)?;
            Some(measured_of(confidence, &estimate, factor, Vec::new()))
        };
        let of_metric = |asked: &MetricSelection| points.iter().map(|&point| value(asked, point)).collect();
        let carrier = if flow.transport.starts_with("udp") {
            flow.kind.clone()
        } else {
            format!("{}, {}", flow.kind, flow.transport)
        };
        FlowRow {
            name: flow.id.clone(),
            ends: format!("{} → {}", flow.src, flow.dst),
            carrier,
            values: metrics.iter().map(of_metric).collect(),
        }
    });
    rows.collect()
}

/// Returns the distributions of the question's subject: delays, and response times if there are any.
pub(super) fn distributions(comparison: &Comparison, points: &[usize]) -> Vec<Distributed> {
    let asked = &comparison.objective.asked;
    let is_flow = asked.metric.level() == Level::Flow;
    let mut all = Vec::new();
    for times in [Times::Delay, Times::Response] {
        for (variant, &point) in points.iter().enumerate() {
            let of = &comparison.points[point].distributions;
            let asked_of =
                of.iter().find(|d| d.times == times && d.of == asked.subject && d.of_flow == is_flow);
            // A single flow is the same as all flows.
            let found =
                asked_of.or_else(|| of.iter().find(|d| is_flow && d.times == times && d.of.is_empty()));
            all.extend(found.map(|d| Distributed {
                variant,
                run: comparison.points[point].series_run,
                times,
                of: d.of.clone(),
                quantiles_ms: d.quantiles_s.iter().map(|s| 1e3 * s).collect(),
            }));
        }
    }
    all
}
