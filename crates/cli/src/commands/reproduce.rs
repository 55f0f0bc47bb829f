//! `hopline reproduce`.

use super::experiment;
use crate::args::{Readings, Reproduce as Args};
use crate::console;
use crate::problems::{Failure, print_error_line};
use crate::progress::Progress;
use hopline_config::document::Setting;
use hopline_lab::claims::{
    self, Evidence, Figure, Kind, RandomNetworks, Reading, Register, evaluate, evaluate_one,
};
use hopline_lab::comparison::Comparison;
use hopline_lab::counted::count_text_as;
use hopline_lab::experiment::{RunOptions, in_memory};
use hopline_lab::output::{Existing, OutputError, check_directory, write_file};
use hopline_lab::papers::Papers;
use hopline_lab::plan::{Effort, Runs};
use hopline_lab::{Plan, Problem, report, text, view};
use indicatif::HumanCount;
use std::path::Path;

/// Name of the file of verdicts in the directory of results.
const CLAIMS: &str = "claims.json";

/// Runs the plans of a paper and evaluates its claims.
pub(crate) fn execute(args: &Args) -> Result<(), Failure> {
    let papers = Papers::open(args.papers.as_deref())?;
    let Some(paper) = args.paper.as_ref().filter(|_| !args.list) else {
        return list(&papers, args.paper.as_deref());
    };
    let register = Register::load(&papers.folder(paper)?)?;
    if let Some(claim) = &args.explain {
        return explain(args, &register, claim);
    }
    if let Some(random) = register.draws.as_ref().filter(|_| is_draws(args)) {
        return super::draws::execute(args, random);
    }
    refuse_options_of_draws(args)?;
    let chosen = register.chosen(args.figure.as_deref())?;
    let effort = super::effort(&args.effort);
    let over = super::settings(&args.effort.set)?;
    let plan = |number: &usize| register.plan(&register.figures[*number], &over, effort);
    // Every plan is read before the first is run, so that an error in the last one is reported at once.
    let plans: Vec<Plan> = chosen.iter().map(plan).collect::<Result<_, _>>()?;
    if args.readings.is_some() && register.axes.is_empty() {
        print_error_line(&format!(
            "{paper}: its register leaves nothing open, so there are no other readings"
        ));
    }
    let read = match args.readings {
        None => Vec::new(),
        Some(readings) => alternative_readings(&register, &chosen, &over, readings.effort_of_others(effort))?,
    };
    if let Some(folder) = &args.output {
        check_directory(folder)?;
        let refused = |error| OutputError::Io { path: folder.clone(), error };
        std::fs::create_dir_all(folder).map_err(refused)?;
    }
    let report = report_file(args, paper);
    report.as_ref().map(experiment::ReportFile::check).transpose()?;
    if !args.effort.quiet && plans.len() > 1 {
        print_error_line(&format!("{paper}: {} figures, {}", plans.len(), all_runs(&plans)));
    }
    console::catch_interrupts()?;
    experiment::print_missing_formats(args.output.as_deref(), args.effort.quiet);
    let mut comparisons = Vec::new();
    for (number, plan) in chosen.iter().zip(&plans) {
        comparisons.push((*number, run(args, &register.figures[*number], plan)?));
    }
    let made: Vec<(usize, &Comparison)> = comparisons.iter().map(|(number, c)| (*number, c)).collect();
    let mut evidence = evaluate(&register, &made)?;
    let mut made_otherwise = Vec::new();
    for FigureReading { figure, reading, folder, plan } in read {
        let comparison = run_in(args, &folder, &plan)?;
        made_otherwise.push((figure, reading, comparison));
    }
    judge_alternative_readings(&register, &mut evidence, &made, &made_otherwise)?;
    if let Some(report) = &report {
        report.write(&report::html(&view::reproduction(&register, &made, &evidence, effort)))?;
    }
    let json = || format!("{}\n", claims::json(&register, &made, &evidence, effort));
    if let Some(folder) = &args.output {
        write_file(&folder.join(CLAIMS), Existing::Replace, |file| file.write_all(json().as_bytes()))?;
    }
    if args.effort.json {
        return console::print(&json());
    }
    let mut shown = text::reproduction::describe(&register, &made, &evidence, effort);
    if let Some(report) = &report {
        shown.push_str(&format!("\nreport in {}\n", report.path().display()));
    }
    console::print(&shown)
}

