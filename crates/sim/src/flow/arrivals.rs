//! Arrivals of packets of flows, by themselves or by a copy, and packets that are absorbed or in flight.

use super::held::{InFlight, Novelty};
use super::packet_states::PacketState;
use super::{Flow, Flows};
use crate::ids::Side;
use crate::packet::{FlowPacketId, Packet, PacketRole};
use hopline_core::{FlowId, Instant};

impl Flow {
    /// Records that a packet from the end at `side` has reached the other end, for the first time as far as
    /// this copy is concerned.
    pub(super) fn record_arrival(
        &mut self,
        now: Instant,
        side: Side,
        packet: &Packet,
        forwarded: u8,
    ) -> Novelty {
        let packets = &mut self.packets[side as usize];
        match self.packet_states[side as usize].record_arrival(packet) {
            PacketState::InFlightOrLost => {}
            PacketState::Absorbed => packets.record_resumed(packet.len_bytes),
            PacketState::BeforeCounting => packets.record_initially_in_flight(packet.len_bytes),
            PacketState::Arrived => return Novelty::Duplicate,
        }
        packets.record_received(now, packet.len_bytes, now.since(packet.original.made), forwarded);
        Novelty::New
    }

    /// Records that the segment in `packet` held nothing new.
    pub(super) fn record_duplicate(&mut self, packet: &Packet, news: Novelty) {
        match (packet.role, news) {
            // It, and what repeats it or is repeated by it, left before the flow counted.
            (PacketRole::Original, Novelty::New) if packet.made < self.counting_since => {}
            (PacketRole::Original, Novelty::New) => self.repeats.retransmitted += 1,
            (PacketRole::MiddleboxMade | PacketRole::Copy, _)
            | (PacketRole::Original, Novelty::Duplicate) => self.repeats.copies += 1,
        }
    }
}

impl Flows {
    /// Records that a middlebox has made a packet in the name of the end of a flow at its source address.
    pub(crate) fn record_made_by_middlebox(&mut self, flow: FlowId, packet: &mut Packet) {
        let state = &mut self.flows[flow.index()];
        let side = state.side_of(packet.ip.src) as usize;
        state.packets[side].record_made(packet.len_bytes);
        packet.original = FlowPacketId { number: state.packet_states[side].add(), made: packet.made };
        packet.role = PacketRole::MiddleboxMade;
    }

    /// Records that a middlebox has absorbed a packet of a flow.
    pub(crate) fn record_absorbed(&mut self, flow: FlowId, packet: &Packet) {
        let state = &mut self.flows[flow.index()];
        let side = state.side_of(packet.ip.src) as usize;
        if state.packet_states[side].record_absorption(packet) == PacketState::InFlightOrLost {
            state.packets[side].record_absorbed(packet.len_bytes);
        }
    }

    /// Adds a packet of a flow that is in flight to `held`, unless it, or a copy of it, has arrived or was
    /// absorbed.
    pub(crate) fn add_in_flight(&self, held: &mut [[InFlight; 2]], flow: FlowId, packet: &Packet) {
        let state = &self.flows[flow.index()];
        let side = state.side_of(packet.ip.src) as usize;
        let held = &mut held[flow.index()][side];
        // Of a packet and its copies one counts.
        if state.packet_states[side].state_of(packet) == PacketState::InFlightOrLost
            && held.numbers.insert(packet.original.number)
        {
            held.bytes += u64::from(packet.len_bytes);
        }
    }
}
