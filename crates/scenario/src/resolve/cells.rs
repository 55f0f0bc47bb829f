//! `[cells]` and `[[mobile]]`.

use super::super::keys;
use super::super::schema::Section;
use super::{Names, node_named, seconds, seconds_of, unknown_node};
use hopline_config::source::{Origin, Problem};
use hopline_core::{Duration, NodeId};
use hopline_sim::spec::{
    Attachment, CellsSpec, HandoffRule, MobileSpec, NodeSpec, RoutingSpec, fast_retransmit,
};
use std::collections::BTreeSet;
use std::num::NonZeroU8;

/// Longest that a message can say.
const MAX_LIFETIME: Duration = Duration::from_millis(65_535);

/// Returns the cells, if there are any.
pub(super) fn resolve(
    scenario: Section<'_>,
    nodes: &[NodeSpec],
    routing: &RoutingSpec,
    names: &Names,
) -> Result<Option<CellsSpec>, Problem> {
    let section = scenario.section("cells");
    let hosts = scenario.sections("mobile");
    if !scenario.has("cells") {
        return match hosts.first() {
            None => Ok(None),
            Some(host) => Err(Problem::new("[[mobile]] without [cells]")
                .at(host.origin_of("node"))
                .help("say which node is the home agent: [cells] home_agent = \"…\"")),
        };
    }
    if !matches!(routing, RoutingSpec::Static) {
        return Err(Problem::new("[cells] with a routing protocol")
            .at(scenario.origin_of("cells"))
            .help("mobile hosts are one hop from a station: leave out routing.protocol, or say \"static\""));
    }
    let beacon_interval = seconds_of(&section, keys::cells::BEACON_S);
    let mobiles = mobiles(&hosts, beacon_interval, nodes, names)?;
    let is_mobile = |node: NodeId| mobiles.iter().any(|mobile| mobile.node == node);
    let home_agent = node_named(&section, keys::cells::HOME_AGENT, names)?;
    let stations = stations(&section, nodes, names, is_mobile)?;
    if is_mobile(home_agent) {
        return Err(no_other(nodes, home_agent, section.origin_of("home_agent")));
    }
    Ok(Some(CellsSpec {
        scheme: section.get(keys::cells::SCHEME),
        home_agent,
        stations,
        mobiles,
        beacon_interval,
        buffer_packets: section.get(keys::cells::BUFFER_PACKETS) as u16,
        cold: section.get(keys::cells::START),
        key: None,
    }))
}

fn mobiles(
    hosts: &[Section<'_>],
    beacon_interval: Duration,
    nodes: &[NodeSpec],
    names: &Names,
) -> Result<Vec<MobileSpec>, Problem> {
    let mut mobiles: Vec<MobileSpec> = Vec::new();
    for host in hosts {
        let node = node_named(host, keys::mobile::NODE, names)?;
        let (name, origin) = (&nodes[node.index()].name, host.origin_of("node"));
        has_radio(nodes, node, origin)?;
        if mobiles.iter().any(|known| known.node == node) {
            return Err(Problem::new(format!("`{name}` is a mobile host twice"))
                .at(origin)
                .help("remove one"));
        }
        let by_strength = HandoffRule::Stronger {
            margin_db: host.get(keys::mobile::HYSTERESIS_DB),
            beacons: host.get(keys::mobile::BEACONS) as u8,
        };
        mobiles.push(MobileSpec {
            node,
            handoff_decision: seconds(host, "handoff_every_s").map_or(by_strength, HandoffRule::Periodic),
            buffering_stations: host.get(keys::mobile::BUFFERING) as u8,
            station_lifetime: seconds(host, "lifetime_s")
                .unwrap_or(beacon_interval.saturating_mul(3))
                .min(MAX_LIFETIME),
            accepts: host.get(keys::mobile::LISTENS),
            fast_retransmit: host
                .integer_as("fast_retransmit")
                .and_then(NonZeroU8::new)
                .map(|duplicates| fast_retransmit::Config { duplicates, ..Default::default() }),
        });
    }
    Ok(mobiles)
}

fn stations(
    section: &Section<'_>,
    nodes: &[NodeSpec],
    names: &Names,
    is_mobile: impl Fn(NodeId) -> bool,
) -> Result<Vec<NodeId>, Problem> {
    let origin = section.origin_of("stations");
    let listed = section.texts("stations");
    let stations: BTreeSet<NodeId> = if listed.is_empty() {
        let stands =
            |(node, of): &(NodeId, &NodeSpec)| of.attachment() == Attachment::Wireless && !is_mobile(*node);
        (0..).map(NodeId).zip(nodes).filter(stands).map(|(node, _)| node).collect()
    } else {
        let named = |name: &str| names.get(name).copied().ok_or_else(|| unknown_node(name, origin, names));
        listed.into_iter().map(named).collect::<Result<_, _>>()?
    };
    for &station in &stations {
        has_radio(nodes, station, origin)?;
        if is_mobile(station) {
            return Err(no_other(nodes, station, origin));
        }
    }
    if stations.is_empty() {
        return Err(Problem::new("[cells] without a station").at(origin).help("give a node a radio"));
    }
    Ok(stations.into_iter().collect())
}

fn has_radio(nodes: &[NodeSpec], node: NodeId, origin: &Origin) -> Result<(), Problem> {
    let of = &nodes[node.index()];
    if of.attachment() == Attachment::Wireless {
        return Ok(());
    }
    Err(Problem::new(format!("`{}` has no radio", of.name))
        .at(origin)
        .help("stations and mobile hosts reach each other by radio"))
}

fn no_other(nodes: &[NodeSpec], node: NodeId, origin: &Origin) -> Problem {
    Problem::new(format!("`{}` is a mobile host", nodes[node.index()].name))
        .at(origin)
        .help("stations and home agents stay where they are")
}
