//! A small network of machines in virtual time: each hop takes a millisecond, links can be cut and mended.

use super::dialogue::n;
use crate::aodv::*;
use hopline_core::{Duration, Instant, LinkId, Machine, NodeId, Purpose, Stream};
use hopline_wire::aodv::Message;
use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

const HOP: Duration = Duration::from_millis(1);
const TTL: u8 = 32;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Packet {
    pub(super) id: u32,
    pub(super) source: u32,
    pub(super) destination: u32,
    hops: u8,
}

enum Arrival {
    Message(Received),
    Data { packet: Packet, previous_hop: Ipv4Addr },
}

pub(super) struct Network {
    pub(super) nodes: Vec<Aodv<Packet>>,
    links: BTreeSet<(u32, u32)>,
    arrivals: BTreeMap<(Instant, u64), (u32, Arrival)>,
    order: u64,
    pub(super) now: Instant,
    /// Every message sent: when, by whom, what.
    pub(super) sent: Vec<(Instant, u32, Transmit)>,
    /// Packets that arrived: when, which, over how many hops.
    pub(super) delivered: Vec<(Instant, u32, u8)>,
    pub(super) dropped: Vec<(u32, u32, DropReason)>,
    pub(super) found: Vec<(Instant, u32, Ipv4Addr, u8)>,
    losses: Option<(Stream, f64)>,
}

impl Network {
    pub(super) fn new(nodes: u32, config: Config) -> Self {
        let node = |i| Aodv::new(config, n(i), Stream::new(1, 1, NodeId(i), Purpose::Routing));
        Self {
            nodes: (0..nodes).map(node).collect(),
            links: BTreeSet::new(),
            arrivals: BTreeMap::new(),
            order: 0,
            now: Instant::ZERO,
            sent: Vec::new(),
            delivered: Vec::new(),
            dropped: Vec::new(),
            found: Vec::new(),
            losses: None,
        }
    }

    /// Node 0 – node 1 – … – node `nodes` − 1.
    pub(super) fn chain(nodes: u32, config: Config) -> Self {
        let mut network = Self::new(nodes, config);
        for i in 1..nodes {
            network.link(i - 1, i);
        }
        network
    }

    /// From now on each transmission is lost with probability `p`; a lost unicast looks like a broken link.
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

    /// `to` no longer hears `from`; `from` still hears `to`.
    pub(super) fn deafen(&mut self, to: u32, from: u32) {
        self.links.remove(&(from, to));
    }

    pub(super) fn is_linked(&self, a: u32, b: u32) -> bool {
        self.links.contains(&(a, b))
    }

    pub(super) fn send(&mut self, source: u32, destination: u32, id: u32) {
        let packet = Packet { id, source, destination, hops: 0 };
        self.decide(source, Origin::Local, packet);
    }

    pub(super) fn run(&mut self, time: Duration) {
        let end = self.now + time;
        while self.step(end) {}
        self.now = end;
    }

