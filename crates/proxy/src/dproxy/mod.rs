//! D-Proxy: both ends of a lossy link repair its losses of TCP segments (Murray, Koziniec, Dixon, "Solving
//! Ack Inefficiencies in 802.11 Networks", IMSAA 2009, §III-C), so that the link itself need not acknowledge
//! every frame.
//!
//! Each end of the link has one [`DProxy`], which is both sides of the paper's pair. It caches the data that
//! go out over the link, and detects by sequence numbers which incoming data are missing. It requests missing
//! data from the other end over UDP. Packets that arrive meanwhile wait, and are forwarded in order. ACKs are
//! not changed: TCP stays end-to-end. All state is soft: a restart of an end costs throughput and at most
//! [`holes::Recovery::patience`](Recovery::patience) of delay, never correctness. While the other end is
//! absent ([`DProxy::peer_left`]), all packets pass. On a path with several such links each link has its own
//! pair.
//!
//! [`opaque`] is the mode for packets that are not TCP, or are encrypted: it numbers them itself.

mod cache;
mod config;
mod detect;
mod holes;
mod key;
mod messages;
pub mod opaque;
mod peer;
mod presence;
mod tracked;
mod translation;
mod types;

use crate::packet::{Connection, Packet};
use crate::table::{Place, Table};
use cache::{Left, Ring};
pub use config::{Caching, Config, Expansion, Holding, Overflow};
use detect::{Detect, Hand, Released, Span};
use holes::Requests;
pub use holes::{OrderRule, Recovery, RecoveryStats, Samples, Timeouts};
use hopline_core::{Instant, Payload, Seq32};
use hopline_wire::tcp::{Flags, Segment};
pub(crate) use key::Seen;
pub use key::{Key, REPLAY_WINDOW};
use peer::Other;
use std::collections::VecDeque;
use tracked::Tracked;
use translation::Names;
pub use translation::Translation;
pub use types::{Does, Stats, Verdict};

/// One end of a link. `K`: a packet as the caller stores it, to replay or forward it later.
#[derive(Debug)]
pub struct DProxy<K> {
    config: Config,
    table: Table<Tracked<K>>,
    ring: Ring<K, Place>,
    requests: Requests<Span>,
    names: Names,
    /// Waiting packets of all flows.
    held: u32,
    other: Other,
    out: VecDeque<Does<K>>,
    stats: Stats,
}

impl<K: Clone> DProxy<K> {
    /// Creates an end without connections. The other end is present, and both use the key of the
    /// configuration.
    #[must_use]
    pub fn new(config: Config) -> Self {
        Self {
            config,
            table: Table::new(config.bounds),
            ring: Ring::new(config.caching),
            requests: Requests::new(config.recovery),
            names: Names::new(config.translation),
            held: 0,
            other: Other::there([config.key; 2]),
            out: VecDeque::new(),
            stats: Stats::default(),
        }
    }

