//! Choice of metrics for the columns of a table.

use crate::comparison::Comparison;
use crate::metrics::{self, Level};
use crate::objective::{EXCHANGES, GOODPUT, MetricSelection};

/// Metrics of all flows together, if all are of one kind.
const METRICS_OF_ONE_KIND: [&str; 7] =
    [GOODPUT.2, "response_p95_s", "rtx_index_pct", "timeouts", "jain", "jain_2s", "delay_mean_s"];
/// Metrics of all flows, if there are several kinds: metrics that must not be added up are left out.
const METRICS_OF_SEVERAL_KINDS: [&str; 3] = ["rtx_index_pct", "timeouts", "delay_mean_s"];
/// Metrics of the network.
const NETWORK_METRICS: [&str; 1] = ["frames_per_segment"];

/// Returns the metrics by which `points` are compared: the objective, then the metric of the bound, even if
/// not measured; then the default metrics that any of the points has.
#[must_use]
pub fn of(comparison: &Comparison, points: &[usize]) -> Vec<MetricSelection> {
    let question = &comparison.objective;
    let asked = std::iter::once(&question.asked).chain(question.bound.as_ref().map(|bound| &bound.asked));
    let mut columns: Vec<MetricSelection> = Vec::new();
    for column in asked.cloned() {
        if !columns.contains(&column) {
            columns.push(column);
        }
    }
    for column in defaults(comparison) {
        let there = points.iter().any(|&p| comparison.points[p].estimate(column.key()).is_some());
        if there && !columns.contains(&column) {
            columns.push(column);
        }
    }
    columns
}

fn defaults(comparison: &Comparison) -> Vec<MetricSelection> {
    let of = |level: Level, names: &[&str], of: &str| {
        let known = names.iter().filter_map(|name| metrics::find(level, name));
        known.map(|metric| MetricSelection { metric, subject: of.to_owned() }).collect::<Vec<_>>()
    };
    let kinds = kinds(comparison);
    let of_flows = match kinds.as_slice() {
        [] | [_] => of(Level::Run, &METRICS_OF_ONE_KIND, ""),
        kinds => {
            let each = kinds.iter().flat_map(|kind| of(Level::Group, metrics_of_kind(kind), kind));
            each.chain(of(Level::Run, &METRICS_OF_SEVERAL_KINDS, "")).collect()
        }
    };
    [of_flows, of(Level::Run, &NETWORK_METRICS, "")].concat()
}

/// Returns the metrics that matter for flows of `kind`: response time or goodput.
fn metrics_of_kind(kind: &str) -> &'static [&'static str] {
    if EXCHANGES.contains(&kind) { &["response_p95_s"] } else { &["goodput_bps"] }
}

/// Returns the kinds of flows, each once.
fn kinds(comparison: &Comparison) -> Vec<String> {
    let mut kinds: Vec<String> = Vec::new();
    for flow in comparison.description.subjects() {
        if !kinds.contains(&flow.kind) {
            kinds.push(flow.kind);
        }
    }
    kinds
}
