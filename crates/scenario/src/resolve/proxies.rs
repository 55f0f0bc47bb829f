//! `[[proxy]]`.

use super::super::keys;
use super::super::schema::Section;
use super::super::source::Problem;
use super::{Names, node_named, seconds, transport, unknown_node};
use hopline_core::{Duration, NodeId};
use hopline_sim::spec::dproxy::opaque::{self, Order};
use hopline_sim::spec::snoop::{self, Config, LocalTimer, Modern, Rules};
use hopline_sim::spec::{
    FlowSpec, Interface, LinkSpec, MobileSide, NodeSpec, PairKind, PairSpec, ProxyKind, ProxySpec, Transport,
    ack_pacing, dproxy, mtcp, nack, split,
};
use std::collections::BTreeSet;
use std::net::Ipv4Addr;
use std::num::{NonZeroU8, NonZeroU16};

/// What only the paper's rules and ns-2's have.
const CLASSIC_KEYS: &[&str] =
    &["dup_ack_threshold", "persist_ms", "spurious_acks", "old_data", "overflow", "turn"];

/// All of them, in the order of the file; those of kind none are left out. Keys of other kinds are no error: kinds are what one varies.
pub(super) fn resolve(
    scenario: Section<'_>,
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
                proxies.push(ProxySpec { node, mobile, kind: ProxyKind::Snoop(snoop(&section)?) });
            }
            keys::ProxyKind::Mtcp => {
                proxies.push(ProxySpec { node, mobile, kind: ProxyKind::Mtcp(mtcp(&section)) });
            }
            keys::ProxyKind::Nack => {
                proxies.push(ProxySpec { node, mobile, kind: ProxyKind::Nack(nack(&section)) });
            }
            keys::ProxyKind::AckPacing => {
                let kind = ProxyKind::AckPacing(ack_pacing(&section));
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

/// Those that stand at both ends of links.
pub(super) fn pairs(
    scenario: Section<'_>,
    nodes: &[NodeSpec],
    links: &[LinkSpec],
    names: &Names,
) -> Result<Vec<PairSpec>, Problem> {
    let pair = |section: Section<'_>| {
        let ends = ends(&section, nodes, links, names)?;
        let kind = match section.get(keys::proxy::KIND) {
            keys::ProxyKind::Opaque => PairKind::Opaque(opaque(&section)),
            _ => PairKind::DProxy(d_proxy(&section)),
        };
        Ok(PairSpec { ends, kind })
    };
    scenario.sections("proxy").into_iter().filter(is_pair).map(pair).collect()
}

fn is_pair(section: &Section<'_>) -> bool {
    matches!(section.get(keys::proxy::KIND), keys::ProxyKind::DProxy | keys::ProxyKind::Opaque)
}

/// The ends of the link that a pair repairs.
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
    let have_radios = [a, b].iter().all(|node| node.interface() == Interface::Wireless);
    let is_wire = |link: &LinkSpec| [[near, far], [far, near]].contains(&[link.a, link.b]);
    if near == far || !(have_radios || links.iter().any(is_wire)) {
        return Err(Problem::new(format!("no link leads from `{}` to `{}`", a.name, b.name))
            .at(origin)
            .help("node and peer are neighbours: over a [[link]], or both with radios"));
    }
    Ok([near, far])
}

fn d_proxy(section: &Section<'_>) -> dproxy::Config {
    // The world knows the addresses of the ends.
    let nobody = Ipv4Addr::UNSPECIFIED;
    let mut config = dproxy::Config::new(nobody, nobody, dproxy::Key::new([0; 32]));
    recovery(section, &mut config.recovery);
    config.caching.packets_per_flow =
        section.narrow("high_water_packets").unwrap_or(config.caching.packets_per_flow);
    section.set(keys::proxy::EXPANSION, &mut config.expansion);
    if section.get(keys::proxy::ORDER) == Some(Order::Any) {
        config.holding = dproxy::Holding::AsTheyCome;
    }
    if section.get(keys::proxy::OVERFLOW) == Some(snoop::Overflow::Kept) {
        config.overflow = dproxy::Overflow::Repaired;
    }
    config.held_packets = section.narrow("held_packets").unwrap_or(config.held_packets);
    config.tail_probe = milliseconds(section, "tail_probe_ms");
    config.bounds.connections = section.small("connections").unwrap_or(config.bounds.connections);
    config.bounds.idle = seconds(section, "idle_s").unwrap_or(config.bounds.idle);
    config
}

