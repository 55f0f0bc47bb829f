//! Keys of middleboxes in the path of TCP.

use crate::choice;
use crate::choice::Choice;
use crate::schema::{Exception, Key, Literal};
use hopline_proxy::dproxy::opaque::{self, DeliveryMode};
use hopline_proxy::dproxy::{
    CacheConfig, OrderRule, RecoveryConfig, RequestExpansion, SampleRule, TimeoutRule,
};
use hopline_proxy::snoop::{
    Config, DuplicateAcks, OldData, PassPolicy, QueueDropHandling, QueuePosition, SenderRetransmissionMarks,
};
use hopline_proxy::{TableLimits, ack_pacing, hop_window, mtcp};

/// Constructor of a preset of Snoop.
pub type SnoopPreset = fn() -> Config;

/// Keys of a proxy: those that always have a value, and those that choose.
pub mod proxy {
    use super::*;

    /// `timeouts`.
    pub const TIMEOUTS: Choice<TimeoutRule> = choice!(
        "timeouts",
        {
            "successive" => TimeoutRule::Successive,
            "cumulative" => TimeoutRule::Cumulative,
            "off" => TimeoutRule::Off,
        },
        "of d-proxy and opaque: times of repeated requests: after 2, 3 and 4 recovery times each, or after the first request, or never (C2)",
    ).default("successive");
    /// `order_rule`.
    pub const ORDER_RULE: Choice<OrderRule> = choice!(
        "order_rule",
        { "on" => OrderRule::On, "off" => OrderRule::Off },
        "of d-proxy and opaque: whether packets that a replay has overtaken are requested again at once",
    )
    .default("on");
    /// `order_requests`.
    pub const ORDER_REQUESTS: Key = Key::integer(
        "order_requests",
        1,
        255,
        "of d-proxy and opaque: most requests for a packet by the order rule, beside those of local_limit (C7)",
    ).derived("no limit but reordering_timeout_ms")
    .example("12");
    /// `recovery_samples`.
    pub const RECOVERY_SAMPLES: Choice<SampleRule> = choice!(
        "recovery_samples",
        { "all" => SampleRule::All, "one-request" => SampleRule::SingleRequest },
        "of d-proxy and opaque: recoveries in the average recovery time (C1); all: each from its first request to its end, also failed ones; one-request: those with one request",
    ).default_except("one-request", &[Exception::new("of d-proxy", Literal::Word("all")), Exception::new("over Linux", Literal::Word("one-request"))]);
    /// `expansion`.
    pub const EXPANSION: Choice<RequestExpansion> = choice!(
        "expansion",
        { "on" => RequestExpansion::On, "off" => RequestExpansion::Off },
        "of d-proxy: whether each missing packet is requested, or the first one alone (C14)",
    )
    .default("on");
    /// `order`.
    pub const ORDER: Choice<DeliveryMode> = choice!(
        "order",
        { "kept" => DeliveryMode::InOrder, "any" => DeliveryMode::Any },
        "of d-proxy and opaque: whether packets wait for earlier ones that are repaired",
    )
    .default("kept");
    /// `parity`.
    pub const PARITY: Choice<bool> = choice!(
        "parity",
        { "off" => false, "adaptive" => true },
        "of opaque: parity packets that restore a lost one, adapted to the losses, one for 2 to 32",
    )
    .default("off");
    /// `preset`.
    pub const PRESET: Choice<SnoopPreset> = choice!(
        "preset",
        {
            "modern" => Config::modern as SnoopPreset,
            "published" => Config::published,
            "ns2-2.35" => Config::ns2,
        },
        "of snoop: starting point; modern: for senders with SACK, RACK and timestamps; published: the paper's",
    ).default("modern");
    /// `hop_window`.
    pub const HOP_WINDOW: Choice<Option<hop_window::Config>> = choice!(
        "hop_window",
        { "off" => None, "on" => Some(hop_window::Config::DEFAULT) },
        "of snoop: whether packets wait here until the last hop can send them, and not in a queue beyond, with unobserved drops",
    ).default_except("off", &[Exception::new("over Linux with preset modern and without rate_mbps", Literal::Word("on"))]);
    /// `duplicate_acks`.
    pub const DUPLICATE_ACKS: Choice<DuplicateAcks> = choice!(
        "duplicate_acks",
        { "same-number" => DuplicateAcks::SameNumber, "same-window" => DuplicateAcks::SameWindow },
        "of snoop, not modern: ACKs without data and with the last number that are duplicates (S1): all, or those with an unchanged window, as senders count them (RFC 5681)",
    ).default("same-number");
    /// `spurious_acks`.
    pub const SPURIOUS_ACKS: Choice<PassPolicy> = choice!(
        "spurious_acks",
        { "absorbed" => PassPolicy::Absorb, "forwarded" => PassPolicy::Forward },
        "of snoop, not modern: ACKs below the last one (S2)",
    )
    .default_except("absorbed", &[Exception::new("of ns2-2.35", Literal::Word("forwarded"))]);
    /// `marks`.
    pub const MARKS: Choice<SenderRetransmissionMarks> = choice!(
        "marks",
        {
            "uncached" => SenderRetransmissionMarks::Uncached,
            "uncached-retransmissions" => SenderRetransmissionMarks::UncachedRetransmissions,
            "retransmissions" => SenderRetransmissionMarks::Retransmissions,
        },
        "of snoop, not modern: packets that are marked as retransmitted by the sender (S9), so that their duplicate ACKs pass; uncached: packets out of sequence that are not kept; uncached-retransmissions: the same without new packets beyond a gap; retransmissions: all repeated packets",
    ).default_except("uncached", &[Exception::new("of ns2-2.35", Literal::Word("retransmissions"))]);
    /// `old_data`.
    pub const OLD_DATA: Choice<OldData> = choice!(
        "old_data",
        {
            "acknowledged" => OldData::Acknowledged,
            "while-alive" => OldData::AcknowledgedWhileAlive,
            "forwarded" => OldData::Forwarded,
        },
        "of snoop, not modern: repeated data that the mobile host has, keep-alives included; acknowledged: by the proxy, if the host was heard within 100 s, otherwise forwarded; while-alive: the same with 2 s",
    ).default_except("acknowledged", &[Exception::new("of ns2-2.35", Literal::Word("forwarded"))]);
    /// `turn`.
    pub const TURN: Choice<QueuePosition> = choice!(
        "turn",
        { "first" => QueuePosition::Front, "last" => QueuePosition::Back },
        "of snoop, not modern: position of a retransmitted packet in the queue of the last hop, of d-proxy and opaque: position of requests and retransmissions in the queue of the link (C16)",
    ).default_except("first", &[Exception::new("of ns2-2.35", Literal::Word("last")), Exception::new("of d-proxy", Literal::Word("last")), Exception::new("over Linux", Literal::Word("first")), Exception::new("of opaque", Literal::Word("first"))]);
    /// `overflow`.
    pub const OVERFLOW: Choice<QueueDropHandling> = choice!(
        "overflow",
        { "kept" => QueueDropHandling::Cached, "left-to-sender" => QueueDropHandling::LeftToSender },
        "of snoop, not modern: packets that the queue of the last hop refuses, of d-proxy: packets that the queue of the link refuses",
    ).default_except("kept", &[Exception::new("of ns2-2.35 and d-proxy", Literal::Word("left-to-sender"))]);
    /// `high_water_packets`.
    pub const HIGH_WATER_PACKETS: Key = Key::integer(
        "high_water_packets",
        1,
        65_535,
        "of snoop, d-proxy and nack-host: packets kept of a connection, of opaque: packets kept in total, of ack-pacing: waiting ACKs, in total",
    ).default_except(Literal::Integer(Config::modern().high_water.get() as u64), &[Exception::new("of published", Literal::Integer(Config::published().high_water.get() as u64)), Exception::new("of ns2-2.35", Literal::Integer(Config::ns2().high_water.get() as u64)), Exception::new("of d-proxy", Literal::Integer(CacheConfig::DEFAULT.packets_per_flow as u64)), Exception::new("of opaque", Literal::Integer(opaque::Config::DEFAULT.max_cached_packets as u64)), Exception::new("of nack-host", Literal::Integer(Config::modern().high_water.get() as u64)), Exception::new("of ack-pacing", Literal::Integer(ack_pacing::Config::DEFAULT.max_total_delayed_acks as u64))]);
    /// `max_local_retransmissions`.
    pub const LOCAL_LIMIT: Key = Key::integer(
        "local_limit",
        1,
        255,
        "of snoop: local retransmissions of a packet, then it is left to the sender (S3), of nack: requests for a packet, then it is left to the sender, of nack-host: retransmissions of a packet, then it is left to the sender, of d-proxy and opaque: requests for a packet by its timer, the first one included, then it is left to the sender",
    ).default_except(Literal::Integer(Config::modern().max_local_retransmissions as u64), &[Exception::new("of d-proxy", Literal::Integer(RecoveryConfig::DEFAULT.max_timer_requests.get() as u64)), Exception::new("of opaque", Literal::Integer(opaque::Config::DEFAULT.recovery.max_timer_requests.get() as u64))]);
    /// `dup_ack_threshold`.
    pub const DUP_ACK_THRESHOLD: Key = Key::integer(
        "dup_ack_threshold",
        1,
        255,
        "of snoop, not modern: duplicate ACK that indicates a loss (S4)",
    )
    .default_except(Literal::Integer(1), &[Exception::new("of ns2-2.35", Literal::Integer(2))]);
    /// `min_timer_ms`.
    pub const MIN_TIMER_MS: Key = Key::number(
        "min_timer_ms",
        0.001,
        60_000.0,
        "of snoop: least wait for an ACK (S5), of nack: least wait for a packet, of d-proxy and opaque: least average of the time from a request to its replay (C1)",
    ).default_except(Literal::Number(5.0), &[Exception::new("of published", Literal::Number(40.0)), Exception::new("of ns2-2.35", Literal::Number(100.0)), Exception::new("of opaque", Literal::Number(2.0)), Exception::new("of d-proxy", Literal::Number(0.001)), Exception::new("over Linux", Literal::Number(2.0))]);
    /// `persist_ms`.
    pub const PERSIST_MS: Key = Key::number(
        "persist_ms",
        0.001,
        1e6,
        "of snoop, not modern: silence after which the first packet is retransmitted",
    )
    .default_except(Literal::Number(200.0), &[Exception::new("of ns2-2.35", Literal::Text("never"))]);
    /// `max_delayed_acks`.
    pub const HELD_PACKETS: Key = Key::integer(
        "held_packets",
        1,
        65_535,
        "of d-proxy: packets of a flow that wait for earlier ones (C5), of ack-pacing: waiting ACKs of a connection",
    ).default(Literal::Integer(ack_pacing::Config::DEFAULT.max_delayed_acks.get() as u64));
    /// `reordering_timeout_ms`.
    pub const PATIENCE_MS: Key = Key::number(
        "reordering_timeout_ms",
        0.001,
        60_000.0,
        "of d-proxy and opaque: longest wait of packets for missing ones (C5)",
    )
    .formerly(&["patience_ms"])
    .default(Literal::milliseconds(RecoveryConfig::DEFAULT.max_wait));
    /// `reordering_threshold_packets`.
    pub const GRACE_PACKETS: Key = Key::integer(
        "reordering_threshold_packets",
        0,
        2,
        "of d-proxy and opaque: packets that may overtake one before it is requested (C11)",
    )
    .formerly(&["grace_packets"])
    .default(Literal::Integer(RecoveryConfig::DEFAULT.reordering_threshold as u64));
    /// `tail_probe_ms`.
    pub const TAIL_PROBE_MS: Key = Key::number(
        "tail_probe_ms",
        0.001,
        60_000.0,
        "of d-proxy and opaque: silence after which a tail probe names the last packet (C9)",
    ).derived("never, of opaque: time of eight packets of 1500 bytes at the rate of the link (over Linux rate_mbps), from 4 to 100, and 4 where it is not known").example("4");
    /// `silence_ms`.
    pub const SILENCE_MS: Key = Key::number(
        "silence_ms",
        0.001,
        1e6,
        "of mtcp: silence of a host with data in flight after which its sender has to wait",
    )
    .default(Literal::milliseconds(mtcp::Config::DEFAULT.silence_timeout));
    /// `probe_ms`.
    pub const PROBE_MS: Key =
        Key::number("probe_ms", 0.001, 1e6, "of mtcp: interval of probes for the host's return")
            .default(Literal::milliseconds(mtcp::Config::DEFAULT.probe_interval));
    /// `connections`.
    pub const CONNECTIONS: Key = Key::integer("connections", 1, 1 << 24, "most connections with state")
        .default(Literal::Integer(TableLimits::DEFAULT.max_connections as u64));
    /// `idle_s`.
    pub const IDLE_S: Key = Key::number(
        "idle_s",
        0.001,
        1e6,
        "silence after which a connection's state is removed, of split: silence after which a connection is reset",
    )
    .default_except(
        Literal::seconds(TableLimits::DEFAULT.idle_timeout),
        &[Exception::new("of split", Literal::Number(7440.0))],
    );
}
