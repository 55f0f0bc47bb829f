//! The notices that a hostile node sends.

use super::NoticeFlood;
use crate::engine::Engine;
use crate::event::Event;
use crate::neighborhood::notice_packet;
use crate::spec::{ForgedField, NoticeFloodSpec};
use crate::trace::Tracer;
use hopline_core::NodeId;
use hopline_queue::neighborhood_red::{Destination, OutgoingNotice};
use hopline_wire::ncn::{Notice, StarvedNode};
use std::net::Ipv4Addr;

/// Addresses that a hostile node makes up before it begins anew.
const FORGED_ADDRESSES: u32 = 4096;

impl<T: Tracer> Engine<T> {
    /// Sends the next notice of a hostile node.
    pub(crate) fn send_flood_notice(&mut self, flood: u32) {
        let first_free = self.nodes.len() as u32;
        let NoticeFlood { spec, sent } = &mut self.floods[flood as usize];
        if self.kernel.now >= spec.stop {
            return;
        }
        let made_up = NodeId(first_free + *sent % FORGED_ADDRESSES).ipv4();
        *sent = sent.wrapping_add(1);
        let spec = *spec;
        let (source, about) = forged_source_and_node(spec, made_up);
        let lie = Notice { normalized_pb: spec.normalized_pb, lifetime: spec.lifetime, starved_node: about };
        let past = self.nodes[spec.node.index()].middleboxes.len();
        self.send_local(
            spec.node,
            past,
            notice_packet(source, OutgoingNotice { to: Destination::AllNeighbours, notice: lie }),
        );
        let next = self.kernel.now + spec.interval;
        self.kernel.schedule(next, Event::NoticeFlood { flood });
    }
}

/// Returns the source address and the sufferer of the next notice.
fn forged_source_and_node(spec: NoticeFloodSpec, made_up: Ipv4Addr) -> (Ipv4Addr, StarvedNode) {
    match spec.forge {
        ForgedField::Nothing => (spec.node.ipv4(), StarvedNode::Sender),
        ForgedField::Senders => (made_up, StarvedNode::Sender),
        ForgedField::StarvedNodes => (spec.node.ipv4(), StarvedNode::Neighbour(made_up)),
    }
}
