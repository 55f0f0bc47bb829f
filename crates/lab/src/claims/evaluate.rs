//! What our runs say of a paper's claims.

use super::along::{self, Along};
use super::finding::{Found, Missing};
use super::verdict::ratio_range;
use super::{
    Claim, Claimed, Direction, Heading, Measure, OfSeveral, Quantity, Register, Test, Verdict, judge,
};
use crate::comparison::Comparison;
use crate::metrics;
use crate::stats::{Interval, SignTest};
use hopline_scenario::source::Problem;
use serde_json::{Value as Json, json};

/// A claim with what we measured.
#[derive(Clone, Debug)]
pub struct Evidence<'a> {
    /// The claim.
    pub claim: &'a Claim,
    /// What was measured; `None` if it could not be.
    pub measurement: Option<Measurement>,
    /// How the two stand to each other.
    pub verdict: Verdict,
    /// Why there is no other verdict; empty if there is nothing to say.
    pub why: String,
    /// The same at each value of the key that the register names, if the claim gives it one.
    pub along: Vec<Along>,
}

/// What was measured for a claim.
#[derive(Clone, Debug, PartialEq)]
pub struct Measurement {
    /// Number of the figure in the register.
    pub figure: usize,
    /// Label of the point.
    pub point: String,
    /// Label of what it is compared with: a point, a flow.
    pub against: Option<String>,
    /// What was measured: a mean, a gain, or a statistic of gains.
    pub value: f64,
    /// Runs that it is made of.
    pub n: usize,
    /// Its confidence interval; `None` of a single run.
    pub interval: Option<Interval>,
    /// Unit of both.
    pub unit: &'static str,
    /// Runs left out because there is nothing that their gain could be a gain over.
    pub excluded: usize,
    /// The sign test behind a share of positive gains.
    pub sign_test: Option<SignTest>,
}

/// Judges the claims of `register` by the comparisons that were made: (number of the figure, its runs). Claims about
/// other figures are left out; claims that cannot be judged at all are there if `all` figures were run.
///
/// # Errors
///
/// A claim that picks no point.
pub fn evaluate<'a>(
    register: &'a Register,
    figures: &[(usize, &Comparison)],
) -> Result<Vec<Evidence<'a>>, Problem> {
    let mut evidence = Vec::new();
    for claim in &register.claims {
        match &claim.test {
            Test::Needs(needs) => {
                if figures.len() == register.figures.len() {
                    evidence.push(Evidence {
                        claim,
                        measurement: None,
                        verdict: Verdict::CannotBeJudged,
                        why: format!("needs {needs}"),
                        along: Vec::new(),
                    });
                }
            }
            Test::Measure(measure) => {
                if let Some(runs) = Runs::of(register, measure, figures) {
                    let along = all_along(register, claim, measure, runs);
                    evidence.push(Evidence { along, ..evidence_of(register, claim, measure, runs)? });
                }
            }
        }
    }
    Ok(evidence)
}

/// The runs that a claim is judged by.
#[derive(Clone, Copy)]
struct Runs<'a> {
    /// Number of the claim's figure in the register.
    figure: usize,
    comparison: &'a Comparison,
    /// Those of the point that it is compared with, of the same figure or another.
    against: &'a Comparison,
    /// Those of the figure whose statistic it is taken over.
    over: Option<&'a Comparison>,
}

impl<'a> Runs<'a> {
    /// `None` if they were not made.
    fn of(register: &Register, measure: &Measure, figures: &[(usize, &'a Comparison)]) -> Option<Self> {
        let made = |id: &str| figures.iter().find(|(number, _)| register.figures[*number].id == id);
        let &(figure, comparison) = made(&measure.figure)?;
        let against = match &measure.against {
            Some(against) => made(&against.figure)?.1,
            None => comparison,
        };
        let over = match &measure.quantity {
            Quantity::OverFigure(_, over) => Some(made(over)?.1),
            Quantity::Mean | Quantity::OfGains(_) => None,
        };
        Some(Self { figure, comparison, against, over })
    }
}

/// The claim at each value of the register's key. Values at which the plan has no such point are left out.
fn all_along(register: &Register, claim: &Claim, measure: &Measure, runs: Runs<'_>) -> Vec<Along> {
    let Some(key) = register.along.as_ref().filter(|key| measure.is_at_one_value_of(key)) else {
        return Vec::new();
    };
    let at = |value: Json| {
        let evidence = evidence_of(register, claim, &measure.at(key, &value), runs).ok()?;
        Some(Along::of(value, evidence))
    };
    along::values(runs.comparison, key).into_iter().filter_map(at).collect()
}

fn evidence_of<'a>(
    register: &Register,
    claim: &'a Claim,
    measure: &Measure,
    runs: Runs<'_>,
) -> Result<Evidence<'a>, Problem> {
    let verdict = Verdict::CannotBeJudged;
    let nothing = |why: String| Evidence { claim, measurement: None, verdict, why, along: Vec::new() };
    let measurement = match measured(measure, runs)? {
        Ok(measurement) => measurement,
        Err(why) => return Ok(nothing(why.to_owned())),
    };
    let Some(interval) = measurement.interval else {
        let why = "a single run has no interval".to_owned();
        return Ok(Evidence { measurement: Some(measurement), ..nothing(why) });
    };
    let on = (measure.direction(), measure.scale);
    let estimate = (measurement.value, interval);
    let (verdict, why) = judge(measure.claimed, on, estimate, register.rule.widest_pct);
    Ok(Evidence { verdict, measurement: Some(measurement), ..nothing(why.to_owned()) })
}

