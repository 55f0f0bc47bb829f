//! Conclusion with a constraint: for example most goodput with delay p95 below 50 ms.

use super::super::measured::shortest;
use super::super::{Limit, Value};
use super::{Answer, Part, Question, Standing, Values, with_unit};

/// Variants by their relation to a limit.
#[derive(Default)]
struct Sorted<'a> {
    /// Their whole interval is allowed.
    keep: Vec<(usize, &'a Value)>,
    /// None of their interval is allowed, or the metric was not measured.
    break_it: Vec<(usize, &'a Value)>,
    /// Their interval contains the limit.
    unclear: Vec<(usize, &'a Value)>,
}

impl<'a> Question<'a> {
    /// Returns the conclusion about the best variant that keeps the limit.
    pub(super) fn bounded(&self, limit: Limit, values: &[(usize, &'a Value)]) -> Answer {
        let sorted = self.sorted(limit, values);
        let mut answer = match sorted.keep.as_slice() {
            [] => self.none_keeps(limit, values),
            [(0, _)] => {
                let sure = if sorted.unclear.is_empty() { "" } else { " for certain" };
                let text = format!(" is the only one that keeps {}{sure}.", self.words(limit));
                let sentence = vec![Part::Words("The baseline ".into()), self.name(0), Part::Words(text)];
                Answer { standing: Standing::BaselineStands, sentences: vec![sentence] }
            }
            keep if keep.iter().any(|(v, _)| *v == 0) => self.among_those_that_keep(limit, keep),
            keep => self.best_that_keeps(limit, keep, &sorted.unclear),
        };
        if !sorted.keep.is_empty() {
            answer.sentences.extend(self.listed(limit, "It is not kept by ", &sorted.break_it));
        }
        answer.sentences.extend(self.listed(limit, "Whether it is kept cannot be told of ", &sorted.unclear));
        answer
    }

    fn sorted(&self, limit: Limit, values: &[(usize, &'a Value)]) -> Sorted<'a> {
        let mut sorted = Sorted::default();
        for &(v, value) in values {
            match self.keeps(limit, v) {
                Some(Some(true)) => sorted.keep.push((v, value)),
                Some(Some(false)) | None => sorted.break_it.push((v, value)),
                Some(None) => sorted.unclear.push((v, value)),
            }
        }
        sorted
    }

    /// Returns whether variant `v` keeps the limit, if decidable; `None` if it lacks the limited metric.
    fn keeps(&self, limit: Limit, v: usize) -> Option<Option<bool>> {
        let kept = &self.value(v, limit.metric)?.measured;
        // A metric that some runs lack, such as the end of a transfer, decides nothing about those.
        let everywhere = kept.finite() as u64 >= self.experiment.variants[v].done;
        Some(limit.side.keeps(kept.interval.filter(|_| everywhere), limit.limit))
    }

    /// Returns a sentence on whether the only variant keeps the limit.
    pub(super) fn kept_alone(&self, limit: Limit, only: usize) -> Vec<Part> {
        let verdict = match self.keeps(limit, only) {
            Some(Some(true)) => "It keeps",
            Some(Some(false)) | None => "It does not keep",
            Some(None) => "It cannot be told whether it keeps",
        };
        vec![Part::Words(format!("{verdict} {}: {}.", self.words(limit), self.kept(limit, only)))]
    }

    fn none_keeps(&self, limit: Limit, values: &Values<'_>) -> Answer {
        let mut sentences =
            vec![vec![Part::Words(format!("No variant keeps {} for certain.", self.words(limit)))]];
        let measured = |v: usize| self.value(v, limit.metric).map(|value| value.measured.mean);
        let distance = |v: &usize| measured(*v).map_or(f64::INFINITY, |mean| (mean - limit.limit).abs());
        let known = values.iter().map(|(v, _)| *v).filter(|v| measured(*v).is_some());
        if let Some(nearest) = known.min_by(|a, b| distance(a).total_cmp(&distance(b))) {
            let text = format!(", {}.", self.kept(limit, nearest));
            sentences.push(vec![
                Part::Words("The nearest is ".into()),
                self.name(nearest),
                Part::Words(text),
            ]);
        }
        Answer { standing: Standing::NoneKeeps, sentences }
    }

    /// Returns the conclusion if the baseline keeps the limit too: as without a limit, among fewer variants.
    fn among_those_that_keep(&self, limit: Limit, keep: &Values<'_>) -> Answer {
        let mut answer = self.compared(keep);
        let lead = format!("Of those that keep {}: ", self.words(limit));
        if let Some(first) = answer.sentences.first_mut() {
            first.insert(0, Part::Words(lead));
        }
        answer
    }

    fn best_that_keeps(&self, limit: Limit, keep: &Values<'_>, unclear: &Values<'_>) -> Answer {
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
            self.words(limit),
            self.metric.name,
            with_unit(&value.measured, self.metric)
        );
        let versus = value.versus.as_ref().map(|versus| (self.by(versus), self.sure(versus)));
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
        let first = vec![self.name(best), Part::Words(text), self.name(0), Part::Words(tail)];
        let mut sentences = vec![first];
        sentences.extend(self.ties(keep, best, &value.measured));
        Answer { standing: Standing::Keeps(best), sentences }
    }

    /// Returns a sentence that lists `of` with their values of the limited metric; `None` if it is empty.
    fn listed(&self, limit: Limit, lead: &str, of: &Values<'_>) -> Option<Vec<Part>> {
        const MOST: usize = 4;
        let last = of.len().checked_sub(1)?;
        let mut parts = vec![Part::Words(lead.to_owned())];
        for (n, &(v, _)) in of.iter().enumerate().take(MOST) {
            parts.extend((n > 0).then(|| Part::Words(if n == last { " and " } else { ", " }.into())));
            parts.extend([self.name(v), Part::Words(format!(" ({})", self.kept(limit, v)))]);
        }
        let more = of.len().saturating_sub(MOST);
        parts.push(Part::Words(if more > 0 { format!(" and {more} more.") } else { ".".into() }));
        Some(parts)
    }

    /// Returns the value of the limited metric of variant `v`.
    fn kept(&self, limit: Limit, v: usize) -> String {
        let metric = &self.experiment.metrics[limit.metric];
        let Some(value) = self.value(v, limit.metric) else { return "not measured".to_owned() };
        let (there, done) = (value.measured.finite() as u64, self.experiment.variants[v].done);
        let of = if there < done { format!(" in {there} of {done} runs") } else { String::new() };
        with_unit(&value.measured, metric) + &of
    }

    /// Returns "delay p95 below 50 ms".
    fn words(&self, limit: Limit) -> String {
        let metric = &self.experiment.metrics[limit.metric];
        let side = limit.side.words();
        format!("{} {side} {} {}", metric.name, shortest(limit.limit), metric.unit).trim_end().to_owned()
    }
}
