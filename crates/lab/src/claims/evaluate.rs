//! What our runs say of a paper's claims.

use super::{Claim, Claimed, Measure, Register, Selector, Test, Verdict, judge};
use crate::comparison::Comparison;
use crate::metrics::{self, Better, Level};
use crate::scenario::source::Problem;
use crate::stats::{Estimate, Interval};
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
    /// The estimate: in the unit of the metric, or in percent of `against`.
    pub estimate: Estimate,
    /// Its confidence interval; `None` of a single run.
    pub interval: Option<Interval>,
    /// Unit of both.
    pub unit: &'static str,
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
                    });
                }
            }
            Test::Measure(measure) => {
                if let Some(runs) = Runs::of(register, measure, figures) {
                    evidence.push(evidence_of(register, claim, measure, runs)?);
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
        Some(Self { figure, comparison, against })
    }
}

fn evidence_of<'a>(
    register: &Register,
    claim: &'a Claim,
    measure: &Measure,
    runs: Runs<'_>,
) -> Result<Evidence<'a>, Problem> {
    let nothing = |why: String| Evidence { claim, measurement: None, verdict: Verdict::CannotBeJudged, why };
    let measurement = match measured(measure, runs)? {
        Ok(measurement) => measurement,
        Err(why) => return Ok(nothing(why.to_owned())),
    };
    let Some(interval) = measurement.interval else {
        let why = "a single run has no interval".to_owned();
        return Ok(Evidence { measurement: Some(measurement), ..nothing(why) });
    };
    let widest = widest(measure.claimed, register.rule.widest_pct);
    let verdict = judge(measure.claimed, measure.direction(), interval, widest);
    let why = match verdict {
        Verdict::CannotBeJudged => "the interval is too wide".to_owned(),
        _ => String::new(),
    };
    Ok(Evidence { claim, measurement: Some(measurement), verdict, why })
}

/// The measurement, or why there is none.
fn measured(measure: &Measure, runs: Runs<'_>) -> Result<Result<Measurement, &'static str>, Problem> {
    let place = Place::find(runs.comparison, &measure.point, measure, &measure.flow)?;
    let other = match &measure.against {
        Some(against) => Some(Place::find(runs.against, &against.point, measure, &against.flow)?),
        None => None,
    };
    let estimate = match other {
        None => place.estimate(),
        Some(other) => place.percent_above(other),
    };
    let estimate = match estimate {
        Ok(estimate) => estimate,
        Err(why) => return Ok(Err(why)),
    };
    let figure_of_other = measure.against.as_ref().filter(|a| a.figure != measure.figure).map(|a| &a.figure);
    Ok(Ok(Measurement {
        figure: runs.figure,
        point: place.label().to_owned(),
        against: other.map(|other| match figure_of_other {
            Some(figure) => format!("{} in {figure}", other.described_beside(place)),
            None => other.described_beside(place),
        }),
        estimate,
        interval: estimate.interval(runs.comparison.description.confidence()),
        unit: if other.is_some() { "%" } else { measure.metric.unit },
    }))
}

/// A metric of a point.
#[derive(Clone, Copy)]
struct Place<'a> {
    comparison: &'a Comparison,
    point: usize,
    metric: (Level, &'a str, &'a str),
}

impl<'a> Place<'a> {
    /// Where a selector leads; of several points to the best.
    fn find(
        comparison: &'a Comparison,
        selector: &Selector,
        measure: &'a Measure,
        flow: &'a str,
    ) -> Result<Self, Problem> {
        let points = comparison.description.points.iter();
        let points =
            points.map(|p| (p.variant.as_deref(), Json::Object(p.settings.clone()), p.label.as_str()));
        let level = if measure.flow.is_empty() { Level::Run } else { Level::Flow };
        let metric = (level, flow, measure.metric.name);
        let found = selector.find_all(points)?;
        Ok(Self { comparison, point: best(comparison, &found, metric, measure.metric.better), metric })
    }

