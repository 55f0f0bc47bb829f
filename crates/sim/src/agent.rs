//! Interface between a node and its routing agent: inputs, requests and reports.

use crate::engine::Engine;
use crate::event::Event;
use crate::packet::{Body, Handle, InnerPacket, Mark, Packet, PacketAccount, header};
use crate::trace::{DropLocation, DropReason, TraceEvent, Tracer};
use hopline_core::NodeId;
use hopline_queue::drop_tail::Class;
use hopline_routing::DropReason as RoutingDrop;
use hopline_routing::router::{
    self, Custody, Decision, FailedTransmission, Origin, PurgedPackets, Received, Receiver, Report,
    RouteQuery, Router, Transmission,
};
use hopline_wire::ipv4::Header;
use std::net::Ipv4Addr;

impl<T: Tracer> Engine<T> {
    /// Asks the agent of `node` where a packet goes that it is to bring to `destination`. It may keep it.
    pub(crate) fn query_agent(
        &mut self,
        node: NodeId,
        handle: Handle,
        destination: Ipv4Addr,
        origin: Origin,
    ) {
        let now = self.kernel.now;
        let protocol = self.kernel.packets.get(handle).ip.protocol;
        let Some(agent) = self.nodes[node.index()].agent.as_deref_mut() else { return };
        let question = RouteQuery { packet: handle, destination, ttl: handle.ttl, protocol, origin };
        match agent.agent.route(now, question) {
            Decision::Forward { next_hop } => self.send_to(node, handle, next_hop, Class::Data),
            Decision::Accepted => {}
            Decision::Dropped { reason } => self.drop_packet(node, handle, DropReason::Routing(reason)),
        }
        self.process_agent_outputs(node);
    }

    /// Handles a routing message from a neighbour. The caller's hold on it ends.
    pub(crate) fn receive_routing(&mut self, node: NodeId, handle: Handle, from: NodeId) {
        let now = self.kernel.now;
        let Some(packet) = self.unpack(handle) else { return };
        self.kernel.packets.release(handle);
        let inner = packet.payload;
        let received = Received { packet, from: from.ipv4(), to: Receiver::ThisNode };
        let custody = match self.nodes[node.index()].agent.as_deref_mut() {
            Some(agent) => agent.agent.handle_message(now, received),
            None => Custody::Refused,
        };
        // A node that does not speak the protocol cannot read the content of a message.
        if let (Some(inner), Custody::Refused) = (inner, custody) {
            self.drop_packet(node, inner, DropReason::NoRoute);
        }
        self.process_agent_outputs(node);
    }

    /// Records that a radio of `node` received a packet from a neighbour.
    pub(crate) fn notify_agent_of_neighbour(&mut self, node: NodeId, neighbour: NodeId) {
        if let Some(agent) = self.nodes[node.index()].agent.as_deref_mut() {
            agent.agent.handle_reception(self.kernel.now, neighbour.ipv4());
        }
    }

    /// Records that the radio of `node`, which listens to its neighbours, decoded a packet from one of them
    /// to another.
    pub(crate) fn overhear(&mut self, node: NodeId, handle: Handle, from: NodeId, to: NodeId) {
        let now = self.kernel.now;
        let Packet { ip, body: Body::Routing { message, .. }, .. } = self.kernel.packets.get(handle) else {
            return;
        };
        let (source, destination) = (ip.src, ip.dst);
        let packet =
            router::Packet { source, destination, ttl: handle.ttl, message: message.clone(), payload: None };
        let received = Received { packet, from: from.ipv4(), to: Receiver::Other(to.ipv4()) };
        if let Some(agent) = self.nodes[node.index()].agent.as_deref_mut() {
            let _carries_nothing = agent.agent.handle_message(now, received);
            self.process_agent_outputs(node);
        }
    }

    /// Records that the MAC gave up on a packet for `neighbour`; the agent is to be drained. The caller's
    /// hold on it ends.
    pub(crate) fn notify_agent_of_link_failure(&mut self, node: NodeId, handle: Handle, neighbour: Ipv4Addr) {
        let now = self.kernel.now;
        let message = self.unpack(handle);
        let inner = message.as_ref().and_then(|message| message.payload);
        let is_message = message.is_some();
        let Packet { ip, .. } = *self.kernel.packets.get(handle);
        let lost = message.map_or_else(
            || FailedTransmission::Data {
                packet: handle,
                destination: self.forwarding.destination(node, ip.dst).unwrap_or(ip.dst),
                source: ip.src,
                travelled: ip.ttl - handle.ttl,
            },
            FailedTransmission::Message,
        );
        let Some(agent) = self.nodes[node.index()].agent.as_deref_mut() else { return };
        match agent.agent.handle_link_failure(now, neighbour, lost) {
            Custody::Accepted if is_message => self.kernel.packets.release(handle),
            Custody::Accepted => {}
            Custody::Refused => {
                if let Some(inner) = inner {
                    self.kernel.packets.release(inner);
                }
                self.kernel.drop_at(DropLocation::Radio, node, handle, DropReason::RetryLimit);
            }
        }
    }

    /// Handles the wake-up of a routing agent.
    pub(crate) fn wake_agent(&mut self, node: NodeId) {
        let now = self.kernel.now;
        let Some(agent) = &mut self.nodes[node.index()].agent else { return };
        if agent.wake_up.is_due(now) {
            agent.agent.handle_timeout(now);
            self.process_agent_outputs(node);
        }
    }

