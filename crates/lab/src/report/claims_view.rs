//! The claims of a paper as rows of two tables: what is said and measured, and what becomes of it along a key.

use super::page::section_id;
use super::{Along, Claim, Claims, Verdict};

/// The section of claims.
pub(super) struct ClaimsView<'a> {
    pub(super) note: &'a str,
    pub(super) tally: Vec<(&'static str, &'static str, &'static str, usize)>,
    pub(super) rows: Vec<ClaimRow<'a>>,
    /// `true` if any claim was measured with the mechanism off.
    pub(super) has_mechanism_off: bool,
    pub(super) along: Option<AlongView<'a>>,
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

/// What becomes of claims at each value of a key.
pub(super) struct AlongView<'a> {
    pub(super) key: &'a str,
    pub(super) values: Vec<&'a str>,
    pub(super) rows: Vec<AlongRow<'a>>,
    /// How many claims agree at each value.
    pub(super) agreeing: Vec<String>,
}

pub(super) struct AlongRow<'a> {
    pub(super) id: &'a str,
    pub(super) claimed: &'a str,
    /// One for each value; `None` where there is no such point.
    pub(super) cells: Vec<Option<AlongCell>>,
}

pub(super) struct AlongCell {
    pub(super) measured: String,
    pub(super) symbol: &'static str,
    pub(super) word: &'static str,
    pub(super) class: &'static str,
}

impl<'a> ClaimsView<'a> {
    /// `experiments`: how many there are to link to.
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
            note: &claims.note,
            tally: Verdict::ALL
                .into_iter()
                .filter(|v| count(*v) > 0)
                .map(|v| (v.symbol(), v.word(), class(v), count(v)))
                .collect(),
            rows: claims.claims.iter().map(row).collect(),
            has_mechanism_off: claims.claims.iter().any(|claim| !claim.mechanism_off.is_empty()),
            along: AlongView::of(claims),
        }
    }
}

impl<'a> AlongView<'a> {
    fn of(claims: &'a Claims) -> Option<Self> {
        let values = claims.along_values();
        let row = |claim: &'a Claim| AlongRow {
            id: &claim.id,
            claimed: &claim.claimed,
            cells: values.iter().map(|value| claim.at(value).map(|at| cell(at, &claim.unit))).collect(),
        };
        let rows: Vec<_> = claims.claims.iter().filter(|claim| !claim.along.is_empty()).map(row).collect();
        let agreeing = values.iter().map(|value| claims.agreeing(value)).collect();
        (!rows.is_empty()).then_some(Self { key: &claims.along, values, rows, agreeing })
    }
}

fn cell(at: &Along, unit: &str) -> AlongCell {
    AlongCell {
        measured: at.measured.as_ref().map_or_else(|| "–".into(), |m| format!("{} {unit}", m.text())),
        symbol: at.verdict.symbol(),
        word: at.verdict.word(),
        class: class(at.verdict),
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
