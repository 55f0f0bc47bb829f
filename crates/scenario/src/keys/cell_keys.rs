//! Base stations and the hosts that move between them: `[cells]`, `[[mobile]]`.

use crate::choice;
use crate::choice::Chosen;
use crate::field::{self, Field};
use crate::schema::Key;
use hopline_sim::spec::AcceptedStations;

/// Keys of [`CELLS`] that always have a value.
pub mod cells {
    use super::*;
    pub use hopline_config::keys::cells::*;

    /// `home_agent`.
    pub const HOME_AGENT: Field<field::Word> =
        Field::word(Key::text("home_agent", "name of the home agent's node; it may be a station").required());
}

/// `[cells]`.
pub const CELLS: &[Key] = &[
    cells::HOME_AGENT.key,
    Key::texts("stations", "names of the base stations")
        .derived("every node with a radio that is not mobile"),
    cells::SCHEME.key,
    cells::BUFFER_PACKETS.key,
    cells::BEACON_S.key,
    cells::START.key,
];

/// Keys of [`MOBILE`] that always have a value.
pub mod mobile {
    use super::*;
    pub use hopline_config::keys::mobile::*;

    /// `node`.
    pub const NODE: Field<field::Word> =
        Field::word(Key::text("node", "name of a node with a radio").required());
    /// `listens`.
    pub const LISTENS: Chosen<AcceptedStations> = choice!(
        "listens",
        { "all" => AcceptedStations::All, "current" => AcceptedStations::Current },
        "stations that it receives from: every one, or its current one alone",
    )
    .with_default("all");
}

/// `[[mobile]]`.
pub const MOBILE: &[Key] = &[
    mobile::NODE.key,
    Key::number(
        "handoff_every_s",
        0.001,
        1e6,
        "interval of handoffs to the strongest other station, regardless of signal strengths",
    )
    .derived("by hysteresis_db"),
    mobile::HYSTERESIS_DB.key,
    mobile::BEACONS.key,
    mobile::BUFFERING.key,
    mobile::LISTENS.key,
    mobile::FAST_RETRANSMIT,
    Key::number(
        "lifetime_s",
        0.001,
        65.535,
        "time without a message for which a station serves it, and counts as present",
    )
    .derived("3 times cells.beacon_s"),
];
