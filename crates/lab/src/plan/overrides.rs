//! Checks of overrides: settings that the user, or a reading of a paper, applies to all points of a plan.
//!
//! A *reading* is one interpretation of a paper; the claims file of the paper lists its settings. Two kinds of overrides
//! would not have the expected effect:
//!
//! 1. A variant or an axis sets the same key. These take precedence, so the override has no effect there.
//! 2. The key is in a table that only some variants have, such as `[neighborhood_red]`. The override would add the table to
//!    the other variants, among them baselines, and so switch the mechanism on there.
//!
//! Both are rejected if they come from the user. An override of kind 2 by a reading applies only to the variants that have
//! the table.

use super::Difference;
use hopline_config::document::{Node, Setting, Table, Value};
use hopline_config::source::{Problem, Problems};
use hopline_scenario::{Axis, Scenario};

/// Overrides: settings that apply at every point.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Overrides<'a> {
    /// Settings of a reading. They take precedence over `[set]` of the plan. A setting in a table that switches a mechanism on
    /// applies only to the variants that have the table.
    pub(crate) reading: &'a [Setting],
    /// Settings of the user. They take precedence over all other settings that apply at every point.
    pub(crate) user: &'a [Setting],
}

/// Part of a plan, axis or reading with settings that take precedence over those of the user.
pub(crate) struct KeySetter {
    /// Name in messages: `the variant "NRED"`.
    pub(crate) name: String,
    /// Its settings.
    pub(crate) settings: Vec<Setting>,
}

/// Rejects settings of keys that one of `setters` sets too.
///
/// # Errors
/// The first such key, with the setter, its place in the file, and a remedy.
pub(crate) fn reject_overridden(over: &[Setting], setters: &[KeySetter], help: &str) -> Result<(), Problem> {
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

/// Rejects options that set a key which the `axes` of `--vary` or `[sweep]` vary.
///
/// # Errors
/// The first such key, as in [`Plan::load`](super::Plan::load) for keys that variants set.
pub fn reject_varied(over: &[Setting], axes: &[Axis]) -> Result<(), Problem> {
    for axis in axes {
        let is_option = axis.iter().any(|setting| setting.key.source.name.starts_with("--"));
        let (name, help) = match is_option {
            true => ("`--vary`", "give one of the two"),
            false => {
                ("`[sweep]` of the scenario", "leave it out, or vary keys with --vary in place of [sweep]")
            }
        };
        reject_overridden(over, &[KeySetter { name: name.to_owned(), settings: axis.clone() }], help)?;
    }
    Ok(())
}

/// Rejects settings in a table that switches a mechanism on. Such a table is missing in `base`, only some of `points` set it,
/// and even an empty table changes the simulation.
///
/// # Errors
/// The first such key, with the variant that sets the table, and a remedy. Also the errors of `base`.
pub(super) fn reject_switches(
    over: &[Setting],
    points: &[Difference],
    base: impl FnOnce() -> Result<Scenario, Problems>,
) -> Result<(), Problems> {
    let Some(switch) = switches(over, points, base)?.into_iter().next() else { return Ok(()) };
    let name = switch.with.variant.as_deref().unwrap_or_default();
    let other = switch.without.variant.as_deref().unwrap_or_default();
    let (path, table) = (&switch.setting.path, switch.table);
    Err(Problem::new(format!(
        "`{path}` cannot be set at every point: the variant \"{name}\" has `{table}`, and \"{other}\" would get it, too"
    ))
    .at(&switch.setting.key)
    .help(ADVICE_IN_PLAN)
    .into())
}

/// Moves settings of a reading that would switch a mechanism on into those of `points` that have the mechanism. The points'
/// own settings take precedence. Returns the other settings of the reading, which apply at every point.
///
/// # Errors
/// The errors of `base`.
pub(super) fn put_into_variants(
    reading: &[Setting],
    points: &mut [Difference],
    base: impl FnOnce() -> Result<Scenario, Problems>,
) -> Result<Vec<Setting>, Problems> {
    let switches = switches(reading, points, base)?;
    let partly: Vec<(Setting, String)> =
        switches.into_iter().map(|switch| (switch.setting.clone(), switch.table.to_owned())).collect();
    for point in points.iter_mut() {
        let here = partly.iter().filter(|(_, table)| sets(point, table)).map(|(setting, _)| setting.clone());
        point.named = here.chain(point.named.iter().cloned()).collect();
    }
    let is_partial = |setting: &&Setting| partly.iter().any(|(other, _)| other.path == setting.path);
    Ok(reading.iter().filter(|setting| !is_partial(setting)).cloned().collect())
}

/// A setting in a table that switches a mechanism on.
struct SwitchedTable<'a> {
    setting: &'a Setting,
    table: &'a str,
    /// A point that sets the table.
    with: &'a Difference,
    /// A point that does not.
    without: &'a Difference,
}

