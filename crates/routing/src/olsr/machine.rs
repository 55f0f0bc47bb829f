//! OLSR machine: state, inputs and outputs. The processing is in the other files of this directory.

use super::advertising::Advertising;
use super::config::{Config, LinkSensing};
use super::duplicates::Duplicates;
use super::expiring::ExpiringSet;
use super::links::{Change, Links};
use super::outbox::Outbox;
use super::relays;
use super::stats::Stats;
use super::table::{self, FirstHop, Preference, Table};
use super::topology::Topology;
use super::types::{Event, LinkView, Received, Route, Signal, Timer, Transmit};
use crate::is_host;
use hopline_core::{Duration, Instant, LinkId, Machine, Seq16, Stream, TimerTable};
use hopline_wire::olsr::{Body, CodedTime, Message};
use std::collections::{BTreeSet, VecDeque};
use std::net::Ipv4Addr;
use std::sync::Arc;

const FIRST: Ipv4Addr = Ipv4Addr::UNSPECIFIED;
const LAST: Ipv4Addr = Ipv4Addr::BROADCAST;
/// An interval of zero would never let time pass.
const SHORTEST_INTERVAL: Duration = Duration::from_millis(1);

/// OLSR machine of one node.
///
/// Besides the inputs of [`Machine`], the node calls [`route`](Self::route) for the next hop of every packet that is not for
/// itself.
#[derive(Clone, Debug)]
pub struct Olsr {
    /// Shared: many nodes with the same parameters read the same memory.
    pub(super) config: Arc<Config>,
    pub(super) address: Ipv4Addr,
    pub(super) stream: Stream,
    /// Sequence number of the next message of this node (RFC 3626 §3.4).
    pub(super) message_seq: Seq16,
    pub(super) links: Links,
    /// N_neighbor_main_addr and N_2hop_addr until N_time (§4.3.2).
    pub(super) two_hops: ExpiringSet<(Ipv4Addr, Ipv4Addr)>,
    /// The MPR set (§4.3.3).
    pub(super) relays: BTreeSet<Ipv4Addr>,
    /// The MPR selector set (§4.3.4).
    pub(super) selectors: ExpiringSet<Ipv4Addr>,
    pub(super) advertising: Advertising,
    pub(super) topology: Topology,
    pub(super) duplicates: Duplicates,
    pub(super) outbox: Outbox,
    pub(super) timers: TimerTable<Timer, 4>,
    pub(super) stats: Stats,
    pub(super) outdated: Outdated,
    table: Table,
    events: VecDeque<Event>,
}

/// Computed state that no longer follows from the sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Outdated {
    Nothing,
    /// The routing table.
    Table,
    /// The MPR set, and the routing table.
    RelaysAndTable,
}

impl Olsr {
    /// Creates a node without neighbours. `config`: a [`Config`], or an `Arc` of one that many nodes share. `stream`: its
    /// jitter.
    #[must_use]
    pub fn new(config: impl Into<Arc<Config>>, address: Ipv4Addr, mut stream: Stream) -> Self {
        let config = config.into();
        let limits = config.limits;
        let mut timers = TimerTable::new();
        // A random phase, so that neighbours that start together do not send together.
        timers.set(Timer::Hello, Instant::ZERO + stream.duration_below(config.hello_interval));
        timers.set(Timer::Tc, Instant::ZERO + stream.duration_below(config.tc_interval));
        Self {
            links: Links::new(limits.links, config.neighbour_hold_time(), config.hysteresis),
            two_hops: ExpiringSet::new(limits.two_hops),
            relays: BTreeSet::new(),
            selectors: ExpiringSet::new(u32::from(limits.links)),
            advertising: Advertising::default(),
            topology: Topology::new(limits.topology),
            duplicates: Duplicates::new(config.duplicate_hold_time, limits.duplicates),
            outbox: Outbox::new(limits.departures, config.max_packet_bytes),
            message_seq: Seq16(0),
            timers,
            stats: Stats::default(),
            outdated: Outdated::Nothing,
            table: Table::new(),
            events: VecDeque::new(),
            config,
            address,
            stream,
        }
    }

    /// This node's address.
    #[must_use]
    pub fn address(&self) -> Ipv4Addr {
        self.address
    }

    /// The configuration.
    #[must_use]
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Returns the counters so far.
    #[must_use]
    pub fn stats(&self) -> &Stats {
        &self.stats
    }

    /// Returns the route to `destination`, if there is one.
    #[must_use]
    pub fn route(&self, destination: Ipv4Addr) -> Option<Route> {
        self.table.get(&destination).copied()
    }

    /// The routing table, in the order of destinations.
    pub fn routes(&self) -> impl Iterator<Item = (Ipv4Addr, Route)> {
        self.table.iter().map(|(destination, route)| (*destination, *route))
    }

    /// The links as they stand at `now`, in the order of neighbours.
    pub fn links(&self, now: Instant) -> impl Iterator<Item = LinkView> {
        self.links.iter(now)
    }

    /// The neighbours that this node has chosen as its multipoint relays, in order.
    pub fn relays(&self) -> impl Iterator<Item = Ipv4Addr> {
        self.relays.iter().copied()
    }

    /// The neighbours that have chosen this node as a relay, in order.
    pub fn selectors(&self) -> impl Iterator<Item = Ipv4Addr> {
        self.selectors.iter()
    }

    /// Returns the links learnt from TC messages: from a node to one of its MPR selectors, in order.
    pub fn topology(&self) -> impl Iterator<Item = (Ipv4Addr, Ipv4Addr)> {
        self.topology.iter()
    }

