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
    config.ack.rare_every = section.small("low_rate_ack_every").unwrap_or(config.ack.rare_every);
    set_ms(section, "low_rate_interval_ms", &mut config.ack.rare);
    set_ms(section, "relaxed_ack_delay_ms", &mut config.ack.late);
    config.ack.calm = section.number("relaxed_ack_max_loss").unwrap_or(config.ack.calm);
    config.detect.share = section.small("reordering_window_divisor").unwrap_or(config.detect.share);
    if section.has("user_timeout_s") {
        config.silence.limit = section.integer("user_timeout_s").map(Duration::from_secs);
    }
}

fn apply_control(config: &mut Config, section: Section<'_>) {
    let control = &mut config.control;
    control.initial_window = section.small("initial_window").unwrap_or(control.initial_window);
    control.drain_rounds = section.small("max_drain_rounds").unwrap_or(control.drain_rounds);
    let competing = &mut control.competing;
    for (key, field) in [
        ("futile_drains", &mut competing.futile_drains),
        ("probe_rounds", &mut competing.probe_rounds),
        ("standing_queue_rounds", &mut competing.standing_rounds),
        ("max_competitive_rounds", &mut competing.max_competitive_rounds),
    ] {
        *field = section.small(key).unwrap_or(*field);
    }
    set_ms(section, "max_queueing_delay_ms", &mut control.queue_high);
    set_ms(section, "growth_interval_ms", &mut control.growth_interval);
    set_s(section, "verified_loss_lifetime_s", &mut control.verification.lifetime);
    set_s(section, "probation_s", &mut control.verification.probation);
    for (key, field) in [
        ("max_queueing_delay_packets", &mut control.queue_packets),
        ("empty_queue_fraction", &mut control.queue_low),
        ("jitter_weight", &mut control.jitter),
        ("decrease_factor", &mut control.decrease_factor),
        ("drain_gain", &mut control.drain_gain),
        ("max_growth", &mut control.growth_max),
        ("delivery_headroom", &mut control.delivery_headroom),
        ("extra_packets", &mut control.extra_packets),
        ("cwnd_gain", &mut control.cwnd_gain),
        ("loss_threshold", &mut control.loss_threshold),
        ("max_unverified_loss", &mut control.verification.unverified_max),
        ("unverified_rate_floor", &mut control.verification.unverified_floor),
        ("unverified_headroom", &mut control.verification.unverified_headroom),
        ("loss_decision_threshold", &mut control.verification.decision),
        ("drain_fraction", &mut control.competing.drain_fraction),
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
