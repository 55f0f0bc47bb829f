//! Keys of a claims file.

use hopline_config::field::{self, Field};
use hopline_config::schema::Default::{Integer, Word};
use hopline_config::schema::{Key, Literal};

/// The words of `of_several`.
pub const AGGREGATES: &[&str] = &["best", "mean", "least", "middle", "most"];

/// The words of `statistic`.
pub const STATISTICS: &[&str] = &["gain", "mean-ratio", "ratio-sd", "ratio-sd-per-mean", "positive-share"];

/// The words of `kind`.
pub const KINDS: &[&str] = &super::kind::Kind::WORDS;

/// Keys of [`CLAIMS`] that always have a value.
pub mod claims {
    use super::*;

    /// `paper`.
    pub const PAPER: Field<field::Word> =
        Field::word(Key::text("paper", "authors, title, venue, year").required());
}

/// The top level.
pub const CLAIMS: &[Key] = &[
    claims::PAPER.key,
    Key::table("rule", RULE, "when a measurement agrees with a claim").required(),
    Key::tables(
        "axis",
        AXIS,
        "questions that the paper leaves open: under --readings every claim is judged by every combination of answers, \
         and by each other answer of the axes that are varied alone",
    ),
    Key::table("draws", DRAWS, "comparison on random networks, the figure `draws`"),
    Key::tables("figure", FIGURE, "what can be reproduced: figures, tables, experiments").required(),
    Key::tables("claim", CLAIM, "what the paper says").required(),
];

/// Keys of [`DRAWS`] that always have a value.
pub mod draws {
    use super::*;

    /// `networks`.
    pub const NETWORKS: Field<u64> =
        Field::integer(Key::integer("networks", 1, 10_000, "number of networks").with_default(Integer(100)));
}

/// `[draws]`.
pub const DRAWS: &[Key] = &[
    Key::texts("algorithms", "names as of `hopline evaluate`, the one of interest first").required(),
    draws::NETWORKS.key,
];

/// Keys of [`AXIS`] that always have a value.
pub mod axis {
    use super::*;

    /// `id`.
    pub const ID: Field<field::Word> = Field::word(Key::text("id", "name of the axis").required());
    /// `words`.
    pub const WORDS: Field<field::Word> = Field::word(
        Key::text("words", "the paper's words that leave it open, and where they stand").required(),
    );
}

/// `[[axis]]`.
pub const AXIS: &[Key] = &[
    axis::ID.key,
    axis::WORDS.key,
    Key::texts("figures", "ids of the figures that it concerns").derived("all"),
    Key::flag("alone", "whether it is varied alone, with the first answer to every other axis")
        .default(Literal::Flag(false)),
    Key::tables("reading", READING, "the answers, at least two, the one closest to the words first")
        .required(),
];

/// Keys of [`READING`] that always have a value.
pub mod reading {
    use super::*;

    /// `name`.
    pub const NAME: Field<field::Word> = Field::word(Key::text("name", "name of the answer").required());
}

/// `[[axis.reading]]`.
pub const READING: &[Key] = &[
    reading::NAME.key,
    Key::settings(
        "set",
        "keys of the scenario, set at every point of the figure; in a table that switches a mechanism on and that only some variants have: at their points",
    ),
];

/// Keys of [`RULE`] that always have a value.
pub mod rule {
    use super::*;

    /// `tolerance_pct`.
    pub const TOLERANCE_PCT: Field<f64> = Field::number(
        Key::number(
            "tolerance_pct",
            0.0,
            1000.0,
            "a claimed value stands for itself ± so many percent of it",
        )
        .required(),
    );
    /// `widest_pct`.
    pub const WIDEST_PCT: Field<f64> = Field::number(Key::number(
        "widest_pct",
        0.0,
        1000.0,
        "an interval that meets what is claimed and has a half-width above so many percent of it decides nothing",
    )
    .required());
}

/// `[rule]`.
pub const RULE: &[Key] = &[
    rule::TOLERANCE_PCT.key,
    rule::WIDEST_PCT.key,
    Key::texts(
        "log_ratios",
        "metrics of which a gain is judged by the logarithm of its ratio: −93 % and −71 % are a factor of four apart",
    ),
];

/// Keys of [`FIGURE`] that always have a value.
pub mod figure {
    use super::*;

