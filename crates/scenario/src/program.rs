//! Real programs that a scenario starts at its nodes.

use hopline_config::source::Origin;
use hopline_core::{Instant, NodeId};

/// Environment variable by which programs at nodes find their emulation.
pub const EMULATION_VARIABLE: &str = "HOPLINE_EMULATION";

/// Returns the environment variable that has the address of the node `node`, for programs of an emulation.
#[must_use]
pub fn address_variable(node: &str) -> String {
    let character = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' };
    format!("HOPLINE_{}", node.chars().map(character).collect::<String>())
}

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
