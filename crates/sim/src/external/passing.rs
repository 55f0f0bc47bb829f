//! Packets that enter an engine from outside, and those that leave it.

use super::{Egress, InjectError};
use crate::engine::Engine;
use crate::ids::Interface;
use crate::packet::{Body, Handle, PacketAccount};
use crate::trace::{DropReason, Tracer};
use bytes::Bytes;
use hopline_core::{Instant, NodeId};
use hopline_wire::ipv4::RawPacket;

/// Largest number of packets that wait to be fetched. If the caller never fetches, later ones are dropped.
const EGRESS_LIMIT: usize = 65_536;

impl<T: Tracer> Engine<T> {
    pub(crate) const fn next_due(&self) -> Instant {
        self.kernel.scheduler.next_at()
    }

    pub(crate) fn inject(&mut self, node: NodeId, packet: &Bytes) -> Result<(), InjectError> {
        let opaque = RawPacket::parse(packet).map_err(InjectError::Malformed)?;
        let ip = opaque.header();
        if ip.ttl == 0 {
            return Err(InjectError::Expired);
        }
        let state = self.nodes.get(node.index()).ok_or(InjectError::NoTap(node))?;
        let port = state.port(is_tap).ok_or(InjectError::NoTap(node))?;
        let len_bytes = opaque.wire_len() as u32;
        let packet = self.kernel.new_packet(ip, Body::External(opaque), len_bytes, PacketAccount::External);
        self.receive_external(node, port, packet);
        Ok(())
    }

    pub(crate) fn poll_egress(&mut self) -> Option<Egress> {
        self.egress.pop_front()
    }

    /// Handles a packet from outside that has come to the node that it is for. The caller's hold on it stays.
    pub(crate) fn egress_packet(&mut self, node: NodeId, handle: Handle) {
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
        let Body::External(opaque) = &self.kernel.packets.get(handle).body else { return };
        let mut packet = Vec::with_capacity(opaque.wire_len());
        opaque.emit(handle.ttl, self.kernel.packets.ecn(handle), &mut packet);
        self.egress.push_back(Egress { at: self.kernel.now, node, packet });
    }
}

fn is_tap(interface: &Interface) -> bool {
    *interface == Interface::Tap
}
