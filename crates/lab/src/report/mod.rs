//! The report: one HTML file that answers, shows, and says how to get there again.
//!
//! [`html`] turns a [`Report`] into a page. A report is plain data, owned, without any knowledge of where it was stored
//! or how it was computed: its [`Metric`], [`Value`], [`Versus`], [`Claim`] and [`ReadOtherwise`] are those of metrics, comparisons and claims as a
//! reader sees them, in the units shown, with words for what the lab has types for. The page carries everything it needs: charts are SVG drawn here, the style sheet and a small
//! script are inside, and a content security policy forbids it to load anything. Without the script everything can be
//! read; with it values can be pointed at, flows picked and nodes moved through time.

mod answer;
mod cdf;
mod claims_view;
mod dots;
mod families;
mod flows;
mod frame;
mod ink;
mod map_view;
mod marker;
mod measured;
mod neighborhoods;
mod network_view;
mod numbers;
mod page;
mod parameters;
mod picture;
mod sweep;
mod tables;
mod thin;
mod timeline;

pub use crate::animation::Animation;
pub use crate::claims::Verdict;
pub use crate::map::{Map, MapFlow, MapLink, MapNode, Waypoint};
pub use crate::metrics::Better;
pub use crate::question::Side;
pub use crate::record::distribution::Times;
pub use answer::{Answer, Part, Standing};
pub use measured::Measured;
pub use page::{html, notebook};
pub(crate) use picture::legible;

use crate::stats::Confidence;
use serde_json::Value as Json;

/// Everything a page says.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Report {
    /// Heading of the page.
    pub title: String,
    /// Paragraphs below it, plain text. May be empty.
    pub intro: Vec<String>,
    /// Version of hopline that made the results.
    pub version: String,
    /// Published claims and what became of them, above the experiments.
    pub claims: Option<Claims>,
    /// One section each.
    pub experiments: Vec<Experiment>,
}

/// Variants of one scenario over paired runs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Experiment {
    /// Heading of the section: the name of the scenario or of the figure.
    pub name: String,
    /// What it is about, plain text; empty for nothing.
    pub intro: String,
    /// Runs of each variant.
    pub runs: u64,
    /// Confidence of its intervals.
    pub confidence: Confidence,
    /// Virtual time of a run, in seconds.
    pub duration_s: f64,
    /// What was measured. The first is what the answer and the first charts are about.
    pub metrics: Vec<Metric>,
    /// What variants must keep, if that is asked.
    pub limit: Option<Limit>,
    /// The variants; the first is the baseline.
    pub variants: Vec<Variant>,
    /// Variants that are settings of one thing, three or more of each. May be empty.
    pub families: Vec<Family>,
    /// Name of the flow that is asked about; empty: of several.
    pub flow: String,
    /// What is told of each flow.
    pub flow_metrics: Vec<Metric>,
    /// The flows of the baseline. May be empty.
    pub flow_rows: Vec<FlowRow>,
    /// How delays and response times are distributed in a run of each variant. May be empty.
    pub distributions: Vec<Distributed>,
    /// Time series of some runs, best of run 1 of each variant. May be empty.
    pub series: Vec<RunSeries>,
    /// The network; `None`: not drawn.
    pub map: Option<Map>,
    /// What the map plays: run 1 of some variants. May be empty.
    pub played: Vec<Played>,
    /// The parameters of the baseline, by section: an object. `Null`: none are listed.
    pub parameters: Json,
    /// How to get the same results again.
    pub reproduce: Reproduce,
}

/// What variants must keep.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limit {
    /// Index of the metric that it is about.
    pub metric: usize,
    /// Which values are allowed.
    pub side: Side,
    /// Up to where, in the unit that is shown.
    pub limit: f64,
}

/// A run of a variant that the map plays.
#[derive(Clone, Debug, PartialEq)]
pub struct Played {
    /// Index of the variant.
    pub variant: usize,
    /// What happens in it.
    pub animation: Animation,
}

