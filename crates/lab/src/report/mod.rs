//! Report: one HTML file with conclusion, charts and instructions to reproduce it.
//!
//! [`html`] turns a [`Report`] into a page. A report is plain, owned data, independent of storage and
//! computation: its [`Metric`], [`Value`], [`Versus`], [`Claim`] and [`ReadOtherwise`] are those of metrics,
//! comparisons and claims as a reader sees them, in display units, with words in place of the lab's types.
//! The page is self-contained: charts are SVG, the style sheet and a small script are inline, and a content
//! security policy forbids it to load anything. It is readable without the script; with it values can be
//! pointed at, flows selected and nodes moved through time.

mod anchors;
mod cdf;
mod claims_view;
mod conclusion;
mod dots;
mod evaluation;
mod families;
mod flows;
mod frame;
mod live;
mod map_view;
mod marker;
mod measured;
mod neighborhoods;
mod network_view;
mod numbers;
mod page;
mod parameters;
mod picture;
mod role;
mod sweep;
mod tables;
mod thinning;
mod timeline;

pub use crate::animation::Animation;
pub use crate::claims::Verdict;
pub use crate::map::{Map, MapFlow, MapLink, MapNode, Waypoint};
pub use crate::metrics::Better;
pub use crate::objective::Side;
pub use crate::record::distribution::Times;
pub use conclusion::{Conclusion, Outcome, Part};
pub use evaluation::{Evaluation, EvaluationCell, EvaluationCriterion, EvaluationNetwork, EvaluationRow};
pub use live::live;
pub use measured::Measured;
pub use page::{html, notebook};
pub(crate) use picture::legible;

use crate::stats::Confidence;
use serde_json::Value as Json;

/// Content of a page.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Report {
    /// Heading of the page.
    pub title: String,
    /// Paragraphs below it, plain text. May be empty.
    pub intro: Vec<String>,
    /// Version of hopline that made the results.
    pub version: String,
    /// Published claims with their verdicts, above the experiments.
    pub claims: Option<Claims>,
    /// Verdicts on congestion control algorithms, above the experiments.
    pub evaluation: Option<Evaluation>,
    /// Experiments, one section each.
    pub experiments: Vec<Experiment>,
}

/// Variants of one scenario over paired runs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Experiment {
    /// Heading of the section: the name of the scenario or of the figure.
    pub name: String,
    /// Description, plain text; may be empty.
    pub intro: String,
    /// Runs of each variant.
    pub runs: u64,
    /// Confidence of its intervals.
    pub confidence: Confidence,
    /// Virtual time of a run, in seconds.
    pub duration_s: f64,
    /// Metrics. The conclusion and the first charts are about the first.
    pub metrics: Vec<Metric>,
    /// Constraint on variants, if there is one.
    pub limit: Option<Limit>,
    /// The variants; the first is the baseline.
    pub variants: Vec<Variant>,
    /// Variants that are settings of one mechanism, three or more of each. May be empty.
    pub families: Vec<Family>,
    /// Name of the flow of the question; empty: several.
    pub flow: String,
    /// Metrics of each flow.
    pub flow_metrics: Vec<Metric>,
    /// The flows of the baseline. May be empty.
    pub flow_rows: Vec<FlowRow>,
    /// Distributions of delays and response times in a run of each variant. May be empty.
    pub distributions: Vec<Distributed>,
    /// Time series of some runs, preferably of run 1 of each variant. May be empty.
    pub series: Vec<RunSeries>,
    /// The network; `None`: not drawn.
    pub map: Option<Map>,
    /// Animations of the map: run 1 of some variants. May be empty.
    pub played: Vec<Played>,
    /// Parameters of the baseline, by section: an object. `Null`: none are listed.
    pub parameters: Json,
    /// Instructions to reproduce the results.
    pub reproduce: Reproduce,
}

/// Constraint on variants.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limit {
    /// Index of its metric.
    pub metric: usize,
    /// Allowed values.
    pub side: Side,
    /// Limit, in the display unit.
    pub limit: f64,
}

/// Animated run of a variant.
#[derive(Clone, Debug, PartialEq)]
pub struct Played {
    /// Index of the variant.
    pub variant: usize,
    /// Animation of the run.
    pub animation: Animation,
}

/// A measured quantity. Values are given in the display unit.
#[derive(Clone, Debug, PartialEq)]
pub struct Metric {
    /// Name: `goodput`.
    pub name: String,
    /// Unit: `kb/s`; empty for a ratio.
    pub unit: String,
    /// Better direction.
    pub better: Better,
}

impl Metric {
    /// Creates a metric of this name, unit and better direction.
    #[must_use]
    pub fn new(name: &str, unit: &str, better: Better) -> Self {
        Self { name: name.into(), unit: unit.into(), better }
    }
}

/// One variant.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Variant {
    /// Label that distinguishes it: `tcp.window=2`.
    pub label: String,
    /// Settings over the scenario, key and value.
    pub settings: Vec<(String, Json)>,
    /// Values of the metrics, in their order; `None` if not measured.
    pub values: Vec<Option<Value>>,
    /// Hash over the fingerprints of its runs, as text.
    pub fingerprint: String,
    /// Number of completed runs; 0: unknown.
    pub done: u64,
    /// CPU time of its runs, in seconds.
    pub cpu_s: f64,
}

/// Value of a variant in one metric.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Value {
    /// Mean over the runs and its interval; its runs are in the order of their numbers.
    pub measured: Measured,
    /// Difference to the baseline in paired runs. `None` for the baseline.
    pub versus: Option<Versus>,
}

