//! `hopline doctor`.

use crate::args::Doctor as Args;
use crate::console;
use crate::doctor::{Finding, State, findings};
use crate::problems::Failure;
use hopline_lab::text::table::{Align, render};
use serde_json::json;

/// Prints what this machine offers. Missing items are no failure.
pub(crate) fn execute(args: &Args) -> Result<(), Failure> {
    let findings = findings();
    console::print(&if args.json {
        format!("{}\n", json!({ "findings": findings }))
    } else {
        describe(&findings)
    })
}

fn describe(findings: &[Finding]) -> String {
    let header = [
        ("what", Align::Left),
        ("there", Align::Left),
        ("which", Align::Left),
        ("what it is for", Align::Left),
    ];
    let row = |f: &Finding| {
        let there = match f.state {
            State::Present => "yes",
            State::Missing => "no",
            State::Unknown => "?",
        };
        vec![f.what.to_owned(), there.to_owned(), f.detail.clone(), f.purpose.to_owned()]
    };
    let table = render(&header, &findings.iter().map(row).collect::<Vec<_>>());
    let remedies = findings.iter().filter_map(|f| Some(format!("  {}: {}\n", f.what, f.remedy?)));
    let remedies: String = remedies.collect();
    if remedies.is_empty() { table } else { format!("{table}\nTo get what is missing:\n{remedies}") }
}