/// A measured quantity. Values are given in the unit that is shown.
#[derive(Clone, Debug, PartialEq)]
pub struct Metric {
    /// Its name: `goodput`.
    pub name: String,
    /// Its unit: `kb/s`; empty for a ratio.
    pub unit: String,
    /// Which direction is good.
    pub better: Better,
}

impl Metric {
    /// A metric of this name, unit and good direction.
    #[must_use]
    pub fn new(name: &str, unit: &str, better: Better) -> Self {
        Self { name: name.into(), unit: unit.into(), better }
    }
}

/// One variant.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Variant {
    /// What distinguishes it: `tcp.window=2`.
    pub label: String,
    /// The settings put over the scenario, key and value.
    pub settings: Vec<(String, Json)>,
    /// One value a metric, in their order; `None` where it was not measured.
    pub values: Vec<Option<Value>>,
    /// Hash over the fingerprints of its runs, as it is printed.
    pub fingerprint: String,
    /// Runs that came to their end; 0: not said.
    pub done: u64,
    /// CPU time of its runs, in seconds.
    pub cpu_s: f64,
}

/// What a variant measured of one metric.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Value {
    /// The mean over the runs and its interval; its runs are in the order of their numbers.
    pub measured: Measured,
    /// The difference to the baseline in paired runs. `None` for the baseline.
    pub versus: Option<Versus>,
}

/// A paired comparison with the baseline.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Versus {
    /// Variant minus baseline, in the metric's unit; its runs are the single pairs.
    pub difference: Measured,
    /// The same in percent of the baseline's mean. `None` if that mean is 0.
    pub percent: Option<Measured>,
    /// Probability of such a difference where there is none: a paired test, corrected by Holm's method over the
    /// variants, 0 to 1. `None`: not tested.
    pub p: Option<f64>,
}

/// Variants that are settings of one thing, and what single runs gain in goodput over the same runs of the baseline.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Family {
    /// The name that its members share.
    pub name: String,
    /// The flow whose goodput it is; empty: that of all together.
    pub flow: String,
    /// The keys that they differ in.
    pub keys: Vec<String>,
    /// The members, in the order of the plan.
    pub members: Vec<FamilyMember>,
}

/// A setting of a family.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FamilyMember {
    /// Index of the variant.
    pub variant: usize,
    /// Values of the family's keys.
    pub setting: Vec<Json>,
    /// Mean over runs of (ratio − 1), in percent. `None`: there is no run with both.
    pub gain: Option<Measured>,
    /// Standard deviation of the same, in percentage points. `None` below two runs.
    pub deviation: Option<Measured>,
    /// Runs that gain.
    pub positive: usize,
    /// Runs that have a gain.
    pub runs: usize,
    /// Runs left out because the baseline has nothing that could be gained over.
    pub excluded: usize,
}

/// A flow, and what it has.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FlowRow {
    /// Its name.
    pub name: String,
    /// Where from and where to.
    pub ends: String,
    /// What it is, and what it goes over.
    pub carrier: String,
    /// By metric, then by variant; `None` where it was not measured.
    pub values: Vec<Vec<Option<Measured>>>,
}

/// A distribution of one run of one variant.
#[derive(Clone, Debug, PartialEq)]
pub struct Distributed {
    /// Index of the variant.
    pub variant: usize,
    /// Number of the run.
    pub run: u64,
    /// What is distributed.
    pub times: Times,
    /// Of which flow, kind or class; empty: of all flows.
    pub of: String,
    /// Quantiles at [`PERCENT`](crate::record::distribution::PERCENT), in milliseconds.
    pub quantiles_ms: Vec<f64>,
}

/// Time series of one run of one variant.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunSeries {
    /// Index of the variant.
    pub variant: usize,
    /// Number of the run.
    pub run: u64,
    /// Seconds from one sample to the next, > 0. Sample `i` stands for the slot that ends at `(i + 1) · step_s`.
    pub step_s: f64,
    /// The flows.
    pub flows: Vec<FlowSeries>,
    /// Queues of neighbourhoods, real and estimated. May be empty.
    pub queues: Vec<QueueSeries>,
}

