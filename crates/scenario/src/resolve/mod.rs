//! From a checked document to a [`Spec`].

mod cells;
mod door;
mod draw;
mod ends;
mod feedback;
mod floods;
mod flows;
mod jitter;
mod links;
mod mobility;
pub(crate) mod neighborhood;
mod nodes;
mod obstacles;
mod outages;
mod pacing;
mod proxies;
mod queue;
mod radio;
mod routing;
mod tcp;
mod tpa;
mod transport;
mod ways;
mod wide;

use super::csv;
use super::degrees::{HELP, MESSAGE, look_like_degrees};
use super::document::Node;
use super::field::{Field, Word};
use super::folder::Folder;
use super::keys::{self, FlowKind};
use super::own::Whole;
use super::owned::{Owned, refuse_foreign};
use super::recorded::Recording;
use super::schema::Section;
use super::source::{LARGEST_TEXT, Origin, Problem, Problems, Source};
use hopline_core::{Duration, Instant, NodeId};
use hopline_sim::spec::Spec;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The files that a scenario names, read once.
#[derive(Clone, Debug, Default)]
pub(super) struct Files {
    /// Entries of `nodes.file`.
    nodes: Vec<Node>,
    /// Entries of `flows.file`.
    flows: Vec<Node>,
    /// `flow.file` of recorded flows, by name.
    recorded: BTreeMap<String, Recording>,
    /// The texts of all of them.
    pub(super) sources: Vec<Arc<Source>>,
    /// `mobility.file`, and what it says.
    movements: Option<Arc<mobility::MovementFile>>,
}

impl Files {
    /// Reads them. A movement file that `before` has is not read again: it may be large, and variants meet the same.
    pub(super) fn load(scenario: Section<'_>, folder: &Folder, before: &Self) -> Result<Self, Problems> {
        let mut files = Self::default();
        let mut sources = Vec::new();
        files.movements = mobility::load(scenario.section("mobility"), folder, before.movements.as_ref())?;
        sources.extend(files.movements.iter().map(|file| file.source.clone()));
        let mut read = |section: Section<'_>| -> Result<Option<Arc<Source>>, Problem> {
            let Some(path) = named_file(section, folder) else { return Ok(None) };
            let source = folder.read(&path, LARGEST_TEXT).map_err(|p| of_named_file(p, section, &path))?;
            sources.push(source.clone());
            Ok(Some(source))
        };
        if let Some(source) = read(scenario.section("nodes"))? {
            files.nodes = csv::entries(&source, keys::NODE, "node")?;
            check_places(&files.nodes)?;
        }
        if let Some(source) = read(scenario.section("flows"))? {
            files.flows = csv::entries(&source, keys::FLOW, "flow")?;
        }
        files.recorded = recorded(scenario, &files.flows, folder, before)?;
        sources.extend(files.recorded.values().map(|recording| recording.source.clone()));
        files.sources = sources;
        Ok(files)
    }
}

/// Refuses places of a file that are longitudes and latitudes.
fn check_places(nodes: &[Node]) -> Result<(), Problem> {
    let sections = || nodes.iter().map(|node| Section::new(node, keys::NODE));
    let [x, y] = [keys::node::X_M, keys::node::Y_M];
    let places = sections().map(|node| (node.get(x), node.get(y)));
    match sections().next() {
        Some(first) if look_like_degrees(places) => {
            Err(Problem::new(MESSAGE).at(first.origin_of(x.key.name)).help(HELP))
        }
        _ => Ok(()),
    }
}

/// Returns the recordings that flows name, each file once.
fn recorded(
    scenario: Section<'_>,
    from_file: &[Node],
    folder: &Folder,
    before: &Files,
) -> Result<BTreeMap<String, Recording>, Problem> {
    let mut all = BTreeMap::new();
    let from_file = from_file.iter().map(|node| Section::new(node, keys::FLOW));
    for section in scenario.sections("flow").into_iter().chain(from_file) {
        let (FlowKind::Recorded, Some(name)) = (section.get(keys::flow::KIND), section.word("file")) else {
            continue;
        };
        if all.contains_key(name) {
            continue;
        }
        let recording = match before.recorded.get(name) {
            Some(known) => known.clone(),
            None => {
                let path = folder.join(name);
                let source = folder.read(&path, LARGEST_TEXT);
                Recording::parse(source.map_err(|p| of_named_file(p, section, &path))?)?
            }
        };
        all.insert(name.to_owned(), recording);
    }
    Ok(all)
}

/// Returns the path of the file that `section` names, if it does.
fn named_file(section: Section<'_>, folder: &Folder) -> Option<PathBuf> {
    section.word("file").map(|name| folder.join(name))
}

/// Returns a problem with that file as a whole, at the place that names it.
fn of_named_file(problem: Problem, section: Section<'_>, path: &Path) -> Problem {
    let problem = problem.at(section.origin_of("file"));
    if path.exists() {
        return problem;
    }
    problem.help("file names are relative to the folder of the scenario")
}

/// Node numbers by name.
type Names = BTreeMap<String, NodeId>;

