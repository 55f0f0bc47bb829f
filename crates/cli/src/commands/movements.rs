//! `hopline movements`.

use crate::args::Movements as Args;
use crate::console;
use crate::problems::Failure;
use hopline_lab::Problem;
use hopline_lab::output::{Existing, movements, write_file};

/// Writes the movements of a run.
pub(crate) fn execute(args: &Args) -> Result<(), Failure> {
    let scenario = super::load(&args.given, &[])?;
    let spec = scenario.spec(args.run)?;
    let text = movements(&scenario, &spec, args.run).ok_or_else(|| {
        Problem::new(format!("{}: no node is wireless, so none moves", args.given.scenario.display()))
            .help("movement files are about wireless nodes: add [radio]")
    })?;
    let Some(target) = &args.output else { return console::print(&text) };
    let existing = if args.force { Existing::Replace } else { Existing::Refuse };
    Ok(write_file(target, existing, |file| file.write_all(text.as_bytes()))?)
}
