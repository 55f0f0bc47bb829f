//! Real programs at nodes: `[[program]]`.

use crate::field::{self, Field};
use crate::schema::Default::Number;
use crate::schema::Key;
use hopline_config::keys::MAX_S;

/// Keys of [`PROGRAM`] that always have a value.
pub mod program {
    use super::*;

    /// Value of [`NODE`]: the program runs at every node.
    pub const EVERY_NODE: &str = "*";
    /// `node`.
    pub const NODE: Field<field::Word> =
        Field::word(Key::text("node", "name of the node at which it runs; `*`: at every node, with `-` and the name of the node behind its own").required());
    /// `start_s`.
    pub const START_S: Field<f64> =
        Field::number(Key::number("start_s", 0.0, MAX_S, "when it starts").with_default(Number(0.0)));
}

/// `[[program]]`.
pub const PROGRAM: &[Key] = &[
    program::NODE.key,
    Key::texts(
        "command",
        "the program and its arguments: [\"ping\", \"-c\", \"5\", \"n3\"]; no shell reads it",
    )
    .required(),
    program::START_S.key,
    Key::number("stop_s", 0.0, MAX_S, "when it gets SIGTERM, and 3 s later SIGKILL; above start_s")
        .derived("the end of the emulation"),
    Key::text("name", "name in results and of its files, unique: letters, digits, `-`, `_` and `.`")
        .derived("p and the number of the program"),
];
