//! Retransmission by a link itself.

use crate::choice;
use crate::choice::{Choice, Chosen};
use crate::schema::{Key, Literal};
use hopline_proxy::arq::{Config, DeliveryMode};

const DEFAULT: Config = Config::DEFAULT;

/// Link-layer retransmission of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArqKind {
    /// It does not.
    None,
    /// It sends lost packets again, selectively.
    Selective,
}

/// Keys of [`ARQ`] that always have a value, and those that choose.
pub mod arq {
    use super::*;

    /// `kind`.
    pub const KIND: Chosen<ArqKind> = choice!(
        "kind",
        { "none" => ArqKind::None, "selective" => ArqKind::Selective },
        "whether the link retransmits losses",
    )
    .with_default("none");
    /// `order`.
    pub const ORDER: Choice<DeliveryMode> = choice!(
        "order",
        { "kept" => DeliveryMode::InOrder, "any" => DeliveryMode::Any },
        "whether packets wait for earlier ones that are repaired",
    )
    .default("kept");
}

/// `link.arq`.
pub const ARQ: &[Key] = &[
    arq::KIND.key,
    Key::integer("attempts", 1, 255, "transmissions of a packet, then it is given up")
        .default(Literal::Integer(DEFAULT.max_transmissions.get() as u64)),
    arq::ORDER.key,
    Key::integer(
        "parity_every",
        1,
        255,
        "packets after which a parity packet follows, which restores any one of them",
    )
    .derived("no parity"),
    Key::number("min_timer_ms", 0.001, 60_000.0, "least wait for an acknowledgment")
        .default(Literal::milliseconds(DEFAULT.min_timer)),
];
