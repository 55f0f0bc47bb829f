//! D-Proxy: both ends of a lossy link repair what it loses of TCP (Murray, Koziniec, Dixon, "Solving Ack Inefficiencies in 802.11
//! Networks", IMSAA 2009, §III-C), so that the link itself need not acknowledge every frame.
//!
//! Each end of the link has one [`DProxy`], which is both sides of the paper's pair: it keeps the data that go out over the link, and it
//! sees by their sequence numbers what is missing of those that come in. What is missing it asks the other end for, over UDP; what has
//! come meanwhile it holds, and lets go on in order. ACKs and what they mean are untouched: TCP ends where it always did. Both are soft
//! state: an end that begins anew costs throughput and at most [`holes::Recovery::patience`](Recovery::patience) of delay, never
//! correctness. An end whose driver finds that the other one is not there ([`DProxy::peer_left`]) lets all packets pass. On a path with several such links each has a pair of its own.
//!
//! Where the packets are not TCP, or are encrypted, [`opaque`] numbers them itself.

mod cache;
mod config;
mod detect;
mod holes;
mod key;
mod messages;
pub mod opaque;
mod peer;
mod translation;

use crate::filter::Turn;
use crate::packet::{Connection, Packet};
use crate::table::{Place, Table};
use cache::{Kept, Left, Ring};
pub use config::{Caching, Config, Expansion, Holding, Overflow};
use detect::{Detect, Hand, Released, Span};
use holes::Requests;
pub use holes::{OrderRule, Recovery, RecoveryStats, Samples, Timeouts};
use hopline_core::{Instant, Payload, Seq32};
use hopline_wire::dproxy::Sealed;
use hopline_wire::tcp::{Flags, Segment};
pub(crate) use key::Seen;
pub use key::{Key, REPLAY_WINDOW};
use peer::Other;
use std::collections::VecDeque;
use std::net::IpAddr;
use translation::Names;
pub use translation::Translation;

/// One end of a link. `K`: a packet as whoever drives the machine keeps it, to send it again or to let it go on later.
#[derive(Debug)]
pub struct DProxy<K> {
    config: Config,
    table: Table<Tracked<K>>,
    ring: Ring<K, Place>,
    requests: Requests<Span>,
    names: Names,
    /// Packets that wait, of all flows.
    held: u32,
    other: Other,
    out: VecDeque<Does<K>>,
    stats: Stats,
}

/// What becomes of a packet that has come over the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Verdict {
    /// It goes on, before all that [`DProxy::poll`] has.
    Forward,
    /// The machine has it: [`Does::Releases`] gives it back.
    Held,
}

/// What an end does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Does<K> {
    /// It sends a packet over the link again. [`Turn::First`]: ahead of all that waits for the link, and after what goes ahead of that
    /// already.
    Replays(Turn, K),
    /// It lets a packet that it has held go on.
    Releases(K),
    /// It sends a message to the other end, as a UDP datagram between ports [`hopline_wire::dproxy::PORT`].
    Sends {
        /// The other end's address.
        to: IpAddr,
        /// Turn at the link: requests and answers as [`Config::turn`] says, what tells of the last packet behind that.
        turn: Turn,
        /// The message.
        sealed: Sealed,
    },
}

/// What an end has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Data packets kept as they went out.
    pub cached: u64,
    /// Packets that made room for others, or were too old.
    pub evicted: u64,
    /// Packets not kept because the queue of the link refused them.
    pub refused: u64,
    /// Packets sent again.
    pub replayed: u64,
    /// Packets wished for that were sent again just now.
    pub under_way: u64,
    /// Packets wished for that were sent again too often.
    pub exhausted: u64,
    /// Requests for what is not kept.
    pub not_kept: u64,
    /// Messages that told of a last packet.
    pub tail_probes: u64,
    /// Packets that waited for others.
    pub held: u64,
    /// Times that something was given up because too much waited.
    pub overflowed: u64,
    /// Times that more was missing than is asked for.
    pub too_many: u64,
    /// ACK numbers of what was never sent.
    pub senseless_acks: u64,
    /// Messages that are none: cut short, too long, of another version or type.
    pub malformed: u64,
    /// Messages that do not come from the other end.
    pub foreign: u64,
    /// Messages that came while the other end was not known to be there: of a former session, or one that has just begun.
    pub early: u64,
    /// Messages without the right proof.
    pub forged: u64,
    /// Messages whose number has come before, or is too old.
    pub replays_refused: u64,
    /// Messages of flows that are not known.
    pub unknown_flows: u64,
    /// Answers to what was not asked.
    pub unasked: u64,
    /// Connections forgotten to make room for others.
    pub flows_evicted: u64,
    /// Connections forgotten because nothing passed any more.
    pub flows_expired: u64,
}

