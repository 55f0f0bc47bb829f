//! Published claims, and their verdicts by runs.
//!
//! Each paper has a folder. Its `claims.toml` lists its figures, each with a plan, and its claims, each with
//! a point of a plan. The rule by which a measurement agrees is part of the file.

mod ablation;
mod axis;
mod claim;
mod claim_summary;
mod claimed;
mod evaluate;
mod evidence;
mod explanation;
mod figure;
mod finding;
mod heading;
pub mod keys;
mod kind;
mod measure;
mod measurement;
mod reading;
mod readings;
mod register;
mod rule;
mod selector;
mod tally;
#[cfg(test)]
mod tests;
mod verdict;

pub use ablation::{AblationOutcome, Ablations, Mechanism};
pub use axis::{Answer, Axis};
pub use claim::{Claim, Test};
pub use claim_summary::ClaimSummary;
pub use evaluate::{evaluate, evaluate_one};
pub use evidence::Evidence;
pub use figure::Figure;
pub use heading::Heading;
pub use kind::Kind;
pub use measure::{ComparisonPoint, Measure, Quantity, SecondRatio};
pub use measurement::Measurement;
pub use reading::{AlternativeReading, Reading};
pub(crate) use readings::reading_runs;
pub use register::{FILE, RandomNetworks, Register};
pub use rule::Rule;
pub use selector::{Aggregate, Selector};
pub use tally::{ClaimTally, Count};
pub use verdict::{Claimed, Scale, SignMeaning, Verdict, judge};

use crate::comparison::Comparison;
use crate::plan::Effort;
use serde_json::{Value as Json, json};

/// Returns the JSON object of `reproduce --json`: the figures that were made, and the evidence.
#[must_use]
pub fn json(
    register: &Register,
    made: &[(usize, &Comparison)],
    evidence: &[Evidence<'_>],
    effort: Effort,
) -> Json {
    let figures: Vec<_> = made.iter().map(|(n, c)| json!([register.figures[*n].id, c.json()])).collect();
    json!({
        "paper": register.paper,
        "quick": effort == Effort::Quick,
        "claims": evidence.iter().map(Evidence::json).collect::<Vec<_>>(),
        "counts": ClaimTally::of(evidence).json(),
        "standing": ClaimSummary::of(evidence),
        "headline": ClaimSummary::of(evidence).headline(),
        "figures": figures,
    })
}
