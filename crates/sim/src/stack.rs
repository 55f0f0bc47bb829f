//! The network layer of a node: local delivery, forwarding, and the routing agent.

use crate::fingerprint::Observed;
use crate::node::{Node, Queued};
use crate::outcome::Drops;
use crate::packet::{Body, Handle, Packet};
use crate::trace::{DropReason, Place, Tracer};
use crate::world::{Event, World};
use hopline_core::{Instant, LinkId, Machine, NodeId};
use hopline_queue::drop_tail::Class;
use hopline_routing::aodv::{self, Carried, Decision, Origin};
use hopline_wire::dot11::MacAddr;
use hopline_wire::icmp::Reason;
use hopline_wire::ipv4::{Ecn, Header, Protocol};
use std::net::Ipv4Addr;

/// Hops a packet may take (RFC 1700: 64).
const DEFAULT_TTL: u8 = 64;

impl<T: Tracer> World<T> {
    /// Sends a packet that `node` itself made.
    pub(crate) fn originate(&mut self, node: NodeId, packet: Packet) {
        let handle = self.packets.insert(packet);
        if T::ENABLED {
            self.tracer.originated(self.now, node, self.packets.view(handle));
        }
        self.route(node.0, handle, Origin::Local);
    }

    /// A packet for `node`, or to be passed on, arrived over its radio. The caller's hold on it passes on.
    pub(crate) fn receive_from_radio(&mut self, node: u32, handle: Handle, from: MacAddr) {
        let Some(from) = from.node() else {
            self.packets.release(handle);
            return;
        };
        if !self.filters.is_empty() && self.filters.covers(self.now, from, NodeId(node)) {
            self.drop_at(Place::Radio, node, handle, DropReason::Outage);
            return;
        }
        self.receive(node, handle, from);
    }

    /// A packet arrived at `node` from its neighbour `from`. The caller's hold on it passes on.
    pub(crate) fn receive(&mut self, node: u32, handle: Handle, from: NodeId) {
        let packet = self.packets.get(handle);
        if T::ENABLED {
            let view = self.packets.view(handle);
            if packet.flow.is_some() && packet.ip.dst == NodeId(node).ipv4() {
                self.tracer.delivered(self.now, NodeId(node), view);
            } else {
                self.tracer.arrived(self.now, NodeId(node), view);
            }
        }
        if let Body::Aodv(message) = &packet.body {
            let received = aodv::Received {
                message: message.clone(),
                from: packet.ip.src,
                to: packet.ip.dst,
                ttl: handle.ttl,
            };
            self.packets.release(handle);
            self.receive_routing(node, received);
        } else if packet.ip.dst == NodeId(node).ipv4() {
            self.deliver(node, handle);
            self.packets.release(handle);
        } else {
            self.forward(node, handle, from);
        }
    }

    /// The MAC of `node` gave up on a packet for `to`.
    pub(crate) fn link_failed(&mut self, node: u32, handle: Handle, to: MacAddr) {
        let packet = self.packets.get(handle);
        let Some(neighbour) = to.node().map(NodeId::ipv4) else {
            self.drop_at(Place::Radio, node, handle, DropReason::RetryLimit);
            return;
        };
        if self.nodes[node as usize].aodv.is_none() {
            self.report_unreachable(node, handle, Reason::Host);
            self.drop_at(Place::Radio, node, handle, DropReason::RetryLimit);
            return;
        }
        let carried = match &packet.body {
            Body::Aodv(message) => {
                let carried = Carried::message(message);
                self.drop_at(Place::Radio, node, handle, DropReason::RetryLimit);
                carried
            }
            Body::Tcp(_) | Body::Udp { .. } | Body::Icmp(_) => Carried::Data {
                packet: handle,
                destination: packet.ip.dst,
                source: packet.ip.src,
                travelled: packet.ip.ttl - handle.ttl,
            },
        };
        if let Some(agent) = &mut self.nodes[node as usize].aodv {
            agent.machine.handle_signal(self.now, aodv::Signal::LinkFailed { neighbour, carried });
            self.drive_agent(node);
        }
    }

