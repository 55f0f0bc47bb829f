//! Snoop: a base station keeps the packets that go to a mobile host until they are acknowledged, sends those again that got lost on
//! the last hop, and hides from the sender what it has repaired (Balakrishnan, Seshan, Katz 1995, §3).
//!
//! One [`Snoop`] serves all connections of a station. It is asked about every TCP packet that goes to a mobile host
//! ([`Snoop::pass_to_mobile`]) and about every one that comes from there ([`Snoop::pass_from_mobile`]). The fixed host's TCP is untouched, and so
//! is the meaning of an ACK: none is ever sent for data that the mobile host has not acknowledged itself.

mod cache;
mod classic;
mod config;
mod modern;
mod order;
mod stats;
mod told;

pub use crate::filter::{Transmit, Turn};
pub use config::{
    Classic, Config, DuplicateAcks, Expected, LocalTimer, Marks, Modern, NextHole, OldData, Overflow,
    Passing, Repairs, Repeats, Rules, Sampling,
};

use crate::filter::{Filter, OnTheWay};
use crate::hop_window::{HopWindow, Spanned};
use crate::packet::{BareAck, Connection, Packet, Verdict};
use crate::table::{Place, Table};
use cache::{Cache, Cached, Dated, Origin, State};
use hopline_core::{Instant, Payload, Seq32};
use hopline_wire::tcp::{Flags, Segment, Timestamps};
pub use stats::Stats;
use std::collections::VecDeque;
use std::net::IpAddr;

/// Snoop at one station. `K`: a packet as whoever drives the machine keeps it, to send it again.
#[derive(Debug)]
pub struct Snoop<K> {
    config: Config,
    table: Table<Tracked<K>>,
    out: VecDeque<Transmit<K>>,
    stats: Stats,
    /// Of all caches together.
    kept_bytes: u64,
}

/// Snoop with a window on the last hop, if its configuration says so.
pub type Windowed<K> = HopWindow<Snoop<Spanned<K>>, K>;

/// A machine that knows of no connection yet, behind the window that [`Config::hop_window`] describes.
#[must_use]
pub fn windowed<K: Clone>(config: Config) -> Windowed<K> {
    HopWindow::new(config.hop_window, config.bounds, Snoop::new(config))
}

impl<K: Clone> Windowed<K> {
    /// Takes other parameters, as [`Snoop::set_config`]. Returns `false`, and takes nothing, also if there is a window on the last hop and
    /// is to be none, or the other way round.
    #[must_use]
    pub fn set_snoop_config(&mut self, config: Config) -> bool {
        self.has_window() == config.hop_window.is_some()
            && self.machine_mut().set_config(config)
            && self.set_config(config.hop_window)
    }
}

/// What is known of a connection.
#[derive(Debug)]
struct Tracked<K> {
    /// The number after the last that the sender has sent.
    seen: Seq32,
    /// What the mobile host expects next, once it has said so.
    acked: Option<Seq32>,
    /// The mobile host's window, its next number, and its clock, as they were last seen.
    window: u16,
    mobile_seq: Option<Seq32>,
    /// When something came from it last.
    mobile_heard: Option<Instant>,
    timestamps: Option<Timestamps>,
    /// Transmissions so far.
    sent: u32,
    cache: Cache<K>,
    rules: Followed,
}

/// The state of the rules that a connection follows.
#[derive(Debug)]
enum Followed {
    Classic(classic::State),
    Modern(Box<modern::State>),
}

/// What the rules have at hand.
struct Hand<'a, K> {
    now: Instant,
    connection: Connection,
    config: &'a Config,
    out: &'a mut VecDeque<Transmit<K>>,
    stats: &'a mut Stats,
}

/// Numbers farther apart than this are not of one window: the connection is another one, on the same ports.
const FAR: i32 = 1 << 30;

impl<K: Clone> Snoop<K> {
    /// A machine that knows of no connection yet.
    #[must_use]
    pub fn new(config: Config) -> Self {
        let table = Table::new(config.bounds);
        Self { config, table, out: VecDeque::new(), stats: Stats::default(), kept_bytes: 0 }
    }

