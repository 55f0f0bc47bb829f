//! Snoop: a base station caches packets to a mobile host until they are acknowledged, retransmits those that
//! the last hop has lost, and suppresses the duplicate ACKs of repaired losses (Balakrishnan, Seshan, Katz
//! 1995, §3).
//!
//! One [`Snoop`] serves all connections of a base station. It returns a verdict on every TCP packet to a
//! mobile host ([`Snoop::handle_packet_to_mobile`]) and from one ([`Snoop::handle_packet_from_mobile`]). The fixed host's TCP
//! is unchanged, and so is the meaning of an ACK: none is ever sent for data that the mobile host has not
//! acknowledged itself.

mod cache;
mod classic;
mod config;
mod modern;
mod nack_host;
mod reordering;
mod stats;

pub use crate::pep::{QueuePosition, Transmit};
pub use config::{
    ClassicRules, Config, DuplicateAcks, ExpectedDuplicates, LocalTimer, LossDetection, ModernRules,
    NextHole, OldData, PassPolicy, QueueDropHandling, RepeatedDuplicates, Rules, Sampling,
    SenderRetransmissionMarks,
};

use crate::hop_window::{HopWindow, StoredPacket};
use crate::packet::{BareAck, Connection, Packet, Verdict};
use crate::pep::{LastHopProgress, Pep};
use crate::table::{Table, TableIndex};
use cache::{Cache, CachedPacket, Origin, State, TimestampSource};
use hopline_core::{Instant, Payload, Seq32};
use hopline_wire::tcp::{Flags, Segment, Timestamps};
pub use stats::Stats;
use std::collections::VecDeque;
use std::net::IpAddr;

/// Snoop at one base station. `K`: a packet as the caller stores it, to retransmit it.
#[derive(Debug)]
pub struct Snoop<K> {
    config: Config,
    table: Table<ConnectionState<K>>,
    outgoing: VecDeque<Transmit<K>>,
    stats: Stats,
    /// Bytes of all caches.
    cached_bytes: u64,
}

/// Snoop with a window on the last hop, if it is configured.
pub type WindowedSnoop<K> = HopWindow<Snoop<StoredPacket<K>>, K>;

/// Creates a Snoop without connections, behind the window that [`Config::hop_window`] describes.
#[must_use]
pub fn windowed<K: Clone>(config: Config) -> WindowedSnoop<K> {
    HopWindow::new(config.hop_window, config.limits, Snoop::new(config))
}

impl<K: Clone> WindowedSnoop<K> {
    /// Sets other parameters, as [`Snoop::set_config`]. Returns `false`, and changes nothing, also if this
    /// would add or remove the window on the last hop.
    #[must_use]
    pub fn set_snoop_config(&mut self, config: Config) -> bool {
        self.has_window() == config.hop_window.is_some()
            && self.middlebox_mut().set_config(config)
            && self.set_config(config.hop_window)
    }
}

/// State of a connection.
#[derive(Debug)]
struct ConnectionState<K> {
    /// End of the highest sequence number sent.
    highest_sent: Seq32,
    /// Next byte that the mobile host expects, once known.
    acked: Option<Seq32>,
    /// Last seen window, next sequence number and timestamps of the mobile host.
    window: u16,
    mobile_seq: Option<Seq32>,
    /// Time of the last packet from the mobile host.
    last_mobile_packet: Option<Instant>,
    timestamps: Option<Timestamps>,
    /// Number of transmissions so far.
    transmissions: u32,
    cache: Cache<K>,
    rules: RulesState,
}

/// State of the rules that a connection follows.
#[derive(Debug)]
enum RulesState {
    Classic(classic::ClassicState),
    Modern(Box<modern::ModernState>),
}

/// Context of a call of the rules.
struct Context<'a, K> {
    now: Instant,
    connection: Connection,
    config: &'a Config,
    outgoing: &'a mut VecDeque<Transmit<K>>,
    stats: &'a mut Stats,
}

