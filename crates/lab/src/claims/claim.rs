//! Claim of a paper, and its test.

use super::ablation::Ablations;
use super::figure::Figure;
use super::kind::Kind;
use super::measure::Measure;
use super::rule::Rule;
use hopline_config::schema::Section;
use hopline_config::source::Problem;

/// One claim.
#[derive(Clone, Debug)]
pub struct Claim {
    /// Its number in the digest of the paper.
    pub id: String,
    /// Origin of the claim.
    pub kind: Kind,
    /// Name shared with other claims of the same sentence; empty if it has one of its own.
    pub sentence: String,
    /// Statement of the paper.
    pub statement: String,
    /// Section, figure or table of the paper; empty if not given.
    pub place: String,
    /// The set-up in words; empty: the label of the point.
    pub scenario: String,
    /// Remark on the verdict; empty if there is none.
    pub note: String,
    /// Stand-ins of the claim, in place of those of its figure.
    pub ablations: Option<Ablations>,
    /// Test of the claim.
    pub test: Test,
}

/// Test of a claim.
#[derive(Clone, Debug)]
pub enum Test {
    /// None yet: this is missing.
    Missing(String),
    /// A measurement.
    Measure(Box<Measure>),
}

impl Claim {
    pub(super) fn of(section: &Section<'_>, figures: &[Figure], rule: &Rule) -> Result<Self, Problem> {
        let text = |key| section.word(key).unwrap_or_default().to_owned();
        let test = match section.word("needs") {
            Some(needs) => Test::Missing(needs.to_owned()),
            None => Test::Measure(Box::new(Measure::of(section, figures, rule)?)),
        };
        Ok(Self {
            id: text("id"),
            kind: Kind::of(section.word("kind")),
            sentence: text("sentence"),
            statement: text("statement"),
            place: text("where"),
            scenario: text("scenario"),
            note: text("note"),
            ablations: Ablations::of(section)?,
            test,
        })
    }
}
