//! Machines in the path of TCP at some nodes.

use hopline_core::NodeId;
pub use hopline_proxy::{arq, mtcp, nack, snoop, split};
use std::collections::BTreeSet;

/// A machine in the path of TCP at a node.
#[derive(Clone, Debug)]
pub struct ProxySpec {
    /// Where it stands.
    pub node: NodeId,
    /// Whose connections it serves.
    pub mobile: MobileSide,
    /// What it is.
    pub kind: ProxyKind,
}

/// On which side of a machine in the path the mobile hosts are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MobileSide {
    /// Beyond the radios of its node.
    Radios,
    /// These nodes are mobile hosts, however they are reached.
    Nodes(BTreeSet<NodeId>),
}

/// What stands in the path.
#[derive(Clone, Debug)]
pub enum ProxyKind {
    /// Snoop.
    Snoop(snoop::Config),
    /// M-TCP's supervisor host.
    Mtcp(mtcp::Config),
    /// What asks mobile hosts for what they have sent and what has not come. They keep it.
    Nack(nack::Config),
    /// Connections split in two.
    Split(Box<split::Config>),
}