/// Minimum distance of sequence numbers that belong to different windows: beyond it, a new connection reuses
/// the ports.
const MAX_SEQ_DISTANCE: i32 = 1 << 30;

impl<K: Clone> Snoop<K> {
    /// Creates a Snoop without connections.
    #[must_use]
    pub fn new(config: Config) -> Self {
        let table = Table::new(config.limits);
        Self { config, table, outgoing: VecDeque::new(), stats: Stats::default(), cached_bytes: 0 }
    }

    /// Sets other parameters, and keeps the state of connections; the limits of the table stay as they are.
    /// Returns `false`, and changes nothing, if the rules are of another kind, which cannot use that state.
    #[must_use]
    pub fn set_config(&mut self, config: Config) -> bool {
        let is_alike = core::mem::discriminant(&self.config.rules) == core::mem::discriminant(&config.rules);
        if is_alike {
            self.config = Config { limits: self.config.limits, ..config };
        }
        is_alike
    }

    /// Returns the memory of all cached packets, bytes: at most [`Config::max_cached_bytes`].
    #[must_use]
    pub const fn cached_bytes(&self) -> u64 {
        self.cached_bytes
    }

    /// Subtracts the memory of a removed connection.
    fn subtract_memory(&mut self, tracked: Option<ConnectionState<K>>) {
        self.cached_bytes -= tracked.map_or(0, |tracked| tracked.cache.bytes());
    }

    /// Updates the memory in use after a change; the cache at this place took `before` bytes.
    fn update_memory(&mut self, place: TableIndex, before: u64) {
        self.cached_bytes = self.cached_bytes - before + self.table.state_mut(place).cache.bytes();
    }

    /// Evicts connections while their caches are too large together.
    fn make_room(&mut self) {
        while self.cached_bytes > self.config.max_cached_bytes
            && let Some((_, tracked)) = self.table.remove_oldest()
        {
            self.subtract_memory(Some(tracked));
            self.stats.evicted += 1;
            self.stats.evicted_for_bytes += 1;
        }
    }

    fn insert_connection(&mut self, now: Instant, connection: Connection, seen: Seq32) -> TableIndex {
        let rules = match &self.config.rules {
            // Repairs by negative acknowledgments do not need SACK.
            Rules::Modern(rules) if rules.loss_detection == LossDetection::ByNack => {
                RulesState::Modern(Box::new(modern::ModernState::new(rules)))
            }
            rules => RulesState::Classic(classic::ClassicState::new(rules.classic())),
        };
        let tracked = ConnectionState {
            highest_sent: seen,
            acked: None,
            window: 0,
            mobile_seq: None,
            last_mobile_packet: None,
            timestamps: None,
            transmissions: 0,
            cache: Cache::default(),
            rules,
        };
        let (place, evicted) = self.table.insert(now, connection, tracked);
        let (other, forgotten) = evicted.unzip();
        self.stats.evicted += u64::from(other.is_some_and(|other| other != connection));
        self.subtract_memory(forgotten);
        place
    }

    /// Returns the verdict on a packet of an unknown connection. Negative acknowledgments are for this host
    /// if it is the sending one.
    fn without_state<P>(&self, segment: &Segment<P>) -> Verdict {
        let told = matches!(&self.config.rules, Rules::Modern(rules) if rules.loss_detection == LossDetection::ByNack);
        if segment.options.nack && !segment.options.sack.is_empty() && told {
            Verdict::Absorb
        } else {
            Verdict::Forward
        }
    }

