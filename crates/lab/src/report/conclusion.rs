//! Conclusion in a sentence or two: the best variant, its gain, the significance, and its drawbacks.

use super::measured::{Measured, plain};
use super::{Better, Experiment, Metric, Value, Variant, Versus};
use crate::counted::count_text;
use crate::stats::Estimate;

mod bounded;
#[cfg(test)]
mod tests;

/// p value below which differences are called measurable.
const SIGNIFICANCE: f64 = 0.05;
/// Relative change of another metric from which on it is mentioned.
const NOTABLE: f64 = 0.02;

/// Conclusion of an experiment, in words.
#[derive(Clone, Debug, PartialEq)]
pub struct Conclusion {
    /// Outcome in machine-readable form.
    pub outcome: Outcome,
    /// The sentences.
    pub sentences: Vec<Vec<Part>>,
}

/// Outcome of an experiment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Nothing was measured.
    NoData,
    /// There is one variant, so there is nothing to compare.
    SingleVariant,
    /// There is no interval, for example after a single run, or the baseline has no value.
    Undecided,
    /// No variant differs measurably from the baseline.
    NoDifference,
    /// No variant is measurably better than the baseline, and at least one is measurably worse.
    BaselineBest,
    /// The variant of this index is the best of those measurably better than the baseline.
    Winner(usize),
    /// The variant of this index is the best of those that keep the constraint; the baseline does not.
    BestWithinLimit(usize),
    /// No variant is known to keep the constraint.
    NoneWithinLimit,
}

/// A piece of a sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part {
    /// Words.
    Text(String),
    /// The name of a variant.
    Variant {
        /// Its index.
        index: usize,
        /// Its label.
        label: String,
    },
}

impl Conclusion {
    /// Returns the conclusion of `experiment`, about its first metric.
    #[must_use]
    pub fn of(experiment: &Experiment) -> Self {
        let Some(metric) = experiment.metrics.first() else {
            return Self::without_data("Nothing was measured.");
        };
        let question = ConclusionBuilder { experiment, metric };
        let values: Vec<(usize, &Value)> = (0..experiment.variants.len())
            .filter_map(|v| question.value(v, 0).map(|value| (v, value)))
            .collect();
        let mut answer = match values.as_slice() {
            [] => return Self::without_data(&format!("Nothing was measured of {}.", metric.name)),
            [(only, value)] if experiment.variants.len() == 1 => question.single_variant(*only, value),
            values if experiment.runs <= 1 => question.undecided(values),
            values if values[0].0 != 0 => question.without_baseline(values),
            values => question.concluded(values),
        };
        answer.sentences.extend(question.variants_with_missing_values());
        answer
    }

    /// Returns the sentences as plain text.
    #[must_use]
    pub fn text(&self) -> String {
        let sentence = |parts: &Vec<Part>| parts.iter().map(Part::text).collect::<String>();
        self.sentences.iter().map(sentence).collect::<Vec<_>>().join(" ")
    }

    fn without_data(words: &str) -> Self {
        Self { outcome: Outcome::NoData, sentences: vec![vec![Part::Text(words.into())]] }
    }
}

impl Part {
    /// Returns the piece as plain text.
    #[must_use]
    pub fn text(&self) -> &str {
        match self {
            Self::Text(text) | Self::Variant { label: text, .. } => text,
        }
    }
}

/// An experiment and the metric of its question.
struct ConclusionBuilder<'a> {
    experiment: &'a Experiment,
    metric: &'a Metric,
}

type Values<'a> = [(usize, &'a Value)];

impl<'a> ConclusionBuilder<'a> {
    fn single_variant(&self, only: usize, value: &Value) -> Conclusion {
        let measured = with_unit(&value.measured, self.metric);
        let runs = runs(&value.measured, self.experiment);
        let text = format!(
            " has a {} of {measured} ({runs}); there is nothing to compare it with.",
            self.metric.name
        );
        let mut sentences = vec![vec![self.name(only), Part::Text(text)]];
        sentences.extend(self.experiment.limit.map(|limit| self.single_variant_text(limit, only)));
        Conclusion { outcome: Outcome::SingleVariant, sentences }
    }

