//! From a checked document to a [`Spec`].

mod broken_rule;
mod cells;
mod door;
mod draw;
mod ends;
mod feedback;
mod files;
mod floods;
mod flows;
mod host_names;
mod jitter;
mod links;
mod mobility;
mod movement_file;
mod named_file;
mod names;
pub(crate) mod neighborhood;
mod nodes;
mod obstacles;
mod outages;
mod pacing;
mod placed;
mod programs;
mod proxies;
mod queue;
mod quic;
mod radio;
mod rate_traces;
mod routes;
mod routing;
mod tcp;
mod times;
mod tpa;
mod transport;
mod wide;

use super::key_owners::{OwnedKeys, reject_foreign_keys};
use super::keys;
use super::schema::Section;
use super::user_defined::ScenarioWithMachines;
use crate::program::Program;
use hopline_config::source::Problem;
use hopline_core::Duration;
use hopline_sim::spec::Spec;
use names::{Names, node_named, unknown_node};
use times::{instant, instant_of, seconds, seconds_of};

pub(super) use files::Files;

/// Returns the specification of run `run`.
pub(super) fn spec(whole: ScenarioWithMachines<'_>, files: &Files, run: u64) -> Result<Spec, Problem> {
    let ScenarioWithMachines { scenario, machines, .. } = whole;
    let seed = scenario.get(keys::scenario::SEED);
    let nodes::Resolved { mut nodes, names, gateways } = nodes::resolve(whole, files, seed, run)?;
    let mut radio = radio::resolve(whole, &nodes, &names)?;
    neighborhood::resolve(scenario, &mut radio, &nodes, &names, (seed, run))?;
    let links = links::resolve(whole, &names, files)?;
    routes::resolve(scenario, &mut nodes, &gateways, &links, &names)?;
    let outages = outages::resolve(scenario, &nodes, &links, &names)?;
    programs::resolve(whole, &names)?;
    let notice_floods = floods::resolve(scenario, &nodes, &names)?;
    let proxies = proxies::resolve(whole, &nodes, &names)?;
    let radio_bps = radio.as_ref().map(|radio| radio.mac.data_rate.bps());
    let pairs = proxies::pairs(scenario, &nodes, (&links, radio_bps), &names)?;
    let network = ends::Network { names: &names, nodes: &nodes };
    let mut flows = flows::resolve(whole, files, network, seed, run)?;
    proxies::set_split_transports(&proxies, &nodes, &mut flows);
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
        notice_flood_attackers: notice_floods,
        proxies,
        pairs,
        taps: Default::default(),
        ethernet_taps: Default::default(),
        series: Default::default(),
        custom_algorithms: machines.clone(),
        extra_header_bytes: of_routing.get(keys::of_routing::EXTRA_HEADER_BYTES) as u32,
        flows,
    })
}

/// Returns the programs of an emulation.
pub(super) fn programs(
    whole: ScenarioWithMachines<'_>,
    files: &Files,
    run: u64,
) -> Result<Vec<Program>, Problem> {
    let seed = whole.get(keys::scenario::SEED);
    programs::resolve(whole, &nodes::resolve(whole, files, seed, run)?.names)
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
