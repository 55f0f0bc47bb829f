//! Remote execution of runs: what is sent, and what is returned.
//!
//! A [`Bundle`] is a plan in a portable form: documents, files, settings. A [`Batch`] names some of its runs;
//! [`Bundle::execute`] makes them and returns their records as a Parquet file. [`Scheduler`] issues batches and
//! receives results, in any order and with duplicates; it is independent of the transport.

mod bundle;
#[cfg(feature = "parquet")]
mod costs;
mod error;
#[cfg(feature = "parquet")]
mod records;
mod scenarios;
#[cfg(feature = "parquet")]
mod scheduler;
#[cfg(all(test, feature = "parquet"))]
mod tests;
#[cfg(feature = "parquet")]
mod worker;

pub use bundle::Bundle;
pub use error::RemoteError;
pub use scenarios::Scenarios;
#[cfg(feature = "parquet")]
pub use scheduler::{Next, Scheduler, SchedulerError};

use crate::execute::PointRun;
use serde::{Deserialize, Serialize};

/// Some runs of a plan that are made one after the other.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Batch {
    /// Identifier among the issued batches.
    pub id: u64,
    /// Points and runs.
    pub runs: Vec<PointRun>,
}
