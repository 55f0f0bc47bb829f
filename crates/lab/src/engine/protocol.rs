//! Messages between a sweep and the processes that make its runs.
//!
//! A process reads a [`Request`] as JSON from its standard input, and writes [`Reply`]s, one on each line. A process that can
//! no longer write ends: that is how a run is interrupted.

use crate::record::CompletedRun;
use crate::remote::{RemoteError, Scenarios};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Word of the command line that makes the command read a [`Request`]. `hopline --help` does not show it.
pub const SUBCOMMAND: &str = "kernel-run";

/// Options of emulations in virtual time, as of `hopline emulate`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KernelOptions {
    /// Folder with the kernel; `None`: that of `make uml`.
    pub kernel: Option<PathBuf>,
    /// Virtual time of a system call in microseconds; `None`: 5.
    pub syscall_cost_us: Option<u64>,
    /// Real time in seconds for which a program may compute; `None`: 30.
    pub patience_s: Option<u64>,
    /// `true` if kernels get no routes over several hops.
    pub no_routes: bool,
}

/// Order to a process of the command.
#[derive(Debug, Serialize, Deserialize)]
pub struct Request {
    /// The scenarios of points.
    pub scenarios: Scenarios,
    /// The options.
    pub options: KernelOptions,
    /// Run of point 0 to make; `None`: check that run 1 of all points can be emulated.
    pub run: Option<u64>,
}

impl Request {
    /// Reads a request.
    ///
    /// # Errors
    ///
    /// If another version of hopline made it, or it is damaged.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, RemoteError> {
        #[derive(Deserialize)]
        struct RequestVersion {
            scenarios: serde_json::Value,
        }
        let damaged = |e: serde_json::Error| RemoteError::Damaged(e.to_string());
        // The format of another version may differ.
        let RequestVersion { scenarios } = serde_json::from_slice(bytes).map_err(damaged)?;
        Scenarios::check_version(&scenarios)?;
        serde_json::from_slice(bytes).map_err(damaged)
    }
}

/// Answer of that process.
#[derive(Debug, Serialize, Deserialize)]
pub enum Reply {
    /// All points can be emulated, with a kernel of this version.
    Checked(String),
    /// The run has reached this virtual time, in nanoseconds.
    Reached(u64),
    /// The run has ended.
    Done(Box<CompletedRun>),
    /// The run has failed, for this reason.
    Failed(String),
}
