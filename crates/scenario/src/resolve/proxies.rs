//! `[[proxy]]`.

use super::super::schema::Section;
use super::super::user_defined::ScenarioWithMachines;
use super::super::{keys, middlebox};
use super::{Names, node_named, seconds, transport, unknown_node};
use hopline_config::source::Problem;
use hopline_core::{Duration, NodeId};
use hopline_sim::spec::{
    Attachment, FlowSpec, LinkSpec, MobileSide, NodeSpec, PairKind, PairSpec, ProxyKind, ProxySpec,
    Transport, dproxy, split,
};
use std::collections::BTreeSet;
use std::net::Ipv4Addr;

/// Returns all of them, in the order of the file; those of kind none are left out. Keys of other kinds are no
/// error: kinds are what one varies.
pub(super) fn resolve(
    scenario: ScenarioWithMachines<'_>,
    nodes: &[NodeSpec],
    names: &Names,
) -> Result<Vec<ProxySpec>, Problem> {
    let mut proxies = Vec::new();
    for section in scenario.sections("proxy") {
        if is_pair(&section) {
            continue;
        }
        let node = node_named(&section, keys::proxy::NODE, names)?;
        let mobile = mobile(&section, node, nodes, names)?;
        match section.get(keys::proxy::KIND) {
            keys::ProxyKind::None | keys::ProxyKind::DProxy | keys::ProxyKind::Opaque => {}
            keys::ProxyKind::Snoop => {
                proxies.push(ProxySpec { node, mobile, kind: ProxyKind::Snoop(middlebox::snoop(&section)?) });
            }
            keys::ProxyKind::Mtcp => {
                proxies.push(ProxySpec { node, mobile, kind: ProxyKind::Mtcp(middlebox::mtcp(&section)) });
            }
            keys::ProxyKind::Nack => {
                proxies.push(ProxySpec { node, mobile, kind: ProxyKind::Nack(middlebox::nack(&section)) });
            }
            keys::ProxyKind::AckPacing => {
                let kind = ProxyKind::AckPacing(middlebox::ack_pacing(&section));
                proxies.push(ProxySpec { node, mobile, kind });
            }
            keys::ProxyKind::Split => {
                let kind = ProxyKind::Split(Box::new(split(scenario, section, &mobile)?));
                proxies.push(ProxySpec { node, mobile, kind });
            }
        }
    }
    Ok(proxies)
}

/// The world knows the addresses of the ends.
const UNKNOWN_ADDRESS: Ipv4Addr = Ipv4Addr::UNSPECIFIED;

/// Returns the pairs of middleboxes at both ends of links. `radio_bps`: rate of the radios.
pub(super) fn pairs(
    scenario: Section<'_>,
    nodes: &[NodeSpec],
    (links, radio_bps): (&[LinkSpec], Option<u64>),
    names: &Names,
) -> Result<Vec<PairSpec>, Problem> {
    let pair = |section: Section<'_>| {
        let ends = ends(&section, nodes, links, names)?;
        let wire = links.iter().find(|link| is_between(link, ends));
        let rate_bps = wire.map(|wire| wire.rate_bps).or(radio_bps);
        let kind = match section.get(keys::proxy::KIND) {
            keys::ProxyKind::Opaque => PairKind::Opaque(middlebox::opaque(&section, rate_bps)),
            _ => PairKind::DProxy(middlebox::d_proxy(
                &section,
                UNKNOWN_ADDRESS,
                UNKNOWN_ADDRESS,
                dproxy::Key::new([0; 32]),
            )),
        };
        Ok(PairSpec { ends, kind })
    };
    scenario.sections("proxy").into_iter().filter(is_pair).map(pair).collect()
}

fn is_pair(section: &Section<'_>) -> bool {
    matches!(section.get(keys::proxy::KIND), keys::ProxyKind::DProxy | keys::ProxyKind::Opaque)
}

fn is_between(link: &LinkSpec, [near, far]: [NodeId; 2]) -> bool {
    [[near, far], [far, near]].contains(&[link.a, link.b])
}

/// Returns the ends of the link that a pair repairs.
fn ends(
    section: &Section<'_>,
    nodes: &[NodeSpec],
    links: &[LinkSpec],
    names: &Names,
) -> Result<[NodeId; 2], Problem> {
    let near = node_named(section, keys::proxy::NODE, names)?;
    let Some(peer) = section.word("peer") else {
        return Err(Problem::new("a pair of machines, and only one end of its link")
            .at(section.origin_of("kind"))
            .help("name the node at the other end: peer = \"…\""));
    };
    let origin = section.origin_of("peer");
    let far = *names.get(peer).ok_or_else(|| unknown_node(peer, origin, names))?;
    let [a, b] = [near, far].map(|node| &nodes[node.index()]);
    let have_radios = [a, b].iter().all(|node| node.attachment() == Attachment::Wireless);
    let is_wire = |link: &LinkSpec| is_between(link, [near, far]);
    if near == far || !(have_radios || links.iter().any(is_wire)) {
        return Err(Problem::new(format!("no link leads from `{}` to `{}`", a.name, b.name))
            .at(origin)
            .help("node and peer are neighbours: over a [[link]], or both with radios"));
    }
    Ok([near, far])
}

