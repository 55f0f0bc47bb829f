//! D-Proxy: both ends of a lossy link repair its losses of TCP segments (Murray, Koziniec, Dixon, "Solving
//! Ack Inefficiencies in 802.11 Networks", IMSAA 2009, §III-C), so that the link itself need not acknowledge
//! every frame.
//!
//! Each end of the link has one [`DProxy`], which is both sides of the paper's pair. It caches the data that
//! go out over the link, and detects by sequence numbers which incoming data are missing. It requests missing
//! data from the other end over UDP. Packets that arrive meanwhile wait, and are forwarded in order. ACKs are
//! not changed: TCP stays end-to-end. All state is soft: a restart of an end costs throughput and at most
//! [`RecoveryConfig::max_wait`](RecoveryConfig::max_wait) of delay, never correctness. While the other end is
//! absent ([`DProxy::handle_peer_absent`]), all packets pass. On a path with several such links each link has its own
//! pair.
//!
//! [`opaque`] is the mode for packets that are not TCP, or are encrypted: it numbers them itself.

mod cache;
mod config;
mod holes;
mod key;
mod loss_detection;
mod messages;
pub mod opaque;
mod peer;
mod presence;
mod tracked;
mod translation;
mod types;

use crate::packet::{Connection, Packet};
use crate::table::{Table, TableIndex};
use cache::{Evicted, PacketCache};
pub use config::{CacheConfig, Config, HoleDelivery, QueueDropHandling, RequestExpansion};
use holes::RequestScheduler;
pub use holes::{OrderRule, RecoveryConfig, RecoveryStats, SampleRule, TimeoutRule};
use hopline_core::{Instant, Payload, Seq32};
use hopline_wire::tcp::{Flags, Segment};
pub(crate) use key::ReplayWindow;
pub use key::{Key, REPLAY_WINDOW};
use loss_detection::{Context, LossDetector, Released, SequenceRange};
use peer::PeerState;
use std::collections::VecDeque;
use tracked::ConnectionState;
use translation::TranslatedFlows;
pub use translation::Translation;
pub use types::{DProxyAction, Stats, Verdict};

/// One end of a link. `K`: a packet as the caller stores it, to replay or forward it later.
#[derive(Debug)]
pub struct DProxy<K> {
    config: Config,
    table: Table<ConnectionState<K>>,
    cache: PacketCache<K, TableIndex>,
    requests: RequestScheduler<SequenceRange>,
    translated_flows: TranslatedFlows,
    /// Waiting packets of all flows.
    waiting_packets: u32,
    peer: PeerState,
    actions: VecDeque<DProxyAction<K>>,
    stats: Stats,
}

impl<K: Clone> DProxy<K> {
    /// Creates an end without connections. The other end is present, and both use the key of the
    /// configuration.
    #[must_use]
    pub fn new(config: Config) -> Self {
        Self {
            config,
            table: Table::new(config.limits),
            cache: PacketCache::new(config.cache),
            requests: RequestScheduler::new(config.recovery),
            translated_flows: TranslatedFlows::new(config.translation),
            waiting_packets: 0,
            peer: PeerState::present([config.key; 2]),
            actions: VecDeque::new(),
            stats: Stats::default(),
        }
    }

    /// Handles a packet that is about to cross the link; it is always forwarded. `keep` stores the packet so
    /// that it can be replayed.
    pub fn pass_out<P: Payload>(&mut self, now: Instant, packet: Packet<'_, P>, keep: impl FnOnce() -> K) {
        let segment = packet.segment;
        if !self.peer.is_present {
            return;
        }
        if !occupies_sequence_space(segment)
            && !segment.flags.contains(Flags::RST)
            && !segment.flags.contains(Flags::SYN)
        {
            return;
        }
        let connection = Connection::to_mobile(packet);
        if segment.flags.contains(Flags::RST) {
            self.remove_connection(now, &connection);
            return;
        }
        if segment.flags.contains(Flags::SYN) {
            self.start_outgoing(&connection, segment.seq);
            return;
        }
        let place = self.entry(now, connection);
        self.make_room(now);
        let number = self.cache.push(now, place, keep());
        let tracked = self.table.state_mut(place);
        let numbers = (segment.seq, segment.seq_end());
        if tracked.cached.highest_sent().is_none_or(|edge| numbers.1.after(edge)) {
            (tracked.last_new_data, tracked.tail_probes) = (now, 0);
        }
        let evicted = tracked.cached.push(numbers, number, self.config.cache.packets_per_flow);
        self.stats.cached += 1;
        if let Some(evicted) = evicted {
            self.stats.evicted += 1;
            self.cache.remove(evicted);
        }
        if let Some(after) = self.config.tail_probe_delay {
            self.table.set_timer(place, Some(now + after));
        }
    }

