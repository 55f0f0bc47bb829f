//! Keys of a `[[proxy]]` that configure its middlebox, wherever it stands: in a scenario, or behind real
//! packets.

mod neighborhood;
mod times;

use crate::keys;
use crate::schema::Section;
use crate::source::Problem;
use hopline_core::Duration;
use hopline_proxy::dproxy::opaque::{self, DeliveryMode};
use hopline_proxy::snoop::{self, Config, LocalTimer, ModernRules, Rules};
use hopline_proxy::{ack_pacing, arq, dproxy, mtcp, nack};
use hopline_queue::neighborhood_red;
use std::net::IpAddr;
use std::num::{NonZeroU8, NonZeroU16};
use times::seconds;

/// Keys of the rules of the paper and of ns-2 alone.
const CLASSIC_KEYS: &[&str] = &[
    "dup_ack_threshold",
    "persist_ms",
    "duplicate_acks",
    "spurious_acks",
    "marks",
    "old_data",
    "overflow",
    "turn",
];

/// Returns the configuration of Snoop in a section.
///
/// # Errors
///
/// A key of the classic rules with the modern ones.
pub fn snoop(section: &Section<'_>) -> Result<Config, Problem> {
    let mut config = section.get(keys::proxy::PRESET).unwrap_or(Config::modern)();
    set_bounds(section, &mut config);
    section.set_if_given(keys::proxy::HOP_WINDOW, &mut config.hop_window);
    let min_timer = milliseconds(section, "min_timer_ms");
    match &mut config.rules {
        Rules::Modern(ModernRules { min_timer: least, .. }) => {
            if let Some(key) = CLASSIC_KEYS.iter().find(|key| section.has(key)) {
                return Err(Problem::new(format!(
                    "`{key}` with preset = \"modern\", whose rules have no such thing"
                ))
                .at(section.origin_of(key))
                .help("set preset = \"published\" or \"ns2-2.35\", or remove it"));
            }
            *least = min_timer.unwrap_or(*least);
        }
        Rules::Classic(rules) => {
            let (LocalTimer::Smoothed { min, .. } | LocalTimer::Deviation { min, .. }) = &mut rules.timer;
            *min = min_timer.unwrap_or(*min);
            rules.dup_ack_threshold =
                section.integer_as("dup_ack_threshold").unwrap_or(rules.dup_ack_threshold);
            rules.persist_timeout = milliseconds(section, "persist_ms").or(rules.persist_timeout);
            section.set_if_given(keys::proxy::DUPLICATE_ACKS, &mut rules.duplicate_acks);
            section.set_if_given(keys::proxy::SPURIOUS_ACKS, &mut rules.spurious_acks);
            section.set_if_given(keys::proxy::MARKS, &mut rules.sender_retransmissions);
            section.set_if_given(keys::proxy::OLD_DATA, &mut rules.old_data);
            section.set_if_given(keys::proxy::OVERFLOW, &mut rules.overflow);
            section.set_if_given(keys::proxy::TURN, &mut rules.queue_position);
        }
    }
    Ok(config)
}

/// Returns the configuration of M-TCP in a section.
#[must_use]
pub fn mtcp(section: &Section<'_>) -> mtcp::Config {
    let mut config = mtcp::Config::default();
    config.silence_timeout = milliseconds(section, "silence_ms").unwrap_or(config.silence_timeout);
    config.probe_interval = milliseconds(section, "probe_ms").unwrap_or(config.probe_interval);
    config.limits.max_connections =
        section.integer_u32("connections").unwrap_or(config.limits.max_connections);
    config.limits.idle_timeout = seconds(section, "idle_s").unwrap_or(config.limits.idle_timeout);
    config
}

/// Returns the configuration of requests to mobile hosts in a section.
#[must_use]
pub fn nack(section: &Section<'_>) -> nack::Config {
    let mut config = nack::Config::default();
    config.max_requests = section.integer_as("local_limit").unwrap_or(config.max_requests);
    config.min_timer = milliseconds(section, "min_timer_ms").unwrap_or(config.min_timer);
    config.limits.max_connections =
        section.integer_u32("connections").unwrap_or(config.limits.max_connections);
    config.limits.idle_timeout = seconds(section, "idle_s").unwrap_or(config.limits.idle_timeout);
    config
}

/// Returns the configuration of Snoop at a sending host, as a section has it.
#[must_use]
pub fn nack_host(section: &Section<'_>) -> Config {
    let mut config = Config::announcing_host();
    set_bounds(section, &mut config);
    config
}

/// Sets the limits of the cache as a section has them.
fn set_bounds(section: &Section<'_>, config: &mut Config) {
    config.high_water =
        section.integer_as("high_water_packets").and_then(NonZeroU16::new).unwrap_or(config.high_water);
    config.max_local_retransmissions =
        section.integer_as("local_limit").unwrap_or(config.max_local_retransmissions);
    config.limits.max_connections =
        section.integer_u32("connections").unwrap_or(config.limits.max_connections);
    config.limits.idle_timeout = seconds(section, "idle_s").unwrap_or(config.limits.idle_timeout);
}

