//! Readings of a paper's open questions.
//!
//! An axis is a question that the paper's text does not answer, with the answers that it allows, the one
//! closest to its words first. A reading of a figure is one answer for each of its axes. Claims are judged by
//! the first reading, and in addition by every other one.
//!
//! Axes are crossed: every combination of their answers is a reading. An axis that is `alone` is not crossed: each of its
//! other answers is one additional reading, with the first answer of all other axes.

use super::ablation::{FigureRuns, Switch};
use super::axis::{Answer, Axis};
use super::claim::{Claim, Test};
use super::evaluate::evaluate_one;
use super::evidence::Evidence;
use super::figure::Figure;
use super::kind::Kind;
use super::measure::{Measure, Quantity};
use super::reading::{AlternativeReading, Reading};
use super::register::Register;
use super::selector::named_points;
use super::verdict::Verdict;
use crate::comparison::Comparison;
use crate::counted::count_text;
use crate::plan::{Effort, KeySetter, Overrides, Plan, reject_overridden};
use hopline_config::document::Setting;
use hopline_config::source::{Problem, Problems};

impl Register {
    /// Returns the runs of figures with the reading closest to the paper's words, as
    /// [`judge_alternative_readings`](Self::judge_alternative_readings) takes them.
    #[must_use]
    pub fn as_written<'a>(&self, made: &[(usize, &'a Comparison)]) -> Vec<(usize, Reading, &'a Comparison)> {
        let first = |number: usize| self.readings(&self.figures[number]).swap_remove(0);
        made.iter().map(|&(number, comparison)| (number, first(number), comparison)).collect()
    }

    /// Returns the readings of a figure, the one closest to the paper's words first.
    #[must_use]
    pub fn readings(&self, figure: &Figure) -> Vec<Reading> {
        self.readings_of(&[figure.id.as_str()])
    }

    /// Returns the readings of several figures together: the combinations of crossed axes, then those of each axis that is varied alone.
    fn readings_of(&self, figures: &[&str]) -> Vec<Reading> {
        let is_asked = |axis: &Axis| figures.iter().any(|figure| axis.concerns(figure));
        let asked: Vec<usize> = (0..self.axes.len()).filter(|&axis| is_asked(&self.axes[axis])).collect();
        let first: Vec<(usize, usize)> = asked.iter().map(|&axis| (axis, 0)).collect();
        let mut readings = vec![first.clone()];
        for (place, &axis) in asked.iter().enumerate().filter(|(_, axis)| !self.axes[**axis].is_varied_alone)
        {
            let answers = 0..self.axes[axis].answers.len();
            readings = readings
                .iter()
                .flat_map(|r| answers.clone().map(move |a| with_answer(r, place, a)))
                .collect();
        }
        for (place, &axis) in asked.iter().enumerate().filter(|(_, axis)| self.axes[**axis].is_varied_alone) {
            readings
                .extend((1..self.axes[axis].answers.len()).map(|answer| with_answer(&first, place, answer)));
        }
        readings.into_iter().map(|answers| Reading::with_answers(self, answers)).collect()
    }

    /// Returns the plan of a figure in another reading, reduced to the points by which the paper's claims are
    /// judged.
    ///
    /// # Errors
    /// All errors of the plan, and an answer that changes none of these points.
    pub fn plan_in_reading(
        &self,
        figure: &Figure,
        reading: &Reading,
        over: &[Setting],
        effort: Effort,
    ) -> Result<Plan, Problems> {
        let plan = self.reduced_to_judged(figure, self.plan_in(figure, reading, over, effort)?)?;
        for &(axis, answer) in reading.answers.iter().filter(|(_, answer)| *answer > 0) {
            let only = |answer| Reading::with_answers(self, vec![(axis, answer)]).settings(self);
            let [first, other] = [only(0), only(answer)]
                .map(|set| self.plan_with_overrides(figure, Overrides { reading: &set, user: &[] }, effort));
            if first?.identity() == other?.identity() {
                let axis = &self.axes[axis];
                let (name, figure) = (&axis.answers[answer].name, &figure.id);
                return Err(Problem::new(format!(
                    "\"{name}\" of the axis \"{}\" changes nothing in {figure}",
                    axis.id
                ))
                .at(&axis.origin)
                .help("its keys may be set by each variant; or leave the figure out of `figures`")
                .into());
            }
        }
        Ok(plan)
    }

    /// Returns the plan of a figure in a reading, with `over` over it.
    fn plan_in(
        &self,
        figure: &Figure,
        reading: &Reading,
        over: &[Setting],
        effort: Effort,
    ) -> Result<Plan, Problems> {
        let setter = |&(axis, answer): &(usize, usize)| {
            let axis: &Axis = &self.axes[axis];
            let Answer { name, set } = &axis.answers[answer];
            KeySetter {
                name: format!("the reading \"{name}\" of the axis \"{}\"", axis.id),
                settings: set.clone(),
            }
        };
        let setters: Vec<KeySetter> = reading.answers.iter().map(setter).collect();
        reject_overridden(
            over,
            &setters,
            "leave it out, or judge by the first reading alone, without --readings",
        )?;
        self.plan_with_overrides(figure, Overrides { reading: &reading.settings(self), user: over }, effort)
    }

    /// Returns the axes of the figures that a claim is judged by.
    #[must_use]
    pub fn axes_of(&self, claim: &Claim) -> Vec<&Axis> {
        let Test::Measure(measure) = &claim.test else { return Vec::new() };
        let figures = figures_of(measure);
        self.axes.iter().filter(|axis| figures.iter().any(|figure| axis.concerns(figure))).collect()
    }

    /// Returns every reading but the first of the figures by which a claim is judged, each with a plan of the
    /// claim's points alone.
    ///
    /// # Errors
    /// As [`plan`](Self::plan).
    pub fn alternative_plans_of(
        &self,
        claim: &Claim,
        over: &[Setting],
        effort: Effort,
    ) -> Result<Vec<(usize, Reading, Plan)>, Problems> {
        let Test::Measure(measure) = &claim.test else { return Ok(Vec::new()) };
        let mut plans = Vec::new();
        for id in figures_of(measure) {
            for (number, figure) in self.figures.iter().enumerate().filter(|(_, figure)| figure.id == id) {
                for reading in self.readings(figure).into_iter().filter(|reading| !reading.is_first()) {
                    let plan = self.plan_in(figure, &reading, over, effort)?;
                    let points = self.points_of(claim, figure, &plan)?;
                    plans.push((number, reading, plan.reduced_to(&points)?));
                }
            }
        }
        Ok(plans)
    }

    /// Reduces a plan to the points by which claims of the paper, not of this project, are judged.
    fn reduced_to_judged(&self, figure: &Figure, plan: Plan) -> Result<Plan, Problems> {
        let mut points = Vec::new();
        for claim in self.claims.iter().filter(|claim| claim.kind != Kind::Own) {
            points.extend(self.points_of(claim, figure, &plan)?);
        }
        points.sort_unstable();
        points.dedup();
        plan.reduced_to(&points)
    }

    /// Judges the claims of `evidence` by every reading but the first, as far as its figures were run; `made`
    /// includes the first readings of figures. Claims that the paper does not make have no other readings. A claim has no
    /// reading by an axis that is varied alone and changes no run by which the claim is judged.
    ///
    /// # Errors
    /// If a claim picks no point.
    pub fn judge_alternative_readings(
        &self,
        evidence: &mut [Evidence<'_>],
        made: &[(usize, Reading, &Comparison)],
    ) -> Result<(), Problem> {
        for one in evidence {
            let claim = one.claim;
            let Test::Measure(measure) = &claim.test else { continue };
            if claim.kind == Kind::Own {
                continue;
            }
            let figures = figures_of(measure);
            for reading in self.readings_of(&figures).iter().filter(|reading| !reading.is_first()) {
                let Some(run) = self.runs_of(&figures, reading, made) else { continue };
                let first = self.runs_of(&figures, &reading.first(), made).unwrap_or_default();
                // An axis of the mechanism under test is no other reading of a claim about drop tail.
                if !reading.varies_alone || self.changes(claim, &run, &first)? {
                    one.other_readings.push(self.judge_in_reading(claim, reading, &run)?);
                }
            }
        }
        Ok(())
    }

    /// Returns the runs of figures in one reading; `None` if some were not made.
    fn runs_of<'a>(
        &self,
        figures: &[&str],
        reading: &Reading,
        made: &[(usize, Reading, &'a Comparison)],
    ) -> Option<Vec<(usize, &'a Comparison)>> {
        let of_figure = |id: &&str| {
            let read = reading.of_figure(self, id);
            let found = made.iter().find(|(number, r, _)| self.figures[*number].id == *id && *r == read)?;
            Some((found.0, found.2))
        };
        figures.iter().map(of_figure).collect()
    }

    /// Returns whether the runs of a reading differ from those of the first at a point that a claim is judged by.
    fn changes(
        &self,
        claim: &Claim,
        read: &[(usize, &Comparison)],
        first: &[(usize, &Comparison)],
    ) -> Result<bool, Problem> {
        let Test::Measure(measure) = &claim.test else { return Ok(false) };
        for &(number, comparison) in read {
            let figure = &self.figures[number];
            let Some((_, first)) = first.iter().find(|(other, _)| *other == number) else { return Ok(true) };
            let runs = FigureRuns { comparison, ablations: self.ablations_of(claim, figure) };
            for selector in measure.selectors_in(&figure.id) {
                let points = selector.find_all(named_points(comparison))?;
                let stand_ins = runs.with_switch(points.clone(), Switch::Off)?;
                if points.into_iter().chain(stand_ins).any(|point| !comparison.has_equal_point(point, first))
                {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    fn judge_in_reading(
        &self,
        claim: &Claim,
        reading: &Reading,
        run: &[(usize, &Comparison)],
    ) -> Result<AlternativeReading, Problem> {
        let Evidence { measurement, verdict, .. } = evaluate_one(self, claim, run)?;
        Ok(AlternativeReading { reading: reading.clone(), name: reading.name(self), measurement, verdict })
    }
}

/// Returns the answers of a reading with another one at a place.
fn with_answer(answers: &[(usize, usize)], place: usize, answer: usize) -> Vec<(usize, usize)> {
    let mut answers = answers.to_vec();
    answers[place].1 = answer;
    answers
}

/// Returns the figures by which a claim is judged, each once.
fn figures_of(measure: &Measure) -> Vec<&str> {
    let against = measure.against.as_ref().map(|against| against.figure.as_str());
    let over = match &measure.quantity {
        Quantity::RatioToFigure(_, over) => Some(over.as_str()),
        Quantity::Mean | Quantity::StatisticOfGains(_) => None,
    };
    let mut figures = vec![measure.figure.as_str()];
    for other in against.into_iter().chain(over) {
        if !figures.contains(&other) {
            figures.push(other);
        }
    }
    figures
}

impl Evidence<'_> {
    /// Returns the number of readings in which the claim agrees, and the number of readings, both including
    /// the first; `None` if there is no other reading.
    #[must_use]
    pub fn holds_in(&self) -> Option<(usize, usize)> {
        let verdicts = self.other_readings.iter().map(|read| read.verdict).chain([self.verdict]);
        let agree = verdicts.filter(|verdict| *verdict == Verdict::Agrees).count();
        (!self.other_readings.is_empty()).then_some((agree, self.other_readings.len() + 1))
    }
    /// Returns the numbers of runs in the first reading and in other ones, in words; empty if there is no
    /// other reading.
    #[must_use]
    pub fn reading_runs(&self) -> String {
        reading_runs(std::slice::from_ref(self))
    }
}

/// Returns the numbers of runs of claims in the first reading and in other ones, in words; empty if there is
/// no other reading.
pub(crate) fn reading_runs(evidence: &[Evidence<'_>]) -> String {
    let read = || evidence.iter().filter(|e| !e.other_readings.is_empty());
    let first = read().filter_map(|e| e.measurement.as_ref()).map(|m| m.n);
    let others =
        read().flat_map(|e| &e.other_readings).filter_map(|read| read.measurement.as_ref()).map(|m| m.n);
    match (range(first), range(others)) {
        (Some(first), Some(others)) => format!("first reading: {first}, other readings: {others}"),
        _ => String::new(),
    }
}

/// Returns "5 runs" or "5 to 20 runs"; `None` without numbers.
fn range(runs: impl Iterator<Item = usize> + Clone) -> Option<String> {
    let (least, most) = (runs.clone().min()?, runs.max()?);
    Some(if least == most {
        count_text(most, "run")
    } else {
        format!("{least} to {}", count_text(most, "run"))
    })
}
