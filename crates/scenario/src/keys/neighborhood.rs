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
        Key::number("start_s", 0.0, MAX_S, "time of the first notice").with_default(Number(0.0)),
    );
    /// `interval_s`.
    pub const INTERVAL_S: Field<f64> = Field::number(
        Key::number("interval_s", 0.001, MAX_S, "interval of notices").with_default(Number(0.1)),
    );
    /// `normalized_pb`.
    pub const NORMALIZED_PB: Field<f64> = Field::number(
        Key::number("normalized_pb", 0.0, 1.0, "drop share in the notices; 1: everything")
            .with_default(Number(1.0)),
    );
    /// `lifetime_s`.
    pub const LIFETIME_S: Field<f64> = Field::number(
        Key::number("lifetime_s", 0.0, 65.535, "lifetime in the notices, in whole milliseconds")
            .with_default(Number(65.535)),
    );
    /// `forge`.
    pub const FORGE: Field<field::Word> = Field::word(Key::word(
        "forge",
        &["off", "sender", "sufferer"],
        "forged address: each notice has its own sender, or is relayed for another sufferer; these nodes do not exist",
    )
    .with_default(Word("off")));
}

/// `[[notice_flood]]`.
pub const NOTICE_FLOOD: &[Key] = &[
    notice_flood::NODE.key,
    notice_flood::START_S.key,
    Key::number("stop_s", 0.0, MAX_S, "end of the notices; above start_s").derived("never"),
    notice_flood::INTERVAL_S.key,
    notice_flood::NORMALIZED_PB.key,
    notice_flood::LIFETIME_S.key,
    notice_flood::FORGE.key,
];
