//! `[neighborhood_red]`.

use super::super::keys;
use super::super::schema::Section;
use super::super::source::Problem;
use super::{Names, refuse_foreign, seconds, unknown_node};
use hopline_core::{Duration, NodeId, Purpose, Stream};
use hopline_queue::Action;
use hopline_queue::neighborhood_red::Config;
use hopline_queue::neighborhood_red::config::{Delivery, Guard, Incoming, Limits, Suffering};
use hopline_sim::spec::{Interface, Members, NeighborhoodSpec, NodeSpec, RadioSpec};
use std::collections::BTreeSet;

/// Keys of a guard.
const GUARD_KEYS: &[&str] = &["guard_lifetime_s", "guard_spacing_s", "guard_rest_s"];

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
    let config = config(&section, radio.mac.data_rate.bps())?;
    let members = match chosen(&section, nodes, names)? {
        Some(chosen) => Members::Some(chosen),
        None => drawn(section.get(keys::neighborhood_red::SHARE), nodes, seed, run),
    };
    let observed = wireless(&section, "observe", nodes, names)?;
    if let (true, Some(idle)) = (section.has("nodes"), observed.iter().find(|node| !members.include(**node)))
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
fn chosen(
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
        Some(node) if nodes[node.index()].interface() == Interface::Wired => {
            Err(Problem::new(format!("`{name}` has no radio, so it has no neighborhood")).at(origin()))
        }
        Some(node) => Ok(*node),
    };
    section.texts(key).into_iter().map(node).collect()
}

/// Draws this share of the wireless nodes, anew for each run. A larger share has all nodes of a smaller one.
fn drawn(share: f64, nodes: &[NodeSpec], seed: u64, run: u64) -> Members {
    if share >= 1.0 {
        return Members::All;
    }
    let wireless = (0..).map(NodeId).zip(nodes).filter(|(_, node)| node.interface() == Interface::Wireless);
    let mut stream = Stream::global(seed, run, Purpose::Neighborhood);
    let mut drawn: Vec<(u64, NodeId)> = wireless.map(|(id, _)| (stream.bits(), id)).collect();
    drawn.sort_unstable();
    let count = (share * drawn.len() as f64).round() as usize;
    Members::Some(drawn.into_iter().take(count).map(|(_, id)| id).collect::<BTreeSet<_>>())
}

/// Returns the configuration of Neighborhood RED in a section.
pub(crate) fn config(section: &Section<'_>, data_rate_bps: u64) -> Result<Config, Problem> {
    let written_bps = section.number("bandwidth_mbps").map(|mbps| (mbps * 1e6) as u64);
    let mut config = Config::on_channel(written_bps.unwrap_or(data_rate_bps));
    let numbers = [
        ("weight", &mut config.weight),
        ("min_threshold_packets", &mut config.min_threshold),
        ("max_threshold_packets", &mut config.max_threshold),
        ("max_probability", &mut config.max_probability),
    ];
    for (key, field) in numbers {
        *field = section.number(key).unwrap_or(*field);
    }
    let times = [
        ("sampling_s", &mut config.sampling),
        ("notice_interval_s", &mut config.notice_interval),
        ("lifetime_s", &mut config.lifetime),
        ("flow_memory_s", &mut config.flow_memory),
        ("neighbour_memory_s", &mut config.neighbour_memory),
        ("relay_jitter_s", &mut config.relay_jitter),
    ];
    for (key, field) in times {
        *field = seconds(section, key).unwrap_or(*field);
    }
    if let Some(bytes) = section.small("mean_packet_bytes") {
        config.packet_bits = 8 * bytes;
    }
    config.suffering = suffering(section)?;
    config.guard = guard(section)?;
    config.delivery = match section.word("delivery") {
        Some("broadcast") => Delivery::Broadcast,
        Some("none") => Delivery::None,
        _unicast => Delivery::Unicast,
    };
    if section.word("incoming") == Some("relayed") {
        config.incoming = Incoming::Relayed;
    }
    if section.word("action") == Some("mark") {
        config.action = Action::Mark;
    }
    config.validate().map_err(|must| {
        let problem = Problem::new(format!("Neighborhood RED wants {must}")).at(section.origin);
        if config.min_threshold < config.max_threshold { problem } else { problem.help(thresholds(&config)) }
    })?;
    Ok(config)
}

/// A file that sets one threshold may have been written without knowledge of the other at this rate.
fn thresholds(config: &Config) -> String {
    format!(
        "on a channel of {} Mb/s min_threshold_packets is {} and max_threshold_packets {}; what is not written is in \
         proportion to the rate",
        config.bandwidth_bps as f64 / 1e6,
        config.min_threshold,
        config.max_threshold
    )
}

fn suffering(section: &Section<'_>) -> Result<Suffering, Problem> {
    let word = section.word("suffering").unwrap_or("below-share");
    refuse_foreign(section, "suffering", word, &[(&["below-share"], &["suffering_share"])])?;
    let share = section.number("suffering_share");
    Ok(match (word, Config::PAPER.suffering) {
        ("below-fair-share", _) => Suffering::BelowFairShare,
        (_, Suffering::BelowShare(usual)) => Suffering::BelowShare(share.unwrap_or(usual)),
        (_, usual @ Suffering::BelowFairShare) => usual,
    })
}

fn guard(section: &Section<'_>) -> Result<Guard, Problem> {
    let word = section.word("guard").unwrap_or("off");
    refuse_foreign(section, "guard", word, &[(&["on"], GUARD_KEYS)])?;
    if word == "off" {
        return Ok(Guard::Off);
    }
    let time = |key: &str, usual: Duration| seconds(section, key).unwrap_or(usual);
    Ok(Guard::On(Limits {
        lifetime: time("guard_lifetime_s", Limits::DEFAULT.lifetime),
        spacing: time("guard_spacing_s", Limits::DEFAULT.spacing),
        rest: time("guard_rest_s", Limits::DEFAULT.rest),
    }))
}
