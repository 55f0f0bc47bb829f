//! The path of a packet through a node: from an interface or an endpoint past what stands in the path, to an
//! endpoint or to the next hop.

use crate::air::{Air, HandDownResult, StationEvent};
use crate::engine::Engine;
use crate::fingerprint::ObservedEvent;
use crate::flow::RouteKnowledge;
use crate::forwarding::NextHop;
use crate::ids::{Interface, Port, StationId};
use crate::middlebox::{PacketDirection, PassingPacket, PathVerdict};
use crate::packet::{Body, Handle, Mark, Packet, PacketAccount};
use crate::queue_access::{QueueReport, QueuedPacket};
use crate::trace::{DropLocation, DropReason, TraceEvent, Tracer};
use crate::wired::WireArrival;
use hopline_core::NodeId;
use hopline_queue::drop_tail::Class;
use hopline_routing::router::{Origin, Router};
use hopline_wire::dot11::MacAddr;
use hopline_wire::handoff::PacketId;
use hopline_wire::icmp::UnreachableCode;
use std::net::Ipv4Addr;

impl<T: Tracer> Engine<T> {
    /// Sends a packet that `node` itself made.
    pub(crate) fn originate(&mut self, node: NodeId, mut packet: Packet) {
        packet.ip.id = self.nodes[node.index()].next_id();
        let destination = packet.ip.dst;
        if let Some(flow) = packet.account.flow().filter(|&flow| self.flows.is_source(flow, node))
            && let Some(agent) = self.nodes[node.index()].agent.as_deref()
            && let Some(peer) = self.forwarding.destination(node, destination)
        {
            let known = agent.agent.has_route(self.kernel.now, peer);
            let route = if known { RouteKnowledge::Known } else { RouteKnowledge::None };
            self.flows.record_route_state(self.kernel.now, flow, route);
        }
        let handle = self.kernel.packets.insert(packet);
        self.kernel.trace(node, |packets| TraceEvent::Originated(packets.view(handle)));
        self.route(node, handle, Origin::Local);
    }

    /// Handles a packet that comes in through a tap, as one that the node itself made.
    pub(crate) fn receive_external(&mut self, node: NodeId, port: Port, packet: Packet) {
        let handle = self.kernel.packets.insert(packet);
        self.kernel.trace(node, |packets| TraceEvent::Originated(packets.view(handle)));
        self.ingress(node, port, handle, node);
    }

    /// Drains a station: what comes up is taken at once.
    pub(crate) fn process_station(&mut self, station: StationId) {
        loop {
            let (air, kernel) = self.air();
            let Some(upcall) = air.drain(kernel, station) else { return };
            self.handle_station_event(station, upcall);
        }
    }

    /// Handles an event of a station for its node.
    #[inline(never)] // Most receptions come to nothing here: the code of all layers stays out of their way.
    pub(crate) fn handle_station_event(&mut self, station: StationId, upcall: StationEvent) {
        let (air, _) = self.air();
        let (node, port) = (air.node(station), radio_port(air, station));
        match upcall {
            StationEvent::Arrived { handle, from } => {
                self.overhear_packet(node, port, handle, from);
                self.notify_agent_of_neighbour(node, from);
                self.ingress(node, port, handle, from);
            }
            StationEvent::Overheard { handle, from, to } => {
                self.overhear_packet(node, port, handle, from);
                self.overhear(node, handle, from, to);
            }
            StationEvent::Failed { handle, to } => self.link_failed(node, handle, to),
        }
    }

    /// Handles the result of handing a packet to a station.
    pub(crate) fn handle_send_result(&mut self, station: StationId, sent: HandDownResult) {
        match sent {
            HandDownResult::Waiting => {}
            HandDownResult::Queued => self.process_station(station),
            HandDownResult::Failed { packet, held } => {
                let (air, _) = self.air();
                let node = air.node(station);
                for QueuedPacket { handle, to, .. } in held.into_iter().chain([packet]) {
                    let (air, _) = self.air();
                    let to = air.node_of(to);
                    self.link_failed(node, handle, to);
                }
            }
        }
    }