/// Returns the specification of run `run`.
pub(super) fn spec(whole: Whole<'_>, files: &Files, run: u64) -> Result<Spec, Problem> {
    let Whole { scenario, machines } = whole;
    let seed = scenario.get(keys::scenario::SEED);
    let nodes::Resolved { mut nodes, names, gateways } = nodes::resolve(scenario, files, seed, run)?;
    let mut radio = radio::resolve(whole, &nodes, &names)?;
    neighborhood::resolve(scenario, &mut radio, &nodes, &names, (seed, run))?;
    let links = links::resolve(whole, &names)?;
    ways::resolve(scenario, &mut nodes, &gateways, &links, &names)?;
    let outages = outages::resolve(scenario, &nodes, &links, &names)?;
    let notice_floods = floods::resolve(scenario, &nodes, &names)?;
    let proxies = proxies::resolve(whole, &nodes, &names)?;
    let radio_bps = radio.as_ref().map(|radio| radio.mac.data_rate.bps());
    let pairs = proxies::pairs(scenario, &nodes, (&links, radio_bps), &names)?;
    let network = ends::Network { names: &names, nodes: &nodes };
    let mut flows = flows::resolve(whole, files, network, seed, run)?;
    proxies::tell(&proxies, &nodes, &mut flows);
    if radio.is_none() && links.is_empty() && nodes.len() > 1 {
        return Err(Problem::new("neither [radio] nor [[link]]: no node can reach another")
            .at(scenario.origin_of("node"))
            .help(
                "add [radio] with preset = \"ns2-wavelan\" for a wireless network, [[link]] for a wired one",
            ));
    }
    check_animation(scenario.section("animation"), scenario.get(keys::scenario::DURATION_S))?;
    let of_routing = scenario.section("routing");
    let routing = routing::resolve(of_routing, &nodes, radio.as_ref())?;
    Ok(Spec {
        duration: seconds_of(&scenario, keys::scenario::DURATION_S),
        warmup: warmup(scenario)?,
        seed,
        cells: cells::resolve(scenario, &nodes, &routing, &names)?,
        routing,
        failure_notification: routing::failure_notification(of_routing),
        nodes,
        radio,
        links,
        outages,
        notice_floods,
        proxies,
        pairs,
        taps: Default::default(),
        series: Default::default(),
        machines: machines.clone(),
        extra_header_bytes: of_routing.get(keys::of_routing::EXTRA_HEADER_BYTES) as u32,
        flows,
    })
}

fn warmup(scenario: Section<'_>) -> Result<Duration, Problem> {
    let [warmup_s, duration_s] = ["warmup_s", "duration_s"].map(|key| scenario.number(key).unwrap_or(0.0));
    if warmup_s < duration_s {
        return Ok(Duration::from_secs_f64(warmup_s));
    }
    Err(Problem::new(format!("`warmup_s` = {warmup_s} leaves nothing that counts"))
        .at(scenario.origin_of("warmup_s"))
        .help(format!("it must be below duration_s = {duration_s}")))
}

/// Checks that an animation begins within the run, and before it ends.
fn check_animation(animation: Section<'_>, duration_s: f64) -> Result<(), Problem> {
    let from_s = animation.get(keys::animation::FROM_S);
    let at_fault = |message: String, key| Problem::new(message).at(animation.origin_of(key));
    match animation.number("to_s") {
        _ if animation.is_given() && from_s >= duration_s => {
            Err(at_fault(format!("`animation.from_s` = {from_s} is not within the run"), "from_s")
                .help(format!("it must be below duration_s = {duration_s}")))
        }
        Some(to_s) if to_s <= from_s => {
            Err(at_fault(format!("`animation.to_s` = {to_s} leaves nothing to play"), "to_s")
                .help(format!("it must be above animation.from_s = {from_s}")))
        }
        _ => Ok(()),
    }
}

/// Returns the node that `section.key` names.
fn node_named(section: &Section<'_>, key: Field<Word>, names: &Names) -> Result<NodeId, Problem> {
    let name = section.get(key);
    names.get(name).copied().ok_or_else(|| unknown_node(name, section.origin_of(key.key.name), names))
}

fn unknown_node(name: &str, origin: &Origin, names: &Names) -> Problem {
    let near = super::source::nearest(name, names.keys().map(String::as_str));
    let guess = near.map(|near| format!("did you mean `{near}`? "));
    Problem::new(format!("there is no node `{name}`"))
        .at(origin)
        .help(guess.unwrap_or_default() + &some_names(names))
}

fn some_names(names: &Names) -> String {
    const SHOWN: usize = 8;
    let mut by_number: Vec<_> = names.iter().map(|(name, id)| (*id, name.as_str())).collect();
    by_number.sort_unstable();
    let mut shown: Vec<&str> = by_number.iter().take(SHOWN).map(|(_, name)| *name).collect();
    if by_number.len() > SHOWN {
        shown.push("…");
    }
    format!("the nodes are {}", shown.join(", "))
}

fn seconds_of(section: &Section<'_>, key: Field<f64>) -> Duration {
    Duration::from_secs_f64(section.get(key))
}

fn instant_of(section: &Section<'_>, key: Field<f64>) -> Instant {
    Instant::ZERO + seconds_of(section, key)
}

fn seconds(section: &Section<'_>, key: &str) -> Option<Duration> {
    section.number(key).map(Duration::from_secs_f64)
}

fn instant(section: &Section<'_>, key: &str) -> Option<Instant> {
    seconds(section, key).map(|d| Instant::ZERO + d)
}