    /// Handles a negative acknowledgment of a base station. A request for another host passes.
    fn handle_nack<P>(
        &mut self,
        now: Instant,
        place: TableIndex,
        connection: Connection,
        segment: &Segment<P>,
    ) -> Verdict {
        let (numbers, missing) = ([segment.seq, segment.ack], segment.options.sack);
        let tracked = self.table.state_mut(place);
        let (config, out, stats) = (&self.config, &mut self.outgoing, &mut self.stats);
        let mut hand = Context { now, connection, config, outgoing: out, stats };
        let verdict = match &tracked.rules {
            RulesState::Modern(state) if state.loss_detection == LossDetection::ByNack => {
                nack_host::handle_nack(tracked, &mut hand, numbers, &missing)
            }
            RulesState::Modern(_) | RulesState::Classic(_) => Verdict::Forward,
        };
        self.stats.acks_absorbed += u64::from(verdict == Verdict::Absorb);
        self.set_timer(place);
        verdict
    }

    /// Sets the timer of a connection.
    fn set_timer(&mut self, place: TableIndex) {
        let heard = self.table.last_packet(place);
        let tracked = self.table.state_mut(place);
        let at = match &tracked.rules {
            RulesState::Classic(state) => state.poll_timeout(&self.config.rules, &tracked.cache, heard),
            RulesState::Modern(state) => state.poll_timeout(&tracked.cache, tracked.acked),
        };
        self.table.set_timer(place, at);
    }
}

impl<K: Clone> Pep<K> for Snoop<K> {
    type Stats = Stats;

    fn handle_packet_to_mobile<P: Payload>(
        &mut self,
        now: Instant,
        packet: Packet<'_, P>,
        keep: impl FnOnce() -> K,
    ) -> Verdict {
        let (connection, segment) = (Connection::to_mobile(packet), packet.segment);
        if segment.flags.contains(Flags::RST) {
            let forgotten = self.table.remove(&connection);
            self.subtract_memory(forgotten);
            return Verdict::Forward;
        }
        if segment.flags.contains(Flags::SYN) {
            let place = self.insert_connection(now, connection, segment.seq_end());
            if accepts_sack(segment) {
                self.table.state_mut(place).enable_sack(&self.config.rules);
            }
            return Verdict::Forward;
        }
        if segment.seq_len() == 0 {
            return Verdict::Forward;
        }
        let known = self.table.find(&connection);
        let place =
            match known.filter(|place| is_near(self.table.state_mut(*place).highest_sent, segment.seq)) {
                Some(place) => {
                    // A keep-alive tells nothing about the mobile host (RFC 9293 §3.8.4), and does not count as
                    // activity.
                    if !self.table.state_mut(place).is_fully_acked(segment.seq_end()) {
                        self.table.touch_at(now, place);
                    }
                    place
                }
                None => self.insert_connection(now, connection, segment.seq),
            };
        let tracked = self.table.state_mut(place);
        let before = tracked.cache.bytes();
        let clock = segment.options.timestamps.map_or(0, |timestamps| timestamps.value);
        let (data, seen) =
            (DataSegment { seq: segment.seq, end: segment.seq_end(), tsval: clock }, tracked.highest_sent);
        let mut hand = Context {
            now,
            connection,
            config: &self.config,
            outgoing: &mut self.outgoing,
            stats: &mut self.stats,
        };
        let verdict = match &tracked.rules {
            RulesState::Classic(_) => classic::handle_data(tracked, &mut hand, data, keep),
            RulesState::Modern(_) => modern::handle_data(tracked, &mut hand, data, keep),
        };
        if matches!(&tracked.rules, RulesState::Modern(state) if state.loss_detection == LossDetection::ByNack)
        {
            nack_host::record_sent(tracked, &mut hand, segment, (data, seen));
        }
        self.set_timer(place);
        self.update_memory(place, before);
        self.make_room();
        verdict
    }

