//! Metrics of a run: one catalogue for tables, comparisons and reports.

mod catalogue;
mod definition;
mod groups;
mod neighborhood;
mod pair_correlation;
mod quantities;
mod reference;
mod steady_state;
#[cfg(test)]
mod tests;

pub use catalogue::CATALOGUE;
pub use definition::{Better, Level, MetricInfo, display_unit};
use definition::{Measure, Member};
pub use groups::{Group, of as groups_of};
pub use reference::reference;

use crate::run::Run;
use hopline_config::source::{Origin, Problem, nearest};
use hopline_sim::Spec;
use std::borrow::Cow;
use std::sync::LazyLock;

/// Subject of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scope<'a> {
    /// The run as a whole.
    Run,
    /// The flows of this kind or class.
    Group(&'a str),
    /// The flow of this name.
    Flow(&'a str),
    /// The flows of these names.
    Pair(&'a str, &'a str),
    /// The node of this name.
    Node(&'a str),
}

impl<'a> Scope<'a> {
    /// Returns the name of the group, flow or node, or of [a pair](pair_name); empty for the run.
    #[must_use]
    pub fn subject(self) -> Cow<'a, str> {
        match self {
            Self::Run => "".into(),
            Self::Group(name) | Self::Flow(name) | Self::Node(name) => name.into(),
            Self::Pair(one, other) => pair_name(one, other).into(),
        }
    }
}

/// Returns the name of a pair of flows, independent of their order.
#[must_use]
pub fn pair_name(one: &str, other: &str) -> String {
    format!("{} with {}", one.min(other), one.max(other))
}

/// One value of one run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Metric<'a> {
    /// Subject of the value.
    pub scope: Scope<'a>,
    /// Metric: name, unit and meaning.
    pub info: &'static MetricInfo,
    /// The value, finite, in the unit of the catalogue.
    pub value: f64,
}

impl Metric<'_> {
    /// Returns the name, which is unique within the level of the scope.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        self.info.name
    }
}

/// Returns the metric `name` of `level`, if there is one.
#[must_use]
pub fn find(level: Level, name: &str) -> Option<&'static MetricInfo> {
    let key = |info: &&MetricInfo| (info.level(), info.name);
    // This is called for every value of every record that is read.
    static BY_NAME: LazyLock<Vec<&MetricInfo>> = LazyLock::new(|| {
        let mut sorted: Vec<&MetricInfo> = CATALOGUE.iter().collect();
        sorted.sort_by_key(|info| (info.level(), info.name));
        sorted
    });
    BY_NAME.binary_search_by(|info| key(info).cmp(&(level, name))).ok().map(|i| BY_NAME[i])
}

/// Key of a metric's values: level, subject (empty for the run), name.
pub type Key<'a> = (Level, &'a str, &'a str);

/// Endings of names that are units.
const UNITS: [&str; 6] = ["_bps", "_pct", "_bytes", "_packets", "_j", "_s"];

/// Common names of some metrics.
const ALIASES: [(&str, &str); 11] = [
    ("goodput", "aggregate_goodput_bps"),
    ("throughput", "aggregate_goodput_bps"),
    ("throughput", "goodput_bps"),
    ("delay", "delay_mean_s"),
    ("latency", "delay_mean_s"),
    ("response", "response_p50_s"),
    ("response_time", "response_p50_s"),
    ("fairness", "jain"),
    ("loss", "packet_loss_pct"),
    ("completion", "completion_max_s"),
    ("energy", "energy_per_megabyte_j"),
];

/// Former names of metrics, each with the present one.
const FORMER: [(&str, &str); 9] = [
    ("door_ack_events_met_pct", "door_ack_events_matched_pct"),
    ("door_disablings", "door_disabled_periods"),
    ("door_told_events", "door_notified_events"),
    ("door_told_events_met_pct", "door_notified_events_matched_pct"),
    ("proxy_acks_edited", "proxy_acks_modified"),
    ("proxy_acks_made", "proxy_acks_generated"),
    ("proxy_sent_again", "proxy_retransmissions"),
    ("route_losses_told", "route_failures_notified"),
    ("route_returns_told", "route_recoveries_notified"),
];

/// Returns the present name of a metric of `level` that was called `name`.
fn renamed(level: Level, name: &str) -> Option<&'static str> {
    let (_, present) = FORMER.iter().find(|(former, _)| *former == name)?;
    find(level, present).map(|metric| metric.name)
}

