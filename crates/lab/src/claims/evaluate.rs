//! Evaluation of a paper's claims by runs.

use super::ablation::{self, AblationOutcome, Mechanism, Switch};
use super::claim::{Claim, Test};
use super::evidence::Evidence;
use super::finding::{ClaimResult, Missing};
use super::measure::{Measure, Quantity};
use super::measurement::Measurement;
use super::register::Register;
use super::selector::{Aggregate, Selector, named_points};
use super::verdict::{Verdict, judge};
use crate::comparison::Comparison;
use hopline_config::source::Problem;

/// Judges the claims of `register` by the given comparisons: (number of the figure, its runs). Claims about
/// other figures are left out. Claims that cannot be judged at all are included if `all` figures were run.
///
/// # Errors
///
/// If a claim picks no point.
pub fn evaluate<'a>(
    register: &'a Register,
    figures: &[(usize, &Comparison)],
) -> Result<Vec<Evidence<'a>>, Problem> {
    let all = figures.len() == register.figures.len();
    let judged = |claim: &&Claim| match &claim.test {
        Test::Missing(_) => all,
        Test::Measure(measure) => Runs::of(register, claim, measure, figures).is_some(),
    };
    register.claims.iter().filter(judged).map(|claim| evaluate_one(register, claim, figures)).collect()
}

/// Judges one claim.
///
/// # Errors
///
/// If the claim picks no point, or its figure is not among `figures`.
pub fn evaluate_one<'a>(
    register: &'a Register,
    claim: &'a Claim,
    figures: &[(usize, &Comparison)],
) -> Result<Evidence<'a>, Problem> {
    let measure = match &claim.test {
        Test::Missing(needs) => {
            return Ok(Evidence {
                claim,
                measurement: None,
                verdict: Verdict::CannotBeJudged,
                why: format!("needs {needs}"),
                mechanism: Mechanism::Unknown,
                other_readings: Vec::new(),
            });
        }
        Test::Measure(measure) => measure,
    };
    let runs = Runs::of(register, claim, measure, figures)
        .ok_or_else(|| Problem::new(format!("the figures of {} were not run", claim.id)))?;
    measure_with_ablation(register, claim, measure, runs)
}

/// Runs by which a claim is judged.
#[derive(Clone, Copy)]
struct Runs<'a> {
    /// Number of the claim's figure in the register.
    number: usize,
    own: ablation::FigureRuns<'a>,
    /// Runs of the point that it is compared with, of the same figure or another.
    against: ablation::FigureRuns<'a>,
    /// Runs of the figure over the statistic of which it is taken.
    over: Option<ablation::FigureRuns<'a>>,
}

impl<'a> Runs<'a> {
    /// Returns the runs; `None` if they were not made.
    fn of(
        register: &'a Register,
        claim: &'a Claim,
        measure: &Measure,
        figures: &[(usize, &'a Comparison)],
    ) -> Option<Self> {
        let made = |id: &str| {
            let &(number, comparison) =
                figures.iter().find(|(number, _)| register.figures[*number].id == id)?;
            Some((
                number,
                ablation::FigureRuns {
                    comparison,
                    ablations: register.ablations_of(claim, &register.figures[number]),
                },
            ))
        };
        let (number, own) = made(&measure.figure)?;
        let against = match &measure.against {
            Some(against) => made(&against.figure)?.1,
            None => own,
        };
        let over = match &measure.quantity {
            Quantity::RatioToFigure(_, over) => Some(made(over)?.1),
            Quantity::Mean | Quantity::StatisticOfGains(_) => None,
        };
        Some(Self { number, own, against, over })
    }
}

/// Measures the claim, and the claim with the mechanism switched off.
fn measure_with_ablation<'a>(
    register: &Register,
    claim: &'a Claim,
    measure: &Measure,
    runs: Runs<'_>,
) -> Result<Evidence<'a>, Problem> {
    let on = evidence_of(register, claim, measure, runs, Switch::On)?;
    let mechanism = if runs.own.ablations.is_none() {
        Mechanism::Unknown
    } else if !has_mechanism(measure, runs)? {
        Mechanism::Absent
    } else {
        let Evidence { measurement, verdict, .. } = evidence_of(register, claim, measure, runs, Switch::Off)?;
        Mechanism::Removed(AblationOutcome { measurement, verdict })
    };
    let verdict = mechanism.verdict(on.verdict);
    let why = if verdict == Verdict::NotTested { NOT_TESTED.to_owned() } else { on.why };
    Ok(Evidence { verdict, why, mechanism, ..on })
}

