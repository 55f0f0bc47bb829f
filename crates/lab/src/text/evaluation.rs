//! Text of an evaluation for a terminal.

use super::table::{Align, render};
use crate::counted::count_text;
use crate::evaluation::{
    CLOSE, EvaluationPlan, Law, LawResult, NetworkResult, Verdict, VerdictCount, count, display_unit,
};
use crate::metrics::MetricInfo;
use crate::plan::Effort;
use crate::report::Measured;

/// Describes the results of all networks of `plan`: a row for each criterion, then the number of networks by verdict.
#[must_use]
pub fn describe(plan: &EvaluationPlan, results: &[NetworkResult], effort: Effort) -> String {
    let quick = match effort {
        Effort::Quick => "\nQUICK: fewer runs than the file says; a verdict may change with all of them.\n",
        Effort::Full => "",
    };
    format!(
        "{}\n\n{}\n{}{}{}{quick}",
        plan.title,
        rows(plan, results),
        counts(plan, results),
        not_covered(plan),
        failed(plan, results)
    )
}

fn rows(plan: &EvaluationPlan, results: &[NetworkResult]) -> String {
    let laws = plan.laws.iter().map(|law| (law.name.as_str(), Align::Right));
    let names = ["section", "network", "required"].map(|name| (name, Align::Left));
    let header: Vec<_> = names.into_iter().chain(laws).collect();
    let mut rows = Vec::new();
    for (network, result) in plan.networks.iter().zip(results) {
        for (number, (criterion, judged)) in network.criteria.iter().zip(&result.criteria).enumerate() {
            let named = if number == 0 { [number_of(&network.clause), &network.id] } else { ["", ""] };
            let mut row: Vec<String> = named.map(str::to_owned).into();
            row.push(criterion.words(&plan.references));
            row.extend(judged.laws.iter().map(|law| cell(law, criterion.metric.metric)));
            rows.push(row);
        }
    }
    render(&header, &rows)
}

fn number_of(clause: &str) -> &str {
    clause.split(' ').next().unwrap_or_default()
}

/// Returns a result in few characters: `✓ 17.9 Mb/s`.
fn cell(result: &LawResult, metric: &MetricInfo) -> String {
    format!("{} {}", symbol(result), short(result, metric)).trim_end().to_owned()
}

/// Returns the verdict as a character, with a second one if it is close.
pub(crate) fn symbol(result: &LawResult) -> String {
    match result.verdict {
        Verdict::Meets | Verdict::Misses if result.is_reference => "=".to_owned(),
        verdict => format!("{}{}", verdict.symbol(), if result.is_close() { "≈" } else { "" }),
    }
}

/// Returns the mean with three significant digits: `17.9 Mb/s`; empty without one.
pub(crate) fn short(result: &LawResult, metric: &MetricInfo) -> String {
    let Some(mean) = result.mean() else { return String::new() };
    let (factor, unit) = display_unit(mean, metric);
    format!("{} {unit}", significant(mean * factor)).trim_end().to_owned()
}

/// Formats a value with three significant digits, or all before the point.
fn significant(value: f64) -> String {
    let magnitude = if value == 0.0 { 0.0 } else { libm::floor(libm::log10(value.abs())) };
    let decimals = (2.0 - magnitude).clamp(0.0, 3.0) as usize;
    format!("{value:.decimals$}")
}

/// Returns the number of networks by verdict, a line for each algorithm.
fn counts(plan: &EvaluationPlan, results: &[NetworkResult]) -> String {
    let names = Verdict::ALL.map(|verdict| (verdict.word(), Align::Right));
    let header: Vec<_> = std::iter::once(("networks", Align::Left))
        .chain(names)
        .chain(std::iter::once(("close", Align::Right)))
        .collect();
    let row = |(law, described): (usize, &Law)| {
        let count: VerdictCount = count(results, law);
        let numbers = Verdict::ALL.map(|verdict| count.of(verdict).to_string());
        let close = results.iter().filter(|network| network.is_close(law)).count();
        std::iter::once(described.name.clone())
            .chain(numbers)
            .chain(std::iter::once(close.to_string()))
            .collect()
    };
    let rows: Vec<Vec<String>> = plan.laws.iter().enumerate().map(row).collect();
    format!(
        "{}\n✓: every run meets the requirement, ~: some do, ✗: none, ?: no value.\n\
         ≈ and close: a limit {} % stricter or looser changes the verdict. =: the limit is a share of this value.\n\
         References: {}.\n",
        render(&header, &rows),
        100.0 * CLOSE,
        plan.references.join(", ")
    )
}

fn not_covered(plan: &EvaluationPlan) -> String {
    if plan.not_covered.is_empty() {
        return String::new();
    }
    let lines = plan.not_covered.iter().map(|part| format!("  {}: {}\n", part.clause, part.reason));
    format!("\nNot covered:\n{}", lines.collect::<String>())
}

/// Returns the failed runs: number and first reason of each algorithm on each network.
fn failed(plan: &EvaluationPlan, results: &[NetworkResult]) -> String {
    let mut lines = String::new();
    for (network, result) in plan.networks.iter().zip(results) {
        for (law, failed) in plan.laws.iter().zip(&result.failed) {
            if let Some((run, why)) = failed.first() {
                let why = why.trim_end().replace('\n', "\n    ");
                let runs = count_text(failed.len(), "run");
                lines.push_str(&format!("  {} on {}, {runs}; run {run}: {why}\n", law.name, network.id));
            }
        }
    }
    if lines.is_empty() { lines } else { format!("\nFailed:\n{lines}") }
}

/// Returns a mean with its interval and unit, for a page.
pub(crate) fn measured(result: &LawResult, metric: &MetricInfo) -> String {
    let Some(mean) = result.mean() else { return "–".to_owned() };
    let (factor, unit) = display_unit(mean, metric);
    let runs = result.runs.iter().map(|value| value * factor).collect();
    format!("{} {unit}", Measured::of(runs).text()).trim_end().to_owned()
}
