//! Results of an emulation in virtual time.

use crate::guest::plan::ProgramEnd;
use hopline_core::{Instant, NodeId};
use hopline_sim::TapCounts;
use hopline_sim::outcome::Outcome;
use std::path::PathBuf;

/// Result of an emulation.
#[derive(Clone, Debug)]
pub struct Report {
    /// Outcome of the simulated network, with its simulated flows and its fingerprint.
    pub outcome: Outcome,
    /// Hosts, by node.
    pub hosts: Vec<HostReport>,
    /// Events of the simulated network.
    pub events: u64,
    /// Time that the network has reached. Programs that ignore SIGTERM make it later than the end.
    pub reached: Instant,
}

/// A host.
#[derive(Clone, Debug)]
pub struct HostReport {
    /// Name of the node.
    pub name: String,
    /// The node.
    pub node: NodeId,
    /// Frames at its tap.
    pub tap: TapCounts,
    /// Frames that were dropped since the kernel took none.
    pub overflow: u64,
    /// Folder with the output of its programs ([`output_file`](crate::guest::plan::output_file)) and its `console`.
    pub folder: PathBuf,
    /// Its programs.
    pub programs: Vec<ProgramReport>,
}

/// A program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgramReport {
    /// Its name.
    pub name: String,
    /// Reason and time of its end; `None`: the emulation ended before its time to start.
    pub end: Option<ProgramEnd>,
}
