//! Configuration of Neighborhood RED.

use super::times::seconds;
use crate::key_owners::reject_foreign_keys;
use crate::schema::Section;
use crate::source::Problem;
use hopline_core::Duration;
use hopline_queue::SignalAction;
use hopline_queue::neighborhood_red::Config;
use hopline_queue::neighborhood_red::config::{
    Delivery, IncomingPolicy, Limits, NoticeLimits, StarvationTest,
};

/// Keys of a guard.
const GUARD_KEYS: &[&str] = &["guard_lifetime_s", "guard_spacing_s", "guard_rest_s"];

/// Returns the configuration of Neighborhood RED in a section.
pub(super) fn config(section: &Section<'_>, data_rate_bps: u64) -> Result<Config, Problem> {
    let written_bps = section.number("bandwidth_mbps").map(|mbps| (mbps * 1e6) as u64);
    let mut config = Config::for_bandwidth(written_bps.unwrap_or(data_rate_bps));
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
    if let Some(bytes) = section.integer_u32("mean_packet_bytes") {
        config.packet_bits = 8 * bytes;
    }
    config.starvation = suffering(section)?;
    config.notice_limits = guard(section)?;
    config.delivery = match section.word("delivery") {
        Some("broadcast") => Delivery::Broadcast,
        Some("none") => Delivery::None,
        _unicast => Delivery::Unicast,
    };
    if section.word("incoming") == Some("relayed") {
        config.incoming = IncomingPolicy::Relayed;
    }
    if section.word("action") == Some("mark") {
        config.action = SignalAction::Mark;
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

fn suffering(section: &Section<'_>) -> Result<StarvationTest, Problem> {
    let word = section.word("suffering").unwrap_or("below-share");
    reject_foreign_keys(section, "suffering", word, &[(&["below-share"], &["suffering_share"])])?;
    let share = section.number("suffering_share");
    Ok(match (word, Config::PAPER.starvation) {
        ("below-fair-share", _) => StarvationTest::BelowFairShare,
        (_, StarvationTest::BelowShare(usual)) => StarvationTest::BelowShare(share.unwrap_or(usual)),
        (_, usual @ StarvationTest::BelowFairShare) => usual,
    })
}

fn guard(section: &Section<'_>) -> Result<NoticeLimits, Problem> {
    let word = section.word("guard").unwrap_or("off");
    reject_foreign_keys(section, "guard", word, &[(&["on"], GUARD_KEYS)])?;
    if word == "off" {
        return Ok(NoticeLimits::Off);
    }
    let time = |key: &str, usual: Duration| seconds(section, key).unwrap_or(usual);
    Ok(NoticeLimits::On(Limits {
        max_lifetime: time("guard_lifetime_s", Limits::DEFAULT.max_lifetime),
        min_spacing: time("guard_spacing_s", Limits::DEFAULT.min_spacing),
        recovery_time: time("guard_rest_s", Limits::DEFAULT.recovery_time),
    }))
}