    /// Handles a packet that came over a wire.
    pub(crate) fn receive_from_wire(&mut self, arrival: WireArrival) {
        let WireArrival { handle, from, to, at } = arrival;
        let is_end = |interface: &Interface| matches!(interface, Interface::Wire { end, .. } if *end == at);
        let port = self.nodes[to.index()].port(is_end).expect("each end of a link is an interface");
        self.ingress(to, port, handle, from);
    }

    /// Hands a packet of a class to a neighbour, or to all that the radios of `node` reach. The caller's hold
    /// on it passes on.
    pub(crate) fn send_to(&mut self, node: NodeId, handle: Handle, next_hop: Ipv4Addr, class: Class) {
        self.send_past_middleboxes(node, self.nodes[node.index()].middleboxes.len(), handle, next_hop, class);
    }

    /// Does the same, past the middleboxes below number `seats` alone.
    pub(crate) fn send_past_middleboxes(
        &mut self,
        node: NodeId,
        seats: usize,
        handle: Handle,
        next_hop: Ipv4Addr,
        class: Class,
    ) {
        let neighbour = if next_hop.is_broadcast() { None } else { self.forwarding.owner(next_hop) };
        self.kernel
            .trace(node, |packets| TraceEvent::Routed { packet: packets.view(handle), next_hop: neighbour });
        if next_hop.is_broadcast() {
            return self.broadcast(node, seats, handle, class);
        }
        match neighbour.and_then(|neighbour| self.interface_towards(node, neighbour)) {
            Some((port, to)) => self.egress(node, seats, port, QueuedPacket { handle, to, class }, next_hop),
            None => self.drop_packet(node, handle, DropReason::NoNeighbour),
        }
    }

    /// Drops a packet at the network layer. The caller's hold on it ends.
    pub(crate) fn drop_packet(&mut self, node: NodeId, handle: Handle, reason: DropReason) {
        self.kernel.drop_at(DropLocation::Network, node, handle, reason);
    }

    /// Releases the network layer's hold on a packet. If that was the last copy, and it has not arrived, it
    /// is dropped.
    pub(crate) fn release(&mut self, node: NodeId, handle: Handle, reason: DropReason) {
        self.kernel.release(DropLocation::Network, node, handle, reason);
    }

    /// Handles a packet that has come to the node that it is for, or to one that passes it on. The caller's
    /// hold on it passes on.
    pub(crate) fn handle_packet(&mut self, node: NodeId, handle: Handle, origin: Origin) {
        if self.forwarding.owner(self.kernel.packets.get(handle).ip.dst) == Some(node) {
            self.deliver(node, handle);
            self.kernel.packets.release(handle);
        } else {
            self.forward(node, handle, origin);
        }
    }

    /// Hands a packet to the agent, the table or the gateway that knows the route.
    pub(crate) fn route(&mut self, node: NodeId, handle: Handle, origin: Origin) {
        let address = self.kernel.packets.get(handle).ip.dst;
        match self.forwarding.next_hop(node, address) {
            NextHop::Neighbour(next_hop) => self.send_to(node, handle, next_hop.ipv4(), Class::Data),
            NextHop::Agent { destination } => self.query_agent(node, handle, destination, origin),
            NextHop::HomeAgent => {
                let (seats, to) = (self.nodes[node.index()].middleboxes.len(), MacAddr::default());
                self.egress(
                    node,
                    seats,
                    Port::TUNNEL,
                    QueuedPacket { handle, to, class: Class::Data },
                    address,
                );
            }
            NextHop::Group => self.multicast(node, handle),
            NextHop::None => {
                self.report_unreachable(node, handle, UnreachableCode::Network);
                self.drop_packet(node, handle, DropReason::NoRoute);
            }
        }
    }

