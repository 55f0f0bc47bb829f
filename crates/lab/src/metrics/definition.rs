//! Definition of a metric: name, unit, level, and computation.

use hopline_sim::Outcome;
use hopline_sim::outcome::{FlowOutcome, NodeOutcome};
use hopline_sim::spec::FlowSpec;

/// A scope without its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// One value for a run.
    Run,
    /// One value for the flows of a kind or a class.
    Group,
    /// One value for a flow.
    Flow,
    /// One value for every two flows.
    Pair,
    /// One value for a node.
    Node,
}

impl Level {
    /// All levels.
    pub const ALL: [Self; 5] = [Self::Run, Self::Group, Self::Flow, Self::Pair, Self::Node];

    /// Returns the level in words.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Run => "run",
            Self::Group => "group of flows",
            Self::Flow => "flow",
            Self::Pair => "pair of flows",
            Self::Node => "node",
        }
    }
}

/// Definition of a metric.
#[derive(Clone, Copy, Debug)]
pub struct MetricInfo {
    /// Name. It ends in the unit if there is one.
    pub name: &'static str,
    /// Unit; "1" for counts and indices.
    pub unit: &'static str,
    /// Documentation, one line.
    pub doc: &'static str,
    /// Better direction.
    pub better: Better,
    pub(super) measure: Measure,
}

impl PartialEq for MetricInfo {
    /// Compares metrics by level and name.
    fn eq(&self, other: &Self) -> bool {
        (self.level(), self.name) == (other.level(), other.name)
    }
}

impl MetricInfo {
    /// Returns the factor and the unit for display.
    #[must_use]
    pub fn display_unit(&self) -> (f64, &'static str) {
        // Transfers take seconds, packets milliseconds.
        if self.name.starts_with("completion") { (1.0, "s") } else { display_unit(self.unit) }
    }

    /// Returns the level of its subjects.
    #[must_use]
    pub const fn level(&self) -> Level {
        match self.measure {
            Measure::Run(_) => Level::Run,
            Measure::Flows(level, _) => level,
            Measure::Flow(_) => Level::Flow,
            Measure::Pair(_) => Level::Pair,
            Measure::Node(_) => Level::Node,
        }
    }
}

/// Better direction of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Better {
    /// Larger values are better.
    Higher,
    /// Smaller values are better.
    Lower,
    /// Descriptive; neither direction is better.
    Neither,
}

/// A flow and its outcome.
pub(super) type Member<'a> = (&'a FlowSpec, &'a FlowOutcome);

/// Computation of a metric. `None`: it does not exist.
#[derive(Clone, Copy, Debug)]
pub(super) enum Measure {
    Run(fn(&Outcome) -> Option<f64>),
    /// Over all flows of a run, or over those of a group.
    Flows(Level, fn(&[Member<'_>]) -> Option<f64>),
    Flow(fn(&FlowSpec, &FlowOutcome) -> Option<f64>),
    Pair(fn(&FlowOutcome, &FlowOutcome) -> Option<f64>),
    Node(fn(&NodeOutcome) -> Option<f64>),
}

/// Returns the factor and the unit for display of a value of `unit`.
#[must_use]
pub fn display_unit(unit: &'static str) -> (f64, &'static str) {
    match unit {
        "bit/s" => (1e-3, "kb/s"),
        "s" => (1e3, "ms"),
        "1" => (1.0, ""),
        other => (1.0, other),
    }
}