fn opaque(section: &Section<'_>) -> opaque::Config {
    let mut config = opaque::Config::default();
    recovery(section, &mut config.recovery);
    config.kept_packets = section.small("high_water_packets").unwrap_or(config.kept_packets);
    section.set(keys::proxy::ORDER, &mut config.order);
    config.tail_probe = milliseconds(section, "tail_probe_ms").or(config.tail_probe);
    if section.get(keys::proxy::PARITY) == Some(true) {
        let [least, most] = [2, 32].map(|packets| NonZeroU8::new(packets).expect("not zero"));
        config.parity = opaque::Parity::Adaptive { least, most };
    }
    config
}

fn recovery(section: &Section<'_>, recovery: &mut dproxy::Recovery) {
    recovery.attempts = section.narrow("local_limit").and_then(NonZeroU8::new).unwrap_or(recovery.attempts);
    section.set(keys::proxy::TIMEOUTS, &mut recovery.timeouts);
    section.set(keys::proxy::ORDER_RULE, &mut recovery.order_rule);
    recovery.floor = milliseconds(section, "min_timer_ms").unwrap_or(recovery.floor);
    recovery.patience = milliseconds(section, "patience_ms").unwrap_or(recovery.patience);
    recovery.grace = section.narrow("grace_packets").unwrap_or(recovery.grace);
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
    if listed.is_empty() && (of.interface() == Interface::Wireless || !is_there) {
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

fn snoop(section: &Section<'_>) -> Result<Config, Problem> {
    let mut config = section.get(keys::proxy::PRESET).unwrap_or(Config::modern)();
    config.high_water =
        section.narrow("high_water_packets").and_then(NonZeroU16::new).unwrap_or(config.high_water);
    config.local_limit = section.narrow("local_limit").unwrap_or(config.local_limit);
    config.bounds.connections = section.small("connections").unwrap_or(config.bounds.connections);
    config.bounds.idle = seconds(section, "idle_s").unwrap_or(config.bounds.idle);
    let min_timer = milliseconds(section, "min_timer_ms");
    match &mut config.rules {
        Rules::Modern(Modern { min_timer: least, .. }) => {
            if let Some(key) = CLASSIC_KEYS.iter().find(|key| section.has(key)) {
                return Err(Problem::new(format!(
                    "`{key}` with preset = \"modern\", whose rules have no such thing"
                ))
                .at(section.origin_of(key))
                .help("set preset = \"published\" or \"ns2-2.35\", or remove it"));
            }
            *least = min_timer.unwrap_or(*least);
        }
        Rules::Classic(rules) => {
            let (LocalTimer::Smoothed { min, .. } | LocalTimer::Deviation { min, .. }) = &mut rules.timer;
            *min = min_timer.unwrap_or(*min);
            rules.dup_ack_threshold = section.narrow("dup_ack_threshold").unwrap_or(rules.dup_ack_threshold);
            rules.persist = milliseconds(section, "persist_ms").or(rules.persist);
            section.set(keys::proxy::SPURIOUS_ACKS, &mut rules.spurious_acks);
            section.set(keys::proxy::OLD_DATA, &mut rules.old_data);
            section.set(keys::proxy::OVERFLOW, &mut rules.overflow);
            section.set(keys::proxy::TURN, &mut rules.turn);
        }
    }
    Ok(config)
}

fn mtcp(section: &Section<'_>) -> mtcp::Config {
    let mut config = mtcp::Config::default();
    config.silence = milliseconds(section, "silence_ms").unwrap_or(config.silence);
    config.probe = milliseconds(section, "probe_ms").unwrap_or(config.probe);
    config.bounds.connections = section.small("connections").unwrap_or(config.bounds.connections);
    config.bounds.idle = seconds(section, "idle_s").unwrap_or(config.bounds.idle);
    config
}

fn nack(section: &Section<'_>) -> nack::Config {
    let mut config = nack::Config::default();
    config.attempts = section.narrow("local_limit").unwrap_or(config.attempts);
    config.min_timer = milliseconds(section, "min_timer_ms").unwrap_or(config.min_timer);
    config.bounds.connections = section.small("connections").unwrap_or(config.bounds.connections);
    config.bounds.idle = seconds(section, "idle_s").unwrap_or(config.bounds.idle);
    config
}

fn ack_pacing(section: &Section<'_>) -> ack_pacing::Config {
    let mut config = ack_pacing::Config::default();
    config.max_hold = milliseconds(section, "max_hold_ms").unwrap_or(config.max_hold);
    config.burst_gap = milliseconds(section, "burst_gap_ms").unwrap_or(config.burst_gap);
    config.held_packets =
        section.narrow("held_packets").and_then(NonZeroU16::new).unwrap_or(config.held_packets);
    config.held_in_all = section.small("high_water_packets").unwrap_or(config.held_in_all);
    config.bounds.connections = section.small("connections").unwrap_or(config.bounds.connections);
    config.bounds.idle = seconds(section, "idle_s").unwrap_or(config.bounds.idle);
    config
}

fn split(scenario: Section<'_>, section: Section<'_>, mobile: &MobileSide) -> Result<split::Config, Problem> {
    const BUFFER_BYTES: u64 = 1 << 20;
    let fixed = transport::resolve(scenario, scenario)?;
    let beyond = transport::resolve(scenario, section)?;
    let buffer = section.integer("buffer_bytes").unwrap_or(BUFFER_BYTES);
    let mut config = split::Config::new(fixed, beyond, buffer);
    config.bounds.connections = section.small("connections").unwrap_or(config.bounds.connections);
    config.bounds.idle = seconds(&section, "idle_s").unwrap_or(config.bounds.idle);
    // I-TCP: from one station to the next connections follow their hosts.
    if scenario.has("cells") && *mobile == MobileSide::Radios {
        config.unknown = split::Unknown::WaitedFor(seconds(&section, "handover_s").unwrap_or(HANDOVER));
    }
    Ok(config)
}

/// How long a station waits for connections that come from another.
const HANDOVER: Duration = Duration::from_secs(2);

/// Ends of flows beyond a machine that splits connections speak what the last hop speaks there, if that is another protocol.
pub(super) fn tell(proxies: &[ProxySpec], nodes: &[NodeSpec], flows: &mut [FlowSpec]) {
    for proxy in proxies {
        let ProxyKind::Split(config) = &proxy.kind else { continue };
        let is_beyond = |node: NodeId| match &proxy.mobile {
            MobileSide::Radios => {
                node != proxy.node && nodes[node.index()].interface() == Interface::Wireless
            }
            MobileSide::Nodes(hosts) => hosts.contains(&node),
        };
        for flow in flows.iter_mut() {
            let Some(over) = flow.traffic.transport().copied() else { continue };
            let beyond = [flow.src, flow.dst].map(is_beyond);
            // Of two hosts beyond nothing is split.
            if beyond[0] != beyond[1] && is_other(&over, &config.mobile) && !is_other(&over, &config.fixed) {
                flow.ends[usize::from(beyond[1])] = Some(config.mobile);
            }
        }
    }
}

/// Whether two transports do not understand each other.
const fn is_other(a: &Transport, b: &Transport) -> bool {
    !matches!((a, b), (Transport::Tcp(_), Transport::Tcp(_)) | (Transport::Tpa(_), Transport::Tpa(_)))
}

fn milliseconds(section: &Section<'_>, key: &str) -> Option<Duration> {
    section.number(key).map(|ms| Duration::from_secs_f64(ms * 1e-3))
}
