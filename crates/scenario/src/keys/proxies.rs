//! Middleboxes in the path of TCP: `[[proxy]]`.

use super::{DOOR, TCP, TPA, TRANSPORTS};
use crate::choice;
use crate::choice::Chosen;
use crate::field::{self, Field};
use crate::schema::{Key, Literal};

/// Kind of a `[[proxy]]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Nothing stands there.
    None,
    /// Snoop.
    Snoop,
    /// M-TCP's supervisor host.
    Mtcp,
    /// Middlebox that asks mobile hosts for packets that they have sent.
    Nack,
    /// Middlebox that paces bursts of ACKs.
    AckPacing,
    /// Connections split in two.
    Split,
    /// D-Proxy, at both ends of a link.
    DProxy,
    /// The same for all packets that cross the link.
    Opaque,
}

/// Keys of [`PROXY`]: those that always have a value, and those that choose.
pub mod proxy {
    use super::*;
    pub use hopline_config::keys::proxy::*;

    /// `node`.
    pub const NODE: Field<field::Word> =
        Field::word(Key::text("node", "name of the node with the middlebox in its path").required());
    /// `kind`.
    pub const KIND: Chosen<Kind> = choice!(
        "kind",
        {
            "none" => Kind::None,
            "snoop" => Kind::Snoop,
            "split" => Kind::Split,
            "mtcp" => Kind::Mtcp,
            "nack" => Kind::Nack,
            "ack-pacing" => Kind::AckPacing,
            "d-proxy" => Kind::DProxy,
            "opaque" => Kind::Opaque,
        },
        "middlebox; none: no middlebox; split: split connections (I-TCP); mtcp: senders wait while a mobile host cannot be reached (M-TCP); nack: requests lost packets from mobile hosts; ack-pacing: spreads bursts of ACKs from mobile hosts; d-proxy: node and peer repair losses of TCP on the link between them; opaque: the same for any packets",
    )
    .required();
    /// `max_hold_ms`.
    pub const MAX_HOLD_MS: Key = Key::number(
        "max_hold_ms",
        0.001,
        60_000.0,
        "of ack-pacing: longest wait of an ACK, and longest time of a spread burst",
    )
    .default(Literal::Number(20.0));
    /// `burst_gap_ms`.
    pub const BURST_GAP_MS: Key = Key::number(
        "burst_gap_ms",
        0.001,
        60_000.0,
        "of ack-pacing: an ACK within this time of the previous one is of the same burst",
    )
    .default(Literal::Number(0.2));
    /// `buffer_bytes`.
    pub const BUFFER_BYTES: Key = Key::integer(
        "buffer_bytes",
        1,
        1 << 40,
        "of split: buffered bytes of each direction of a connection; a full segment at least",
    )
    .default(Literal::Integer(1_048_576));
    /// `handover_s`.
    pub const HANDOVER_S: Key = Key::number(
        "handover_s",
        0.001,
        1e6,
        "of split at a station of [cells]: longest wait for the connection state of a host from another station; then packets of unknown connections are answered with a reset",
    ).default(Literal::Number(2.0));
}

/// `[[proxy]]`. S1 to S13: see docs/protocols/snoop.md.
pub const PROXY: &[Key] = &[
    proxy::NODE.key,
    proxy::KIND.key,
    Key::texts("mobile", "names of the mobile hosts that it serves, however they are reached")
        .derived("hosts beyond the radios of its node"),
    proxy::PRESET.key,
    proxy::HOP_WINDOW.key,
    proxy::HIGH_WATER_PACKETS,
    proxy::LOCAL_LIMIT,
    proxy::DUP_ACK_THRESHOLD,
    proxy::MIN_TIMER_MS,
    proxy::PERSIST_MS,
    proxy::DUPLICATE_ACKS.key,
    proxy::SPURIOUS_ACKS.key,
    proxy::MARKS.key,
    proxy::OLD_DATA.key,
    proxy::OVERFLOW.key,
    proxy::TURN.key,
    Key::text("peer", "of d-proxy and opaque: name of the node at the other end of the link"),
    proxy::TIMEOUTS.key,
    proxy::ORDER_RULE.key,
    proxy::ORDER_REQUESTS,
    proxy::RECOVERY_SAMPLES.key,
    proxy::EXPANSION.key,
    proxy::ORDER.key,
    proxy::HELD_PACKETS,
    proxy::MAX_HOLD_MS,
    proxy::BURST_GAP_MS,
    proxy::PATIENCE_MS,
    proxy::GRACE_PACKETS,
    proxy::TAIL_PROBE_MS,
    proxy::PARITY.key,
    Key::word(
        "transport",
        TRANSPORTS,
        "of split: transport over the last hop; the wired half has the transport of the top level",
    )
    .derived("the top level's"),
    Key::table("tcp", TCP, "of split: TCP over the last hop, over [tcp]"),
    Key::table("door", DOOR, "of split: TCP-DOOR over the last hop, over [door]"),
    Key::table("tpa", TPA, "of split: TPA over the last hop, over [tpa]"),
    proxy::BUFFER_BYTES,
    proxy::SILENCE_MS,
    proxy::HANDOVER_S,
    proxy::PROBE_MS,
    proxy::CONNECTIONS,
    proxy::IDLE_S,
];
