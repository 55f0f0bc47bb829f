//! Identities: nodes, flows, links.

use core::fmt;
use std::net::Ipv4Addr;

/// The network in which nodes get their default addresses: 10.0.0.0/8.
const NETWORK: u32 = 0x0a00_0000;
/// Largest node index that still maps to an address below the broadcast address of 10.0.0.0/8.
const LAST_NODE: u32 = 0x00ff_fffd;

/// A node of a network: an index from 0, dense, in the order in which the scenario names the nodes.
///
/// # Example
///
/// ```
/// use hopline_core::NodeId;
///
/// assert_eq!(NodeId(0).ipv4().to_string(), "10.0.0.1");
/// assert_eq!(NodeId::from_ipv4([10, 0, 1, 0].into()), Some(NodeId(255)));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct NodeId(pub u32);

impl NodeId {
    /// The node as an index into a table of all nodes.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }

    /// The node's default address: 10.0.0.1 for node 0, 10.0.0.2 for node 1 and so on.
    #[must_use]
    pub const fn ipv4(self) -> Ipv4Addr {
        debug_assert!(self.0 <= LAST_NODE);
        Ipv4Addr::from_bits(NETWORK + 1 + self.0)
    }

    /// Returns the node that has this default address; `None` outside 10.0.0.0/8.
    #[must_use]
    pub const fn from_ipv4(address: Ipv4Addr) -> Option<Self> {
        let host = address.to_bits().wrapping_sub(NETWORK + 1);
        if host <= LAST_NODE { Some(Self(host)) } else { None }
    }
}

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "n{}", self.0)
    }
}

/// A flow: one transport connection or one datagram stream, numbered from 0 in scenario order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct FlowId(pub u32);

impl FlowId {
    /// The flow as an index into a table of all flows.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl fmt::Display for FlowId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "f{}", self.0)
    }
}

/// Interface through which a machine sends and receives. Endpoints have one, [`LinkId::ONLY`]; a middlebox numbers its
/// sides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct LinkId(pub u32);

impl LinkId {
    /// The link of a machine that has only one.
    pub const ONLY: Self = Self(0);
}

impl fmt::Display for LinkId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "l{}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn node_addresses_round_trip() {
        for n in [0, 1, 254, 255, 256, 65_535, LAST_NODE] {
            assert_eq!(NodeId::from_ipv4(NodeId(n).ipv4()), Some(NodeId(n)));
        }
        assert_eq!(NodeId(0).ipv4(), Ipv4Addr::new(10, 0, 0, 1));
    }

    #[test]
    fn foreign_and_special_addresses_map_to_no_node() {
        for a in [[10, 0, 0, 0], [10, 255, 255, 255], [11, 0, 0, 1], [255, 255, 255, 255], [0, 0, 0, 0]] {
            assert_eq!(NodeId::from_ipv4(Ipv4Addr::from(a)), None);
        }
    }
}