    /// Handles a packet that has come over the link. `keep` stores the packet so that it can be forwarded
    /// later.
    pub fn pass_in<P: Payload>(
        &mut self,
        now: Instant,
        packet: Packet<'_, P>,
        keep: impl FnOnce() -> K,
    ) -> Verdict {
        let (connection, segment) = (Connection::from_mobile(packet), packet.segment);
        if !self.peer.is_present {
            return Verdict::Forward;
        }
        if segment.flags.contains(Flags::RST) {
            let released = self.remove_connection(now, &connection);
            return self.forward_after(released, keep);
        }
        let is_syn = segment.flags.contains(Flags::SYN);
        let known = self.table.touch(now, &connection);
        if let Some(place) = known.filter(|_| segment.flags.contains(Flags::ACK)) {
            let kept = &mut self.table.state_mut(place).cached;
            if kept.highest_sent().is_some() && !kept.acknowledge(segment.ack, &mut self.cache) {
                self.stats.invalid_acks += 1;
            }
        }
        if !is_syn && !occupies_sequence_space(segment) {
            return Verdict::Forward; // §4.6: what has no data waits for nothing
        }
        let place = known.unwrap_or_else(|| self.entry(now, connection));
        if is_syn {
            let released = self.start_incoming(now, place, segment.seq, segment.seq_end());
            return self.forward_after(released, keep);
        }
        let span = SequenceRange { from: segment.seq, to: segment.seq_end() };
        if let Some(released) = self.start_if_unrelated(now, place, span) {
            return self.forward_after(released, keep);
        }
        let verdict = self.with_detector(now, place, |detect, hand| detect.handle_data(hand, span, keep));
        verdict.unwrap_or(Verdict::Forward)
    }

    /// Records that the link's queue has refused this packet, or dropped it later: it will not cross. A
    /// caller that cannot know makes no call.
    pub fn on_queue_drop<P: Payload>(&mut self, packet: Packet<'_, P>) {
        if self.config.overflow == QueueDropHandling::Replayed || !occupies_sequence_space(packet.segment) {
            return;
        }
        if let Some(place) = self.table.find(&Connection::to_mobile(packet))
            && let Some(number) = self.table.state_mut(place).cached.remove(packet.segment.seq)
        {
            self.stats.refused += 1;
            self.cache.remove(number);
        }
    }

    /// Does what is due at `now`.
    pub fn handle_timeout(&mut self, now: Instant) {
        while let Some(due) = self.table.next_due(now) {
            match due {
                Ok((place, connection)) => self.handle_connection_timeout(now, place, connection),
                Err((_, tracked)) => {
                    self.stats.flows_expired += 1;
                    self.release_state(now, tracked);
                }
            }
        }
        self.evict_expired(now);
    }

    /// Returns the next action.
    pub fn poll_action(&mut self) -> Option<DProxyAction<K>> {
        self.actions.pop_front()
    }

