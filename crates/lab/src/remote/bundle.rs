//! Plan in a portable form, for execution on another machine.

use super::error::RemoteError;
use super::scenarios::Scenarios;
use crate::engine::{Engine, Kernels};
use crate::plan::Plan;
use hopline_scenario::{CustomAlgorithms, Scenario};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Scenarios of the points of a plan, and the engine that makes their runs.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Bundle {
    #[serde(flatten)]
    pub(super) scenarios: Scenarios,
    /// Kernels that make its runs; `None`: the simulator.
    kernels: Option<Kernels>,
}

impl Bundle {
    /// Creates the bundle of `plan`, which contains all that another machine needs to make its runs.
    #[must_use]
    pub fn of(plan: &Plan) -> Self {
        let scenarios: Vec<&Scenario> = plan.points.iter().map(|point| &point.scenario).collect();
        let kernels = match &plan.engine {
            Engine::Simulator => None,
            Engine::Kernels(kernels) => Some(kernels.clone()),
        };
        Self { scenarios: Scenarios::of(&scenarios, plan.keep), kernels }
    }

    /// Sets the user-defined algorithms that scenarios may name; they must be the same as on the machine of
    /// origin.
    #[must_use]
    pub fn with_machines(self, machines: CustomAlgorithms) -> Self {
        Self { scenarios: self.scenarios.with_machines(machines), ..self }
    }

    /// Sets the path of the command `hopline` on this machine, which makes runs over kernels.
    #[must_use]
    pub fn with_command(self, command: PathBuf) -> Self {
        Self { kernels: self.kernels.map(|kernels| kernels.with_command(command)), ..self }
    }

    /// Returns the engine of its runs.
    #[must_use]
    pub fn engine(&self) -> Engine {
        self.kernels.clone().map_or(Engine::Simulator, Engine::Kernels)
    }

    /// Returns the bundle as bytes.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("a bundle is made of strings and numbers")
    }

    /// Reads a bundle of another machine.
    ///
    /// # Errors
    ///
    /// If it was made by another version, or is damaged.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, RemoteError> {
        let damaged = |e: serde_json::Error| RemoteError::Damaged(e.to_string());
        // The format of another version may differ.
        Scenarios::check_version(&serde_json::from_slice(bytes).map_err(damaged)?)?;
        serde_json::from_slice(bytes).map_err(damaged)
    }
}