    fn label(&self) -> &'a str {
        &self.comparison.description.points[self.point].label
    }

    /// What it is called where `other` is named before it.
    fn described_beside(&self, other: Place<'_>) -> String {
        let (flow, label) = (self.metric.1, self.label());
        if flow == other.metric.1 {
            label.to_owned()
        } else if self.label() == other.label() {
            flow.to_owned()
        } else {
            format!("{flow} of {label}")
        }
    }

    fn values(&self) -> Vec<f64> {
        finite_values(self.comparison, self.point, self.metric)
    }

    fn estimate(&self) -> Result<Estimate, &'static str> {
        let values = self.values();
        if values.is_empty() { Err("no run has the metric") } else { Ok(Estimate::of(&values)) }
    }

    /// How much more there is than at `other`, in percent of that: over pairs of runs, where the two are of one figure.
    fn percent_above(&self, other: Self) -> Result<Estimate, &'static str> {
        let zero = "what it is compared with is zero";
        if std::ptr::eq(self.comparison, other.comparison) {
            let versus = self.comparison.between((self.point, self.metric), (other.point, other.metric));
            return versus.ok_or("no pair of runs has the metric")?.percent.ok_or(zero);
        }
        let baseline = other.estimate()?.mean;
        self.estimate()?;
        let difference = Estimate::of_independent(&self.values(), &other.values());
        if baseline > 0.0 { Ok(difference.scaled(100.0 / baseline)) } else { Err(zero) }
    }
}

/// The best of `points` by the mean of a metric; the first of equals, and of points that all lack it.
fn best(comparison: &Comparison, points: &[usize], metric: (Level, &str, &str), better: Better) -> usize {
    let mean = |point: usize| {
        let values = finite_values(comparison, point, metric);
        (!values.is_empty()).then(|| Estimate::of(&values).mean)
    };
    let beats = |a: Option<f64>, b: Option<f64>| match (a, b, better) {
        (Some(_), None, _) => true,
        (Some(a), Some(b), Better::Lower) => a < b,
        (Some(a), Some(b), _) => a > b,
        (None, ..) => false,
    };
    let of_two = |best: usize, next: usize| if beats(mean(next), mean(best)) { next } else { best };
    points.iter().copied().reduce(of_two).expect("a selector picks a point")
}

/// A metric in the runs of a point that have it.
fn finite_values(comparison: &Comparison, point: usize, metric: (Level, &str, &str)) -> Vec<f64> {
    let values = comparison.points[point].all(metric).unwrap_or_default();
    values.iter().copied().filter(|x| x.is_finite()).collect()
}

/// The half-width above which an interval that meets the claim tells nothing.
fn widest(claimed: Claimed, percent: f64) -> f64 {
    match claimed {
        Claimed::Value { value, tolerance } => (value.abs() * percent / 100.0).max(tolerance),
        Claimed::Range(range) => {
            let size = range.low.abs().max(range.high.abs());
            (size * percent / 100.0).max((range.high - range.low) / 2.0)
        }
        Claimed::Above(_) | Claimed::Below(_) => f64::INFINITY,
    }
}

impl Evidence<'_> {
    /// As `--json` prints it.
    #[must_use]
    pub fn json(&self) -> Json {
        json!({
            "claim": self.claim.id,
            "statement": self.claim.statement,
            "where": self.claim.place,
            "claimed": self.claimed(),
            "measured": self.measurement.as_ref().map(|m| json!({
                "point": m.point,
                "against": m.against,
                "n": m.estimate.n,
                "mean": m.estimate.mean,
                "interval": m.interval.map(|i| [i.low, i.high]),
                "unit": m.unit,
            })),
            "verdict": self.verdict,
            "why": self.why,
            "note": self.claim.note,
        })
    }

    /// What is claimed, in words and its unit.
    #[must_use]
    pub fn claimed(&self) -> String {
        match &self.claim.test {
            Test::Needs(_) => self.claim.statement.clone(),
            Test::Measure(measure) => {
                let (factor, unit) = match measure.against {
                    Some(_) => (1.0, "%"),
                    None => metrics::for_people(measure.metric.unit),
                };
                measure.claimed.scaled(factor).describe(unit, measure.against.is_some())
            }
        }
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
            Self::Range(range) => {
                Self::Range(Interval { low: range.low * factor, high: range.high * factor })
            }
            Self::Above(limit) => Self::Above(limit * factor),
            Self::Below(limit) => Self::Below(limit * factor),
        }
    }

    /// In words, with a unit as people write it: "−70 ± 10 %", "45 to 57 %", "above 700".
    #[must_use]
    pub fn describe(&self, unit: &str, signed: bool) -> String {
        let number = |x: f64| if signed { format!("{x:+}") } else { x.to_string() };
        let unit = if unit.is_empty() { String::new() } else { format!(" {unit}") };
        match self {
            Self::Value { value, tolerance } => format!("{} ± {}{unit}", number(*value), round(*tolerance)),
            Self::Range(range) => format!("{} to {}{unit}", number(range.low), number(range.high)),
            Self::Above(limit) => format!("above {}{unit}", number(*limit)),
            Self::Below(limit) => format!("below {}{unit}", number(*limit)),
        }
    }
}

/// Three digits after the point at most.
fn round(x: f64) -> f64 {
    (x * 1e3).round() / 1e3
}