    /// Takes other parameters, and keeps what is known of connections; the bounds of the table stay as they are. Returns `false`, and
    /// takes nothing, if the rules are of another kind: what is known does not serve them.
    #[must_use]
    pub fn set_config(&mut self, config: Config) -> bool {
        let is_alike = core::mem::discriminant(&self.config.rules) == core::mem::discriminant(&config.rules);
        if is_alike {
            self.config = Config { bounds: self.config.bounds, ..config };
        }
        is_alike
    }

    /// Memory that all kept packets take together, in bytes: at most [`Config::kept_bytes`].
    #[must_use]
    pub const fn kept_bytes(&self) -> u64 {
        self.kept_bytes
    }

    /// A connection has been forgotten.
    fn release(&mut self, tracked: Option<Tracked<K>>) {
        self.kept_bytes -= tracked.map_or(0, |tracked| tracked.cache.bytes());
    }

    /// The cache at a place took `before` bytes.
    fn settle(&mut self, place: Place, before: u64) {
        self.kept_bytes = self.kept_bytes - before + self.table.at(place).cache.bytes();
    }

    /// Forgets connections while all of them keep too much.
    fn make_room(&mut self) {
        while self.kept_bytes > self.config.kept_bytes
            && let Some((_, tracked)) = self.table.take_oldest()
        {
            self.release(Some(tracked));
            self.stats.evicted += 1;
            self.stats.evicted_for_bytes += 1;
        }
    }

    fn begin(&mut self, now: Instant, connection: Connection, seen: Seq32) -> Place {
        let rules = match &self.config.rules {
            // Who is told needs no SACK to know.
            Rules::Modern(rules) if rules.repairs == Repairs::Told => {
                Followed::Modern(Box::new(modern::State::new(rules)))
            }
            rules => Followed::Classic(classic::State::new(rules.classic())),
        };
        let tracked = Tracked {
            seen,
            acked: None,
            window: 0,
            mobile_seq: None,
            mobile_heard: None,
            timestamps: None,
            sent: 0,
            cache: Cache::default(),
            rules,
        };
        let (place, evicted) = self.table.insert(now, connection, tracked);
        let (other, forgotten) = evicted.unzip();
        self.stats.evicted += u64::from(other.is_some_and(|other| other != connection));
        self.release(forgotten);
        place
    }

    /// A question is for whoever is told, known or not.
    fn without_state<P>(&self, segment: &Segment<P>) -> Verdict {
        let told = matches!(&self.config.rules, Rules::Modern(rules) if rules.repairs == Repairs::Told);
        if segment.options.nack && !segment.options.sack.is_empty() && told {
            Verdict::Absorb
        } else {
            Verdict::Forward
        }
    }

    /// A station has not got this. What was asked of another host passes.
    fn take_nack<P>(
        &mut self,
        now: Instant,
        place: Place,
        connection: Connection,
        segment: &Segment<P>,
    ) -> Verdict {
        let (numbers, missing) = ([segment.seq, segment.ack], segment.options.sack);
        let tracked = self.table.at(place);
        let (config, out, stats) = (&self.config, &mut self.out, &mut self.stats);
        let mut hand = Hand { now, connection, config, out, stats };
        let verdict = match &tracked.rules {
            Followed::Modern(state) if state.repairs == Repairs::Told => {
                told::take_nack(tracked, &mut hand, numbers, &missing)
            }
            Followed::Modern(_) | Followed::Classic(_) => Verdict::Forward,
        };
        self.stats.acks_absorbed += u64::from(verdict == Verdict::Absorb);
        self.look(place);
        verdict
    }

    /// Arranges to be woken for a connection.
    fn look(&mut self, place: Place) {
        let heard = self.table.heard(place);
        let tracked = self.table.at(place);
        let at = match &tracked.rules {
            Followed::Classic(state) => state.next_wake(&self.config.rules, &tracked.cache, heard),
            Followed::Modern(state) => state.next_wake(&tracked.cache, tracked.acked),
        };
        self.table.look(place, at);
    }
}

impl<K: Clone> Filter<K> for Snoop<K> {
    type Stats = Stats;

