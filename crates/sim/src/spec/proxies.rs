//! Machines in the path of TCP at some nodes.

use hopline_core::NodeId;
use hopline_proxy::dproxy::opaque;
pub use hopline_proxy::{ack_pacing, arq, dproxy, hop_window, mtcp, nack, snoop, split};
use std::collections::BTreeSet;

/// A TCP middlebox at a node.
#[derive(Clone, Debug)]
pub struct ProxySpec {
    /// Node at which it stands.
    pub node: NodeId,
    /// Mobile hosts with the connections that it serves.
    pub mobile: MobileSide,
    /// Kind of middlebox.
    pub kind: ProxyKind,
}

/// Side of a middlebox on which the mobile hosts are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MobileSide {
    /// Beyond the radios of its node.
    Radios,
    /// These nodes are mobile hosts, however they are reached.
    Nodes(BTreeSet<NodeId>),
}

/// Kind of middlebox in the path.
#[derive(Clone, Debug)]
pub enum ProxyKind {
    /// Snoop.
    Snoop(snoop::Config),
    /// M-TCP's supervisor host.
    Mtcp(mtcp::Config),
    /// Middlebox that asks mobile hosts for packets that they have sent and that have not arrived. The hosts
    /// keep them.
    Nack(nack::Config),
    /// Middlebox that paces ACKs which arrive in bursts.
    AckPacing(ack_pacing::Config),
    /// Connections split in two.
    Split(Box<split::Config>),
}

/// Two machines, at both ends of a link.
#[derive(Clone, Debug)]
pub struct PairSpec {
    /// The ends: neighbours, over a wire or by radio.
    pub ends: [NodeId; 2],
    /// Kind of middlebox pair.
    pub kind: PairKind,
}

/// Middlebox at both ends of a link.
#[derive(Clone, Debug)]
pub enum PairKind {
    /// D-Proxy. The addresses are those of the ends, whatever it says here.
    DProxy(dproxy::Config),
    /// D-Proxy for all packets that cross the link.
    Opaque(opaque::Config),
}
