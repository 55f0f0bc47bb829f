//! Networks of an evaluation.

use super::criterion::Criterion;
use super::keys;
use super::law::{LAW_CLASS, Law};
use crate::comparison::Comparison;
use crate::experiment::{ExperimentError, RunOptions, in_memory};
use crate::objective::Objective;
use crate::plan::{Keep, KeepNodes, KeepPairs, KeepSeries, Plan, Runs};
use hopline_config::document::Setting;
use hopline_config::schema::Section;
use hopline_config::source::{Problem, Problems};
use hopline_scenario::{CustomAlgorithms, Scenario, settings};
use hopline_sim::Spec;
use std::path::Path;

/// A network, with the plan of its runs and the criteria.
#[derive(Clone, Debug)]
pub struct Network {
    /// Name on the command line.
    pub id: String,
    /// Section of the document that asks for it.
    pub clause: String,
    /// Description.
    pub title: String,
    /// Its runs: a point for each algorithm, the references first.
    pub plan: Plan,
    /// Requirements; the metric of the first is drawn.
    pub criteria: Vec<Criterion>,
}

/// Context of a network in its file.
pub(super) struct Context<'a> {
    pub(super) folder: &'a Path,
    /// Names of the references, the first of `laws`.
    pub(super) references: &'a [String],
    pub(super) laws: &'a [Law],
    /// Runs of a network that says nothing.
    pub(super) runs: u64,
    /// Runs that take precedence over those of the network.
    pub(super) fixed_runs: Option<u64>,
    /// Settings over those of the network.
    pub(super) set: &'a [Setting],
    pub(super) machines: &'a CustomAlgorithms,
}

impl Network {
    pub(super) fn of(section: &Section<'_>, context: &Context<'_>) -> Result<Self, Problems> {
        let path = context.folder.join(section.get(keys::network::SCENARIO));
        if !path.is_file() {
            return Err(Problem::new(format!("there is no scenario file {}", path.display()))
                .at(section.origin_of("scenario"))
                .help("the path starts in the folder of the evaluation file")
                .into());
        }
        let mut set: Vec<Setting> = section.node("set").map(settings).unwrap_or_default();
        set.extend_from_slice(context.set);
        let scenario = Scenario::load_with(&path, &set, context.machines.clone())?;
        let marks = section.flag("marks").unwrap_or(false);
        let variant = |law: &Law| Ok((law.name.clone(), law.settings_on(&scenario, marks)?));
        let variants = context.laws.iter().map(variant).collect::<Result<Vec<_>, Problem>>()?;
        let mut plan = Plan::of_variants(&scenario, &variants)?;
        let (id, title) = (section.get(keys::network::ID), section.get(keys::network::TITLE));
        (plan.name, plan.title) = (id.to_owned(), Some(title.to_owned()));
        let runs = context.fixed_runs.or(section.integer("runs")).unwrap_or(context.runs);
        plan.runs = Runs::Fixed(runs);
        plan.keep = Keep { series: KeepSeries::FirstRun, nodes: KeepNodes::Drop, pairs: KeepPairs::Drop };
        check_flows(&plan, section)?;
        let criteria = section.sections("criterion");
        if criteria.is_empty() {
            let problem =
                Problem::new(format!("the network \"{}\" has no criterion", section.get(keys::network::ID)));
            return Err(problem.at(section.origin_of("criterion")).help("add [[network.criterion]]").into());
        }
        let criteria = criteria.iter().map(|c| Criterion::of(c, &plan.flows, context.references));
        let criteria = criteria.collect::<Result<Vec<_>, _>>()?;
        if let Some(first) = criteria.first() {
            plan.objective = Objective { asked: first.metric.clone(), bound: None };
        }
        Ok(Self {
            id: id.to_owned(),
            clause: section.get(keys::network::CLAUSE).to_owned(),
            title: title.to_owned(),
            plan,
            criteria,
        })
    }

    /// Makes its runs, in memory.
    ///
    /// # Errors
    /// If they are interrupted.
    pub fn run(&self, how: RunOptions<'_>) -> Result<Comparison, ExperimentError> {
        Ok(in_memory(&self.plan, how)?.0)
    }
}

/// Refuses a network without flows of the evaluated algorithm, and one in which an algorithm would change other flows too.
fn check_flows(plan: &Plan, section: &Section<'_>) -> Result<(), Problems> {
    let origin = section.origin_of("scenario");
    let first = plan.points[0].scenario.spec(1)?;
    if !first.flows.iter().any(|flow| flow.labels.class == LAW_CLASS) {
        let problem = Problem::new(format!("the scenario has no flow of class \"{LAW_CLASS}\""));
        return Err(problem.at(origin).help("flows of that class run over the evaluated algorithm").into());
    }
    for point in &plan.points[1..] {
        let other = point.scenario.spec(1)?;
        if let Some(name) = changed_flow(&first, &other) {
            let problem = Problem::new(format!("\"{}\" would change the flow \"{name}\" too", point.label));
            let help = format!(
                "a flow without class \"{LAW_CLASS}\" needs its own `transport` and `tcp.congestion_control`, and with marks its own `tcp.ecn`"
            );
            return Err(problem.at(origin).help(help).into());
        }
    }
    Ok(())
}

/// Returns the first flow of another class that differs between two specifications.
fn changed_flow<'a>(first: &'a Spec, other: &Spec) -> Option<&'a str> {
    let pairs = first.flows.iter().zip(&other.flows);
    let mut pairs = pairs.filter(|(flow, _)| flow.labels.class != LAW_CLASS);
    pairs.find(|(one, two)| one.traffic != two.traffic).map(|(flow, _)| flow.name.as_str())
}
