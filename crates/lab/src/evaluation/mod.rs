//! Evaluation of congestion control algorithms: networks, criteria on each, and verdicts for each algorithm beside those of
//! references.
//!
//! An [`EvaluationPlan`] is a file with networks; the built-in one ([`open`]) follows the sections of RFC 9743. Flows of the
//! class [`LAW_CLASS`] run over the evaluated [`Law`]; the other flows have a fixed transport.
//! [`EvaluationPlan::judge`] compares the runs with the criteria.

mod criterion;
mod json;
pub mod keys;
mod law;
mod network;
mod plan;
#[cfg(test)]
mod tests;
mod verdict;

pub(crate) use criterion::display_unit;
pub use criterion::{Criterion, Limit, Reference};
pub use json::json;
pub use law::{LAW_CLASS, Law};
pub use network::Network;
pub use plan::{EvaluationPlan, NotCovered, OpenPlan, Selection, open};
pub use verdict::{CLOSE, CriterionResult, LawResult, NetworkResult, Verdict, VerdictCount, count};
