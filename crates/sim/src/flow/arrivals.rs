//! Arrivals of packets of flows, by themselves or by a copy, and packets that are absorbed or in flight.

use super::fates::Fate;
use super::held::{Held, News};
use super::{Flow, Flows};
use crate::ids::Side;
use crate::packet::{Original, Packet, Role};
use hopline_core::{FlowId, Instant};

impl Flow {
    /// Records that a packet from the end at `side` has reached the other end, for the first time as far as
    /// this copy is concerned.
    pub(super) fn arrive(&mut self, now: Instant, side: Side, packet: &Packet, forwarded: u8) -> News {
        let packets = &mut self.packets[side as usize];
        match self.fates[side as usize].arrive(packet) {
            Fate::Open => {}
            Fate::Absorbed => packets.resume(packet.len_bytes),
            Fate::Before => packets.carry(packet.len_bytes),
            Fate::Arrived => return News::None,
        }
        packets.receive(now, packet.len_bytes, now.since(packet.original.made), forwarded);
        News::Packet
    }

    /// Records that the segment in `packet` held nothing new.
    pub(super) fn note_repeat(&mut self, packet: &Packet, news: News) {
        match (packet.role, news) {
            // It, and what repeats it or is repeated by it, left before the flow counted.
            (Role::Sent, News::Packet) if packet.made < self.since => {}
            (Role::Sent, News::Packet) => self.repeats.resent += 1,
            (Role::Made | Role::Copy, _) | (Role::Sent, News::None) => self.repeats.copies += 1,
        }
    }
}

impl Flows {
    /// Records that a middlebox has made a packet in the name of the end of a flow at its source address.
    pub(crate) fn made_for(&mut self, flow: FlowId, packet: &mut Packet) {
        let state = &mut self.flows[flow.index()];
        let side = state.side_of(packet.ip.src) as usize;
        state.packets[side].make(packet.len_bytes);
        packet.original = Original { number: state.fates[side].add(), made: packet.made };
        packet.role = Role::Made;
    }

    /// Records that a middlebox has absorbed a packet of a flow.
    pub(crate) fn absorbed_of(&mut self, flow: FlowId, packet: &Packet) {
        let state = &mut self.flows[flow.index()];
        let side = state.side_of(packet.ip.src) as usize;
        if state.fates[side].absorb(packet) == Fate::Open {
            state.packets[side].absorb(packet.len_bytes);
        }
    }

    /// Adds a packet of a flow that is in flight to `held`, unless it, or a copy of it, has arrived or was
    /// absorbed.
    pub(crate) fn hold(&self, held: &mut [[Held; 2]], flow: FlowId, packet: &Packet) {
        let state = &self.flows[flow.index()];
        let side = state.side_of(packet.ip.src) as usize;
        let held = &mut held[flow.index()][side];
        // Of a packet and its copies one counts.
        if state.fates[side].of(packet) == Fate::Open && held.numbers.insert(packet.original.number) {
            held.bytes += u64::from(packet.len_bytes);
        }
    }
}
