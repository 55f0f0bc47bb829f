//! Reading of a paper: one answer to each of some open questions.

use super::measurement::Measurement;
use super::register::Register;
use super::verdict::Verdict;
use hopline_config::document::Setting;
use serde_json::{Value as Json, json};

/// One answer to each of some axes, by their numbers in the register; in the order of the axes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reading {
    pub(super) answers: Vec<(usize, usize)>,
    /// `true` if an axis that is varied alone has another answer than the first: no second axis may have one then.
    pub(super) varies_alone: bool,
}

/// A claim in a reading other than the first.
#[derive(Clone, Debug, PartialEq)]
pub struct AlternativeReading {
    /// Answers to the axes of the claim's figures.
    pub reading: Reading,
    /// The answers that differ from the first, by name.
    pub name: String,
    /// Measurement; `None` if there is none.
    pub measurement: Option<Measurement>,
    /// Verdict on the claim.
    pub verdict: Verdict,
}

impl Reading {
    /// Returns whether it has the first answer everywhere.
    #[must_use]
    pub fn is_first(&self) -> bool {
        self.answers.iter().all(|(_, answer)| *answer == 0)
    }

    /// Returns the answers that differ from the first, by name: "as written" if none does.
    #[must_use]
    pub fn name(&self, register: &Register) -> String {
        let others = self.answers.iter().filter(|(_, answer)| *answer > 0);
        let names: Vec<&str> =
            others.map(|&(axis, answer)| register.axes[axis].answers[answer].name.as_str()).collect();
        if names.is_empty() { "as written".to_owned() } else { names.join(", ") }
    }

    /// Returns the answer to an axis, by their numbers in the register; `None` if the reading has none.
    pub(crate) fn answer(&self, axis: usize) -> Option<usize> {
        self.answers.iter().find(|&&(number, _)| number == axis).map(|&(_, answer)| answer)
    }

    pub(super) fn settings(&self, register: &Register) -> Vec<Setting> {
        let sets = self.answers.iter().map(|&(axis, answer)| register.axes[axis].answers[answer].set.clone());
        sets.collect::<Vec<_>>().concat()
    }

    /// Returns the reading with these answers, pairs of the numbers of an axis and an answer; all axes are crossed.
    #[cfg(test)]
    pub(super) fn of(answers: &[(usize, usize)]) -> Self {
        Self { answers: answers.to_vec(), varies_alone: false }
    }

    /// Returns the same reading of an axis that is varied alone.
    #[cfg(test)]
    pub(super) fn alone(self) -> Self {
        Self { varies_alone: true, ..self }
    }

    /// Returns the reading with the first answer to each of its axes.
    pub(super) fn first(&self) -> Self {
        Self { answers: self.answers.iter().map(|&(axis, _)| (axis, 0)).collect(), varies_alone: false }
    }

    /// Returns a reading with the answers of both; `None` if they contradict each other, or if an axis that is varied alone would not be.
    pub(super) fn combined_with(&self, other: &Self) -> Option<Self> {
        let contradicts = |&(axis, a): &(usize, usize)| self.answer(axis).is_some_and(|b| a != b);
        if other.answers.iter().any(contradicts) {
            return None;
        }
        let mut answers = [self.answers.as_slice(), &other.answers].concat();
        answers.sort_unstable();
        answers.dedup();
        let varies_alone = self.varies_alone || other.varies_alone;
        let varied = answers.iter().filter(|(_, answer)| *answer > 0).count();
        (!varies_alone || varied == 1).then_some(Self { answers, varies_alone })
    }

    /// Returns the answers to the axes of one figure.
    pub(super) fn of_figure(&self, register: &Register, figure: &str) -> Self {
        let answers = self.answers.iter().copied().filter(|&(axis, _)| register.axes[axis].concerns(figure));
        Self::with_answers(register, answers.collect())
    }

    pub(super) fn with_answers(register: &Register, answers: Vec<(usize, usize)>) -> Self {
        let varies_alone =
            answers.iter().any(|&(axis, answer)| answer > 0 && register.axes[axis].is_varied_alone);
        Self { answers, varies_alone }
    }
}

impl AlternativeReading {
    /// Returns the JSON object of `--json`.
    #[must_use]
    pub fn json(&self) -> Json {
        json!({
            "reading": self.name,
            "measured": self.measurement.as_ref().map(Measurement::json),
            "verdict": self.verdict,
        })
    }
}
