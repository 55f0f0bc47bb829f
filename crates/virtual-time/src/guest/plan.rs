//! Plan of the first process of a kernel, as a file.

use serde::{Deserialize, Serialize};
use std::net::Ipv4Addr;
use std::path::PathBuf;

/// File name of the plan, in the folder of a host.
pub const PLAN_FILE: &str = "plan.json";

/// Name of a file in the folder of a host: programs are stopped when it appears, if their plan has no end.
pub const STOP_FILE: &str = "stop";

/// Plan of a host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// Name of the node, and of the host.
    pub name: String,
    /// Address of the node.
    pub address: Ipv4Addr,
    /// Interfaces, in the order in which the kernel numbers them. Not empty.
    pub interfaces: Vec<PlannedInterface>,
    /// Routes: the node to reach, and the neighbour that forwards.
    pub routes: Vec<(Ipv4Addr, Ipv4Addr)>,
    /// Contents of `/etc/hosts`.
    pub hosts_file: String,
    /// Working directory of programs.
    pub folder: PathBuf,
    /// Environment of programs.
    pub environment: Vec<(String, String)>,
    /// Programs of this node.
    pub programs: Vec<PlannedProgram>,
    /// Time at which all programs are stopped, and the host is switched off, in nanoseconds; `None`: when there is a
    /// [`STOP_FILE`].
    pub end_ns: Option<u64>,
}

/// An interface in a plan. All interfaces of a node have its address.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedInterface {
    /// Name.
    pub name: String,
    /// Length of the prefix of the network behind it, in bits.
    pub prefix: u8,
    /// The only neighbour that it reaches, at the other end of a wire.
    pub neighbour: Option<Ipv4Addr>,
}

/// A program in a plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedProgram {
    /// Name, also of its files.
    pub name: String,
    /// Path of the program, or a name to look for in `PATH`.
    pub path: PathBuf,
    /// Program, as it is told its name, and arguments. Not empty.
    pub command: Vec<String>,
    /// Time at which it starts, in nanoseconds.
    pub start_ns: u64,
    /// Time at which it is stopped, in nanoseconds; `None`: at the end.
    pub stop_ns: Option<u64>,
}

/// End of a program, as the host reports it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProgramEnd {
    /// Exit code; `None` if a signal ended it, or it did not start.
    pub code: Option<i32>,
    /// Signal that ended it.
    pub signal: Option<i32>,
    /// Reason that it did not start.
    pub error: Option<String>,
    /// `true` if it was stopped by the plan.
    pub was_stopped: bool,
    /// Time at which it ended, in nanoseconds.
    pub ended_ns: u64,
}

/// Returns the name of the file with the output of a program.
#[must_use]
pub fn output_file(program: &str) -> String {
    format!("{program}.stdout")
}

/// Returns the name of the file with the errors of a program.
#[must_use]
pub fn errors_file(program: &str) -> String {
    format!("{program}.stderr")
}

/// Returns the name of the file with the end of a program.
#[must_use]
pub fn end_file(program: &str) -> String {
    format!("{program}.end")
}
