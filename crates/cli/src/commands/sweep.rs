//! `hopline sweep`.

use super::experiment;
use crate::args::Sweep as Args;
use crate::console;
use crate::net;
use crate::problems::Failure;
use crate::progress::Progress;
use hopline_lab::experiment::RunOptions;
use hopline_lab::{Plan, text};

/// Runs a plan in a directory, or resumes it.
pub(crate) fn execute(args: &Args) -> Result<(), Failure> {
    let load = if args.over.virtual_time() { Plan::load_network } else { Plan::load };
    let plan = load(&args.plan, &super::settings(&args.effort.set)?, super::effort(&args.effort))?;
    let plan = net::with_kernels(plan.with_objective(args.asked.objective())?, &args.over)?;
    console::catch_interrupts()?;
    experiment::print_missing_formats(Some(&args.output), args.effort.quiet);
    let command = experiment::command();
    let progress = Progress::of_plan(&plan.name, args.effort.quiet);
    let how = RunOptions { jobs: args.effort.jobs.map(Into::into), command: &command, watch: &progress };
    let (comparison, _store) = experiment::run_in_directory(&plan, how, None, &args.output, args.force)?;
    drop(progress);
    if args.effort.json {
        console::print(&format!("{}\n", comparison.json()))?;
    } else {
        let place = args.output.display();
        let shown = text::comparison::describe(&comparison) + &text::comparison::conclusion(&comparison);
        console::print(&format!("{shown}\nresults and report.html in {place}\n"))?;
    }
    experiment::check_all_ran(&comparison)
}
