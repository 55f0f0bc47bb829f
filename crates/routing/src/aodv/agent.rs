//! AODV machine: state, inputs and outputs. The processing is in the other files of this directory.

use super::config::Config;
use super::discoveries::Discoveries;
use super::neighbours::{Blacklist, NeighbourLiveness, PendingRrepAcks};
use super::repair_ends::RepairTimers;
use super::rreq_cache::RreqCache;
use super::stats::{IgnoredReason, Stats};
use super::table::{RouteState, RouteTable};
use super::types::{Event, Received, Signal, Timer, Transmit};
use crate::outbox::Outbox;
use crate::send_buffer::SendBuffer;
use crate::{TimerEffect, is_host};
use hopline_core::{Duration, Instant, LinkId, RandomStream, RateLimit, Seq32, StateMachine, TimerTable};
use hopline_wire::aodv::Message;
use std::net::Ipv4Addr;
use std::sync::Arc;

/// AODV machine of one node. `M` is the node's handle for a data packet.
///
/// Besides the inputs of [`StateMachine`], the node calls [`route`](Self::route) for every data packet that is not for itself,
/// and [`handle_signal`](StateMachine::handle_signal) for every unicast frame that its link layer gave up.
#[derive(Clone, Debug)]
pub struct Aodv<M> {
    /// Shared: thousands of nodes with the same parameters read the same memory.
    pub(super) config: Arc<Config>,
    pub(super) address: Ipv4Addr,
    pub(super) stream: RandomStream,
    /// This node's own sequence number (RFC 3561 §6.1).
    pub(super) seq: Seq32,
    /// Id of the latest request of this node (§6.3).
    pub(super) request_id: u32,
    pub(super) routes: RouteTable,
    pub(super) rreq_cache: RreqCache,
    pub(super) discoveries: Discoveries,
    pub(super) buffer: SendBuffer<M>,
    pub(super) outbox: Outbox<Transmit, Event<M>>,
    pub(super) liveness: NeighbourLiveness,
    pub(super) blacklist: Blacklist,
    pub(super) pending_rrep_acks: PendingRrepAcks,
    pub(super) request_rate: RateLimit,
    pub(super) error_rate: RateLimit,
    pub(super) last_broadcast: Instant,
    pub(super) repair_timers: RepairTimers,
    pub(super) timers: TimerTable<Timer, 8>,
    pub(super) stats: Stats,
}

/// Public view of a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RouteView {
    /// Destination of the route.
    pub destination: Ipv4Addr,
    /// Next hop.
    pub next_hop: Ipv4Addr,
    /// Hops to the destination; for an invalid route, hops when it was last valid.
    pub hops: u8,
    /// The destination's sequence number, if ever learnt.
    pub seq: Option<Seq32>,
    /// State of the route.
    pub state: RouteState,
    /// Time at which a valid route expires and any other is deleted.
    pub expires: Instant,
}

