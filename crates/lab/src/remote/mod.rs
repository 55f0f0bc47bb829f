//! Runs that are made elsewhere: what is sent there, and what comes back.
//!
//! A [`Bundle`] is a plan without the machine it was read on: documents, files, settings. A [`Batch`] names some of its runs;
//! [`Bundle::perform`] makes them and returns their records as a Parquet file. [`Course`] gives out batches and takes
//! results, in whatever order they come and however often; it knows nothing of who carries them.

mod bundle;
mod costs;
mod course;
mod records;
#[cfg(test)]
mod tests;

pub use bundle::Bundle;
pub use course::{Course, CourseError, Next};

use crate::execute::PointRun;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Some runs of a plan that are made one after the other.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Batch {
    /// Names it among those that are away.
    pub id: u64,
    /// Points and runs.
    pub runs: Vec<PointRun>,
}

/// Why something from another machine is not taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RemoteError {
    /// It was made by another version of hopline.
    OtherVersion {
        /// By which.
        theirs: String,
        /// Ours.
        ours: &'static str,
    },
    /// It is not what the other side would have sent.
    Damaged(String),
    /// The point is not the same here as there.
    Differs {
        /// Which point.
        point: usize,
        /// Why, as far as is known.
        why: String,
    },
    /// Somebody asked to give up.
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