fn mobile(
    section: &Section<'_>,
    node: NodeId,
    nodes: &[NodeSpec],
    names: &Names,
) -> Result<MobileSide, Problem> {
    let of = &nodes[node.index()];
    let listed = section.texts("mobile");
    let is_there = section.get(keys::proxy::KIND) != keys::ProxyKind::None;
    if listed.is_empty() && (of.attachment() == Attachment::Wireless || !is_there) {
        return Ok(MobileSide::Radios);
    }
    if listed.is_empty() {
        return Err(Problem::new(format!("a proxy at `{}`, which has no radio", of.name))
            .at(section.origin_of("node"))
            .help("name the hosts beyond its last hop: mobile = [\"…\"]"));
    }
    let origin = section.origin_of("mobile");
    let named = |name: &str| names.get(name).copied().ok_or_else(|| unknown_node(name, origin, names));
    let hosts = listed.into_iter().map(named).collect::<Result<BTreeSet<_>, _>>()?;
    if hosts.contains(&node) {
        return Err(Problem::new(format!("`{}` is its own mobile host", of.name))
            .at(origin)
            .help("a proxy stands between others"));
    }
    Ok(MobileSide::Nodes(hosts))
}

fn split(
    scenario: ScenarioWithMachines<'_>,
    section: Section<'_>,
    mobile: &MobileSide,
) -> Result<split::Config, Problem> {
    const BUFFER_BYTES: u64 = 1 << 20;
    let fixed = transport::resolve(scenario, *scenario)?;
    let beyond = transport::resolve(scenario, section)?;
    if fixed.custom_congestion_control().or(beyond.custom_congestion_control()).is_some() {
        return Err(Problem::new("an own law in a machine that splits connections")
            .at(section.origin)
            .help("own laws are for ends of flows: set flow.tcp.congestion_control in place of tcp.congestion_control"));
    }
    if [&fixed, &beyond].into_iter().any(|half| matches!(half, Transport::Quic(_))) {
        return Err(Problem::new("a machine that splits connections of QUIC").at(section.origin).help(
            "packets of QUIC are encrypted from end to end: choose tcp- or tpa- transports for both halves",
        ));
    }
    let buffer = section.integer("buffer_bytes").unwrap_or(BUFFER_BYTES);
    let mut config = split::Config::new(fixed, beyond, buffer);
    config.limits.max_connections =
        section.integer_u32("connections").unwrap_or(config.limits.max_connections);
    config.limits.idle_timeout = seconds(&section, "idle_s").unwrap_or(config.limits.idle_timeout);
    // I-TCP: from one station to the next connections follow their hosts.
    if scenario.has("cells") && *mobile == MobileSide::Radios {
        config.unknown =
            split::UnknownConnections::Hold(seconds(&section, "handover_s").unwrap_or(DEFAULT_HANDOVER));
    }
    Ok(config)
}

/// Time that a station waits for connections from another one.
const DEFAULT_HANDOVER: Duration = Duration::from_secs(2);

/// Ends of flows beyond a machine that splits connections speak what the last hop speaks there, if that is another protocol.
pub(super) fn set_split_transports(proxies: &[ProxySpec], nodes: &[NodeSpec], flows: &mut [FlowSpec]) {
    for proxy in proxies {
        let ProxyKind::Split(config) = &proxy.kind else { continue };
        let is_beyond = |node: NodeId| match &proxy.mobile {
            MobileSide::Radios => {
                node != proxy.node && nodes[node.index()].attachment() == Attachment::Wireless
            }
            MobileSide::Nodes(hosts) => hosts.contains(&node),
        };
        for flow in flows.iter_mut() {
            let Some(over) = flow.traffic.transport().copied() else { continue };
            let beyond = [flow.src, flow.dst].map(is_beyond);
            // Of two hosts beyond nothing is split.
            if beyond[0] != beyond[1]
                && is_incompatible(&over, &config.mobile)
                && !is_incompatible(&over, &config.fixed)
            {
                flow.end_transports[usize::from(beyond[1])] = Some(config.mobile);
            }
        }
    }
}

/// Returns whether two transports cannot communicate with each other.
const fn is_incompatible(a: &Transport, b: &Transport) -> bool {
    !matches!(
        (a, b),
        (Transport::Tcp(_), Transport::Tcp(_))
            | (Transport::Tpa(_), Transport::Tpa(_))
            | (Transport::Wide(_), Transport::Wide(_))
            | (Transport::Quic(_), Transport::Quic(_))
    )
}