    fn handle_packet_from_mobile<P: Payload>(&mut self, now: Instant, packet: Packet<'_, P>) -> Verdict {
        let (connection, segment) = (Connection::from_mobile(packet), packet.segment);
        let begins = segment.flags.contains(Flags::SYN) && !segment.flags.contains(Flags::ACK);
        if segment.flags.contains(Flags::RST) || begins {
            let forgotten = self.table.remove(&connection);
            self.subtract_memory(forgotten);
            return Verdict::Forward;
        }
        let Some(place) = self.table.touch(now, &connection) else { return self.without_state(segment) };
        if segment.options.nack {
            return match segment.options.sack.is_empty() {
                // It is a request for the other host, and acknowledges nothing new.
                true => Verdict::Forward,
                false => self.handle_nack(now, place, connection, segment),
            };
        }
        let tracked = self.table.state_mut(place);
        if accepts_sack(segment) || !segment.options.sack.is_empty() {
            tracked.enable_sack(&self.config.rules);
        }
        if !segment.flags.contains(Flags::ACK) {
            return Verdict::Forward;
        }
        // An ACK of data that were not sent is hostile, or belongs to a connection of which packets took
        // another path.
        if segment.ack.after(tracked.highest_sent) {
            self.stats.acks_of_unsent_data += 1;
            return Verdict::Forward;
        }
        let ack = Ack {
            number: segment.ack,
            kind: match tracked.acked {
                Some(acked) if segment.ack.before(acked) => AckKind::Old,
                Some(acked) if segment.ack == acked => tracked.classify_repeated(&self.config.rules, segment),
                _ => AckKind::New,
            },
            has_data: segment.seq_len() > 0,
            sack: segment.options.sack,
        };
        if ack.kind != AckKind::Old {
            tracked.acked = Some(segment.ack);
            tracked.window = segment.window;
        }
        tracked.record_mobile_segment(now, segment.seq_end(), segment.options.timestamps);
        let before = tracked.cache.bytes();
        let mut hand = Context {
            now,
            connection,
            config: &self.config,
            outgoing: &mut self.outgoing,
            stats: &mut self.stats,
        };
        let verdict = match &tracked.rules {
            RulesState::Classic(_) => classic::handle_ack(tracked, &mut hand, ack),
            RulesState::Modern(_) => modern::handle_ack(tracked, &mut hand, ack),
        };
        // The rest of the packet is for the fixed host.
        let verdict = if ack.has_data && verdict == Verdict::Absorb { Verdict::Forward } else { verdict };
        match verdict {
            Verdict::Forward => {}
            Verdict::ForwardWith(_) => self.stats.acks_rewritten += 1,
            Verdict::Absorb => self.stats.acks_absorbed += 1,
        }
        self.set_timer(place);
        self.update_memory(place, before);
        verdict
    }

    fn handle_progress(&mut self, now: Instant, connection: Connection, seq: Seq32, way: LastHopProgress) {
        let Some(place) = self.table.find(&connection) else { return };
        let tracked = self.table.state_mut(place);
        let before = tracked.cache.bytes();
        match (way, &tracked.rules) {
            (LastHopProgress::Queued, _) => tracked.on_queued(now, seq),
            (LastHopProgress::Sent, _) => tracked.on_sent(now, seq),
            (LastHopProgress::Dropped, RulesState::Classic(_)) => {
                classic::on_queue_drop(tracked, &self.config, &mut self.stats, seq)
            }
            (LastHopProgress::Dropped, RulesState::Modern(_)) => {
                modern::on_queue_drop(tracked, &mut self.stats, seq)
            }
        }
        self.set_timer(place);
        self.update_memory(place, before);
    }

