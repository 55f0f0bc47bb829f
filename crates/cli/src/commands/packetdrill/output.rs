//! Verdicts as text, in the form of `cargo test`, and as JSON.

use super::tried::Tried;
use hopline_lab::text::table::{Align, render};
use hopline_packetdrill::Verdict;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::Write;

/// Numbers of scripts by verdict.
#[derive(Default)]
struct Counts {
    passed: usize,
    failed: usize,
    not_applicable: usize,
}

impl Counts {
    fn of(tried: &[Tried]) -> Self {
        let mut counts = Self::default();
        for script in tried {
            match script.verdict {
                Verdict::Passed => counts.passed += 1,
                Verdict::Failed(_) => counts.failed += 1,
                Verdict::NotApplicable { .. } => counts.not_applicable += 1,
            }
        }
        counts
    }
}

/// Returns one line for each script, the failures with their differences, the reasons, and the result.
pub(super) fn text(tried: &[Tried], summary: bool) -> String {
    let mut out = String::new();
    if !summary {
        out += &format!("running {} script{}\n", tried.len(), if tried.len() == 1 { "" } else { "s" });
        for script in tried {
            out += &format!("test {} ... {}\n", script.name, verdict(&script.verdict));
        }
        out += &failures(tried);
    }
    out += &reasons(tried);
    let Counts { passed, failed, not_applicable } = Counts::of(tried);
    let result = if failed == 0 { "ok" } else { "FAILED" };
    out + &format!("\nresult: {result}. {passed} passed; {failed} failed; {not_applicable} not applicable\n")
}

fn verdict(verdict: &Verdict) -> String {
    match verdict {
        Verdict::Passed => "ok".to_owned(),
        Verdict::Failed(_) => "FAILED".to_owned(),
        Verdict::NotApplicable { line, reason } => format!("not applicable, line {line}: {reason}"),
    }
}

fn failures(tried: &[Tried]) -> String {
    let mut out = String::new();
    for script in tried {
        if let Verdict::Failed(failure) = &script.verdict {
            let heading = if out.is_empty() { "\nfailures:\n" } else { "" };
            let name = &script.name;
            // Writing to a string does not fail.
            let _ = write!(
                out,
                "{heading}\n{name}:{}: {}\n  - {}\n  + {}\n",
                failure.line, failure.difference, failure.expected, failure.actual
            );
        }
    }
    out
}

/// Returns the table of the features for want of which scripts do not apply.
fn reasons(tried: &[Tried]) -> String {
    let mut scripts: BTreeMap<&str, usize> = BTreeMap::new();
    for script in tried {
        if let Verdict::NotApplicable { reason, .. } = &script.verdict {
            *scripts.entry(reason).or_default() += 1;
        }
    }
    if scripts.is_empty() {
        return String::new();
    }
    let mut rows: Vec<_> = scripts.into_iter().collect();
    rows.sort_by_key(|(reason, count)| (usize::MAX - count, *reason));
    let header = [("not applicable for want of", Align::Left), ("scripts", Align::Right)];
    let rows: Vec<_> =
        rows.iter().map(|(reason, count)| vec![(*reason).to_owned(), count.to_string()]).collect();
    format!("\n{}", render(&header, &rows))
}

/// Returns one object: the numbers, and each script with its verdict.
pub(super) fn json(tried: &[Tried]) -> String {
    let Counts { passed, failed, not_applicable } = Counts::of(tried);
    let scripts: Vec<_> = tried.iter().map(script_json).collect();
    let all = json!({
        "passed": passed,
        "failed": failed,
        "not_applicable": not_applicable,
        "scripts": scripts,
    });
    format!("{all}\n")
}

fn script_json(script: &Tried) -> Value {
    let name = &script.name;
    match &script.verdict {
        Verdict::Passed => json!({ "script": name, "verdict": "passed" }),
        Verdict::NotApplicable { line, reason } => {
            json!({ "script": name, "verdict": "not applicable", "line": line, "reason": reason })
        }
        Verdict::Failed(failure) => json!({
            "script": name,
            "verdict": "failed",
            "line": failure.line,
            "difference": failure.difference,
            "expected": failure.expected,
            "actual": failure.actual,
        }),
    }
}
