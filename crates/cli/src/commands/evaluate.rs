//! `hopline evaluate`.

use super::experiment;
use crate::args::Evaluate as Args;
use crate::console;
use crate::problems::{Failure, print_error_line};
use crate::progress::Progress;
use hopline_lab::counted::{count_text, count_text_as};
use hopline_lab::evaluation::{self, EvaluationPlan, Law, NetworkResult, Selection, Verdict};
use hopline_lab::experiment::RunOptions;
use hopline_lab::plan::{Effort, Runs};
use hopline_lab::{Comparison, Problem, report, text, view};
use hopline_scenario::CustomAlgorithms;
use indicatif::HumanCount;

/// Name of the report.
const NAME: &str = "evaluation";

/// Runs algorithms on the networks of an evaluation, and compares the runs with its requirements.
pub(crate) fn execute(args: &Args) -> Result<(), Failure> {
    let effort = if args.quick { Effort::Quick } else { Effort::Full };
    let plan = load(args, effort)?;
    if args.list {
        return console::print(&listed(&plan));
    }
    let report =
        (args.report.is_some() || !args.json).then(|| experiment::report_file(args.report.as_deref(), NAME));
    report.as_ref().map(experiment::ReportFile::check).transpose()?;
    console::catch_interrupts()?;
    if !args.quiet {
        print_error_line(&size(&plan));
    }
    let mut made = Vec::new();
    for network in &plan.networks {
        made.push(run(args, network)?);
    }
    let results = plan.judge(&made);
    if let Some(report) = &report {
        report.write(&report::html(&view::evaluation::report(&plan, &made, &results, effort)))?;
    }
    if args.json {
        console::print(&format!("{}\n", evaluation::json(&plan, &results)))?;
    } else {
        let mut shown = text::evaluation::describe(&plan, &results, effort);
        shown.push_str(&format!("\n{}\n", cost(&made)));
        if let Some(report) = &report {
            shown.push_str(&format!("report in {}\n", report.path().display()));
        }
        console::print(&shown)?;
    }
    check_all_ran(&made)?;
    if args.strict { check_verdicts(&plan, &results, args) } else { Ok(()) }
}

fn load(args: &Args, effort: Effort) -> Result<EvaluationPlan, Failure> {
    if let Some(own) = args.laws.iter().find(|law| law.starts_with("own:")) {
        let problem = Problem::new(format!("`{own}`: the command has no user-defined algorithms"));
        return Err(problem.help("evaluate it from Python or Rust: docs/evaluate.md").into());
    }
    let laws: Vec<Law> = args.laws.iter().map(|law| Law::parse(law)).collect::<Result<_, _>>()?;
    let runs = args.runs.map(|runs| u64::from(runs.get()));
    let file = evaluation::open(args.plan.as_deref())?;
    let set = super::settings(&args.set)?;
    let selection = Selection { only: &args.section, runs, effort, set: &set };
    Ok(file.load(&laws, selection, &CustomAlgorithms::default())?)
}

/// Makes the runs of a network.
fn run(args: &Args, network: &evaluation::Network) -> Result<Comparison, Failure> {
    let command = experiment::command();
    let progress = Progress::new(args.quiet);
    let how = RunOptions { jobs: args.jobs.map(Into::into), command: &command, watch: &progress };
    Ok(network.run(how)?)
}

/// Returns the networks with their requirements.
fn listed(plan: &EvaluationPlan) -> String {
    let mut listed = format!("{}\n", plan.title);
    for network in &plan.networks {
        listed.push_str(&format!("\n{}: {}\n  §{}\n", network.id, network.title, network.clause));
        for criterion in &network.criteria {
            listed.push_str(&format!("  {}\n", criterion.words(&plan.references)));
        }
    }
    listed
}

fn size(plan: &EvaluationPlan) -> String {
    let runs = plan.networks.iter().map(|network| match network.plan.runs {
        Runs::Fixed(runs) | Runs::Until { max: runs, .. } => runs * network.plan.points.len() as u64,
    });
    let runs: u64 = runs.sum();
    format!(
        "{} on {}, {}",
        count_text(plan.laws.len(), "algorithm"),
        count_text(plan.networks.len(), "network"),
        count_text_as(runs as usize, HumanCount(runs), "run")
    )
}

/// Returns the cost of all runs.
fn cost(made: &[Comparison]) -> String {
    let cpu_s: f64 = made.iter().flat_map(|network| &network.points).map(|point| point.cpu_s).sum();
    let runs: u64 = made.iter().map(|network| network.runs * network.points.len() as u64).sum();
    format!("{}, {cpu_s:.1} CPU s", count_text_as(runs as usize, HumanCount(runs), "run"))
}

/// Returns an error if a given algorithm misses a requirement.
fn check_verdicts(plan: &EvaluationPlan, results: &[NetworkResult], args: &Args) -> Result<(), Failure> {
    let is_given = |name: &String| args.laws.contains(name);
    let with = |wanted: Verdict| {
        let networks = plan.networks.iter().zip(results).filter(|(_, result)| {
            let mut verdicts = plan.laws.iter().zip(&result.verdicts);
            verdicts.any(|(law, verdict)| is_given(&law.name) && *verdict == wanted)
        });
        networks.map(|(network, _)| network.id.as_str()).collect::<Vec<_>>().join(", ")
    };
    let (missed, without) = (with(Verdict::Misses), with(Verdict::NoValue));
    let said = [("requirements missed on", missed), ("no value on", without)];
    let said = said.into_iter().filter(|(_, networks)| !networks.is_empty());
    let said: Vec<String> = said.map(|(what, networks)| format!("{what} {networks}")).collect();
    if said.is_empty() { Ok(()) } else { Err(Failure::Other(said.join("; "))) }
}

/// Returns an error if runs failed, on any network.
fn check_all_ran(made: &[Comparison]) -> Result<(), Failure> {
    match made.iter().map(Comparison::failed).sum() {
        0 => Ok(()),
        failed => Err(Failure::Other(format!("{} failed", count_text(failed, "run")))),
    }
}
