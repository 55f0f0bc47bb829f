//! Quantiles over all draws.

use super::kind::Kind;
use super::measure::Measure;
use super::outcome::Outcome;
use super::sketch::Draw;
use crate::stats::quantile;
use serde::Serialize;
use serde_json::{Map, Value as Json, json};

/// Queueing delay above which a draw counts as one with a long queue, seconds.
const LONG_WAIT_S: f64 = 0.02;
/// Largest overhead without congestion collapse: packets sent per delivered packet, times the share that the path lets through.
const MAX_OVERHEAD: f64 = 1.1;

/// Median, 5th percentile and least value.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Quantiles {
    /// Number of values.
    pub count: usize,
    /// Median.
    pub median: f64,
    /// 5th percentile.
    pub p5: f64,
    /// Least value.
    pub least: f64,
}

impl Quantiles {
    /// Returns those of `values`; `None` without any.
    #[must_use]
    pub fn of(values: &[f64]) -> Option<Self> {
        Some(Self {
            count: values.len(),
            median: quantile(values, 0.5).ok()?,
            p5: quantile(values, 0.05).ok()?,
            least: quantile(values, 0.0).ok()?,
        })
    }
}

/// Results of one algorithm over all draws.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Summary {
    /// Ratios of the performance to that of the best other algorithm.
    pub of_best_rival: Option<Quantiles>,
    /// Ratios by kind, in the order of [`Kind::ALL`].
    pub by_kind: Vec<Option<Quantiles>>,
    /// Performance as a share of the highest possible value, of draws with one flow or class.
    pub of_ceiling: Option<Quantiles>,
    /// Share of the draws with a mean queueing delay above 20 ms, of constant paths.
    pub long_waits: Option<f64>,
    /// Draws in which more than 1.1 / (1 − loss) packets were sent per delivered packet.
    pub collapsed: usize,
    /// Largest overhead.
    pub overhead: Option<f64>,
    /// Jain's index among its own flows.
    pub jain: Option<Quantiles>,
    /// Share of their fair goodput that other flows have.
    pub other_share: Option<Quantiles>,
}

impl Summary {
    /// Summarises the outcomes of the algorithm at index `law`; `outcomes` has those of all algorithms by draw.
    #[must_use]
    pub fn of(draws: &[Draw], outcomes: &[Vec<Outcome>], law: usize) -> Self {
        let ratios: Vec<(Kind, f64)> = draws
            .iter()
            .zip(outcomes)
            .filter_map(|(draw, all)| Some((draw.kind, ratio_to_best_rival(all, law)?)))
            .collect();
        let of_kind =
            |kind| ratios.iter().filter(|(k, _)| *k == kind).map(|(_, ratio)| *ratio).collect::<Vec<_>>();
        let own = || draws.iter().zip(outcomes).map(|(draw, all)| (draw, &all[law]));
        let is_single = |draw: &Draw| !matches!(draw.measure, Measure::Shares { .. });
        let of_ceiling: Vec<f64> = own()
            .filter(|(draw, _)| is_single(draw))
            .filter_map(|(_, outcome)| outcome.performance)
            .collect();
        let waits: Vec<f64> = own().filter_map(|(_, outcome)| outcome.wait_s).collect();
        let overheads: Vec<f64> = own().filter_map(|(_, outcome)| outcome.overhead).collect();
        let long = waits.iter().filter(|wait| **wait > LONG_WAIT_S).count();
        Self {
            of_best_rival: Quantiles::of(&ratios.iter().map(|(_, ratio)| *ratio).collect::<Vec<_>>()),
            by_kind: Kind::ALL.map(|kind| Quantiles::of(&of_kind(kind))).into(),
            of_ceiling: Quantiles::of(&of_ceiling),
            long_waits: (!waits.is_empty()).then(|| long as f64 / waits.len() as f64),
            collapsed: overheads.iter().filter(|overhead| **overhead > MAX_OVERHEAD).count(),
            overhead: overheads.iter().copied().reduce(f64::max),
            jain: Quantiles::of(&own().filter_map(|(_, outcome)| outcome.jain).collect::<Vec<_>>()),
            other_share: Quantiles::of(
                &own().filter_map(|(_, outcome)| outcome.other_share).collect::<Vec<_>>(),
            ),
        }
    }
}

/// Returns the performance of `law` divided by the best of the other algorithms; `None` without a value of it or of any other one.
#[must_use]
pub(crate) fn ratio_to_best_rival(all: &[Outcome], law: usize) -> Option<f64> {
    let rivals = all.iter().enumerate().filter(|(other, _)| *other != law);
    let best = rivals.filter_map(|(_, outcome)| outcome.performance).reduce(f64::max)?;
    (best > 0.0).then(|| all[law].performance.map(|own| own / best)).flatten()
}

/// Returns the JSON object of the comparison of `laws`.
#[must_use]
pub fn json(seed: u64, laws: &[String], draws: &[Draw], outcomes: &[Vec<Outcome>]) -> Json {
    let kinds = |summary: &Summary| -> Map<String, Json> {
        Kind::ALL
            .iter()
            .zip(&summary.by_kind)
            .map(|(kind, ratio)| (kind.name().to_owned(), json!(ratio)))
            .collect()
    };
    let summaries = laws.iter().enumerate().map(|(law, name)| {
        let summary = Summary::of(draws, outcomes, law);
        let mut object = json!(summary);
        object["by_kind"] = kinds(&summary).into();
        (name.clone(), object)
    });
    let networks = draws.iter().zip(outcomes).map(|(draw, all)| {
        let outcomes: Map<String, Json> =
            laws.iter().cloned().zip(all.iter().map(|one| json!(one))).collect();
        json!({"id": draw.id, "kind": draw.kind.name(), "loss": draw.loss, "laws": outcomes})
    });
    json!({
        "seed": seed,
        "laws": summaries.collect::<Map<_, _>>(),
        "networks": networks.collect::<Vec<_>>(),
    })
}
