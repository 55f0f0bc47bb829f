//! Cells: what home agents, base stations and mobile hosts do with packets, and what they tell each other.
//!
//! A packet for a mobile host goes to its home agent, which sends it on within another one; a station takes
//! it out again. Each station of a group gets a copy: the network's own multicast routing is ideal, and
//! joining takes no time.

mod role;

use crate::engine::Engine;
use crate::event::Event;
use crate::middlebox::PacketDirection;
use crate::packet::{Body, Handle, InnerPacket, Mark, PacketAccount, header};
use crate::trace::{DropReason, Tracer};
use hopline_core::NodeId;
use hopline_proxy::handoff::{Event as Told, StationAction, Transmit, group_of};
use hopline_queue::Class;
use hopline_routing::router::Origin;
use hopline_wire::handoff::{PacketId, TaggedMessage};
use hopline_wire::ipv4::{HEADER_LEN, Header, Protocol};
use hopline_wire::udp;
use role::is_forwarded_registration;
pub(crate) use role::{MobilityRole, role};
use std::net::Ipv4Addr;

impl<T: Tracer> Engine<T> {
    /// Sends a packet from its home agent into the tunnel to its mobile host. The caller's hold on it passes
    /// on.
    pub(crate) fn intercept(&mut self, node: NodeId, mut handle: Handle) {
        // RFC 2003 §3.1: entering a tunnel is a hop.
        if handle.ttl <= 1 {
            return self.drop_packet(node, handle, DropReason::Ttl);
        }
        handle.ttl -= 1;
        let mobile = self.kernel.packets.get(handle).ip.dst;
        let now = self.kernel.now;
        let home = self.nodes[node.index()].mobility_role().and_then(|role| role.home.as_ref());
        match home.and_then(|home| home.destination(now, mobile)) {
            Some(station) => self.tunnel(node, handle, station),
            None => self.drop_packet(node, handle, DropReason::NoRoute),
        }
    }

    /// Sends a packet for a group to its members: once to each next hop that leads to some of them. The
    /// caller's hold on it ends.
    pub(crate) fn multicast(&mut self, node: NodeId, handle: Handle) {
        let Header { src, dst: group, .. } = self.kernel.packets.get(handle).ip;
        let Some(source) = self.forwarding.owner(src) else {
            return self.drop_packet(node, handle, DropReason::NoRoute);
        };
        for next_hop in self.forwarding.branches(source, node, group) {
            self.kernel.packets.retain(handle);
            self.send_to(node, handle, next_hop.ipv4(), Class::Data);
        }
        if self.forwarding.is_member(node, group) {
            self.deliver(node, handle);
        }
        self.release(node, handle, DropReason::NoRoute);
    }

    /// Handles a packet within another that has come to the end of its tunnel. The caller's hold on the outer
    /// one stays.
    pub(crate) fn decapsulate(&mut self, node: NodeId, outer: Handle) {
        let Some(inner) = self.kernel.packets.get(outer).inner() else { return };
        self.kernel.packets.retain(inner);
        // RFC 6040 §4.2.
        let mark = if outer.mark == Mark::Congestion { Mark::Congestion } else { inner.mark };
        let inner = Handle { mark, ..inner };
        let Header { src, dst, id, .. } = self.kernel.packets.get(inner).ip;
        match self.nodes[node.index()].mobility_role_mut().and_then(|role| role.station.as_mut()) {
            Some(station) => station.handle_packet(dst, PacketId { source: src, id }, inner),
            None => self.drop_packet(node, inner, DropReason::NoRoute),
        }
        self.process_role_outputs(node);
    }

