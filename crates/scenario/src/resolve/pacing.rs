//! `[pacing]`: what every paced transport takes its parameters from.

use super::super::schema::Section;
use super::super::source::Problem;
use super::seconds;
use hopline_transport::pacing::{Config, ShortPaths, Variability};

/// Whether a flow is paced: because its `transport` is, or because the transport's tables say so.
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

/// The authors' values, and what `section` puts over them. The key table bounds each of them.
pub(super) fn resolve(section: Section<'_>) -> Config {
    let mut config = Config::AUTHORS;
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
    let fits = "the key's range is within that of the type";
    if let Some(hops) = section.integer("spatial_factor") {
        config.spatial_factor = u8::try_from(hops).expect(fits);
    }
    if let Some(samples) = section.integer("history_samples") {
        config.history = u16::try_from(samples).expect(fits);
    }
    config.overhead_bytes = section.small("overhead_bytes").unwrap_or(config.overhead_bytes);
    if let Some(rate_mbps) = section.number("link_rate_mbps") {
        config.link_rate_bps = (rate_mbps * 1e6) as u64;
    }
    match section.word("variability") {
        Some("cov-rtt") => config.variability = Variability::CovRtt,
        Some(_mad_fhd) => config.variability = Variability::MadFhd,
        None => {}
    }
    match section.word("short_paths") {
        Some("fewer-hops") => config.short_paths = ShortPaths::FewerHops,
        Some(_one_hop) => config.short_paths = ShortPaths::OneHop,
        None => {}
    }
    config
}
