//! Networks of DSR machines, with promiscuous reception by every neighbour.

use crate::dsr::*;
use crate::tests::{network, node_address};
use hopline_core::{LinkId, NodeId, Purpose, RandomStream, StateMachine};
use hopline_wire::dsr::{Addresses, DsrOption};
use hopline_wire::ipv4::Protocol;

const TTL: u8 = 32;

pub(super) type Network = network::Network<Dsr<u32>>;

impl Network {
    pub(super) fn new(nodes: u32, config: Config) -> Self {
        // Without jitter, tests can predict the times of requests.
        let config = Config { originated_jitter: hopline_core::Duration::ZERO, ..config };
        Self::new_network(
            (0..nodes).map(|i| {
                Dsr::new(config, node_address(i), RandomStream::new(1, 1, NodeId(i), Purpose::Routing))
            }),
        )
    }

    /// Node 0 – node 1 – … – node `nodes` − 1.
    pub(super) fn chain(nodes: u32, config: Config) -> Self {
        Self::new(nodes, config).in_a_chain()
    }

    pub(super) fn send(&mut self, source: u32, destination: u32, id: u32) {
        self.nodes[source as usize].send(self.now, node_address(destination), TTL, Protocol::Udp, id);
        self.process_outputs(source);
    }

    /// Returns the path that `node` knows to `destination`.
    pub(super) fn route(&self, node: u32, destination: u32) -> Option<Addresses> {
        self.nodes[node as usize]
            .routes(self.now)
            .filter_map(|path| {
                path.iter().position(|a| *a == node_address(destination)).map(|at| &path[..=at])
            })
            .min_by_key(|path| path.len())
            .map(Addresses::from_slice)
    }

    /// Returns the number of hops over which packet `id` arrived.
    pub(super) fn hops(&self, id: u32) -> Option<u8> {
        self.delivered.iter().find(|(_, packet, _)| *packet == id).map(|(_, _, hops)| *hops)
    }

    /// Returns the number of packets sent with such an option, over all hops.
    pub(super) fn count(&self, what: fn(&DsrOption) -> bool) -> usize {
        self.sent.iter().filter(|(_, _, sent)| sent.packet.header.options.iter().any(what)).count()
    }
}

impl network::Agent for Dsr<u32> {
    type Arrival = Received<u32>;

    fn handle_arrival(network: &mut Network, node: u32, received: Received<u32>) {
        network.nodes[node as usize].handle_packet(network.now, LinkId::ONLY, received);
    }

    fn transmit(network: &mut Network, node: u32, transmit: Transmit<u32>) {
        let Transmit { packet, next_hop } = transmit;
        let mut reached = next_hop.is_broadcast();
        for other in network.receivers_of(node) {
            let ours = next_hop == node_address(other);
            reached |= ours;
            let to =
                if ours || next_hop.is_broadcast() { Receiver::ThisNode } else { Receiver::Other(next_hop) };
            let carried = packet.payload.filter(|_| ours);
            let packet = Packet { payload: carried, ..packet.clone() };
            network.deliver_later(other, Received { packet, from: node_address(node), to });
        }
        if !reached {
            network.signal(node, Signal::LinkFailed { neighbour: next_hop, packet });
        }
    }

    fn handle_event(network: &mut Network, node: u32, event: Event<u32>) {
        match event {
            Event::Deliver { packet, ttl } => network.delivered.push((network.now, packet, TTL - ttl + 1)),
            Event::Drop { packet, reason } => network.dropped.push((packet, node, reason)),
            Event::RouteFound { destination, hops } => network.found.push((node, destination, hops)),
            Event::RouteLost { destination } => network.lost.push((node, destination)),
            Event::PurgeQueue { .. } => {}
        }
    }
}