    /// Receives a message of a neighbour, or of a node beyond it, that is for this node. `heard`: the node
    /// that sent it by radio, if any.
    pub(crate) fn receive_handoff(
        &mut self,
        node: NodeId,
        from: Ipv4Addr,
        tagged: &TaggedMessage,
        heard: Option<NodeId>,
    ) {
        let now = self.kernel.now;
        let signal = heard.and_then(|sender| self.air.as_mut()?.signal_dbm(now, sender, node));
        let Some(role) = self.nodes[node.index()].mobility_role_mut() else { return };
        if let Some(host) = &mut role.mobile {
            host.machine.handle_message(now, from, tagged, signal);
        } else if let Some(home) =
            role.home.as_mut().filter(|_| heard.is_none() && is_forwarded_registration(tagged))
        {
            home.handle_message(now, tagged);
        } else if let Some(station) = &mut role.station {
            station.handle_message(now, from, tagged);
        }
        self.process_role_outputs(node);
    }

    /// Records that a packet of a flow has come to the node that it is for, over the radio of `from`.
    pub(crate) fn record_received(&mut self, node: NodeId, from: NodeId, packet: PacketId) {
        let now = self.kernel.now;
        if let Some(host) = self.nodes[node.index()].mobility_role_mut().and_then(|role| role.mobile.as_mut())
        {
            host.machine.record_received(packet);
            host.log.on_packet(now, host.machine.station() == Some(from.ipv4()));
        }
    }

    /// Returns whether a mobile host hears nothing from this neighbour but beacons.
    pub(crate) fn is_from_other_cell(&self, node: NodeId, from: NodeId, body: &Body) -> bool {
        let host = self.nodes[node.index()].mobility_role().and_then(|role| role.mobile.as_ref());
        !matches!(body, Body::Handoff(_)) && host.is_some_and(|host| host.is_ignored(from))
    }

    /// Handles the wake-up of a node's role.
    pub(crate) fn wake_cells(&mut self, node: NodeId) {
        let now = self.kernel.now;
        if let Some(role) = self.nodes[node.index()].mobility_role_mut()
            && role.alarm.is_due(now)
        {
            role.handle_timeout(now);
            self.process_role_outputs(node);
        }
    }

    /// Executes the actions of a node's state machines, and arms their wake-up.
    pub(crate) fn process_role_outputs(&mut self, node: NodeId) {
        loop {
            let Some(role) = self.nodes[node.index()].mobility_role_mut() else { return };
            if let Some(transmit) = role.home.as_mut().and_then(|home| home.poll_transmit()) {
                self.send_handoff(node, transmit);
            } else if let Some(does) = role.station.as_mut().and_then(|station| station.poll_action()) {
                self.perform_station_action(node, does);
            } else if let Some(host) = &mut role.mobile
                && let Some(event) = host.machine.poll_event()
            {
                self.handle_mobile_event(node, event);
            } else if let Some(host) = &mut role.mobile
                && let Some(transmit) = host.machine.poll_transmit()
            {
                self.send_handoff(node, transmit);
            } else {
                break;
            }
        }
        let (now, scheduler) = (self.kernel.now, &mut self.kernel.scheduler);
        if let Some(role) = self.nodes[node.index()].mobility_role_mut() {
            role.alarm.set(now, role.poll_timeout(), scheduler, Event::Cells { node: node.0 });
        }
    }

    fn tunnel(&mut self, node: NodeId, handle: Handle, to: Ipv4Addr) {
        let ecn = self.kernel.packets.ecn(handle); // RFC 6040 §4.1
        let ip = Header { ecn, ..header(node.ipv4(), to, Protocol::Ipv4) };
        let len_bytes = HEADER_LEN as u32 + self.kernel.packets.len(handle);
        let packet =
            self.kernel.new_packet(ip, Body::Tunnel(InnerPacket(handle)), len_bytes, PacketAccount::Control);
        let outer = self.kernel.packets.insert(packet);
        self.handle_packet(node, outer, Origin::Local);
    }

