//! Reference of metrics in docs/metrics.md, made from the catalogue.

use super::{Better, CATALOGUE, Level};
use std::fmt::Write;

/// Returns the catalogue as Markdown: a table for each level.
#[must_use]
pub fn reference() -> String {
    let mut text = String::new();
    for (level, heading) in [
        (Level::Run, "Of the run"),
        (Level::Group, "Of the flows of a kind or a class"),
        (Level::Flow, "Of each flow"),
        (Level::Pair, "Of every two flows"),
        (Level::Node, "Of each node"),
    ] {
        write!(text, "\n## {heading}\n\n| metric | unit | better | meaning |\n|---|---|---|---|\n")
            .expect("strings take everything");
        for info in CATALOGUE.iter().filter(|info| info.level() == level) {
            let better = match info.better {
                Better::Higher => "more",
                Better::Lower => "less",
                Better::Neither => "",
            };
            writeln!(text, "| `{}` | {} | {better} | {} |", info.name, info.unit, info.doc)
                .expect("strings take everything");
        }
    }
    text
}
