//! `[nodes]`, `[[node]]` and `[mobility]`: nodes, their positions and their movement.

use super::MAX_S;
use super::limits::{MAX_COORDINATE_M, MAX_NODES};
use crate::field::{self, Field};
use crate::schema::Default::{Number, Word};
use crate::schema::{Key, Literal};

/// Keys of [`NODES_KEYS`] that always have a value.
pub mod nodes {
    use super::*;

    /// `layout`.
    pub const LAYOUT: Field<field::Word> = Field::word(
        Key::word("layout", &["chain", "grid", "random", "movements", "file"], "placement of the nodes")
            .required(),
    );
}

/// `[nodes]`.
pub const NODES_KEYS: &[Key] = &[
    nodes::LAYOUT.key,
    Key::integer("count", 1, MAX_NODES, "nodes of a chain or a random network"),
    Key::integer("columns", 1, MAX_NODES, "nodes in a row of a grid"),
    Key::integer("rows", 1, MAX_NODES, "rows of a grid"),
    Key::number("spacing_m", 0.001, MAX_COORDINATE_M, "distance between neighbours of a chain or grid"),
    Key::number("width_m", 0.001, MAX_COORDINATE_M, "width of the area of a random network"),
    Key::number("height_m", 0.001, MAX_COORDINATE_M, "height of the area of a random network"),
    Key::text("file", "CSV with the keys of [[node]] as header, beside the scenario"),
];

/// Keys of [`NODE`] that always have a value.
pub mod node {
    use super::*;

    /// `x_m`.
    pub const X_M: Field<f64> = Field::number(
        Key::number("x_m", -MAX_COORDINATE_M, MAX_COORDINATE_M, "position to the east")
            .with_default(Number(0.0)),
    );
    /// `y_m`.
    pub const Y_M: Field<f64> = Field::number(
        Key::number("y_m", -MAX_COORDINATE_M, MAX_COORDINATE_M, "position to the north")
            .with_default(Number(0.0)),
    );
}

/// `[[node]]`.
pub const NODE: &[Key] = &[
    Key::text("name", "name, unique").derived("n and the number of the node"),
    node::X_M.key,
    node::Y_M.key,
    Key::word("interface", &["wireless", "wired"], "network interface of the node").derived("wireless if there is a [radio]"),
    Key::integers(
        "channels",
        0,
        65_535,
        "a radio for each of these channels; what is sent on one is not sensed on another",
    ).derived("radio.channels"),
    Key::text(
        "gateway",
        "with routing agents: node with a [[link]] through which packets of this node leave the wireless network, and packets for it enter",
    ).derived("routing.gateway"),
    Key::flag("fixed", "whether the node stays at its position").default(Literal::Flag(false)),
    Key::tables("waypoints", WAYPOINT, "moves, in the order of time"),
];

/// Keys of [`WAYPOINT`] that always have a value.
pub mod waypoint {
    use super::*;

    /// `at_s`.
    pub const AT_S: Field<f64> =
        Field::number(Key::number("at_s", 0.0, MAX_S, "start of the move").required());
    /// `x_m`.
    pub const X_M: Field<f64> =
        Field::number(Key::number("x_m", -MAX_COORDINATE_M, MAX_COORDINATE_M, "where to").required());
    /// `y_m`.
    pub const Y_M: Field<f64> =
        Field::number(Key::number("y_m", -MAX_COORDINATE_M, MAX_COORDINATE_M, "where to").required());
    /// `speed_mps`.
    pub const SPEED_MPS: Field<f64> =
        Field::number(Key::number("speed_mps", 0.0, 1000.0, "how fast").required());
}

/// `node.waypoints`.
pub const WAYPOINT: &[Key] =
    &[waypoint::AT_S.key, waypoint::X_M.key, waypoint::Y_M.key, waypoint::SPEED_MPS.key];

/// Keys of [`OBSTACLE`] that always have a value.
pub mod obstacle {
    use super::*;

    /// `loss_db`.
    pub const LOSS_DB: Field<f64> =
        Field::number(Key::number("loss_db", 0.0, 200.0, "attenuation of each crossed wall").required());
}

/// `[[obstacle]]`.
pub const OBSTACLE: &[Key] = &[
    obstacle::LOSS_DB.key,
    Key::number("x_m", -MAX_COORDINATE_M, MAX_COORDINATE_M, "of a rectangle: its western side"),
    Key::number("y_m", -MAX_COORDINATE_M, MAX_COORDINATE_M, "of a rectangle: its southern side"),
    Key::number("width_m", 0.001, MAX_COORDINATE_M, "of a rectangle: from west to east"),
    Key::number("height_m", 0.001, MAX_COORDINATE_M, "of a rectangle: from south to north"),
    Key::tables("corners", PLACE, "of anything else: two of a wall, three or more all around a building"),
];

/// Keys of [`PLACE`] that always have a value.
pub mod place {
    use super::*;

    /// `x_m`.
    pub const X_M: Field<f64> =
        Field::number(Key::number("x_m", -MAX_COORDINATE_M, MAX_COORDINATE_M, "to the east").required());
    /// `y_m`.
    pub const Y_M: Field<f64> =
        Field::number(Key::number("y_m", -MAX_COORDINATE_M, MAX_COORDINATE_M, "to the north").required());
}

/// A place: of an end of a flow, the node that is nearest to it when a run begins; of an obstacle, a corner.
pub const PLACE: &[Key] = &[place::X_M.key, place::Y_M.key];

/// Keys of [`MOBILITY`] that always have a value.
pub mod mobility {
    use super::*;

    /// `model`.
    pub const MODEL: Field<field::Word> = Field::word(
        Key::word(
            "model",
            &[
                "static",
                "random-waypoint",
                "random-waypoint-stationary",
                "ns2",
                "bonnmotion",
                "sumo",
                "csv",
                "gpx",
            ],
            "movement model; random-waypoint: that of setdest; the last five read a file",
        )
        .with_default(Word("static")),
    );
    /// `pause_s`.
    pub const PAUSE_S: Field<f64> = Field::number(
        Key::number("pause_s", 0.0, MAX_S, "rest at each destination").with_default(Number(0.0)),
    );
}

/// `[mobility]`.
pub const MOBILITY: &[Key] = &[
    mobility::MODEL.key,
    Key::number("width_m", 0.001, MAX_COORDINATE_M, "width of the area").derived("that of [nodes]"),
    Key::number("height_m", 0.001, MAX_COORDINATE_M, "height of the area").derived("that of [nodes]"),
    Key::number("min_speed_mps", 0.000_001, 10_000.0, "of random-waypoint-stationary: slowest speed drawn"),
    Key::number("max_speed_mps", 0.000_001, 10_000.0, "fastest speed drawn"),
    mobility::PAUSE_S.key,
    Key::text(
        "file",
        "movement file, beside the scenario: .ns_movements (ns2), .movements (bonnmotion), FCD XML (sumo), GPX (gpx) or CSV with \
         the header node,time_s,x_m,y_m",
    ),
];