/// Returns the configuration of ACK pacing in a section.
#[must_use]
pub fn ack_pacing(section: &Section<'_>) -> ack_pacing::Config {
    let mut config = ack_pacing::Config::default();
    config.max_delay = milliseconds(section, "max_hold_ms").unwrap_or(config.max_delay);
    config.burst_gap = milliseconds(section, "burst_gap_ms").unwrap_or(config.burst_gap);
    config.max_delayed_acks =
        section.integer_as("held_packets").and_then(NonZeroU16::new).unwrap_or(config.max_delayed_acks);
    config.max_total_delayed_acks =
        section.integer_u32("high_water_packets").unwrap_or(config.max_total_delayed_acks);
    config.limits.max_connections =
        section.integer_u32("connections").unwrap_or(config.limits.max_connections);
    config.limits.idle_timeout = seconds(section, "idle_s").unwrap_or(config.limits.idle_timeout);
    config
}

/// Returns the configuration of Neighborhood RED in a section, on a channel of this rate.
///
/// # Errors
///
/// Keys that do not go together.
pub fn neighborhood_red(
    section: &Section<'_>,
    data_rate_bps: u64,
) -> Result<neighborhood_red::Config, Problem> {
    neighborhood::config(section, data_rate_bps)
}

/// Returns the configuration of D-Proxy in a section, at `local`, with this peer and key.
#[must_use]
pub fn d_proxy(
    section: &Section<'_>,
    local: impl Into<IpAddr>,
    peer: impl Into<IpAddr>,
    key: dproxy::Key,
) -> dproxy::Config {
    let mut config = dproxy::Config::new(local, peer, key);
    recovery(section, &mut config.recovery);
    section.set_if_given(keys::proxy::TURN, &mut config.queue_position);
    config.cache.packets_per_flow =
        section.integer_as("high_water_packets").unwrap_or(config.cache.packets_per_flow);
    section.set_if_given(keys::proxy::EXPANSION, &mut config.request_expansion);
    if section.get(keys::proxy::ORDER) == Some(DeliveryMode::Any) {
        config.hole_delivery = dproxy::HoleDelivery::OutOfOrder;
    }
    if section.get(keys::proxy::OVERFLOW) == Some(snoop::QueueDropHandling::Cached) {
        config.overflow = dproxy::QueueDropHandling::Replayed;
    }
    config.max_waiting_per_flow = section.integer_as("held_packets").unwrap_or(config.max_waiting_per_flow);
    config.tail_probe_delay = milliseconds(section, "tail_probe_ms");
    config.limits.max_connections =
        section.integer_u32("connections").unwrap_or(config.limits.max_connections);
    config.limits.idle_timeout = seconds(section, "idle_s").unwrap_or(config.limits.idle_timeout);
    config
}

/// Returns the configuration of D-Proxy's opaque mode by a section, over a link of this rate, if it is known.
#[must_use]
pub fn opaque(section: &Section<'_>, rate_bps: Option<u64>) -> opaque::Config {
    let mut config = opaque::Config::default();
    recovery(section, &mut config.recovery);
    section.set_if_given(keys::proxy::TURN, &mut config.queue_position);
    config.max_cached_packets =
        section.integer_u32("high_water_packets").unwrap_or(config.max_cached_packets);
    section.set_if_given(keys::proxy::ORDER, &mut config.order);
    let tail_probe = milliseconds(section, "tail_probe_ms");
    config.tail_probe_delay = tail_probe.or_else(|| Some(opaque::tail_probe_delay(rate_bps)));
    if section.get(keys::proxy::PARITY) == Some(true) {
        let [least, most] = [2, 32].map(|packets| NonZeroU8::new(packets).expect("not zero"));
        config.parity = opaque::Parity::Adaptive { min_group: least, max_group: most };
    }
    config
}

/// Returns the configuration in a section of a link that acknowledges each frame.
#[must_use]
pub fn arq(section: &Section<'_>) -> arq::Config {
    let mut config = arq::Config::default();
    config.max_transmissions =
        section.integer_as("attempts").and_then(NonZeroU8::new).unwrap_or(config.max_transmissions);
    section.set_if_given(keys::arq::ORDER, &mut config.order);
    config.parity_interval = section.integer_as("parity_every").and_then(NonZeroU8::new);
    if let Some(ms) = section.number("min_timer_ms") {
        config.min_timer = Duration::from_secs_f64(ms * 1e-3);
    }
    config
}

fn recovery(section: &Section<'_>, recovery: &mut dproxy::RecoveryConfig) {
    recovery.max_timer_requests =
        section.integer_as("local_limit").and_then(NonZeroU8::new).unwrap_or(recovery.max_timer_requests);
    section.set_if_given(keys::proxy::TIMEOUTS, &mut recovery.timeout_rule);
    section.set_if_given(keys::proxy::ORDER_RULE, &mut recovery.order_rule);
    recovery.max_order_requests =
        section.integer_as("order_requests").and_then(NonZeroU8::new).or(recovery.max_order_requests);
    section.set_if_given(keys::proxy::RECOVERY_SAMPLES, &mut recovery.sample_rule);
    recovery.min_average = milliseconds(section, "min_timer_ms").unwrap_or(recovery.min_average);
    recovery.max_wait = milliseconds(section, "reordering_timeout_ms").unwrap_or(recovery.max_wait);
    recovery.reordering_threshold =
        section.integer_as("reordering_threshold_packets").unwrap_or(recovery.reordering_threshold);
}

fn milliseconds(section: &Section<'_>, key: &str) -> Option<Duration> {
    section.number(key).map(|ms| Duration::from_secs_f64(ms * 1e-3))
}