    /// Handles the next thing that happens until `end`; `false` if nothing does.
    pub(super) fn step(&mut self, end: Instant) -> bool {
        let wake = |(i, node): (usize, &Aodv<Packet>)| node.poll_timeout().map(|(at, _)| (at, i as u32));
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
                let (_, (node, arrival)) = self.arrivals.pop_first().unwrap();
                self.arrive(node, arrival);
                true
            }
            _ => false,
        }
    }

    fn arrive(&mut self, node: u32, arrival: Arrival) {
        match arrival {
            Arrival::Message(received) => {
                self.nodes[node as usize].handle_packet(self.now, LinkId::ONLY, received);
                self.drain(node);
            }
            Arrival::Data { packet, .. } if packet.destination == node => {
                self.delivered.push((self.now, packet.id, packet.hops));
            }
            Arrival::Data { packet, .. } if packet.hops >= TTL => {
                panic!("packet {packet:?} walks in circles")
            }
            Arrival::Data { packet, previous_hop } => {
                self.decide(node, Origin::Forwarded { previous_hop, source: n(packet.source) }, packet);
            }
        }
    }

    fn decide(&mut self, node: u32, origin: Origin, packet: Packet) {
        match self.nodes[node as usize].route(self.now, n(packet.destination), origin, packet) {
            Decision::Forward { next_hop } => self.transmit_data(node, packet, next_hop),
            Decision::Buffered => {}
            Decision::Dropped { reason } => self.dropped.push((packet.id, node, reason)),
        }
        self.drain(node);
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

    fn act(&mut self, node: u32, event: Event<Packet>) {
        match event {
            Event::Release { packet, next_hop } => self.transmit_data(node, packet, next_hop),
            Event::Drop { packet, reason } => self.dropped.push((packet.id, node, reason)),
            Event::RouteFound { destination, hops } => self.found.push((self.now, node, destination, hops)),
            Event::RouteLost { .. } | Event::PurgeQueue { .. } => {}
        }
    }

    fn transmit(&mut self, node: u32, transmit: Transmit) {
        self.sent.push((self.now, node, transmit.clone()));
        let Transmit { message, next_hop, ttl, .. } = transmit;
        let received = |message: &Message| {
            Arrival::Message(Received { message: message.clone(), from: n(node), to: next_hop, ttl })
        };
        if next_hop.is_broadcast() {
            for other in 0..self.nodes.len() as u32 {
                if self.is_linked(node, other) && !self.is_lost() {
                    self.schedule(other, received(&message));
                }
            }
            return;
        }
        let other = NodeId::from_ipv4(next_hop).unwrap().0;
        if self.is_linked(node, other) && !self.is_lost() {
            self.schedule(other, received(&message));
        } else {
            self.report(node, next_hop, Carried::message(&message));
        }
    }

    fn transmit_data(&mut self, node: u32, mut packet: Packet, next_hop: Ipv4Addr) {
        let other = NodeId::from_ipv4(next_hop).unwrap().0;
        if self.is_linked(node, other) && !self.is_lost() {
            packet.hops += 1;
            self.schedule(other, Arrival::Data { packet, previous_hop: n(node) });
        } else {
            let (destination, source) = (n(packet.destination), n(packet.source));
            let carried = Carried::Data { packet, destination, source, travelled: packet.hops };
            self.report(node, next_hop, carried);
        }
    }

    fn report(&mut self, node: u32, neighbour: Ipv4Addr, carried: Carried<Packet>) {
        self.nodes[node as usize].handle_signal(self.now, Signal::LinkFailed { neighbour, carried });
        self.drain(node);
    }

    fn is_lost(&mut self) -> bool {
        self.losses.as_mut().is_some_and(|(stream, p)| stream.bernoulli(*p))
    }

    fn schedule(&mut self, node: u32, arrival: Arrival) {
        self.order += 1;
        self.arrivals.insert((self.now + HOP, self.order), (node, arrival));
    }

    /// The valid next hop of `node` towards `destination`.
    pub(super) fn next_hop(&self, node: u32, destination: u32) -> Option<u32> {
        let routes = self.nodes[node as usize].routes(self.now);
        let mut to = routes.filter(|r| r.destination == n(destination) && r.state == RouteState::Valid);
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

    /// Requests sent so far: when, by whom, with which time to live.
    pub(super) fn requests(&self) -> Vec<(Instant, u32, u8)> {
        let requests = self.sent.iter().filter(|(.., sent)| matches!(sent.message, Message::Rreq(_)));
        requests.map(|(at, node, sent)| (*at, *node, sent.ttl)).collect()
    }

    /// Who sent a message of which `is` holds.
    pub(super) fn senders(&self, is: impl Fn(&Message) -> bool) -> Vec<u32> {
        self.sent.iter().filter(|(.., sent)| is(&sent.message)).map(|(_, node, _)| *node).collect()
    }
}
