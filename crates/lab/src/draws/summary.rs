//! Quantiles over all draws.

use super::kind::Kind;
use super::measure::Measure;
use super::outcome::Outcome;
use super::results::Results;
use super::sketch::Draw;
use crate::stats::quantile;
use serde::Serialize;

/// Queueing delay above which a draw counts as one with a long queue, seconds.
const LONG_WAIT_S: f64 = 0.02;
/// Largest overhead without congestion collapse: packets sent per delivered packet, times the share that the path lets through.
const MAX_OVERHEAD: f64 = 1.1;
/// Names of BBR.
const BBR: [&str; 2] = ["bbr", "tcp-bbr"];
/// Target on networks that vary: least share of BBR's goodput, and largest share of its delay.
const TARGET: (f64, f64) = (0.9, 0.5);

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

/// Ratios to BBR on the networks that vary.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct RatioToBbr {
    /// Number of networks.
    pub count: usize,
    /// Median ratio of the goodputs.
    pub goodput: f64,
    /// Median ratio of the 95th percentiles of the one-way delay, where both exist.
    pub delay_p95: Option<f64>,
    /// Number of networks with at least 0.9 of BBR's goodput at no more than half its 95th percentile of the delay.
    pub on_target: usize,
}

impl RatioToBbr {
    /// Returns the ratios of `law`; `None` if BBR is not among the algorithms, or delivered nothing.
    fn of(results: &Results<'_>, law: usize) -> Option<Self> {
        let bbr = results.laws.iter().position(|name| BBR.contains(&name.as_str()))?;
        let networks = results.draws.iter().zip(results.outcomes).filter(|(draw, _)| draw.kind.varies());
        let ratios: Vec<(f64, Option<f64>)> = networks
            .filter_map(|(_, all)| {
                let goodput = ratio(all[law].goodput_bps, all[bbr].goodput_bps)?;
                Some((goodput, ratio(all[law].delay_p95_s, all[bbr].delay_p95_s)))
            })
            .collect();
        let goodputs: Vec<f64> = ratios.iter().map(|(goodput, _)| *goodput).collect();
        let delays: Vec<f64> = ratios.iter().filter_map(|(_, delay)| *delay).collect();
        let is_on_target = |(goodput, delay): &&(f64, Option<f64>)| {
            *goodput >= TARGET.0 && delay.is_some_and(|delay| delay <= TARGET.1)
        };
        Some(Self {
            count: ratios.len(),
            goodput: quantile(&goodputs, 0.5).ok()?,
            delay_p95: quantile(&delays, 0.5).ok(),
            on_target: ratios.iter().filter(is_on_target).count(),
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
    /// Ratios to BBR on networks that vary.
    pub varying_to_bbr: Option<RatioToBbr>,
}

impl Summary {
    /// Returns the summary of each algorithm.
    #[must_use]
    pub fn all(results: &Results<'_>) -> Vec<Self> {
        (0..results.laws.len()).map(|law| Self::of(results, law)).collect()
    }

    /// Summarises the outcomes of the algorithm at index `law`.
    #[must_use]
    pub fn of(results: &Results<'_>, law: usize) -> Self {
        let Results { draws, outcomes, .. } = *results;
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
            varying_to_bbr: RatioToBbr::of(results, law),
        }
    }
}

/// Returns the performance of `law` divided by the best of the other algorithms; `None` without a value of it or of any other one.
#[must_use]
pub(crate) fn ratio_to_best_rival(all: &[Outcome], law: usize) -> Option<f64> {
    let rivals = all.iter().enumerate().filter(|(other, _)| *other != law);
    let best = rivals.filter_map(|(_, outcome)| outcome.performance).reduce(f64::max)?;
    ratio(all[law].performance, Some(best))
}

/// Returns the ratio of two values that exist, the second one above 0.
fn ratio(own: Option<f64>, other: Option<f64>) -> Option<f64> {
    let other = other.filter(|other| *other > 0.0)?;
    own.map(|own| own / other)
}
