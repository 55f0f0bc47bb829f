//! Conclusion with a constraint: for example most goodput with delay p95 below 50 ms.

use super::super::measured::shortest;
use super::super::{Limit, Value};
use super::{Conclusion, ConclusionBuilder, Outcome, Part, Values, with_unit};

/// Variants by their relation to a limit.
#[derive(Default)]
struct ByLimit<'a> {
    /// Their whole interval is allowed.
    within: Vec<(usize, &'a Value)>,
    /// None of their interval is allowed, or the metric was not measured.
    beyond: Vec<(usize, &'a Value)>,
    /// Their interval contains the limit.
    unclear: Vec<(usize, &'a Value)>,
}

impl<'a> ConclusionBuilder<'a> {
    /// Returns the conclusion about the best variant that keeps the limit.
    pub(super) fn with_limit(&self, limit: Limit, values: &[(usize, &'a Value)]) -> Conclusion {
        let sorted = self.by_limit(limit, values);
        let mut answer = match sorted.within.as_slice() {
            [] => self.none_within(limit, values),
            [(0, _)] => {
                let sure = if sorted.unclear.is_empty() { "" } else { " for certain" };
                let text = format!(" is the only one that keeps {}{sure}.", self.limit_text(limit));
                let sentence = vec![Part::Text("The baseline ".into()), self.name(0), Part::Text(text)];
                Conclusion { outcome: Outcome::BaselineBest, sentences: vec![sentence] }
            }
            keep if keep.iter().any(|(v, _)| *v == 0) => self.best_of_those_within(limit, keep),
            keep => self.best_within(limit, keep, &sorted.unclear),
        };
        if !sorted.within.is_empty() {
            answer.sentences.extend(self.listed(limit, "It is not kept by ", &sorted.beyond));
        }
        answer.sentences.extend(self.listed(limit, "Whether it is kept cannot be told of ", &sorted.unclear));
        answer
    }

    fn by_limit(&self, limit: Limit, values: &[(usize, &'a Value)]) -> ByLimit<'a> {
        let mut sorted = ByLimit::default();
        for &(v, value) in values {
            match self.is_within(limit, v) {
                Some(Some(true)) => sorted.within.push((v, value)),
                Some(Some(false)) | None => sorted.beyond.push((v, value)),
                Some(None) => sorted.unclear.push((v, value)),
            }
        }
        sorted
    }

    /// Returns whether variant `v` keeps the limit, if decidable; `None` if it lacks the limited metric.
    fn is_within(&self, limit: Limit, v: usize) -> Option<Option<bool>> {
        let kept = &self.value(v, limit.metric)?.measured;
        // A metric that some runs lack, such as the end of a transfer, decides nothing about those.
        let everywhere = kept.finite() as u64 >= self.experiment.variants[v].done;
        Some(limit.side.keeps(kept.interval.filter(|_| everywhere), limit.limit))
    }

    /// Returns a sentence on whether the only variant keeps the limit.
    pub(super) fn single_variant_text(&self, limit: Limit, only: usize) -> Vec<Part> {
        let verdict = match self.is_within(limit, only) {
            Some(Some(true)) => "It keeps",
            Some(Some(false)) | None => "It does not keep",
            Some(None) => "It cannot be told whether it keeps",
        };
        vec![Part::Text(format!(
            "{verdict} {}: {}.",
            self.limit_text(limit),
            self.limited_value_text(limit, only)
        ))]
    }

    fn none_within(&self, limit: Limit, values: &Values<'_>) -> Conclusion {
        let mut sentences =
            vec![vec![Part::Text(format!("No variant keeps {} for certain.", self.limit_text(limit)))]];
        let measured = |v: usize| self.value(v, limit.metric).map(|value| value.measured.mean);
        let distance = |v: &usize| measured(*v).map_or(f64::INFINITY, |mean| (mean - limit.limit).abs());
        let known = values.iter().map(|(v, _)| *v).filter(|v| measured(*v).is_some());
        if let Some(nearest) = known.min_by(|a, b| distance(a).total_cmp(&distance(b))) {
            let text = format!(", {}.", self.limited_value_text(limit, nearest));
            sentences.push(vec![Part::Text("The nearest is ".into()), self.name(nearest), Part::Text(text)]);
        }
        Conclusion { outcome: Outcome::NoneWithinLimit, sentences }
    }

    /// Returns the conclusion if the baseline keeps the limit too: as without a limit, among fewer variants.
    fn best_of_those_within(&self, limit: Limit, keep: &Values<'_>) -> Conclusion {
        let mut answer = self.compared(keep);
        let lead = format!("Of those that keep {}: ", self.limit_text(limit));
        if let Some(first) = answer.sentences.first_mut() {
            first.insert(0, Part::Text(lead));
        }
        answer
    }

    fn best_within(&self, limit: Limit, keep: &Values<'_>, unclear: &Values<'_>) -> Conclusion {
        let (best, value) = self.best(keep);
        let only = match (keep.len(), unclear.is_empty()) {
            (1, true) => " alone keeps ",
            (1, false) => " alone is certain to keep ",
            _ => " is the best of those that keep ",
        };
        let breaks =
            if unclear.iter().any(|(v, _)| *v == 0) { "may not keep it" } else { "does not keep it" };
        let mut text = format!(
            "{only}{}: its {} is {}",
            self.limit_text(limit),
            self.metric.name,
            with_unit(&value.measured, self.metric)
        );
        let versus =
            value.versus.as_ref().map(|versus| (self.change_text(versus), self.significance_text(versus)));
        let tail = match versus {
            Some((by, sure)) => {
                text.push_str(&format!(", {by} than that of the baseline "));
                format!(", which {breaks} ({sure}).")
            }
            None => {
                text.push_str("; not so the baseline ");
                ".".to_owned()
            }
        };
        let first = vec![self.name(best), Part::Text(text), self.name(0), Part::Text(tail)];
        let mut sentences = vec![first];
        sentences.extend(self.indistinguishable(keep, best, &value.measured));
        Conclusion { outcome: Outcome::BestWithinLimit(best), sentences }
    }

    /// Returns a sentence that lists `of` with their values of the limited metric; `None` if it is empty.
    fn listed(&self, limit: Limit, lead: &str, of: &Values<'_>) -> Option<Vec<Part>> {
        const MOST: usize = 4;
        let last = of.len().checked_sub(1)?;
        let mut parts = vec![Part::Text(lead.to_owned())];
        for (n, &(v, _)) in of.iter().enumerate().take(MOST) {
            parts.extend((n > 0).then(|| Part::Text(if n == last { " and " } else { ", " }.into())));
            parts.extend([self.name(v), Part::Text(format!(" ({})", self.limited_value_text(limit, v)))]);
        }
        let more = of.len().saturating_sub(MOST);
        parts.push(Part::Text(if more > 0 { format!(" and {more} more.") } else { ".".into() }));
        Some(parts)
    }

    /// Returns the value of the limited metric of variant `v`.
    fn limited_value_text(&self, limit: Limit, v: usize) -> String {
        let metric = &self.experiment.metrics[limit.metric];
        let Some(value) = self.value(v, limit.metric) else { return "not measured".to_owned() };
        let (there, done) = (value.measured.finite() as u64, self.experiment.variants[v].done);
        let of = if there < done { format!(" in {there} of {done} runs") } else { String::new() };
        with_unit(&value.measured, metric) + &of
    }

    /// Returns "delay p95 below 50 ms".
    fn limit_text(&self, limit: Limit) -> String {
        let metric = &self.experiment.metrics[limit.metric];
        let side = limit.side.words();
        format!("{} {side} {} {}", metric.name, shortest(limit.limit), metric.unit).trim_end().to_owned()
    }
}
