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
use hopline_lab::output::{Existing, OutputError, check_directory, write_file};
use hopline_lab::text;
use hopline_lab::{Plan, Problem};
use std::collections::BTreeMap;
use std::path::Path;

/// Number of networks with `--quick`: one of each kind at least.
const QUICK_NETWORKS: usize = 20;
/// Name of the file of results in the directory of results.
const RESULTS: &str = "draws.json";

/// Compares algorithms on random networks.
pub(crate) fn execute(args: &Args, random: &RandomNetworks) -> Result<(), Failure> {
    refuse_other_options(args)?;
    let comparison = Comparison::of(args, random)?;
    if let Some(folder) = &args.output {
        write_scenarios(folder, args.force, &comparison.networks)?;
    }
    console::catch_interrupts()?;
    let (outcomes, failed) = comparison.run(args)?;
    let results = comparison.results(&outcomes);
    let json = format!("{}\n", draws::json(&results));
    if let Some(folder) = &args.output {
        write_file(&folder.join(RESULTS), Existing::Replace, |file| file.write_all(json.as_bytes()))?;
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

fn refuse_other_options(args: &Args) -> Result<(), Problem> {
    let given = [("--readings", args.readings.is_some()), ("--report", args.report.is_some())];
    let Some((option, _)) = given.into_iter().find(|(_, is_given)| *is_given) else { return Ok(()) };
    Err(Problem::new(format!("{option}: random networks have no claims"))
        .help("leave it out; --output DIR keeps the scenarios and draws.json"))
}

/// Writes the scenario of each network, with copies of the traces that they name, into a directory without files.
fn write_scenarios(folder: &Path, force: bool, networks: &[Draw]) -> Result<(), Failure> {
    check_directory(folder)?;
    if !force && std::fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_some()) {
        return Err(OutputError::Exists { target: folder.to_owned() }.into());
    }
    let write = |name: &str, text: &str| {
        let path = folder.join(name);
        let parent = path.parent().unwrap_or(folder);
        std::fs::create_dir_all(parent)
            .map_err(|error| OutputError::Io { path: parent.to_owned(), error })?;
        write_file(&path, Existing::Replace, |file| file.write_all(text.as_bytes()))
    };
    for draw in networks {
        write(&format!("{}.toml", draw.id), &draw.toml)?;
    }
    let traces =
        networks.iter().filter_map(|draw| draw.stretch.as_ref()).map(|stretch| &stretch.trace.source);
    let traces: BTreeMap<&str, &str> =
        traces.map(|source| (source.name.as_str(), source.text.as_str())).collect();
    for (name, text) in traces {
        write(name, text)?;
    }
    Ok(())
}
