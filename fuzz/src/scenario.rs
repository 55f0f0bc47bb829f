//! Scenario files. Any text is parsed without a panic, errors have a position, and accepted scenarios can be simulated.

use crate::files::{check_problems, source};
use hopline_config::document::{self, Node, Setting, Value};
use hopline_config::source::Source;
use hopline_core::{Duration, Instant};
use hopline_scenario::{Scenario, keys};
use hopline_sim::{NoTrace, Spec, World};
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

/// Most nodes, and most random flows, of a scenario. More would be valid, and only cost time.
const MOST: u64 = 64;
/// Most trips of random waypoint, of all nodes together.
const MOST_TRIPS: f64 = 1e4;
/// Settings of `[sweep]` that are tried.
const MOST_SETTINGS: usize = 4;
/// Virtual time of a run, and its steps.
const LONGEST_RUN: Duration = Duration::from_millis(50);
const STEP: Duration = Duration::from_micros(100);
/// Most events of a run.
const ENOUGH_EVENTS: u64 = 3000;

/// Scenario, resolved for two runs, and with each value of its sweep.
pub fn scenario(data: &[u8]) {
    let Some(scenario) = parse(&source("scenario.toml", data)) else { return };
    for run in [1, 2] {
        check_spec(&scenario.spec(run).expect("checked when it was parsed"));
    }
    assert!(!scenario.name().is_empty() || scenario.parameters()["name"] == "");
    assert_eq!(scenario.parameters()["seed"], scenario.seed());
    match scenario.sweep() {
        Ok(axes) => axes.concat().iter().take(MOST_SETTINGS).for_each(|setting| set(&scenario, setting)),
        Err(problem) => check_problems(&problem),
    }
}

/// Scenario, run for a moment.
pub fn world(data: &[u8]) {
    let Some(scenario) = parse(&source("scenario.toml", data)) else { return };
    let spec = scenario.spec(1).expect("checked when it was parsed");
    let mut world = World::new(&spec, 1, NoTrace);
    let end = Instant::ZERO + spec.duration.min(LONGEST_RUN);
    while world.now() < end && world.events() < ENOUGH_EVENTS {
        world.run_until((world.now() + STEP).min(end));
    }
    let now = world.now();
    let (outcome, NoTrace) = world.finish();
    assert_eq!(outcome.sim_time, now.since(Instant::ZERO));
    assert_eq!((outcome.flows.len(), outcome.nodes.len()), (spec.flows.len(), spec.nodes.len()));
}

/// Returns the scenario, if it is valid and small.
fn parse(source: &Arc<Source>) -> Option<Scenario> {
    let document = match document::parse(source) {
        Ok(document) => document,
        Err(problem) => {
            check_problems(&problem.into());
            return None;
        }
    };
    if !is_small(&document) {
        return None;
    }
    // Files of a folder that does not exist are missing, whatever their names.
    let folder = PathBuf::from("/no/such/folder");
    Scenario::parse(source.clone(), folder, &[]).inspect_err(check_problems).ok()
}

/// Applies a value of the sweep to the scenario.
fn set(scenario: &Scenario, setting: &Setting) {
    let source =
        Arc::new(Source { name: scenario.source().name.clone(), text: scenario.source().text.clone() });
    let mut document = document::parse(&source).expect("parsed before");
    if document::set(&mut document, setting).is_ok() && !is_small(&document) {
        return;
    }
    match scenario.with(std::slice::from_ref(setting)) {
        Ok(changed) => check_spec(&changed.spec(1).expect("checked when it was set")),
        Err(problems) => check_problems(&problems),
    }
}

fn check_spec(spec: &Spec) {
    assert!(!spec.nodes.is_empty() && !spec.flows.is_empty() && spec.duration > Duration::ZERO);
    let names: BTreeSet<&str> = spec.nodes.iter().map(|node| node.name.as_str()).collect();
    assert_eq!(names.len(), spec.nodes.len(), "names are unique");
    for flow in &spec.flows {
        assert!(flow.src != flow.dst && flow.src.index().max(flow.dst.index()) < spec.nodes.len());
        assert!(flow.start < flow.stop);
    }
    for link in &spec.links {
        assert!(link.a != link.b && link.a.index().max(link.b.index()) < spec.nodes.len());
        assert!(link.rate_bps > 0);
    }
    for node in &spec.nodes {
        assert!(node.trajectory.corners().all(|(_, position)| position.is_finite()));
    }
}

/// Returns whether resolving it takes little time and memory, and opens no file.
fn is_small(document: &Node) -> bool {
    let number = |path: &str| number(document, path);
    let count = number("nodes.count").unwrap_or(1.0);
    let grid = number("nodes.columns").unwrap_or(1.0) * number("nodes.rows").unwrap_or(1.0);
    let nodes = count.max(grid);
    let side = |name: &str| number(&format!("mobility.{name}")).or(number(&format!("nodes.{name}")));
    let longer_m = side("width_m").unwrap_or(1.0).max(side("height_m").unwrap_or(1.0));
    let way_m = number("duration_s").unwrap_or(0.0) * number("mobility.max_speed_mps").unwrap_or(0.0);
    let is_refused = |n: f64, most: u64| n > most as f64;
    (nodes <= MOST as f64 || is_refused(count, keys::MAX_NODES) || is_refused(grid, keys::MAX_NODES))
        && number("flows.random").is_none_or(|n| n <= MOST as f64 || is_refused(n, 1_000_000))
        && nodes * way_m / longer_m <= MOST_TRIPS
        && ["nodes", "flows", "mobility"]
            .iter()
            .all(|section| !is_absolute(document, &format!("{section}.file")))
}

fn number(document: &Node, path: &str) -> Option<f64> {
    match *find(document, path)? {
        Value::Integer(i) => Some(i as f64),
        Value::Float(x) => Some(x),
        _ => None,
    }
}

fn is_absolute(document: &Node, path: &str) -> bool {
    matches!(find(document, path), Some(Value::Text(name)) if name.starts_with('/'))
}

fn find<'a>(document: &'a Node, path: &str) -> Option<&'a Value> {
    path.split('.').try_fold(&document.value, |value, part| match value {
        Value::Table(table) => table.get(part).map(|entry| &entry.node.value),
        _ => None,
    })
}
