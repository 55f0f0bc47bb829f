//! Selectors of points of a plan.

use super::keys::AGGREGATES;
use crate::comparison::Comparison;
use crate::metrics::{Better, MetricInfo};
use hopline_config::document::{Setting, Value};
use hopline_config::schema::Section;
use hopline_config::source::{Origin, Problem};
use hopline_scenario::settings;
use serde_json::Value as Json;

/// Setting that selects a variant.
const VARIANT: &str = "variant";

/// Selector of a point by its settings, or of several points of which one, or the average, is used.
#[derive(Clone, Debug)]
pub struct Selector {
    /// The settings; `variant` is the name of a variant, or a list of names.
    pub settings: Vec<Setting>,
    /// Choice among several points; `None`: there is one point, or one for each variant of a list, of which
    /// the best in the metric is used.
    pub aggregate: Option<Aggregate>,
    /// Place of the selector in its file.
    pub origin: Origin,
}

/// Choice among several points.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Aggregate {
    /// The one with the best mean of the metric.
    Best,
    /// Their average, run by run.
    Mean,
    /// The one with the least value.
    Min,
    /// The one with the middle value; of an even number the lower.
    Median,
    /// The one with the largest value.
    Max,
}

impl Aggregate {
    /// Returns the value of the key `aggregate`, if given.
    pub(super) fn of(section: &Section<'_>) -> Option<Self> {
        let all = [Self::Best, Self::Mean, Self::Min, Self::Median, Self::Max];
        let word = section.word("of_several")?;
        AGGREGATES.iter().zip(all).find(|(name, _)| **name == word).map(|(_, meant)| meant)
    }

    /// Returns the value as the key is written.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Best => "best",
            Self::Mean => "mean",
            Self::Min => "least",
            Self::Median => "middle",
            Self::Max => "most",
        }
    }
}

/// A point by variant, settings, label.
pub(crate) type Named<'a> = (Option<&'a str>, Json, &'a str);

impl Selector {
    pub(super) fn of(section: &Section<'_>, key: &str, of_several: Option<Aggregate>) -> Self {
        let settings = section.node(key).map(settings).unwrap_or_default();
        Self { settings, aggregate: of_several, origin: section.origin_of(key).clone() }
    }

    /// Checks that a best of several has a better direction, and that a list of variants has a member.
    pub(super) fn check(&self, metric: &MetricInfo) -> Result<(), Problem> {
        let wrong = |what: String, help: &str| Err(Problem::new(what).at(&self.origin).help(help));
        let variants = self.variants();
        if variants.as_ref().is_some_and(Vec::is_empty) {
            return wrong("an empty list of variants".into(), "name those of which the best is meant");
        }
        let best = match self.aggregate {
            Some(of_several) => of_several == Aggregate::Best,
            None => variants.is_some(),
        };
        if best && metric.better == Better::Neither {
            return wrong(
                format!("of `{}`, neither more nor less is better", metric.name),
                "name one variant in place of the list",
            );
        }
        Ok(())
    }

    /// Returns the numbers of the selected points, at least one, without repeats. For each variant of a list,
    /// in its order, this is the one with the settings, or all of them if there is a choice among several.
    ///
    /// # Errors
    ///
    /// If no point is selected, or several without a choice.
    pub(crate) fn find_all<'a>(
        &self,
        points: impl Iterator<Item = Named<'a>>,
    ) -> Result<Vec<usize>, Problem> {
        let points: Vec<_> = points.collect();
        let mut all = Vec::new();
        match self.variants() {
            None => all = self.find(&points, None)?,
            Some(variants) => {
                for name in &variants {
                    all.extend(self.find(&points, Some(name))?);
                }
            }
        }
        let mut seen = Vec::new();
        all.retain(|point| {
            !seen.contains(point) && {
                seen.push(*point);
                true
            }
        });
        Ok(all)
    }

    /// Returns the list of variants, if there is one.
    fn variants(&self) -> Option<Vec<String>> {
        let variant = self.settings.iter().find(|s| s.path == VARIANT)?;
        match &variant.node.value {
            Value::Array(names) => Some(names.iter().map(|name| name.value.to_string()).collect()),
            _ => None,
        }
    }

    /// Returns the numbers of the points with the settings, with `of_list` in place of a list of variants.
    fn find(&self, points: &[Named<'_>], of_list: Option<&str>) -> Result<Vec<usize>, Problem> {
        let has = |variant: Option<&str>, of: &Json, s: &Setting| match s.path.as_str() {
            VARIANT => variant == Some(of_list.unwrap_or(&s.text())),
            path => of.get(path) == Some(&s.json()),
        };
        let picked =
            |(_, (variant, of, _)): &(usize, &Named<'_>)| self.settings.iter().all(|s| has(*variant, of, s));
        let found: Vec<usize> = points.iter().enumerate().filter(picked).map(|(number, _)| number).collect();
        let labels = |which: &[usize]| which.iter().map(|&i| points[i].2).collect::<Vec<_>>().join("; ");
        match found[..] {
            [] => Err(Problem::new("no point of the plan has these settings")
                .at(&self.origin)
                .help(format!("the points are {}", labels(&(0..points.len()).collect::<Vec<_>>())))),
            [_, _, ..] if self.aggregate.is_none() => {
                Err(Problem::new("several points of the plan have these settings")
                    .at(&self.origin)
                    .help(format!("add what tells them apart, or `of_several`: {}", labels(&found))))
            }
            _ => Ok(found),
        }
    }
}

/// Returns the points of `comparison` by variant, settings and label.
pub(super) fn named_points(comparison: &Comparison) -> impl Iterator<Item = Named<'_>> {
    let points = comparison.description.points.iter();
    points.map(|p| (p.variant.as_deref(), Json::Object(p.settings.clone()), p.label.as_str()))
}