fn is_draws(args: &Args) -> bool {
    args.figure.as_deref() == Some(RandomNetworks::FIGURE)
}

/// Refuses options without effect.
fn refuse_options_of_draws(args: &Args) -> Result<(), Problem> {
    let given = [
        ("--seed", args.seed.is_some()),
        ("--networks", args.networks.is_some()),
        ("--law", !args.law.is_empty()),
        ("--traces", args.traces.is_some()),
    ];
    let Some((option, _)) = given.into_iter().find(|(_, is_given)| *is_given) else { return Ok(()) };
    Err(Problem::new(format!("{option} is for random networks only"))
        .help("for example: hopline reproduce wide draws --seed 7; --set seed=7 sets the seed of scenarios"))
}

/// Evaluates one claim, and prints the evidence of the verdict.
fn explain(args: &Args, register: &Register, id: &str) -> Result<(), Failure> {
    let claim = register.claim(id)?;
    if let Some(figure) = &args.figure {
        return Err(Problem::new(format!("`{figure}` beside --explain: a claim names its figures itself"))
            .help(format!("leave the figure out: hopline reproduce {} --explain {id}", register.id))
            .into());
    }
    let plans = register.plans_of(claim, &super::settings(&args.effort.set)?, super::effort(&args.effort))?;
    console::catch_interrupts()?;
    let mut comparisons = Vec::new();
    for (number, plan) in &plans {
        comparisons.push((*number, run(args, &register.figures[*number], plan)?));
    }
    let made: Vec<(usize, &Comparison)> = comparisons.iter().map(|(number, c)| (*number, c)).collect();
    let mut evidence = vec![evaluate_one(register, claim, &made)?];
    if let Some(readings) = args.readings {
        let effort = readings.effort_of_others(super::effort(&args.effort));
        let mut made_otherwise = Vec::new();
        for (number, reading, plan) in
            register.alternative_plans_of(claim, &super::settings(&args.effort.set)?, effort)?
        {
            made_otherwise.push((number, reading, run(args, &register.figures[number], &plan)?));
        }
        judge_alternative_readings(register, &mut evidence, &made, &made_otherwise)?;
    }
    if args.effort.json {
        return console::print(&format!("{}\n", evidence[0].json()));
    }
    let command = experiment::command().join(" ");
    console::print(&text::explanation::describe(register, &made, &evidence[0], &command))
}

