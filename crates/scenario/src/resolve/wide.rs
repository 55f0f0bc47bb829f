//! `[wide]` and `flow.wide`.

use super::super::schema::Section;
use super::super::source::Problem;
use hopline_core::Duration;
use hopline_transport::wide::Config;

/// Returns the configuration of a flow over TPA-wide: the defaults, then `[wide]` of the `scenario`, then
/// `own` (`flow.wide`).
pub(super) fn resolve(scenario: Section<'_>, own: Section<'_>) -> Result<Config, Problem> {
    let general = scenario.section("wide");
    let mut config = Config::DEFAULT;
    // There is no application that could be notified that a flow gave up, or start it again.
    (config.opening_retries, config.silence.limit) = (None, None);
    for section in [general, own] {
        apply(&mut config, section);
        apply_control(&mut config, section);
    }
    let section = if own.is_given() { own } else { general };
    config.validate().map_err(|e| {
        Problem::new(format!("TPA-wide parameters do not fit together: {e}")).at(section.origin)
    })?;
    Ok(config)
}

fn apply(config: &mut Config, section: Section<'_>) {
    config.mss = section.narrow("mss_bytes").unwrap_or(config.mss);
    config.receive_buffer = section.integer("receive_buffer_bytes").unwrap_or(config.receive_buffer);
    config.ack.every = section.small("ack_every").unwrap_or(config.ack.every);
    set_ms(section, "ack_delay_ms", &mut config.ack.delay);
    config.ack.rare_every = section.small("ack_rare_every").unwrap_or(config.ack.rare_every);
    set_ms(section, "ack_rare_ms", &mut config.ack.rare);
    set_ms(section, "ack_late_ms", &mut config.ack.late);
    config.ack.calm = section.number("ack_late_below").unwrap_or(config.ack.calm);
    config.detect.share = section.small("reordering_share").unwrap_or(config.detect.share);
    if section.has("silence_limit_s") {
        config.silence.limit = section.integer("silence_limit_s").map(Duration::from_secs);
    }
}

fn apply_control(config: &mut Config, section: Section<'_>) {
    let control = &mut config.control;
    control.initial_window = section.small("initial_window").unwrap_or(control.initial_window);
    control.drain_rounds = section.small("drain_rounds").unwrap_or(control.drain_rounds);
    let competing = &mut control.competing;
    for (key, field) in [
        ("undrained", &mut competing.futile_drains),
        ("look_rounds", &mut competing.probe_rounds),
        ("standing_rounds", &mut competing.standing_rounds),
        ("compete_rounds", &mut competing.max_competitive_rounds),
    ] {
        *field = section.small(key).unwrap_or(*field);
    }
    set_ms(section, "queue_high_ms", &mut control.queue_high);
    set_ms(section, "growth_ms", &mut control.growth_interval);
    set_s(section, "proof_s", &mut control.verification.lifetime);
    set_s(section, "credit_s", &mut control.verification.probation);
    for (key, field) in [
        ("queue_packets", &mut control.queue_packets),
        ("queue_low", &mut control.queue_low),
        ("jitter", &mut control.jitter),
        ("keep", &mut control.decrease_factor),
        ("drain", &mut control.drain_gain),
        ("growth_max", &mut control.growth_max),
        ("ahead", &mut control.delivery_headroom),
        ("spare", &mut control.extra_packets),
        ("in_flight", &mut control.cwnd_gain),
        ("excess", &mut control.loss_threshold),
        ("unproven", &mut control.verification.unverified_max),
        ("unproven_floor", &mut control.verification.unverified_floor),
        ("unproven_ahead", &mut control.verification.unverified_headroom),
        ("decided", &mut control.verification.decision),
        ("relief", &mut control.competing.drain_fraction),
    ] {
        *field = section.number(key).unwrap_or(*field);
    }
}

fn set_s(section: Section<'_>, key: &str, field: &mut Duration) {
    if let Some(seconds) = section.number(key) {
        *field = Duration::from_secs_f64(seconds);
    }
}

fn set_ms(section: Section<'_>, key: &str, field: &mut Duration) {
    if let Some(ms) = section.number(key) {
        *field = Duration::from_secs_f64(ms * 1e-3);
    }
}
