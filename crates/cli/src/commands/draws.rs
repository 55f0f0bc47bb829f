//! `hopline reproduce PAPER draws`.

use super::experiment;
use crate::args::Reproduce as Args;
use crate::console;
use crate::problems::{Failure, print_error_line};
use crate::progress::Progress;
use hopline_lab::claims::RandomNetworks;
use hopline_lab::counted::count_text;
use hopline_lab::draws::{self, Draw, Outcome, Results, Traces, generate};
use hopline_lab::evaluation::Law;
use hopline_lab::experiment::{RunOptions, in_memory};
use hopline_lab::output::{DRAWS_FORMAT, Directory, Existing, MANIFEST, OutputError};
use hopline_lab::text;
use hopline_lab::{Plan, Problem};
use serde_json::json;
use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::Path;

/// Number of networks with `--quick`: one of each kind at least.
const QUICK_NETWORKS: usize = 20;
/// Name of the file of results in the directory of results.
const RESULTS: &str = "draws.json";

/// Compares algorithms on random networks.
pub(crate) fn execute(args: &Args, random: &RandomNetworks) -> Result<(), Failure> {
    refuse_other_options(args)?;
    let comparison = Comparison::of(args, random)?;
    console::catch_interrupts()?;
    let existing = if args.force { Existing::Replace } else { Existing::Refuse };
    let directory = args.output.as_deref().map(|path| Directory::create(path, existing)).transpose()?;
    let (outcomes, failed) = comparison.run(args)?;
    let results = comparison.results(&outcomes);
    let json = format!("{}\n", draws::json(&results));
    if let Some(directory) = directory {
        write_scenarios(&directory, &comparison.networks)?;
        let manifest = json!({ "format": DRAWS_FORMAT, "seed": comparison.seed });
        write(&directory, MANIFEST, &format!("{manifest:#}\n"))?;
        write(&directory, RESULTS, &json)?;
        directory.finish()?;
    }
    if args.effort.json {
        console::print(&json)?;
    } else {
        console::print(&text::draws::describe(&results))?;
    }
    experiment::check_failed(failed)
}

/// Comparison to be run.
struct Comparison {
    seed: u64,
    /// Names of the algorithms.
    laws: Vec<String>,
    networks: Vec<Draw>,
    /// Number of files with traces.
    trace_files: usize,
    /// Plan of each network.
    plans: Vec<Plan>,
}

impl Comparison {
    /// Returns the comparison that the options request.
    fn of(args: &Args, random: &RandomNetworks) -> Result<Self, Failure> {
        let mut laws = random.laws.clone();
        for law in &args.law {
            laws.push(Law::parse(law)?);
            refuse_twice(&laws, law)?;
        }
        let traces = args.traces.as_deref().map(Traces::load).transpose()?.unwrap_or_default();
        let seed = args.seed.unwrap_or(1);
        let of_effort = if args.effort.quick { QUICK_NETWORKS } else { random.networks };
        let count = args.networks.map_or(of_effort, |networks| networks.get().into());
        let set = super::settings(&args.effort.set)?;
        let networks = generate(seed, count, &traces);
        let plans = networks.iter().map(|draw| draw.plan(&laws, &set)).collect::<Result<_, _>>()?;
        let laws = laws.into_iter().map(|law| law.name).collect();
        Ok(Self { seed, laws, networks, trace_files: traces.len(), plans })
    }

    /// Returns the outcomes by network, and the number of failed runs.
    fn run(&self, args: &Args) -> Result<(Vec<Vec<Outcome>>, usize), Failure> {
        if !args.effort.quiet {
            let size = count_text(self.laws.len(), "algorithm");
            print_error_line(&format!("{size} on {}", count_text(self.networks.len(), "random network")));
        }
        let command = experiment::command();
        let progress = Progress::new(args.effort.quiet);
        let how = RunOptions { jobs: args.effort.jobs.map(Into::into), command: &command, watch: &progress };
        let (mut outcomes, mut failed) = (Vec::new(), 0);
        for (draw, plan) in self.networks.iter().zip(&self.plans) {
            let (made, _) = in_memory(plan, how).map_err(|e| Failure::of_experiment(e, Path::new("")))?;
            outcomes.push(Outcome::of(draw, &made));
            failed += made.failed();
        }
        Ok((outcomes, failed))
    }

    fn results<'a>(&'a self, outcomes: &'a [Vec<Outcome>]) -> Results<'a> {
        let Self { seed, laws, networks, trace_files, .. } = self;
        Results { seed: *seed, laws, draws: networks, trace_files: *trace_files, outcomes }
    }
}

/// Refuses an algorithm that is there: results go by name.
fn refuse_twice(laws: &[Law], last: &str) -> Result<(), Problem> {
    if laws.iter().filter(|law| law.name == last).count() < 2 {
        return Ok(());
    }
    let names: Vec<&str> = laws[..laws.len() - 1].iter().map(|law| law.name.as_str()).collect();
    Err(Problem::new(format!("--law {last}: it is compared already"))
        .help(format!("compared are {}", names.join(", "))))
}

fn refuse_other_options(args: &Args) -> Result<(), Problem> {
    let given = [("--readings", args.readings.is_some()), ("--report", args.report.is_some())];
    let Some((option, _)) = given.into_iter().find(|(_, is_given)| *is_given) else { return Ok(()) };
    Err(Problem::new(format!("{option}: random networks have no claims"))
        .help("leave it out; --output DIR keeps the scenarios and draws.json"))
}

/// Writes the scenario of each network, with copies of the traces that they name.
fn write_scenarios(directory: &Directory, networks: &[Draw]) -> Result<(), OutputError> {
    for draw in networks {
        write(directory, &format!("{}.toml", draw.id), &draw.toml)?;
    }
    let traces =
        networks.iter().filter_map(|draw| draw.stretch.as_ref()).map(|stretch| &stretch.trace.source);
    let traces: BTreeMap<&str, &str> =
        traces.map(|source| (source.name.as_str(), source.text.as_str())).collect();
    traces.into_iter().try_for_each(|(name, text)| write(directory, name, text))
}

/// Writes a file, and the folders in which it is.
fn write(directory: &Directory, name: &str, text: &str) -> Result<(), OutputError> {
    if let Some(folder) = Path::new(name).parent() {
        let made = std::fs::create_dir_all(directory.draft().join(folder));
        made.map_err(|error| OutputError::Io { path: directory.place(name), error })?;
    }
    directory.write(name, |file| file.write_all(text.as_bytes()))
}
