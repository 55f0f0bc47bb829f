//! Results of an experiment: estimates of each point, and its gains over its baseline within pairs.

use crate::animation::Animation;
use crate::description::Description;
use crate::metrics::{self, Better, Key, Level, MetricInfo};
use crate::objective::{Constraint, MetricSelection, Objective};
use crate::record::{CompletedRun, Distribution, FlowEnds, Neighborhood, Record, Series};
use crate::stats::{Bootstrap, Confidence, Estimate, Pairs, RelativeDifference, holm};
use hopline_config::source::Problem;
use serde_json::{Map, Value as Json, json};
use std::collections::{BTreeMap, BTreeSet};

#[cfg(test)]
mod tests;

pub use crate::objective::GOODPUT;

/// Metrics that make sense within one transport only.
const TRANSPORT_METRICS: [&str; 3] = ["timeouts", "spurious_timeouts", "spurious_recoveries"];

/// The result of an experiment.
#[derive(Clone, Debug)]
pub struct Comparison {
    /// Description of the runs.
    pub description: Description,
    /// Question that the experiment answers.
    pub objective: Objective,
    /// Runs of each point, including failed ones.
    pub runs: u64,
    /// Results of the points, in order.
    pub points: Vec<PointResult>,
}

/// The result of one point.
#[derive(Clone, Debug, Default)]
pub struct PointResult {
    /// Values of each run by level, subject (empty for the run) and metric; NaN where there is none.
    values: BTreeMap<(Level, String, &'static str), Vec<f64>>,
    /// Numbers of failed runs, with the reasons.
    pub failed: Vec<(u64, String)>,
    /// Transports of its flows, without distinctions of their kinds: `tcp`, `tpa`, `udp`.
    pub transports: BTreeSet<String>,
    /// CPU time of all runs, in seconds.
    pub cpu_s: f64,
    /// Hash of the runs' fingerprints, in their order.
    pub fingerprint: Fingerprint,
    /// Series of the first run that has any.
    pub series: Vec<Series>,
    /// Number of that run.
    pub series_run: u64,
    /// Neighbourhoods that were observed in that run.
    pub neighborhoods: Vec<Neighborhood>,
    /// Distributions of delays and response times in that run.
    pub distributions: Vec<Distribution>,
    /// Animation of run 1 for the map, if there is one.
    pub animation: Option<Animation>,
}

/// A point compared with its baseline in one metric.
#[derive(Clone, Debug)]
pub struct Versus {
    /// Differences within pairs, in the unit of the metric.
    pub difference: Estimate,
    /// The same in per cent of the baseline's mean. `None` if that mean is not positive.
    pub percent: Option<RelativeDifference>,
    /// The baseline's mean over the pairs.
    pub baseline_mean: f64,
    /// Two-sided p value of the paired t test. `None` below two pairs.
    pub p: Option<f64>,
    /// The pairs.
    pub pairs: Pairs,
}

/// Detail of a comparison, besides the metrics of the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detail {
    /// No more detail.
    Runs,
    /// The metrics of each flow, and of pairs of flows.
    Flows,
}

impl Comparison {
    /// Creates a comparison without results.
    #[must_use]
    pub fn new(description: Description, runs: u64) -> Self {
        let points = vec![PointResult::default(); description.points.len()];
        let question = description.question.clone();
        let question =
            question.unwrap_or_else(|| Objective { asked: MetricSelection::goodput(), bound: None });
        Self { description, objective: question, runs, points }
    }

    /// Adds a record. Records must be in the order of points and runs.
    pub fn add(&mut self, record: Record, detail: Detail) {
        let (runs, point) = (self.runs as usize, &mut self.points[record.point]);
        match record.result {
            Ok(done) => point.add(record.run, done, runs, detail),
            Err(why) => point.failed.push((record.run, why)),
        }
    }

    /// Returns the comparison of `records`, in the order of points and runs.
    #[must_use]
    pub fn of(description: Description, runs: u64, records: &[Record]) -> Self {
        let mut comparison = Self::new(description, runs);
        for record in records {
            comparison.add(record.clone(), Detail::Flows);
        }
        comparison
    }

