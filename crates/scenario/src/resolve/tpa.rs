//! `[tpa]` and `flow.tpa`.

use super::super::keys::{self, Protocol};
use super::super::schema::Section;
use super::broken_rule::{FieldKeys, broken_rule};
use super::{pacing, seconds};
use hopline_config::source::Problem;
use hopline_core::Duration;
use hopline_sim::spec::FailureNotification;
use hopline_transport::pacing::Pacing;
use hopline_transport::tpa::{AckConfig, Config, FailureConfig, Notification, RtoConfig};

/// Keys of the fields that have rules beyond the range of a key.
const RULE_KEYS: FieldKeys = &[
    ("rto.min", "min_rto_s"),
    ("rto.max", "max_rto_s"),
    ("th_route", "th_route"),
    ("receive_buffer", "receive_buffer_bytes"),
];

/// Returns the configuration of a flow over `transport`: what the transport is, then `[tpa]` of the
/// `scenario`, then `own` (`flow.tpa`).
pub(super) fn resolve(transport: &str, scenario: Section<'_>, own: Section<'_>) -> Result<Config, Problem> {
    let general = scenario.section("tpa");
    let config = match transport {
        "tpa" | "tpa-ap" => Config::TPA_3,
        "tpa-star" => Config::tpa_star(Config::TPA_3.cwnd_max()),
        other => unreachable!("the key table knows no transport {other}"),
    };
    // There is no application that could be notified that a flow gave up, or start it again.
    let mut config = config.with_syn_retries(None).with_silence_limit(None);
    if pacing::is_paced(transport, general, own)? {
        config = config.with_pacing(Pacing::Adaptive(pacing::resolve(scenario)?));
    }
    for section in [general, own] {
        config = apply(config, section);
    }
    check_notification(config.failures().notification(), scenario.section("routing"), general, own)?;
    config.validate().map_err(|e| broken_rule(&e, RULE_KEYS, [general, own]))?;
    Ok(config)
}

/// Refuses a sender that is not notified of anything, and one that would wait in silence for a return of
/// which it is never notified.
fn check_notification(
    notification: Notification,
    routing: Section<'_>,
    general: Section<'_>,
    own: Section<'_>,
) -> Result<(), Problem> {
    let section = if own.has("notification") { own } else { general };
    let word = section.word("notification").unwrap_or_default();
    let protocol = keys::of_routing::PROTOCOL.word(&routing);
    let (problem, help) = match (notification, routing.get(keys::of_routing::PROTOCOL)) {
        (Notification::None, _) => return Ok(()),
        _ if routing.get(keys::of_routing::FAILURE_NOTIFICATION) == FailureNotification::None => (
            "acts on being told of lost routes, and nothing tells".to_owned(),
            "set routing.failure_notification = \"elfn\"",
        ),
        (Notification::Elfn, _) | (Notification::ElfnAndRecovery, Protocol::Olsr) => return Ok(()),
        // TPA §3.3: where the network layer has no re-establishment messages, the sender probes.
        (Notification::ElfnAndRecovery, Protocol::Aodv | Protocol::Dsr) => (
            format!("waits in silence, and {protocol} looks for a route only when there is a packet to send"),
            "set notification = \"elfn\", by which the sender probes, or routing.protocol = \"olsr\"",
        ),
        (Notification::ElfnAndRecovery, Protocol::Static) => (
            "waits in silence, and static routes tell of no return".to_owned(),
            "set notification = \"elfn\", by which the sender probes, or routing.protocol = \"olsr\"",
        ),
    };
    Err(Problem::new(format!("notification = \"{word}\" {problem}"))
        .at(section.origin_of("notification"))
        .help(help))
}

/// Returns the configuration with the keys of a section. A key that is left out keeps the value of `config`.
fn apply(config: Config, section: Section<'_>) -> Config {
    let small = |key, old| section.integer_as(key).unwrap_or(old);
    let silence_limit = match section.has("user_timeout_s") {
        true => section.integer("user_timeout_s").map(Duration::from_secs),
        false => config.silence_limit(),
    };
    config
        .with_cwnd_max(small("cwnd_max", config.cwnd_max()))
        .with_block_segments(small("block_segments", config.block_segments()))
        .with_block_fill(ms(section, "block_fill_ms", config.block_fill()))
        .with_mss(section.integer_as("mss_bytes").unwrap_or(config.mss()))
        .with_rounds(section.get(keys::tpa::ROUNDS).unwrap_or(config.rounds()))
        .with_receive_buffer(section.integer_u32("receive_buffer_bytes").unwrap_or(config.receive_buffer()))
        .with_silence_limit(silence_limit)
        .with_ack(ack(config.ack(), section))
        .with_rto(rto(config.rto(), section))
        .with_failures(failures(config.failures(), section))
}

fn ack(old: AckConfig, section: Section<'_>) -> AckConfig {
    old.with_timer(ms(section, "ack_timer_ms", old.timer()))
        .with_every(section.get(keys::tpa::ACK_EVERY).unwrap_or(old.every()))
        .with_complete_block(section.get(keys::tpa::COMPLETE_BLOCK).unwrap_or(old.complete_block()))
        .with_echo(section.get(keys::tpa::ECHO).unwrap_or(old.echo()))
}

fn rto(old: RtoConfig, section: Section<'_>) -> RtoConfig {
    let small = |key, old| section.integer_as(key).unwrap_or(old);
    let weight = |key, old| section.number(key).unwrap_or(old);
    let time = |key, old| seconds(&section, key).unwrap_or(old);
    old.with_initial(time("initial_rto_s", old.initial()))
        .with_min(time("min_rto_s", old.min()))
        .with_max(time("max_rto_s", old.max()))
        .with_g(weight("g", old.g()))
        .with_h(weight("h", old.h()))
        .with_g1(weight("g1", old.g1()))
        .with_h1(weight("h1", old.h1()))
        .with_th_rc(small("th_rc", old.th_rc()))
        .with_n_rc(small("n_rc", old.n_rc()))
}

fn failures(old: FailureConfig, section: Section<'_>) -> FailureConfig {
    let small = |key, old| section.integer_as(key).unwrap_or(old);
    let th_route = if section.has("th_route") { section.integer_as("th_route") } else { old.th_route() };
    let backoff = section.get(keys::tpa::CONGESTED_BACKOFF).unwrap_or(old.congested_backoff());
    old.with_notification(section.get(keys::tpa::NOTIFICATION).unwrap_or(old.notification()))
        .with_th_cong(small("th_cong", old.th_cong()))
        .with_th_ack(small("th_ack", old.th_ack()))
        .with_th_route(th_route)
        .with_count_reset(section.get(keys::tpa::ROW_ENDS).unwrap_or(old.count_reset()))
        .with_simultaneous(section.get(keys::tpa::SIMULTANEOUS).unwrap_or(old.simultaneous()))
        .with_congested_backoff(backoff)
        .with_freeze_exit(section.get(keys::tpa::FREEZE_EXIT).unwrap_or(old.freeze_exit()))
        .with_merged_exit(section.get(keys::tpa::MERGED_EXIT).unwrap_or(old.merged_exit()))
}

fn ms(section: Section<'_>, key: &str, old: Duration) -> Duration {
    section.integer(key).map_or(old, Duration::from_millis)
}