    fn perform_station_action(&mut self, node: NodeId, does: StationAction<Handle>) {
        match does {
            StationAction::Send(transmit) => self.send_handoff(node, transmit),
            StationAction::Deliver(handle) => self.send_over_last_hop(node, handle),
            StationAction::ShowToMiddleboxes(handle) => self.show_to_middleboxes(node, handle),
            StationAction::Release(handle) => self.release(node, handle, DropReason::NoRoute),
            StationAction::Refuse(handle) => self.drop_packet(node, handle, DropReason::NoRoute),
            StationAction::HostArrived(mobile, past) => {
                let now = self.kernel.now;
                for seat in &mut self.nodes[node.index()].middleboxes {
                    seat.middlebox.as_middlebox().handle_arrival(now, mobile, past);
                }
            }
            StationAction::HostLeft(mobile) => {
                let now = self.kernel.now;
                for seat in &mut self.nodes[node.index()].middleboxes {
                    seat.middlebox.as_middlebox().handle_departure(now, mobile);
                }
                self.process_middleboxes(node);
            }
            StationAction::JoinGroup(mobile) => self.forwarding.join(node, group_of(mobile)),
            StationAction::LeaveGroup(mobile) => self.forwarding.leave(node, group_of(mobile)),
        }
    }

    /// Sends a packet on over the last hop.
    fn send_over_last_hop(&mut self, node: NodeId, mut handle: Handle) {
        if handle.ttl <= 1 {
            return self.drop_packet(node, handle, DropReason::Ttl);
        }
        handle.ttl -= 1;
        let mobile = self.kernel.packets.get(handle).ip.dst;
        self.send_to(node, handle, mobile, Class::Data);
    }

    /// Shows a packet to the middleboxes in the path to a mobile host; the packet goes no further.
    fn show_to_middleboxes(&mut self, node: NodeId, handle: Handle) {
        let next_hop = self.kernel.packets.get(handle).ip.dst;
        let neighbour = self.forwarding.owner(next_hop);
        if let Some((at, to)) = neighbour.and_then(|neighbour| self.interface_towards(node, neighbour)) {
            let seats = self.nodes[node.index()].middleboxes.len();
            let onward = PacketDirection::Out { at, to, class: Class::Data, next_hop };
            self.show_outgoing(node, seats, handle, onward);
        } else {
            self.release(node, handle, DropReason::NoRoute);
        }
    }

    fn send_handoff(&mut self, node: NodeId, Transmit { to, message }: Transmit) {
        let ip = header(node.ipv4(), to, Protocol::Udp);
        let len_bytes = (HEADER_LEN + udp::HEADER_LEN + message.wire_len()) as u32;
        let packet = self.kernel.new_packet(ip, Body::Handoff(message), len_bytes, PacketAccount::Control);
        let ledger = &mut self.kernel.counters[node.index()];
        ledger.routing_packets += 1;
        ledger.routing_bytes += u64::from(packet.len_bytes);
        let handle = self.kernel.packets.insert(packet);
        if to.is_broadcast() || self.is_radio_destination(node, to) {
            self.send_to(node, handle, to, Class::Routing);
        } else {
            self.handle_packet(node, handle, Origin::Local);
        }
    }

    /// Returns whether the packet goes over the radio: mobile hosts and stations speak to each other
    /// directly.
    fn is_radio_destination(&self, node: NodeId, to: Ipv4Addr) -> bool {
        let is_mobile =
            |node: NodeId| self.nodes[node.index()].mobility_role().is_some_and(|role| role.mobile.is_some());
        is_mobile(node) || self.forwarding.owner(to).is_some_and(is_mobile)
    }

    fn handle_mobile_event(&mut self, node: NodeId, event: Told) {
        let station = match event {
            Told::Attached { station } => self.forwarding.owner(station),
            Told::Detached => None,
            Told::Served { handoff: false, .. } => return,
            Told::Served { latency: took, handoff: true, .. } => {
                if let Some(log) = self.nodes[node.index()].handoff_log() {
                    log.on_handoff_completed(took);
                }
                for seat in &mut self.nodes[node.index()].middleboxes {
                    seat.middlebox.as_middlebox().handle_handoff();
                }
                return self.process_middleboxes(node);
            }
        };
        self.forwarding.attach(node, station);
        if let Some(log) = self.nodes[node.index()].handoff_log() {
            log.on_handoff_start();
        }
    }
}
