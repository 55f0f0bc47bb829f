//! Runs over Linux kernels. A process of the command makes each of them.

use super::process::Process;
use super::protocol::{KernelOptions, Reply, Request};
use crate::plan::Keep;
use crate::record::CompletedRun;
use crate::remote::Scenarios;
use crate::run::{Observer, RunError};
use hopline_config::source::Problem;
use hopline_core::Duration;
use hopline_scenario::Scenario;
use serde::{Deserialize, Serialize};
use std::path::{self, Path, PathBuf};

/// Linux kernels at the nodes of scenarios with `[[program]]` tables.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kernels {
    /// Path of the command `hopline`, empty if there is none. Other machines have their own.
    #[serde(skip)]
    command: PathBuf,
    options: KernelOptions,
    version: String,
}

impl Kernels {
    /// Checks that the command `hopline` at `command` can make the runs of `scenarios`, which is not empty.
    ///
    /// # Errors
    ///
    /// If it cannot: there is no kernel or no program, or a scenario cannot be emulated.
    pub fn find(
        command: &Path,
        options: KernelOptions,
        scenarios: &[&Scenario],
        keep: Keep,
    ) -> Result<Self, Problem> {
        let absolute = |folder: PathBuf| path::absolute(&folder).unwrap_or(folder);
        let options = KernelOptions { kernel: options.kernel.map(absolute), ..options };
        let kernels = Self { command: command.to_owned(), options, version: String::new() };
        let version = kernels.check(Scenarios::of(scenarios, keep)).map_err(Problem::new)?;
        Ok(Self { version, ..kernels })
    }

    /// Checks that this machine can make the run of `scenario`, with the same kernel.
    #[cfg(feature = "parquet")]
    pub(crate) fn check_here(&self, scenario: &Scenario, keep: Keep) -> Result<(), String> {
        let ours = self.check(Scenarios::of(&[scenario], keep))?;
        match ours == self.version {
            true => Ok(()),
            false => Err(format!("it has Linux {ours}, and the sweep was begun with {}", self.version)),
        }
    }

    /// Sets the path of the command on this machine.
    #[must_use]
    pub fn with_command(self, command: PathBuf) -> Self {
        Self { command, ..self }
    }

    /// Returns the version of the kernel.
    #[must_use]
    pub fn version(&self) -> &str {
        &self.version
    }

    /// Returns whether the kernels are to have no routes over several hops.
    pub(crate) fn has_no_routes(&self) -> bool {
        self.options.no_routes
    }

    /// Returns everything on which results depend.
    pub(crate) fn identity(&self) -> String {
        let KernelOptions { syscall_cost_us, no_routes, kernel: _, patience_s: _ } = &self.options;
        format!("kernels {} {syscall_cost_us:?} {no_routes}", self.version)
    }

    /// Makes run `number` of `scenario`.
    pub(super) fn run(
        &self,
        scenario: &Scenario,
        number: u64,
        keep: Keep,
        watch: &dyn Observer,
    ) -> Result<CompletedRun, RunError> {
        let request = self.request(Scenarios::of(&[scenario], keep), Some(number));
        let mut process = Process::start(&self.command, &request).map_err(RunError::Machine)?;
        let mut reached = Duration::ZERO;
        let mut result = None;
        for reply in process.replies() {
            if watch.interrupted() {
                break;
            }
            match reply.map_err(RunError::Machine)? {
                Reply::Reached(ns) => {
                    // Kernels are switched off after the end of the run.
                    let now = Duration::from_nanos(ns).min(scenario.duration());
                    watch.advanced(now.saturating_sub(reached), 0);
                    reached = reached.max(now);
                }
                Reply::Done(done) => {
                    let rest = Duration::from_secs_f64(done.sim_s).saturating_sub(reached);
                    watch.advanced(rest, done.events);
                    result = Some(Ok(*done));
                }
                Reply::Failed(why) => result = Some(Err(RunError::Failed(why))),
                Reply::Checked(_) => {}
            }
        }
        let end = process.end();
        if watch.interrupted() || end.was_interrupted {
            return Err(RunError::Interrupted);
        }
        result.unwrap_or(Err(RunError::Machine(end.message)))
    }

    /// Returns the version of the kernel here, if all of `scenarios` can be emulated.
    fn check(&self, scenarios: Scenarios) -> Result<String, String> {
        let mut process = Process::start(&self.command, &self.request(scenarios, None))?;
        let version = process.replies().find_map(|reply| match reply {
            Ok(Reply::Checked(version)) => Some(Ok(version)),
            Ok(_) => None,
            Err(error) => Some(Err(error)),
        });
        let end = process.end();
        version.unwrap_or(Err(end.message))
    }

    fn request(&self, scenarios: Scenarios, run: Option<u64>) -> Request {
        Request { scenarios, options: self.options.clone(), run }
    }
}
