//! A small network of machines in virtual time: each hop takes a millisecond, links can be cut and mended, and every
//! neighbour hears every packet.

use super::dialogue::n;
use crate::dsr::*;
use hopline_core::{Duration, Instant, LinkId, Machine, NodeId, Purpose, Stream};
use hopline_wire::dsr::{Addresses, DsrOption};
use hopline_wire::ipv4::Protocol;
use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

const HOP: Duration = Duration::from_millis(1);
const TTL: u8 = 32;

pub(super) struct Network {
    pub(super) nodes: Vec<Dsr<u32>>,
    links: BTreeSet<(u32, u32)>,
    arrivals: BTreeMap<(Instant, u64), (u32, Received<u32>)>,
    order: u64,
    pub(super) now: Instant,
    /// Every packet sent: when, by whom, what.
    pub(super) sent: Vec<(Instant, u32, Transmit<u32>)>,
    /// Data packets that arrived: when, which, over how many hops.
    pub(super) delivered: Vec<(Instant, u32, u8)>,
    pub(super) dropped: Vec<(u32, u32, DropReason)>,
    pub(super) found: Vec<(u32, Ipv4Addr, u8)>,
    pub(super) lost: Vec<(u32, Ipv4Addr)>,
    losses: Option<(Stream, f64)>,
}

impl Network {
    pub(super) fn new(nodes: u32, config: Config) -> Self {
        Self {
            nodes: (0..nodes).map(|i| Self::node(i, config)).collect(),
            links: BTreeSet::new(),
            arrivals: BTreeMap::new(),
            order: 0,
            now: Instant::ZERO,
            sent: Vec::new(),
            delivered: Vec::new(),
            dropped: Vec::new(),
            found: Vec::new(),
            lost: Vec::new(),
            losses: None,
        }
    }

    pub(super) fn node(index: u32, config: Config) -> Dsr<u32> {
        Dsr::new(config, n(index), Stream::new(1, 1, NodeId(index), Purpose::Routing))
    }

    /// Node 0 – node 1 – … – node `nodes` − 1.
    pub(super) fn chain(nodes: u32, config: Config) -> Self {
        let mut network = Self::new(nodes, config);
        for i in 1..nodes {
            network.link(i - 1, i);
        }
        network
    }

    /// From now on each reception is lost with probability `p`; a lost unicast looks like a broken link.
    pub(super) fn lose(&mut self, seed: u64, p: f64) {
        self.losses = Some((Stream::global(seed, 1, Purpose::Emulation), p));
    }

    pub(super) fn link(&mut self, a: u32, b: u32) {
        self.links.extend([(a, b), (b, a)]);
    }

    pub(super) fn cut(&mut self, a: u32, b: u32) {
        self.links.remove(&(a, b));
        self.links.remove(&(b, a));
    }

    pub(super) fn is_linked(&self, a: u32, b: u32) -> bool {
        self.links.contains(&(a, b))
    }

    pub(super) fn send(&mut self, source: u32, destination: u32, id: u32) {
        self.nodes[source as usize].send(self.now, n(destination), TTL, Protocol::Udp, id);
        self.drain(source);
    }

    pub(super) fn run(&mut self, time: Duration) {
        let end = self.now + time;
        while self.step(end) {}
        self.now = end;
    }

    fn step(&mut self, end: Instant) -> bool {
        let wake = |(i, node): (usize, &Dsr<u32>)| node.poll_timeout().map(|(at, _)| (at, i as u32));
        let timeout = self.nodes.iter().enumerate().filter_map(wake).min();
        let arrival = self.arrivals.first_key_value().map(|((at, _), _)| *at);
        match (timeout, arrival) {
            (Some((at, node)), arrival) if at <= end && arrival.is_none_or(|other| at <= other) => {
                self.now = self.now.max(at);
                self.nodes[node as usize].handle_timeout(self.now);
                self.drain(node);
                true
            }
            (_, Some(at)) if at <= end => {
                self.now = self.now.max(at);
                let (_, (node, received)) = self.arrivals.pop_first().unwrap();
                self.nodes[node as usize].handle_packet(self.now, LinkId::ONLY, received);
                self.drain(node);
                true
            }
            _ => false,
        }
    }

    fn drain(&mut self, node: u32) {
        loop {
            if let Some(transmit) = self.nodes[node as usize].poll_transmit(self.now) {
                self.transmit(node, transmit);
            } else if let Some(event) = self.nodes[node as usize].poll_event() {
                self.act(node, event);
            } else {
                return;
            }
        }
    }

    fn act(&mut self, node: u32, event: Event<u32>) {
        match event {
            Event::Deliver { packet, ttl } => self.delivered.push((self.now, packet, TTL - ttl + 1)),
            Event::Drop { packet, reason } => self.dropped.push((packet, node, reason)),
            Event::RouteFound { destination, hops } => self.found.push((node, destination, hops)),
            Event::RouteLost { destination } => self.lost.push((node, destination)),
            Event::PurgeQueue { .. } => {}
        }
    }

    fn transmit(&mut self, node: u32, transmit: Transmit<u32>) {
        self.sent.push((self.now, node, transmit.clone()));
        let Transmit { packet, next_hop } = transmit;
        let mut reached = next_hop.is_broadcast();
        for other in 0..self.nodes.len() as u32 {
            if !self.is_linked(node, other) || self.is_lost() {
                continue;
            }
            let ours = next_hop == n(other);
            reached |= ours;
            let to = if ours || next_hop.is_broadcast() { Receiver::Us } else { Receiver::Other(next_hop) };
            let carried = packet.carried.filter(|_| ours);
            let packet = Packet { carried, ..packet.clone() };
            self.order += 1;
            let arrival = Received { packet, from: n(node), to };
            self.arrivals.insert((self.now + HOP, self.order), (other, arrival));
        }
        if !reached {
            let signal = Signal::LinkFailed { neighbour: next_hop, packet };
            self.nodes[node as usize].handle_signal(self.now, signal);
            self.drain(node);
        }
    }

    fn is_lost(&mut self) -> bool {
        self.losses.as_mut().is_some_and(|(stream, p)| stream.bernoulli(*p))
    }

    /// The way that `node` knows to `destination`.
    pub(super) fn route(&self, node: u32, destination: u32) -> Option<Addresses> {
        self.nodes[node as usize]
            .routes(self.now)
            .filter_map(|path| path.iter().position(|a| *a == n(destination)).map(|at| &path[..=at]))
            .min_by_key(|path| path.len())
            .map(Addresses::from_slice)
    }

    /// Over how many hops packet `id` arrived.
    pub(super) fn hops(&self, id: u32) -> Option<u8> {
        self.delivered.iter().find(|(_, packet, _)| *packet == id).map(|(_, _, hops)| *hops)
    }

    /// How many packets with such an option were sent, over all hops.
    pub(super) fn count(&self, what: fn(&DsrOption) -> bool) -> usize {
        self.sent.iter().filter(|(_, _, sent)| sent.packet.header.options.iter().any(what)).count()
    }
}
