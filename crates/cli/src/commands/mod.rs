//! One file a command.

pub(crate) mod compare;
pub(crate) mod completions;
pub(crate) mod doctor;
pub(crate) mod man;
pub(crate) mod run;
pub(crate) mod schema;

use crate::args::Common;
use crate::problems::Failure;
use hopline_lab::Scenario;
use hopline_lab::scenario::document::Setting;

/// The scenario with `--set` and `--seed` put over it.
fn load(common: &Common, more: &[Setting]) -> Result<Scenario, Failure> {
    let mut settings =
        common.set.iter().map(|text| Setting::parse("--set", text)).collect::<Result<Vec<_>, _>>()?;
    settings.extend(common.seed.map(|seed| Setting::of_option("--seed", "seed", seed)));
    settings.extend_from_slice(more);
    Ok(Scenario::load(&common.scenario, &settings)?)
}
