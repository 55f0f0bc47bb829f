//! Commands, one module each, and the functions that several commands share.

pub(crate) mod compare;
pub(crate) mod completions;
pub(crate) mod doctor;
mod draws;
pub(crate) mod evaluate;
pub(crate) mod experiment;
pub(crate) mod man;
pub(crate) mod movements;
pub(crate) mod packetdrill;
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

/// Loads the scenario file and applies `--set`, then `--seed`, then `more`; a later setting overrides an earlier one.
fn load(given: &ScenarioArgs, more: &[Setting]) -> Result<Scenario, Failure> {
    let settings = scenario_settings(given, more)?;
    Ok(Scenario::load(&given.scenario, &settings)?)
}

/// Does the same for a scenario that needs no flows, since programs outside send.
#[cfg(feature = "net")]
pub(crate) fn load_network(given: &ScenarioArgs) -> Result<Scenario, Failure> {
    let settings = scenario_settings(given, &[])?;
    Ok(Scenario::load_network(&given.scenario, &settings)?)
}

fn scenario_settings(given: &ScenarioArgs, more: &[Setting]) -> Result<Vec<Setting>, Failure> {
    let mut settings = settings(&given.set)?;
    settings.extend(given.seed.map(|seed| Setting::of_option("--seed", "seed", seed)));
    settings.extend_from_slice(more);
    Ok(settings)
}

/// Returns the period of a run that the report animates: `--animate`, or by default `[animation]` of the scenario. `None`:
/// no animation.
fn animation_window(option: Option<Window>, scenario: &Scenario) -> Result<Option<Window>, Failure> {
    let of_file = || scenario.animation().map(|(from, to)| Window::new(from, to)).transpose();
    let problem = |origin: &str, error: WindowError| Problem::new(format!("{origin}: {error}"));
    let window = match option {
        Some(window) => Some(window),
        None => of_file().map_err(|error| problem("[animation]", error))?,
    };
    let within = window.map(|window| window.within(scenario.duration())).transpose();
    Ok(within.map_err(|error| problem("--animate", error))?)
}

/// Parses the values of `--set`, each `KEY=VALUE`.
fn settings(set: &[String]) -> Result<Vec<Setting>, Failure> {
    Ok(set.iter().map(|text| Setting::parse("--set", text)).collect::<Result<_, _>>()?)
}

/// Returns how many of a plan's runs are made: all, or with `--quick` its `quick_runs`.
const fn effort(args: &PlanArgs) -> plan::Effort {
    if args.quick { plan::Effort::Quick } else { plan::Effort::Full }
}
