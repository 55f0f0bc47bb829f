//! Networks of AODV machines, and data packets that follow their routes.

use crate::aodv::*;
use crate::tests::{network, node_address};
use hopline_core::{Instant, LinkId, NodeId, Purpose, RandomStream, StateMachine};
use hopline_wire::aodv::Message;
use std::net::Ipv4Addr;

const TTL: u8 = 32;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Packet {
    pub(super) id: u32,
    pub(super) source: u32,
    pub(super) destination: u32,
    hops: u8,
}

pub(super) enum Arrival {
    Message(Received),
    Data { packet: Packet, previous_hop: Ipv4Addr },
}

pub(super) type Network = network::Network<Aodv<Packet>>;

impl Network {
    pub(super) fn new(nodes: u32, config: Config) -> Self {
        // Without jitter, tests can predict the times of requests.
        let config = Config { originated_jitter: hopline_core::Duration::ZERO, ..config };
        Self::new_network((0..nodes).map(|i| {
            Aodv::new(config, node_address(i), RandomStream::new(1, 1, NodeId(i), Purpose::Routing))
        }))
    }

    /// Node 0 – node 1 – … – node `nodes` − 1.
    pub(super) fn chain(nodes: u32, config: Config) -> Self {
        Self::new(nodes, config).in_a_chain()
    }

    pub(super) fn send(&mut self, source: u32, destination: u32, id: u32) {
        let packet = Packet { id, source, destination, hops: 0 };
        self.decide(source, Origin::Local, packet);
    }

    fn decide(&mut self, node: u32, origin: Origin, packet: Packet) {
        match self.nodes[node as usize].route(self.now, node_address(packet.destination), origin, packet) {
            Decision::Forward { next_hop } => self.transmit_data(node, packet, next_hop),
            Decision::Accepted => {}
            Decision::Dropped { reason } => self.dropped.push((packet.id, node, reason)),
        }
        self.process_outputs(node);
    }

    fn transmit_data(&mut self, node: u32, mut packet: Packet, next_hop: Ipv4Addr) {
        let other = NodeId::from_ipv4(next_hop).unwrap().0;
        if self.reaches(node, other) {
            packet.hops += 1;
            self.deliver_later(other, Arrival::Data { packet, previous_hop: node_address(node) });
        } else {
            let (destination, source) = (node_address(packet.destination), node_address(packet.source));
            let carried = FailedContent::Data { packet, destination, source, travelled: packet.hops };
            self.signal(node, Signal::LinkFailed { neighbour: next_hop, content: carried });
        }
    }

    /// The valid next hop of `node` towards `destination`.
    pub(super) fn next_hop(&self, node: u32, destination: u32) -> Option<u32> {
        let routes = self.nodes[node as usize].routes(self.now);
        let mut to =
            routes.filter(|r| r.destination == node_address(destination) && r.state == RouteState::Valid);
        to.next().map(|route| NodeId::from_ipv4(route.next_hop).unwrap().0)
    }

    /// Follows the valid routes from `from` towards `to` as far as they lead.
    pub(super) fn path(&self, from: u32, to: u32) -> Vec<u32> {
        let mut path = vec![from];
        let mut at = from;
        while let Some(next) = self.next_hop(at, to).filter(|_| at != to) {
            assert!(
                !path.contains(&next),
                "a loop towards {to} at {}: {path:?} and back to {next}",
                self.now
            );
            path.push(next);
            at = next;
        }
        path
    }

    /// Panics if next hops form a loop towards any destination.
    pub(super) fn assert_loop_free(&self) {
        let nodes = self.nodes.len() as u32;
        for to in 0..nodes {
            for from in 0..nodes {
                self.path(from, to);
            }
        }
    }

    /// Returns the requests sent so far: time, sender, time to live.
    pub(super) fn requests(&self) -> Vec<(Instant, u32, u8)> {
        let requests = self.sent.iter().filter(|(.., sent)| matches!(sent.message, Message::Rreq(_)));
        requests.map(|(at, node, sent)| (*at, *node, sent.ttl)).collect()
    }

    /// Returns the senders of the messages for which `is` holds.
    pub(super) fn senders(&self, is: impl Fn(&Message) -> bool) -> Vec<u32> {
        self.sent.iter().filter(|(.., sent)| is(&sent.message)).map(|(_, node, _)| *node).collect()
    }
}

impl network::Agent for Aodv<Packet> {
    type Arrival = Arrival;

    fn handle_arrival(network: &mut Network, node: u32, arrival: Arrival) {
        match arrival {
            Arrival::Message(received) => {
                network.nodes[node as usize].handle_packet(network.now, LinkId::ONLY, received);
            }
            Arrival::Data { packet, .. } if packet.destination == node => {
                network.delivered.push((network.now, packet.id, packet.hops));
            }
            Arrival::Data { packet, .. } if packet.hops >= TTL => {
                panic!("packet {packet:?} walks in circles")
            }
            Arrival::Data { packet, previous_hop } => {
                network.decide(
                    node,
                    Origin::Forwarded { previous_hop, source: node_address(packet.source) },
                    packet,
                );
            }
        }
    }

    fn transmit(network: &mut Network, node: u32, transmit: Transmit) {
        let Transmit { message, next_hop, ttl, .. } = transmit;
        let received = |message: &Message| {
            Arrival::Message(Received {
                message: message.clone(),
                from: node_address(node),
                to: next_hop,
                ttl,
            })
        };
        if next_hop.is_broadcast() {
            for other in network.receivers_of(node) {
                network.deliver_later(other, received(&message));
            }
            return;
        }
        let other = NodeId::from_ipv4(next_hop).unwrap().0;
        if network.reaches(node, other) {
            network.deliver_later(other, received(&message));
        } else {
            let carried = FailedContent::of_message(&message);
            network.signal(node, Signal::LinkFailed { neighbour: next_hop, content: carried });
        }
    }

    fn handle_event(network: &mut Network, node: u32, event: Event<Packet>) {
        match event {
            Event::Release { packet, next_hop } => network.transmit_data(node, packet, next_hop),
            Event::Drop { packet, reason } => network.dropped.push((packet.id, node, reason)),
            Event::RouteFound { destination, hops } => network.found.push((node, destination, hops)),
            Event::RouteLost { destination } => network.lost.push((node, destination)),
            Event::PurgeQueue { .. } => {}
        }
    }
}