/// Returns a name in words, without its unit: `response p95`.
#[must_use]
pub fn name_in_words(name: &str) -> String {
    let name = if name == "aggregate_goodput_bps" { "goodput" } else { name };
    let bare = UNITS.iter().filter(|unit| **unit != "_bytes" && **unit != "_packets");
    let bare = bare.into_iter().find_map(|unit| name.strip_suffix(unit)).unwrap_or(name);
    bare.replace('_', " ")
}

/// Returns the metric called `name`: its name with or without the unit, or a common name.
pub(crate) fn find_by_name(level: Level, name: &str) -> Option<&'static MetricInfo> {
    let name = name.trim().to_lowercase().replace([' ', '-'], "_");
    let with_unit = || UNITS.iter().find_map(|unit| find(level, &format!("{name}{unit}")));
    let alias =
        || ALIASES.iter().filter(|(alias, _)| *alias == name).find_map(|(_, known)| find(level, known));
    find(level, &name).or_else(alias).or_else(with_unit)
}

/// Returns the metric `name` of `level`, as named in a file at `origin`.
///
/// # Errors
///
/// If there is none.
pub fn find_at(level: Level, name: &str, origin: &Origin) -> Result<&'static MetricInfo, Problem> {
    find_by_name(level, name).ok_or_else(|| {
        let known = || CATALOGUE.iter().filter(|m| m.level() == level).map(|m| m.name);
        let near = renamed(level, name).or_else(|| nearest(name, known()));
        let guess = near.map(|near| format!("did you mean \"{near}\"? "));
        Problem::new(format!("no {} has a metric \"{name}\"", level.word()))
            .at(origin)
            .help(guess.unwrap_or_default() + "the metrics are " + &known().collect::<Vec<_>>().join(", "))
    })
}

/// Returns all values of `run` except those of [`pairs`]: those of the run, then by group, by flow, and by
/// node, each in the order of the catalogue. Values that do not exist are left out (a delay if nothing
/// arrived, the airtime of a node without a radio).
#[must_use]
pub fn of_run<'a>(spec: &'a Spec, run: &Run) -> Vec<Metric<'a>> {
    let outcome = &run.outcome;
    let all: Vec<Member<'_>> = spec.flows.iter().zip(&outcome.flows).collect();
    let of_run = metrics(Scope::Run, |measure| match measure {
        Measure::Run(value) => value(outcome),
        Measure::Flows(Level::Run, value) => value(&all),
        _ => None,
    });
    let groups = groups::of(spec).into_iter().flat_map(|group| {
        let members: Vec<Member<'_>> = all.iter().copied().filter(|(flow, _)| group.has(flow)).collect();
        let of_group = metrics(Scope::Group(group.name), |measure| match measure {
            Measure::Flows(Level::Group, value) => value(&members),
            _ => None,
        });
        of_group.collect::<Vec<_>>()
    });
    let flows = spec.flows.iter().zip(&outcome.flows).flat_map(|(flow, result)| {
        metrics(Scope::Flow(&flow.name), move |measure| match measure {
            Measure::Flow(value) => value(flow, result),
            _ => None,
        })
    });
    let nodes = spec.nodes.iter().zip(&outcome.nodes).flat_map(|(node, result)| {
        metrics(Scope::Node(&node.name), move |measure| match measure {
            Measure::Node(value) => value(result),
            _ => None,
        })
    });
    of_run.chain(groups).chain(flows).chain(nodes).collect()
}

/// Returns the values of all pairs of flows of `run`, in the order of the scenario. With many flows these are
/// many.
#[must_use]
pub fn pairs<'a>(spec: &'a Spec, run: &Run) -> Vec<Metric<'a>> {
    let flows: Vec<_> = spec.flows.iter().zip(&run.outcome.flows).collect();
    let pairs =
        flows.iter().enumerate().flat_map(|(i, one)| flows[i + 1..].iter().map(move |other| (one, other)));
    let values = pairs.flat_map(|((a, one), (b, other))| {
        metrics(Scope::Pair(&a.name, &b.name), move |measure| match measure {
            Measure::Pair(value) => value(one, other),
            _ => None,
        })
    });
    values.collect()
}

fn metrics<'a>(scope: Scope<'a>, value: impl Fn(Measure) -> Option<f64>) -> impl Iterator<Item = Metric<'a>> {
    CATALOGUE.iter().filter_map(move |info| value(info.measure).map(|value| Metric { scope, info, value }))
}
