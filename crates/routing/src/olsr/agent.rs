//! OLSR machine: state, inputs and outputs. The processing is in the other files of this directory.

use super::advertising::TcState;
use super::config::{Config, LinkSensing};
use super::duplicates::DuplicateSet;
use super::expiring_set::ExpiringSet;
use super::links::{LinkSet, NeighbourChange};
use super::mpr;
use super::outbox::Outbox;
use super::routing_table::{self, FirstHop, Preference, RoutingTable};
use super::stats::Stats;
use super::topology::TopologySet;
use super::types::{Event, LinkView, Received, Route, Signal, Timer, Transmit};
use crate::is_host;
use hopline_core::{Duration, Instant, LinkId, RandomStream, Seq16, StateMachine, TimerTable};
use hopline_wire::olsr::{Body, CodedTime, Message};
use std::collections::{BTreeSet, VecDeque};
use std::net::Ipv4Addr;
use std::sync::Arc;

const MIN_ADDRESS: Ipv4Addr = Ipv4Addr::UNSPECIFIED;
const MAX_ADDRESS: Ipv4Addr = Ipv4Addr::BROADCAST;
/// An interval of zero would never let time pass.
const MIN_INTERVAL: Duration = Duration::from_millis(1);

/// OLSR machine of one node.
///
/// Besides the inputs of [`StateMachine`], the node calls [`route`](Self::route) for the next hop of every packet that is not for
/// itself.
#[derive(Clone, Debug)]
pub struct Olsr {
    /// Shared: many nodes with the same parameters read the same memory.
    pub(super) config: Arc<Config>,
    pub(super) address: Ipv4Addr,
    pub(super) stream: RandomStream,
    /// Sequence number of the next message of this node (RFC 3626 §3.4).
    pub(super) message_seq: Seq16,
    pub(super) links: LinkSet,
    /// N_neighbor_main_addr and N_2hop_addr until N_time (§4.3.2).
    pub(super) two_hops: ExpiringSet<(Ipv4Addr, Ipv4Addr)>,
    /// The MPR set (§4.3.3).
    pub(super) mprs: BTreeSet<Ipv4Addr>,
    /// The MPR selector set (§4.3.4).
    pub(super) selectors: ExpiringSet<Ipv4Addr>,
    pub(super) advertising: TcState,
    pub(super) topology: TopologySet,
    pub(super) duplicates: DuplicateSet,
    pub(super) outbox: Outbox,
    pub(super) timers: TimerTable<Timer, 4>,
    pub(super) stats: Stats,
    pub(super) outdated: OutdatedState,
    routing_table: RoutingTable,
    events: VecDeque<Event>,
}

/// Computed state that no longer follows from the sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum OutdatedState {
    Nothing,
    /// The routing table.
    Table,
    /// The MPR set, and the routing table.
    MprsAndTable,
}

