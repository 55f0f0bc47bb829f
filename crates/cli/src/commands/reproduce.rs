//! `hopline reproduce`.

use super::experiment;
use crate::args::Reproduce as Args;
use crate::console;
use crate::papers::Papers;
use crate::problems::{Failure, say};
use crate::progress::Progress;
use crate::table::{Align, render};
use hopline_lab::claims::{Evidence, Figure, Register, Tally, Verdict, evaluate};
use hopline_lab::comparison::Comparison;
use hopline_lab::experiment::{How, in_memory};
use hopline_lab::output::OutputError;
use hopline_lab::plan::{Effort, Runs};
use hopline_lab::{Plan, report, view};
use indicatif::HumanCount;
use serde_json::json;
use std::path::Path;

/// Runs the plans of a paper and judges its claims.
pub(crate) fn execute(args: &Args) -> Result<(), Failure> {
    let papers = Papers::open(args.papers.as_deref())?;
    let Some(paper) = args.paper.as_ref().filter(|_| !args.list) else {
        return list(&papers, args.paper.as_deref());
    };
    let register = Register::load(&papers.folder(paper)?)?;
    let chosen = choose(&register, args.figure.as_deref())?;
    let effort = super::effort(&args.effort);
    let over = super::settings(&args.effort.set)?;
    let plan = |number: &usize| register.plan(&register.figures[*number], &over, effort);
    // Every plan is read before the first is run: a mistake in the last one shows at once.
    let plans: Vec<Plan> = chosen.iter().map(plan).collect::<Result<_, _>>()?;
    if let Some(folder) = &args.output {
        let refused = |error| OutputError::Io { path: folder.clone(), error };
        std::fs::create_dir_all(folder).map_err(refused)?;
    }
    let report = report_file(args, paper);
    report.as_ref().map(experiment::ReportFile::check).transpose()?;
    if !args.effort.quiet && plans.len() > 1 {
        say(&format!("{paper}: {} figures, {}", plans.len(), all_runs(&plans)));
    }
    console::catch_interrupts()?;
    let mut comparisons = Vec::new();
    for (number, plan) in chosen.iter().zip(&plans) {
        comparisons.push((*number, run(args, &register.figures[*number], plan)?));
    }
    let made: Vec<(usize, &Comparison)> = comparisons.iter().map(|(number, c)| (*number, c)).collect();
    let evidence = evaluate(&register, &made)?;
    if let Some(report) = &report {
        report.write(&report::html(&view::reproduction(&register, &made, &evidence, effort)))?;
    }
    if args.effort.json {
        let claims: Vec<_> = evidence.iter().map(Evidence::json).collect();
        let figures: Vec<_> = made.iter().map(|(n, c)| json!([register.figures[*n].id, c.json()])).collect();
        let json = json!({
            "paper": register.paper,
            "quick": effort == Effort::Quick,
            "claims": claims,
            "counts": Tally::of(&evidence).json(),
            "along": register.along,
            "figures": figures,
        });
        return console::print(&format!("{json}\n"));
    }
    let mut text = String::new();
    for (_, comparison) in &made {
        text.push_str(&(experiment::describe(comparison) + "\n"));
    }
    text.push_str(&verdicts(&register, &evidence, effort));
    text.push_str(&along(&view::claims(&register, &evidence, effort)));
    text.push_str(&counts(&evidence));
    if let Some(report) = &report {
        text.push_str(&format!("\nreport in {}\n", report.path().display()));
    }
    console::print(&text)
}

/// The numbers of the figures that were asked for.
fn choose(register: &Register, figure: Option<&str>) -> Result<Vec<usize>, Failure> {
    let Some(asked) = figure else { return Ok((0..register.figures.len()).collect()) };
    match register.figures.iter().position(|f| f.id == asked) {
        Some(number) => Ok(vec![number]),
        None => {
            let known: Vec<&str> = register.figures.iter().map(|f| f.id.as_str()).collect();
            let problem = hopline_lab::Problem::new(format!("{} has no figure `{asked}`", register.id));
            Err(problem.help(format!("its figures are {}", known.join(", "))).into())
        }
    }
}

