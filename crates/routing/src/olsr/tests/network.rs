//! A small network of machines in virtual time: each hop takes a millisecond, links can be cut and mended.

use super::dialogue::n;
use crate::olsr::*;
use hopline_core::{Duration, Instant, LinkId, Machine, NodeId, Purpose, Stream};
use hopline_wire::olsr::Packet;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

const HOP: Duration = Duration::from_millis(1);

pub(super) struct Network {
    pub(super) nodes: Vec<Olsr>,
    /// From, to.
    links: BTreeSet<(u32, u32)>,
    arrivals: BTreeMap<(Instant, u64), (u32, Received)>,
    order: u64,
    pub(super) now: Instant,
    /// Every packet sent: when, by whom, what.
    pub(super) sent: Vec<(Instant, u32, Arc<Packet>)>,
    /// Every event: when, at whom, what.
    pub(super) events: Vec<(Instant, u32, Event)>,
    losses: Option<(Stream, f64)>,
}

impl Network {
    pub(super) fn new(nodes: u32, config: Config, seed: u64) -> Self {
        let node = |i| Olsr::new(config, n(i), Stream::new(seed, 1, NodeId(i), Purpose::Routing));
        Self {
            nodes: (0..nodes).map(node).collect(),
            links: BTreeSet::new(),
            arrivals: BTreeMap::new(),
            order: 0,
            now: Instant::ZERO,
            sent: Vec::new(),
            events: Vec::new(),
            losses: None,
        }
    }

    /// Node 0 – node 1 – … – node `nodes` − 1.
    pub(super) fn chain(nodes: u32, config: Config, seed: u64) -> Self {
        let mut network = Self::new(nodes, config, seed);
        for i in 1..nodes {
            network.link(i - 1, i);
        }
        network
    }

    /// From now on each packet is lost with probability `p`, at each of those that would hear it.
    pub(super) fn lose(&mut self, seed: u64, p: f64) {
        self.losses = Some((Stream::global(seed, 1, Purpose::Emulation), p));
    }

    pub(super) fn link(&mut self, a: u32, b: u32) {
        self.links.extend([(a, b), (b, a)]);
    }

    pub(super) fn cut(&mut self, a: u32, b: u32) {
        self.cut_one_way(a, b);
        self.cut_one_way(b, a);
    }

    /// What `from` sends no longer reaches `to`.
    pub(super) fn cut_one_way(&mut self, from: u32, to: u32) {
        self.links.remove(&(from, to));
    }

    pub(super) fn is_linked(&self, a: u32, b: u32) -> bool {
        self.links.contains(&(a, b))
    }

    pub(super) fn run(&mut self, time: Duration) {
        let end = self.now + time;
        while self.step(end) {}
        self.now = end;
    }

    /// Runs until all routes are as short as can be, at most for `time`; returns how long that took.
    pub(super) fn settle(&mut self, time: Duration) -> Option<Duration> {
        let (start, end) = (self.now, self.now + time);
        let tables = |network: &Self| -> u64 {
            network.nodes.iter().map(|node| node.stats().table_computations).sum()
        };
        while self.wrong_routes() > 0 {
            let before = tables(self);
            while tables(self) == before {
                if !self.step(end) {
                    return None;
                }
            }
        }
        Some(self.now.since(start))
    }

    /// Handles the next thing that happens until `end`; `false` if nothing does.
    fn step(&mut self, end: Instant) -> bool {
        let wake = |(i, node): (usize, &Olsr)| node.poll_timeout().map(|(at, _)| (at, i as u32));
        let timeout = self.nodes.iter().enumerate().filter_map(wake).min();
        let arrival = self.arrivals.first_key_value().map(|((at, _), _)| *at);
        let node = match (timeout, arrival) {
            (Some((at, node)), arrival) if at <= end && arrival.is_none_or(|other| at <= other) => {
                self.now = self.now.max(at);
                self.nodes[node as usize].handle_timeout(self.now);
                node
            }
            (_, Some(at)) if at <= end => {
                self.now = self.now.max(at);
                let (_, (node, received)) = self.arrivals.pop_first().unwrap();
                self.nodes[node as usize].handle_packet(self.now, LinkId::ONLY, received);
                node
            }
            _ => return false,
        };
        self.drain(node);
        true
    }

    fn drain(&mut self, node: u32) {
        while let Some(transmit) = self.nodes[node as usize].poll_transmit(self.now) {
            let packet = Arc::new(transmit.packet);
            self.sent.push((self.now, node, Arc::clone(&packet)));
            for to in 0..self.nodes.len() as u32 {
                let lost = self.losses.as_mut().is_some_and(|(stream, p)| stream.bernoulli(*p));
                if self.is_linked(node, to) && !lost {
                    self.order += 1;
                    let received = Received { packet: Arc::clone(&packet), from: transmit.source };
                    self.arrivals.insert((self.now + HOP, self.order), (to, received));
                }
            }
        }
        while let Some(event) = self.nodes[node as usize].poll_event() {
            self.events.push((self.now, node, event));
        }
    }

    /// Next hop and hops that `node` believes in.
    pub(super) fn route(&self, node: u32, to: u32) -> Option<(u32, u8)> {
        let route = self.nodes[node as usize].route(n(to))?;
        Some((NodeId::from_ipv4(route.next_hop).unwrap().0, route.hops))
    }

    /// Pairs of nodes whose route is not there, too long, leads astray, or should not be there.
    pub(super) fn wrong_routes(&self) -> usize {
        let nodes = 0..self.nodes.len() as u32;
        let wrong = |to| {
            let hops = self.hops_towards(to);
            let right = |from: u32| match (hops[from as usize], self.route(from, to)) {
                (None, None) => true,
                (Some(best), Some((next, claimed))) => {
                    claimed == best && self.is_linked(from, next) && hops[next as usize] == Some(best - 1)
                }
                _ => false,
            };
            nodes.clone().filter(|from| *from != to && !right(*from)).count()
        };
        nodes.clone().map(wrong).sum()
    }

    /// The true distance of every node to `to`, over links that work both ways.
    fn hops_towards(&self, to: u32) -> Vec<Option<u8>> {
        let mut hops = vec![None; self.nodes.len()];
        hops[to as usize] = Some(0);
        let mut queue = std::collections::VecDeque::from([(to, 0)]);
        while let Some((at, distance)) = queue.pop_front() {
            for next in 0..self.nodes.len() as u32 {
                let both = self.is_linked(at, next) && self.is_linked(next, at);
                if both && hops[next as usize].is_none() {
                    hops[next as usize] = Some(distance + 1);
                    queue.push_back((next, distance + 1));
                }
            }
        }
        hops
    }
}