const NOT_TESTED: &str = "it comes out the same with the mechanism switched off";

/// Returns whether some point of a claim has the mechanism under test.
fn has_mechanism(measure: &Measure, runs: Runs<'_>) -> Result<bool, Problem> {
    let is_switched = |selector: &Selector, runs: ablation::FigureRuns<'_>| {
        let points = selector.find_all(named_points(runs.comparison))?;
        Ok::<_, Problem>(runs.with_switch(points.clone(), Switch::Off)? != points)
    };
    let against = measure.against.as_ref().and_then(|against| against.point.as_ref());
    let elsewhere = against.map(|selector| is_switched(selector, runs.against)).transpose()?;
    Ok(is_switched(&measure.point, runs.own)? || elsewhere.unwrap_or(false))
}

fn evidence_of<'a>(
    register: &Register,
    claim: &'a Claim,
    measure: &Measure,
    runs: Runs<'_>,
    switch: Switch,
) -> Result<Evidence<'a>, Problem> {
    let verdict = Verdict::CannotBeJudged;
    let nothing = |why: String| Evidence {
        claim,
        measurement: None,
        verdict,
        why,
        mechanism: Mechanism::Unknown,
        other_readings: Vec::new(),
    };
    let measurement = match measured(measure, runs, switch)? {
        Ok(measurement) => measurement,
        Err(why) => return Ok(nothing(why.to_owned())),
    };
    let Some(interval) = measurement.interval else {
        let why = match measurement.n {
            0 | 1 => "a single run has no interval",
            _more => "what it is compared with cannot be told from zero",
        };
        return Ok(Evidence { measurement: Some(measurement), ..nothing(why.to_owned()) });
    };
    let on = (measure.sign_meaning(), measure.scale);
    let estimate = (measurement.value, interval);
    let (verdict, why) = judge(measure.claimed, on, estimate, register.rule.max_half_width_pct);
    Ok(Evidence { verdict, measurement: Some(measurement), ..nothing(why.to_owned()) })
}

/// Returns the measurement, or the reason why there is none.
fn measured(
    measure: &Measure,
    runs: Runs<'_>,
    switch: Switch,
) -> Result<Result<Measurement, Missing>, Problem> {
    let found = ClaimResult::of(measure, runs.own, runs.against, switch)?;
    let over = match runs.over {
        Some(over) => Some(ClaimResult::of(measure, over, over, switch)?),
        None => None,
    };
    let finding = match over.as_ref().map(|over| over.finding.clone()) {
        None => found.finding.clone(),
        Some(over) => found.finding.clone().and_then(|finding| finding.over(over?)),
    };
    let finding = match finding {
        Ok(finding) => finding,
        Err(why) => return Ok(Err(why)),
    };
    let figure_of_other = measure.against.as_ref().filter(|a| a.figure != measure.figure).map(|a| &a.figure);
    let against = found.against.as_ref().map(|other| match figure_of_other {
        Some(figure) => format!("{} in {figure}", other.described_after(&found.measured)),
        None => other.described_after(&found.measured),
    });
    let description = &runs.own.comparison.description;
    Ok(Ok(Measurement {
        figure: runs.number,
        point: point_label(&found),
        against: against.map(|against| match (&measure.quantity, &over, &found.second) {
            (Quantity::RatioToFigure(_, figure), Some(over), _) => {
                format!("{against}, over {} in {figure}", point_label(over))
            }
            (_, _, Some([over, over_against])) => {
                let over_against = over_against.described_after(over);
                format!("{against}, over {} / {over_against}", over.described_after(&found.measured))
            }
            _ => against,
        }),
        value: finding.value(),
        n: finding.n(),
        interval: finding.interval(description.seed, description.confidence()),
        unit: measure.unit(),
        excluded: finding.excluded(),
        sign_test: finding.sign_test(),
    }))
}

/// Returns the label of the point, and which of several it is.
fn point_label(found: &ClaimResult<'_>) -> String {
    let label = found.measured.label();
    match found.aggregate {
        Some((Aggregate::Mean, _)) | None => label,
        Some((of_several, count)) => format!("{label} ({} of {count})", of_several.word()),
    }
}
