//! One file for each command.

pub(crate) mod compare;
pub(crate) mod completions;
pub(crate) mod doctor;
mod experiment;
pub(crate) mod man;
pub(crate) mod movements;
pub(crate) mod report;
pub(crate) mod reproduce;
pub(crate) mod run;
pub(crate) mod schema;
pub(crate) mod sweep;

use crate::args::{PlanArgs, ScenarioArgs};
use crate::problems::Failure;
use hopline_config::document::Setting;
use hopline_lab::animation::{Window, WindowError};
use hopline_lab::plan;
use hopline_lab::{Problem, Scenario};

/// Returns the scenario with the settings of the options applied: `--set`, `--seed`, then `more`.
fn load(given: &ScenarioArgs, more: &[Setting]) -> Result<Scenario, Failure> {
    let mut settings = settings(&given.set)?;
    settings.extend(given.seed.map(|seed| Setting::of_option("--seed", "seed", seed)));
    settings.extend_from_slice(more);
    Ok(Scenario::load(&given.scenario, &settings)?)
}

/// Returns the part of a run that a report animates: `--animate`, or else that of the scenario.
fn window(asked: Option<Window>, scenario: &Scenario) -> Result<Option<Window>, Failure> {
    let of_file = || scenario.animation().map(|(from, to)| Window::new(from, to)).transpose();
    let problem = |option: &str, error: WindowError| Problem::new(format!("{option}: {error}"));
    let window = match asked {
        Some(window) => Some(window),
        None => of_file().map_err(|error| problem("[animation]", error))?,
    };
    let within = window.map(|window| window.within(scenario.duration())).transpose();
    Ok(within.map_err(|error| problem("--animate", error))?)
}

/// Parses the settings of `--set`.
fn settings(set: &[String]) -> Result<Vec<Setting>, Failure> {
    Ok(set.iter().map(|text| Setting::parse("--set", text)).collect::<Result<_, _>>()?)
}

/// Returns the share of a plan that is run.
const fn effort(args: &PlanArgs) -> plan::Effort {
    if args.quick { plan::Effort::Quick } else { plan::Effort::Full }
}
