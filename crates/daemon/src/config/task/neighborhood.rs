//! Task of Neighborhood RED.

use super::super::keys::{KindKey, neighborhood as keys};
use super::super::values;
use super::in_path;
use hopline_config::middlebox;
use hopline_config::schema::Section;
use hopline_config::source::Problem;
use hopline_core::Duration;
use hopline_middlebox::neighborhood::{Config, Source};
use hopline_queue::neighborhood_red::config::{Delivery, Limits, NoticeLimits};
use std::path::PathBuf;

/// Returns the configuration in a section. Two defaults differ from those of scenarios: notices are broadcast, and limits
/// guard against floods of notices.
pub(super) fn resolve(section: &Section<'_>, number: u16) -> Result<Config, Problem> {
    let kind = KindKey::NeighborhoodRed;
    let interface = in_path::interface(kind, section)?;
    let inner = section.section(keys::NEIGHBORHOOD_RED.name);
    if let Some(key) = keys::SCENARIO_KEYS.iter().find(|key| inner.has(key)) {
        return Err(Problem::new(format!("`{key}` is of scenarios alone"))
            .at(inner.origin_of(key))
            .help("remove it"));
    }
    let Some(mbps) = inner.number(keys::MANDATORY_KEY) else {
        let problem = values::missing(section, "neighborhood_red.bandwidth_mbps", kind.word(), "54");
        return Err(problem.help("add the rate of the channel: neighborhood_red = { bandwidth_mbps = 54 }"));
    };
    let rate_bps = (mbps * 1e6) as u64;
    let mut config = Config::new(interface, rate_bps, in_path::queue(section, number));
    config.machine = middlebox::neighborhood_red(&inner, rate_bps)?;
    if !inner.has("delivery") {
        config.machine.delivery = Delivery::Broadcast;
    }
    if !inner.has("guard") {
        config.machine.notice_limits = NoticeLimits::On(Limits::DEFAULT);
    }
    config.source = source(section)?;
    config.silence = section.number(keys::SILENCE_S.name).map_or(config.silence, Duration::from_secs_f64);
    config.port = section.integer_as(keys::NOTICE_PORT.name).unwrap_or(config.port);
    let wrong = |must| Problem::new(format!("Neighborhood RED wants {must}")).at(section.origin);
    config.validate().map_err(wrong)?;
    Ok(config)
}

fn source(section: &Section<'_>) -> Result<Source, Problem> {
    let text = section.word(keys::SAMPLES.name).unwrap_or("survey");
    match text.split_once(':') {
        None if text == "survey" => Ok(Source::Survey),
        Some(("file", path)) if !path.is_empty() => Ok(Source::File(PathBuf::from(path))),
        Some(("socket", path)) if !path.is_empty() => Ok(Source::Socket(PathBuf::from(path))),
        _ => Err(Problem::new(format!("\"{text}\" is no source of samples"))
            .at(section.origin_of(keys::SAMPLES.name))
            .help("\"survey\", \"file:PATH\" or \"socket:PATH\"")),
    }
}
