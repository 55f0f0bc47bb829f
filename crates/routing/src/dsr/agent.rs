//! DSR machine: state, inputs and outputs. The processing is in the other files of this directory.

use super::broken::LinkErrorLog;
use super::config::{Config, RouteCache};
use super::delayed_replies::DelayedReplies;
use super::detours::GratuitousReplyTable;
use super::flows::FlowTable;
use super::jitter::Jitter;
use super::request_table::RequestTable;
use super::route_cache::CachedPaths;
use super::search::{Reachability, Searches};
use super::stats::{IgnoredReason, Stats};
use super::types::{Event, Flow, Packet, Received, Receiver, Signal, Timer, Transmit};
use crate::outbox::Outbox;
use crate::send_buffer::SendBuffer;
use crate::{DropReason, TimerEffect, is_host};
use hopline_core::{Duration, Instant, LinkId, RandomStream, StateMachine, TimerTable};
use hopline_wire::dsr::{DsrOption, Header, RouteError};
use hopline_wire::ipv4::Protocol;
use std::net::Ipv4Addr;
use std::sync::Arc;

/// DSR machine of one node. `M` is the node's handle for a data packet.
///
/// Besides the inputs of [`StateMachine`], the node calls [`send`](Self::send) for every data packet of its own. Packets of other
/// nodes arrive as [`Received`].
#[derive(Clone, Debug)]
pub struct Dsr<M> {
    /// Shared: thousands of nodes with the same parameters read the same memory.
    pub(super) config: Arc<Config>,
    pub(super) address: Ipv4Addr,
    pub(super) jitter: Jitter,
    /// Id of the latest request of this node (RFC 4728 §8.2.1).
    pub(super) request_id: u16,
    /// The route cache; `None` if no routes are remembered.
    pub(super) route_cache: Option<CachedPaths>,
    pub(super) request_table: RequestTable,
    pub(super) searches: Searches,
    pub(super) buffer: SendBuffer<UnroutedPacket<M>>,
    pub(super) outbox: Outbox<Transmit<M>, Event<M>>,
    pub(super) delayed_replies: DelayedReplies<M>,
    pub(super) gratuitous_replies: GratuitousReplyTable,
    /// Route error received last, to be passed to neighbours with the next request (§3.4.4).
    pub(super) pending_error: Option<RouteError>,
    pub(super) link_errors: LinkErrorLog,
    pub(super) flows: FlowTable,
    pub(super) timers: TimerTable<Timer, 3>,
    pub(super) stats: Stats,
}

/// A data packet without its route.
#[derive(Clone, Copy, Debug)]
pub(super) struct UnroutedPacket<M> {
    /// Source address of its IP header.
    pub(super) source: Ipv4Addr,
    /// Time to live on the next hop.
    pub(super) ttl: u8,
    /// Protocol of the payload.
    pub(super) next: Option<Protocol>,
    /// Number of times it was salvaged.
    pub(super) salvage: u8,
    pub(super) packet: M,
}

impl<M: Copy> Packet<M> {
    /// Returns the packet without its route, to be sent over another one.
    pub(super) fn without_route(&self, salvage: u8, carried: M) -> UnroutedPacket<M> {
        let Self { source, ttl, ref header, .. } = *self;
        UnroutedPacket { source, ttl, next: header.next, salvage, packet: carried }
    }
}