    /// Drains a routing agent: messages, packets released and dropped.
    pub(crate) fn process_agent_outputs(&mut self, node: NodeId) {
        let now = self.kernel.now;
        loop {
            let Some(agent) = &mut self.nodes[node.index()].agent else { return };
            if let Some(transmission) = agent.agent.poll_transmit(now) {
                self.send_message(node, transmission);
            } else if let Some(report) = agent.agent.poll_event() {
                self.handle_agent_report(node, report);
            } else {
                break;
            }
        }
        if let Some(agent) = &mut self.nodes[node.index()].agent {
            let wanted = agent.agent.poll_timeout();
            let event = Event::Routing { node: node.0 };
            agent.wake_up.set(now, wanted, &mut self.kernel.scheduler, event);
        }
        self.notify_of_route_changes(node);
    }

    fn handle_agent_report(&mut self, node: NodeId, report: Report<Handle>) {
        match report {
            Report::Release { packet, next_hop } => self.send_to(node, packet, next_hop, Class::Data),
            Report::Deliver { packet, ttl } => {
                let handle = Handle { ttl, ..packet };
                let ip = self.kernel.packets.get(handle).ip;
                if self.forwarding.owner(ip.dst) == Some(node) {
                    self.kernel.trace(node, |packets| TraceEvent::Delivered(packets.view(handle)));
                }
                self.handle_packet(node, handle, Origin::Local);
            }
            Report::Drop { packet, reason } => {
                let ip = self.kernel.packets.get(packet).ip;
                // RFC 3561 §6.3: the source of a packet without a route to its destination is notified.
                if reason == RoutingDrop::DiscoveryFailed
                    && ip.src == node.ipv4()
                    && let Some(destination) = self.forwarding.destination(node, ip.dst)
                {
                    self.record_broken_route(node, destination);
                }
                self.drop_packet(node, packet, DropReason::Routing(reason));
            }
            Report::PurgeQueue { next_hop, fate } => self.purge_queue(node, next_hop, fate),
            Report::RouteLost { destination } => self.record_broken_route(node, destination),
            // Routes return in other ways too; a node that waits for one asks its agent.
            Report::RouteFound { .. } => {}
        }
    }

    fn purge_queue(&mut self, node: NodeId, next_hop: Ipv4Addr, fate: PurgedPackets) {
        let Some(neighbour) = self.forwarding.owner(next_hop) else { return };
        let (air, kernel) = self.air();
        let Some((station, to)) = air.station_towards(node, neighbour) else { return };
        for handle in air.purge_queue(kernel, station, to) {
            match fate {
                PurgedPackets::Dropped => {
                    let reason = DropReason::Routing(RoutingDrop::LinkFailure);
                    self.kernel.drop_at(DropLocation::Radio, node, handle, reason);
                }
                PurgedPackets::Failed => self.notify_agent_of_link_failure(node, handle, next_hop),
            }
        }
    }

    /// Sends what an agent wants sent. A header that changes at every hop goes around a packet that never
    /// does: each hop makes a new one around it.
    fn send_message(&mut self, node: NodeId, transmission: Transmission<Handle>) {
        let Transmission { packet, next_hop, len } = transmission;
        let router::Packet { source, destination, ttl, message, payload: carried } = packet;
        let ip = Header { ttl, ..header(source, destination, message.protocol()) };
        let len_bytes = len as u32;
        let Some(inner) = carried else {
            let body = Body::Routing { message, payload: None };
            let packet = self.kernel.new_packet(ip, body, len_bytes, PacketAccount::Control);
            let ledger = &mut self.kernel.counters[node.index()];
            ledger.routing_packets += 1;
            ledger.routing_bytes += u64::from(packet.len_bytes);
            let handle = self.kernel.packets.insert(packet);
            return self.send_to(node, handle, next_hop, Class::Routing);
        };
        let within = self.kernel.packets.get(inner);
        let packet = Packet {
            // Of what the packet carries: so its hops can be counted from any copy.
            ip: Header { ttl: within.ip.ttl, ecn: self.kernel.packets.ecn(inner), ..ip },
            len_bytes: within.len_bytes + len_bytes,
            body: Body::Routing { message, payload: Some(InnerPacket(inner)) },
            account: PacketAccount::Control,
            made: within.made,
            original: within.original,
            role: within.role,
            serial: 0,
        };
        let handle = Handle { ttl, ..self.kernel.packets.insert(packet) };
        self.send_to(node, handle, next_hop, Class::Data);
    }

    /// Returns the routing packet behind `handle`, with a hold on what it carries; `None` if it is of another
    /// kind.
    fn unpack(&mut self, handle: Handle) -> Option<router::Packet<Handle>> {
        let Packet { ip, body: Body::Routing { message, payload: carried }, .. } =
            self.kernel.packets.get(handle)
        else {
            return None;
        };
        let packet = router::Packet {
            source: ip.src,
            destination: ip.dst,
            ttl: handle.ttl,
            message: message.clone(),
            // What was marked goes on in another packet.
            payload: carried.map(|InnerPacket(inner)| match handle.mark {
                Mark::None => inner,
                Mark::Congestion => Handle { mark: Mark::Congestion, ..inner },
            }),
        };
        if let Some(inner) = packet.payload {
            self.kernel.packets.retain(inner);
        }
        Some(packet)
    }
}
