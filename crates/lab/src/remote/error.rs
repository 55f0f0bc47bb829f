//! Errors of remote execution.

use std::fmt;

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
    /// The machine cannot run kernels, for this reason.
    NoKernel(String),
    /// The run was interrupted.
    Interrupted,
}

impl fmt::Display for RemoteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OtherVersion { theirs, ours } => write!(
                f,
                "the sweep was begun by hopline {theirs}, and hopline {ours} is to make its runs: install the same"
            ),
            Self::Damaged(why) => write!(f, "what came from the other process cannot be read: {why}"),
            Self::Differs { point, why } => {
                write!(f, "point {point} of the plan is another here: {why}")
            }
            Self::NoKernel(why) => write!(f, "a worker cannot make the runs of the sweep: {why}"),
            Self::Interrupted => f.write_str("interrupted"),
        }
    }
}

impl std::error::Error for RemoteError {}
