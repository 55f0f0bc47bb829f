//! Scripted test of one machine: inputs at given times, and the outputs.

use crate::dsr::config::{PathCache, RouteCache};
use crate::dsr::*;
pub(super) use crate::tests::{ms, node_address};
use hopline_core::{Duration, Instant, LinkId, NodeId, Purpose, RandomStream, StateMachine};
use hopline_wire::dsr::{
    Addresses, DsrOption, ErrorKind, FirstHop, Header, LastHop, RouteError, RouteReply, RouteRequest,
    SourceRoute,
};
use hopline_wire::ipv4::Protocol;
use std::net::Ipv4Addr;
use std::sync::Arc;

pub(super) const ME: Ipv4Addr = node_address(0);
pub(super) const ALL: Ipv4Addr = Ipv4Addr::BROADCAST;

pub(super) fn path(nodes: &[u32]) -> Addresses {
    nodes.iter().map(|&index| node_address(index)).collect()
}

/// RFC 4728 with another cache.
pub(super) fn with_cache(change: impl FnOnce(&mut PathCache)) -> Config {
    let mut cache = PathCache::RFC4728;
    change(&mut cache);
    Config { cache: RouteCache::Paths(cache), ..Config::rfc4728() }
}

/// Node 0 and its clock.
pub(super) struct TestNode {
    pub(super) dsr: Dsr<u32>,
    pub(super) now: Instant,
}

impl TestNode {
    /// Creates a node that sends its own requests without jitter, so that tests can predict the times.
    pub(super) fn new(config: Config) -> Self {
        Self::with_jitter(Config { originated_jitter: Duration::ZERO, ..config }, 0)
    }

    /// Makes a node with the jitter of `config`, and with the random numbers of node `number`.
    pub(super) fn with_jitter(config: Config, number: u32) -> Self {
        let dsr = Dsr::new(config, ME, RandomStream::new(1, 1, NodeId(number), Purpose::Routing));
        Self { dsr, now: Instant::from_secs(100) }
    }

    /// Advances the time; returns each transmission with its time.
    pub(super) fn advance(&mut self, time: Duration) -> Vec<(Instant, Transmit<u32>)> {
        let end = self.now + time;
        let mut sent = Vec::new();
        while let Some((due, _)) = self.dsr.poll_timeout().filter(|(due, _)| *due <= end) {
            self.now = self.now.max(due);
            self.dsr.handle_timeout(self.now);
            sent.extend(self.sent().into_iter().map(|transmit| (self.now, transmit)));
        }
        self.now = end;
        sent
    }

    /// Advances the time by any jitter; returns the transmissions.
    pub(super) fn advance_past_jitter(&mut self) -> Vec<Transmit<u32>> {
        let mut sent = self.sent();
        sent.extend(self.advance(ms(10)).into_iter().map(|(_, transmit)| transmit));
        sent
    }

    pub(super) fn sent(&mut self) -> Vec<Transmit<u32>> {
        core::iter::from_fn(|| self.dsr.poll_transmit(self.now)).collect()
    }

    pub(super) fn events(&mut self) -> Vec<Event<u32>> {
        core::iter::from_fn(|| self.dsr.poll_event()).collect()
    }

    /// Sends a packet of this node's own.
    pub(super) fn send(&mut self, destination: u32, packet: u32) -> Vec<Transmit<u32>> {
        self.dsr.send(self.now, node_address(destination), 64, Protocol::Tcp, packet);
        self.sent()
    }

    /// Delivers a packet of neighbour `from` to this node, or to all.
    pub(super) fn receive(&mut self, from: u32, packet: Packet<u32>) -> Vec<Transmit<u32>> {
        let received = Received { packet, from: node_address(from), to: Receiver::ThisNode };
        self.dsr.handle_packet(self.now, LinkId::ONLY, received);
        self.sent()
    }

    /// Lets this node overhear a packet of neighbour `from` to `to`.
    pub(super) fn overhear(&mut self, from: u32, to: u32, packet: Packet<u32>) -> Vec<Transmit<u32>> {
        let received = Received { packet, from: node_address(from), to: Receiver::Other(node_address(to)) };
        self.dsr.handle_packet(self.now, LinkId::ONLY, received);
        self.sent()
    }

