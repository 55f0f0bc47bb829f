//! Files that a scenario names.

use super::movement_file::{self, MovementFile};
use super::named_file::{at_named_file, named_file};
use crate::csv;
use crate::degrees::{HELP, MESSAGE, look_like_degrees};
use crate::document::Node;
use crate::folder::Folder;
use crate::keys::{self, FlowKind};
use crate::rate_trace::TraceFile;
use crate::recorded::Recording;
use crate::schema::Section;
use hopline_config::source::{MAX_TEXT, Problem, Problems, Source};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The files that a scenario names, read once.
#[derive(Clone, Debug, Default)]
pub(crate) struct Files {
    /// Entries of `nodes.file`.
    pub(super) nodes: Vec<Node>,
    /// Entries of `flows.file`.
    pub(super) flows: Vec<Node>,
    /// `flow.file` of recorded flows, by name.
    pub(super) recorded: BTreeMap<String, Recording>,
    /// `link.rate_trace.file`, by name.
    pub(super) rate_traces: BTreeMap<String, TraceFile>,
    /// The texts of all of them.
    pub(crate) sources: Vec<Arc<Source>>,
    /// `mobility.file`, and what it says.
    pub(super) movements: Option<Arc<MovementFile>>,
}

impl Files {
    /// Reads them. A movement file that `before` has is not read again: it may be large, and variants meet the same.
    pub(crate) fn load(scenario: Section<'_>, folder: &Folder, before: &Self) -> Result<Self, Problems> {
        let mut files = Self::default();
        let mut sources = Vec::new();
        files.movements =
            movement_file::load(scenario.section("mobility"), folder, before.movements.as_ref())?;
        sources.extend(files.movements.iter().map(|file| file.source.clone()));
        let mut read = |section: Section<'_>| -> Result<Option<Arc<Source>>, Problem> {
            let Some(path) = named_file(section, folder) else { return Ok(None) };
            let source = folder.read(&path, MAX_TEXT).map_err(|p| at_named_file(p, section, &path))?;
            sources.push(source.clone());
            Ok(Some(source))
        };
        if let Some(source) = read(scenario.section("nodes"))? {
            files.nodes = csv::entries(&source, keys::NODE, "node")?;
            check_metres(&files.nodes)?;
        }
        if let Some(source) = read(scenario.section("flows"))? {
            files.flows = csv::entries(&source, keys::FLOW, "flow")?;
        }
        files.recorded = recorded(scenario, &files.flows, folder, before)?;
        sources.extend(files.recorded.values().map(|recording| recording.source.clone()));
        files.rate_traces = rate_traces(scenario, folder, before)?;
        sources.extend(files.rate_traces.values().map(|trace| trace.source.clone()));
        files.sources = sources;
        Ok(files)
    }
}

/// Refuses places of a file that are longitudes and latitudes.
fn check_metres(nodes: &[Node]) -> Result<(), Problem> {
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
                let source = folder.read(&path, MAX_TEXT);
                Recording::parse(source.map_err(|p| at_named_file(p, section, &path))?)?
            }
        };
        all.insert(name.to_owned(), recording);
    }
    Ok(all)
}

/// Returns the traces of rates that links name, each file once.
fn rate_traces(
    scenario: Section<'_>,
    folder: &Folder,
    before: &Files,
) -> Result<BTreeMap<String, TraceFile>, Problem> {
    let mut all = BTreeMap::new();
    for section in scenario.sections("link").iter().flat_map(|link| link.sections("rate_trace")) {
        let Some(name) = section.word("file").filter(|&name| !all.contains_key(name)) else { continue };
        let trace = match before.rate_traces.get(name) {
            Some(known) => known.clone(),
            None => {
                let path = folder.join(name);
                let source = folder.read(&path, MAX_TEXT);
                TraceFile::parse(source.map_err(|p| at_named_file(p, section, &path))?)?
            }
        };
        all.insert(name.to_owned(), trace);
    }
    Ok(all)
}
