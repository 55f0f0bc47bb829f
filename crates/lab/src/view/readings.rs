//! Readings of a paper in a report: a column for each open question.

use crate::claims::{Evidence, Register};
use crate::report::{Claim, ReadAxis};

/// Returns the numbers of the axes with other readings of some claim.
pub(super) fn axes(register: &Register, evidence: &[Evidence<'_>]) -> Vec<usize> {
    let is_read = |axis: &usize| {
        let mut readings = evidence.iter().flat_map(|e| &e.other_readings);
        readings.any(|read| read.reading.answer(*axis).is_some())
    };
    (0..register.axes.len()).filter(is_read).collect()
}

/// Returns these axes, with the paper's words and the answers.
pub(super) fn described(register: &Register, axes: &[usize]) -> Vec<ReadAxis> {
    let describe = |&number: &usize| {
        let axis = &register.axes[number];
        let mut names = axis.answers.iter().map(|answer| answer.name.clone());
        ReadAxis {
            id: axis.id.clone(),
            words: axis.words.clone(),
            first: names.next().unwrap_or_default(),
            others: names.collect(),
        }
    };
    axes.iter().map(describe).collect()
}

/// Returns the claim, with the answer of each of its readings to each of `axes`.
pub(super) fn with_answers(
    mut claim: Claim,
    evidence: &Evidence<'_>,
    register: &Register,
    axes: &[usize],
) -> Claim {
    for (shown, read) in claim.readings.iter_mut().zip(&evidence.other_readings) {
        let answer = |&axis: &usize| {
            let answer = read.reading.answer(axis).filter(|answer| *answer > 0)?;
            Some(register.axes[axis].answers[answer].name.clone())
        };
        shown.answers = axes.iter().map(answer).collect();
    }
    claim
}
