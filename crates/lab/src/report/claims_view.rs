//! Claims of a paper as rows of two tables: statements with measurements, and outcomes in other readings.

use super::anchors::section_id;
use super::{Claim, ClaimCount, Claims, ReadAxis, ReadOtherwise, Verdict};

/// The section of claims.
pub(super) struct ClaimsView<'a> {
    pub(super) headline: &'a str,
    pub(super) note: &'a str,
    /// Columns of `counts`.
    pub(super) verdicts: [&'static str; Verdict::ALL.len()],
    pub(super) counts: &'a [ClaimCount],
    pub(super) tally: Vec<(&'static str, &'static str, &'static str, usize)>,
    pub(super) rows: Vec<ClaimRow<'a>>,
    /// `true` if any claim was measured with the mechanism off.
    pub(super) has_mechanism_off: bool,
    /// Claims with other readings; may be empty.
    pub(super) read_otherwise: Vec<ReadRow<'a>>,
    pub(super) axes: &'a [ReadAxis],
    pub(super) reading_runs: &'a str,
    /// Columns of a reading: its answers, its measurement, and the verdict.
    pub(super) columns: usize,
}

pub(super) struct ClaimRow<'a> {
    pub(super) id: &'a str,
    pub(super) link: Option<String>,
    pub(super) scenario: &'a str,
    pub(super) metric: &'a str,
    pub(super) claimed: &'a str,
    pub(super) measured: String,
    pub(super) mechanism_off: &'a str,
    pub(super) symbol: &'static str,
    pub(super) word: &'static str,
    pub(super) class: &'static str,
    pub(super) statement: &'a str,
}

/// A claim with other readings.
pub(super) struct ReadRow<'a> {
    pub(super) id: &'a str,
    pub(super) agreeing: usize,
    pub(super) all: usize,
    /// Readings with another verdict than the first.
    pub(super) others: Vec<ReadCell<'a>>,
}

pub(super) struct ReadCell<'a> {
    pub(super) name: &'a str,
    /// Answers to the axes; `None` for those of the first reading.
    pub(super) answers: &'a [Option<String>],
    pub(super) measured: String,
    pub(super) symbol: &'static str,
    pub(super) word: &'static str,
    pub(super) class: &'static str,
}

impl<'a> ClaimsView<'a> {
    /// `experiments`: number of experiments that can be linked to.
    pub(super) fn of(claims: &'a Claims, experiments: usize) -> Self {
        let count = |verdict: Verdict| claims.claims.iter().filter(|claim| claim.verdict == verdict).count();
        let row = |claim: &'a Claim| ClaimRow {
            id: &claim.id,
            link: claim.experiment.filter(|e| *e < experiments).map(section_id),
            scenario: &claim.scenario,
            metric: &claim.metric,
            claimed: &claim.claimed,
            measured: claim
                .measured
                .as_ref()
                .map_or_else(|| "–".into(), |m| format!("{} {}", m.text(), claim.unit)),
            mechanism_off: &claim.mechanism_off,
            symbol: claim.verdict.symbol(),
            word: claim.verdict.word(),
            class: class(claim.verdict),
            statement: &claim.statement,
        };
        Self {
            headline: &claims.headline,
            note: &claims.note,
            verdicts: Verdict::ALL.map(Verdict::word),
            counts: &claims.counts,
            tally: Verdict::ALL
                .into_iter()
                .filter(|v| count(*v) > 0)
                .map(|v| (v.symbol(), v.word(), class(v), count(v)))
                .collect(),
            rows: claims.claims.iter().map(row).collect(),
            has_mechanism_off: claims.claims.iter().any(|claim| !claim.mechanism_off.is_empty()),
            read_otherwise: claims.claims.iter().filter_map(read_row).collect(),
            axes: &claims.axes,
            reading_runs: &claims.reading_runs,
            columns: claims.axes.len().max(1) + 2,
        }
    }
}

/// `None` for a claim without other readings.
fn read_row(claim: &Claim) -> Option<ReadRow<'_>> {
    let (agreeing, all) = claim.holds_in()?;
    let others = claim.readings.iter().filter(|read| read.verdict != claim.verdict);
    let others = others.map(|read| read_cell(read, &claim.unit)).collect();
    Some(ReadRow { id: &claim.id, agreeing, all, others })
}

fn read_cell<'a>(read: &'a ReadOtherwise, unit: &str) -> ReadCell<'a> {
    ReadCell {
        name: &read.name,
        answers: &read.answers,
        measured: read.measured.as_ref().map_or_else(|| "–".into(), |m| format!("{} {unit}", m.text())),
        symbol: read.verdict.symbol(),
        word: read.verdict.word(),
        class: class(read.verdict),
    }
}

const fn class(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Agrees => "agrees",
        Verdict::DirectionOnly => "direction-only",
        Verdict::Differs => "differs",
        Verdict::CannotBeJudged => "cannot-be-judged",
        Verdict::NotTested => "not-tested",
    }
}