    /// Returns a comparison of a single run, number `number`, of a plan with one point: for display only.
    #[must_use]
    pub fn of_run(description: Description, number: u64, done: CompletedRun) -> Self {
        let mut comparison = Self::new(description, 1);
        comparison.add(Record { point: 0, run: 1, result: Ok(done) }, Detail::Flows);
        comparison.points[0].series_run = number;
        comparison
    }

    /// Changes the question to `written`; unspecified parts stay as before.
    ///
    /// # Errors
    /// If the question is invalid, or about flows that do not exist.
    pub fn with_objective(mut self, written: &hopline_scenario::Objective) -> Result<Self, Problem> {
        let new = Objective::parse(written, &self.description.subjects())?;
        if written.metric.is_some() {
            self.objective.asked = new.asked;
        }
        self.objective.bound = new.bound.or(self.objective.bound);
        Ok(self)
    }

    /// Returns whether `other` has a point of the same label with the same metrics in its runs, as far as both have runs.
    #[must_use]
    pub fn has_equal_point(&self, point: usize, other: &Self) -> bool {
        let label = &self.description.points[point].label;
        let same = other.description.points.iter().position(|p| p.label == *label);
        same.is_some_and(|same| self.points[point].has_equal_runs(&other.points[same]))
    }

    /// Compares `point` with its baseline. `None` for a baseline, if no pair of runs has the metric in both,
    /// and if the metric has another meaning in the two: timers of TPA differ from those of TCP.
    #[must_use]
    pub fn versus_baseline(&self, point: usize, metric: Key<'_>) -> Option<Versus> {
        let baseline = self.description.points[point].baseline;
        let alike = self.points[point].transports == self.points[baseline].transports;
        let comparable = alike || !TRANSPORT_METRICS.contains(&metric.2);
        (baseline != point && comparable).then(|| self.versus(point, baseline, metric)).flatten()
    }

    /// Compares `point` with `baseline` in a metric. `None` if no pair of runs has it in both.
    #[must_use]
    pub fn versus(&self, point: usize, baseline: usize, metric: Key<'_>) -> Option<Versus> {
        self.between((point, metric), (baseline, metric))
    }

