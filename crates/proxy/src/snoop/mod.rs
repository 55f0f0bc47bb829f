//! Snoop: a base station caches packets to a mobile host until they are acknowledged, retransmits those that
//! the last hop has lost, and suppresses the duplicate ACKs of repaired losses (Balakrishnan, Seshan, Katz
//! 1995, §3).
//!
//! One [`Snoop`] serves all connections of a base station. It returns a verdict on every TCP packet to a
//! mobile host ([`Snoop::pass_to_mobile`]) and from one ([`Snoop::pass_from_mobile`]). The fixed host's TCP
//! is unchanged, and so is the meaning of an ACK: none is ever sent for data that the mobile host has not
//! acknowledged itself.

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

/// Snoop at one base station. `K`: a packet as the caller stores it, to retransmit it.
#[derive(Debug)]
pub struct Snoop<K> {
    config: Config,
    table: Table<Tracked<K>>,
    out: VecDeque<Transmit<K>>,
    stats: Stats,
    /// Bytes of all caches.
    kept_bytes: u64,
}

/// Snoop with a window on the last hop, if it is configured.
pub type Windowed<K> = HopWindow<Snoop<Spanned<K>>, K>;

/// Creates a Snoop without connections, behind the window that [`Config::hop_window`] describes.
#[must_use]
pub fn windowed<K: Clone>(config: Config) -> Windowed<K> {
    HopWindow::new(config.hop_window, config.bounds, Snoop::new(config))
}

impl<K: Clone> Windowed<K> {
    /// Sets other parameters, as [`Snoop::set_config`]. Returns `false`, and changes nothing, also if this
    /// would add or remove the window on the last hop.
    #[must_use]
    pub fn set_snoop_config(&mut self, config: Config) -> bool {
        self.has_window() == config.hop_window.is_some()
            && self.machine_mut().set_config(config)
            && self.set_config(config.hop_window)
    }
}

/// State of a connection.
#[derive(Debug)]
struct Tracked<K> {
    /// End of the highest sequence number sent.
    seen: Seq32,
    /// Next byte that the mobile host expects, once known.
    acked: Option<Seq32>,
    /// Last seen window, next sequence number and timestamps of the mobile host.
    window: u16,
    mobile_seq: Option<Seq32>,
    /// Time of the last packet from the mobile host.
    mobile_heard: Option<Instant>,
    timestamps: Option<Timestamps>,
    /// Number of transmissions so far.
    sent: u32,
    cache: Cache<K>,
    rules: Followed,
}

/// State of the rules that a connection follows.
#[derive(Debug)]
enum Followed {
    Classic(classic::State),
    Modern(Box<modern::State>),
}

/// Context of a call of the rules.
struct Hand<'a, K> {
    now: Instant,
    connection: Connection,
    config: &'a Config,
    out: &'a mut VecDeque<Transmit<K>>,
    stats: &'a mut Stats,
}

/// Minimum distance of sequence numbers that belong to different windows: beyond it, a new connection reuses
/// the ports.
const FAR: i32 = 1 << 30;

impl<K: Clone> Snoop<K> {
    /// Creates a Snoop without connections.
    #[must_use]
    pub fn new(config: Config) -> Self {
        let table = Table::new(config.bounds);
        Self { config, table, out: VecDeque::new(), stats: Stats::default(), kept_bytes: 0 }
    }

    /// Sets other parameters, and keeps the state of connections; the limits of the table stay as they are.
    /// Returns `false`, and changes nothing, if the rules are of another kind, which cannot use that state.
    #[must_use]
    pub fn set_config(&mut self, config: Config) -> bool {
        let is_alike = core::mem::discriminant(&self.config.rules) == core::mem::discriminant(&config.rules);
        if is_alike {
            self.config = Config { bounds: self.config.bounds, ..config };
        }
        is_alike
    }

    /// Returns the memory of all cached packets, bytes: at most [`Config::kept_bytes`].
    #[must_use]
    pub const fn kept_bytes(&self) -> u64 {
        self.kept_bytes
    }

    /// Subtracts the memory of a removed connection.
    fn release(&mut self, tracked: Option<Tracked<K>>) {
        self.kept_bytes -= tracked.map_or(0, |tracked| tracked.cache.bytes());
    }

    /// Updates the memory in use after a change; the cache at this place took `before` bytes.
    fn settle(&mut self, place: Place, before: u64) {
        self.kept_bytes = self.kept_bytes - before + self.table.at(place).cache.bytes();
    }

    /// Evicts connections while their caches are too large together.
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
            // Repairs by negative acknowledgments do not need SACK.
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

    /// Returns the verdict on a packet of an unknown connection. Negative acknowledgments are for this host
    /// if it is the sending one.
    fn without_state<P>(&self, segment: &Segment<P>) -> Verdict {
        let told = matches!(&self.config.rules, Rules::Modern(rules) if rules.repairs == Repairs::Told);
        if segment.options.nack && !segment.options.sack.is_empty() && told {
            Verdict::Absorb
        } else {
            Verdict::Forward
        }
    }

