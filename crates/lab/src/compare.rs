//! Variants of one scenario over paired runs.
//!
//! Every variant meets the same runs: run 3 of each has the same placement, movement and random streams, so that
//! differences between variants are differences within pairs. Runs are spread over threads and collected by number;
//! nothing but the CPU seconds depends on how many threads there are.

use crate::run::{Interrupted, Watch, untraced};
use crate::scenario::document::Setting;
use crate::scenario::source::{Problem, Problems};
use crate::scenario::{Axis, Scenario};
use crate::stats::{CONFIDENCE, Estimate};
use crate::summary::{Summary, total_rtx_index_pct};
use rayon::iter::{IntoParallelIterator, ParallelIterator};
use serde::Serialize;
use serde_json::{Map, Value as Json, json};
use std::fmt;

#[cfg(test)]
mod tests;

/// Variants and how often to run each.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Name of the scenario.
    pub scenario: String,
    /// The variants; the first is the baseline.
    pub variants: Vec<Variant>,
    /// Runs of each variant, numbered from 1.
    pub runs: u64,
    /// Threads; `None`: as many as there are cores.
    pub jobs: Option<usize>,
}

/// One variant of a scenario.
#[derive(Clone, Debug)]
pub struct Variant {
    /// What distinguishes it; empty if the scenario stands alone.
    pub settings: Vec<Setting>,
    /// The scenario with the settings put over it.
    pub scenario: Scenario,
}

/// The result of a comparison.
#[derive(Clone, Debug)]
pub struct Comparison {
    /// Name of the scenario.
    pub scenario: String,
    /// Seed that all runs share, unless a variant sets its own.
    pub seed: u64,
    /// Runs of each variant.
    pub runs: u64,
    /// One entry a variant, in order; the first is the baseline.
    pub variants: Vec<VariantResult>,
}

/// The result of one variant.
#[derive(Clone, Debug)]
pub struct VariantResult {
    /// What distinguishes it: `tcp.window=2`; the name of the scenario if nothing does.
    pub label: String,
    /// The settings behind the label.
    pub settings: Vec<Setting>,
    /// Sum of the flows' goodputs, in bits per second.
    pub goodput_bps: Estimate,
    /// Goodput gained over the baseline in paired runs, in bits per second. `None` for the baseline.
    pub gain_bps: Option<Estimate>,
    /// The same in percent of the baseline's mean goodput. `None` for the baseline, and if that mean is 0.
    pub gain_pct: Option<Estimate>,
    /// Segments sent again per hundred received, all flows of a run together.
    pub rtx_index_pct: Estimate,
    /// Timeouts of all flows of a run.
    pub timeouts: Estimate,
    /// Jain's fairness index. `None` with a single flow.
    pub jain: Option<Estimate>,
    /// CPU time of all runs, in seconds.
    pub cpu_s: f64,
    /// Hash of the runs' fingerprints, in their order.
    pub fingerprint: u64,
    /// The runs, from number 1.
    pub runs: Vec<PairedRun>,
}

/// One run of a comparison.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PairedRun {
    /// Its number.
    pub run: u64,
    /// Retransmission index over all flows, in percent.
    pub rtx_index_pct: f64,
    /// What it says.
    #[serde(flatten)]
    pub summary: Summary,
    #[serde(skip)]
    fingerprint: u64,
}

/// Why a comparison did not come to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CompareError {
    /// The watcher asked to give up.
    Interrupted,
    /// A variant or one of its runs makes no sense.
    Problems(Problems),
    /// The threads could not be started.
    Threads(String),
}

impl fmt::Display for CompareError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Interrupted => Interrupted.fmt(f),
            Self::Problems(problems) => problems.fmt(f),
            Self::Threads(why) => write!(f, "cannot start threads: {why}"),
        }
    }
}

impl std::error::Error for CompareError {}

impl From<Problems> for CompareError {
    fn from(problems: Problems) -> Self {
        Self::Problems(problems)
    }
}

/// Most variants that one comparison takes.
const MOST_VARIANTS: usize = 10_000;

impl Plan {
    /// The product of `axes` over `scenario`: the last axis varies fastest. Without axes the scenario stands alone.
    ///
    /// # Errors
    ///
    /// Everything that is wrong with any of the variants.
    pub fn new(scenario: &Scenario, axes: &[Axis]) -> Result<Self, Problems> {
        let count = axes.iter().map(Vec::len).try_fold(1usize, usize::checked_mul);
        if count.is_none_or(|n| n > MOST_VARIANTS) {
            return Err(Problem::new(format!("more than {MOST_VARIANTS} variants"))
                .help("vary fewer keys")
                .into());
        }
        let mut combinations: Vec<Vec<Setting>> = vec![Vec::new()];
        for axis in axes {
            let extended = |head: &Vec<Setting>| {
                let head = head.clone();
                axis.iter().map(move |value| [head.as_slice(), std::slice::from_ref(value)].concat())
            };
            combinations = combinations.iter().flat_map(extended).collect::<Vec<_>>();
        }
        let variant =
            |settings: Vec<Setting>| scenario.with(&settings).map(|scenario| Variant { settings, scenario });
        let variants = combinations.into_iter().map(variant).collect::<Result<_, _>>()?;
        Ok(Self { scenario: scenario.name(), variants, runs: scenario.runs(), jobs: None })
    }

    /// Virtual time of all runs together, in seconds.
    #[must_use]
    pub fn total_s(&self) -> f64 {
        self.runs as f64 * self.variants.iter().map(|v| v.scenario.duration().as_secs_f64()).sum::<f64>()
    }
}

