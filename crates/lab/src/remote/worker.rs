//! Runs of a batch, on the machine of a worker.

use super::records;
use super::{Batch, Bundle, RemoteError};
use crate::engine::Engine;
use crate::execute::{NoRecord, run_one};
use crate::run::Observer;
use hopline_scenario::Scenario;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

impl Bundle {
    /// Makes the runs of `batch`, and returns their records.
    ///
    /// # Errors
    ///
    /// If the batch is of another plan, this machine lacks the kernels, or [`RemoteError::Interrupted`]. A run that fails is a result.
    pub fn execute(&self, batch: &Batch, watch: &dyn Observer) -> Result<Vec<u8>, RemoteError> {
        let (engine, keep) = (self.engine(), self.scenarios.keep());
        let mut scenarios: BTreeMap<usize, Scenario> = BTreeMap::new();
        let mut made = Vec::with_capacity(batch.runs.len());
        for &(point, run) in &batch.runs {
            let scenario = match scenarios.entry(point) {
                Entry::Occupied(known) => known.into_mut(),
                Entry::Vacant(new) => new.insert(self.scenarios.scenario(point)?),
            };
            if made.is_empty()
                && let Engine::Kernels(kernels) = &engine
            {
                // Runs that only this machine cannot make are no results.
                kernels.check_here(scenario, keep).map_err(RemoteError::NoKernel)?;
            }
            let record = run_one(&engine, scenario, (point, run), keep, watch);
            made.push(record.map_err(|reason| match reason {
                NoRecord::Interrupted => RemoteError::Interrupted,
                NoRecord::Machine(why) => RemoteError::NoKernel(why),
            })?);
        }
        records::write(&made)
    }
}
