//! Access to a world from outside: packets enter and leave, and an external clock drives the world.
//!
//! An emulator steps the world by its own clock: [`World::next_due`] says how long it may sleep,
//! [`World::run_until`] catches up, [`World::inject`] brings a packet in at a node, and
//! [`World::poll_egress`] hands out those that have come to the node that has their address. On the way such
//! a packet is like any other; it counts for no flow.

use crate::engine::Engine;
use crate::node::Interface;
use crate::packet::{Account, Body, Handle};
use crate::trace::{DropReason, Tracer};
use bytes::Bytes;
use hopline_core::{Instant, NodeId};
use hopline_wire::ParseError;
use hopline_wire::ipv4::Opaque;

/// Largest number of packets that wait to be fetched. If the caller never fetches, later ones are dropped.
const EGRESS_LIMIT: usize = 65_536;

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

impl<T: Tracer> Engine<T> {
    pub(crate) const fn next_due(&self) -> Instant {
        self.kernel.scheduler.next_at()
    }

    pub(crate) fn inject(&mut self, node: NodeId, packet: &Bytes) -> Result<(), InjectError> {
        let opaque = Opaque::parse(packet).map_err(InjectError::Malformed)?;
        let ip = opaque.header();
        if ip.ttl == 0 {
            return Err(InjectError::Expired);
        }
        let state = self.nodes.get(node.index()).ok_or(InjectError::NoTap(node))?;
        let port = state.port(is_tap).ok_or(InjectError::NoTap(node))?;
        let len_bytes = opaque.wire_len() as u32;
        let packet = self.kernel.made(ip, Body::Foreign(opaque), len_bytes, Account::Foreign);
        self.come_in_from_outside(node, port, packet);
        Ok(())
    }

    pub(crate) fn poll_egress(&mut self) -> Option<Egress> {
        self.egress.pop_front()
    }

    /// Handles a packet from outside that has come to the node that it is for. The caller's hold on it stays.
    pub(crate) fn leave(&mut self, node: NodeId, handle: Handle) {
        let refused = if self.nodes[node.index()].port(is_tap).is_none() {
            Some(DropReason::NoRoute)
        } else if self.egress.len() >= EGRESS_LIMIT {
            Some(DropReason::QueueFull)
        } else {
            None
        };
        if let Some(reason) = refused {
            self.kernel.packets.retain(handle);
            return self.drop_packet(node, handle, reason);
        }
        let Body::Foreign(opaque) = &self.kernel.packets.get(handle).body else { return };
        let mut packet = Vec::with_capacity(opaque.wire_len());
        opaque.emit(handle.ttl, self.kernel.packets.ecn(handle), &mut packet);
        self.egress.push_back(Egress { at: self.kernel.now, node, packet });
    }
}

fn is_tap(interface: &Interface) -> bool {
    *interface == Interface::Tap
}