    /// Handles a negative acknowledgment of a base station. A request for another host passes.
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

    /// Sets the timer of a connection.
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
                // A keep-alive tells nothing about the mobile host (RFC 9293 §3.8.4), and does not count as
                // activity.
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
                // It is a request for the other host, and acknowledges nothing new.
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
        // An ACK of data that were not sent is hostile, or belongs to a connection of which packets took
        // another path.
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
        // The rest of the packet is for the fixed host.
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

/// Sequence range and timestamp of a packet with data.
#[derive(Clone, Copy, Debug)]
struct Data {
    seq: Seq32,
    end: Seq32,
    /// TSval of the sender; 0 if there is none.
    clock: u32,
}

/// Acknowledgment of a segment, as the rules see it.
#[derive(Clone, Copy, Debug)]
struct Ack {
    number: Seq32,
    kind: Kind,
    has_data: bool,
    sack: hopline_wire::tcp::SackBlocks,
}

/// Relation of an ACK to the last one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// It acknowledges new data.
    New,
    /// It repeats the last number while data are in flight, and counts as a duplicate by [`DuplicateAcks`].
    Duplicate,
    /// It repeats the last number for another reason: data, the answer to a probe, a changed window (S1).
    Other,
    /// It acknowledges less.
    Old,
}

impl<K> Tracked<K> {
    /// Returns the kind of an ACK that repeats the last number.
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

    /// Switches to the rules with SACK: the hosts have agreed on it.
    fn learn_of_sack(&mut self, rules: &Rules) {
        if let (Rules::Modern(rules), Followed::Classic(_)) = (rules, &self.rules) {
            self.rules = Followed::Modern(Box::new(modern::State::new(rules)));
        }
    }

    /// Records sequence number and timestamp of the mobile host. An ACK on its behalf must not look older
    /// than what passed: the fixed host would discard it (RFC 9293 §3.10.7.4, RFC 7323 §5).
    fn hear_mobile(&mut self, now: Instant, end: Seq32, timestamps: Option<Timestamps>) {
        self.mobile_heard = Some(now);
        self.mobile_seq = Some(self.mobile_seq.map_or(end, |known| known.max(end)));
        let is_older = |new: Timestamps, known: Timestamps| Seq32(new.value).before(Seq32(known.value));
        if let Some(new) = timestamps.filter(|&new| self.timestamps.is_none_or(|known| !is_older(new, known)))
        {
            self.timestamps = Some(new);
        }
    }

    /// Returns the latest TSval of the sender that the mobile host has accepted (TS.Recent).
    fn echo(&self) -> Option<u32> {
        self.timestamps.map(|timestamps| timestamps.echo)
    }

    /// Returns whether the mobile host has everything before `end`.
    fn has_acked(&self, end: Seq32) -> bool {
        self.acked.is_some_and(|acked| !end.after(acked))
    }

    /// Returns whether the mobile host has everything that the sender has sent, including data up to `end`.
    fn is_settled(&self, end: Seq32) -> bool {
        self.acked == Some(self.seen) && !end.after(self.seen)
    }

    /// Returns whether data that the mobile host has are acknowledged on its behalf.
    fn answers_old(&self, now: Instant, rule: OldData) -> bool {
        let within = match rule {
            OldData::Acknowledged => config::ANSWERED,
            OldData::AcknowledgedWhileAlive => config::ALIVE,
            OldData::Forwarded => return false,
        };
        self.mobile_heard.is_some_and(|heard| now.since(heard) <= within)
    }

    /// Records that a cached packet waits before the last hop.
    fn waits(&mut self, now: Instant, seq: Seq32) {
        if let Followed::Modern(state) = &mut self.rules {
            state.waits(now);
        }
        if let Some(cached) = self.cache.at(seq).filter(|cached| cached.state == State::Sent) {
            cached.state = State::Waiting;
        }
    }

    /// Records that a waiting packet is sent now.
    fn leaves(&mut self, now: Instant, seq: Seq32) {
        if let Followed::Modern(state) = &mut self.rules {
            state.leaves(now);
        }
        let Self { cache, sent, .. } = self;
        if let Some(cached) = cache.at(seq).filter(|cached| cached.state == State::Waiting) {
            (cached.state, cached.sent, cached.order) = (State::Sent, now, next(sent));
        }
    }

    /// Caches a packet that is sent now.
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
    /// Retransmits a packet. `sent`: number of transmissions of the connection so far.
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

    /// Repeats the last acknowledgment of the mobile host to the sender.
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

/// Returns the number of the next transmission.
const fn next(sent: &mut u32) -> u32 {
    *sent = sent.wrapping_add(1);
    *sent
}

/// Returns whether a segment is a SYN-ACK that accepts SACK (RFC 2018 §2).
const fn agrees_on_sack<P>(segment: &Segment<P>) -> bool {
    segment.flags.contains(Flags::SYN) && segment.flags.contains(Flags::ACK) && segment.options.sack_permitted
}

fn is_near(a: Seq32, b: Seq32) -> bool {
    (-FAR..FAR).contains(&a.distance_from(b))
}

#[cfg(test)]
mod tests;
