//! Results of an algorithm on a random network.

use super::measure::Measure;
use super::sketch::Draw;
use crate::comparison::{Comparison, PointResult};
use crate::evaluation::LAW_CLASS;
use crate::metrics::Level;
use serde::Serialize;

/// Results of an algorithm on a random network; `None` where there is no value, as of a failed run.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Outcome {
    /// Performance, where more is better, as a share of the highest possible value.
    pub performance: Option<f64>,
    /// Sum of the goodputs of its flows, bit/s.
    pub goodput_bps: Option<f64>,
    /// Mean queueing delay with jitter and late packets, seconds; of constant paths.
    pub wait_s: Option<f64>,
    /// 95th percentile of the one-way delay, seconds.
    pub delay_p95_s: Option<f64>,
    /// Packets sent per delivered packet, times the share that the path lets through: 1 without other losses.
    pub overhead: Option<f64>,
    /// Jain's index of its flows; of two or more.
    pub jain: Option<f64>,
    /// Share of the fair goodput that the other flows have.
    pub other_share: Option<f64>,
}

impl Outcome {
    /// Returns the outcomes of all algorithms, in the order of the points of the draw's plan.
    #[must_use]
    pub fn of(draw: &Draw, made: &Comparison) -> Vec<Self> {
        made.points.iter().map(|point| Self::of_point(draw, point)).collect()
    }

    fn of_point(draw: &Draw, point: &PointResult) -> Self {
        let law = |name| value(point, LAW_CLASS, name);
        if !point.failed.is_empty() {
            return Self::default();
        }
        // Flows that got nothing have no goodput at all.
        let goodput_bps = law("goodput_bps").unwrap_or(0.0);
        let other = value(point, "other", "goodput_bps");
        let other_share = match draw.measure {
            Measure::Shares { other_bps, .. } => Some(other.unwrap_or(0.0) / other_bps),
            _ => None,
        };
        let performance = match draw.measure {
            Measure::Goodput { ceiling_bps } => goodput_bps / ceiling_bps,
            Measure::Response { least_s } => law("response_mean_s").map_or(0.0, |seconds| least_s / seconds),
            Measure::Shares { law_bps, .. } => {
                (goodput_bps / law_bps).min(other_share.unwrap_or(0.0)).min(1.0)
            }
        };
        let overhead = law("rtx_index_pct").map(|percent| (1.0 + percent / 100.0) * (1.0 - draw.loss));
        Self {
            performance: Some(performance),
            goodput_bps: Some(goodput_bps),
            wait_s: law("delay_mean_s")
                .filter(|_| draw.kind.is_steady())
                .map(|delay| delay - draw.base_delay_s),
            delay_p95_s: law("delay_p95_s"),
            overhead,
            jain: law("jain"),
            other_share,
        }
    }
}

/// Returns a metric of the flows of a class, in the only run.
fn value(point: &PointResult, class: &str, name: &str) -> Option<f64> {
    point.estimate((Level::Group, class, name)).map(|estimate| estimate.mean)
}
