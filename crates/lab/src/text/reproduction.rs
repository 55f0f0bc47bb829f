//! Text of the verdicts on a paper's claims for a terminal.

use super::comparison;
use super::table::{Align, render};
use crate::claims::{self, ClaimSummary, ClaimTally, Evidence, Mechanism, Register};
use crate::comparison::Comparison;
use crate::plan::Effort;
use crate::view;

/// Describes every figure that was made, and the verdicts on its claims.
#[must_use]
pub fn describe(
    register: &Register,
    made: &[(usize, &Comparison)],
    evidence: &[Evidence<'_>],
    effort: Effort,
) -> String {
    let figures = made.iter().map(|(_, figure)| comparison::describe(figure) + "\n").collect::<String>();
    let judged = verdicts(register, evidence, effort);
    figures + &judged + &readings(register, evidence) + &counts(evidence)
}

fn verdicts(register: &Register, evidence: &[Evidence<'_>], effort: Effort) -> String {
    let is_switched = evidence.iter().any(|e| e.mechanism != Mechanism::Unknown);
    let switched = is_switched.then_some("mechanism off");
    let names = ["claim", "scenario", "metric", "claimed", "measured"].into_iter().chain(switched);
    let header: Vec<_> = names.chain(["verdict"]).map(|name| (name, Align::Left)).collect();
    let row = |e: &Evidence<'_>| {
        let shown = view::claim(e);
        let said = [e.why.clone(), e.runs()].into_iter().filter(|text| !text.is_empty());
        let why = said.map(|text| format!(": {text}")).collect::<String>();
        let measured = [shown.id, shown.scenario, shown.metric, e.claimed(), view::measured(e)];
        let off = is_switched.then_some(shown.mechanism_off);
        measured.into_iter().chain(off).chain([format!("{}{why}", e.verdict.word())]).collect()
    };
    let quick = match effort {
        Effort::Quick => "\nQUICK: fewer runs than the plan says; a verdict may change with all of them.\n",
        Effort::Full => "",
    };
    if evidence.is_empty() {
        return format!("{}\n\nNo claim is judged by this alone.\n{quick}", register.paper);
    }
    let rows: Vec<Vec<String>> = evidence.iter().map(row).collect();
    format!("{}\n\n{}\n{}.\n{quick}", register.paper, render(&header, &rows), register.rule.describe())
}

/// Returns the number of readings in which each claim holds; empty if there are no other readings. Names of
/// readings are too long to list.
fn readings(register: &Register, evidence: &[Evidence<'_>]) -> String {
    let read: Vec<&Evidence<'_>> = evidence.iter().filter(|e| !e.other_readings.is_empty()).collect();
    if read.is_empty() {
        return String::new();
    }
    let header = [("claim", Align::Left), ("holds in", Align::Left)];
    let row = |e: &&Evidence<'_>| {
        let (agree, all) = e.holds_in().unwrap_or_default();
        vec![e.claim.id.clone(), format!("{agree} of {all} readings")]
    };
    let rows: Vec<Vec<String>> = read.iter().map(row).collect();
    let runs = claims::reading_runs(evidence);
    let runs = if runs.is_empty() { runs } else { format!("Runs: {runs}. ") };
    format!(
        "\nread otherwise\n\n{}\n{runs}`hopline reproduce {} --explain CLAIM --readings` lists the readings in which a claim comes out \
         otherwise, and so does the report.\n",
        render(&header, &rows),
        register.id
    )
}

/// Returns the number of claims that agree, under each heading.
fn counts(evidence: &[Evidence<'_>]) -> String {
    let lines = ClaimTally::of(evidence).lines();
    if lines.is_empty() {
        return String::new();
    }
    let standing = ClaimSummary::of(evidence);
    let headline = if standing.claims > 0 { format!("\n{}\n", standing.headline()) } else { String::new() };
    format!("\n{}\n{headline}", lines.join("\n"))
}