/// A paired comparison with the baseline.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Versus {
    /// Variant minus baseline, in the metric's unit; its runs are the single pairs.
    pub difference: Measured,
    /// The same in percent of the baseline's mean. `None` if that mean is 0.
    pub percent: Option<Measured>,
    /// p value of a paired test, corrected by Holm's method over the variants, 0 to 1. `None`: not tested.
    pub p: Option<f64>,
}

/// Variants that are settings of one mechanism, and the gains in goodput of single runs over the same runs of
/// the baseline.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Family {
    /// Common name of its members.
    pub name: String,
    /// Flow of the goodput; empty: all together.
    pub flow: String,
    /// Keys that they differ in.
    pub keys: Vec<String>,
    /// Members, in the order of the plan.
    pub members: Vec<FamilyMember>,
}

/// A setting of a family.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FamilyMember {
    /// Index of the variant.
    pub variant: usize,
    /// Values of the family's keys.
    pub setting: Vec<Json>,
    /// Mean over runs of (ratio − 1), in percent. `None` if no run has both.
    pub gain: Option<Measured>,
    /// Standard deviation of the same, in percentage points. `None` below two runs.
    pub deviation: Option<Measured>,
    /// Number of runs with a positive gain.
    pub positive: usize,
    /// Number of runs with a gain.
    pub runs: usize,
    /// Runs left out because the baseline is zero, so that there is no gain.
    pub excluded: usize,
}

/// A flow, and its values.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FlowRow {
    /// Name.
    pub name: String,
    /// Source and destination.
    pub ends: String,
    /// Kind of traffic and transport.
    pub carrier: String,
    /// Values by metric, then by variant; `None` if not measured.
    pub values: Vec<Vec<Option<Measured>>>,
}

/// A distribution of one run of one variant.
#[derive(Clone, Debug, PartialEq)]
pub struct Distributed {
    /// Index of the variant.
    pub variant: usize,
    /// Number of the run.
    pub run: u64,
    /// Measured times.
    pub times: Times,
    /// Name of the flow, kind or class; empty: all flows.
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
    /// Seconds from one sample to the next, > 0. Sample `i` is for the slot that ends at `(i + 1) · step_s`.
    pub step_s: f64,
    /// The flows.
    pub flows: Vec<FlowSeries>,
    /// Queues of neighbourhoods, real and estimated. May be empty.
    pub queues: Vec<QueueSeries>,
}

/// A queue over time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct QueueSeries {
    /// Name.
    pub name: String,
    /// Mean number of packets in the queue in each slot.
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
    /// Mean one-way delay of the packets that arrived in each slot, in milliseconds; NaN without packets.
    pub delay_ms: Vec<f64>,
    /// Packets in the interface queue of the source at the end of each slot.
    pub queue_packets: Vec<f64>,
}

/// Instructions to reproduce the results.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reproduce {
    /// Exact command line.
    pub command: String,
    /// SHA-256 of the scenario file, hexadecimal; empty if there is none.
    pub scenario_sha256: String,
    /// Seed of the experiment.
    pub seed: u64,
    /// Version of the Linux kernels that ran programs; empty: there were none.
    pub kernel: String,
}

/// Published claims with their verdicts.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Claims {
    /// Number of claims that are tested and that hold, in a sentence. May be empty.
    pub headline: String,
    /// Numbers of claims by kind and verdict.
    pub counts: Vec<ClaimCount>,
    /// Open questions of the paper, as far as claims were judged in other readings.
    pub axes: Vec<ReadAxis>,
    /// Numbers of runs in the first and in other readings, a sentence without its full stop. May be empty.
    pub reading_runs: String,
    /// Remark on all claims, plain text, for example on a reduced number of runs. May be empty.
    pub note: String,
    /// Claims, one row each.
    pub claims: Vec<Claim>,
}

/// Number of claims of one kind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClaimCount {
    /// Kind.
    pub heading: String,
    /// Numbers by verdict, in the order of verdicts.
    pub of_verdicts: [usize; Verdict::ALL.len()],
}

/// A question that a paper leaves open.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReadAxis {
    /// Name.
    pub id: String,
    /// The paper's words that leave it open.
    pub words: String,
    /// Answer of the first reading.
    pub first: String,
    /// Answers of the other readings.
    pub others: Vec<String>,
}

impl Claim {
    /// Returns the number of readings in which it agrees, and the number of readings, both including the
    /// first; `None` if there is no other reading.
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
    /// Name in the register.
    pub id: String,
    /// Scenario.
    pub scenario: String,
    /// Metric.
    pub metric: String,
    /// Published value: `at least 20 %`.
    pub claimed: String,
    /// Measurement; `None` if there is none.
    pub measured: Option<Measured>,
    /// Unit of the measurement.
    pub unit: String,
    /// Measurement with the mechanism under test switched off, and the symbol of its verdict; empty if not known.
    pub mechanism_off: String,
    /// Verdict.
    pub verdict: Verdict,
    /// Statement of the paper, its place, and remarks on the verdict.
    pub statement: String,
    /// Index of the experiment of the measurement.
    pub experiment: Option<usize>,
    /// Outcomes in other readings; empty if there is no other reading.
    pub readings: Vec<ReadOtherwise>,
}

/// Outcome of a claim in another reading of the paper.
#[derive(Clone, Debug, PartialEq)]
pub struct ReadOtherwise {
    /// Answers that differ from the first reading.
    pub name: String,
    /// Answers to [`Claims::axes`]; `None` if equal to that of the first reading. Empty if there are no axes.
    pub answers: Vec<Option<String>>,
    /// Measurement, in the unit of the claim; `None` if there is none.
    pub measured: Option<Measured>,
    /// Verdict on the claim.
    pub verdict: Verdict,
}