/// Evaluates claims by other readings. `made` has the runs of the first reading, `otherwise` those of others.
fn judge_alternative_readings(
    register: &Register,
    evidence: &mut [Evidence<'_>],
    made: &[(usize, &Comparison)],
    otherwise: &[(usize, Reading, Comparison)],
) -> Result<(), Failure> {
    let others = otherwise.iter().map(|(number, reading, runs)| (*number, reading.clone(), runs));
    let all: Vec<_> = register.as_written(made).into_iter().chain(others).collect();
    Ok(register.judge_alternative_readings(evidence, &all)?)
}

impl Readings {
    /// Returns the effort of other readings, if that of the first is `first`.
    const fn effort_of_others(self, first: Effort) -> Effort {
        match self {
            Self::Full => first,
            Self::Quick => Effort::Quick,
        }
    }
}

/// Returns the number of runs of all plans, as far as it is known in advance.
fn all_runs(plans: &[Plan]) -> String {
    let least = |plan: &Plan| {
        let runs = match plan.runs {
            Runs::Fixed(runs) => runs,
            Runs::Until { first, .. } => first,
        };
        runs * plan.points.len() as u64
    };
    let more = plans.iter().any(|plan| matches!(plan.runs, Runs::Until { .. }));
    let runs = plans.iter().map(least).sum::<u64>();
    let runs = count_text_as(runs as usize, HumanCount(runs), "run");
    format!("{runs}{}", if more { " or more, until they are precise enough" } else { "" })
}

fn report_file(args: &Args, paper: &str) -> Option<experiment::ReportFile> {
    let beside = args.output.as_ref().map(|folder| folder.join("report.html"));
    let asked = args.report.clone().or(beside);
    (asked.is_some() || !args.effort.json).then(|| experiment::report_file(asked.as_deref(), paper))
}

/// Figure to be run by another reading.
struct FigureReading {
    figure: usize,
    reading: Reading,
    /// Folder of its results.
    folder: String,
    plan: Plan,
}

/// Returns every reading but the first of the figures that the paper's claims are evaluated by.
fn alternative_readings(
    register: &Register,
    chosen: &[usize],
    over: &[Setting],
    effort: Effort,
) -> Result<Vec<FigureReading>, Failure> {
    let mut read = Vec::new();
    for &number in chosen {
        let figure = &register.figures[number];
        let is_judged_by = register.claims_of(&figure.id).any(|claim| claim.kind != Kind::Own);
        let others = register.readings(figure).into_iter().enumerate().skip(1);
        for (place, reading) in others.filter(|_| is_judged_by) {
            let plan = register.plan_in_reading(figure, &reading, over, effort)?;
            let folder = format!("{}-reading-{}", figure.id, place + 1);
            read.push(FigureReading { figure: number, reading, folder, plan });
        }
    }
    Ok(read)
}

fn run(args: &Args, figure: &Figure, plan: &Plan) -> Result<Comparison, Failure> {
    run_in(args, &figure.id, plan)
}

/// Runs a plan; its results go to `folder` in the output directory.
fn run_in(args: &Args, folder: &str, plan: &Plan) -> Result<Comparison, Failure> {
    let command = experiment::command();
    let progress = Progress::of_plan(folder, args.effort.quiet);
    let how = RunOptions { jobs: args.effort.jobs.map(Into::into), command: &command, watch: &progress };
    match &args.output {
        None => Ok(in_memory(plan, how).map_err(|e| Failure::of_experiment(e, Path::new("")))?.0),
        Some(output) => {
            let folder = output.join(folder);
            Ok(experiment::run_in_directory(plan, how, None, &folder, args.force)?.0)
        }
    }
}

/// Prints papers, figures and claims.
fn list(papers: &Papers, only: Option<&str>) -> Result<(), Failure> {
    let mut text = String::new();
    for paper in papers.names()? {
        if only.is_some_and(|only| only != paper) {
            continue;
        }
        let register = Register::load(&papers.folder(&paper)?)?;
        text.push_str(&format!("{paper}: {}\n", register.paper));
        let width = register.figures.iter().map(|f| f.id.chars().count()).max().unwrap_or(0);
        for figure in &register.figures {
            let claims: Vec<&str> = register.claims_of(&figure.id).map(|c| c.id.as_str()).collect();
            let claims = if claims.is_empty() { String::new() } else { format!(" [{}]", claims.join(", ")) };
            text.push_str(&format!("  {:<width$}  {}{claims}\n", figure.id, figure.title));
        }
        if let Some(random) = &register.draws {
            let title = format!("Random networks, {} of a seed", random.networks);
            text.push_str(&format!("  {:<width$}  {title}\n", RandomNetworks::FIGURE));
        }
        let waiting =
            register.claims.iter().filter(|c| matches!(c.test, hopline_lab::claims::Test::Missing(_)));
        let waiting: Vec<&str> = waiting.map(|c| c.id.as_str()).collect();
        if !waiting.is_empty() {
            text.push_str(&format!("  cannot be judged yet: {}\n", waiting.join(", ")));
        }
        text.push('\n');
    }
    if let (Some(only), true) = (only, text.is_empty()) {
        papers.folder(only)?;
    }
    console::print(&text)
}