/// The measurement, or why there is none.
fn measured(measure: &Measure, runs: Runs<'_>) -> Result<Result<Measurement, Missing>, Problem> {
    let found = Found::of(measure, runs.comparison, runs.against)?;
    let over = match runs.over {
        Some(over) => Some(Found::of(measure, over, over)?),
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
        Some(figure) => format!("{} in {figure}", other.described_beside(&found.place)),
        None => other.described_beside(&found.place),
    });
    let description = &runs.comparison.description;
    Ok(Ok(Measurement {
        figure: runs.figure,
        point: point_label(&found),
        against: against.map(|against| match (&measure.quantity, &over) {
            (Quantity::OverFigure(_, figure), Some(over)) => {
                format!("{against}, over {} in {figure}", point_label(over))
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

/// The point, and which of several it is.
fn point_label(found: &Found<'_>) -> String {
    let label = found.place.label();
    match found.of_several {
        Some((OfSeveral::Mean, _)) | None => label,
        Some((of_several, count)) => format!("{label} ({} of {count})", of_several.word()),
    }
}

impl Evidence<'_> {
    /// As `--json` prints it.
    #[must_use]
    pub fn json(&self) -> Json {
        json!({
            "claim": self.claim.id,
            "kind": self.claim.kind.word(),
            "sentence": self.claim.sentence,
            "counted": Heading::of(self).map(Heading::key),
            "statement": self.claim.statement,
            "where": self.claim.place,
            "claimed": self.claimed(),
            "measured": self.measurement.as_ref().map(|m| json!({
                "point": m.point,
                "against": m.against,
                "n": m.n,
                "mean": m.value,
                "interval": m.interval.map(|i| [i.low, i.high]),
                "unit": m.unit,
                "excluded": m.excluded,
                "sign_p": m.sign_test.map(|test| test.p),
            })),
            "verdict": self.verdict,
            "why": self.why,
            "note": self.claim.note,
            "along": self.along.iter().map(Along::json).collect::<Vec<_>>(),
        })
    }

    /// What is claimed, in words and its unit.
    #[must_use]
    pub fn claimed(&self) -> String {
        match &self.claim.test {
            Test::Needs(_) => self.claim.statement.clone(),
            Test::Measure(measure) => {
                let (factor, unit) = metrics::for_people(measure.unit());
                measure.claimed.scaled(factor).describe(unit, measure.direction() == Direction::Signed)
            }
        }
    }

    /// What a reader must know of the runs that it was measured in; empty if nothing.
    #[must_use]
    pub fn runs(&self) -> String {
        let Some(m) = &self.measurement else { return String::new() };
        let left_out = (m.excluded > 0).then(|| {
            let runs = if m.excluded == 1 { "run" } else { "runs" };
            format!("{} {runs} left out, in which what it is compared with is zero", m.excluded)
        });
        let signs = m.sign_test.map(|test| {
            let SignTest { positive, negative, ties, p } = test;
            format!("{positive} gains, {negative} losses, {ties} ties, sign test p = {p:.2e}")
        });
        signs.into_iter().chain(left_out).collect::<Vec<_>>().join("; ")
    }

    /// What it was measured on.
    #[must_use]
    pub fn scenario(&self) -> String {
        match (&self.measurement, self.claim.scenario.as_str()) {
            (_, scenario) if !scenario.is_empty() => scenario.to_owned(),
            (Some(m), _) => match &m.against {
                Some(against) => format!("{} against {against}", m.point),
                None => m.point.clone(),
            },
            (None, _) => String::new(),
        }
    }
}

impl Claimed {
    fn scaled(self, factor: f64) -> Self {
        match self {
            Self::Value { value, tolerance } => {
                Self::Value { value: value * factor, tolerance: tolerance * factor }
            }
            Self::Ratio { .. } => self,
            Self::Range(range) => {
                Self::Range(Interval { low: range.low * factor, high: range.high * factor })
            }
            Self::Above(limit) => Self::Above(limit * factor),
            Self::Below(limit) => Self::Below(limit * factor),
            Self::Within(margin) => Self::Within(margin * factor),
        }
    }

    /// In words, with a unit as people write it: "−70 ± 10 %", "45 to 57 %", "above 700".
    #[must_use]
    pub fn describe(&self, unit: &str, signed: bool) -> String {
        let number = |x: f64| if signed { format!("{x:+}") } else { x.to_string() };
        let unit = if unit.is_empty() { String::new() } else { format!(" {unit}") };
        match self {
            Self::Value { value, tolerance } => format!("{} ± {}{unit}", number(*value), round(*tolerance)),
            Self::Ratio { value, factor } => {
                let Interval { low, high } = ratio_range(*value, *factor);
                format!("{} ({} to {}){unit}", number(*value), number(tenths(low)), number(tenths(high)))
            }
            Self::Range(range) => format!("{} to {}{unit}", number(range.low), number(range.high)),
            Self::Above(limit) => format!("above {}{unit}", number(*limit)),
            Self::Below(limit) => format!("below {}{unit}", number(*limit)),
            Self::Within(margin) => format!("no difference: within ± {margin}{unit}"),
        }
    }
}

fn tenths(x: f64) -> f64 {
    (x * 10.0).round() / 10.0
}

/// Three digits after the point at most.
fn round(x: f64) -> f64 {
    (x * 1e3).round() / 1e3
}
