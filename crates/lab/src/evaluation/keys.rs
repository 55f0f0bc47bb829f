//! Keys of an evaluation file.

use hopline_config::field::{self, Field};
use hopline_config::schema::Default::Integer;
use hopline_config::schema::{Key, Literal};

/// Maximum number of runs of a network.
const MAX_RUNS: u64 = 10_000;

/// Keys of [`EVALUATION`] that always have a value.
pub mod evaluation {
    use super::*;

    /// `title`.
    pub const TITLE: Field<field::Word> = Field::word(Key::text("title", "title of the report").required());
    /// `runs`.
    pub const RUNS: Field<u64> = Field::integer(
        Key::integer("runs", 1, MAX_RUNS, "paired runs of each network and algorithm")
            .with_default(Integer(3)),
    );
    /// `quick_runs`.
    pub const QUICK_RUNS: Field<u64> = Field::integer(
        Key::integer("quick_runs", 1, MAX_RUNS, "the same under --quick").with_default(Integer(1)),
    );
}

/// The top level.
pub const EVALUATION: &[Key] = &[
    evaluation::TITLE.key,
    Key::texts("references", "algorithms that every evaluation runs too, and that limits may refer to")
        .required(),
    evaluation::RUNS.key,
    evaluation::QUICK_RUNS.key,
    Key::tables("network", NETWORK, "networks, with what is required there").required(),
    Key::tables("not_covered", NOT_COVERED, "parts of the document that no network is about"),
];

/// Keys of [`NETWORK`] that always have a value.
pub mod network {
    use super::*;

    /// `id`.
    pub const ID: Field<field::Word> = Field::word(Key::text("id", "name on the command line").required());
    /// `clause`.
    pub const CLAUSE: Field<field::Word> =
        Field::word(Key::text("clause", "section of the document that asks for it").required());
    /// `title`.
    pub const TITLE: Field<field::Word> = Field::word(Key::text("title", "what the network is").required());
    /// `scenario`.
    pub const SCENARIO: Field<field::Word> = Field::word(
        Key::text("scenario", "path of the scenario file, from the folder of this file").required(),
    );
}

/// `[[network]]`.
pub const NETWORK: &[Key] = &[
    network::ID.key,
    network::CLAUSE.key,
    network::TITLE.key,
    network::SCENARIO.key,
    Key::settings("set", "keys of the scenario"),
    Key::flag(
        "marks",
        "whether evaluated flows over TCP ask for ECN (RFC 3168), if their algorithm reacts to marks",
    )
    .default(Literal::Flag(false)),
    Key::integer("runs", 1, MAX_RUNS, "paired runs of each algorithm").derived("those of the file"),
    Key::tables("criterion", CRITERION, "what is required").required(),
];

/// Keys of [`CRITERION`] that always have a value.
pub mod criterion {
    use super::*;

    /// `metric`.
    pub const METRIC: Field<field::Word> =
        Field::word(Key::text("metric", "metric of the run or of some flows: \"goodput of law\"").required());
}

/// `[[network.criterion]]`.
pub const CRITERION: &[Key] = &[
    criterion::METRIC.key,
    Key::text(
        "at_least",
        "lower limit: a value with its unit, \"17 Mb/s\", or a share of the value of a reference, \"0.9 of cubic\", or of the best one, \"0.9 of best\"",
    ),
    Key::text("at_most", "upper limit, likewise"),
];

/// Keys of [`NOT_COVERED`] that always have a value.
pub mod not_covered {
    use super::*;

    /// `clause`.
    pub const CLAUSE: Field<field::Word> =
        Field::word(Key::text("clause", "section of the document").required());
    /// `reason`.
    pub const REASON: Field<field::Word> = Field::word(Key::text("reason", "reason").required());
}

/// `[[not_covered]]`.
pub const NOT_COVERED: &[Key] = &[not_covered::CLAUSE.key, not_covered::REASON.key];