impl<M: Copy> Aodv<M> {
    /// A node without routes. `config`: a [`Config`], or an `Arc` of one that many nodes share. `stream`: its jitter.
    #[must_use]
    pub fn new(config: impl Into<Arc<Config>>, address: Ipv4Addr, mut stream: RandomStream) -> Self {
        let config = config.into();
        let mut timers = TimerTable::new();
        if let Some(hello) = config.link_sensing.hello() {
            // A random phase, so that neighbours that start together do not send together.
            timers.set(Timer::Hello, Instant::ZERO + stream.duration_below(hello.interval));
        }
        Self {
            routes: RouteTable::new(&config),
            rreq_cache: RreqCache::new(config.path_discovery_time, config.limits.originators),
            discoveries: Discoveries::new(config.limits.searches),
            buffer: SendBuffer::new(config.buffer_packets, config.buffer_time),
            outbox: Outbox::new(config.limits.departures),
            liveness: NeighbourLiveness::new(config.limits.neighbours),
            blacklist: Blacklist::new(config.limits.neighbours),
            pending_rrep_acks: PendingRrepAcks::new(config.limits.neighbours),
            request_rate: RateLimit::new(config.rreq_rate_limit),
            error_rate: RateLimit::new(config.rerr_rate_limit),
            last_broadcast: Instant::ZERO,
            repair_timers: RepairTimers::new(config.limits.repair_ends),
            seq: Seq32(0),
            request_id: 0,
            timers,
            stats: Stats::default(),
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

    /// Returns the number of data packets that it holds: those that wait for a route, and those that have not left yet.
    pub(crate) fn held_packets(&self) -> usize {
        let of_event = |event: &Event<M>| matches!(event, Event::Release { .. } | Event::Drop { .. });
        self.buffer.len() + self.outbox.packets(|_message| false, of_event)
    }

    /// Packets that wait for a route.
    #[must_use]
    pub fn buffered(&self) -> usize {
        self.buffer.len()
    }

    /// The routing table as it stands at `now`, in no particular order.
    pub fn routes(&self, now: Instant) -> impl Iterator<Item = RouteView> {
        self.routes.iter().map(move |(destination, route)| RouteView {
            destination,
            next_hop: route.next_hop,
            hops: route.hops,
            seq: route.seq(),
            state: match route.state {
                RouteState::Valid if !self.routes.is_usable(now, destination, route) => RouteState::Invalid,
                state => state,
            },
            expires: self.routes.expiry_of(destination, route),
        })
    }

    /// Returns whether packets for `destination` would be sent at `now`, and not wait or be dropped.
    #[must_use]
    pub fn has_route(&self, now: Instant, destination: Ipv4Addr) -> bool {
        self.routes.find(destination).is_some_and(|route| self.routes.is_usable(now, destination, route))
    }

    /// Returns whether `address` can belong to another node.
    pub(super) fn is_other_host(&self, address: Ipv4Addr) -> bool {
        is_host(address) && address != self.address
    }

    /// Sends a message to a neighbour at once.
    pub(super) fn unicast(&mut self, message: Message, next_hop: Ipv4Addr, ttl: u8) {
        let transmit = self.transmit_to(message, next_hop, ttl);
        self.outbox.transmits.push_back(transmit);
    }

    /// Returns the departure time of a broadcast with a random delay below `jitter`.
    pub(super) fn departure_time(&mut self, now: Instant, jitter: Duration) -> Instant {
        // Presets without jitter draw nothing, so that their other random delays are unchanged.
        if jitter.is_zero() { now } else { now + self.stream.duration_below(jitter) }
    }

    /// Broadcasts a message at `due`. Returns `false` if too many wait already.
    pub(super) fn broadcast(&mut self, now: Instant, due: Instant, message: Message, ttl: u8) -> bool {
        self.last_broadcast = now;
        let transmit = self.transmit_to(message, Ipv4Addr::BROADCAST, ttl);
        if due <= now {
            self.outbox.transmits.push_back(transmit);
            return true;
        }
        let room = self.outbox.transmit_at(due, transmit);
        if !room {
            self.stats.ignore(IgnoredReason::OutboxFull);
        }
        room
    }

    fn transmit_to(&self, message: Message, next_hop: Ipv4Addr, ttl: u8) -> Transmit {
        Transmit { message, next_hop, source: self.address, destination: next_hop, ttl }
    }

    /// Sets every timer that follows from the state. Cheap: nothing here walks a table.
    pub(super) fn set_timers(&mut self) {
        let deadlines = [
            (Timer::Departure, self.outbox.next_departure()),
            (Timer::Discovery, self.discoveries.next_deadline(self.config.expiry_granularity)),
            (Timer::ReplyAck, self.pending_rrep_acks.next_deadline()),
            (Timer::Buffer, self.buffer.next_expiry()),
            (Timer::Neighbour, self.liveness.next_deadline()),
            (Timer::Purge, self.routes.next_purge()),
            (Timer::Repair, self.repair_timers.next()),
        ];
        for (timer, deadline) in deadlines {
            self.timers.set(timer, deadline.unwrap_or(Instant::FAR_FUTURE));
        }
    }

    fn on_timer(&mut self, now: Instant, timer: Timer) {
        match timer {
            Timer::Departure => self.outbox.release_due(now),
            Timer::Repair => self.end_expired_repairs(now),
            Timer::Discovery => self.retry_discoveries(now),
            Timer::ReplyAck => self.blacklist_unconfirmed(now),
            Timer::Buffer => self.drop_expired_packets(now),
            Timer::Hello => self.send_hello(now),
            Timer::Neighbour => self.remove_silent_neighbours(now),
            Timer::Purge => {
                let searches = &self.discoveries;
                self.routes.purge(now, |destination| searches.is_waiting_for(destination));
            }
        }
    }
}

impl<M: Copy> StateMachine for Aodv<M> {
    type Packet = Received;
    type Transmit = Transmit;
    type Signal = Signal<M>;
    type Event = Event<M>;
    type Timer = Timer;

    fn handle_packet(&mut self, now: Instant, _link: LinkId, received: Received) {
        let Received { message, from, to, ttl } = received;
        if !self.is_other_host(from) {
            self.stats.ignore(IgnoredReason::BadAddress);
            return;
        }
        self.liveness.record_heard(now, from);
        match message {
            Message::Rreq(request) => {
                if self.handle_request(now, from, ttl, request) == TimerEffect::None {
                    return; // nine of ten messages of a flood
                }
            }
            Message::Rrep(reply) if to.is_broadcast() => self.handle_hello(now, from, &reply),
            Message::Rrep(reply) => self.handle_reply(now, from, ttl, reply),
            Message::Rerr(error) => self.handle_error(now, from, &error),
            Message::RrepAck => self.pending_rrep_acks.on_rrep_ack(from),
        }
        self.set_timers();
    }

    fn handle_timeout(&mut self, now: Instant) {
        while let Some(timer) = self.timers.take_expired(now) {
            self.on_timer(now, timer);
        }
        self.set_timers();
    }

    fn handle_signal(&mut self, now: Instant, signal: Signal<M>) {
        match signal {
            Signal::LinkFailed { neighbour, content: carried } => {
                self.handle_link_failure(now, neighbour, carried);
                self.set_timers();
            }
            // A deadline that is now too early is corrected when it expires.
            Signal::NeighbourHeard { neighbour } if self.any_packet_is_liveness() => {
                self.liveness.record_heard(now, neighbour);
            }
            Signal::NeighbourHeard { .. } => {}
        }
    }

    fn poll_transmit(&mut self, _now: Instant) -> Option<Transmit> {
        self.outbox.transmits.pop_front()
    }

    fn poll_timeout(&self) -> Option<(Instant, Timer)> {
        self.timers.next()
    }

    fn poll_event(&mut self) -> Option<Event<M>> {
        self.outbox.events.pop_front()
    }
}