impl Olsr {
    /// Creates a node without neighbours. `config`: a [`Config`], or an `Arc` of one that many nodes share. `stream`: its
    /// jitter.
    #[must_use]
    pub fn new(config: impl Into<Arc<Config>>, address: Ipv4Addr, mut stream: RandomStream) -> Self {
        let config = config.into();
        let limits = config.limits;
        let mut timers = TimerTable::new();
        // A random phase, so that neighbours that start together do not send together.
        timers.set(Timer::Hello, Instant::ZERO + stream.duration_below(config.hello_interval));
        timers.set(Timer::Tc, Instant::ZERO + stream.duration_below(config.tc_interval));
        Self {
            links: LinkSet::new(limits.links, config.neighbour_hold_time(), config.hysteresis),
            two_hops: ExpiringSet::new(limits.two_hops),
            mprs: BTreeSet::new(),
            selectors: ExpiringSet::new(u32::from(limits.links)),
            advertising: TcState::default(),
            topology: TopologySet::new(limits.topology),
            duplicates: DuplicateSet::new(config.duplicate_hold_time, limits.duplicates),
            outbox: Outbox::new(limits.departures, config.max_packet_bytes),
            message_seq: Seq16(0),
            timers,
            stats: Stats::default(),
            outdated: OutdatedState::Nothing,
            routing_table: RoutingTable::new(),
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
        self.routing_table.get(&destination).copied()
    }

    /// The routing table, in the order of destinations.
    pub fn routes(&self) -> impl Iterator<Item = (Ipv4Addr, Route)> {
        self.routing_table.iter().map(|(destination, route)| (*destination, *route))
    }

    /// The links as they stand at `now`, in the order of neighbours.
    pub fn links(&self, now: Instant) -> impl Iterator<Item = LinkView> {
        self.links.iter(now)
    }

    /// The neighbours that this node has chosen as its multipoint relays, in order.
    pub fn mprs(&self) -> impl Iterator<Item = Ipv4Addr> {
        self.mprs.iter().copied()
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
    pub fn table_sizes(&self) -> [usize; 3] {
        [self.two_hops.len(), self.topology.len(), self.duplicates.len()]
    }

    /// Returns whether `address` can belong to another node.
    pub(super) fn is_other_host(&self, address: Ipv4Addr) -> bool {
        is_host(address) && address != self.address
    }

    /// Records that `what` must be computed again.
    pub(super) fn mark_outdated(&mut self, what: OutdatedState) {
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
        interval.saturating_sub(jitter).max(MIN_INTERVAL)
    }

    /// Handles a neighbour that appeared or was lost (§8.5).
    pub(super) fn on_neighbour_change(&mut self, now: Instant, neighbour: Ipv4Addr, change: NeighbourChange) {
        self.mark_outdated(OutdatedState::MprsAndTable);
        if change == NeighbourChange::Lost {
            self.stats.neighbours_lost += 1;
            self.two_hops.remove_range((neighbour, MIN_ADDRESS)..=(neighbour, MAX_ADDRESS));
            if self.selectors.remove(&neighbour) {
                self.on_selectors_change(now);
                self.send_tc_early(now);
            }
        }
    }

    /// Removes everything that has expired. Costs nothing if nothing has.
    fn remove_expired(&mut self, now: Instant) {
        for (neighbour, change) in self.links.expire(now) {
            self.on_neighbour_change(now, neighbour, change);
        }
        if self.two_hops.expire(now) {
            self.mark_outdated(OutdatedState::MprsAndTable);
        }
        if self.selectors.expire(now) {
            self.on_selectors_change(now);
        }
        if self.topology.expire(now) {
            self.mark_outdated(OutdatedState::Table);
        }
    }

    fn on_timer(&mut self, now: Instant, timer: Timer) {
        match timer {
            // Done by `age`.
            Timer::Expiry | Timer::Departure => {}
            Timer::Hello => self.send_hello(now),
            Timer::Tc => self.send_tc(now),
        }
    }

    fn select_mprs(&mut self) {
        if self.outdated == OutdatedState::MprsAndTable {
            let neighbours = self.links.neighbours().collect();
            self.mprs = mpr::select_mprs(self.address, &neighbours, self.two_hops.iter());
            self.outdated = OutdatedState::Table;
        }
    }

    /// Computes all outdated state, once for each input.
    fn recompute_outdated(&mut self, now: Instant) {
        self.select_mprs();
        if self.outdated != OutdatedState::Nothing {
            self.outdated = OutdatedState::Nothing;
            self.compute_table();
        }
        self.stats.packets_sent += self.outbox.release_due(now, self.address);
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
        let reached_by = |near| two_hops.range((near, MIN_ADDRESS)..=(near, MAX_ADDRESS)).map(|(_, far)| far);
        let table =
            routing_table::compute_routing_table(self.address, neighbours, reached_by, &self.topology);
        self.events.extend(routing_table::changes(&self.routing_table, &table));
        self.routing_table = table;
        self.stats.table_computations += 1;
    }
}

impl StateMachine for Olsr {
    type Packet = Received;
    type Transmit = Transmit;
    type Signal = Signal;
    type Event = Event;
    type Timer = Timer;

    fn handle_packet(&mut self, now: Instant, _link: LinkId, received: Received) {
        self.remove_expired(now);
        self.receive(now, received.from, &received.packet);
        self.recompute_outdated(now);
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.remove_expired(now);
        // A HELLO names the relays.
        self.select_mprs();
        while let Some(timer) = self.timers.take_expired(now) {
            self.on_timer(now, timer);
        }
        self.recompute_outdated(now);
    }

    fn handle_signal(&mut self, now: Instant, signal: Signal) {
        self.remove_expired(now);
        let Signal::LinkFailed { neighbour } = signal;
        if self.config.link_sensing == LinkSensing::HelloAndLinkLayer
            && let Some(change) = self.links.on_link_failure(now, neighbour)
        {
            self.on_neighbour_change(now, neighbour, change);
        }
        self.recompute_outdated(now);
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
