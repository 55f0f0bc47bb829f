//! Checks of settings over a plan that would not have the expected effect.
//!
//! Variants and axes set their keys after the settings that hold at every point. A setting over the plan of a
//! key that one of them sets has no effect there. A setting in a table that only some variants have, such as
//! `[neighborhood_red]`, adds the table to all other variants, and thus switches its mechanism on in their
//! baselines. Both are refused.

use super::Difference;
use hopline_config::document::{Node, Setting, Table, Value};
use hopline_config::source::{Problem, Problems};
use hopline_scenario::{Axis, Scenario};

/// Settings that hold at every point.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Over<'a> {
    /// Settings of a register's reading, put over the plan first.
    pub(crate) reading: &'a [Setting],
    /// Settings of the user, put over everything else that holds at every point.
    pub(crate) user: &'a [Setting],
}

impl Over<'_> {
    /// All settings, in the order in which they are put over the plan.
    pub(super) fn all(&self) -> Vec<Setting> {
        [self.reading, self.user].concat()
    }
}

/// Part of a plan, axis or reading that sets keys after the user's.
pub(crate) struct Setter {
    /// Name in messages: `the variant "NRED"`.
    pub(crate) name: String,
    /// Its settings.
    pub(crate) settings: Vec<Setting>,
}

/// Refuses settings of keys that one of `setters` sets as well.
///
/// # Errors
/// The first such key, with the setter, its place, and a remedy.
pub(crate) fn refuse_overridden(over: &[Setting], setters: &[Setter], help: &str) -> Result<(), Problem> {
    for setting in over {
        let found = setters.iter().find_map(|setter| {
            let same = |other: &&Setting| overlap(&setting.path, &other.path);
            Some((setter, setter.settings.iter().find(same)?))
        });
        if let Some((setter, other)) = found {
            return Err(Problem::new(format!(
                "`{}` cannot be set at every point: {} sets `{}` ({})",
                setting.path, setter.name, other.path, other.key
            ))
            .at(&setting.key)
            .help(help));
        }
    }
    Ok(())
}

/// Refuses options that set a key which `axes` of `--vary` or `[sweep]` vary.
///
/// # Errors
/// As [`Plan::load`](super::Plan::load) refuses keys that variants set.
pub fn refuse_varied(over: &[Setting], axes: &[Axis]) -> Result<(), Problem> {
    for axis in axes {
        let is_option = axis.iter().any(|setting| setting.key.source.name.starts_with("--"));
        let (name, help) = match is_option {
            true => ("`--vary`", "give one of the two"),
            false => {
                ("`[sweep]` of the scenario", "leave it out, or vary keys with --vary in place of [sweep]")
            }
        };
        refuse_overridden(over, &[Setter { name: name.to_owned(), settings: axis.clone() }], help)?;
    }
    Ok(())
}

/// Refuses settings in a table that `base` does not have and only some of `points` set, if the table alone
/// changes the simulation.
///
/// # Errors
/// The first such key, with the variant that sets the table, and a remedy. Also if the base cannot be
/// resolved.
pub(super) fn refuse_switches(
    over: &[Setting],
    points: &[Difference],
    base: impl FnOnce() -> Result<Scenario, Problems>,
) -> Result<(), Problems> {
    let partly = over.iter().flat_map(|setting| tables(&setting.path).map(move |table| (setting, table)));
    let partly = partly.filter_map(|(setting, table)| Some((setting, table, partly_set(points, table)?)));
    let mut partly = partly.peekable();
    if partly.peek().is_none() {
        return Ok(());
    }
    let base = base()?;
    let written = base.written();
    for (setting, table, (with, without)) in partly {
        let has_it = written.pointer(&format!("/{}", table.replace('.', "/"))).is_some();
        if has_it || !is_switch(&base, without, setting, table) {
            continue;
        }
        let name = with.variant.as_deref().unwrap_or_default();
        let other = without.variant.as_deref().unwrap_or_default();
        return Err(Problem::new(format!(
            "`{}` cannot be set at every point: the variant \"{name}\" has `{table}`, and \"{other}\" would get it, too",
            setting.path
        ))
        .at(&setting.key)
        .help(IN_A_PLAN)
        .into());
    }
    Ok(())
}

/// Advice about a key that a plan sets.
pub(super) const IN_A_PLAN: &str =
    "leave it out, or set it in the variants of the plan; of a paper, in a copy that --papers names";

/// Returns the tables that contain a path, the outermost first.
fn tables(path: &str) -> impl Iterator<Item = &str> {
    path.match_indices('.').map(|(end, _)| &path[..end])
}

/// Returns a point that sets a key in `table`, and one that does not; `None` unless there are both.
fn partly_set<'a>(points: &'a [Difference], table: &str) -> Option<(&'a Difference, &'a Difference)> {
    let sets = |point: &&Difference| point.named.iter().chain(&point.varied).any(|s| within(&s.path, table));
    Some((points.iter().find(sets)?, points.iter().find(|point| !sets(point))?))
}

/// Returns whether an empty `table` changes the simulation of a point, or is invalid there.
fn is_switch(base: &Scenario, point: &Difference, setting: &Setting, table: &str) -> bool {
    let node = Node { origin: setting.key.clone(), value: Value::Table(Table::new()) };
    let empty = Setting { path: table.to_owned(), key: setting.key.clone(), node };
    let spec = |more: &[Setting]| {
        let settings = [point.settings().as_slice(), more].concat();
        let scenario = base.with(&settings).ok()?;
        scenario.spec(1).ok().map(|spec| format!("{spec:?}"))
    };
    match spec(&[]) {
        Some(without) => spec(&[empty]).is_none_or(|with| with != without),
        None => true,
    }
}

/// Returns whether one of two paths has an effect on what the other one sets. A key of a flow goes before the same key of the top level.
fn overlap(a: &str, b: &str) -> bool {
    let same = |a: &str, b: &str| within(a, b) || within(b, a);
    match (of_flow(a), of_flow(b)) {
        (Some(of_flow), None) => same(a, b) || same(of_flow, b),
        (None, Some(of_flow)) => same(a, b) || same(a, of_flow),
        _ => same(a, b),
    }
}

/// Returns the key of a flow as it is called at the top level: `transport` for `flow.0.transport`. `None` of other paths.
fn of_flow(path: &str) -> Option<&str> {
    path.strip_prefix("flow.").and_then(|rest| rest.split_once('.')).map(|(_number, key)| key)
}

/// Returns whether `path` is `table` or lies in it.
fn within(path: &str, table: &str) -> bool {
    path.strip_prefix(table).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}