    fn pass_to_mobile<P: Payload>(
        &mut self,
        now: Instant,
        packet: Packet<'_, P>,
        keep: impl FnOnce() -> K,
    ) -> Verdict {
        let (connection, segment) = (Connection::to_mobile(packet), packet.segment);
        if segment.flags.contains(Flags::RST) {
            let forgotten = self.table.remove(&connection);
            self.release(forgotten);
            return Verdict::Forward;
        }
        if segment.flags.contains(Flags::SYN) {
            let place = self.begin(now, connection, segment.seq_end());
            if agrees_on_sack(segment) {
                self.table.at(place).learn_of_sack(&self.config.rules);
            }
            return Verdict::Forward;
        }
        if segment.seq_len() == 0 {
            return Verdict::Forward;
        }
        let known = self.table.find(&connection);
        let place = match known.filter(|place| is_near(self.table.at(*place).seen, segment.seq)) {
            Some(place) => {
                // A keep-alive says nothing of the host (RFC 9293 §3.8.4).
                if !self.table.at(place).is_settled(segment.seq_end()) {
                    self.table.hear_at(now, place);
                }
                place
            }
            None => self.begin(now, connection, segment.seq),
        };
        let tracked = self.table.at(place);
        let before = tracked.cache.bytes();
        let clock = segment.options.timestamps.map_or(0, |timestamps| timestamps.value);
        let (data, seen) = (Data { seq: segment.seq, end: segment.seq_end(), clock }, tracked.seen);
        let mut hand =
            Hand { now, connection, config: &self.config, out: &mut self.out, stats: &mut self.stats };
        let verdict = match &tracked.rules {
            Followed::Classic(_) => classic::take_data(tracked, &mut hand, data, keep),
            Followed::Modern(_) => modern::take_data(tracked, &mut hand, data, keep),
        };
        if matches!(&tracked.rules, Followed::Modern(state) if state.repairs == Repairs::Told) {
            told::note_sent(tracked, &mut hand, segment, (data, seen));
        }
        self.look(place);
        self.settle(place, before);
        self.make_room();
        verdict
    }

    fn pass_from_mobile<P: Payload>(&mut self, now: Instant, packet: Packet<'_, P>) -> Verdict {
        let (connection, segment) = (Connection::from_mobile(packet), packet.segment);
        let begins = segment.flags.contains(Flags::SYN) && !segment.flags.contains(Flags::ACK);
        if segment.flags.contains(Flags::RST) || begins {
            let forgotten = self.table.remove(&connection);
            self.release(forgotten);
            return Verdict::Forward;
        }
        let Some(place) = self.table.hear(now, &connection) else { return self.without_state(segment) };
        if segment.options.nack {
            return match segment.options.sack.is_empty() {
                // That of the other host. It acknowledges nothing that was not acknowledged before.
                true => Verdict::Forward,
                false => self.take_nack(now, place, connection, segment),
            };
        }
        let tracked = self.table.at(place);
        if agrees_on_sack(segment) || !segment.options.sack.is_empty() {
            tracked.learn_of_sack(&self.config.rules);
        }
        if !segment.flags.contains(Flags::ACK) {
            return Verdict::Forward;
        }
        // Whoever acknowledges what was not sent is hostile, or speaks of a connection that passed by here unseen.
        if segment.ack.after(tracked.seen) {
            self.stats.acks_beyond += 1;
            return Verdict::Forward;
        }
        let ack = Ack {
            number: segment.ack,
            kind: match tracked.acked {
                Some(acked) if segment.ack.before(acked) => Kind::Old,
                Some(acked) if segment.ack == acked => tracked.repeats(&self.config.rules, segment),
                _ => Kind::New,
            },
            has_data: segment.seq_len() > 0,
            sack: segment.options.sack,
        };
        if ack.kind != Kind::Old {
            tracked.acked = Some(segment.ack);
            tracked.window = segment.window;
        }
        tracked.hear_mobile(now, segment.seq_end(), segment.options.timestamps);
        let before = tracked.cache.bytes();
        let mut hand =
            Hand { now, connection, config: &self.config, out: &mut self.out, stats: &mut self.stats };
        let verdict = match &tracked.rules {
            Followed::Classic(_) => classic::take_ack(tracked, &mut hand, ack),
            Followed::Modern(_) => modern::take_ack(tracked, &mut hand, ack),
        };
        // What else the packet says is for the fixed host.
        let verdict = if ack.has_data && verdict == Verdict::Absorb { Verdict::Forward } else { verdict };
        match verdict {
            Verdict::Forward => {}
            Verdict::ForwardWith(_) => self.stats.acks_edited += 1,
            Verdict::Absorb => self.stats.acks_absorbed += 1,
        }
        self.look(place);
        self.settle(place, before);
        verdict
    }