    /// Handles a packet that is about to cross the link; it is always forwarded. `keep` stores the packet so
    /// that it can be replayed.
    pub fn pass_out<P: Payload>(&mut self, now: Instant, packet: Packet<'_, P>, keep: impl FnOnce() -> K) {
        let segment = packet.segment;
        if !self.other.is_there {
            return;
        }
        if !has_data(segment) && !segment.flags.contains(Flags::RST) && !segment.flags.contains(Flags::SYN) {
            return;
        }
        let connection = Connection::to_mobile(packet);
        if segment.flags.contains(Flags::RST) {
            self.forget(now, &connection);
            return;
        }
        if segment.flags.contains(Flags::SYN) {
            self.begin_outgoing(&connection, segment.seq);
            return;
        }
        let place = self.place(now, connection);
        self.make_room(now);
        let number = self.ring.push(now, place, keep());
        let tracked = self.table.at(place);
        let numbers = (segment.seq, segment.seq_end());
        if tracked.kept.edge().is_none_or(|edge| numbers.1.after(edge)) {
            (tracked.new_at, tracked.told) = (now, 0);
        }
        let evicted = tracked.kept.push(numbers, number, self.config.caching.packets_per_flow);
        self.stats.cached += 1;
        if let Some(evicted) = evicted {
            self.stats.evicted += 1;
            self.ring.free(evicted);
        }
        if let Some(after) = self.config.tail_probe {
            self.table.look(place, Some(now + after));
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
        if !self.other.is_there {
            return Verdict::Forward;
        }
        if segment.flags.contains(Flags::RST) {
            let released = self.forget(now, &connection);
            return self.behind(released, keep);
        }
        let is_syn = segment.flags.contains(Flags::SYN);
        let known = self.table.hear(now, &connection);
        if let Some(place) = known.filter(|_| segment.flags.contains(Flags::ACK)) {
            let kept = &mut self.table.at(place).kept;
            if kept.edge().is_some() && !kept.acknowledge(segment.ack, &mut self.ring) {
                self.stats.senseless_acks += 1;
            }
        }
        if !is_syn && !has_data(segment) {
            return Verdict::Forward; // §4.6: what has no data waits for nothing
        }
        let place = known.unwrap_or_else(|| self.place(now, connection));
        if is_syn {
            let released = self.begin_incoming(now, place, segment.seq, segment.seq_end());
            return self.behind(released, keep);
        }
        let span = Span { from: segment.seq, to: segment.seq_end() };
        if let Some(released) = self.begin_if_strange(now, place, span) {
            return self.behind(released, keep);
        }
        let verdict = self.detecting(now, place, |detect, hand| detect.take(hand, span, keep));
        verdict.unwrap_or(Verdict::Forward)
    }

    /// Records that the link's queue has refused this packet, or dropped it later: it will not cross. A
    /// caller that cannot know makes no call.
    pub fn refused<P: Payload>(&mut self, packet: Packet<'_, P>) {
        if self.config.overflow == Overflow::Repaired || !has_data(packet.segment) {
            return;
        }
        if let Some(place) = self.table.find(&Connection::to_mobile(packet))
            && let Some(number) = self.table.at(place).kept.remove(packet.segment.seq)
        {
            self.stats.refused += 1;
            self.ring.free(number);
        }
    }

    /// Does what is due at `now`.
    pub fn handle_timeout(&mut self, now: Instant) {
        while let Some(due) = self.table.next_due(now) {
            match due {
                Ok((place, connection)) => self.wake(now, place, connection),
                Err((_, tracked)) => {
                    self.stats.flows_expired += 1;
                    self.bury(now, tracked);
                }
            }
        }
        self.drop_old(now);
    }

    /// Returns the next action.
    pub fn poll(&mut self) -> Option<Does<K>> {
        self.out.pop_front()
    }

    /// Returns the time of the next call of [`DProxy::handle_timeout`].
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.table.next_look().into_iter().chain(self.ring.next_end()).min()
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
        self.requests.average()
    }

