//! What our runs say of a paper's claims.

use super::{Against, Claim, Claimed, Measure, Register, Test, Verdict, judge};
use crate::comparison::Comparison;
use crate::metrics::{self, Better, Level};
use crate::scenario::source::Problem;
use crate::stats::{Confidence, Estimate, Interval};
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
                let made = figures.iter().find(|(number, _)| register.figures[*number].id == measure.figure);
                if let Some(&(number, comparison)) = made {
                    evidence.push(evidence_of(register, claim, measure, number, comparison)?);
                }
            }
        }
    }
    Ok(evidence)
}

fn evidence_of<'a>(
    register: &Register,
    claim: &'a Claim,
    measure: &Measure,
    figure: usize,
    comparison: &Comparison,
) -> Result<Evidence<'a>, Problem> {
    let nothing = |why: String| Evidence { claim, measurement: None, verdict: Verdict::CannotBeJudged, why };
    let measurement = match measured(measure, figure, comparison)? {
        Ok(measurement) => measurement,
        Err(why) => return Ok(nothing(why)),
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
fn measured(
    measure: &Measure,
    figure: usize,
    comparison: &Comparison,
) -> Result<Result<Measurement, String>, Problem> {
    let description = &comparison.description;
    let points = || {
        let points = description.points.iter();
        points.map(|p| (p.variant.as_deref(), Json::Object(p.settings.clone()), p.label.as_str()))
    };
    let level = if measure.flow.is_empty() { Level::Run } else { Level::Flow };
    let metric_of = |flow| (level, flow, measure.metric.name);
    let metric = metric_of(measure.flow.as_str());
    let best_of = |points: &[usize], flow: &str| {
        best(comparison, points, (level, flow, measure.metric.name), measure.metric.better)
    };
    let point = best_of(&measure.point.find_all(points())?, &measure.flow);
    let found = |against: &Against| {
        let points = against.point.find_all(points())?;
        Ok((best_of(&points, &against.flow), against.flow.clone()))
    };
    let against = measure.against.as_ref().map(found).transpose()?;
    let (estimate, unit) = match &against {
        None => {
            let values = comparison.points[point].all(metric).unwrap_or_default();
            let values: Vec<f64> = values.iter().copied().filter(|x| x.is_finite()).collect();
            if values.is_empty() {
                return Ok(Err("no run has the metric".to_owned()));
            }
            (Estimate::of(&values), measure.metric.unit)
        }
        Some((other, flow)) => match comparison.between((point, metric), (*other, metric_of(flow))) {
            None => return Ok(Err("no pair of runs has the metric".to_owned())),
            Some(versus) => match versus.percent {
                None => return Ok(Err("what it is compared with is zero".to_owned())),
                Some(percent) => (percent, "%"),
            },
        },
    };
    let confidence: Confidence = description.confidence();
    Ok(Ok(Measurement {
        figure,
        point: description.points[point].label.clone(),
        against: against.map(|(i, flow)| match (&description.points[i].label, flow == measure.flow) {
            (label, true) => label.clone(),
            (_, false) if i == point => flow,
            (label, false) => format!("{flow} of {label}"),
        }),
        estimate,
        interval: estimate.interval(confidence),
        unit,
    }))
}

/// The best of `points` by the mean of a metric; the first of equals, and of points that all lack it.
fn best(comparison: &Comparison, points: &[usize], metric: (Level, &str, &str), better: Better) -> usize {
    let mean = |point: usize| {
        let values = comparison.points[point].all(metric).unwrap_or_default();
        let values: Vec<f64> = values.iter().copied().filter(|x| x.is_finite()).collect();
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
