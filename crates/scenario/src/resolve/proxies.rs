//! `[[proxy]]`.

use super::super::keys;
use super::super::schema::Section;
use super::super::source::Problem;
use super::{Names, node_named, seconds, unknown_node};
use hopline_core::{Duration, NodeId};
use hopline_sim::spec::snoop::{Config, LocalTimer, Modern, Rules};
use hopline_sim::spec::{Interface, MobileSide, NodeSpec, ProxyKind, ProxySpec};
use std::collections::BTreeSet;
use std::num::NonZeroU16;

/// What only the paper's rules and ns-2's have.
const CLASSIC_KEYS: &[&str] = &["dup_ack_threshold", "persist_ms", "spurious_acks", "old_data", "overflow"];

/// All of them, in the order of the file; those of kind none are left out.
pub(super) fn resolve(
    scenario: Section<'_>,
    nodes: &[NodeSpec],
    names: &Names,
) -> Result<Vec<ProxySpec>, Problem> {
    let mut proxies = Vec::new();
    for section in scenario.sections("proxy") {
        let node = node_named(&section, keys::proxy::NODE, names)?;
        let mobile = mobile(&section, node, nodes, names)?;
        match section.get(keys::proxy::KIND) {
            keys::ProxyKind::None => {}
            keys::ProxyKind::Snoop => {
                proxies.push(ProxySpec { node, mobile, kind: ProxyKind::Snoop(snoop(&section)?) });
            }
        }
    }
    Ok(proxies)
}

fn mobile(
    section: &Section<'_>,
    node: NodeId,
    nodes: &[NodeSpec],
    names: &Names,
) -> Result<MobileSide, Problem> {
    let of = &nodes[node.index()];
    let listed = section.texts("mobile");
    if listed.is_empty() && of.interface() == Interface::Wireless {
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
        }
    }
    Ok(config)
}

fn milliseconds(section: &Section<'_>, key: &str) -> Option<Duration> {
    section.number(key).map(|ms| Duration::from_secs_f64(ms * 1e-3))
}
