//! The notices that a hostile node sends.

use super::NoticeFlood;
use crate::engine::Engine;
use crate::event::Event;
use crate::neighborhood::notice;
use crate::spec::{Forge, NoticeFloodSpec};
use crate::trace::Tracer;
use hopline_core::NodeId;
use hopline_queue::neighborhood_red::{Outgoing, To};
use hopline_wire::ncn::{About, Notice};
use std::net::Ipv4Addr;

/// Addresses that a hostile node makes up before it begins anew.
const MADE_UP: u32 = 4096;

impl<T: Tracer> Engine<T> {
    /// Sends the next notice of a hostile node.
    pub(crate) fn flood_notice(&mut self, flood: u32) {
        let first_free = self.nodes.len() as u32;
        let NoticeFlood { spec, sent } = &mut self.floods[flood as usize];
        if self.kernel.now >= spec.stop {
            return;
        }
        let made_up = NodeId(first_free + *sent % MADE_UP).ipv4();
        *sent = sent.wrapping_add(1);
        let spec = *spec;
        let (source, about) = lies(spec, made_up);
        let lie = Notice { normalized_pb: spec.normalized_pb, lifetime: spec.lifetime, about };
        let past = self.nodes[spec.node.index()].path.len();
        self.send_own(spec.node, past, notice(source, Outgoing { to: To::Everyone, notice: lie }));
        let next = self.kernel.now + spec.interval;
        self.kernel.schedule(next, Event::NoticeFlood { flood });
    }
}

/// Returns the source address and the sufferer of the next notice.
fn lies(spec: NoticeFloodSpec, made_up: Ipv4Addr) -> (Ipv4Addr, About) {
    match spec.forge {
        Forge::Nothing => (spec.node.ipv4(), About::Sender),
        Forge::Senders => (made_up, About::Sender),
        Forge::Sufferers => (spec.node.ipv4(), About::Neighbour(made_up)),
    }
}