    /// Resumes a packet that middlebox number `seat` had taken.
    pub(crate) fn resume_packet(
        &mut self,
        node: NodeId,
        seat: usize,
        handle: Handle,
        onward: PacketDirection,
    ) {
        match onward {
            PacketDirection::In { at, from } => self.ingress_from(node, seat + 1, at, handle, from),
            PacketDirection::Out { at, to, class, next_hop } => {
                self.egress(node, seat, at, QueuedPacket { handle, to, class }, next_hop);
            }
        }
    }

    /// Passes a packet inward through the middleboxes.
    fn ingress(&mut self, node: NodeId, at: Port, handle: Handle, from: NodeId) {
        self.ingress_from(node, 0, at, handle, from);
    }

    /// Does the same from middlebox number `first` on.
    fn ingress_from(&mut self, node: NodeId, first: usize, at: Port, mut handle: Handle, from: NodeId) {
        for seat in first..self.nodes[node.index()].middleboxes.len() {
            let onward = PacketDirection::In { at, from };
            let passing = PassingPacket { handle, onward, view: self.kernel.packets.view(handle) };
            let machine = &mut self.nodes[node.index()].middleboxes[seat].middlebox;
            let passage = machine.as_middlebox().handle_ingress(self.kernel.now, passing);
            let Some(passed) = self.apply_verdict(node, seat, handle, passage) else { return };
            handle = passed;
        }
        match at.interface {
            Interface::Radio(_) | Interface::Wire { .. } => self.receive(node, at, handle, from),
            // As one that the node itself made.
            Interface::Tap | Interface::Tunnel => self.route(node, handle, Origin::Local),
        }
    }

    /// Handles a packet that has come in from a neighbour.
    fn receive(&mut self, node: NodeId, port: Port, handle: Handle, from: NodeId) {
        let packet = self.kernel.packets.get(handle);
        if let Body::Ethernet(_) = packet.body {
            return self.receive_frame(node, port, handle, from);
        }
        if self.nodes[node.index()].mobility_role().is_some()
            && self.is_from_other_cell(node, from, &packet.body)
        {
            return self.drop_packet(node, handle, DropReason::OtherCell);
        }
        let is_for_us =
            packet.account != PacketAccount::Control && self.forwarding.owner(packet.ip.dst) == Some(node);
        self.kernel.trace(node, |packets| match (packets.view(handle), is_for_us) {
            (view, true) => TraceEvent::Delivered(view),
            (view, false) => TraceEvent::Arrived(view),
        });
        let packet = self.kernel.packets.get(handle);
        match packet.body {
            Body::Routing { .. } => self.receive_routing(node, handle, from),
            // A node with Neighborhood RED has heard it already.
            Body::Ncn(_) => self.kernel.packets.release(handle),
            Body::Handoff(tagged) if matches!(port.interface, Interface::Radio(_)) => {
                let source = packet.ip.src;
                self.kernel.packets.release(handle);
                self.receive_handoff(node, source, &tagged, Some(from));
            }
            Body::Arp(message) => {
                self.kernel.packets.release(handle);
                if let Interface::Radio(station) = port.interface {
                    let (air, kernel) = self.air();
                    for queued in air.receive_arp(kernel, station, message).into_iter().flatten() {
                        let (air, kernel) = self.air();
                        let sent = air.send_through_link_layer(kernel, station, queued);
                        self.handle_send_result(station, sent);
                    }
                }
            }
            _ => {
                let origin = match port.interface {
                    Interface::Radio(_) => {
                        Origin::Forwarded { previous_hop: from.ipv4(), source: packet.ip.src }
                    }
                    // From beyond what an agent knows.
                    Interface::Wire { .. } | Interface::Tap | Interface::Tunnel => Origin::Local,
                };
                if is_for_us && self.nodes[node.index()].mobility_role().is_some() {
                    let received = PacketId { source: packet.ip.src, id: packet.ip.id };
                    self.record_received(node, from, received);
                }
                self.handle_packet(node, handle, origin);
            }
        }
    }

    fn forward(&mut self, node: NodeId, mut handle: Handle, origin: Origin) {
        if handle.ttl <= 1 {
            return self.drop_packet(node, handle, DropReason::Ttl);
        }
        handle.ttl -= 1;
        self.route(node, handle, origin);
    }

