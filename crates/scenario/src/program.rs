//! Real programs that a scenario starts at its nodes.

use hopline_config::source::Origin;
use hopline_core::{Instant, NodeId};

/// A program at a node, of `[[program]]`. An emulation runs it; simulations refuse it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// Name in results, unique. A file can have it.
    pub name: String,
    /// The node at which it runs.
    pub node: NodeId,
    /// The program and its arguments. Not empty.
    pub command: Vec<String>,
    /// Time at which it starts.
    pub start: Instant,
    /// Time at which it is stopped; `None`: at the end of the emulation.
    pub stop: Option<Instant>,
    /// Place of the command in the file.
    pub origin: Origin,
}