    /// `id`.
    pub const ID: Field<field::Word> =
        Field::word(Key::text("id", "what it is called on the command line").required());
    /// `title`.
    pub const TITLE: Field<field::Word> = Field::word(Key::text("title", "what it shows").required());
    /// `plan`.
    pub const PLAN: Field<field::Word> =
        Field::word(Key::text("plan", "plan file, beside the claims").required());
}

/// `[[figure]]`.
pub const FIGURE: &[Key] = &[
    figure::ID.key,
    figure::TITLE.key,
    figure::PLAN.key,
    Key::settings(
        "sham",
        "for each variant with the mechanism under test the variant that stands in for it with the mechanism off: a claim that holds for both is not tested; empty if no variant has one",
    ),
];

/// `[[claim]]`.
pub const CLAIM: &[Key] = &[
    Key::text("id", "as the digest of the paper numbers it; a part of a claim adds a letter").required(),
    Key::word(
        "kind",
        KINDS,
        "origin: the paper; the paper, of a value that a parameter here was fitted to; the paper, of a measurement that another claim counts; the paper, with a scenario that is read otherwise; or this project. Only the first count for the paper",
    )
    .with_default(Word("paper")),
    Key::text(
        "sentence",
        "the paper says it in one sentence with other claims of the same text here: they count once, with the worst of their verdicts",
    ),
    Key::settings(
        "sham",
        "stands for the figure's `sham`: of a claim about another mechanism than the figure's other claims",
    ),
    Key::text("figure", "id of the figure that judges it"),
    Key::text("statement", "what the paper says, in our words").required(),
    Key::text("where", "section, figure or table of the paper"),
    Key::text("scenario", "the set-up in words").derived("the point"),
    Key::text("metric", "what is measured: a metric of the run, or of `flow`"),
    Key::text("flow", "name of the flow of the metric"),
    Key::text("with_flow", "name of another flow: it is the metric of the two; the plan keeps its `pairs`"),
    Key::settings(
        "point",
        "settings of the point that is measured; `variant` names its variant, or a list of them: the best in the metric",
    ),
    Key::word(
        "of_several",
        AGGREGATES,
        "what stands for the points that `point` picks, if they are several: the best in the metric, their average run by run, or the least, the middle, the most of what is measured",
    ),
    Key::settings(
        "against",
        "settings of the point that it is compared with, likewise: the claim is a gain in percent",
    ),
    Key::text(
        "against_figure",
        "id of the figure that `against` is a point of, if it is another: its runs do not pair",
    ),
    Key::text(
        "against_flow",
        "name of the flow that `flow` is compared with, at `against` or at the same point: the claim is a gain in percent",
    ),
    Key::word(
        "statistic",
        STATISTICS,
        "what is made of the runs and those that they are compared with: the gain of the means, or, of the ratios less one, their mean, their standard deviation, that over their mean, the share above zero",
    )
    .with_default(Word("gain")),
    Key::text(
        "over_figure",
        "id of the figure with the same statistic as divisor: the claim is the ratio of the two; of `ratio-sd` and `ratio-sd-per-mean`",
    ),
    Key::settings(
        "over",
        "settings of a second point: the claim is the ratio of `point` to `against`, over the ratio of this one to `over_against`, less one, in percent",
    ).derived("`point`"),
    Key::settings("over_against", "what `over` is compared with").derived("`against`"),
    Key::text("over_flow", "name of the flow of the second ratio").derived("`flow`"),
    Key::number("claimed", -1e12, 1e12, "the value claimed: in the unit of the metric, or in percent"),
    Key::number(
        "tolerance",
        0.0,
        1e12,
        "stands for rule.tolerance_pct: in the unit of `claimed`, of a log ratio in percent of the ratio",
    ),
    Key::number("low", -1e12, 1e12, "the claim is a range: its lower end"),
    Key::number("high", -1e12, 1e12, "the claim is a range: its upper end"),
    Key::number("above", -1e12, 1e12, "the claim is that the value is above this"),
    Key::number("below", -1e12, 1e12, "the claim is that the value is below this"),
    Key::number(
        "within",
        0.0,
        1e12,
        "the claim is that there is no difference: that the gain, up or down, is not above this",
    ),
    Key::text("needs", "what hopline lacks yet to judge it"),
    Key::text("note", "what a reader of the verdict should know"),
];
