//! Remote execution of runs: what is sent, and what is returned.
//!
//! A [`Bundle`] is a plan in a portable form: documents, files, settings. A [`Batch`] names some of its runs;
//! [`Bundle::execute`] makes them and returns their records as a Parquet file. [`Scheduler`] issues batches and
//! receives results, in any order and with duplicates; it is independent of the transport.

mod bundle;
mod costs;
mod records;
mod scheduler;
#[cfg(test)]
mod tests;

pub use bundle::Bundle;
pub use scheduler::{Next, Scheduler, SchedulerError};

use crate::execute::PointRun;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Some runs of a plan that are made one after the other.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Batch {
    /// Identifier among the issued batches.
    pub id: u64,
    /// Points and runs.
    pub runs: Vec<PointRun>,
}

/// Reason for which data of another machine are refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RemoteError {
    /// Another version of hopline made them.
    OtherVersion {
        /// Version of the other machine.
        theirs: String,
        /// Version of this machine.
        ours: &'static str,
    },
    /// The data are damaged.
    Damaged(String),
    /// The point differs between the machines.
    Differs {
        /// Number of the point.
        point: usize,
        /// Reason, as far as known.
        why: String,
    },
    /// The run was interrupted.
    Interrupted,
}

impl fmt::Display for RemoteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OtherVersion { theirs, ours } => write!(
                f,
                "the sweep was begun by hopline {theirs}, this worker has hopline {ours}: install the same on both"
            ),
            Self::Damaged(why) => write!(f, "what came from the other machine cannot be read: {why}"),
            Self::Differs { point, why } => {
                write!(f, "point {point} of the plan is another on this worker: {why}")
            }
            Self::Interrupted => f.write_str("interrupted"),
        }
    }
}

impl std::error::Error for RemoteError {}
