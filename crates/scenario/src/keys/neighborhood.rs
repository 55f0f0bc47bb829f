//! Nodes that abuse Neighborhood RED: `[[notice_flood]]`.

use super::super::schema::Default::{Number, Word};
use super::{Key, MAX_S};
use crate::field::{self, Field};

/// Keys of [`NOTICE_FLOOD`] that always have a value.
pub mod notice_flood {
    use super::*;

    /// `node`.
    pub const NODE: Field<field::Word> = Field::word(
        Key::text("node", "name of the wireless node that broadcasts them; it needs no Neighborhood RED")
            .required(),
    );
    /// `start_s`.
    pub const START_S: Field<f64> = Field::number(
        Key::number("start_s", 0.0, MAX_S, "when the first goes out").with_default(Number(0.0)),
    );
    /// `interval_s`.
    pub const INTERVAL_S: Field<f64> = Field::number(
        Key::number("interval_s", 0.001, MAX_S, "time from one to the next").with_default(Number(0.1)),
    );
    /// `normalized_pb`.
    pub const NORMALIZED_PB: Field<f64> = Field::number(
        Key::number("normalized_pb", 0.0, 1.0, "what they ask for; 1: everything is to be dropped")
            .with_default(Number(1.0)),
    );
    /// `lifetime_s`.
    pub const LIFETIME_S: Field<f64> = Field::number(
        Key::number("lifetime_s", 0.0, 65.535, "for how long, in whole milliseconds")
            .with_default(Number(65.535)),
    );
    /// `forge`.
    pub const FORGE: Field<field::Word> = Field::word(Key::word(
        "forge",
        &["off", "sender", "sufferer"],
        "what they lie about beside: each comes under an address of its own, or is passed on for another node; there \
         are no such nodes",
    )
    .with_default(Word("off")));
}

/// `[[notice_flood]]`.
pub const NOTICE_FLOOD: &[Key] = &[
    notice_flood::NODE.key,
    notice_flood::START_S.key,
    Key::number("stop_s", 0.0, MAX_S, "from when on none does").derived("never"),
    notice_flood::INTERVAL_S.key,
    notice_flood::NORMALIZED_PB.key,
    notice_flood::LIFETIME_S.key,
    notice_flood::FORGE.key,
];