    /// Returns the time of the next call of [`DProxy::handle_timeout`].
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.table.poll_timeout().into_iter().chain(self.cache.next_expiry()).min()
    }

    /// Returns the counters.
    #[must_use]
    pub const fn stats(&self) -> &Stats {
        &self.stats
    }

    /// Returns the counters of the recovery.
    #[must_use]
    pub const fn recovery(&self) -> &RecoveryStats {
        self.requests.stats()
    }

    /// Returns the average time from a request to its replay.
    #[must_use]
    pub const fn recovery_time(&self) -> hopline_core::Duration {
        self.requests.recovery_average()
    }

    /// Returns the number of known connections.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.table.len()
    }

    /// Returns the number of waiting packets.
    #[must_use]
    pub const fn waiting_packets(&self) -> u32 {
        self.waiting_packets
    }

    /// Returns the number of cached packets.
    #[must_use]
    pub const fn cached(&self) -> usize {
        self.cache.len()
    }

    /// Returns the place of a connection, which is added if it is new.
    fn entry(&mut self, now: Instant, connection: Connection) -> TableIndex {
        if let Some(place) = self.table.touch(now, &connection) {
            return place;
        }
        let (place, evicted) = self.table.insert(now, connection, ConnectionState::new(now));
        if let Some((_, tracked)) = evicted {
            self.stats.flows_evicted += 1;
            self.release_state(now, tracked);
        }
        place
    }

    /// Handles an outgoing SYN: packets of an earlier connection are dropped from the cache (C12).
    fn start_outgoing(&mut self, connection: &Connection, initial: Seq32) {
        if let Some(place) = self.table.find(connection) {
            let tracked = self.table.state_mut(place);
            if tracked.initial_seq.replace(initial) != Some(initial) {
                tracked.cached.clear(&mut self.cache);
            }
        }
    }

    /// Handles an incoming SYN: it sets the initial sequence number (C12), unless it is a duplicate.
    fn start_incoming(&mut self, now: Instant, place: TableIndex, initial: Seq32, edge: Seq32) -> Released {
        let detect = &mut self.table.state_mut(place).loss_detector;
        if detect.as_ref().is_some_and(|detect| detect.started_with(initial)) {
            return Released::Nothing;
        }
        let before = detect.replace(LossDetector::new(initial, edge));
        before.map_or(Released::Nothing, |mut before| before.give_up_all(&mut self.context(now)))
    }

    /// Begins a flow with this packet if it is seen first in its midst, or is not the flow of before.
    fn start_if_unrelated(
        &mut self,
        now: Instant,
        place: TableIndex,
        first: SequenceRange,
    ) -> Option<Released> {
        let detect = &mut self.table.state_mut(place).loss_detector;
        if detect.as_ref().is_some_and(|detect| detect.is_near(first.from)) {
            return None;
        }
        let before = detect.replace(LossDetector::from_mid_flow(first));
        Some(before.map_or(Released::Nothing, |mut before| before.give_up_all(&mut self.context(now))))
    }

    /// Forwards a packet, behind those that it releases.
    fn forward_after(&mut self, released: Released, keep: impl FnOnce() -> K) -> Verdict {
        match released {
            Released::Nothing => Verdict::Forward,
            Released::Some => {
                self.actions.push_back(DProxyAction::Forward(keep()));
                Verdict::Delayed
            }
        }
    }

    /// Calls the receiving half of a connection, then sends its requests.
    fn with_detector<T>(
        &mut self,
        now: Instant,
        place: TableIndex,
        does: impl FnOnce(&mut LossDetector<K>, &mut Context<'_, K>) -> T,
    ) -> Option<T> {
        let (table, mut hand) = self.table_and_context(now);
        let detect = table.state_mut(place).loss_detector.as_mut()?;
        let done = does(detect, &mut hand);
        let due = detect.poll_timeout();
        if self.requests.has_pending() {
            self.send_requests(place);
        }
        self.table.set_timer(place, due);
        Some(done)
    }

    fn context(&mut self, now: Instant) -> Context<'_, K> {
        self.table_and_context(now).1
    }

    /// Returns the connections, and the state that they share.
    fn table_and_context(&mut self, now: Instant) -> (&mut Table<ConnectionState<K>>, Context<'_, K>) {
        let hand = Context {
            now,
            config: &self.config,
            requests: &mut self.requests,
            waiting_packets: &mut self.waiting_packets,
            actions: &mut self.actions,
            stats: &mut self.stats,
        };
        (&mut self.table, hand)
    }

    /// Does what is due for a connection.
    fn handle_connection_timeout(&mut self, now: Instant, place: TableIndex, connection: Connection) {
        self.with_detector(now, place, |detect, hand| detect.handle_timeout(hand));
        self.send_tail_probe(now, place, connection);
    }

    /// Removes a connection. Returns whether packets of it waited.
    fn remove_connection(&mut self, now: Instant, connection: &Connection) -> Released {
        self.table.remove(connection).map_or(Released::Nothing, |tracked| self.release_state(now, tracked))
    }

    /// Releases the state of a connection.
    fn release_state(&mut self, now: Instant, mut tracked: ConnectionState<K>) -> Released {
        tracked.cached.clear(&mut self.cache);
        tracked
            .loss_detector
            .map_or(Released::Nothing, |mut detect| detect.give_up_all(&mut self.context(now)))
    }

    /// Makes room for one more packet.
    fn make_room(&mut self, now: Instant) {
        if self.cache.is_full()
            && let Some(left) = self.cache.pop()
        {
            self.on_evicted(&left);
        }
        self.evict_expired(now);
    }

    fn evict_expired(&mut self, now: Instant) {
        while let Some(left) = self.cache.pop_expired(now) {
            self.on_evicted(&left);
        }
    }

    fn on_evicted(&mut self, left: &Evicted<K, TableIndex>) {
        self.stats.evicted += 1;
        if let Some(tracked) = self.table.get_mut(left.owner) {
            tracked.cached.on_evicted(left.number);
        }
    }
}

/// Returns whether a segment occupies sequence numbers: data, or a FIN (C12).
fn occupies_sequence_space<P: Payload>(segment: &Segment<P>) -> bool {
    segment.payload.len() > 0 || segment.flags.contains(Flags::FIN)
}

#[cfg(test)]
mod tests;