    /// A routing agent's wake-up is due.
    pub(crate) fn wake_agent(&mut self, node: u32) {
        let now = self.now;
        let Some(agent) = &mut self.nodes[node as usize].aodv else { return };
        if agent.armed == now {
            agent.armed = Instant::FAR_FUTURE;
            agent.machine.handle_timeout(now);
            self.drive_agent(node);
        }
    }

    /// Drains a routing agent: messages, packets released and dropped.
    pub(crate) fn drive_agent(&mut self, node: u32) {
        let now = self.now;
        loop {
            let Some(agent) = &mut self.nodes[node as usize].aodv else { return };
            if let Some(transmit) = agent.machine.poll_transmit(now) {
                self.send_routing(node, transmit);
            } else if let Some(event) = agent.machine.poll_event() {
                self.handle_agent_event(node, event);
            } else {
                break;
            }
        }
        if let Some(agent) = &mut self.nodes[node as usize].aodv
            && let Some((at, _)) = agent.machine.poll_timeout()
            && at < agent.armed
        {
            // What has become due without the agent being asked is due at once.
            let at = at.max(now);
            agent.armed = at;
            self.scheduler.schedule(at, Event::Routing { node });
        }
        self.tell_of_routes(node);
    }

    /// Drops a packet at the network layer. The caller's hold on it ends.
    pub(crate) fn drop_packet(&mut self, node: u32, handle: Handle, reason: DropReason) {
        self.drop_at(Place::Network, node, handle, reason);
    }

    /// Drops a packet at `place`. The caller's hold on it ends.
    pub(crate) fn drop_at(&mut self, place: Place, node: u32, handle: Handle, reason: DropReason) {
        let packet = self.packets.get(handle);
        self.fingerprint.observe(self.now, Observed::Dropped, node, packet.len_bytes);
        if T::ENABLED {
            self.tracer.dropped(self.now, NodeId(node), self.packets.view(handle), reason, place);
        }
        self.nodes[node as usize].drops.count(reason);
        self.packets.release(handle);
    }

    fn forward(&mut self, node: u32, mut handle: Handle, from: NodeId) {
        if handle.ttl <= 1 {
            self.drop_packet(node, handle, DropReason::Ttl);
            return;
        }
        handle.ttl -= 1;
        let source = self.packets.get(handle).ip.src;
        self.route(node, handle, Origin::Forwarded { previous_hop: from.ipv4(), source });
    }

    fn route(&mut self, node: u32, handle: Handle, origin: Origin) {
        let destination = self.packets.get(handle).ip.dst;
        if let Some(agent) = &mut self.nodes[node as usize].aodv {
            let decision = agent.machine.route(self.now, destination, origin, handle);
            match decision {
                Decision::Forward { next_hop } => self.send_to(node, handle, next_hop, Class::Data),
                Decision::Buffered => {}
                Decision::Dropped { reason } => self.drop_packet(node, handle, DropReason::Routing(reason)),
            }
            self.drive_agent(node);
            return;
        }
        let routes = self.routes.as_ref();
        let next_hop = NodeId::from_ipv4(destination)
            .and_then(|to| routes.and_then(|routes| routes.next_hop(NodeId(node), to)));
        match next_hop {
            Some(next_hop) => self.send_to(node, handle, next_hop.ipv4(), Class::Data),
            None => {
                self.report_unreachable(node, handle, Reason::Network);
                self.drop_packet(node, handle, DropReason::NoRoute);
            }
        }
    }

    /// Hands a packet to the interface that leads to `next_hop`: a wired link if there is one, else the radio.
    fn send_to(&mut self, node: u32, handle: Handle, next_hop: Ipv4Addr, class: Class) {
        let neighbour = NodeId::from_ipv4(next_hop);
        if T::ENABLED {
            self.tracer.routed(self.now, NodeId(node), self.packets.view(handle), neighbour);
        }
        let state = &self.nodes[node as usize];
        let wire = state.wires.iter().find(|(other, _)| Some(*other) == neighbour).map(|&(_, end)| end);
        match (wire, &state.radio) {
            (Some(end), _) => self.send_over_wire(end, handle, class),
            (None, Some(_)) => {
                let to = neighbour.map_or(MacAddr::BROADCAST, MacAddr::of_node);
                self.send_over_radio(node, Queued { handle, to, class });
            }
            (None, None) => self.drop_packet(node, handle, DropReason::NoRoute),
        }
    }