    fn handle_departure(&mut self, mobile: IpAddr) {
        for (_, tracked) in self.table.remove_where(|connection| connection.mobile.0 == mobile) {
            self.subtract_memory(Some(tracked));
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        while let Some(due) = self.table.next_due(now) {
            match due {
                Err((_, tracked)) => {
                    self.stats.expired += 1;
                    self.subtract_memory(Some(tracked));
                }
                Ok((place, connection)) => {
                    let heard = self.table.last_packet(place);
                    let tracked = self.table.state_mut(place);
                    let (config, out, stats) = (&self.config, &mut self.outgoing, &mut self.stats);
                    let mut hand = Context { now, connection, config, outgoing: out, stats };
                    match &tracked.rules {
                        RulesState::Classic(_) => classic::handle_timeout(tracked, &mut hand, heard),
                        RulesState::Modern(_) => modern::handle_timeout(tracked, &mut hand),
                    }
                    self.set_timer(place);
                }
            }
        }
    }

    fn poll_transmit(&mut self) -> Option<Transmit<K>> {
        self.outgoing.pop_front()
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.table.poll_timeout()
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
struct DataSegment {
    seq: Seq32,
    end: Seq32,
    /// TSval of the sender; 0 if there is none.
    tsval: u32,
}

/// Acknowledgment of a segment, as the rules see it.
#[derive(Clone, Copy, Debug)]
struct Ack {
    number: Seq32,
    kind: AckKind,
    has_data: bool,
    sack: hopline_wire::tcp::SackBlocks,
}

/// Relation of an ACK to the last one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AckKind {
    /// It acknowledges new data.
    New,
    /// It repeats the last number while data are in flight, and counts as a duplicate by [`DuplicateAcks`].
    Duplicate,
    /// It repeats the last number for another reason: data, the answer to a probe, a changed window (S1).
    Other,
    /// It acknowledges less.
    Old,
}

impl<K> ConnectionState<K> {
    /// Returns the kind of an ACK that repeats the last number.
    fn classify_repeated<P: Payload>(&self, rules: &Rules, segment: &Segment<P>) -> AckKind {
        let duplicates = match &self.rules {
            RulesState::Classic(_) => rules.classic().duplicate_acks,
            // Senders with SACK do not count an ACK that changes the window.
            RulesState::Modern(_) => DuplicateAcks::SameWindow,
        };
        let under_way = self.acked.is_some_and(|acked| self.highest_sent.after(acked));
        let is_alike = duplicates == DuplicateAcks::SameNumber || segment.window == self.window;
        if under_way && segment.seq_len() == 0 && is_alike { AckKind::Duplicate } else { AckKind::Other }
    }

    /// Switches to the rules with SACK: the hosts have agreed on it.
    fn enable_sack(&mut self, rules: &Rules) {
        if let (Rules::Modern(rules), RulesState::Classic(_)) = (rules, &self.rules) {
            self.rules = RulesState::Modern(Box::new(modern::ModernState::new(rules)));
        }
    }

    /// Records sequence number and timestamp of the mobile host. An ACK on its behalf must not look older
    /// than what passed: the fixed host would discard it (RFC 9293 §3.10.7.4, RFC 7323 §5).
    fn record_mobile_segment(&mut self, now: Instant, end: Seq32, timestamps: Option<Timestamps>) {
        self.last_mobile_packet = Some(now);
        self.mobile_seq = Some(self.mobile_seq.map_or(end, |known| known.max(end)));
        let is_older = |new: Timestamps, known: Timestamps| Seq32(new.value).before(Seq32(known.value));
        if let Some(new) = timestamps.filter(|&new| self.timestamps.is_none_or(|known| !is_older(new, known)))
        {
            self.timestamps = Some(new);
        }
    }

    /// Returns the latest TSval of the sender that the mobile host has accepted (TS.Recent).
    fn ts_recent(&self) -> Option<u32> {
        self.timestamps.map(|timestamps| timestamps.echo)
    }

    /// Returns whether the mobile host has everything before `end`.
    fn has_acked(&self, end: Seq32) -> bool {
        self.acked.is_some_and(|acked| !end.after(acked))
    }

    /// Returns whether the mobile host has everything that the sender has sent, including data up to `end`.
    fn is_fully_acked(&self, end: Seq32) -> bool {
        self.acked == Some(self.highest_sent) && !end.after(self.highest_sent)
    }

    /// Returns whether data that the mobile host has are acknowledged on its behalf.
    fn should_answer_old_data(&self, now: Instant, rule: OldData) -> bool {
        let within = match rule {
            OldData::Acknowledged => config::MAX_ANSWERED_SILENCE,
            OldData::AcknowledgedWhileAlive => config::MAX_ALIVE_SILENCE,
            OldData::Forwarded => return false,
        };
        self.last_mobile_packet.is_some_and(|heard| now.since(heard) <= within)
    }

    /// Records that a cached packet waits before the last hop.
    fn on_queued(&mut self, now: Instant, seq: Seq32) {
        if let RulesState::Modern(state) = &mut self.rules {
            state.on_queued(now);
        }
        if let Some(cached) = self.cache.get_mut(seq).filter(|cached| cached.state == State::Sent) {
            cached.state = State::Waiting;
        }
    }

    /// Records that a waiting packet is sent now.
    fn on_sent(&mut self, now: Instant, seq: Seq32) {
        if let RulesState::Modern(state) = &mut self.rules {
            state.on_sent(now);
        }
        let Self { cache, transmissions: sent, .. } = self;
        if let Some(cached) = cache.get_mut(seq).filter(|cached| cached.state == State::Waiting) {
            (cached.state, cached.sent_at, cached.last_transmission) =
                (State::Sent, now, next_transmission(sent));
        }
    }

    /// Caches a packet that is sent now.
    fn cache_packet(&mut self, now: Instant, data: DataSegment, by: Origin, kept: K) {
        let order = next_transmission(&mut self.transmissions);
        let DataSegment { seq, end, tsval: clock, .. } = data;
        self.cache.insert(CachedPacket {
            seq,
            end,
            sent_at: now,
            last_transmission: order,
            last_sender_transmission: order,
            tsval: clock,
            local_retransmissions: 0,
            origin: by,
            state: State::Sent,
            timestamp_source: TimestampSource::Original,
            packet: kept,
        });
    }
}

impl<K: Clone> Context<'_, K> {
    /// Retransmits a packet. `sent`: number of transmissions of the connection so far.
    fn retransmit(&mut self, cached: &mut CachedPacket<K>, sent: &mut u32) {
        (cached.sent_at, cached.last_transmission) = (self.now, next_transmission(sent));
        cached.local_retransmissions = cached.local_retransmissions.saturating_add(1);
        self.stats.local_retransmissions += 1;
        let turn = match &self.config.rules {
            Rules::Classic(rules) => rules.queue_position,
            Rules::Modern(_) => QueuePosition::Front,
        };
        let (connection, kept) = (self.connection, cached.packet.clone());
        let clock = (cached.timestamp_source == TimestampSource::Rewritten).then_some(cached.tsval);
        self.outgoing.push_back(Transmit::Retransmission {
            queue_position: turn,
            connection,
            packet: kept,
            tsval: clock,
        });
    }

    /// Repeats the last acknowledgment of the mobile host to the sender.
    fn send_ack(&mut self, tracked: &ConnectionState<K>) {
        let (Some(ack), Some(seq)) = (tracked.acked, tracked.mobile_seq) else { return };
        let ConnectionState { window, timestamps, .. } = *tracked;
        self.stats.acks_made += 1;
        self.outgoing.push_back(Transmit::Ack(BareAck {
            connection: self.connection,
            seq,
            ack,
            window,
            timestamps,
        }));
    }
}

/// Returns the number of the next transmission.
const fn next_transmission(sent: &mut u32) -> u32 {
    *sent = sent.wrapping_add(1);
    *sent
}

/// Returns whether a segment is a SYN-ACK that accepts SACK (RFC 2018 §2).
const fn accepts_sack<P>(segment: &Segment<P>) -> bool {
    segment.flags.contains(Flags::SYN) && segment.flags.contains(Flags::ACK) && segment.options.sack_permitted
}

fn is_near(a: Seq32, b: Seq32) -> bool {
    (-MAX_SEQ_DISTANCE..MAX_SEQ_DISTANCE).contains(&a.distance_from(b))
}

#[cfg(test)]
mod tests;
