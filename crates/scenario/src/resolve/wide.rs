//! `[wide]` and `flow.wide`.

use super::super::schema::Section;
use super::broken_rule::{FieldKeys, broken_rule};
use hopline_config::source::Problem;
use hopline_core::Duration;
use hopline_transport::wide::{CompetingConfig, Config, ControlConfig};

/// Keys of the fields that have rules beyond the range of a key.
const RULE_KEYS: FieldKeys = &[
    ("mss", "mss_bytes"),
    ("receive_buffer", "receive_buffer_bytes"),
    ("ack.delay", "ack_delay_ms"),
    ("ack.relaxed_delay", "relaxed_ack_delay_ms"),
];

/// Returns the configuration of a flow over TPA-wide: the defaults, then `[wide]` of the `scenario`, then
/// `own` (`flow.wide`).
pub(super) fn resolve(scenario: Section<'_>, own: Section<'_>) -> Result<Config, Problem> {
    let general = scenario.section("wide");
    // There is no application that could be notified that a flow gave up, or start it again.
    let patient = Config::DEFAULT.with_opening_retries(None).with_silence_limit(None);
    let config = [general, own].into_iter().fold(patient, apply);
    config.validate().map_err(|e| broken_rule(&e, RULE_KEYS, [general, own]))?;
    Ok(config)
}

/// Returns the configuration with the keys of a section. A key that is left out keeps the value of `config`.
fn apply(config: Config, section: Section<'_>) -> Config {
    let (ack, detect) = (config.ack(), config.loss_detection());
    let ack = ack
        .with_every(section.integer_u32("ack_every").unwrap_or(ack.every()))
        .with_delay(ms(section, "ack_delay_ms", ack.delay()))
        .with_low_rate_every(section.integer_u32("low_rate_ack_every").unwrap_or(ack.low_rate_every()))
        .with_low_rate_interval(ms(section, "low_rate_interval_ms", ack.low_rate_interval()))
        .with_relaxed_delay(ms(section, "relaxed_ack_delay_ms", ack.relaxed_delay()))
        .with_relaxed_max_loss(section.number("relaxed_ack_max_loss").unwrap_or(ack.relaxed_max_loss()));
    let config = config
        .with_mss(section.integer_as("mss_bytes").unwrap_or(config.mss()))
        .with_receive_buffer(section.integer("receive_buffer_bytes").unwrap_or(config.receive_buffer()))
        .with_ack(ack)
        .with_loss_detection(detect.with_reordering_divisor(
            section.integer_u32("reordering_window_divisor").unwrap_or(detect.reordering_divisor()),
        ))
        .with_control(control(config.control(), section));
    if section.has("user_timeout_s") {
        config.with_silence_limit(section.integer("user_timeout_s").map(Duration::from_secs))
    } else {
        config
    }
}

fn control(old: ControlConfig, section: Section<'_>) -> ControlConfig {
    let number = |key, old| section.number(key).unwrap_or(old);
    let small = |key, old| section.integer_u32(key).unwrap_or(old);
    old.with_initial_window(small("initial_window", old.initial_window()))
        .with_queue_high(ms(section, "max_queueing_delay_ms", old.queue_high()))
        .with_growth_interval(ms(section, "growth_interval_ms", old.growth_interval()))
        .with_queue_packets(number("max_queueing_delay_packets", old.queue_packets()))
        .with_queue_low(number("empty_queue_fraction", old.queue_low()))
        .with_jitter(number("jitter_weight", old.jitter()))
        .with_decrease_factor(number("decrease_factor", old.decrease_factor()))
        .with_drain_gain(number("drain_gain", old.drain_gain()))
        .with_growth_max(number("max_growth", old.growth_max()))
        .with_headroom(number("headroom", old.headroom()))
        .with_loss_threshold(number("loss_threshold", old.loss_threshold()))
        .with_max_unobserved_loss(number("max_unobserved_loss", old.max_unobserved_loss()))
        .with_competing(competing(old.competing(), section))
}

fn competing(old: CompetingConfig, section: Section<'_>) -> CompetingConfig {
    let small = |key, old| section.integer_u32(key).unwrap_or(old);
    old.with_futile_drains(small("futile_drains", old.futile_drains()))
        .with_drain_fraction(section.number("drain_fraction").unwrap_or(old.drain_fraction()))
        .with_probe_rounds(small("probe_rounds", old.probe_rounds()))
}

fn ms(section: Section<'_>, key: &str, old: Duration) -> Duration {
    section.number(key).map_or(old, |ms| Duration::from_secs_f64(ms * 1e-3))
}
