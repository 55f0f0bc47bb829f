//! What is asked of an experiment: the metric by which variants are compared, and what they must keep besides.

mod parse;
#[cfg(test)]
mod tests;

use crate::metrics::{self, Key, Level, MetricInfo};
use crate::record::FlowEnds;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::collections::BTreeSet;

/// The goodput of all flows together.
pub const GOODPUT: Key<'_> = (Level::Run, "", "aggregate_goodput_bps");

/// A metric of the run, or of some of its flows.
#[derive(Clone, Debug, PartialEq)]
pub struct Asked {
    /// The metric, of the level of what it is asked of.
    pub metric: &'static MetricInfo,
    /// Name of the flow, of the kind or of the class that it is asked of; empty: of all flows.
    pub of: String,
}

/// Which values a bound allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Side {
    /// Those below the limit.
    Below,
    /// The limit, and those below it.
    AtMost,
    /// Those above it.
    Above,
    /// The limit, and those above it.
    AtLeast,
}

impl Side {
    /// Whether `value` lies on this side of `limit`.
    #[must_use]
    pub fn allows(self, value: f64, limit: f64) -> bool {
        match self {
            Self::Below => value < limit,
            Self::AtMost => value <= limit,
            Self::Above => value > limit,
            Self::AtLeast => value >= limit,
        }
    }

    /// Whether a mean keeps the limit: all of its interval is on this side. `None`: it reaches to both sides, or there is none.
    #[must_use]
    pub fn keeps(self, interval: Option<[f64; 2]>, limit: f64) -> Option<bool> {
        let [low, high] = interval?;
        let (low, high) = (self.allows(low, limit), self.allows(high, limit));
        (low == high).then_some(low)
    }

    /// In words, before a limit.
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

/// What a variant must keep.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Bound {
    /// The metric.
    #[serde(flatten)]
    pub asked: Asked,
    /// Which values are allowed.
    pub side: Side,
    /// Up to where, in the unit of the catalogue.
    pub limit: f64,
}

/// What is asked of an experiment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Question {
    /// What variants are compared by.
    #[serde(flatten)]
    pub asked: Asked,
    /// What they must keep besides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bound: Option<Bound>,
}

impl Asked {
    /// The goodput of all flows together.
    ///
    /// # Panics
    /// Never: the catalogue has it.
    #[must_use]
    pub fn goodput() -> Self {
        let metric = metrics::find(GOODPUT.0, GOODPUT.2).expect("the catalogue has goodput");
        Self { metric, of: String::new() }
    }

    /// Where results have it.
    #[must_use]
    pub fn key(&self) -> Key<'_> {
        (self.metric.level(), &self.of, self.metric.name)
    }

    /// What it is called: `response p95 of http`.
    #[must_use]
    pub fn words(&self) -> String {
        let name = metrics::words(self.metric.name);
        if self.of.is_empty() { name } else { format!("{name} of {}", self.of) }
    }
}

/// An asked metric as it is written: level, subject and name.
#[derive(Serialize, Deserialize)]
struct Written {
    level: String,
    of: String,
    metric: String,
}

impl Serialize for Asked {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let (level, of, metric) = self.key();
        Written { level: level.word().into(), of: of.into(), metric: metric.into() }.serialize(to)
    }
}

impl<'de> Deserialize<'de> for Asked {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let Written { level, of, metric } = Written::deserialize(from)?;
        let known = Level::ALL.into_iter().find(|l| l.word() == level);
        let found = known.and_then(|level| metrics::find(level, &metric));
        let unknown = || D::Error::custom(format!("there is no metric \"{metric}\" of a {level}"));
        Ok(Self { metric: found.ok_or_else(unknown)?, of })
    }
}

impl Question {
    /// What is asked where nobody says: how fast transfers are; where there are none how soon responses come, and otherwise what
    /// arrives. Flows of different kinds are not added up.
    #[must_use]
    pub fn usual(flows: &[FlowEnds]) -> Self {
        let kinds: BTreeSet<&str> = flows.iter().map(|flow| flow.kind.as_str()).collect();
        let decisive = ["bulk", "http", "request-response"].into_iter().find(|kind| kinds.contains(kind));
        let kind = decisive.or_else(|| kinds.first().copied()).unwrap_or_default();
        let name = if EXCHANGES.contains(&kind) { "response_p95" } else { "goodput" };
        let (level, of) = if kinds.len() > 1 { (Level::Group, kind) } else { (Level::Run, "") };
        let metric = metrics::called(level, name);
        let asked = metric.map_or_else(Asked::goodput, |metric| Asked { metric, of: of.to_owned() });
        Self { asked, bound: None }
    }
}

/// Kinds of flows that ask and wait for answers.
pub(crate) const EXCHANGES: [&str; 2] = ["request-response", "http"];