    fn note(&mut self, now: Instant, connection: Connection, seq: Seq32, way: OnTheWay) {
        let Some(place) = self.table.find(&connection) else { return };
        let tracked = self.table.at(place);
        let before = tracked.cache.bytes();
        match (way, &tracked.rules) {
            (OnTheWay::Waits, _) => tracked.waits(now, seq),
            (OnTheWay::Leaves, _) => tracked.leaves(now, seq),
            (OnTheWay::Refused, Followed::Classic(_)) => {
                classic::refused(tracked, &self.config, &mut self.stats, seq)
            }
            (OnTheWay::Refused, Followed::Modern(_)) => modern::refused(tracked, &mut self.stats, seq),
        }
        self.look(place);
        self.settle(place, before);
    }

    fn forget_mobile(&mut self, mobile: IpAddr) {
        for (_, tracked) in self.table.take_all(|connection| connection.mobile.0 == mobile) {
            self.release(Some(tracked));
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        while let Some(due) = self.table.next_due(now) {
            match due {
                Err((_, tracked)) => {
                    self.stats.expired += 1;
                    self.release(Some(tracked));
                }
                Ok((place, connection)) => {
                    let heard = self.table.heard(place);
                    let tracked = self.table.at(place);
                    let (config, out, stats) = (&self.config, &mut self.out, &mut self.stats);
                    let mut hand = Hand { now, connection, config, out, stats };
                    match &tracked.rules {
                        Followed::Classic(_) => classic::handle_timeout(tracked, &mut hand, heard),
                        Followed::Modern(_) => modern::handle_timeout(tracked, &mut hand),
                    }
                    self.look(place);
                }
            }
        }
    }

    fn poll_transmit(&mut self) -> Option<Transmit<K>> {
        self.out.pop_front()
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.table.next_look()
    }

    fn stats(&self) -> Stats {
        self.stats
    }

    fn connections(&self) -> usize {
        self.table.len()
    }
}

/// A packet with data, as the rules see it.
#[derive(Clone, Copy, Debug)]
struct Data {
    seq: Seq32,
    end: Seq32,
    /// The sender's clock, 0 if he does not say.
    clock: u32,
}

/// An ACK, as the rules see it.
#[derive(Clone, Copy, Debug)]
struct Ack {
    number: Seq32,
    kind: Kind,
    has_data: bool,
    sack: hopline_wire::tcp::SackBlocks,
}

/// What an ACK is beside the last one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// It acknowledges more.
    New,
    /// It acknowledges the same, while something is under way, and says nothing else: by [`DuplicateAcks`].
    Duplicate,
    /// It acknowledges the same, and is there for another reason: data, the answer to a probe, a window that changed (S1).
    Other,
    /// It acknowledges less.
    Old,
}

impl<K> Tracked<K> {
    /// Returns what an ACK is that repeats the last number.
    fn repeats<P: Payload>(&self, rules: &Rules, segment: &Segment<P>) -> Kind {
        let duplicates = match &self.rules {
            Followed::Classic(_) => rules.classic().duplicate_acks,
            // Senders with SACK do not count an ACK that changes the window.
            Followed::Modern(_) => DuplicateAcks::SameWindow,
        };
        let under_way = self.acked.is_some_and(|acked| self.seen.after(acked));
        let is_alike = duplicates == DuplicateAcks::SameNumber || segment.window == self.window;
        if under_way && segment.seq_len() == 0 && is_alike { Kind::Duplicate } else { Kind::Other }
    }

    /// The hosts have agreed on SACK: from now on the mobile host tells what it has.
    fn learn_of_sack(&mut self, rules: &Rules) {
        if let (Rules::Modern(rules), Followed::Classic(_)) = (rules, &self.rules) {
            self.rules = Followed::Modern(Box::new(modern::State::new(rules)));
        }
    }

    /// Remembers how far the mobile host is with what it sends itself. An ACK in its name must not look older than what passed: the
    /// fixed host would not take it (RFC 9293 §3.10.7.4, RFC 7323 §5).
    fn hear_mobile(&mut self, now: Instant, end: Seq32, timestamps: Option<Timestamps>) {
        self.mobile_heard = Some(now);
        self.mobile_seq = Some(self.mobile_seq.map_or(end, |known| known.max(end)));
        let is_older = |new: Timestamps, known: Timestamps| Seq32(new.value).before(Seq32(known.value));
        if let Some(new) = timestamps.filter(|&new| self.timestamps.is_none_or(|known| !is_older(new, known)))
        {
            self.timestamps = Some(new);
        }
    }