    /// Returns the interface of `node` that leads to a neighbour, and the neighbour's address there: a wire
    /// if there is one, else a radio; to a mobile host that is at home here, the tunnel.
    pub(crate) fn interface_towards(&self, node: NodeId, neighbour: NodeId) -> Option<(Port, MacAddr)> {
        let state = &self.nodes[node.index()];
        let leads = |interface: &Interface| matches!(interface, Interface::Wire { neighbour: n, .. } if *n == neighbour);
        if let Some(port) = state.port(leads) {
            return Some((port, MacAddr::of_node(neighbour)));
        }
        let by_radio = self.radio_towards(node, neighbour);
        let is_home = || self.forwarding.is_home_of(node, neighbour);
        by_radio.or_else(|| is_home().then_some((Port::TUNNEL, MacAddr::default())))
    }

    /// Returns the radio of `node` that leads to a neighbour, and the neighbour's address there.
    pub(crate) fn radio_towards(&self, node: NodeId, neighbour: NodeId) -> Option<(Port, MacAddr)> {
        let air = self.air.as_ref()?;
        let (station, to) = air.station_towards(node, neighbour)?;
        Some((radio_port(air, station), to))
    }

    /// Sends a packet over every radio.
    fn broadcast(&mut self, node: NodeId, seats: usize, handle: Handle, class: Class) {
        let mut stations = match &self.air {
            Some(air) => air.stations(node).peekable(),
            None => return self.drop_packet(node, handle, DropReason::NoRoute),
        };
        if stations.peek().is_none() {
            return self.drop_packet(node, handle, DropReason::NoRoute);
        }
        while let Some(station) = stations.next() {
            if stations.peek().is_some() {
                self.kernel.packets.retain(handle);
            }
            let (air, _) = self.air();
            let port = radio_port(air, station);
            let queued = QueuedPacket { handle, to: MacAddr::BROADCAST, class };
            self.egress(node, seats, port, queued, Ipv4Addr::BROADCAST);
        }
    }

    /// Passes a packet outward through the middleboxes below number `seats`, and to the interface.
    pub(crate) fn egress(
        &mut self,
        node: NodeId,
        seats: usize,
        at: Port,
        mut queued: QueuedPacket,
        next_hop: Ipv4Addr,
    ) {
        for seat in (0..seats).rev() {
            let QueuedPacket { handle, to, class } = queued;
            let onward = PacketDirection::Out { at, to, class, next_hop };
            let passing = PassingPacket { handle, onward, view: self.kernel.packets.view(handle) };
            let machine = &mut self.nodes[node.index()].middleboxes[seat].middlebox;
            let passage = machine.as_middlebox().handle_egress(self.kernel.now, passing, next_hop);
            let Some(passed) = self.apply_verdict(node, seat, handle, passage) else { return };
            queued.handle = passed;
        }
        match at.interface {
            Interface::Radio(station) => {
                let (air, kernel) = self.air();
                let sent = air.send(kernel, station, queued);
                self.handle_send_result(station, sent);
            }
            Interface::Wire { end, .. } => {
                self.wires.send(&mut self.kernel, end, queued.handle, queued.class)
            }
            Interface::Tunnel => self.intercept(node, queued.handle),
            Interface::Tap => unreachable!("a tap leads to no neighbour"),
        }
    }

    /// Machines in the path below number `seats` see a packet that is not sent. The caller's hold on it ends.
    pub(crate) fn show_outgoing(
        &mut self,
        node: NodeId,
        seats: usize,
        mut handle: Handle,
        onward: PacketDirection,
    ) {
        for seat in (0..seats).rev() {
            let PacketDirection::Out { next_hop, .. } = onward else { break };
            let passing = PassingPacket { handle, onward, view: self.kernel.packets.view(handle) };
            let machine = &mut self.nodes[node.index()].middleboxes[seat].middlebox;
            let passage = machine.as_middlebox().handle_egress(self.kernel.now, passing, next_hop);
            let Some(passed) = self.apply_verdict(node, seat, handle, passage) else { return };
            handle = passed;
        }
        self.release(node, handle, DropReason::NoRoute);
    }

