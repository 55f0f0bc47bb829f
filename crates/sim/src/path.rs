//! Driver of the middleboxes in the path of packets at a node: executes their actions and wakes them.

use crate::engine::Engine;
use crate::event::Event;
use crate::ids::Interface;
use crate::in_path::{Sending, Wish};
use crate::neighborhood::channel_time;
use crate::packet::{Account, Arrival, Body, Handle, Role};
use crate::seat::Drain;
use crate::trace::{DropReason, Tracer};
use hopline_core::NodeId;
use hopline_queue::Class;
use hopline_routing::router::Origin;
use std::net::Ipv4Addr;

impl<T: Tracer> Engine<T> {
    /// Drains all middleboxes of `node`.
    pub(crate) fn drive_path(&mut self, node: NodeId) {
        for seat in 0..self.nodes[node.index()].path.len() {
            self.drive_seat(node, seat);
        }
    }

    /// Drains a middlebox, and arms its wake-up.
    pub(crate) fn drive_seat(&mut self, node: NodeId, seat: usize) {
        let now = self.kernel.now;
        let drain = &mut self.nodes[node.index()].path[seat].drain;
        if core::mem::replace(drain, Drain::UnderWay) == Drain::UnderWay {
            return;
        }
        while let Some(wish) = self.nodes[node.index()].path[seat].machine.in_path().poll(now) {
            match wish {
                Wish::ChannelTime => self.tell_channel_time(node, seat),
                Wish::Send(sending) => self.send_own(node, seat, sending),
                Wish::Route(sending) => {
                    let (handle, ..) = self.make(node, sending);
                    self.route(node, handle, Origin::Local);
                }
                Wish::GoOn(handle, onward) => self.go_on(node, seat, handle, onward),
                Wish::Absorb(handle) => self.absorb(handle),
                Wish::Open(handle) => self.open(handle),
                Wish::Refuse(handle) => self.drop_packet(node, handle, DropReason::QueueFull),
                Wish::Lose(handle) => {
                    self.kernel.tell_refused(node, handle);
                    self.kernel.packets.release(handle);
                }
                Wish::LetGo(handle) => self.let_go(node, handle, DropReason::RetryLimit),
            }
        }
        let state = &mut self.nodes[node.index()].path[seat];
        state.drain = Drain::Idle;
        let wanted = state.machine.in_path().next_wake();
        let event = Event::InPath { node: node.0, seat: seat as u32 };
        state.alarm.set(now, wanted, &mut self.kernel.scheduler, event);
    }

    /// Handles the wake-up of a middlebox.
    pub(crate) fn wake_seat(&mut self, node: NodeId, seat: u32) {
        let now = self.kernel.now;
        let state = &mut self.nodes[node.index()].path[seat as usize];
        if state.alarm.rings(now) {
            state.machine.in_path().wake(now);
            self.drive_seat(node, seat as usize);
        }
    }

    /// Reports packets dropped by queues to the middleboxes of the same node.
    pub(crate) fn tell_of_refusals(&mut self) {
        for (node, packet) in core::mem::take(&mut self.kernel.refused) {
            for seat in 0..self.nodes[node.index()].path.len() {
                self.nodes[node.index()].path[seat].machine.in_path().refused(self.kernel.now, &packet);
                self.drive_seat(node, seat);
            }
        }
    }

    /// Sends what `node` is to send of its own, beside endpoints and agents, past the machines below number `seats`.
    pub(crate) fn send_own(&mut self, node: NodeId, seats: usize, sending: Sending) {
        let (handle, next_hop, class) = self.make(node, sending);
        if let Body::Ncn(_) = self.kernel.packets.get(handle).body
            && let Some(&Interface::Radio(station)) = self.nodes[node.index()].interfaces.first()
        {
            self.notice_sent(node, station, handle);
        }
        self.send_past(node, seats, handle, next_hop, class);
    }

    fn make(&mut self, node: NodeId, sending: Sending) -> (Handle, Ipv4Addr, Class) {
        let Sending { account, mut ip, body, len_bytes, next_hop, class, copy_of } = sending;
        // What is sent again keeps its own: by it a mobile host says what it has.
        if ip.id == 0 {
            ip.id = self.nodes[node.index()].next_id();
        }
        let mut packet = self.kernel.made(ip, body, len_bytes, account);
        for inner in packet.within() {
            self.kernel.packets.retain(inner);
        }
        match (account, copy_of) {
            (Account::Flow(_), Some(original)) => (packet.original, packet.role) = (original, Role::Copy),
            (Account::Flow(flow), None) => self.flows.made_for(flow, &mut packet),
            (Account::Control | Account::Foreign, _) => {}
        }
        (self.kernel.packets.insert(packet), next_hop, class)
    }

    /// Releases a packet after the caller has taken hold of the packets within it.
    fn open(&mut self, handle: Handle) {
        for inner in self.kernel.packets.get(handle).within() {
            self.kernel.packets.retain(inner);
        }
        self.kernel.packets.release(handle);
    }

    /// Absorbs a packet: it goes no further, and is not lost. The caller's hold on it ends.
    fn absorb(&mut self, handle: Handle) {
        let arrival = self.kernel.packets.arrive(handle);
        let packet = self.kernel.packets.get(handle);
        if let (Account::Flow(flow), Arrival::First) = (packet.account, arrival) {
            self.flows.absorbed_of(flow, packet);
        }
        self.kernel.packets.release(handle);
    }

    fn tell_channel_time(&mut self, node: NodeId, seat: usize) {
        let now = self.kernel.now;
        let state = &mut self.nodes[node.index()];
        // Of several radios the first: what it shares with its neighbours is what is to be shared fairly.
        if let (Some(&Interface::Radio(station)), Some(air)) = (state.interfaces.first(), &self.air) {
            let time = channel_time(air.airtime(now, station));
            state.path[seat].machine.in_path().take_channel_time(now, time);
        }
    }
}

#[cfg(test)]
mod tests;
