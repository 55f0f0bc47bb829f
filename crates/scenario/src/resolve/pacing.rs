//! `[pacing]`: what every paced transport takes its parameters from.

use super::super::keys;
use super::super::schema::Section;
use super::{radio, seconds};
use hopline_config::source::Problem;
use hopline_transport::pacing::Config;

/// Returns whether a flow is paced: because its `transport` is, or because the transport's tables say so.
pub(super) fn is_paced(transport: &str, general: Section<'_>, own: Section<'_>) -> Result<bool, Problem> {
    let section = if own.has("pacing") { own } else { general };
    match section.word("pacing") {
        Some("none") if is_always(transport) => {
            Err(Problem::new(format!("{transport} without pacing")).at(section.origin_of("pacing")).help(
                format!("transport = \"{}\" is what is left of it; or remove `pacing`", unpaced(transport)),
            ))
        }
        word => Ok(is_always(transport) || word == Some("adaptive")),
    }
}

fn is_always(transport: &str) -> bool {
    transport.ends_with("-ap")
}

fn unpaced(transport: &str) -> &str {
    if transport == "tcp-ap" { "tcp-newreno" } else { "tpa" }
}

/// Returns the authors' values at the rate of the `scenario`'s radios, and what `[pacing]` puts over them.
/// The key table bounds each of them.
pub(super) fn resolve(scenario: Section<'_>) -> Result<Config, Problem> {
    let section = scenario.section("pacing");
    let old = Config::AUTHORS;
    let radio_rate = radio::data_rate(scenario)?.map(|rate| rate.bps());
    let link_rate = section.number("link_rate_mbps").map(|rate| (rate * 1e6) as u64);
    let time = |key, old| seconds(&section, key).unwrap_or(old);
    let number = |key, old| section.number(key).unwrap_or(old);
    Ok(old
        .with_link_rate_bps(link_rate.or(radio_rate).unwrap_or(old.link_rate_bps()))
        .with_sample_limit(time("sample_limit_s", old.sample_limit()))
        .with_queueing_limit(time("queueing_limit_s", old.queueing_limit()))
        .with_initial_interval(time("initial_interval_s", old.initial_interval()))
        .with_history_weight(number("history_weight", old.history_weight()))
        .with_contention_factor(number("contention_factor", old.contention_factor()))
        .with_queueing_gain(number("queueing_gain", old.queueing_gain()))
        .with_spatial_factor(section.integer_as("spatial_factor").unwrap_or(old.spatial_factor()))
        .with_history(section.integer_as("history_samples").unwrap_or(old.history()))
        .with_overhead_bytes(section.integer_u32("overhead_bytes").unwrap_or(old.overhead_bytes()))
        .with_variability(section.get(keys::pacing::VARIABILITY).unwrap_or(old.variability()))
        .with_short_paths(section.get(keys::pacing::SHORT_PATHS).unwrap_or(old.short_paths()))
        .with_duplicate_acks(section.get(keys::pacing::DUPLICATE_ACKS).unwrap_or(old.duplicate_acks())))
}