    /// Entries in the sets of two-hop neighbours, topology and duplicates.
    #[must_use]
    pub fn entries(&self) -> [usize; 3] {
        [self.two_hops.len(), self.topology.len(), self.duplicates.len()]
    }

    /// Returns whether `address` can belong to another node.
    pub(super) fn is_other_host(&self, address: Ipv4Addr) -> bool {
        is_host(address) && address != self.address
    }

    /// Records that `what` must be computed again.
    pub(super) fn outdate(&mut self, what: Outdated) {
        self.outdated = self.outdated.max(what);
    }

    /// Sends a message of this node at once.
    pub(super) fn originate(&mut self, now: Instant, ttl: u8, validity: Duration, body: Body) {
        let message = Message {
            validity: CodedTime::at_least(validity),
            originator: self.address,
            ttl,
            hop_count: 0,
            seq: self.message_seq,
            body,
        };
        self.message_seq += 1;
        self.outbox.send(now, message);
    }

    /// Returns the time from one message to the next (§3.5).
    pub(super) fn emission_interval(&mut self, interval: Duration) -> Duration {
        let jitter = self.stream.duration_below(self.config.max_jitter());
        interval.saturating_sub(jitter).max(SHORTEST_INTERVAL)
    }

    /// Handles a neighbour that appeared or was lost (§8.5).
    pub(super) fn neighbour_changed(&mut self, now: Instant, neighbour: Ipv4Addr, change: Change) {
        self.outdate(Outdated::RelaysAndTable);
        if change == Change::Lost {
            self.stats.neighbours_lost += 1;
            self.two_hops.remove_range((neighbour, FIRST)..=(neighbour, LAST));
            if self.selectors.remove(&neighbour) {
                self.selectors_changed(now);
                self.hurry_tc(now);
            }
        }
    }

    /// Removes everything that has expired. Costs nothing if nothing has.
    fn age(&mut self, now: Instant) {
        for (neighbour, change) in self.links.expire(now) {
            self.neighbour_changed(now, neighbour, change);
        }
        if self.two_hops.expire(now) {
            self.outdate(Outdated::RelaysAndTable);
        }
        if self.selectors.expire(now) {
            self.selectors_changed(now);
        }
        if self.topology.expire(now) {
            self.outdate(Outdated::Table);
        }
    }

    fn fire(&mut self, now: Instant, timer: Timer) {
        match timer {
            // Done by `age`.
            Timer::Expiry | Timer::Departure => {}
            Timer::Hello => self.say_hello(now),
            Timer::Tc => self.send_tc(now),
        }
    }

    fn select_relays(&mut self) {
        if self.outdated == Outdated::RelaysAndTable {
            let neighbours = self.links.neighbours().collect();
            self.relays = relays::select(self.address, &neighbours, self.two_hops.iter());
            self.outdated = Outdated::Table;
        }
    }

    /// Computes all outdated state, once for each input.
    fn finish(&mut self, now: Instant) {
        self.select_relays();
        if self.outdated != Outdated::Nothing {
            self.outdated = Outdated::Nothing;
            self.compute_table();
        }
        self.stats.packets_sent += self.outbox.depart(now, self.address);
        let expiries = [
            self.links.next_expiry(),
            self.two_hops.next_expiry(),
            self.selectors.next_expiry(),
            self.topology.next_expiry(),
        ];
        let next = expiries.into_iter().fold(Instant::FAR_FUTURE, Instant::min);
        self.timers.set(Timer::Expiry, next);
        self.timers.set(Timer::Departure, self.outbox.next_departure());
    }

    fn compute_table(&mut self) {
        let first_hop = |(address, willingness)| {
            let selects = self.selectors.contains(&address);
            let preference = if selects { Preference::MprSelector } else { Preference::Neighbour };
            FirstHop { address, willingness, preference }
        };
        let neighbours = self.links.neighbours().map(first_hop).collect();
        let two_hops = &self.two_hops;
        let reached_by = |near| two_hops.range((near, FIRST)..=(near, LAST)).map(|(_, far)| far);
        let table = table::compute(self.address, neighbours, reached_by, &self.topology);
        self.events.extend(table::changes(&self.table, &table));
        self.table = table;
        self.stats.table_computations += 1;
    }
}

impl Machine for Olsr {
    type Packet = Received;
    type Transmit = Transmit;
    type Signal = Signal;
    type Event = Event;
    type Timer = Timer;

    fn handle_packet(&mut self, now: Instant, _link: LinkId, received: Received) {
        self.age(now);
        self.receive(now, received.from, &received.packet);
        self.finish(now);
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.age(now);
        // A HELLO names the relays.
        self.select_relays();
        while let Some(timer) = self.timers.take_expired(now) {
            self.fire(now, timer);
        }
        self.finish(now);
    }

    fn handle_signal(&mut self, now: Instant, signal: Signal) {
        self.age(now);
        let Signal::LinkFailed { neighbour } = signal;
        if self.config.link_sensing == LinkSensing::HelloAndLinkLayer
            && let Some(change) = self.links.failed(now, neighbour)
        {
            self.neighbour_changed(now, neighbour, change);
        }
        self.finish(now);
    }

    fn poll_transmit(&mut self, _now: Instant) -> Option<Transmit> {
        self.outbox.poll()
    }

    fn poll_timeout(&self) -> Option<(Instant, Timer)> {
        self.timers.next()
    }

    fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }
}