impl<M: Copy> Dsr<M> {
    /// A node without routes. `config`: a [`Config`], or an `Arc` of one that many nodes share. `stream`: its jitter.
    #[must_use]
    pub fn new(config: impl Into<Arc<Config>>, address: Ipv4Addr, stream: RandomStream) -> Self {
        let config = config.into();
        let limits = config.limits;
        Self {
            route_cache: match &config.cache {
                RouteCache::Paths(cache) => Some(CachedPaths::new(address, cache)),
                RouteCache::Off(_) => None,
            },
            request_table: RequestTable::new(limits.request_table, config.request_ids),
            searches: Searches::new(limits.request_table),
            buffer: SendBuffer::new(config.buffer_packets, config.buffer_time),
            outbox: Outbox::new(limits.departures),
            delayed_replies: DelayedReplies::new(limits.departures),
            gratuitous_replies: GratuitousReplyTable::new(limits.gratuitous_table),
            pending_error: None,
            link_errors: LinkErrorLog::default(),
            flows: FlowTable::new(limits.request_table),
            request_id: 0,
            jitter: Jitter::new(&config, stream),
            timers: TimerTable::new(),
            stats: Stats::default(),
            config,
            address,
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
        let of_transmit = |transmit: &Transmit<M>| transmit.packet.payload.is_some();
        let of_event = |event: &Event<M>| matches!(event, Event::Deliver { .. } | Event::Drop { .. });
        self.buffer.len() + self.outbox.packets(of_transmit, of_event)
    }

    /// Packets that wait for a route.
    #[must_use]
    pub fn buffered(&self) -> usize {
        self.buffer.len()
    }

    /// Returns the number of destinations with a search, in progress or over. At most
    /// [`Limits::request_table`](super::config::Limits::request_table).
    #[must_use]
    pub fn search_count(&self) -> usize {
        self.searches.len()
    }

    /// Returns whether this node knows a path to `destination` at `now`. Without a route cache: whether its latest search
    /// for a path of its own packets succeeded, and their first hop has not failed since.
    #[must_use]
    pub fn has_route(&self, now: Instant, destination: Ipv4Addr) -> bool {
        match &self.route_cache {
            Some(paths) => paths.find(now, destination).is_some(),
            None => self
                .searches
                .get(destination)
                .is_some_and(|search| search.reachability == Reachability::Found),
        }
    }

    /// The paths in the cache at `now`, each without this node, in the order in which they were learnt.
    pub fn routes(&self, now: Instant) -> impl Iterator<Item = &[Ipv4Addr]> {
        self.route_cache.iter().flat_map(move |paths| paths.iter(now))
    }

    /// Takes a data packet of this node's own. `ttl`: its time to live on the air; `protocol`: its protocol, for the DSR
    /// header. The outputs are polled.
    pub fn send(&mut self, now: Instant, destination: Ipv4Addr, ttl: u8, protocol: Protocol, packet: M) {
        if !is_host(destination) || destination == self.address {
            return self.drop_packet(packet, DropReason::Unroutable);
        }
        if let Some(search) = self.searches.entry(now, destination)
            && search.reachability == Reachability::Unused
        {
            search.reachability = Reachability::Unknown;
        }
        let waiting = UnroutedPacket { source: self.address, ttl, next: Some(protocol), salvage: 0, packet };
        self.route(now, destination, waiting);
        self.set_timers();
    }

    /// Returns the most nodes between source and target of a route. No more than 61 fit into every option.
    pub(super) fn max_path(&self) -> u8 {
        self.config.max_path.get().min(61)
    }

    /// Most hops of a route.
    pub(super) fn max_hops(&self) -> usize {
        usize::from(self.max_path()) + 1
    }

    pub(super) fn drop_packet(&mut self, packet: M, reason: DropReason) {
        self.outbox.events.push_back(Event::Drop { packet, reason });
    }

    /// Sends a packet at once.
    pub(super) fn transmit(&mut self, packet: Packet<M>, next_hop: Ipv4Addr) {
        self.outbox.transmits.push_back(Transmit { packet, next_hop });
    }

    /// Sends a packet of this node without data after `delay`. Returns `false` if too many wait already.
    pub(super) fn transmit_after(&mut self, now: Instant, delay: Duration, transmit: Transmit<M>) -> bool {
        if delay.is_zero() {
            self.outbox.transmits.push_back(transmit);
            return true;
        }
        let room = self.outbox.transmit_at(now + delay, transmit);
        if !room {
            self.stats.ignore(IgnoredReason::OutboxFull);
        }
        room
    }

    /// Returns a packet of this node with options alone.
    pub(super) fn control_packet(
        &self,
        destination: Ipv4Addr,
        ttl: u8,
        options: impl IntoIterator<Item = DsrOption>,
    ) -> Packet<M> {
        let header = Header { next: None, options: options.into_iter().collect() };
        let header = Arc::new(header);
        Packet { source: self.address, destination, ttl, header, payload: None, flow: Flow::Announced }
    }

    /// Sets every timer that follows from the state.
    pub(super) fn set_timers(&mut self) {
        let departure =
            [self.outbox.next_departure(), self.delayed_replies.next_departure()].into_iter().flatten().min();
        let deadlines = [
            (Timer::Departure, departure),
            (Timer::Discovery, self.searches.next_deadline()),
            (Timer::Buffer, self.buffer.next_expiry()),
        ];
        for (timer, deadline) in deadlines {
            self.timers.set(timer, deadline.unwrap_or(Instant::FAR_FUTURE));
        }
    }

    fn on_timer(&mut self, now: Instant, timer: Timer) {
        match timer {
            Timer::Departure => {
                self.outbox.release_due(now);
                self.send_delayed_replies(now);
            }
            Timer::Discovery => self.retry_searches(now),
            Timer::Buffer => self.drop_expired_packets(now),
        }
    }
}

impl<M: Copy> StateMachine for Dsr<M> {
    type Packet = Received<M>;
    type Transmit = Transmit<M>;
    type Signal = Signal<M>;
    type Event = Event<M>;
    type Timer = Timer;

    fn handle_packet(&mut self, now: Instant, _link: LinkId, received: Received<M>) {
        let effect = match received.to {
            Receiver::Other(to) => self.overhear(now, &received, to),
            Receiver::ThisNode if received.packet.destination.is_broadcast() => {
                self.handle_broadcast(now, &received)
            }
            Receiver::ThisNode => {
                self.handle_addressed(now, received);
                TimerEffect::Possible
            }
        };
        if effect == TimerEffect::Possible {
            self.set_timers();
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        while let Some(timer) = self.timers.take_expired(now) {
            self.on_timer(now, timer);
        }
        self.set_timers();
    }

    fn handle_signal(&mut self, now: Instant, signal: Signal<M>) {
        match signal {
            Signal::LinkFailed { neighbour, packet } => self.handle_link_failure(now, neighbour, packet),
        }
        self.set_timers();
    }

    fn poll_transmit(&mut self, _now: Instant) -> Option<Transmit<M>> {
        self.outbox.transmits.pop_front()
    }

    fn poll_timeout(&self) -> Option<(Instant, Timer)> {
        self.timers.next()
    }

    fn poll_event(&mut self) -> Option<Event<M>> {
        self.outbox.events.pop_front()
    }
}
