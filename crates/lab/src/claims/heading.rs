//! Headings under which claims are counted.

use super::ablation::Mechanism;
use super::claim::{Claim, Test};
use super::kind::Kind;
use super::verdict::Claimed;

/// A heading under which claims are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Heading {
    /// Claims of the paper with a value of their own.
    Values,
    /// Claims of the paper about a sign, a bound or a range.
    Bounds,
    /// Claims of the paper about points without the mechanism under test.
    Baselines,
    /// Claims of the paper to which a parameter was fitted.
    Fitted,
    /// Claims in other readings.
    Readings,
    /// Claims of this project.
    Own,
}

impl Heading {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::Values, Self::Bounds, Self::Baselines, Self::Fitted, Self::Readings, Self::Own];

    /// Returns the heading in words.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::Values => "exact values of the paper",
            Self::Bounds => "signs and ranges of the paper",
            Self::Baselines => "the paper's on what its system is compared with",
            Self::Fitted => "values that parameters were fitted to",
            Self::Readings => "the same, read otherwise",
            Self::Own => "not the paper's",
        }
    }

    /// Returns its key in JSON.
    #[must_use]
    pub const fn key(self) -> &'static str {
        match self {
            Self::Values => "values",
            Self::Bounds => "bounds",
            Self::Baselines => "baselines",
            Self::Fitted => "fitted",
            Self::Readings => "readings",
            Self::Own => "ours",
        }
    }

    /// Returns the heading under which a claim is counted; `None` if it is not judged yet, or repeats a
    /// measurement that another claim counts.
    pub(super) fn of(claim: &Claim, mechanism: &Mechanism) -> Option<Self> {
        let Test::Measure(measure) = &claim.test else { return None };
        Some(match (claim.kind, measure.claimed) {
            (Kind::Repeated, _) => return None,
            (Kind::Own, _) => Self::Own,
            (Kind::Reading, _) => Self::Readings,
            (Kind::Fitted, _) => Self::Fitted,
            (Kind::Paper, _) if *mechanism == Mechanism::Absent => Self::Baselines,
            (Kind::Paper, Claimed::Value { .. } | Claimed::Ratio { .. }) => Self::Values,
            (Kind::Paper, _) => Self::Bounds,
        })
    }
}
