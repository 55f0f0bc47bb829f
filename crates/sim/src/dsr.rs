//! DSR at a node: packets within packets, and what a radio overhears.
//!
//! A DSR header changes at every hop and a packet never does, so each hop makes a new packet around the one that is
//! carried.

use crate::node::Routing;
use crate::packet::{Account, Body, Carried, Handle, Mark};
use crate::stack::header;
use crate::trace::{DropReason, Place, TraceEvent, Tracer};
use crate::world::World;
use hopline_core::{LinkId, Machine, NodeId};
use hopline_queue::drop_tail::Class;
use hopline_routing::dsr::{Dsr, Event, Packet, Received, Receiver, Signal, Transmit};
use hopline_wire::dot11::MacAddr;
use hopline_wire::dsr::PROTOCOL;
use hopline_wire::ipv4::{HEADER_LEN, Header};
use std::net::Ipv4Addr;
use std::sync::Arc;

impl<T: Tracer> World<T> {
    /// Hands the agent a packet that `node` made. It sends it, or keeps it until it knows a route.
    pub(crate) fn route_by_dsr(&mut self, node: u32, handle: Handle) {
        let (now, ip) = (self.now, self.packets.get(handle).ip);
        let Some(dsr) = self.dsr(node) else { return };
        dsr.send(now, ip.dst, handle.ttl, ip.protocol, handle);
        self.drive_agent(node);
    }

    /// A DSR packet for `node`, or to be passed on, arrived from its neighbour `from`. The caller's hold on it ends.
    pub(crate) fn receive_dsr(&mut self, node: u32, handle: Handle, from: NodeId) {
        let now = self.now;
        let packet = self.unpack(handle);
        self.packets.release(handle);
        match (packet, self.dsr(node)) {
            (Some(packet), Some(dsr)) => {
                let received = Received { packet, from: from.ipv4(), to: Receiver::Us };
                dsr.handle_packet(now, LinkId::ONLY, received);
                self.drive_agent(node);
            }
            // Who does not speak DSR cannot read what it carries.
            (Some(Packet { carried: Some(inner), .. }), None) => {
                self.drop_packet(node, inner, DropReason::NoRoute);
            }
            _ => {}
        }
    }

    /// The MAC of `node` gave up on a packet for `neighbour`. The caller's hold on it ends.
    pub(crate) fn dsr_link_failed(&mut self, node: u32, handle: Handle, neighbour: Ipv4Addr) {
        let now = self.now;
        let packet = self.unpack(handle);
        if self.packets.get(handle).carried().is_some() {
            self.packets.release(handle); // the agent decides on what it carried
        } else {
            self.drop_at(Place::Radio, node, handle, DropReason::RetryLimit);
        }
        if let (Some(packet), Some(dsr)) = (packet, self.dsr(node)) {
            dsr.handle_signal(now, Signal::LinkFailed { neighbour, packet });
        }
    }

    /// Sends what an agent wants sent.
    pub(crate) fn send_dsr(&mut self, node: u32, transmit: Transmit<Handle>) {
        let Transmit { packet, next_hop } = transmit;
        let Packet { source, destination, ttl, header: options, carried, flow } = packet;
        let ip = header(source, destination, PROTOCOL);
        let Some(inner) = carried else {
            let len = HEADER_LEN + options.wire_len();
            let body = Body::Dsr { header: options, carried: None, flow };
            return self.send_routing(node, Header { ttl, ..ip }, body, len, next_hop);
        };
        let within = self.packets.get(inner);
        let packet = crate::packet::Packet {
            // Of what the packet carries: so its hops can be counted from any copy.
            ip: Header { ttl: within.ip.ttl, ecn: self.packets.ecn(inner), ..ip },
            len_bytes: within.len_bytes + options.wire_len() as u32,
            body: Body::Dsr { header: options, carried: Some(Carried(inner)), flow },
            account: Account::Control,
            made: within.made,
            serial: 0,
        };
        let handle = Handle { ttl, ..self.packets.insert(packet) };
        self.send_to(node, handle, next_hop, Class::Data);
    }

    pub(crate) fn handle_dsr_event(&mut self, node: u32, event: Event<Handle>) {
        match event {
            Event::Deliver { packet, ttl } => {
                let handle = Handle { ttl, ..packet };
                if T::ENABLED {
                    let view = self.packets.view(handle);
                    self.tracer.note(self.now, NodeId(node), TraceEvent::Delivered(view));
                }
                self.deliver(node, handle);
                self.packets.release(handle);
            }
            Event::Drop { packet, reason } => self.drop_packet(node, packet, DropReason::Routing(reason)),
            Event::PurgeQueue { next_hop } => {
                let to = NodeId::from_ipv4(next_hop).map_or(MacAddr::BROADCAST, MacAddr::of_node);
                for handle in self.purge_queue(node, to) {
                    self.dsr_link_failed(node, handle, next_hop);
                }
            }
            Event::RouteLost { destination } => self.note_broken_route(node, destination),
            // Routes return in other ways too; whoever waits for one asks the agent.
            Event::RouteFound { .. } => {}
        }
    }

    /// The radio of `node`, which listens to its neighbours, decoded a packet from one of them to another.
    pub(crate) fn overhear(&mut self, node: u32, handle: Handle, from: MacAddr, to: MacAddr) {
        let now = self.now;
        let (Some(from), Some(to)) = (from.node(), to.node()) else { return };
        if !self.filters.is_empty() && self.filters.covers(now, from, NodeId(node)) {
            return;
        }
        self.hear_neighbor(node, handle, from);
        let outer = self.packets.get(handle);
        let Body::Dsr { header, flow, .. } = &outer.body else { return };
        let packet = Packet {
            source: outer.ip.src,
            destination: outer.ip.dst,
            ttl: handle.ttl,
            header: Arc::clone(header),
            carried: None,
            flow: *flow,
        };
        let received = Received { packet, from: from.ipv4(), to: Receiver::Other(to.ipv4()) };
        if let Some(dsr) = self.dsr(node) {
            dsr.handle_packet(now, LinkId::ONLY, received);
            self.drive_agent(node);
        }
    }

    /// The DSR packet behind `handle`, with a hold on what it carries; `None` if it is of another kind.
    fn unpack(&mut self, handle: Handle) -> Option<Packet<Handle>> {
        let outer = self.packets.get(handle);
        let Body::Dsr { header, carried, flow } = &outer.body else { return None };
        let packet = Packet {
            source: outer.ip.src,
            destination: outer.ip.dst,
            ttl: handle.ttl,
            header: Arc::clone(header),
            flow: *flow,
            // What was marked goes on in another packet.
            carried: carried.map(|Carried(inner)| match handle.mark {
                Mark::None => inner,
                Mark::Congestion => Handle { mark: Mark::Congestion, ..inner },
            }),
        };
        if let Some(inner) = packet.carried {
            self.packets.retain(inner);
        }
        Some(packet)
    }

    fn dsr(&mut self, node: u32) -> Option<&mut Dsr<Handle>> {
        match self.routing(node) {
            Some(Routing::Dsr(dsr)) => Some(dsr),
            _ => None,
        }
    }
}
