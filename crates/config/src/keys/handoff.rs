//! Keys of base stations and of the hosts that move between them.

use crate::choice;
use crate::choice::Chosen;
use crate::field::Field;
use crate::schema::Default::{Integer, Number};
use crate::schema::{Key, Literal};
use hopline_proxy::handoff::{Scheme, StartState};

/// Keys of home agents and stations that always have a value.
pub mod cells {
    use super::*;

    /// `scheme`.
    pub const SCHEME: Chosen<Scheme> = choice!(
        "scheme",
        { "multicast" => Scheme::Multicast, "registration" => Scheme::Registration },
        "destination of a mobile host's packets at the home agent: all stations near it, or the registered one (Mobile IP)",
    )
    .with_default("multicast");
    /// `buffer_packets`.
    pub const BUFFER_PACKETS: Field<u64> = Field::integer(
        Key::integer(
            "buffer_packets",
            0,
            65_535,
            "packets that a station buffers for a host at another station",
        )
        .with_default(Integer(12)),
    );
    /// `beacon_s`.
    pub const BEACON_S: Field<f64> = Field::number(
        Key::number("beacon_s", 0.001, 1000.0, "interval of beacons").with_default(Number(1.0)),
    );
    /// `start`.
    pub const START: Chosen<StartState> = choice!(
        "start",
        { "cold" => StartState::Cold, "warm" => StartState::Warm },
        "initial state of a proxy at the new station: empty, or with the buffered packets that the host has",
    )
    .with_default("cold");
}

/// Keys of mobile hosts that always have a value.
pub mod mobile {
    use super::*;

    /// `hysteresis_db`.
    pub const HYSTERESIS_DB: Field<f64> = Field::number(
        Key::number(
            "hysteresis_db",
            0.0,
            100.0,
            "signal strength by which another station must exceed the current one before a handoff",
        )
        .with_default(Number(6.0)),
    );
    /// `beacons`.
    pub const BEACONS: Field<u64> = Field::integer(
        Key::integer("beacons", 1, 8, "consecutive beacons in which it must").with_default(Integer(2)),
    );
    /// `buffering`.
    pub const BUFFERING: Field<u64> = Field::integer(
        Key::integer(
            "buffering",
            0,
            15,
            "number of other stations that buffer packets for it: the strongest",
        )
        .with_default(Integer(1)),
    );
    /// `fast_retransmit`.
    pub const FAST_RETRANSMIT: Key = Key::integer(
        "fast_retransmit",
        0,
        255,
        "repetitions of its last ACKs after a handoff, so that senders do not wait for their timers",
    )
    .default(Literal::Integer(0));
}
