//! Tables of parameters on pages: what a row states of a key is what the key declares.
//!
//! A mark before the table says what its rows are. It is required where a column such as "default" stands beside names of keys.
//!
//! | mark | rows |
//! |---|---|
//! | `<!-- keys: tcp -->` | keys of `[tcp]` |
//! | `<!-- keys: proxy, of ack-pacing -->` | the same, with the defaults of a kind or a protocol |
//! | `<!-- keys: queue, by radio.preset -->` | the same, and columns with a word of `radio.preset` have its defaults |
//! | `<!-- fields: gateway -->` | fields of Rust's configuration of a kind of proxy, also without the unit at the end of the key |
//! | `<!-- not keys: WHY -->` | anything else, which is not compared |
//!
//! Columns "default", "range", "takes" and "unit" are compared. A default may have a unit (`100 ms`), or be written as the
//! reference does, with its exceptions (`10, of bbr3: 5`). Several keys in a row have as many defaults, or one for all.

mod declared;
mod quantity;
mod table;

use crate::docs::page::Page;
use declared::Rows;
use table::Table;

/// Pages with tables that `make references` writes, which have these headers. Tests compare the whole tables.
const GENERATED: [&str; 6] = [
    "docs/claims.md",
    "docs/evaluate.md",
    "docs/metrics.md",
    "docs/plans.md",
    "docs/proxy-keys.md",
    "docs/scenario-keys.md",
];
const GENERATED_HEADERS: [&[&str]; 3] = [
    &["key", "takes", "default", "meaning"],
    &["key", "takes", "default", "example", "meaning"],
    &["metric", "unit", "better", "meaning"],
];

/// Checks every table of parameters of `page`.
///
/// # Errors
///
/// Rows that state something else than their key, rows that cannot be read, and tables without a mark.
pub(crate) fn check(page: &Page) -> Result<(), Vec<String>> {
    let is_generated = |table: &&Table| {
        GENERATED.contains(&&*page.name) && GENERATED_HEADERS.iter().any(|h| table.header == *h)
    };
    let problems: Vec<String> = Table::all(&page.text)
        .iter()
        .filter(|table| !is_generated(table))
        .flat_map(problems)
        .map(|(line, problem)| format!("{}:{line}: {problem}", page.name))
        .collect();
    if problems.is_empty() { Ok(()) } else { Err(problems) }
}

/// Returns the lines with problems of `table`, each with the problem.
fn problems(table: &Table) -> Vec<(usize, String)> {
    match table.mark.as_deref().map(Rows::of_mark) {
        None if is_suspect(table) => {
            let message =
                "a table of parameters without a mark; crates/cli/tests/docs/parameters.rs has the marks";
            vec![(table.line, message.to_owned())]
        }
        None | Some(Ok(None)) => Vec::new(),
        Some(Err(why)) => vec![(table.line, why)],
        Some(Ok(Some(rows))) => table
            .rows
            .iter()
            .flat_map(|(line, cells)| rows.problems(&table.header, cells).into_iter().map(|why| (*line, why)))
            .collect(),
    }
}

/// Returns whether `table` states properties of keys.
fn is_suspect(table: &Table) -> bool {
    let is_property = |cell: &String| declared::is_property(cell) || declared::is_preset(cell);
    table.header.iter().any(is_property)
        && table
            .rows
            .iter()
            .any(|(_, cells)| cells.first().is_some_and(|cell| declared::begins_with_key(cell)))
}