    /// Returns the number of known connections.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.table.len()
    }

    /// Returns the number of waiting packets.
    #[must_use]
    pub const fn held(&self) -> u32 {
        self.held
    }

    /// Returns the number of cached packets.
    #[must_use]
    pub const fn cached(&self) -> usize {
        self.ring.len()
    }

    /// Returns the place of a connection, which is added if it is new.
    fn place(&mut self, now: Instant, connection: Connection) -> Place {
        if let Some(place) = self.table.hear(now, &connection) {
            return place;
        }
        let (place, evicted) = self.table.insert(now, connection, Tracked::new(now));
        if let Some((_, tracked)) = evicted {
            self.stats.flows_evicted += 1;
            self.bury(now, tracked);
        }
        place
    }

    /// Handles an outgoing SYN: packets of an earlier connection are dropped from the cache (C12).
    fn begin_outgoing(&mut self, connection: &Connection, initial: Seq32) {
        if let Some(place) = self.table.find(connection) {
            let tracked = self.table.at(place);
            if tracked.initial.replace(initial) != Some(initial) {
                tracked.kept.clear(&mut self.ring);
            }
        }
    }

    /// Handles an incoming SYN: it sets the initial sequence number (C12), unless it is a duplicate.
    fn begin_incoming(&mut self, now: Instant, place: Place, initial: Seq32, edge: Seq32) -> Released {
        let detect = &mut self.table.at(place).detect;
        if detect.as_ref().is_some_and(|detect| detect.began_with(initial)) {
            return Released::Nothing;
        }
        let before = detect.replace(Detect::new(initial, edge));
        before.map_or(Released::Nothing, |mut before| before.release_all(&mut self.hand(now)))
    }

    /// Begins a flow with this packet if it is seen first in its midst, or is not the flow of before.
    fn begin_if_strange(&mut self, now: Instant, place: Place, first: Span) -> Option<Released> {
        let detect = &mut self.table.at(place).detect;
        if detect.as_ref().is_some_and(|detect| detect.is_near(first.from)) {
            return None;
        }
        let before = detect.replace(Detect::midway(first));
        Some(before.map_or(Released::Nothing, |mut before| before.release_all(&mut self.hand(now))))
    }

    /// Forwards a packet, behind those that it releases.
    fn behind(&mut self, released: Released, keep: impl FnOnce() -> K) -> Verdict {
        match released {
            Released::Nothing => Verdict::Forward,
            Released::Some => {
                self.out.push_back(Does::Releases(keep()));
                Verdict::Held
            }
        }
    }

    /// Calls the receiving half of a connection, then sends its requests.
    fn detecting<T>(
        &mut self,
        now: Instant,
        place: Place,
        does: impl FnOnce(&mut Detect<K>, &mut Hand<'_, K>) -> T,
    ) -> Option<T> {
        let (table, mut hand) = self.split(now);
        let detect = table.at(place).detect.as_mut()?;
        let done = does(detect, &mut hand);
        let due = detect.due();
        if self.requests.has_asked() {
            self.send_requests(place);
        }
        self.table.look(place, due);
        Some(done)
    }

    fn hand(&mut self, now: Instant) -> Hand<'_, K> {
        self.split(now).1
    }

    /// Returns the connections, and the state that they share.
    fn split(&mut self, now: Instant) -> (&mut Table<Tracked<K>>, Hand<'_, K>) {
        let hand = Hand {
            now,
            config: &self.config,
            requests: &mut self.requests,
            held: &mut self.held,
            out: &mut self.out,
            stats: &mut self.stats,
        };
        (&mut self.table, hand)
    }

    /// Does what is due for a connection.
    fn wake(&mut self, now: Instant, place: Place, connection: Connection) {
        self.detecting(now, place, |detect, hand| detect.expire(hand));
        self.tell_of_tail(now, place, connection);
    }

    /// Removes a connection. Returns whether packets of it waited.
    fn forget(&mut self, now: Instant, connection: &Connection) -> Released {
        self.table.remove(connection).map_or(Released::Nothing, |tracked| self.bury(now, tracked))
    }

    /// Releases the state of a connection.
    fn bury(&mut self, now: Instant, mut tracked: Tracked<K>) -> Released {
        tracked.kept.clear(&mut self.ring);
        tracked.detect.map_or(Released::Nothing, |mut detect| detect.release_all(&mut self.hand(now)))
    }

    /// Makes room for one more packet.
    fn make_room(&mut self, now: Instant) {
        if self.ring.is_full()
            && let Some(left) = self.ring.pop()
        {
            self.evicted(&left);
        }
        self.drop_old(now);
    }

    fn drop_old(&mut self, now: Instant) {
        while let Some(left) = self.ring.pop_old(now) {
            self.evicted(&left);
        }
    }

    fn evicted(&mut self, left: &Left<K, Place>) {
        self.stats.evicted += 1;
        if let Some(tracked) = self.table.tenant(left.owner) {
            tracked.kept.evicted(left.number);
        }
    }
}

/// Returns whether a segment occupies sequence numbers: data, or a FIN (C12).
fn has_data<P: Payload>(segment: &Segment<P>) -> bool {
    segment.payload.len() > 0 || segment.flags.contains(Flags::FIN)
}

#[cfg(test)]
mod tests;