/// A queue over time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct QueueSeries {
    /// What it is called.
    pub name: String,
    /// Mean packets in it, slot by slot.
    pub packets: Vec<f64>,
}

/// Time series of one flow.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FlowSeries {
    /// Name of the flow.
    pub name: String,
    /// Goodput in each slot, in kb/s.
    pub goodput_kbps: Vec<f64>,
    /// Congestion window at the end of each slot, in segments. Empty for a flow without one.
    pub cwnd_segments: Vec<f64>,
    /// Mean one-way delay of what arrived in each slot, in milliseconds; NaN where nothing did.
    pub delay_ms: Vec<f64>,
    /// Packets in the interface queue of the source at the end of each slot.
    pub queue_packets: Vec<f64>,
}

/// How to get the same results again.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reproduce {
    /// The exact command line.
    pub command: String,
    /// SHA-256 of the scenario file, hexadecimal; empty if there is none.
    pub scenario_sha256: String,
    /// Seed of the experiment.
    pub seed: u64,
}

/// Published claims, checked.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Claims {
    /// Number of claims that are tested and that hold, in a sentence. May be empty.
    pub headline: String,
    /// Numbers of claims by kind and verdict.
    pub counts: Vec<ClaimCount>,
    /// Questions that the paper leaves open, as far as claims were read otherwise.
    pub axes: Vec<ReadAxis>,
    /// Numbers of runs in the first and in other readings, a sentence without its full stop. May be empty.
    pub reading_runs: String,
    /// What a reader must know of all of them, plain text: a reduced number of runs, for example. May be empty.
    pub note: String,
    /// One row each.
    pub claims: Vec<Claim>,
}

/// Number of claims of one kind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClaimCount {
    /// The kind.
    pub heading: String,
    /// One number for each verdict, in their order.
    pub of_verdicts: [usize; Verdict::ALL.len()],
}

/// A question that a paper leaves open.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReadAxis {
    /// Its name.
    pub id: String,
    /// The paper's words that leave it open.
    pub words: String,
    /// Answer of the first reading.
    pub first: String,
    /// Answers of the other readings.
    pub others: Vec<String>,
}

impl Claim {
    /// Returns the number of readings in which it agrees, the first included, and the number of all; `None` if it was read in no other way.
    #[must_use]
    pub fn holds_in(&self) -> Option<(usize, usize)> {
        let verdicts = self.readings.iter().map(|read| read.verdict).chain([self.verdict]);
        let agree = verdicts.filter(|verdict| *verdict == Verdict::Agrees).count();
        (!self.readings.is_empty()).then_some((agree, self.readings.len() + 1))
    }
}

/// One published claim.
#[derive(Clone, Debug, PartialEq)]
pub struct Claim {
    /// Its name in the register.
    pub id: String,
    /// The scenario it is made of.
    pub scenario: String,
    /// The metric it is about.
    pub metric: String,
    /// What was published: `at least 20 %`.
    pub claimed: String,
    /// What was measured; `None` if it could not be.
    pub measured: Option<Measured>,
    /// Unit of what was measured.
    pub unit: String,
    /// Measurement with the mechanism under test switched off, and the symbol of its verdict; empty if not known.
    pub mechanism_off: String,
    /// What becomes of the claim.
    pub verdict: Verdict,
    /// What the paper says, where, and what a reader of the verdict should know.
    pub statement: String,
    /// Index of the experiment that it was measured in.
    pub experiment: Option<usize>,
    /// Outcomes in other readings of what the paper leaves open; empty if it was read in no other way.
    pub readings: Vec<ReadOtherwise>,
}

/// Outcome of a claim in another reading of what the paper leaves open.
#[derive(Clone, Debug, PartialEq)]
pub struct ReadOtherwise {
    /// Answers that differ from the first reading.
    pub name: String,
    /// Answers to [`Claims::axes`]; `None` where it is that of the first reading. Empty if there are no axes.
    pub answers: Vec<Option<String>>,
    /// Measurement, in the unit of the claim; `None` if there is none.
    pub measured: Option<Measured>,
    /// Verdict on the claim.
    pub verdict: Verdict,
}