    /// Returns the conclusion from the variants with more than one run.
    fn concluded(&self, values: &[(usize, &'a Value)]) -> Conclusion {
        let has_interval = |(_, value): &&(usize, &'a Value)| value.measured.interval.is_some();
        let sure: Vec<_> = values.iter().filter(has_interval).copied().collect();
        match (sure.first(), &self.experiment.limit) {
            (Some((0, _)), Some(limit)) => self.with_limit(*limit, &sure),
            (Some((0, _)), None) => self.compared(&sure),
            _ => self.undecided(values),
        }
    }

    /// Returns the conclusion if the baseline has no value: the best variant, without a comparison.
    fn without_baseline(&self, values: &Values<'_>) -> Conclusion {
        let (best, value) = self.best(values);
        let lead = format!(" has no {}, so that nothing can be compared with it. ", self.metric.name);
        let text =
            format!(" has the {} one, {}.", self.superlative(), with_unit(&value.measured, self.metric));
        let sentence = vec![
            Part::Text("The baseline ".into()),
            self.name(0),
            Part::Text(lead),
            self.name(best),
            Part::Text(text),
        ];
        Conclusion { outcome: Outcome::Undecided, sentences: vec![sentence] }
    }

    fn superlative(&self) -> &'static str {
        if self.metric.better == Better::Lower { "lowest" } else { "highest" }
    }

    /// Names the variants in which some runs lack the metric, such as the end of an unfinished transfer.
    fn variants_with_missing_values(&self) -> Option<Vec<Part>> {
        const MOST: usize = 4;
        let count = |(v, variant): (usize, &Variant)| {
            let there = self.value(v, 0).map_or(0, |value| value.measured.finite() as u64);
            (there < variant.done).then_some((v, there, variant.done))
        };
        let scarce: Vec<_> = self.experiment.variants.iter().enumerate().filter_map(count).collect();
        let last = scarce.len().checked_sub(1)?;
        let mut parts = vec![Part::Text(format!("Not every run has a {}: ", self.metric.name))];
        for (n, &(v, there, done)) in scarce.iter().enumerate().take(MOST) {
            parts.extend([Part::Text(format!("{there} of {done} of ")), self.name(v)]);
            parts.push(Part::Text(if n == last { "." } else { ", " }.into()));
        }
        parts.extend((scarce.len() > MOST).then(|| Part::Text("and others.".into())));
        Some(parts)
    }

    fn undecided(&self, values: &Values<'_>) -> Conclusion {
        let (best, value) = self.best(values);
        let superlative = self.superlative();
        let lead = format!(
            " has the {superlative} {}, {}",
            self.metric.name,
            with_unit(&value.measured, self.metric)
        );
        let mut seen = vec![Part::Text("In this run ".into()), self.name(best), Part::Text(lead)];
        match value.versus.as_ref().and_then(|v| v.percent.as_ref()) {
            Some(percent) => {
                let by = format!(
                    ", {} % {} than the baseline ",
                    percent_text(percent.mean),
                    direction(percent.mean)
                );
                seen.extend([Part::Text(by), self.name(0), Part::Text(".".into())]);
            }
            None => seen.push(Part::Text(".".into())),
        }
        let caution = vec![Part::Text("One run has no interval: not an answer yet.".into())];
        Conclusion { outcome: Outcome::Undecided, sentences: vec![caution, seen] }
    }

    fn compared(&self, values: &Values<'_>) -> Conclusion {
        let judged = |good: bool| {
            let keep = |(_, value): &&(usize, &Value)| {
                value
                    .versus
                    .as_ref()
                    .is_some_and(|v| is_significant(v) && self.is_better(v.difference.mean) == good)
            };
            values.iter().filter(keep).copied().collect::<Vec<_>>()
        };
        let (better, worse) = (judged(true), judged(false));
        match (better.as_slice(), worse.as_slice()) {
            ([], []) => self.no_difference(values),
            ([], worse) => self.baseline_best(values, worse),
            (better, _) => self.winner(values, self.best(better)),
        }
    }

    fn winner(&self, values: &Values<'_>, (best, value): (usize, &Value)) -> Conclusion {
        let versus = value.versus.as_ref().expect("a winner was compared with the baseline");
        let lead = format!(
            " wins: its {} is {} than that of the baseline ",
            self.metric.name,
            self.change_text(versus)
        );
        let sure = format!(" ({}).", self.significance_text(versus));
        let mut sentences = vec![vec![self.name(best), Part::Text(lead), self.name(0), Part::Text(sure)]];
        sentences.extend(self.indistinguishable(values, best, &value.measured));
        sentences.extend(self.drawbacks(best));
        Conclusion { outcome: Outcome::Winner(best), sentences }
    }

    fn no_difference(&self, values: &Values<'_>) -> Conclusion {
        let lead = match values.len() {
            2 => vec![
                self.name(values[1].0),
                Part::Text(" does not differ measurably from the baseline ".into()),
            ],
            _ => vec![Part::Text("No variant differs measurably from the baseline ".into())],
        };
        let tail = format!(" in {}.", self.metric.name);
        let mut sentences = vec![[lead, vec![self.name(0), Part::Text(tail)]].concat()];
        let size = |v: &Versus| v.difference.mean.abs();
        let compared = values.iter().filter_map(|&(i, value)| value.versus.as_ref().map(|v| (i, v)));
        let largest = compared.max_by(|a, b| size(a.1).total_cmp(&size(b.1)));
        if let Some((largest, versus)) = largest.filter(|(_, versus)| size(versus) > 0.0) {
            let text = format!(": {} ({}).", self.change_text(versus), self.significance_text(versus));
            let lead = Part::Text("The largest difference seen is that of ".into());
            sentences.push(vec![lead, self.name(largest), Part::Text(text)]);
        }
        Conclusion { outcome: Outcome::NoDifference, sentences }
    }

    fn baseline_best(&self, values: &Values<'_>, worse: &Values<'_>) -> Conclusion {
        let (nearest, value) = self.best(worse);
        let versus = value.versus.as_ref().expect("what is worse was compared with the baseline");
        let all = worse.len() + 1 == values.len();
        let tail = match (all, worse.len()) {
            (true, 1) => " wins.".to_owned(),
            (true, _) => " wins: every other variant is measurably worse.".to_owned(),
            (false, 1) => "; one is measurably worse, and ".to_owned(),
            (false, n) => format!("; {n} are measurably worse, and "),
        };
        let lead = if all { "The baseline " } else { "No variant beats the baseline " };
        let mut first = vec![Part::Text(lead.into()), self.name(0), Part::Text(tail)];
        if !all {
            let is_worse = |v: usize| worse.iter().any(|&(other, _)| other == v);
            let equal: Vec<usize> =
                values.iter().map(|&(v, _)| v).filter(|&v| v != 0 && !is_worse(v)).collect();
            first.extend(self.names(&equal));
            first.push(Part::Text(" cannot be told apart from it.".into()));
        }
        let (by, metric) =
            (format!("{} ({})", self.change_text(versus), self.significance_text(versus)), &self.metric.name);
        let (lead, tail) = match (all, worse.len()) {
            (_, 1) => (format!("The {metric} of "), format!(" is {by}.")),
            (true, _) => ("The nearest is ".to_owned(), format!(": its {metric} is {by}.")),
            (false, _) => {
                ("Of the worse ones the nearest is ".to_owned(), format!(": its {metric} is {by}."))
            }
        };
        let second = vec![Part::Text(lead), self.name(nearest), Part::Text(tail)];
        Conclusion { outcome: Outcome::BaselineBest, sentences: vec![first, second] }
    }

    /// Names the variants that are not distinguishable from the winner: the interval of the paired difference
    /// contains zero.
    fn indistinguishable(&self, values: &Values<'_>, best: usize, winner: &Measured) -> Option<Vec<Part>> {
        let tied = |(i, value): &&(usize, &Value)| {
            let pairs = winner.runs.iter().zip(&value.measured.runs);
            let (ours, theirs): (Vec<f64>, Vec<f64>) =
                pairs.filter(|(a, b)| a.is_finite() && b.is_finite()).unzip();
            let paired = ours.len() >= 2;
            let difference = Estimate::of_differences(&ours, &theirs);
            let close = difference.half_width.is_some_and(|half| difference.mean.abs() <= half);
            *i != best && *i != 0 && paired && close
        };
        let tied: Vec<usize> = values.iter().filter(tied).map(|(i, _)| *i).collect();
        if tied.is_empty() {
            return None;
        }
        let mut parts = vec![Part::Text("It cannot be told apart from ".into())];
        parts.extend(self.names(&tied));
        parts.push(Part::Text(".".into()));
        Some(parts)
    }

    /// Returns the names of variants as a list; their number if there are more than four. At least one.
    fn names(&self, variants: &[usize]) -> Vec<Part> {
        const MOST: usize = 4;
        if variants.len() > MOST {
            return vec![Part::Text(format!("{} others", variants.len()))];
        }
        let mut parts = Vec::new();
        for (n, &variant) in variants.iter().enumerate() {
            let between = if n + 1 == variants.len() { " and " } else { ", " };
            parts.extend((n > 0).then(|| Part::Text(between.into())));
            parts.push(self.name(variant));
        }
        parts
    }

    /// Names the metrics that are measurably and notably worse with variant `v`.
    fn drawbacks(&self, v: usize) -> Option<Vec<Part>> {
        let mut judged = 0;
        let mut costs = Vec::new();
        for (m, metric) in self.experiment.metrics.iter().enumerate().skip(1) {
            let (Some(value), Some(baseline)) = (self.value(v, m), self.value(0, m)) else { continue };
            let Some(versus) = value.versus.as_ref().filter(|_| metric.better != Better::Neither) else {
                continue;
            };
            judged += 1;
            let good = (versus.difference.mean > 0.0) == (metric.better == Better::Higher);
            let notable = versus.difference.mean.abs() > NOTABLE * baseline.measured.mean.abs();
            if !good && notable && is_significant(versus) {
                let (now, before) =
                    (with_unit(&value.measured, metric), with_unit(&baseline.measured, metric));
                costs.push(format!("{} {now} instead of {before}", metric.name));
            }
        }
        let words = match (judged, costs.is_empty()) {
            (0, _) => return None,
            (_, true) => "Nothing else that was measured gets worse.".to_owned(),
            (_, false) => format!("It costs: {}.", costs.join("; ")),
        };
        Some(vec![Part::Text(words)])
    }

    /// Returns the best of `values`; of equals the first.
    fn best<'v>(&self, values: &'v [(usize, &'v Value)]) -> (usize, &'v Value) {
        let mut best = values[0];
        for &(i, value) in &values[1..] {
            if self.is_better(value.measured.mean - best.1.measured.mean) {
                best = (i, value);
            }
        }
        best
    }

    fn is_better(&self, difference: f64) -> bool {
        if self.metric.better == Better::Lower { difference < 0.0 } else { difference > 0.0 }
    }

    /// Returns "12.3 % higher".
    fn change_text(&self, versus: &Versus) -> String {
        let direction = direction(versus.difference.mean);
        match &versus.percent {
            _ if versus.difference.mean == 0.0 => "not different at all".to_owned(),
            Some(percent) => format!("{} % {direction}", percent_text(percent.mean)),
            None => {
                let size = Measured { mean: versus.difference.mean.abs(), ..versus.difference.clone() };
                format!("{} {direction}", unit_after(&size.mean_text(), self.metric)).replace("  ", " ")
            }
        }
    }

    /// Returns "95 % interval +10.1 % to +14.5 %, p < 0.001, 20 paired runs".
    fn significance_text(&self, versus: &Versus) -> String {
        let (measured, unit) = match &versus.percent {
            Some(percent) => (percent, "%"),
            None => (&versus.difference, self.metric.unit.as_str()),
        };
        let range = measured.range_text();
        let interval = range.map(|range| {
            format!("{} interval {range} {unit}", self.experiment.confidence).trim_end().to_owned()
        });
        let p =
            versus.p.map(|p| if p < 0.001 { "p < 0.001".to_owned() } else { format!("p = {}", plain(p, 3)) });
        let runs = runs(&versus.difference, self.experiment).replace(" run", " paired run");
        interval.into_iter().chain(p).chain([runs]).collect::<Vec<_>>().join(", ")
    }

    fn name(&self, index: usize) -> Part {
        Part::Variant { index, label: self.experiment.variants[index].label.clone() }
    }

    fn value(&self, variant: usize, metric: usize) -> Option<&'a Value> {
        self.experiment.variants[variant].values.get(metric)?.as_ref()
    }
}

/// Returns whether a difference is significant: by the test, or without a test by the interval.
pub(super) fn is_significant(versus: &Versus) -> bool {
    versus.p.map_or_else(|| versus.difference.excludes_zero(), |p| p < SIGNIFICANCE)
}

fn direction(difference: f64) -> &'static str {
    if difference < 0.0 { "lower" } else { "higher" }
}

/// Returns the size of a change in percent: one digit after the point, none from 100 on.
fn percent_text(percent: f64) -> String {
    plain(percent.abs(), usize::from(percent.abs() < 100.0))
}

fn with_unit(measured: &Measured, metric: &Metric) -> String {
    unit_after(&measured.text(), metric)
}

fn unit_after(number: &str, metric: &Metric) -> String {
    format!("{number} {}", metric.unit).trim_end().to_owned()
}

fn runs(measured: &Measured, experiment: &Experiment) -> String {
    let there = measured.finite() as u64;
    count_text(if there > 0 { there } else { experiment.runs } as usize, "run")
}