    /// Reports a transmission of this node as failed.
    pub(super) fn fail_transmission(&mut self, transmit: Transmit<u32>) -> Vec<Transmit<u32>> {
        let Transmit { packet, next_hop } = transmit;
        self.dsr.handle_signal(self.now, Signal::LinkFailed { neighbour: next_hop, packet });
        self.sent()
    }

    /// Teaches a route from here over `nodes`, by a reply.
    pub(super) fn learn_route(&mut self, nodes: &[u32]) {
        let back: Vec<u32> = nodes[..nodes.len() - 1].iter().rev().copied().collect();
        let packet = reply(*nodes.last().unwrap(), &back, 0, 0, nodes);
        self.receive(nodes[0], packet);
        self.events();
    }

    pub(super) fn routes(&self) -> Vec<Addresses> {
        self.dsr.routes(self.now).map(Addresses::from_slice).collect()
    }

    pub(super) fn ignored(&self, reason: IgnoredReason) -> u64 {
        self.dsr.stats().ignored(reason)
    }
}

pub(super) fn source_route(salvage: u8, nodes: &[u32], left: u8) -> DsrOption {
    DsrOption::SourceRoute(SourceRoute {
        first: FirstHop::Ordinary,
        last: LastHop::Ordinary,
        salvage,
        segments_left: left,
        path: path(nodes),
    })
}

pub(super) fn packet(source: u32, destination: u32, options: &[DsrOption]) -> Packet<u32> {
    let header = Header { next: None, options: options.iter().cloned().collect() };
    Packet {
        source: node_address(source),
        destination: node_address(destination),
        ttl: 64,
        header: Arc::new(header),
        payload: None,
        flow: Flow::Announced,
    }
}

/// Returns a data packet with a source route over `nodes`, the last `left` of which it has not reached.
pub(super) fn data(source: u32, nodes: &[u32], left: u8, destination: u32, id: u32) -> Packet<u32> {
    with_data(packet(source, destination, &[source_route(0, nodes, left)]), id)
}

/// Returns the same packet with data.
pub(super) fn with_data(packet: Packet<u32>, id: u32) -> Packet<u32> {
    let header = Header { next: Some(Protocol::Tcp), ..(*packet.header).clone() };
    Packet { header: Arc::new(header), payload: Some(id), ..packet }
}

/// Returns a request of `initiator` with a record of `nodes`.
pub(super) fn request(initiator: u32, id: u16, target: u32, nodes: &[u32]) -> Packet<u32> {
    Packet { destination: ALL, ..packet(initiator, initiator, &[request_option(id, target, nodes)]) }
}

pub(super) fn request_option(id: u16, target: u32, nodes: &[u32]) -> DsrOption {
    DsrOption::Request(RouteRequest { id, target: node_address(target), path: path(nodes) })
}

pub(super) fn reply_option(nodes: &[u32]) -> DsrOption {
    DsrOption::Reply(RouteReply { last: LastHop::Ordinary, path: path(nodes) })
}

/// Returns a reply of `source` for `initiator` with a route over `nodes`, on its way over `back`.
pub(super) fn reply(source: u32, back: &[u32], left: u8, initiator: u32, nodes: &[u32]) -> Packet<u32> {
    packet(source, initiator, &[source_route(0, back, left), reply_option(nodes)])
}

pub(super) fn error_option(source: u32, unreachable: u32, destination: u32) -> DsrOption {
    let kind = ErrorKind::NodeUnreachable(node_address(unreachable));
    DsrOption::Error(RouteError {
        salvage: 0,
        source: node_address(source),
        destination: node_address(destination),
        kind,
    })
}

/// Returns the only packet in `sent`, and its receiver.
pub(super) fn only_packet(sent: &[Transmit<u32>]) -> (&Packet<u32>, Ipv4Addr) {
    match sent {
        [Transmit { packet, next_hop }] => (packet, *next_hop),
        other => panic!("expected one packet, got {other:?}"),
    }
}

/// Returns the request in the only packet in `sent`, and its time to live.
pub(super) fn only_request(sent: &[Transmit<u32>]) -> (&RouteRequest, u8) {
    let (packet, next_hop) = only_packet(sent);
    assert_eq!((packet.destination, next_hop), (ALL, ALL));
    match packet.header.options.as_slice() {
        [DsrOption::Request(request), ..] => (request, packet.ttl),
        other => panic!("expected a request, got {other:?}"),
    }
}
