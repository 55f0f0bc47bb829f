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
    let mut config = Config::AUTHORS;
    if let Some(rate) = radio::data_rate(scenario)? {
        config.link_rate_bps = rate.bps();
    }
    let times = [
        ("sample_limit_s", &mut config.sample_limit),
        ("queueing_limit_s", &mut config.queueing_limit),
        ("initial_interval_s", &mut config.initial_interval),
    ];
    for (key, field) in times {
        *field = seconds(&section, key).unwrap_or(*field);
    }
    let numbers = [
        ("history_weight", &mut config.history_weight),
        ("contention_factor", &mut config.contention_factor),
        ("queueing_gain", &mut config.queueing_gain),
    ];
    for (key, field) in numbers {
        *field = section.number(key).unwrap_or(*field);
    }
    config.spatial_factor = section.integer_as("spatial_factor").unwrap_or(config.spatial_factor);
    config.history = section.integer_as("history_samples").unwrap_or(config.history);
    config.overhead_bytes = section.integer_u32("overhead_bytes").unwrap_or(config.overhead_bytes);
    if let Some(rate_mbps) = section.number("link_rate_mbps") {
        config.link_rate_bps = (rate_mbps * 1e6) as u64;
    }
    section.set_if_given(keys::pacing::VARIABILITY, &mut config.variability);
    section.set_if_given(keys::pacing::SHORT_PATHS, &mut config.short_paths);
    section.set_if_given(keys::pacing::DUPLICATE_ACKS, &mut config.duplicate_acks);
    Ok(config)
}
