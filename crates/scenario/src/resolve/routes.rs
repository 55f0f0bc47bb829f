//! `[[route]]`, `routing.gateway` and `node.gateway`: where packets go beside what routing knows.

use super::super::keys;
use super::super::schema::Section;
use super::{Names, node_named, unknown_node};
use hopline_config::source::{Origin, Problem};
use hopline_core::NodeId;
use hopline_sim::spec::{Attachment, HostRoute, LinkSpec, NodeSpec};

/// Gateways that nodes name: by node, the name and its place in the source.
pub(super) type Gateways<'a> = Vec<Option<(&'a str, &'a Origin)>>;

/// Puts routes and gateways into `nodes`.
pub(super) fn resolve(
    scenario: Section<'_>,
    nodes: &mut [NodeSpec],
    gateways: &Gateways<'_>,
    links: &[LinkSpec],
    names: &Names,
) -> Result<(), Problem> {
    let routing = scenario.section("routing");
    let for_all = routing.word("gateway").map(|name| (name, routing.origin_of("gateway")));
    for node in 0..nodes.len() {
        if let Some((name, at)) = gateways[node].or(for_all.filter(|_| is_wireless(&nodes[node]))) {
            nodes[node].gateway = Some(gateway(routing, (name, at), &nodes[node], nodes, links, names)?);
        }
    }
    for section in scenario.sections("route") {
        let (at, route) = route(&section, nodes, links, names)?;
        nodes[at.index()].routes.push(route);
    }
    Ok(())
}

fn gateway(
    routing: Section<'_>,
    (name, at): (&str, &Origin),
    of: &NodeSpec,
    nodes: &[NodeSpec],
    links: &[LinkSpec],
    names: &Names,
) -> Result<NodeId, Problem> {
    let gateway = *names.get(name).ok_or_else(|| unknown_node(name, at, names))?;
    if routing.get(keys::of_routing::PROTOCOL) == keys::Protocol::Static {
        return Err(Problem::new("a gateway, but the protocol is static")
            .at(at)
            .help("static routes lead over radios and links alike: leave it out, or set routing.protocol"));
    }
    if !is_wireless(of) {
        return Err(Problem::new(format!("a gateway for `{}`, which has no radio", of.name))
            .at(at)
            .help("only nodes with a radio leave the wireless network through one"));
    }
    let has_link = links.iter().any(|link| link.a == gateway || link.b == gateway);
    if has_link && is_wireless(&nodes[gateway.index()]) {
        return Ok(gateway);
    }
    Err(Problem::new(format!("`{name}` is no gateway")).at(at).help("a gateway has a radio and a [[link]]"))
}

fn route(
    section: &Section<'_>,
    nodes: &[NodeSpec],
    links: &[LinkSpec],
    names: &Names,
) -> Result<(NodeId, HostRoute), Problem> {
    let [at, to, via] =
        [keys::route::AT, keys::route::TO, keys::route::VIA].map(|key| node_named(section, key, names));
    let (at, to, via) = (at?, to?, via?);
    if at == to || at == via {
        let key = if at == to { "to" } else { "via" };
        return Err(Problem::new("a route from a node to itself")
            .at(section.origin_of(key))
            .help("`to` and `via` are other nodes than `at`"));
    }
    let linked = links.iter().any(|link| [(link.a, link.b), (link.b, link.a)].contains(&(at, via)));
    let [own, theirs] = [at, via].map(|node| &nodes[node.index()].radio_channels);
    if !linked && !own.iter().any(|channel| theirs.contains(channel)) {
        let [at, via] = [at, via].map(|node| &nodes[node.index()].name);
        return Err(Problem::new(format!("a route from `{at}` via `{via}`, which is no neighbour"))
            .at(section.origin_of("via"))
            .help("neighbours have a [[link]], or radios on the same channel"));
    }
    Ok((at, HostRoute { destination: to, next_hop: via }))
}

fn is_wireless(node: &NodeSpec) -> bool {
    node.attachment() == Attachment::Wireless
}
