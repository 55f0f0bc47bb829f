//! Criteria: limits of metrics, absolute or relative to references.

use super::keys;
use crate::metrics::{Better, MetricInfo};
use crate::objective::{Constraint, MetricSelection, Side};
use crate::record::FlowEnds;
use hopline_config::schema::Section;
use hopline_config::source::{Origin, Problem};

/// Requirement on a metric.
#[derive(Clone, Debug, PartialEq)]
pub struct Criterion {
    /// The metric.
    pub metric: MetricSelection,
    /// Allowed side of the limit.
    pub side: Side,
    /// The limit.
    pub limit: Limit,
}

/// Limit of a criterion.
#[derive(Clone, Debug, PartialEq)]
pub enum Limit {
    /// This value, in the unit of the catalogue of metrics.
    Value(f64),
    /// This multiple of the value of a reference in the same run.
    Share {
        /// Factor, above 0.
        factor: f64,
        /// The reference.
        of: Reference,
    },
}

/// Algorithm that a limit refers to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reference {
    /// The reference at this index.
    Law(usize),
    /// The reference with the best mean.
    Best,
}

impl Criterion {
    /// Reads a criterion of a network with these flows.
    pub(super) fn of(
        section: &Section<'_>,
        flows: &[FlowEnds],
        references: &[String],
    ) -> Result<Self, Problem> {
        let sides = [("at_least", Side::AtLeast, ">="), ("at_most", Side::AtMost, "<=")];
        let given: Vec<_> = sides.into_iter().filter(|(key, ..)| section.has(key)).collect();
        let &[(key, side, operator)] = given.as_slice() else {
            let what = if given.is_empty() { "no limit" } else { "two limits" };
            return Err(Problem::new(format!("the criterion has {what}"))
                .at(section.origin_of("metric"))
                .help("give one of at_least and at_most; two limits are two criteria"));
        };
        let written = section.get(keys::criterion::METRIC);
        let metric = MetricSelection::parse(written, section.origin_of("metric"), flows)?;
        let text = section.word(key).unwrap_or_default();
        let origin = section.origin_of(key);
        if let Some((factor, name)) = text.split_once(" of ") {
            let factor = factor_of(factor, origin)?;
            let of = Reference::parse(name.trim(), references, origin)?;
            if of == Reference::Best && metric.metric.better == Better::Neither {
                let why =
                    format!("`{}` has no best: neither more of it is better, nor less", metric.metric.name);
                return Err(Problem::new(why).at(origin).help("name one of the references"));
            }
            return Ok(Self { metric, side, limit: Limit::Share { factor, of } });
        }
        let help = "for example: \"17 Mb/s\", \"50 ms\", \"0.9 of cubic\"";
        let Constraint { limit, .. } =
            Constraint::parse(&format!("{written} {operator} {text}"), origin, flows)
                .map_err(|problem| problem.help(help))?;
        if let Some(why) = without_effect(metric.metric, side, limit) {
            return Err(Problem::new(format!("\"{text}\" decides nothing: {why}")).at(origin).help(help));
        }
        Ok(Self { metric, side, limit: Limit::Value(limit) })
    }

    /// Returns the requirement in words: `goodput of law: at least 0.9 of cubic`.
    #[must_use]
    pub fn words(&self, references: &[String]) -> String {
        let limit = match &self.limit {
            Limit::Value(value) => {
                let (factor, unit) = display_unit(*value, self.metric.metric);
                format!("{} {unit}", shortest(value * factor)).trim_end().to_owned()
            }
            Limit::Share { factor, of } => format!("{} of {}", shortest(*factor), of.words(references)),
        };
        format!("{}: {} {limit}", self.metric.words(), self.side.words())
    }
}

impl Reference {
    fn parse(name: &str, references: &[String], origin: &Origin) -> Result<Self, Problem> {
        if name == "best" {
            return Ok(Self::Best);
        }
        references.iter().position(|known| known == name).map(Self::Law).ok_or_else(|| {
            Problem::new(format!("`{name}` is no reference"))
                .at(origin)
                .help(format!("a limit is a share of best, {}", references.join(", ")))
        })
    }

    /// Returns its name.
    #[must_use]
    pub fn words(&self, references: &[String]) -> String {
        match self {
            Self::Best => "the best reference".to_owned(),
            Self::Law(index) => references[*index].clone(),
        }
    }
}

/// Returns factor and unit for the display of `value`: rates from 1 Mb/s on are in Mb/s.
pub(crate) fn display_unit(value: f64, metric: &MetricInfo) -> (f64, &'static str) {
    match metric.display_unit() {
        (factor, "kb/s") if value * factor >= 1e3 => (factor / 1e3, "Mb/s"),
        other => other,
    }
}

/// Returns the reason why a limit divides no runs from others: it lies outside of the values of the metric.
fn without_effect(metric: &MetricInfo, side: Side, limit: f64) -> Option<&'static str> {
    if metric.name.contains("correlation") {
        return None;
    }
    let most = if metric.name.starts_with("jain") { 1.0 } else { f64::INFINITY };
    match side {
        Side::AtLeast if limit <= 0.0 => Some("every run has at least that"),
        Side::AtLeast if limit > most => Some("no run has so much"),
        Side::AtMost if limit < 0.0 => Some("no run has so little"),
        Side::AtMost if limit >= most => Some("no run has more"),
        _ => None,
    }
}

fn factor_of(text: &str, origin: &Origin) -> Result<f64, Problem> {
    let factor = text.trim().parse().ok().filter(|x: &f64| x.is_finite() && *x > 0.0);
    factor.ok_or_else(|| {
        Problem::new(format!("\"{text}\" is no factor above 0"))
            .at(origin)
            .help("for example: \"0.9 of cubic\"")
    })
}

/// Formats a limit without digits that it does not have.
fn shortest(value: f64) -> String {
    let rounded = libm::round(value * 1e6) / 1e6;
    format!("{rounded}")
}
