//! Engines that make the runs of plans: the simulator, and Linux kernels over it.

mod kernels;
mod metrics;
mod process;
mod protocol;
#[cfg(all(test, unix))]
mod tests;

pub use kernels::Kernels;
pub use metrics::{ENDPOINT_METRICS, FAIRNESS_METRICS, check_metric};
pub use protocol::{KernelOptions, Reply, Request, SUBCOMMAND};

use crate::plan::Keep;
use crate::record::CompletedRun;
use crate::run::{Observer, RunError, untraced};
use hopline_scenario::Scenario;

/// Engine that makes the runs of a plan.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Engine {
    /// The simulator alone.
    #[default]
    Simulator,
    /// Programs over Linux kernels in virtual time, with the simulated network between them.
    Kernels(Kernels),
}

impl Engine {
    /// Makes run `number` of `scenario`.
    ///
    /// # Errors
    ///
    /// [`RunError`].
    pub fn run(
        &self,
        scenario: &Scenario,
        number: u64,
        keep: Keep,
        watch: &dyn Observer,
    ) -> Result<CompletedRun, RunError> {
        match self {
            Self::Simulator => {
                let spec =
                    scenario.spec(number).map_err(|problems| RunError::Failed(problems.to_string()))?;
                let done = untraced(&spec, number, watch)?;
                Ok(CompletedRun::of(&spec, &done, number, keep))
            }
            Self::Kernels(kernels) => kernels.run(scenario, number, keep, watch),
        }
    }

    /// Returns the version of the kernels, if there are any.
    #[must_use]
    pub fn kernel(&self) -> Option<&str> {
        match self {
            Self::Simulator => None,
            Self::Kernels(kernels) => Some(kernels.version()),
        }
    }
}
