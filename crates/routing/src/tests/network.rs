//! A small network of machines in virtual time: each hop takes a millisecond, links can be cut and restored.

use crate::DropReason;
use hopline_core::{Duration, Instant, Purpose, RandomStream, StateMachine};
use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

const HOP: Duration = Duration::from_millis(1);

/// Machine from which networks can be made: handling of its inputs, transmissions and events.
pub(crate) trait Agent: StateMachine<Transmit: Clone> + Sized {
    /// Input that arrives over a link.
    type Arrival;

    fn handle_arrival(network: &mut Network<Self>, node: u32, arrival: Self::Arrival);

    fn transmit(network: &mut Network<Self>, node: u32, transmit: Self::Transmit);

    fn handle_event(network: &mut Network<Self>, node: u32, event: Self::Event);
}

pub(crate) struct Network<M: Agent> {
    pub(crate) nodes: Vec<M>,
    pub(crate) now: Instant,
    /// All transmissions: time, sender, content.
    pub(crate) sent: Vec<(Instant, u32, M::Transmit)>,
    /// Delivered data packets: time, packet, hops.
    pub(crate) delivered: Vec<(Instant, u32, u8)>,
    /// Dropped data packets: packet, node, reason.
    pub(crate) dropped: Vec<(u32, u32, DropReason)>,
    /// Routes found: node, destination, length.
    pub(crate) found: Vec<(u32, Ipv4Addr, u8)>,
    /// Routes lost: node, destination.
    pub(crate) lost: Vec<(u32, Ipv4Addr)>,
    /// Links: from, to.
    links: BTreeSet<(u32, u32)>,
    in_flight: BTreeMap<(Instant, u64), (u32, M::Arrival)>,
    order: u64,
    losses: Option<(RandomStream, f64)>,
}

impl<M: Agent> Network<M> {
    pub(crate) fn new_network(nodes: impl Iterator<Item = M>) -> Self {
        Self {
            nodes: nodes.collect(),
            now: Instant::ZERO,
            sent: Vec::new(),
            delivered: Vec::new(),
            dropped: Vec::new(),
            found: Vec::new(),
            lost: Vec::new(),
            links: BTreeSet::new(),
            in_flight: BTreeMap::new(),
            order: 0,
            losses: None,
        }
    }

    /// Node 0 – node 1 – node 2 – …
    pub(crate) fn in_a_chain(mut self) -> Self {
        for i in 1..self.nodes.len() as u32 {
            self.link(i - 1, i);
        }
        self
    }

    /// Sets the probability `p` with which each later reception is lost. A lost unicast is reported as a failed link.
    pub(crate) fn set_loss(&mut self, seed: u64, p: f64) {
        self.losses = Some((RandomStream::global(seed, 1, Purpose::Emulation), p));
    }

    /// Links two different nodes.
    pub(crate) fn link(&mut self, a: u32, b: u32) {
        if a != b {
            self.links.extend([(a, b), (b, a)]);
        }
    }

    pub(crate) fn link_all(&mut self, links: &[(u32, u32)]) {
        for &(a, b) in links {
            self.link(a, b);
        }
    }

    pub(crate) fn cut(&mut self, a: u32, b: u32) {
        self.cut_one_way(a, b);
        self.cut_one_way(b, a);
    }

    /// Cuts the link in one direction: packets of `from` no longer reach `to`.
    pub(crate) fn cut_one_way(&mut self, from: u32, to: u32) {
        self.links.remove(&(from, to));
    }

    /// Cuts an existing link, or restores a cut one.
    pub(crate) fn toggle(&mut self, a: u32, b: u32) {
        if self.is_linked(a, b) { self.cut(a, b) } else { self.link(a, b) }
    }

    pub(crate) fn is_linked(&self, from: u32, to: u32) -> bool {
        self.links.contains(&(from, to))
    }

    /// Returns whether a packet that `from` sends at this moment reaches `to`.
    pub(crate) fn reaches(&mut self, from: u32, to: u32) -> bool {
        self.is_linked(from, to) && !self.losses.as_mut().is_some_and(|(stream, p)| stream.bernoulli(*p))
    }

    /// Returns the nodes that a transmission of `from` reaches.
    pub(crate) fn receivers_of(&mut self, from: u32) -> Vec<u32> {
        (0..self.nodes.len() as u32).filter(|to| self.reaches(from, *to)).collect()
    }

    /// Delivers `arrival` to `node`, a hop later.
    pub(crate) fn deliver_later(&mut self, node: u32, arrival: M::Arrival) {
        self.order += 1;
        self.in_flight.insert((self.now + HOP, self.order), (node, arrival));
    }

    pub(crate) fn run(&mut self, time: Duration) {
        let end = self.now + time;
        while self.step(end) {}
        self.now = end;
    }

    /// Handles the next event until `end`; returns `false` if there is none.
    pub(crate) fn step(&mut self, end: Instant) -> bool {
        let wake = |(i, node): (usize, &M)| node.poll_timeout().map(|(at, _)| (at, i as u32));
        let timeout = self.nodes.iter().enumerate().filter_map(wake).min();
        let arrival = self.in_flight.first_key_value().map(|((at, _), _)| *at);
        let node = match (timeout, arrival) {
            (Some((at, node)), arrival) if at <= end && arrival.is_none_or(|other| at <= other) => {
                self.now = self.now.max(at);
                self.nodes[node as usize].handle_timeout(self.now);
                node
            }
            (_, Some(at)) if at <= end => {
                self.now = self.now.max(at);
                let (_, (node, arrival)) = self.in_flight.pop_first().unwrap();
                M::handle_arrival(self, node, arrival);
                node
            }
            _ => return false,
        };
        self.process_outputs(node);
        true
    }

    /// Reports `signal` to `node`, and takes its outputs.
    pub(crate) fn signal(&mut self, node: u32, signal: M::Signal) {
        self.nodes[node as usize].handle_signal(self.now, signal);
        self.process_outputs(node);
    }

    /// Takes the outputs of `node`.
    pub(crate) fn process_outputs(&mut self, node: u32) {
        loop {
            let machine = &mut self.nodes[node as usize];
            if let Some(transmit) = machine.poll_transmit(self.now) {
                self.sent.push((self.now, node, transmit.clone()));
                M::transmit(self, node, transmit);
            } else if let Some(event) = machine.poll_event() {
                M::handle_event(self, node, event);
            } else {
                return;
            }
        }
    }
}