    /// The latest of the sender's clock that the mobile host has taken (TS.Recent).
    fn echo(&self) -> Option<u32> {
        self.timestamps.map(|timestamps| timestamps.echo)
    }

    /// Whether the mobile host has everything before `end`.
    fn has_acked(&self, end: Seq32) -> bool {
        self.acked.is_some_and(|acked| !end.after(acked))
    }

    /// Returns whether the mobile host has everything that the sender has sent, data up to `end` among it.
    fn is_settled(&self, end: Seq32) -> bool {
        self.acked == Some(self.seen) && !end.after(self.seen)
    }

    /// Returns whether the station answers what comes again and the mobile host has.
    fn answers_old(&self, now: Instant, rule: OldData) -> bool {
        let within = match rule {
            OldData::Acknowledged => config::ANSWERED,
            OldData::AcknowledgedWhileAlive => config::ALIVE,
            OldData::Forwarded => return false,
        };
        self.mobile_heard.is_some_and(|heard| now.since(heard) <= within)
    }

    /// What was kept waits before the last hop.
    fn waits(&mut self, now: Instant, seq: Seq32) {
        if let Followed::Modern(state) = &mut self.rules {
            state.waits(now);
        }
        if let Some(cached) = self.cache.at(seq).filter(|cached| cached.state == State::Sent) {
            cached.state = State::Waiting;
        }
    }

    /// It waits no more: it is sent now.
    fn leaves(&mut self, now: Instant, seq: Seq32) {
        if let Followed::Modern(state) = &mut self.rules {
            state.leaves(now);
        }
        let Self { cache, sent, .. } = self;
        if let Some(cached) = cache.at(seq).filter(|cached| cached.state == State::Waiting) {
            (cached.state, cached.sent, cached.order) = (State::Sent, now, next(sent));
        }
    }

    /// Keeps a packet that is sent now.
    fn keep(&mut self, now: Instant, data: Data, by: Origin, kept: K) {
        let order = next(&mut self.sent);
        let Data { seq, end, clock, .. } = data;
        self.cache.insert(Cached {
            seq,
            end,
            sent: now,
            order,
            from_sender: order,
            clock,
            local: 0,
            by,
            state: State::Sent,
            dated: Dated::AsSent,
            kept,
        });
    }
}

impl<K: Clone> Hand<'_, K> {
    /// Sends a packet again. `sent`: the transmissions of the connection so far.
    fn send_again(&mut self, cached: &mut Cached<K>, sent: &mut u32) {
        (cached.sent, cached.order) = (self.now, next(sent));
        cached.local = cached.local.saturating_add(1);
        self.stats.local_retransmissions += 1;
        let turn = match &self.config.rules {
            Rules::Classic(rules) => rules.turn,
            Rules::Modern(_) => Turn::First,
        };
        let (connection, kept) = (self.connection, cached.kept.clone());
        let clock = (cached.dated == Dated::Anew).then_some(cached.clock);
        self.out.push_back(Transmit::Again { turn, connection, kept, clock });
    }

    /// Tells the sender what the mobile host has said last.
    fn acknowledge(&mut self, tracked: &Tracked<K>) {
        let (Some(ack), Some(seq)) = (tracked.acked, tracked.mobile_seq) else { return };
        let Tracked { window, timestamps, .. } = *tracked;
        self.stats.acks_made += 1;
        self.out.push_back(Transmit::Ack(BareAck {
            connection: self.connection,
            seq,
            ack,
            window,
            timestamps,
        }));
    }
}

/// The number of the next transmission, after so many.
const fn next(sent: &mut u32) -> u32 {
    *sent = sent.wrapping_add(1);
    *sent
}

/// Whether a segment answers a call that offered SACK, and takes it (RFC 2018 §2).
const fn agrees_on_sack<P>(segment: &Segment<P>) -> bool {
    segment.flags.contains(Flags::SYN) && segment.flags.contains(Flags::ACK) && segment.options.sack_permitted
}

fn is_near(a: Seq32, b: Seq32) -> bool {
    (-FAR..FAR).contains(&a.distance_from(b))
}

#[cfg(test)]
mod tests;
