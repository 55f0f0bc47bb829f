//! The network layer of a node: local delivery, forwarding, and the routing agent.

use crate::fingerprint::Observed;
use crate::neighborhood::Admission;
use crate::node::{Node, Queued, Routing};
use crate::outcome::Drops;
use crate::packet::{Account, Body, Handle, Packet};
use crate::trace::{DropReason, Place, TraceEvent, Tracer};
use crate::world::{Event, World};
use hopline_core::{LinkId, Machine, NodeId};
use hopline_queue::drop_tail::Class;
use hopline_queue::neighborhood_red::Coming;
use hopline_routing::DropReason as RoutingDrop;
use hopline_routing::aodv::{self, Carried, Decision, Origin};
use hopline_routing::olsr;
use hopline_wire::dot11::MacAddr;
use hopline_wire::icmp::Reason;
use hopline_wire::ipv4::{Ecn, HEADER_LEN, Header, Protocol};
use hopline_wire::udp;
use std::net::Ipv4Addr;
use std::sync::Arc;

/// Hops a packet may take (RFC 1700: 64).
const DEFAULT_TTL: u8 = 64;

impl<T: Tracer> World<T> {
    /// Sends a packet that `node` itself made.
    pub(crate) fn originate(&mut self, node: NodeId, packet: Packet) {
        let handle = self.packets.insert(packet);
        if T::ENABLED {
            self.tracer.note(self.now, node, TraceEvent::Originated(self.packets.view(handle)));
        }
        let packet = self.packets.get(handle);
        if let (Some(flow), destination) = (packet.account.flow(), packet.ip.dst) {
            self.note_route(node, flow, destination);
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
        self.hear_neighbor(node, handle, from);
        match self.admit(node, handle, Coming::Up) {
            Admission::Admitted(handle) => self.receive(node, handle, from),
            Admission::Dropped => {}
        }
    }

    /// A packet arrived at `node` from its neighbour `from`. The caller's hold on it passes on.
    pub(crate) fn receive(&mut self, node: u32, handle: Handle, from: NodeId) {
        let packet = self.packets.get(handle);
        if T::ENABLED {
            let view = self.packets.view(handle);
            let is_for_us = packet.account != Account::Control && packet.ip.dst == NodeId(node).ipv4();
            let event = if is_for_us { TraceEvent::Delivered(view) } else { TraceEvent::Arrived(view) };
            self.tracer.note(self.now, NodeId(node), event);
        }
        match &packet.body {
            Body::Aodv(_) | Body::Olsr(_) => self.receive_routing(node, handle),
            Body::Dsr { .. } => self.receive_dsr(node, handle, from),
            // Who has Neighborhood RED has taken it already.
            Body::Ncn(_) => self.packets.release(handle),
            &Body::Arp(message) => {
                self.packets.release(handle);
                self.receive_arp(node, message);
            }
            _ if packet.ip.dst == NodeId(node).ipv4() => {
                self.deliver(node, handle);
                self.packets.release(handle);
            }
            _ => self.forward(node, handle, from),
        }
    }

    /// The MAC of `node` gave up on a packet for `to`.
    pub(crate) fn link_failed(&mut self, node: u32, handle: Handle, to: MacAddr) {
        let now = self.now;
        let says_nothing = matches!(self.packets.get(handle).body, Body::Ncn(_) | Body::Arp(_));
        // Nothing is known of a group's routes by this, and a notice that is lost says nothing of them; nor does an address.
        let Some(neighbour) = to.node().map(NodeId::ipv4).filter(|_| !says_nothing) else {
            return self.drop_at(Place::Radio, node, handle, DropReason::RetryLimit);
        };
        match self.routing(node) {
            Some(Routing::Aodv(_)) => self.aodv_link_failed(node, handle, neighbour),
            Some(Routing::Dsr(_)) => self.dsr_link_failed(node, handle, neighbour),
            Some(Routing::Olsr(olsr)) => {
                olsr.handle_signal(now, olsr::Signal::LinkFailed { neighbour });
                self.drop_at(Place::Radio, node, handle, DropReason::RetryLimit);
            }
            None => {
                self.report_unreachable(node, handle, Reason::Host);
                self.drop_at(Place::Radio, node, handle, DropReason::RetryLimit);
            }
        }
        self.drive_agent(node);
    }

    fn aodv_link_failed(&mut self, node: u32, handle: Handle, neighbour: Ipv4Addr) {
        let now = self.now;
        let packet = self.packets.get(handle);
        let carried = match &packet.body {
            Body::Aodv(message) => {
                let carried = Carried::message(message);
                self.drop_at(Place::Radio, node, handle, DropReason::RetryLimit);
                carried
            }
            // OLSR and DSR are not heard by who runs AODV.
            Body::Tcp(_)
            | Body::Tpa { .. }
            | Body::Udp { .. }
            | Body::Foreign(_)
            | Body::Icmp(_)
            | Body::Ncn(_)
            | Body::Arp(_)
            | Body::Olsr(_)
            | Body::Dsr { .. } => Carried::Data {
                packet: handle,
                destination: packet.ip.dst,
                source: packet.ip.src,
                travelled: packet.ip.ttl - handle.ttl,
            },
        };
        if let Some(Routing::Aodv(aodv)) = self.routing(node) {
            aodv.handle_signal(now, aodv::Signal::LinkFailed { neighbour, carried });
        }
    }

    /// A routing agent's wake-up is due.
    pub(crate) fn wake_agent(&mut self, node: u32) {
        let now = self.now;
        let Some(agent) = &mut self.nodes[node as usize].agent else { return };
        if agent.alarm.rings(now) {
            agent.machine.handle_timeout(now);
            self.drive_agent(node);
        }
    }

    /// Drains a routing agent: messages, packets released and dropped.
    pub(crate) fn drive_agent(&mut self, node: u32) {
        let now = self.now;
        loop {
            let Some(agent) = &mut self.nodes[node as usize].agent else { return };
            match &mut agent.machine {
                Routing::Aodv(aodv) => {
                    if let Some(transmit) = aodv.poll_transmit(now) {
                        self.send_aodv(node, transmit);
                    } else if let Some(event) = aodv.poll_event() {
                        self.handle_aodv_event(node, event);
                    } else {
                        break;
                    }
                }
                Routing::Dsr(dsr) => {
                    if let Some(transmit) = dsr.poll_transmit(now) {
                        self.send_dsr(node, transmit);
                    } else if let Some(event) = dsr.poll_event() {
                        self.handle_dsr_event(node, event);
                    } else {
                        break;
                    }
                }
                Routing::Olsr(olsr) => {
                    if let Some(transmit) = olsr.poll_transmit(now) {
                        self.send_olsr(node, transmit);
                    } else if let Some(event) = olsr.poll_event() {
                        if let olsr::Event::RouteLost { destination } = event {
                            self.note_broken_route(node, destination);
                        }
                    } else {
                        break;
                    }
                }
            }
        }
        if let Some(agent) = &mut self.nodes[node as usize].agent {
            let wanted = agent.machine.next_wake();
            agent.alarm.set(now, wanted, &mut self.scheduler, Event::Routing { node });
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
            let packet = self.packets.view(handle);
            self.tracer.note(self.now, NodeId(node), TraceEvent::Dropped { packet, reason, place });
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
        let next_hop = match self.routing(node) {
            Some(Routing::Aodv(_)) => return self.route_by_aodv(node, handle, origin),
            Some(Routing::Dsr(_)) => return self.route_by_dsr(node, handle),
            Some(Routing::Olsr(olsr)) => olsr.route(destination).map(|route| route.next_hop),
            None => {
                let routes = self.routes.as_ref();
                let next_hop = NodeId::from_ipv4(destination)
                    .and_then(|to| routes.and_then(|routes| routes.next_hop(NodeId(node), to)));
                next_hop.map(NodeId::ipv4)
            }
        };
        match next_hop {
            Some(next_hop) => self.send_to(node, handle, next_hop, Class::Data),
            None => {
                if self.routing(node).is_none() {
                    self.report_unreachable(node, handle, Reason::Network);
                }
                self.drop_packet(node, handle, DropReason::NoRoute);
            }
        }
    }

    /// AODV may keep the packet until it has found a route.
    fn route_by_aodv(&mut self, node: u32, handle: Handle, origin: Origin) {
        let destination = self.packets.get(handle).ip.dst;
        let now = self.now;
        let Some(Routing::Aodv(aodv)) = self.routing(node) else { return };
        match aodv.route(now, destination, origin, handle) {
            Decision::Forward { next_hop } => self.send_to(node, handle, next_hop, Class::Data),
            Decision::Taken => {}
            Decision::Dropped { reason } => self.drop_packet(node, handle, DropReason::Routing(reason)),
        }
        self.drive_agent(node);
    }

    pub(crate) fn routing(&mut self, node: u32) -> Option<&mut Routing> {
        self.nodes[node as usize].agent.as_deref_mut().map(|agent| &mut agent.machine)
    }

    /// Hands a packet to the interface that leads to `next_hop`: a wired link if there is one, else the radio.
    pub(crate) fn send_to(&mut self, node: u32, handle: Handle, next_hop: Ipv4Addr, class: Class) {
        let neighbour = NodeId::from_ipv4(next_hop);
        if T::ENABLED {
            let packet = self.packets.view(handle);
            self.tracer.note(self.now, NodeId(node), TraceEvent::Routed { packet, next_hop: neighbour });
        }
        let state = &self.nodes[node as usize];
        let wire = state.wires.iter().find(|(other, _)| Some(*other) == neighbour).map(|&(_, end)| end);
        match (wire, &state.radio) {
            (Some(end), _) => self.send_over_wire(end, handle, class),
            (None, Some(_)) => {
                let to = neighbour.map_or(MacAddr::BROADCAST, MacAddr::of_node);
                if let Some(queued) = self.admit_down(node, Queued { handle, to, class }, next_hop) {
                    self.send_over_radio(node, queued);
                }
            }
            (None, None) => self.drop_packet(node, handle, DropReason::NoRoute),
        }
    }

    /// A routing message arrived. What another protocol says goes unheard.
    fn receive_routing(&mut self, node: u32, handle: Handle) {
        let (now, packet) = (self.now, self.packets.get(handle));
        let (from, to) = (packet.ip.src, packet.ip.dst);
        let machine = self.nodes[node as usize].agent.as_deref_mut().map(|agent| &mut agent.machine);
        match (machine, &packet.body) {
            (Some(Routing::Aodv(aodv)), Body::Aodv(message)) => {
                let received = aodv::Received { message: message.clone(), from, to, ttl: handle.ttl };
                aodv.handle_packet(now, LinkId::ONLY, received);
            }
            (Some(Routing::Olsr(olsr)), Body::Olsr(packet)) => {
                let received = olsr::Received { packet: Arc::clone(packet), from };
                olsr.handle_packet(now, LinkId::ONLY, received);
            }
            _ => {}
        }
        self.packets.release(handle);
        self.drive_agent(node);
    }

    fn send_aodv(&mut self, node: u32, transmit: aodv::Transmit) {
        let Some(Routing::Aodv(aodv)) = self.routing(node) else { return };
        let len = aodv.config().encapsulation.packet_len(&transmit.message);
        let ip = Header { ttl: transmit.ttl, ..header(transmit.source, transmit.destination, Protocol::Udp) };
        self.send_routing(node, ip, Body::Aodv(transmit.message), len, transmit.next_hop);
    }

    fn send_olsr(&mut self, node: u32, transmit: olsr::Transmit) {
        let everybody = Ipv4Addr::BROADCAST;
        let ip = Header { ttl: 1, ..header(transmit.source, everybody, Protocol::Udp) };
        let len = HEADER_LEN + udp::HEADER_LEN + transmit.packet.wire_len();
        self.send_routing(node, ip, Body::Olsr(Arc::new(transmit.packet)), len, everybody);
    }

    pub(crate) fn send_routing(&mut self, node: u32, ip: Header, body: Body, len: usize, next_hop: Ipv4Addr) {
        let len_bytes = len as u32 + self.extra_header_bytes;
        let packet = Packet { ip, body, len_bytes, account: Account::Control, made: self.now, serial: 0 };
        let handle = self.packets.insert(packet);
        self.nodes[node as usize].routing_packets += 1;
        self.nodes[node as usize].routing_bytes += u64::from(len_bytes);
        self.send_to(node, handle, next_hop, Class::Routing);
    }

    fn handle_aodv_event(&mut self, node: u32, event: aodv::Event<Handle>) {
        match event {
            aodv::Event::Release { packet, next_hop } => self.send_to(node, packet, next_hop, Class::Data),
            aodv::Event::Drop { packet, reason } => {
                let ip = self.packets.get(packet).ip;
                // RFC 3561 §6.3: whoever sent what nobody could be found for is told.
                if reason == RoutingDrop::DiscoveryFailed && ip.src == NodeId(node).ipv4() {
                    self.note_broken_route(node, ip.dst);
                }
                self.drop_packet(node, packet, DropReason::Routing(reason));
            }
            aodv::Event::PurgeQueue { next_hop } => {
                let to = NodeId::from_ipv4(next_hop).map_or(MacAddr::BROADCAST, MacAddr::of_node);
                for handle in self.purge_queue(node, to) {
                    self.drop_at(Place::Radio, node, handle, DropReason::Routing(RoutingDrop::LinkFailure));
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
            DropReason::Early => &mut self.early,
            DropReason::Neighborhood => &mut self.neighborhood,
            DropReason::RetryLimit | DropReason::Routing(RoutingDrop::LinkFailure) => &mut self.retry_limit,
            DropReason::Unresolved => &mut self.unresolved,
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
