//! `hopline report`.

use super::experiment;
use crate::args::Report as Args;
use crate::console;
use crate::problems::Failure;
use hopline_lab::counted::count_text;
use hopline_lab::experiment::stored;
use hopline_lab::store::{REPORT, Status};
use hopline_lab::text;

/// Rebuilds the tables and the report of stored results.
pub(crate) fn execute(args: &Args) -> Result<(), Failure> {
    let (comparison, store) = stored(&args.directory)?;
    let comparison = comparison.with_objective(&args.asked.objective())?;
    store.put(REPORT, experiment::page(&comparison).as_bytes())?;
    if args.json {
        return console::print(&format!("{}\n", comparison.json()));
    }
    let mut shown = text::comparison::describe(&comparison) + &text::comparison::conclusion(&comparison);
    if store.status() == Status::Unfinished {
        let command = comparison.description.command.join(" ");
        shown.push_str(&format!(
            "\nnot complete, {} so far; `{command}` goes on\n",
            count_text(store.len(), "run")
        ));
    }
    shown.push_str(&format!("\nreport in {}\n", args.directory.join(REPORT).display()));
    console::print(&shown)
}
