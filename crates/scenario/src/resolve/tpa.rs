//! `[tpa]` and `flow.tpa`.

use super::super::keys::{self, Protocol};
use super::super::schema::Section;
use super::super::source::Problem;
use super::{pacing, seconds};
use hopline_core::Duration;
use hopline_sim::spec::FailureNotification;
use hopline_transport::pacing::Pacing;
use hopline_transport::tpa::{Config, Notification};

/// Returns the configuration of a flow over `transport`: what the transport is, then `[tpa]` of the
/// `scenario`, then `own` (`flow.tpa`).
pub(super) fn resolve(transport: &str, scenario: Section<'_>, own: Section<'_>) -> Result<Config, Problem> {
    let general = scenario.section("tpa");
    let mut config = match transport {
        "tpa" | "tpa-ap" => Config::TPA_3,
        "tpa-star" => Config::tpa_star(Config::TPA_3.cwnd_max),
        other => unreachable!("the key table knows no transport {other}"),
    };
    // There is no application that could be notified that a flow gave up, or start it again.
    (config.syn_retries, config.silence_limit) = (None, None);
    if pacing::is_paced(transport, general, own)? {
        config.pacing = Pacing::Adaptive(pacing::resolve(scenario)?);
    }
    for section in [general, own] {
        apply(&mut config, section);
        apply_acks(&mut config, section);
        apply_rto(&mut config, section);
        apply_failures(&mut config, section);
    }
    check_notification(config.failures.notification, scenario.section("routing"), general, own)?;
    let section = if own.is_given() { own } else { general };
    config
        .validate()
        .map_err(|e| Problem::new(format!("TPA parameters do not fit together: {e}")).at(section.origin))?;
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

fn apply(config: &mut Config, section: Section<'_>) {
    set_small(section, "cwnd_max", &mut config.cwnd_max);
    set_small(section, "block_segments", &mut config.block_segments);
    set_ms(section, "block_fill_ms", &mut config.block_fill);
    if let Some(mss) = section.narrow("mss_bytes") {
        config.mss = mss;
    }
    section.set(keys::tpa::ROUNDS, &mut config.rounds);
    if let Some(bytes) = section.small("receive_buffer_bytes") {
        config.receive_buffer = bytes;
    }
    if section.has("user_timeout_s") {
        config.silence_limit = section.integer("user_timeout_s").map(Duration::from_secs);
    }
}

fn apply_acks(config: &mut Config, section: Section<'_>) {
    let ack = &mut config.ack;
    set_ms(section, "ack_timer_ms", &mut ack.timer);
    section.set(keys::tpa::ACK_EVERY, &mut ack.every);
    section.set(keys::tpa::COMPLETE_BLOCK, &mut ack.complete_block);
    section.set(keys::tpa::ECHO, &mut ack.echo);
}

fn apply_rto(config: &mut Config, section: Section<'_>) {
    let rto = &mut config.rto;
    for (key, field) in
        [("initial_rto_s", &mut rto.initial), ("min_rto_s", &mut rto.min), ("max_rto_s", &mut rto.max)]
    {
        if let Some(value) = seconds(&section, key) {
            *field = value;
        }
    }
    for (key, field) in [("g", &mut rto.g), ("h", &mut rto.h), ("g1", &mut rto.g1), ("h1", &mut rto.h1)] {
        if let Some(weight) = section.number(key) {
            *field = weight;
        }
    }
    set_small(section, "th_rc", &mut rto.th_rc);
    set_small(section, "n_rc", &mut rto.n_rc);
}

fn apply_failures(config: &mut Config, section: Section<'_>) {
    let failures = &mut config.failures;
    section.set(keys::tpa::NOTIFICATION, &mut failures.notification);
    set_small(section, "th_cong", &mut failures.th_cong);
    set_small(section, "th_ack", &mut failures.th_ack);
    if section.has("th_route") {
        failures.th_route = section.narrow("th_route");
    }
    section.set(keys::tpa::ROW_ENDS, &mut failures.row_ends);
    section.set(keys::tpa::SIMULTANEOUS, &mut failures.simultaneous);
    section.set(keys::tpa::CONGESTED_BACKOFF, &mut failures.congested_backoff);
    section.set(keys::tpa::FREEZE_EXIT, &mut failures.freeze_exit);
    section.set(keys::tpa::MERGED_EXIT, &mut failures.merged_exit);
}

fn set_small(section: Section<'_>, key: &str, field: &mut u8) {
    *field = section.narrow(key).unwrap_or(*field);
}

fn set_ms(section: Section<'_>, key: &str, field: &mut Duration) {
    if let Some(ms) = section.integer(key) {
        *field = Duration::from_millis(ms);
    }
}
