//! A flow and its ends.

use hopline_sim::Spec;
use serde::{Deserialize, Serialize};

/// A flow and its ends.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FlowEnds {
    /// Name of the flow.
    pub id: String,
    /// Name of the sending node.
    pub src: String,
    /// Name of the receiving node.
    pub dst: String,
    /// Transport protocol, as in scenario files.
    pub transport: String,
    /// Kind of traffic, as in scenario files.
    #[serde(default)]
    pub kind: String,
    /// Class of the flow; empty: none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub class: String,
}

/// Kind of the flows of programs, where those of scenarios have `bulk` or `cbr`.
pub const PROGRAM_KIND: &str = "program";

impl FlowEnds {
    /// Returns all flows of programs as one: of their kind, without ends.
    #[must_use]
    pub fn of_programs() -> Self {
        let empty = String::new;
        Self {
            id: empty(),
            src: empty(),
            dst: empty(),
            transport: empty(),
            kind: PROGRAM_KIND.to_owned(),
            class: empty(),
        }
    }

    /// Returns the flows of `spec`.
    #[must_use]
    pub fn of(spec: &Spec) -> Vec<Self> {
        let name = |id: hopline_core::NodeId| spec.nodes[id.index()].name.clone();
        let ends = spec.flows.iter().map(|flow| Self {
            id: flow.name.clone(),
            src: name(flow.src),
            dst: name(flow.dst),
            transport: flow.labels.transport.clone(),
            kind: flow.labels.kind.clone(),
            class: flow.labels.class.clone(),
        });
        ends.collect()
    }
}
