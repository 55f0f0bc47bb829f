//! Estimates of each point: means with their intervals, and gains over the baseline.

use super::{Batch, Cell, Column, Kind, LeadingCells};
use crate::comparison::{Comparison, Gain};
use crate::objective::MetricSelection;
use crate::stats::{Confidence, Estimate, Interval};
use arrow_array::RecordBatch;
use arrow_schema::ArrowError;

const COLUMNS: [(&str, Kind); 12] = [
    ("metric", Kind::Text),
    ("of", Kind::Text),
    ("unit", Kind::Text),
    ("n", Kind::Whole),
    ("mean", Kind::Real),
    ("deviation", Kind::Real),
    ("low", Kind::Real),
    ("high", Kind::Real),
    ("gain_pct", Kind::Real),
    ("gain_low_pct", Kind::Real),
    ("gain_high_pct", Kind::Real),
    ("gain_p", Kind::Real),
];

/// Returns a row for each metric of a point: the objective first, then its bound and all metrics of runs.
/// Gains are within pairs of runs, in percent of the baseline's mean, and corrected for the number of points.
///
/// # Errors
///
/// None for a valid comparison.
pub fn estimates(comparison: &Comparison) -> Result<RecordBatch, ArrowError> {
    let heads = LeadingCells::of(&comparison.description);
    let own = COLUMNS.map(|(name, kind)| Column::new(name, kind));
    let mut batch = Batch::new(&heads.columns().iter().cloned().chain(own).collect::<Vec<_>>());
    for asked in all(comparison) {
        let gains = comparison.gains(asked.key());
        for (point, gain) in gains.iter().enumerate() {
            if let Some(estimate) = comparison.points[point].estimate(asked.key()) {
                let confidence = comparison.description.confidence();
                batch.push(&heads.row(point, &row(&asked, &estimate, confidence, gain.as_ref())));
            }
        }
    }
    batch.take()
}

/// Returns the metrics of the rows, each once.
fn all(comparison: &Comparison) -> Vec<MetricSelection> {
    let question = &comparison.objective;
    let bound = question.bound.as_ref().map(|bound| bound.asked.clone());
    let of_runs = comparison.metrics().map(|metric| MetricSelection { metric, subject: String::new() });
    let mut all: Vec<MetricSelection> = Vec::new();
    for asked in std::iter::once(question.asked.clone()).chain(bound).chain(of_runs) {
        if !all.contains(&asked) {
            all.push(asked);
        }
    }
    all
}

fn row<'a>(
    asked: &'a MetricSelection,
    estimate: &Estimate,
    confidence: Confidence,
    gain: Option<&Gain>,
) -> [Cell<'a>; COLUMNS.len()] {
    let ends = |interval: Option<Interval>| [interval.map(|i| i.low).into(), interval.map(|i| i.high).into()];
    let [low, high] = ends(estimate.interval(confidence));
    let percent = gain.and_then(|gain| Some((gain.versus.percent?, gain.confidence)));
    let [gain_low, gain_high] =
        percent.map_or([Cell::Empty; 2], |(percent, confidence)| ends(percent.interval(confidence)));
    let of = if asked.subject.is_empty() { Cell::Empty } else { Cell::Text(&asked.subject) };
    [
        Cell::Text(asked.metric.name),
        of,
        Cell::Text(asked.metric.unit),
        Cell::Whole(estimate.n as u64),
        Cell::Real(estimate.mean),
        estimate.deviation.into(),
        low,
        high,
        percent.map(|(percent, _)| percent.mean).into(),
        gain_low,
        gain_high,
        gain.and_then(|gain| gain.p).into(),
    ]
}