/// Runs `plan`.
///
/// # Errors
///
/// [`CompareError`]; no part of a comparison is kept.
pub fn compare(plan: &Plan, watch: &dyn Watch) -> Result<Comparison, CompareError> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(plan.jobs.unwrap_or(0)).build();
    let pool = pool.map_err(|e| CompareError::Threads(e.to_string()))?;
    // All variants of a run are neighbours in this order, so that an early look at a long comparison is a fair one.
    let work: Vec<(u64, usize)> =
        (1..=plan.runs).flat_map(|number| (0..plan.variants.len()).map(move |v| (number, v))).collect();
    let one = |(number, v): (u64, usize)| one_run(&plan.variants[v].scenario, number, watch);
    let done: Vec<PairedRun> = pool.install(|| work.into_par_iter().map(one).collect::<Result<_, _>>())?;
    let mut by_variant: Vec<Vec<PairedRun>> = vec![Vec::new(); plan.variants.len()];
    for (i, run) in done.into_iter().enumerate() {
        by_variant[i % plan.variants.len()].push(run);
    }
    let baseline = goodputs(&by_variant[0]);
    let results = plan.variants.iter().zip(by_variant).enumerate().map(|(i, (variant, runs))| {
        let baseline = (i > 0).then_some(baseline.as_slice());
        VariantResult::of(variant, runs, baseline)
    });
    Ok(Comparison {
        scenario: plan.scenario.clone(),
        seed: plan.variants[0].scenario.seed(),
        runs: plan.runs,
        variants: results.collect(),
    })
}

fn one_run(scenario: &Scenario, number: u64, watch: &dyn Watch) -> Result<PairedRun, CompareError> {
    let spec = scenario.spec(number)?;
    let done = untraced(&spec, number, watch).map_err(|Interrupted| CompareError::Interrupted)?;
    Ok(PairedRun {
        run: number,
        rtx_index_pct: total_rtx_index_pct(&done.outcome),
        summary: Summary::of(&spec, &done),
        fingerprint: done.outcome.fingerprint,
    })
}

fn goodputs(runs: &[PairedRun]) -> Vec<f64> {
    runs.iter().map(|r| r.summary.aggregate_goodput_bps).collect()
}

impl VariantResult {
    fn of(variant: &Variant, runs: Vec<PairedRun>, baseline: Option<&[f64]>) -> Self {
        let estimate =
            |value: &dyn Fn(&PairedRun) -> f64| Estimate::of(&runs.iter().map(value).collect::<Vec<_>>());
        let goodput_bps = estimate(&|r| r.summary.aggregate_goodput_bps);
        let gain_bps = baseline.map(|b| Estimate::of_differences(&goodputs(&runs), b));
        let baseline_mean = baseline.map_or(0.0, |b| Estimate::of(b).mean);
        let several = runs.iter().any(|r| r.summary.flows.len() > 1);
        Self {
            label: label(variant),
            settings: variant.settings.clone(),
            goodput_bps,
            gain_bps,
            gain_pct: gain_bps.filter(|_| baseline_mean > 0.0).map(|g| g.scaled(100.0 / baseline_mean)),
            rtx_index_pct: estimate(&|r| r.rtx_index_pct),
            timeouts: estimate(&|r| r.summary.flows.iter().map(|f| f.timeouts).sum::<u64>() as f64),
            jain: several.then(|| estimate(&|r| r.summary.jain)),
            cpu_s: runs.iter().map(|r| r.summary.cpu_s).sum(),
            fingerprint: combine(runs.iter().map(|r| r.fingerprint)),
            runs,
        }
    }

    fn json(&self) -> Json {
        let settings: Map<String, Json> = self.settings.iter().map(|s| (s.path.clone(), s.json())).collect();
        json!({
            "variant": self.label,
            "settings": settings,
            "goodput_bps": interval(&self.goodput_bps),
            "gain_bps": self.gain_bps.as_ref().map(interval),
            "gain_pct": self.gain_pct.as_ref().map(interval),
            "rtx_index_pct": interval(&self.rtx_index_pct),
            "timeouts": interval(&self.timeouts),
            "jain": self.jain.as_ref().map(interval),
            "cpu_s": self.cpu_s,
            "fingerprint": format!("{:016x}", self.fingerprint),
            "runs": self.runs,
        })
    }
}

impl Comparison {
    /// The whole comparison, as `--json` prints it.
    #[must_use]
    pub fn json(&self) -> Json {
        json!({
            "scenario": self.scenario,
            "seed": self.seed,
            "runs": self.runs,
            "confidence": CONFIDENCE,
            "variants": self.variants.iter().map(VariantResult::json).collect::<Vec<_>>(),
        })
    }
}

fn interval(e: &Estimate) -> Json {
    json!({
        "mean": e.mean,
        "deviation": e.deviation,
        "interval": e.half_width.map(|h| [e.mean - h, e.mean + h]),
    })
}

fn label(variant: &Variant) -> String {
    if variant.settings.is_empty() {
        return variant.scenario.name();
    }
    let parts: Vec<String> = variant.settings.iter().map(|s| format!("{}={}", s.path, s.text())).collect();
    parts.join(" ")
}

/// FNV-1a over the bytes of the fingerprints, in their order.
fn combine(fingerprints: impl Iterator<Item = u64>) -> u64 {
    const OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
    const PRIME: u64 = 0x0000_0100_0000_01b3;
    let bytes = fingerprints.flat_map(u64::to_le_bytes);
    bytes.fold(OFFSET, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(PRIME))
}
