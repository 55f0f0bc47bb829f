//! Verdicts of an evaluation of congestion control algorithms: a table with a row for each criterion.

use super::anchors::section_id;
use super::marker::mark;
use crate::evaluation::Verdict;

/// Verdicts of an evaluation.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Evaluation {
    /// Names of the algorithms, the references first.
    pub laws: Vec<String>,
    /// Number of references.
    pub references: usize,
    /// Number of networks by verdict, for each algorithm.
    pub counts: Vec<EvaluationRow>,
    /// Networks.
    pub networks: Vec<EvaluationNetwork>,
    /// Sections of the document without a network, each with the reason.
    pub not_covered: Vec<(String, String)>,
}

/// Number of networks by verdict.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EvaluationRow {
    /// Name of the algorithm.
    pub law: String,
    /// Numbers, in the order of verdicts.
    pub counts: [usize; Verdict::ALL.len()],
    /// Number of networks on which the verdict is close.
    pub close: usize,
}

/// A network.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EvaluationNetwork {
    /// Name on the command line.
    pub id: String,
    /// Section of the document.
    pub clause: String,
    /// Index of its experiment.
    pub experiment: usize,
    /// Verdict on each algorithm.
    pub verdicts: Vec<Verdict>,
    /// Criteria.
    pub criteria: Vec<EvaluationCriterion>,
}

/// A criterion, with the result of each algorithm.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EvaluationCriterion {
    /// Requirement in words.
    pub words: String,
    /// Results.
    pub cells: Vec<EvaluationCell>,
}

/// Result of an algorithm.
#[derive(Clone, Debug, PartialEq)]
pub struct EvaluationCell {
    /// Verdict.
    pub verdict: Verdict,
    /// Verdict in one or two characters.
    pub symbol: String,
    /// Mean with three significant digits and its unit; empty without a value.
    pub short: String,
    /// Mean with its interval and unit.
    pub measured: String,
}

/// The section of the table.
pub(super) struct EvaluationView<'a> {
    pub(super) laws: Vec<(String, &'a str)>,
    pub(super) words: [(&'static str, &'static str, &'static str); Verdict::ALL.len()],
    pub(super) counts: &'a [EvaluationRow],
    pub(super) rows: Vec<NetworkRow<'a>>,
    pub(super) not_covered: &'a [(String, String)],
}

pub(super) struct NetworkRow<'a> {
    pub(super) id: &'a str,
    pub(super) link: String,
    pub(super) clause: &'a str,
    pub(super) criteria: Vec<CriterionRow<'a>>,
}

pub(super) struct CriterionRow<'a> {
    pub(super) words: &'a str,
    pub(super) cells: Vec<CellView<'a>>,
}

pub(super) struct CellView<'a> {
    pub(super) class: &'static str,
    pub(super) symbol: &'a str,
    pub(super) word: &'static str,
    pub(super) short: &'a str,
    pub(super) measured: &'a str,
}

impl<'a> EvaluationView<'a> {
    pub(super) fn of(evaluation: &'a Evaluation) -> Self {
        let laws = evaluation.laws.iter().enumerate().map(|(law, name)| (mark(law), name.as_str()));
        Self {
            laws: laws.collect(),
            words: Verdict::ALL.map(|verdict| (verdict.symbol(), verdict.word(), class(verdict))),
            counts: &evaluation.counts,
            rows: evaluation.networks.iter().map(NetworkRow::of).collect(),
            not_covered: &evaluation.not_covered,
        }
    }
}

impl<'a> NetworkRow<'a> {
    fn of(network: &'a EvaluationNetwork) -> Self {
        let criterion = |criterion: &'a EvaluationCriterion| CriterionRow {
            words: &criterion.words,
            cells: criterion.cells.iter().map(CellView::of).collect(),
        };
        Self {
            id: &network.id,
            link: section_id(network.experiment),
            clause: &network.clause,
            criteria: network.criteria.iter().map(criterion).collect(),
        }
    }
}

impl<'a> CellView<'a> {
    fn of(cell: &'a EvaluationCell) -> Self {
        Self {
            class: class(cell.verdict),
            symbol: &cell.symbol,
            word: cell.verdict.word(),
            short: &cell.short,
            measured: &cell.measured,
        }
    }
}

/// Returns the class of a verdict in the style sheet, which has those of claims.
const fn class(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Meets => "agrees",
        Verdict::Varies => "direction-only",
        Verdict::Misses => "differs",
        Verdict::NoValue => "cannot-be-judged",
    }
}