    /// Records that the MAC of `node` gave up on a packet for a neighbour, or for a group.
    fn link_failed(&mut self, node: NodeId, handle: Handle, to: Option<NodeId>) {
        let body = &self.kernel.packets.get(handle).body;
        let says_nothing = matches!(body, Body::Ncn(_) | Body::Arp(_) | Body::Ethernet(_));
        // Nothing is known of a group's routes by this, and a notice that is lost says nothing of them; nor does an address.
        // Frames have routes that are known outside.
        if let Some(neighbour) = to.filter(|_| !says_nothing) {
            if self.nodes[node.index()].agent.is_some() {
                self.notify_agent_of_link_failure(node, handle, neighbour.ipv4());
                return self.process_agent_outputs(node);
            }
            self.report_unreachable(node, handle, UnreachableCode::Host);
        }
        self.kernel.drop_at(DropLocation::Radio, node, handle, DropReason::RetryLimit);
    }

    /// Delivers a packet that has reached the node it is for. The caller's hold on it stays.
    pub(crate) fn deliver(&mut self, node: NodeId, handle: Handle) {
        let arrival = self.kernel.packets.record_arrival(handle);
        self.kernel.observe(ObservedEvent::Delivered, node, self.kernel.packets.len(handle));
        let packet = self.kernel.packets.get(handle);
        match (packet.account, &packet.body) {
            (PacketAccount::Flow(flow), _) => {
                if let Some(side) = self.flows.deliver(&mut self.kernel, flow, handle, arrival) {
                    self.process_endpoint(flow.0, side);
                }
            }
            (_, &Body::Icmp(report)) => self.receive_icmp(node, &report),
            (_, Body::External(_)) => self.egress_packet(node, handle),
            (_, Body::Tunnel(_)) => self.decapsulate(node, handle),
            (_, &Body::Handoff(tagged)) => {
                let source = packet.ip.src;
                self.receive_handoff(node, source, &tagged, None);
            }
            _ => {}
        }
    }

    /// Hands a packet of a neighbour to the middleboxes of `node`, as overheard.
    fn overhear_packet(&mut self, node: NodeId, at: Port, handle: Handle, from: NodeId) {
        if self.nodes[node.index()].middleboxes.is_empty() {
            return;
        }
        if let Body::Ncn(_) = self.kernel.packets.get(handle).body {
            self.on_notice_received(node, handle, from);
        }
        for seat in 0..self.nodes[node.index()].middleboxes.len() {
            let onward = PacketDirection::In { at, from };
            let passing = PassingPacket { handle, onward, view: self.kernel.packets.view(handle) };
            let machine = &mut self.nodes[node.index()].middleboxes[seat].middlebox;
            machine.as_middlebox().handle_overheard(self.kernel.now, passing, from);
            self.process_middlebox(node, seat);
        }
    }

    /// Applies a verdict. `None`: the packet goes no further now.
    fn apply_verdict(
        &mut self,
        node: NodeId,
        seat: usize,
        mut handle: Handle,
        passage: PathVerdict,
    ) -> Option<Handle> {
        let goes_on = !matches!(passage, PathVerdict::Held | PathVerdict::Dropped(_));
        match passage {
            PathVerdict::Pass => {}
            PathVerdict::Marked => {
                handle.mark = Mark::Congestion;
                self.kernel.apply_queue_report((DropLocation::Network, node), QueueReport::for_mark(handle));
            }
            PathVerdict::Rewritten(segment) => {
                handle = self.kernel.packets.rewrite(handle, Body::Segment(segment))
            }
            PathVerdict::Dropped(reason) => self.drop_packet(node, handle, reason),
            PathVerdict::Held => {}
        }
        self.process_middlebox(node, seat);
        goes_on.then_some(handle)
    }
}

fn radio_port(air: &Air, station: StationId) -> Port {
    Port { link: air.link(station), interface: Interface::Radio(station) }
}
