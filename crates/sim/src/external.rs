//! Access to a world from outside: packets enter and leave, and an external clock drives the world.
//!
//! An emulator steps the world by its own clock: [`World::next_due`] says how long it may sleep,
//! [`World::run_until`] catches up, [`World::inject`] brings a packet in at a node, and
//! [`World::poll_egress`] hands out those that have come to the node that has their address. On the way such
//! a packet is like any other; it counts for no flow.

mod passing;

use hopline_core::{Instant, NodeId};
use hopline_wire::ParseError;

/// A packet that leaves the world.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Egress {
    /// Time at which it reached its node.
    pub at: Instant,
    /// The node that has its destination address.
    pub node: NodeId,
    /// The packet, from its IP header on: as it came in but for its time to live, its ECN field and the header's checksum.
    pub packet: Vec<u8>,
}

/// Reason that a packet was not accepted. Nothing has happened then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum InjectError {
    /// No router would pass it on.
    Malformed(ParseError),
    /// Its time to live is zero.
    Expired,
    /// Nothing comes in at this node ([`Spec::taps`](crate::Spec::taps)).
    NoTap(NodeId),
}

impl core::fmt::Display for InjectError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Malformed(error) => write!(f, "no IPv4 packet: {error}"),
            Self::Expired => f.write_str("the packet's time to live is over"),
            Self::NoTap(node) => write!(f, "{node} is no tap"),
        }
    }
}

impl core::error::Error for InjectError {}
