//! Keys of a plan file.

use hopline_config::field::{self, Field};
use hopline_config::schema::Default::{Integer, Number, Word};
use hopline_config::schema::Key;

/// Keys of [`PLAN`] that are mandatory or have a default.
pub mod plan {
    use super::*;

    /// `scenario`.
    pub const SCENARIO: Field<field::Word> = Field::word(
        Key::text("scenario", "path of the scenario file, from the folder of the plan").required(),
    );
    /// `confidence`.
    pub const CONFIDENCE: Field<f64> = Field::number(
        Key::number("confidence", 0.5, 0.999, "confidence of every interval").with_default(Number(0.95)),
    );
    /// `max_runs`.
    pub const MAX_RUNS: Field<u64> = Field::integer(
        Key::integer(
            "max_runs",
            1,
            MAX_RUNS_OF_A_POINT,
            "maximum number of runs of each point, even if `precision` is not reached",
        )
        .with_default(Integer(200)),
    );
    /// `quick_runs`.
    pub const QUICK_RUNS: Field<u64> = Field::integer(
        Key::integer("quick_runs", 1, MAX_RUNS_OF_A_POINT, "runs of each point under --quick")
            .with_default(Integer(3)),
    );
}

/// Keys at the top level of a plan.
pub const PLAN: &[Key] = &[
    Key::text("name", "name of the plan in results").derived("the name of its file"),
    Key::text("title", "title of the report: the question in words"),
    plan::SCENARIO.key,
    Key::integer("seed", 0, i64::MAX as u64, "seed of the experiment").derived("the scenario's"),
    Key::integer("runs", 1, MAX_RUNS_OF_A_POINT, "paired runs of each point").derived("the scenario's"),
    Key::text(
        "precision",
        "\"5%\": runs are added until, at every point, half of the interval is at most this share of the mean",
    ),
    Key::text(
        "precision_metric",
        "metric that `precision` is about: a metric of the run, default aggregate_goodput_bps, or of precision_flow, default goodput_bps",
    ),
    Key::text("precision_flow", "name of the flow of precision_metric"),
    Key::table("question", hopline_scenario::keys::OBJECTIVE, "what is asked")
        .derived("what the scenario asks"),
    plan::CONFIDENCE.key,
    plan::MAX_RUNS.key,
    plan::QUICK_RUNS.key,
    Key::word("series", &["first-run", "all", "none"], "runs with stored per-second series")
        .with_default(Word("first-run")),
    Key::word("nodes", &["keep", "drop"], "storage of the metrics of each node").with_default(Word("keep")),
    Key::word("pairs", &["drop", "keep"], "storage of the metrics of every pair of flows")
        .with_default(Word("drop")),
    Key::settings("set", "keys of the scenario, set at every point"),
    Key::tables("variant", VARIANT, "what is compared; the first is the baseline of the others"),
    Key::lists(
        "zip",
        "keys of the scenario that change together, each with a list of values; the lists have equal length",
    ),
    Key::lists(
        "grid",
        "keys of the scenario, each with a list of values; every combination of values is run",
    ),
];

/// Keys of [`VARIANT`] that are mandatory.
pub mod variant {
    use super::*;

    /// `name`.
    pub const NAME: Field<field::Word> = Field::word(Key::text("name", "name of the variant").required());
}

/// Keys of `[[variant]]`.
pub const VARIANT: &[Key] = &[
    variant::NAME.key,
    Key::settings("set", "keys of the scenario, set in this variant"),
    Key::lists(
        "grid",
        "keys of the scenario, each with a list of values; every combination of values is a variant of its own, for this variant only",
    ),
];

/// Maximum number of runs of a point.
pub const MAX_RUNS_OF_A_POINT: u64 = 1_000_000;
