//! Question of an experiment: objective and constraint, that is, the metric by which variants are compared,
//! and a bound that they must keep.

mod parse;
#[cfg(test)]
mod tests;

use crate::flow_ends::{FlowEnds, PROGRAM_KIND};
use crate::metrics::{self, Key, Level, MetricInfo};
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::collections::BTreeSet;

/// Key of the goodput of all flows together.
pub const GOODPUT: Key<'_> = (Level::Run, "", "aggregate_goodput_bps");

/// A metric of the run, or of some of its flows.
#[derive(Clone, Debug, PartialEq)]
pub struct MetricSelection {
    /// The metric, of the level of its subject.
    pub metric: &'static MetricInfo,
    /// Name of the flow, kind or class; empty: all flows.
    pub subject: String,
}

/// Values allowed by a bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Side {
    /// Values below the limit.
    Below,
    /// The limit, and values below it.
    AtMost,
    /// Values above the limit.
    Above,
    /// The limit, and values above it.
    AtLeast,
}

impl Side {
    /// Returns whether `value` lies on this side of `limit`.
    #[must_use]
    pub fn allows(self, value: f64, limit: f64) -> bool {
        match self {
            Self::Below => value < limit,
            Self::AtMost => value <= limit,
            Self::Above => value > limit,
            Self::AtLeast => value >= limit,
        }
    }

    /// Returns whether a mean keeps the limit: all of its interval is on this side. `None` if the interval
    /// contains the limit, or there is none.
    #[must_use]
    pub fn keeps(self, interval: Option<[f64; 2]>, limit: f64) -> Option<bool> {
        let [low, high] = interval?;
        let (low, high) = (self.allows(low, limit), self.allows(high, limit));
        (low == high).then_some(low)
    }

    /// Returns it in words, before a limit.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::Below => "below",
            Self::AtMost => "at most",
            Self::Above => "above",
            Self::AtLeast => "at least",
        }
    }
}

/// Constraint on variants.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Constraint {
    /// The metric.
    #[serde(flatten)]
    pub asked: MetricSelection,
    /// Allowed values.
    pub side: Side,
    /// Limit, in the unit of the catalogue.
    pub limit: f64,
}

/// Question of an experiment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Objective {
    /// Objective by which variants are compared.
    #[serde(flatten)]
    pub asked: MetricSelection,
    /// Constraint that they must keep.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bound: Option<Constraint>,
}

impl MetricSelection {
    /// Returns the goodput of all flows together.
    ///
    /// # Panics
    /// Never: the catalogue has it.
    #[must_use]
    pub fn goodput() -> Self {
        let metric = metrics::find(GOODPUT.0, GOODPUT.2).expect("the catalogue has goodput");
        Self { metric, subject: String::new() }
    }

    /// Returns its key in results.
    #[must_use]
    pub fn key(&self) -> Key<'_> {
        (self.metric.level(), &self.subject, self.metric.name)
    }

    /// Returns its name in words: `response p95 of http`.
    #[must_use]
    pub fn words(&self) -> String {
        let name = metrics::name_in_words(self.metric.name);
        if self.subject.is_empty() { name } else { format!("{name} of {}", self.subject) }
    }
}

/// File format of a metric with its subject: level, subject and name.
#[derive(Serialize, Deserialize)]
struct MetricFormat {
    level: String,
    of: String,
    metric: String,
}

impl Serialize for MetricSelection {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let (level, of, metric) = self.key();
        MetricFormat { level: level.word().into(), of: of.into(), metric: metric.into() }.serialize(to)
    }
}

impl<'de> Deserialize<'de> for MetricSelection {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let MetricFormat { level, of, metric } = MetricFormat::deserialize(from)?;
        let known = Level::ALL.into_iter().find(|l| l.word() == level);
        let found = known.and_then(|level| metrics::find(level, &metric));
        let unknown = || D::Error::custom(format!("there is no metric \"{metric}\" of a {level}"));
        Ok(Self { metric: found.ok_or_else(unknown)?, subject: of })
    }
}

impl Objective {
    /// Returns the default objective: that of programs, then of transfers; without transfers the response time, and
    /// otherwise what arrives. Flows of different kinds are not added up.
    #[must_use]
    pub fn default_for(flows: &[FlowEnds]) -> Self {
        let kinds: BTreeSet<&str> = flows.iter().map(|flow| flow.kind.as_str()).collect();
        let decisive =
            [PROGRAM_KIND, "bulk", "http", "request-response"].into_iter().find(|kind| kinds.contains(kind));
        let kind = decisive.or_else(|| kinds.first().copied()).unwrap_or_default();
        let name = if EXCHANGES.contains(&kind) { "response_p95" } else { "goodput" };
        let (level, of) = if kinds.len() > 1 { (Level::Group, kind) } else { (Level::Run, "") };
        let metric = metrics::find_by_name(level, name);
        let asked = metric.map_or_else(MetricSelection::goodput, |metric| MetricSelection {
            metric,
            subject: of.to_owned(),
        });
        Self { asked, bound: None }
    }
}

/// Kinds of flows with requests and responses.
pub(crate) const EXCHANGES: [&str; 2] = ["request-response", "http"];
