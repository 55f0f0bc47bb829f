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
    let rivals = &mut control.rivals;
    for (key, field) in [
        ("undrained", &mut rivals.undrained),
        ("look_rounds", &mut rivals.look),
        ("standing_rounds", &mut rivals.standing),
        ("compete_rounds", &mut rivals.turn),
    ] {
        *field = section.small(key).unwrap_or(*field);
    }
    set_ms(section, "queue_high_ms", &mut control.queue_high);
    set_ms(section, "growth_ms", &mut control.growth);
    set_s(section, "proof_s", &mut control.trust.proof);
    set_s(section, "credit_s", &mut control.trust.credit);
    for (key, field) in [
        ("queue_packets", &mut control.queue_packets),
        ("queue_low", &mut control.queue_low),
        ("jitter", &mut control.jitter),
        ("keep", &mut control.keep),
        ("drain", &mut control.drain),
        ("growth_max", &mut control.growth_max),
        ("ahead", &mut control.ahead),
        ("spare", &mut control.spare),
        ("in_flight", &mut control.in_flight),
        ("excess", &mut control.excess),
        ("unproven", &mut control.trust.unproven),
        ("unproven_floor", &mut control.trust.floor),
        ("unproven_ahead", &mut control.trust.ahead),
        ("decided", &mut control.trust.decided),
        ("relief", &mut control.rivals.relief),
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