/// What is known of a connection: of the flow that goes out over the link, and of the one that comes in.
#[derive(Debug)]
struct Tracked<K> {
    kept: Kept,
    /// Of the SYN that went out, if one did.
    initial: Option<Seq32>,
    /// When something new went out last, and how often the other end was told of it.
    new_at: Instant,
    told: u8,
    detect: Option<Detect<K>>,
}

impl<K> Tracked<K> {
    const fn new(now: Instant) -> Self {
        Self { kept: Kept::new(), initial: None, new_at: now, told: 0, detect: None }
    }
}

impl<K: Clone> DProxy<K> {
    /// An end that knows of no connection yet. The other end is there, and both have the key of the configuration for what they say.
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

    /// A packet is about to cross the link; nothing keeps it from that. `keep` makes of it what can be sent again.
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

    /// A packet has come over the link. `keep` makes of it what can go on later.
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

    /// The queue of the link has refused this packet, or dropped it later: it will not cross. Who drives the machine and cannot know says
    /// nothing.
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

    /// Does what is due.
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

    /// The next thing to do.
    pub fn poll(&mut self) -> Option<Does<K>> {
        self.out.pop_front()
    }

    /// When to call [`DProxy::handle_timeout`].
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.table.next_look().into_iter().chain(self.ring.next_end()).min()
    }

    /// What it has done.
    #[must_use]
    pub const fn stats(&self) -> &Stats {
        &self.stats
    }

    /// What it has done about what was missing.
    #[must_use]
    pub const fn recovery(&self) -> &RecoveryStats {
        self.requests.stats()
    }

    /// The average time from a request to its replay.
    #[must_use]
    pub const fn recovery_time(&self) -> hopline_core::Duration {
        self.requests.average()
    }

    /// Connections that it knows of.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.table.len()
    }

    /// Packets that wait here.
    #[must_use]
    pub const fn held(&self) -> u32 {
        self.held
    }

    /// Packets that are kept.
    #[must_use]
    pub const fn cached(&self) -> usize {
        self.ring.len()
    }

    /// Where a connection is, which may be new.
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

    /// A SYN goes out: what is kept of an earlier connection is of no use (C12).
    fn begin_outgoing(&mut self, connection: &Connection, initial: Seq32) {
        if let Some(place) = self.table.find(connection) {
            let tracked = self.table.at(place);
            if tracked.initial.replace(initial) != Some(initial) {
                tracked.kept.clear(&mut self.ring);
            }
        }
    }

    /// A SYN has come: it sets the first number (C12), unless it is a copy of the one that did.
    fn begin_incoming(&mut self, now: Instant, place: Place, initial: Seq32, edge: Seq32) -> Released {
        let detect = &mut self.table.at(place).detect;
        if detect.as_ref().is_some_and(|detect| detect.began_with(initial)) {
            return Released::Nothing;
        }
        let before = detect.replace(Detect::new(initial, edge));
        before.map_or(Released::Nothing, |mut before| before.release_all(&mut self.hand(now)))
    }

    /// A flow that is seen first in its midst, or is another one than before, begins with this packet.
    fn begin_if_strange(&mut self, now: Instant, place: Place, first: Span) -> Option<Released> {
        let detect = &mut self.table.at(place).detect;
        if detect.as_ref().is_some_and(|detect| detect.is_near(first.from)) {
            return None;
        }
        let before = detect.replace(Detect::midway(first));
        Some(before.map_or(Released::Nothing, |mut before| before.release_all(&mut self.hand(now))))
    }

    /// A packet goes on, behind what goes on because of it.
    fn behind(&mut self, released: Released, keep: impl FnOnce() -> K) -> Verdict {
        match released {
            Released::Nothing => Verdict::Forward,
            Released::Some => {
                self.out.push_back(Does::Releases(keep()));
                Verdict::Held
            }
        }
    }

    /// Has the detecting half of a connection do something, and sends what it asks for.
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

    /// The connections, and what they share.
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

    /// A connection wants to be looked at.
    fn wake(&mut self, now: Instant, place: Place, connection: Connection) {
        self.detecting(now, place, |detect, hand| detect.expire(hand));
        self.tell_of_tail(now, place, connection);
    }

    /// A connection is over. Whether packets of it waited.
    fn forget(&mut self, now: Instant, connection: &Connection) -> Released {
        self.table.remove(connection).map_or(Released::Nothing, |tracked| self.bury(now, tracked))
    }

    /// Lets go of what belonged to a connection.
    fn bury(&mut self, now: Instant, mut tracked: Tracked<K>) -> Released {
        tracked.kept.clear(&mut self.ring);
        tracked.detect.map_or(Released::Nothing, |mut detect| detect.release_all(&mut self.hand(now)))
    }

    /// One packet more is to be kept.
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

/// Whether a segment takes up numbers: data, or a FIN (C12).
fn has_data<P: Payload>(segment: &Segment<P>) -> bool {
    segment.payload.len() > 0 || segment.flags.contains(Flags::FIN)
}

#[cfg(test)]
mod tests;
