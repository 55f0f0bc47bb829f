//! Driver of the middleboxes in the path of packets at a node: executes their actions and wakes them.

use crate::engine::Engine;
use crate::event::Event;
use crate::ids::Interface;
use crate::middlebox::{Action, MiddleboxPacket};
use crate::middlebox_slot::DrainState;
use crate::neighborhood::channel_time;
use crate::packet::{ArrivalState, Body, Handle, PacketAccount, PacketRole};
use crate::trace::{DropReason, Tracer};
use hopline_core::NodeId;
use hopline_queue::Class;
use hopline_routing::router::Origin;
use std::net::Ipv4Addr;

impl<T: Tracer> Engine<T> {
    /// Drains all middleboxes of `node`.
    pub(crate) fn process_middleboxes(&mut self, node: NodeId) {
        for seat in 0..self.nodes[node.index()].middleboxes.len() {
            self.process_middlebox(node, seat);
        }
    }

    /// Drains a middlebox, and arms its wake-up.
    pub(crate) fn process_middlebox(&mut self, node: NodeId, seat: usize) {
        let now = self.kernel.now;
        let drain = &mut self.nodes[node.index()].middleboxes[seat].drain;
        if core::mem::replace(drain, DrainState::Draining) == DrainState::Draining {
            return;
        }
        while let Some(wish) =
            self.nodes[node.index()].middleboxes[seat].middlebox.as_middlebox().poll_action(now)
        {
            match wish {
                Action::ChannelTime => self.report_channel_time(node, seat),
                Action::Send(sending) => self.send_local(node, seat, sending),
                Action::Route(sending) => {
                    let (handle, ..) = self.make_packet(node, sending);
                    self.route(node, handle, Origin::Local);
                }
                Action::Resume(handle, onward) => self.resume_packet(node, seat, handle, onward),
                Action::Absorb(handle) => self.absorb_packet(handle),
                Action::Decapsulate(handle) => self.release_outer(handle),
                Action::Reject(handle) => self.drop_packet(node, handle, DropReason::QueueFull),
                Action::ReportDrop(handle) => {
                    self.kernel.report_queue_drop(node, handle);
                    self.kernel.packets.release(handle);
                }
                Action::Release(handle) => self.release(node, handle, DropReason::RetryLimit),
            }
        }
        let state = &mut self.nodes[node.index()].middleboxes[seat];
        state.drain = DrainState::Idle;
        let wanted = state.middlebox.as_middlebox().poll_timeout();
        let event = Event::Middlebox { node: node.0, seat: seat as u32 };
        state.wake_up.set(now, wanted, &mut self.kernel.scheduler, event);
    }

    /// Handles the wake-up of a middlebox.
    pub(crate) fn wake_middlebox(&mut self, node: NodeId, seat: u32) {
        let now = self.kernel.now;
        let state = &mut self.nodes[node.index()].middleboxes[seat as usize];
        if state.wake_up.is_due(now) {
            state.middlebox.as_middlebox().handle_timeout(now);
            self.process_middlebox(node, seat as usize);
        }
    }

    /// Reports packets dropped by queues to the middleboxes of the same node.
    pub(crate) fn report_queue_drops(&mut self) {
        for (node, packet) in core::mem::take(&mut self.kernel.unreported_drops) {
            for seat in 0..self.nodes[node.index()].middleboxes.len() {
                self.nodes[node.index()].middleboxes[seat]
                    .middlebox
                    .as_middlebox()
                    .handle_queue_drop(self.kernel.now, &packet);
                self.process_middlebox(node, seat);
            }
        }
    }

    /// Sends what `node` is to send of its own, beside endpoints and agents, past the machines below number `seats`.
    pub(crate) fn send_local(&mut self, node: NodeId, seats: usize, sending: MiddleboxPacket) {
        let (handle, next_hop, class) = self.make_packet(node, sending);
        if let Body::Ncn(_) = self.kernel.packets.get(handle).body
            && let Some(&Interface::Radio(station)) = self.nodes[node.index()].interfaces.first()
        {
            self.on_notice_sent(node, station, handle);
        }
        self.send_past_middleboxes(node, seats, handle, next_hop, class);
    }

    fn make_packet(&mut self, node: NodeId, sending: MiddleboxPacket) -> (Handle, Ipv4Addr, Class) {
        let MiddleboxPacket { account, mut ip, body, len_bytes, next_hop, class, copy_of } = sending;
        // What is sent again keeps its own: by it a mobile host says what it has.
        if ip.id == 0 {
            ip.id = self.nodes[node.index()].next_id();
        }
        let mut packet = self.kernel.new_packet(ip, body, len_bytes, account);
        for inner in packet.inner_packets() {
            self.kernel.packets.retain(inner);
        }
        match (account, copy_of) {
            (PacketAccount::Flow(_), Some(original)) => {
                (packet.original, packet.role) = (original, PacketRole::Copy)
            }
            (PacketAccount::Flow(flow), None) => self.flows.record_made_by_middlebox(flow, &mut packet),
            (PacketAccount::Control | PacketAccount::External, _) => {}
        }
        (self.kernel.packets.insert(packet), next_hop, class)
    }

    /// Releases a packet after the caller has taken hold of the packets within it.
    fn release_outer(&mut self, handle: Handle) {
        for inner in self.kernel.packets.get(handle).inner_packets() {
            self.kernel.packets.retain(inner);
        }
        self.kernel.packets.release(handle);
    }

    /// Absorbs a packet: it goes no further, and is not lost. The caller's hold on it ends.
    fn absorb_packet(&mut self, handle: Handle) {
        let arrival = self.kernel.packets.record_arrival(handle);
        let packet = self.kernel.packets.get(handle);
        if let (PacketAccount::Flow(flow), ArrivalState::First) = (packet.account, arrival) {
            self.flows.record_absorbed(flow, packet);
        }
        self.kernel.packets.release(handle);
    }

    fn report_channel_time(&mut self, node: NodeId, seat: usize) {
        let now = self.kernel.now;
        let state = &mut self.nodes[node.index()];
        // Of several radios the first: what it shares with its neighbours is what is to be shared fairly.
        if let (Some(&Interface::Radio(station)), Some(air)) = (state.interfaces.first(), &self.air) {
            let time = channel_time(air.airtime(now, station));
            state.middleboxes[seat].middlebox.as_middlebox().handle_channel_time(now, time);
        }
    }
}

#[cfg(test)]
mod tests;
