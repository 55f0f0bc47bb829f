//! Keys of a plan file.

use hopline_config::field::{self, Field};
use hopline_config::schema::Default::{Integer, Number, Word};
use hopline_config::schema::Key;

/// Keys of [`PLAN`] that always have a value.
pub mod plan {
    use super::*;

    /// `scenario`.
    pub const SCENARIO: Field<field::Word> =
        Field::word(Key::text("scenario", "the scenario file, beside the plan").required());
    /// `confidence`.
    pub const CONFIDENCE: Field<f64> = Field::number(
        Key::number("confidence", 0.5, 0.999, "confidence of every interval").with_default(Number(0.95)),
    );
    /// `max_runs`.
    pub const MAX_RUNS: Field<u64> = Field::integer(
        Key::integer("max_runs", 1, MAX_RUNS_OF_A_POINT, "most runs of each point, however imprecise")
            .with_default(Integer(200)),
    );
    /// `quick_runs`.
    pub const QUICK_RUNS: Field<u64> = Field::integer(
        Key::integer("quick_runs", 1, MAX_RUNS_OF_A_POINT, "runs of each point under --quick")
            .with_default(Integer(3)),
    );
}

/// The top level.
pub const PLAN: &[Key] = &[
    Key::text("name", "what the plan is called in results").derived("the name of its file"),
    Key::text("title", "the question in words, for the report"),
    plan::SCENARIO.key,
    Key::integer("seed", 0, i64::MAX as u64, "seed of the experiment").derived("the scenario's"),
    Key::integer("runs", 1, MAX_RUNS_OF_A_POINT, "paired runs of each point").derived("the scenario's"),
    Key::text("precision", "\"5%\": runs are added until the interval of every point is that narrow"),
    Key::text(
        "precision_metric",
        "what is to be precise: a metric of the run, default aggregate_goodput_bps, or of precision_flow, default goodput_bps",
    ),
    Key::text("precision_flow", "name of the flow of the metric"),
    Key::table("question", hopline_scenario::keys::OBJECTIVE, "what is asked")
        .derived("what the scenario asks"),
    plan::CONFIDENCE.key,
    plan::MAX_RUNS.key,
    plan::QUICK_RUNS.key,
    Key::word("series", &["first-run", "all", "none"], "of which runs the per-second series are kept")
        .with_default(Word("first-run")),
    Key::word("nodes", &["keep", "drop"], "whether the metrics of each node are kept")
        .with_default(Word("keep")),
    Key::word("pairs", &["drop", "keep"], "whether the metrics of every two flows are kept")
        .with_default(Word("drop")),
    Key::settings("set", "keys of the scenario, set at every point"),
    Key::tables("variant", VARIANT, "what is compared; the first is the baseline of the others"),
    Key::lists("zip", "keys of the scenario that change together: lists of equal length"),
    Key::lists("grid", "keys of the scenario of which every combination is run"),
];

/// Keys of [`VARIANT`] that always have a value.
pub mod variant {
    use super::*;

    /// `name`.
    pub const NAME: Field<field::Word> =
        Field::word(Key::text("name", "what the variant is called").required());
}

/// `[[variant]]`.
pub const VARIANT: &[Key] = &[
    variant::NAME.key,
    Key::settings("set", "keys of the scenario, set in this variant"),
    Key::lists(
        "grid",
        "keys of the scenario of which every combination is a variant: settings of this variant alone",
    ),
];

/// Maximum number of runs of a point.
pub const MAX_RUNS_OF_A_POINT: u64 = 1_000_000;
