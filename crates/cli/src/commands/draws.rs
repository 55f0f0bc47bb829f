//! `hopline reproduce PAPER draws`.

use super::experiment;
use crate::args::Reproduce as Args;
use crate::console;
use crate::problems::{Failure, print_error_line};
use crate::progress::Progress;
use hopline_lab::Problem;
use hopline_lab::claims::RandomNetworks;
use hopline_lab::counted::count_text;
use hopline_lab::draws::{self, Draw, Outcome, generate};
use hopline_lab::evaluation::Law;
use hopline_lab::experiment::{RunOptions, in_memory};
use hopline_lab::output::{Existing, OutputError, check_directory, write_file};
use hopline_lab::text;
use std::path::Path;

/// Number of networks with `--quick`: one of each kind at least.
const QUICK_NETWORKS: usize = 20;
/// Name of the file of results in the directory of results.
const RESULTS: &str = "draws.json";

/// Compares algorithms on random networks.
pub(crate) fn execute(args: &Args, random: &RandomNetworks) -> Result<(), Failure> {
    refuse_other_options(args)?;
    let mut laws = random.laws.clone();
    for law in &args.law {
        laws.push(Law::parse(law)?);
    }
    let names: Vec<String> = laws.iter().map(|law| law.name.clone()).collect();
    let seed = args.seed.unwrap_or(1);
    let of_effort = if args.effort.quick { QUICK_NETWORKS } else { random.networks };
    let count = args.networks.map_or(of_effort, |networks| networks.get().into());
    let set = super::settings(&args.effort.set)?;
    let networks = generate(seed, count);
    let plans = networks.iter().map(|draw| draw.plan(&laws, &set)).collect::<Result<Vec<_>, _>>()?;
    if let Some(folder) = &args.output {
        check_directory(folder)?;
        if !args.force && std::fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_some()) {
            return Err(OutputError::Exists { target: folder.clone() }.into());
        }
        write_scenarios(folder, &networks)?;
    }
    console::catch_interrupts()?;
    if !args.effort.quiet {
        let size = count_text(laws.len(), "algorithm");
        print_error_line(&format!("{size} on {}", count_text(networks.len(), "random network")));
    }
    let command = experiment::command();
    let progress = Progress::new(args.effort.quiet);
    let how = RunOptions { jobs: args.effort.jobs.map(Into::into), command: &command, watch: &progress };
    let (mut outcomes, mut failed) = (Vec::new(), Ok(()));
    for (draw, plan) in networks.iter().zip(&plans) {
        let (made, _) = in_memory(plan, how).map_err(|e| Failure::of_experiment(e, Path::new("")))?;
        outcomes.push(Outcome::of(draw, &made));
        failed = failed.and(experiment::check_all_ran(&made));
    }
    let json = format!("{}\n", draws::json(seed, &names, &networks, &outcomes));
    if let Some(folder) = &args.output {
        write_file(&folder.join(RESULTS), Existing::Replace, |file| file.write_all(json.as_bytes()))?;
    }
    if args.effort.json {
        console::print(&json)?;
    } else {
        console::print(&text::draws::describe(seed, &names, &networks, &outcomes))?;
    }
    failed
}

fn refuse_other_options(args: &Args) -> Result<(), Problem> {
    let given = [("--readings", args.readings.is_some()), ("--report", args.report.is_some())];
    let Some((option, _)) = given.into_iter().find(|(_, is_given)| *is_given) else { return Ok(()) };
    Err(Problem::new(format!("{option}: random networks have no claims"))
        .help("leave it out; --output DIR keeps the scenarios and draws.json"))
}

/// Writes the scenario of each network.
fn write_scenarios(folder: &Path, networks: &[Draw]) -> Result<(), Failure> {
    let refused = |error| OutputError::Io { path: folder.to_owned(), error };
    std::fs::create_dir_all(folder).map_err(refused)?;
    for draw in networks {
        let path = folder.join(format!("{}.toml", draw.id));
        write_file(&path, Existing::Replace, |file| file.write_all(draw.toml.as_bytes()))?;
    }
    Ok(())
}