/// Returns the settings of `over` in tables that switch a mechanism on (see [`reject_switches`]).
fn switches<'a>(
    over: &'a [Setting],
    points: &'a [Difference],
    base: impl FnOnce() -> Result<Scenario, Problems>,
) -> Result<Vec<SwitchedTable<'a>>, Problems> {
    let partly = over.iter().flat_map(|setting| tables(&setting.path).map(move |table| (setting, table)));
    let partly = partly.filter_map(|(setting, table)| Some((setting, table, partly_set(points, table)?)));
    let mut partly = partly.peekable();
    if partly.peek().is_none() {
        return Ok(Vec::new());
    }
    let base = base()?;
    let written = base.as_written();
    let found = partly.filter_map(|(setting, table, (with, without))| {
        let has_it = written.pointer(&format!("/{}", table.replace('.', "/"))).is_some();
        (!has_it && is_switch(&base, without, setting, table)).then_some(SwitchedTable {
            setting,
            table,
            with,
            without,
        })
    });
    Ok(found.collect())
}

/// Help of the error about an override of a key that a plan sets.
pub(super) const ADVICE_IN_PLAN: &str =
    "leave it out, or set it in the variants of the plan; of a paper, in a copy that --papers names";

/// Returns the paths of the tables that contain a path, the outermost first.
fn tables(path: &str) -> impl Iterator<Item = &str> {
    path.match_indices('.').map(|(end, _)| &path[..end])
}

/// Returns a point that sets a key in `table`, and a point that does not. `None` if one of the two does not exist.
fn partly_set<'a>(points: &'a [Difference], table: &str) -> Option<(&'a Difference, &'a Difference)> {
    Some((points.iter().find(|point| sets(point, table))?, points.iter().find(|point| !sets(point, table))?))
}

/// Returns whether a point sets `table` or a key in it.
fn sets(point: &Difference, table: &str) -> bool {
    point.named.iter().chain(&point.varied).any(|setting| within(&setting.path, table))
}

/// Returns whether an empty `table` changes the simulation of `point`, or is invalid there.
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

/// Returns whether settings of two paths affect the same value. A key of a flow takes precedence over the same key of the top
/// level, so these two overlap.
fn overlap(a: &str, b: &str) -> bool {
    let same = |a: &str, b: &str| within(a, b) || within(b, a);
    match (top_level_key(a), top_level_key(b)) {
        (Some(of_flow), None) => same(a, b) || same(of_flow, b),
        (None, Some(of_flow)) => same(a, b) || same(a, of_flow),
        _ => same(a, b),
    }
}

/// Returns the path at the top level that a key of a flow corresponds to: `transport` for `flow.0.transport`. `None` for other
/// paths.
fn top_level_key(path: &str) -> Option<&str> {
    path.strip_prefix("flow.").and_then(|rest| rest.split_once('.')).map(|(_number, key)| key)
}

/// Returns whether `path` is `table`, or a key in it.
fn within(path: &str, table: &str) -> bool {
    path.strip_prefix(table).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}
