//! Claims with the mechanism under test switched off.
//!
//! A figure names, for each variant with the mechanism, its stand-in without it: the same window and the same
//! rate of ACKs by NewReno, drop tail for Neighborhood RED, no proxy for D-Proxy. A claim that holds for the
//! stand-ins too says nothing about the mechanism.

use super::measurement::Measurement;
use super::verdict::Verdict;
use crate::comparison::Comparison;
use crate::plan::Point;
use hopline_config::document::{Setting, Value};
use hopline_config::schema::Section;
use hopline_config::source::{Problem, nearest};
use hopline_scenario::settings;
use serde_json::{Value as Json, json};

/// Stand-ins of variants: of a figure, for all of its claims, or of one claim.
#[derive(Clone, Debug, Default)]
pub struct Ablations {
    /// Variant with the mechanism, and the name of its stand-in.
    by_variant: Vec<Setting>,
}

/// Relation of a claim to the mechanism under test.
#[derive(Clone, Debug, PartialEq)]
pub enum Mechanism {
    /// The figure does not say which variants have one.
    Unknown,
    /// No point of the claim has it: the claim is about the baseline.
    Absent,
    /// Some point has it; this is the outcome without.
    Removed(AblationOutcome),
}

/// A claim at the stand-ins of its points.
#[derive(Clone, Debug, PartialEq)]
pub struct AblationOutcome {
    /// Measurement; `None` if there is none.
    pub measurement: Option<Measurement>,
    /// Verdict on the claim.
    pub verdict: Verdict,
}

/// State of the mechanism during a lookup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Switch {
    On,
    Off,
}

/// Runs of a figure, and the stand-ins of its variants in a claim.
#[derive(Clone, Copy)]
pub(super) struct FigureRuns<'a> {
    pub(super) comparison: &'a Comparison,
    pub(super) ablations: Option<&'a Ablations>,
}

/// A point by variant and settings.
pub(super) type Named<'a> = (Option<&'a str>, &'a serde_json::Map<String, Json>);

impl Ablations {
    /// Reads `sham` of a figure or a claim; `None` if it has none.
    pub(super) fn of(section: &Section<'_>) -> Result<Option<Self>, Problem> {
        let Some(node) = section.node("sham") else { return Ok(None) };
        let of_variants = settings(node);
        match of_variants.iter().find(|setting| !matches!(setting.node.value, Value::Text(_))) {
            Some(other) => Err(Problem::new(format!("the stand-in of \"{}\" is no text", other.path))
                .at(&other.node.origin)
                .help("name a variant of the plan")),
            None => Ok(Some(Self { by_variant: of_variants })),
        }
    }

    /// Checks that all variants exist in a plan with these `points`.
    pub(super) fn check(&self, points: &[Point]) -> Result<(), Problem> {
        let variants = || points.iter().filter_map(|point| point.variant.as_deref());
        let missing = |name: &str, origin| {
            let help = match nearest(name, variants()) {
                Some(near) => format!("did you mean \"{near}\"?"),
                None => "name a variant of the figure's plan".to_owned(),
            };
            Problem::new(format!("the plan has no variant \"{name}\"")).at(origin).help(help)
        };
        for setting in &self.by_variant {
            let sham = setting.text();
            if !variants().any(|variant| variant == setting.path) {
                return Err(missing(&setting.path, &setting.key));
            }
            if !variants().any(|variant| variant == sham) {
                return Err(missing(&sham, &setting.node.origin));
            }
        }
        self.ablation_points(points, &(0..points.len()).collect::<Vec<_>>()).map(|_| ())
    }

    /// Returns the stand-ins of these points of a plan.
    ///
    /// # Errors
    /// As [`ablation_point`](Self::ablation_point).
    pub(super) fn ablation_points(&self, points: &[Point], of: &[usize]) -> Result<Vec<usize>, Problem> {
        let settings: Vec<_> = points.iter().map(Point::settings_object).collect();
        let named: Vec<_> = points.iter().zip(&settings).map(|(p, of)| (p.variant.as_deref(), of)).collect();
        of.iter().map(|&point| self.ablation_point(&named, point)).collect()
    }

    /// Returns the number of the point that stands in for `point`; its own if it is without the mechanism.
    ///
    /// # Errors
    /// If the stand-in has no point with the settings that the figure varies besides its variants.
    pub(super) fn ablation_point(&self, points: &[Named<'_>], point: usize) -> Result<usize, Problem> {
        let (variant, settings) = points[point];
        let Some(setting) = self.by_variant.iter().find(|setting| Some(setting.path.as_str()) == variant)
        else {
            return Ok(point);
        };
        let sham = setting.text();
        let candidates: Vec<usize> =
            (0..points.len()).filter(|&other| points[other].0 == Some(sham.as_str())).collect();
        // Settings that differ among the stand-in's own points are varied for all variants; other settings of
        // the variant belong to the mechanism.
        let varied = |key: &str| {
            candidates.iter().any(|&other| points[other].1.get(key) != points[candidates[0]].1.get(key))
        };
        let fits = |&&other: &&usize| {
            points[other].1.iter().all(|(key, value)| !varied(key) || settings.get(key) == Some(value))
        };
        candidates.iter().find(fits).copied().ok_or_else(|| {
            Problem::new(format!("\"{sham}\" has no point that can stand in for one of \"{}\"", setting.path))
                .at(&setting.node.origin)
                .help("the two variants need the same grid beside what each sets for itself")
        })
    }
}

/// Returns the points of a comparison by variant and settings.
fn named(comparison: &Comparison) -> Vec<Named<'_>> {
    comparison.description.points.iter().map(|p| (p.variant.as_deref(), &p.settings)).collect()
}

impl FigureRuns<'_> {
    /// Returns `points`, or their stand-ins while the mechanism is off.
    pub(super) fn with_switch(self, points: Vec<usize>, switch: Switch) -> Result<Vec<usize>, Problem> {
        let (Switch::Off, Some(shams)) = (switch, self.ablations) else { return Ok(points) };
        let named = named(self.comparison);
        let mut stand_ins = Vec::new();
        for point in points {
            let stand_in = shams.ablation_point(&named, point)?;
            if !stand_ins.contains(&stand_in) {
                stand_ins.push(stand_in);
            }
        }
        Ok(stand_ins)
    }
}

impl Mechanism {
    /// Returns the verdict on a claim that has `verdict` with the mechanism.
    pub(super) fn verdict(&self, verdict: Verdict) -> Verdict {
        match (verdict, self) {
            (Verdict::Agrees, Self::Removed(sham)) if sham.verdict == Verdict::Agrees => Verdict::NotTested,
            (Verdict::DirectionOnly, Self::Removed(sham))
                if matches!(sham.verdict, Verdict::Agrees | Verdict::DirectionOnly) =>
            {
                Verdict::NotTested
            }
            _ => verdict,
        }
    }

    /// Returns the JSON value of `--json`.
    #[must_use]
    pub fn json(&self) -> Json {
        match self {
            Self::Unknown => Json::Null,
            Self::Absent => json!("absent"),
            Self::Removed(sham) => json!({
                "measured": sham.measurement.as_ref().map(Measurement::json),
                "verdict": sham.verdict,
            }),
        }
    }
}