/// How many runs there are in all plans together, as far as is known before any is made.
fn all_runs(plans: &[Plan]) -> String {
    let least = |plan: &Plan| {
        let runs = match plan.runs {
            Runs::Fixed(runs) => runs,
            Runs::Until { first, .. } => first,
        };
        runs * plan.points.len() as u64
    };
    let more = plans.iter().any(|plan| matches!(plan.runs, Runs::Until { .. }));
    let runs = HumanCount(plans.iter().map(least).sum());
    format!("{runs} runs{}", if more { " or more, until they are precise enough" } else { "" })
}

fn report_file(args: &Args, paper: &str) -> Option<experiment::ReportFile> {
    let beside = args.output.as_ref().map(|folder| folder.join("report.html"));
    let asked = args.report.clone().or(beside);
    (asked.is_some() || !args.effort.json).then(|| experiment::report_file(asked.as_deref(), paper))
}

fn run(args: &Args, figure: &Figure, plan: &Plan) -> Result<Comparison, Failure> {
    let command = experiment::command();
    let progress = Progress::of_plan(&figure.id, args.effort.quiet);
    let how = How { jobs: args.effort.jobs.map(Into::into), command: &command, watch: &progress };
    match &args.output {
        None => Ok(in_memory(plan, how).map_err(|e| Failure::of_experiment(e, Path::new("")))?.0),
        Some(folder) => {
            let folder = folder.join(&figure.id);
            Ok(experiment::kept(plan, how, None, &folder, args.force)?.0)
        }
    }
}

fn verdicts(register: &Register, evidence: &[Evidence<'_>], effort: Effort) -> String {
    let header = [
        ("claim", Align::Left),
        ("scenario", Align::Left),
        ("metric", Align::Left),
        ("claimed", Align::Left),
        ("measured", Align::Left),
        ("verdict", Align::Left),
    ];
    let row = |e: &Evidence<'_>| {
        let shown = view::claim(e);
        let said = [e.why.clone(), e.runs()].into_iter().filter(|text| !text.is_empty());
        let why = said.map(|text| format!(": {text}")).collect::<String>();
        vec![
            shown.id,
            shown.scenario,
            shown.metric,
            e.claimed(),
            view::measured(e),
            format!("{}{why}", e.verdict.word()),
        ]
    };
    let quick = match effort {
        Effort::Quick => "\nQUICK: fewer runs than the plan says; a verdict may change with all of them.\n",
        Effort::Full => "",
    };
    if evidence.is_empty() {
        return format!("{}\n\nNo claim is judged by this alone.\n{quick}", register.paper);
    }
    let rows: Vec<Vec<String>> = evidence.iter().map(row).collect();
    format!("{}\n\n{}\n{}.\n{quick}", register.paper, render(&header, &rows), register.rule.describe())
}

/// How many claims agree, under each heading.
fn counts(evidence: &[Evidence<'_>]) -> String {
    let lines = Tally::of(evidence).lines();
    if lines.is_empty() { String::new() } else { format!("\n{}\n", lines.join("\n")) }
}

/// What becomes of claims along the key that the register names; nothing if it names none.
fn along(claims: &report::Claims) -> String {
    let values = claims.along_values();
    if values.is_empty() {
        return String::new();
    }
    let columns = values.iter().map(|value| (*value, Align::Right));
    let header: Vec<_> =
        [("claim", Align::Left), ("claimed", Align::Left)].into_iter().chain(columns).collect();
    let cell = |claim: &report::Claim, value: &str| {
        let at = claim.at(value);
        at.map_or_else(String::new, |at| {
            let measured = at.measured.as_ref().map_or_else(|| "-".to_owned(), report::Measured::text);
            format!("{measured} {}", at.verdict.symbol())
        })
    };
    let row = |claim: &report::Claim| {
        let cells = values.iter().map(|value| cell(claim, value));
        [claim.id.clone(), claim.claimed.clone()].into_iter().chain(cells).collect()
    };
    let judged = claims.claims.iter().filter(|claim| !claim.along.is_empty());
    let agreeing = values.iter().map(|value| claims.agreeing(value));
    let last = ["agree".to_owned(), String::new()].into_iter().chain(agreeing).collect();
    let rows: Vec<Vec<String>> = judged.map(row).chain(std::iter::once(last)).collect();
    let legend = Verdict::ALL.map(|verdict| format!("{} {}", verdict.symbol(), verdict.word())).join(", ");
    format!("\nalong {} ({legend})\n\n{}", claims.along, render(&header, &rows))
}

/// Papers, figures and claims.
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
        let waiting =
            register.claims.iter().filter(|c| matches!(c.test, hopline_lab::claims::Test::Needs(_)));
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
