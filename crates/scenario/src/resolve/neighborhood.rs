//! `[neighborhood_red]`.

use super::super::keys;
use super::super::middlebox;
use super::super::schema::Section;
use super::{Names, unknown_node};
use hopline_config::source::Problem;
use hopline_core::{NodeId, Purpose, RandomStream};
use hopline_sim::spec::{Attachment, NeighborhoodSpec, NodeSet, NodeSpec, RadioSpec};
use std::collections::BTreeSet;

/// Gives the wireless nodes of `radio` what `[neighborhood_red]` says, if there is such a section.
pub(super) fn resolve(
    scenario: Section<'_>,
    radio: &mut Option<RadioSpec>,
    nodes: &[NodeSpec],
    names: &Names,
    (seed, run): (u64, u64),
) -> Result<(), Problem> {
    let section = scenario.section("neighborhood_red");
    if !section.is_given() {
        return Ok(());
    }
    let Some(radio) = radio else {
        return Err(Problem::new("[neighborhood_red] without [radio]: the network has no wireless nodes")
            .at(scenario.origin_of("neighborhood_red"))
            .help("add [radio], or remove it"));
    };
    let config = middlebox::neighborhood_red(&section, radio.mac.data_rate.bps())?;
    let members = match named_members(&section, nodes, names)? {
        Some(chosen) => NodeSet::Some(chosen),
        None => draw_members(section.get(keys::neighborhood_red::SHARE), nodes, seed, run),
    };
    let observed = wireless(&section, "observe", nodes, names)?;
    if let (true, Some(idle)) = (section.has("nodes"), observed.iter().find(|node| !members.contains(**node)))
    {
        return Err(Problem::new(format!(
            "`{}` is observed and is not among nodes",
            nodes[idle.index()].name
        ))
        .at(section.origin_of("observe"))
        .help("add it to nodes, or leave it out of observe"));
    }
    let observed_weight = section.number("observe_weight").unwrap_or(config.weight);
    radio.neighborhood = Some(NeighborhoodSpec { config, members, observed, observed_weight });
    Ok(())
}

/// Members that are named, if they are.
fn named_members(
    section: &Section<'_>,
    nodes: &[NodeSpec],
    names: &Names,
) -> Result<Option<BTreeSet<NodeId>>, Problem> {
    if !section.has("nodes") {
        return Ok(None);
    }
    if section.has("share") {
        return Err(Problem::new("share and nodes both say which nodes have Neighborhood RED")
            .at(section.origin_of("share"))
            .help("leave one of them out"));
    }
    wireless(section, "nodes", nodes, names).map(Some)
}

/// Returns the wireless nodes that `key` names. One that a share did not draw has nothing to be observed.
fn wireless(
    section: &Section<'_>,
    key: &'static str,
    nodes: &[NodeSpec],
    names: &Names,
) -> Result<BTreeSet<NodeId>, Problem> {
    let origin = || section.origin_of(key);
    let node = |name| match names.get(name) {
        None => Err(unknown_node(name, origin(), names)),
        Some(node) if nodes[node.index()].attachment() == Attachment::Wired => {
            Err(Problem::new(format!("`{name}` has no radio, so it has no neighborhood")).at(origin()))
        }
        Some(node) => Ok(*node),
    };
    section.texts(key).into_iter().map(node).collect()
}

/// Draws this share of the wireless nodes, anew for each run. A larger share has all nodes of a smaller one.
fn draw_members(share: f64, nodes: &[NodeSpec], seed: u64, run: u64) -> NodeSet {
    if share >= 1.0 {
        return NodeSet::All;
    }
    let wireless = (0..).map(NodeId).zip(nodes).filter(|(_, node)| node.attachment() == Attachment::Wireless);
    let mut stream = RandomStream::global(seed, run, Purpose::Neighborhood);
    let mut drawn: Vec<(u64, NodeId)> = wireless.map(|(id, _)| (stream.bits(), id)).collect();
    drawn.sort_unstable();
    let count = (share * drawn.len() as f64).round() as usize;
    NodeSet::Some(drawn.into_iter().take(count).map(|(_, id)| id).collect::<BTreeSet<_>>())
}