    fn receive_routing(&mut self, node: u32, received: aodv::Received) {
        if let Some(agent) = &mut self.nodes[node as usize].aodv {
            agent.machine.handle_packet(self.now, LinkId::ONLY, received);
            self.drive_agent(node);
        }
    }

    fn send_routing(&mut self, node: u32, transmit: aodv::Transmit) {
        let Some(agent) = &self.nodes[node as usize].aodv else { return };
        let len_bytes = agent.machine.config().encapsulation.packet_len(&transmit.message) as u32;
        let ip = Header { ttl: transmit.ttl, ..header(transmit.source, transmit.destination, Protocol::Udp) };
        let packet = Packet {
            ip,
            body: Body::Aodv(transmit.message),
            len_bytes: len_bytes + self.extra_header_bytes,
            flow: None,
            made: self.now,
            serial: 0,
        };
        let handle = self.packets.insert(packet);
        self.nodes[node as usize].routing_packets += 1;
        self.send_to(node, handle, transmit.next_hop, Class::Routing);
    }

    fn handle_agent_event(&mut self, node: u32, event: aodv::Event<Handle>) {
        match event {
            aodv::Event::Release { packet, next_hop } => self.send_to(node, packet, next_hop, Class::Data),
            aodv::Event::Drop { packet, reason } => {
                let ip = self.packets.get(packet).ip;
                // RFC 3561 §6.3: whoever sent what nobody could be found for is told.
                if reason == aodv::DropReason::DiscoveryFailed && ip.src == NodeId(node).ipv4() {
                    self.note_broken_route(node, ip.dst);
                }
                self.drop_packet(node, packet, DropReason::Routing(reason));
            }
            aodv::Event::PurgeQueue { next_hop } => {
                let to = NodeId::from_ipv4(next_hop).map_or(MacAddr::BROADCAST, MacAddr::of_node);
                for handle in self.purge_queue(node, to) {
                    self.drop_at(
                        Place::Radio,
                        node,
                        handle,
                        DropReason::Routing(aodv::DropReason::LinkFailure),
                    );
                }
            }
            aodv::Event::RouteLost { destination } => self.note_broken_route(node, destination),
            // Routes return in other ways too; whoever waits for one asks the agent.
            aodv::Event::RouteFound { .. } => {}
        }
    }
}

/// A header with the default hop limit.
pub(crate) fn header(src: Ipv4Addr, dst: Ipv4Addr, protocol: Protocol) -> Header {
    Header { src, dst, ttl: DEFAULT_TTL, protocol, ecn: Ecn::NotCapable, id: 0 }
}

impl Drops {
    fn count(&mut self, reason: DropReason) {
        let counter = match reason {
            DropReason::QueueFull => &mut self.queue_full,
            DropReason::RetryLimit | DropReason::Routing(aodv::DropReason::LinkFailure) => {
                &mut self.retry_limit
            }
            DropReason::NoRoute | DropReason::Routing(_) => &mut self.no_route,
            DropReason::Ttl => &mut self.ttl,
            DropReason::LinkError => &mut self.link_error,
            DropReason::Outage => &mut self.outage,
        };
        *counter += 1;
    }
}

impl Node {
    /// Packets in the interface queue; in the longest of them if there are several.
    pub(crate) fn queue_len(&self, wires: &[crate::wired::Wire]) -> u32 {
        let over_wires =
            self.wires.iter().map(|(_, end)| wires[end.link as usize].queue_len(end.side)).max().unwrap_or(0);
        self.radio.as_ref().map_or(0, |radio| radio.queue.len()).max(over_wires) as u32
    }
}