    /// Compares a metric of a point with a metric of another point, or of the same: one flow with another.
    /// `None` if no run has both.
    #[must_use]
    pub fn between(
        &self,
        (point, metric): (usize, Key<'_>),
        (baseline, reference): (usize, Key<'_>),
    ) -> Option<Versus> {
        Versus::of(self.points[point].all(metric)?, self.points[baseline].all(reference)?)
    }

    /// Returns a metric in each run, averaged over `points`; NaN in a run in which one of them lacks it.
    /// `None` if one of them lacks it in all runs.
    #[must_use]
    pub fn averaged(&self, points: &[usize], metric: Key<'_>) -> Option<Vec<f64>> {
        let all: Vec<&[f64]> =
            points.iter().map(|&point| self.points[point].all(metric)).collect::<Option<_>>()?;
        let runs = all.first()?.len();
        let mean = |run: usize| all.iter().map(|values| values[run]).sum::<f64>() / all.len() as f64;
        Some((0..runs).map(mean).collect())
    }

    /// Returns the metrics of the run that some point has, in the order of the catalogue.
    pub fn metrics(&self) -> impl Iterator<Item = &'static MetricInfo> {
        let any = |info: &&MetricInfo| {
            self.points.iter().any(|p| p.estimate((Level::Run, "", info.name)).is_some())
        };
        metrics::CATALOGUE.iter().filter(|info| info.level() == Level::Run).filter(any)
    }

    /// Returns the number of failed runs of all points.
    #[must_use]
    pub fn failed(&self) -> usize {
        self.points.iter().map(|p| p.failed.len()).sum()
    }

    /// Returns the gain of each point over its baseline, corrected for the number of comparisons; `None` as
    /// for [`versus_baseline`](Self::versus_baseline).
    #[must_use]
    pub fn gains(&self, metric: Key<'_>) -> Vec<Option<Gain>> {
        let versus: Vec<_> =
            (0..self.points.len()).map(|point| self.versus_baseline(point, metric)).collect();
        let p = corrected(&versus.iter().map(|v| v.as_ref()?.p).collect::<Vec<_>>());
        let sign_p: Vec<_> = versus.iter().map(|v| Some(v.as_ref()?.pairs.sign_test().p)).collect();
        let compared = versus.iter().flatten().count();
        let gain = |((versus, p), sign_p): ((Option<Versus>, Option<f64>), Option<f64>)| {
            let versus = versus?;
            let confidence =
                self.description.confidence().for_each_of(correction_factor(versus.p, p, compared));
            Some(Gain { versus, p, sign_p, confidence })
        };
        versus.into_iter().zip(p).zip(corrected(&sign_p)).map(gain).collect()
    }

    /// Returns the JSON object of `--json`.
    #[must_use]
    pub fn json(&self) -> Json {
        let (gains, asked) = (self.gains(GOODPUT), self.gains(self.objective.asked.key()));
        let metrics: Vec<_> = self.metrics().collect();
        let variants = (0..self.points.len())
            .map(|point| self.point_json(point, [gains[point].as_ref(), asked[point].as_ref()], &metrics));
        json!({
            "name": self.description.name,
            "scenario": self.description.name,
            "seed": self.description.seed,
            "runs": self.runs,
            "confidence": self.description.confidence,
            "question": self.objective_json(),
            "variants": variants.collect::<Vec<_>>(),
        })
    }

    fn objective_json(&self) -> Json {
        let mut json = json!(self.objective);
        let better = match self.objective.asked.metric.better {
            Better::Higher => "more",
            Better::Lower => "less",
            Better::Neither => "neither",
        };
        (json["unit"], json["better"]) = (self.objective.asked.metric.unit.into(), better.into());
        json
    }

    fn point_json(
        &self,
        number: usize,
        [gain, asked]: [Option<&Gain>; 2],
        metrics: &[&'static MetricInfo],
    ) -> Json {
        let (point, description) = (&self.points[number], &self.description.points[number]);
        let interval = |e: Estimate| self.interval(&e);
        let gained = |gain: &Gain, e: Estimate| interval_of(&e, gain.confidence);
        let per_pair = gain.map(|gain| {
            let gains = gain.versus.pairs.gains();
            let mut json = interval(gains.estimate());
            json["mean"] = json!((!gains.pct.is_empty()).then_some(gains.estimate().mean));
            json["excluded"] = json!(gains.without_ratio.len());
            json
        });
        let estimates = metrics.iter().filter_map(|info| {
            Some((info.name.to_owned(), interval(point.estimate((Level::Run, "", info.name))?)))
        });
        let bound = self.objective.bound.as_ref();
        json!({
            "variant": description.label,
            "settings": description.settings,
            "baseline": self.description.points[description.baseline].label,
            "asked": {
                "value": point.estimate(self.objective.asked.key()).map(interval),
                "difference": asked.map(|gain| gained(gain, gain.versus.difference)),
                "difference_pct": asked.and_then(percent_json),
                "p": asked.and_then(|gain| gain.p),
                "sign_p": asked.and_then(|gain| gain.sign_p),
                "bound": bound.and_then(|bound| point.estimate(bound.asked.key())).map(interval),
                "keeps_bound": bound.and_then(|bound| self.meets_constraint(point, bound)),
            },
            "goodput_bps": self.goodput_json(point),
            "gain_bps": gain.map(|gain| gained(gain, gain.versus.difference)),
            "gain_pct": gain.and_then(percent_json),
            "gain_p": gain.and_then(|gain| gain.p),
            "gain_sign_p": gain.and_then(|gain| gain.sign_p),
            "gain_per_pair_pct": per_pair,
            "metrics": estimates.collect::<Map<_, _>>(),
            "failed": point.failed.iter().map(|(run, why)| json!({"run": run, "error": why})).collect::<Vec<_>>(),
            "cpu_s": point.cpu_s,
            "fingerprint": point.fingerprint.to_string(),
        })
    }

    /// Returns whether a point keeps a bound: its interval lies on the right side. `None` if this is
    /// undecided.
    fn meets_constraint(&self, point: &PointResult, bound: &Constraint) -> Option<bool> {
        let estimate = point.estimate(bound.asked.key())?;
        let interval = estimate.interval(self.description.confidence()).map(|i| [i.low, i.high]);
        // A metric that some runs lack, such as the end of a transfer, decides nothing about those.
        let everywhere = estimate.n as u64 + point.failed.len() as u64 == self.runs;
        bound.side.keeps(interval.filter(|_| everywhere), bound.limit)
    }

    /// Returns the estimate of goodput with a second interval that does not assume a normal distribution.
    fn goodput_json(&self, point: &PointResult) -> Option<Json> {
        let mut json = self.interval(&point.estimate(GOODPUT)?);
        let confidence = self.description.confidence();
        let bootstrap = Bootstrap { confidence, ..Bootstrap::new(self.description.seed) };
        let interval = bootstrap.interval(&point.values(GOODPUT)).ok();
        json["bootstrap_interval"] = json!(interval.map(|i| [i.low, i.high]));
        Some(json)
    }

    fn interval(&self, e: &Estimate) -> Json {
        interval_of(e, self.description.confidence())
    }
}

impl Versus {
    /// Pairs the values of two sides, run by run; NaN where there is none. `None` if no run has both.
    #[must_use]
    pub fn of(values: &[f64], baseline: &[f64]) -> Option<Self> {
        let paired = values.iter().zip(baseline).filter(|(a, b)| a.is_finite() && b.is_finite());
        let (values, baseline): (Vec<f64>, Vec<f64>) = paired.map(|(a, b)| (*a, *b)).unzip();
        if values.is_empty() {
            return None;
        }
        let pairs = Pairs::new(&values, &baseline).expect("finite and of equal length");
        let (difference, baseline_mean) = (pairs.difference(), Estimate::of(&baseline).mean);
        Some(Self {
            percent: pairs.relative_difference(),
            baseline_mean,
            p: pairs.t_test().ok().map(|test| test.p),
            difference,
            pairs,
        })
    }
}

/// Gain of a point over its baseline. Interval and p value have the same correction: the interval excludes
/// zero when the p value is small.
#[derive(Clone, Debug)]
pub struct Gain {
    /// The two sides.
    pub versus: Versus,
    /// P value of the paired t test, with Holm's correction for the number of points. `None` below two pairs.
    pub p: Option<f64>,
    /// P value of the sign test, with the same correction.
    pub sign_p: Option<f64>,
    /// Confidence of its intervals, so that all of them together have that of the experiment.
    pub confidence: Confidence,
}

/// Returns the factor by which Holm's correction multiplied a p value; that of Bonferroni if it is undefined.
fn correction_factor(raw: Option<f64>, corrected: Option<f64>, compared: usize) -> f64 {
    let most = compared.max(1) as f64;
    match (raw, corrected) {
        (Some(raw), Some(corrected)) if raw > 0.0 && corrected < 1.0 => (corrected / raw).clamp(1.0, most),
        (Some(_), Some(_)) => most,
        _ => 1.0,
    }
}

/// Returns the relative difference as JSON; an infinite end of its interval is null.
fn percent_json(gain: &Gain) -> Option<Json> {
    let percent = gain.versus.percent?;
    let interval = percent.interval(gain.confidence).map(|i| [i.low, i.high]);
    Some(
        json!({ "n": percent.n, "mean": percent.mean, "deviation": percent.deviation(), "interval": interval }),
    )
}

fn interval_of(e: &Estimate, confidence: Confidence) -> Json {
    let interval = e.interval(confidence).map(|i| [i.low, i.high]);
    json!({ "n": e.n, "mean": e.mean, "deviation": e.deviation, "interval": interval })
}

/// Returns p values after Holm's correction for their number; `None` where there is none.
fn corrected(raw: &[Option<f64>]) -> Vec<Option<f64>> {
    let present: Vec<f64> = raw.iter().flatten().copied().collect();
    let mut corrected = holm(&present).expect("the p values of tests").into_iter();
    raw.iter().map(|p| p.and_then(|_| corrected.next())).collect()
}

/// Returns the JSON object of `compare --json`, including every run.
#[must_use]
pub fn json_with_runs(comparison: &Comparison, records: &[Record]) -> Json {
    let mut json = comparison.json();
    let mut runs = vec![Vec::new(); comparison.points.len()];
    for record in records {
        runs[record.point].push(record.json());
    }
    for (variant, runs) in json["variants"].as_array_mut().into_iter().flatten().zip(runs) {
        variant["runs"] = runs.into();
    }
    json
}

impl PointResult {
    /// Returns whether every metric has the same values as in `other`, as far as both have runs.
    fn has_equal_runs(&self, other: &Self) -> bool {
        let nothing = Vec::new();
        let runs = |of: &Self| of.values.values().map(Vec::len).max().unwrap_or(0);
        let runs = runs(self).min(runs(other));
        // A metric that no run has is not listed.
        let value = |values: &Vec<f64>, run: usize| values.get(run).copied().unwrap_or(f64::NAN);
        let same = |a: f64, b: f64| a == b || (a.is_nan() && b.is_nan());
        self.values.keys().chain(other.values.keys()).all(|key| {
            let [a, b] = [self, other].map(|point| point.values.get(key).unwrap_or(&nothing));
            (0..runs).all(|run| same(value(a, run), value(b, run)))
        })
    }

    fn add(&mut self, run: u64, done: CompletedRun, runs: usize, detail: Detail) {
        for value in done.metrics {
            let level = value.metric.level();
            let is_of_flows = matches!(level, Level::Flow | Level::Pair);
            if matches!(level, Level::Run | Level::Group) || (is_of_flows && detail == Detail::Flows) {
                let values = self.values.entry((level, value.subject, value.metric.name));
                values.or_insert_with(|| vec![f64::NAN; runs])[run as usize - 1] = value.value;
            }
        }
        let family = |flow: &FlowEnds| flow.transport.split('-').next().unwrap_or_default().to_owned();
        self.transports.extend(done.flows.iter().map(family));
        self.cpu_s += done.cpu_s;
        self.fingerprint.add(done.fingerprint);
        if self.series.is_empty() {
            self.series = done.series;
            self.series_run = run;
            self.distributions = done.distributions;
            self.neighborhoods = done.neighborhoods;
        }
    }

    /// Returns the values of a metric, one for each run; NaN where there is none.
    #[must_use]
    pub fn all(&self, (level, subject, name): Key<'_>) -> Option<&[f64]> {
        let info = metrics::find(level, name)?;
        self.values.get(&(level, subject.to_owned(), info.name)).map(Vec::as_slice)
    }

    /// Returns the values of a metric, of the runs that have it.
    #[must_use]
    pub fn values(&self, metric: Key<'_>) -> Vec<f64> {
        let all = self.all(metric).unwrap_or_default();
        all.iter().copied().filter(|x| x.is_finite()).collect()
    }

    /// Returns the estimate of a metric, if any run has it.
    #[must_use]
    pub fn estimate(&self, metric: Key<'_>) -> Option<Estimate> {
        let values = self.values(metric);
        (!values.is_empty()).then(|| Estimate::of(&values))
    }

    /// Returns the names of the flows with stored metrics.
    #[must_use]
    pub fn flows(&self) -> Vec<&str> {
        let flows = self.values.keys().filter(|(level, ..)| *level == Level::Flow);
        let mut names: Vec<&str> = flows.map(|(_, subject, _)| subject.as_str()).collect();
        names.dedup();
        names
    }
}

/// Hash of the fingerprints of runs: FNV-1a over their bytes, in the order of runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fingerprint(u64);

impl Default for Fingerprint {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Fingerprint {
    /// Adds the next run.
    pub fn add(&mut self, fingerprint: u64) {
        const PRIME: u64 = 0x0000_0100_0000_01b3;
        let bytes = fingerprint.to_le_bytes().into_iter();
        self.0 = bytes.fold(self.0, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(PRIME));
    }
}

/// Writes 16 hexadecimal digits.
impl std::fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}
