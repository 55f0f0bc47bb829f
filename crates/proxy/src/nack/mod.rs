//! Negative acknowledgments for data from the mobile host. Losses on the last hop happen before the base
//! station, so a cache there is of no use. The base station detects missing data from later packets, and
//! requests them from the mobile host at once (Balakrishnan, Seshan, Katz 1995, §3: "negative
//! acknowledgements"; the paper gives neither a format nor a trigger, and no measurement).
//!
//! [`NackStation`] runs at the base station. It sends an ACK with the last number of the fixed host, and the
//! missing ranges in an option ([`hopline_wire::tcp::Options::nack`]). On the mobile host runs
//! [`Snoop`](crate::snoop::Snoop) with [`LossDetection`](crate::snoop::LossDetection): it caches the host's data,
//! retransmits requested ranges, and suppresses the resulting duplicate ACKs. Both TCPs are unaware of it.
//! Hosts without it must not be sent requests: they would take one for a duplicate ACK. If the base station
//! does not know which hosts have it, they announce it ([`NackPolicy::Announced`]): an announcement is an ACK with
//! the same option and no range, which the base station absorbs.
//!
//! * It requests missing data when one later packet has arrived: all between that and the one before.
//! * It repeats a request after the measured round-trip time of the last hop and four deviations; the wait
//!   doubles. After a number of attempts it leaves the loss to TCP.

use crate::packet::{Connection, Nack, Packet, Verdict};
use crate::pep::{LastHopProgress, Pep, Transmit};
use crate::rtt::RttEstimator;
use crate::table::{Table, TableIndex, TableLimits};
use hopline_core::{Duration, Instant, Payload, Seq32};
use hopline_wire::tcp::{Flags, Options, SackBlock, SackBlocks, Segment, Timestamps};
use std::collections::VecDeque;
use std::net::IpAddr;

/// Parameters of [`NackStation`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Maximum number of requests for a missing range; 0: none. Default 10.
    pub max_requests: u8,
    /// Minimum time before a request is repeated. Default 5 ms.
    pub min_timer: Duration,
    /// Mobile hosts that requests are sent to. Default all.
    pub policy: NackPolicy,
    /// Limits of the connection table.
    pub limits: TableLimits,
}

impl Config {
    /// The defaults.
    pub const DEFAULT: Self = Self {
        max_requests: 10,
        min_timer: Duration::from_millis(5),
        policy: NackPolicy::All,
        limits: TableLimits::DEFAULT,
    };
}

impl Default for Config {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// Mobile hosts that requests are sent to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NackPolicy {
    /// All: they are known to cache their data.
    All,
    /// Those that announce that they cache their data, for each connection, for [`ANNOUNCEMENT_LIFETIME`] after each
    /// announcement.
    Announced,
}

/// Lifetime of an announcement. A host repeats it every second while it sends.
pub const ANNOUNCEMENT_LIFETIME: Duration = Duration::from_secs(5);

/// Negative acknowledgments at a base station.
#[derive(Debug)]
pub struct NackStation<K> {
    config: Config,
    table: Table<ConnectionState>,
    outgoing: VecDeque<Transmit<K>>,
    stats: Stats,
}

/// Counters of a [`NackStation`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Requests sent.
    pub nacks: u64,
    /// Of those, the ones by a timeout.
    pub timeouts: u64,
    /// Ranges that arrived after a request.
    pub repaired: u64,
    /// Announcements of mobile hosts that cache their data.
    pub announcements: u64,
    /// Ranges not requested because the mobile host has not announced a cache.
    pub not_requested: u64,
    /// Packets with numbers beyond the window of the fixed host: forged, or of a connection that moved to
    /// another base station meanwhile.
    pub beyond_window: u64,
    /// Ranges given up.
    pub left_to_sender: u64,
    /// Connections evicted to make room for other connections.
    pub evicted: u64,
    /// Connections that expired after silence.
    pub expired: u64,
}

/// State of a connection.
#[derive(Debug)]
struct ConnectionState {
    /// End of the highest sequence number from the mobile host.
    highest_received: Seq32,
    /// Missing ranges before `edge`, in order.
    holes: Vec<Hole>,
    rtt: RttEstimator,
    /// Last values of the fixed host: its next sequence number, acknowledgment number, window and timestamps.
    last_fixed_values: Option<(Seq32, Seq32, u16, Option<Timestamps>)>,
    /// Shift of the fixed host's window (RFC 7323 §2.2); `None` if its SYN was not seen.
    window_shift: Option<u8>,
    /// Contiguous range beyond the window of the fixed host: the connection has moved on to it if the fixed
    /// host acknowledges it.
    moved_range: Option<SackBlock>,
    /// Right edge of the fixed host's window, the farthest that it has announced.
    window_limit: Option<Seq32>,
    /// Time of the last announcement of the mobile host.
    last_announcement: Option<Instant>,
}

/// A missing range.
#[derive(Clone, Copy, Debug)]
struct Hole {
    left: Seq32,
    right: Seq32,
    /// Time of the last request; without a request, time of detection.
    last_request: Instant,
    /// Number of requests for it.
    requests: u8,
}

/// Maximum number of ranges that are remembered; the first ones are kept.
const MAX_HOLES: usize = 64;
/// Retransmission timeout before the first sample.
const INITIAL_TIMEOUT: Duration = Duration::from_millis(100);
/// Maximum number of doublings of the timeout.
const MAX_DOUBLINGS: u8 = 6;
/// Sequence numbers farther apart than this cannot be compared.
const MAX_SEQ_DISTANCE: i32 = 1 << 30;
/// Window that is assumed for a fixed host without a SYN seen, 16 MiB: more than windows of today.
const ASSUMED_WINDOW: u32 = 1 << 24;
/// Largest shift (RFC 7323 §2.3).
const MAX_WINDOW_SHIFT: u8 = 14;
/// Maximum distance, bytes, of the next byte named in an announcement ahead of the data received: 4 MiB.
const MAX_ANNOUNCED_DISTANCE: i32 = 1 << 22;

impl<K> NackStation<K> {
    /// Creates an instance without connections.
    #[must_use]
    pub fn new(config: Config) -> Self {
        Self { config, table: Table::new(config.limits), outgoing: VecDeque::new(), stats: Stats::default() }
    }

    /// Sets other parameters, and keeps the state of connections; the limits of the table stay as they are.
    pub fn set_config(&mut self, config: Config) {
        self.config = Config { limits: self.config.limits, ..config };
    }

    fn insert_connection(&mut self, now: Instant, connection: Connection, edge: Seq32) -> TableIndex {
        let rtt = RttEstimator::with_initial_until_sampled(INITIAL_TIMEOUT);
        let tracked = ConnectionState {
            highest_received: edge,
            holes: Vec::new(),
            rtt,
            last_fixed_values: None,
            window_shift: None,
            moved_range: None,
            window_limit: None,
            last_announcement: None,
        };
        let (place, evicted) = self.table.insert(now, connection, tracked);
        self.stats.evicted += u64::from(evicted.is_some_and(|(other, _)| other != connection));
        place
    }

    /// Handles an ACK without data from the mobile host.
    fn handle_ack<P>(&mut self, now: Instant, known: Option<TableIndex>, segment: &Segment<P>) -> Verdict {
        if !segment.options.nack || !segment.options.sack.is_empty() {
            return Verdict::Forward;
        }
        let Some(place) = known else { return Verdict::Forward };
        let tracked = self.table.state_mut(place);
        // An announcement follows data; an attacker that spoofs another host would have to guess the numbers.
        if !(0..=MAX_ANNOUNCED_DISTANCE).contains(&segment.seq.distance_from(tracked.highest_received)) {
            return Verdict::Forward;
        }
        tracked.last_announcement = Some(now);
        self.stats.announcements += 1;
        Verdict::Absorb
    }

    /// Requests these ranges, if a segment of the fixed host has been seen.
    fn send_nack(&mut self, place: TableIndex, connection: Connection, missing: SackBlocks) {
        let Some((seq, ack, window, timestamps)) = self.table.state_mut(place).last_fixed_values else {
            return;
        };
        self.stats.nacks += 1;
        self.outgoing.push_back(Transmit::Nack(Nack { connection, seq, ack, window, timestamps, missing }));
    }

    fn set_timer(&mut self, place: TableIndex) {
        let config = self.config;
        let tracked = self.table.state_mut(place);
        let due = tracked.holes.iter().map(|hole| tracked.request_timeout(&config, hole)).min();
        self.table.set_timer(place, due);
    }

    /// Repeats overdue requests.
    fn handle_connection_timeout(&mut self, now: Instant, place: TableIndex, connection: Connection) {
        let (config, tracked) = (self.config, self.table.state_mut(place));
        let attempts = if tracked.may_request(now, config.policy) { config.max_requests } else { 0 };
        let rtt = tracked.rtt;
        let is_due = |hole: &Hole| request_timeout(&config, &rtt, hole) <= now;
        let before = tracked.holes.len();
        tracked.holes.retain(|hole| hole.requests < attempts || !is_due(hole));
        self.stats.left_to_sender += (before - tracked.holes.len()) as u64;
        let mut missing = SackBlocks::default();
        let room = max_nack_ranges(tracked.last_fixed_values);
        for hole in tracked.holes.iter_mut().filter(|hole| is_due(hole)).take(room) {
            if missing.push(SackBlock { left: hole.left, right: hole.right }) {
                (hole.last_request, hole.requests) = (now, hole.requests + 1);
            }
        }
        if !missing.is_empty() {
            self.stats.timeouts += 1;
            self.send_nack(place, connection, missing);
        }
    }
}

impl<K> Pep<K> for NackStation<K> {
    type Stats = Stats;

    fn handle_packet_to_mobile<P: Payload>(
        &mut self,
        now: Instant,
        packet: Packet<'_, P>,
        _keep: impl FnOnce() -> K,
    ) -> Verdict {
        let (connection, segment) = (Connection::to_mobile(packet), packet.segment);
        if segment.flags.contains(Flags::RST) {
            self.table.remove(&connection);
        } else if segment.flags.contains(Flags::ACK)
            && let Some(place) = self.table.touch(now, &connection)
        {
            let tracked = self.table.state_mut(place);
            if segment.flags.contains(Flags::SYN) {
                tracked.window_shift = Some(segment.options.window_scale.unwrap_or(0).min(MAX_WINDOW_SHIFT));
            }
            let (elsewhere, shift) = (tracked.acked_moved_end(segment.ack), tracked.window_shift);
            if let Some(edge) = elsewhere {
                let place = self.insert_connection(now, connection, edge);
                let tracked = self.table.state_mut(place);
                tracked.window_shift = shift;
                tracked.record_fixed_segment(segment);
            } else if !segment.ack.after(tracked.highest_received) {
                tracked.fill_hole(segment.ack - MAX_SEQ_DISTANCE as u32, segment.ack);
                tracked.record_fixed_segment(segment);
            }
            self.set_timer(place);
        }
        Verdict::Forward
    }

    fn handle_packet_from_mobile<P: Payload>(&mut self, now: Instant, packet: Packet<'_, P>) -> Verdict {
        let (connection, segment) = (Connection::from_mobile(packet), packet.segment);
        if segment.flags.contains(Flags::RST) {
            self.table.remove(&connection);
            return Verdict::Forward;
        }
        if segment.flags.contains(Flags::SYN) {
            self.insert_connection(now, connection, segment.seq_end());
            return Verdict::Forward;
        }
        let known = self.table.touch(now, &connection);
        if segment.seq_len() == 0 {
            return self.handle_ack(now, known, segment);
        }
        let (left, right) = (segment.seq, segment.seq_end());
        let place = match known {
            Some(place) if self.table.state_mut(place).is_plausible_range(left, right) => place,
            // RFC 9293 §3.10.7.4: data beyond the window are of no use to the fixed host. A forged number
            // must not move the edge.
            Some(place) => {
                self.stats.beyond_window += 1;
                self.table.state_mut(place).record_moved_range(left, right);
                return Verdict::Forward;
            }
            None => self.insert_connection(now, connection, left),
        };
        let (config, tracked) = (self.config, self.table.state_mut(place));
        if let Some(filled) = tracked.fill_hole(left, right) {
            self.stats.repaired += 1;
            tracked.rtt.sample(now.since(filled.last_request));
        }
        let edge = tracked.highest_received;
        tracked.highest_received = edge.max(right);
        tracked.moved_range = tracked.moved_range.filter(|run| run.left.after(right));
        if left.after(edge) && tracked.holes.len() < MAX_HOLES && config.max_requests > 0 {
            if tracked.may_request(now, config.policy) {
                tracked.holes.push(Hole { left: edge, right: left, last_request: now, requests: 1 });
                let mut missing = SackBlocks::default();
                missing.push(SackBlock { left: edge, right: left });
                self.send_nack(place, connection, missing);
            } else {
                self.stats.not_requested += 1;
            }
        }
        self.set_timer(place);
        Verdict::Forward
    }

    fn handle_progress(&mut self, _: Instant, _: Connection, _: Seq32, _: LastHopProgress) {}

    fn handle_departure(&mut self, mobile: IpAddr) {
        self.table.discard_where(|connection| connection.mobile.0 == mobile);
    }

    fn handle_timeout(&mut self, now: Instant) {
        while let Some(due) = self.table.next_due(now) {
            match due {
                Err(_) => self.stats.expired += 1,
                Ok((place, connection)) => {
                    self.handle_connection_timeout(now, place, connection);
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

impl ConnectionState {
    /// Returns whether the mobile host is known to keep what it sends.
    fn may_request(&self, now: Instant, asks: NackPolicy) -> bool {
        asks == NackPolicy::All
            || self.last_announcement.is_some_and(|announced| now.since(announced) <= ANNOUNCEMENT_LIFETIME)
    }

    fn request_timeout(&self, config: &Config, hole: &Hole) -> Instant {
        request_timeout(config, &self.rtt, hole)
    }

    /// Returns whether this range is plausible: it ends within the window of the fixed host, or before data
    /// received. A window probe and a FIN may lie one number beyond.
    fn is_plausible_range(&self, left: Seq32, right: Seq32) -> bool {
        let limit =
            self.window_limit.unwrap_or(self.highest_received + ASSUMED_WINDOW).max(self.highest_received)
                + 1;
        left.distance_from(self.highest_received) >= -MAX_SEQ_DISTANCE && !right.after(limit)
    }

    /// Records data beyond the window.
    fn record_moved_range(&mut self, left: Seq32, right: Seq32) {
        let follows = |run: &SackBlock| left.distance_from(run.right).unsigned_abs() <= ASSUMED_WINDOW;
        self.moved_range = Some(match self.moved_range.filter(follows) {
            Some(run) => SackBlock { left: run.left, right: run.right.max(right) },
            None => SackBlock { left, right },
        });
    }

    /// Returns the end of the data beyond the window, if the fixed host has acknowledged part of them: the
    /// connection has moved on.
    fn acked_moved_end(&self, ack: Seq32) -> Option<Seq32> {
        let run = self.moved_range.filter(|run| ack.after(run.left) && !ack.after(run.right))?;
        Some(run.right)
    }

    /// Removes a received range from the holes. Returns a hole that it fills and that was requested once.
    fn fill_hole(&mut self, left: Seq32, right: Seq32) -> Option<Hole> {
        let mut answered = None;
        let mut rest = Vec::with_capacity(self.holes.len());
        for hole in self.holes.drain(..) {
            let (from, to) = (hole.left.max(left), hole.right.min(right));
            if !to.after(from) {
                rest.push(hole);
                continue;
            }
            // Karn: after a repetition it is not known which request was answered.
            answered = answered.or((hole.requests == 1).then_some(hole));
            let parts = [Hole { right: from, ..hole }, Hole { left: to, ..hole }];
            rest.extend(parts.into_iter().filter(|part| part.right.after(part.left)));
        }
        rest.truncate(MAX_HOLES);
        self.holes = rest;
        answered
    }

    fn record_fixed_segment<P: Payload>(&mut self, segment: &Segment<P>) {
        let is_older = self.last_fixed_values.is_some_and(|(_, ack, ..)| segment.ack.before(ack));
        if !is_older {
            let timestamps = segment.options.timestamps;
            self.last_fixed_values = Some((segment.seq_end(), segment.ack, segment.window, timestamps));
            // The window of a SYN is not scaled (RFC 7323 §2.2).
            let shift = if segment.flags.contains(Flags::SYN) { Some(0) } else { self.window_shift };
            let window = shift.map_or(ASSUMED_WINDOW, |shift| u32::from(segment.window) << shift);
            let limit = segment.ack + window;
            self.window_limit = Some(self.window_limit.map_or(limit, |known| known.max(limit)));
        }
    }
}

/// Returns the number of ranges that fit into the option space besides the timestamps.
fn max_nack_ranges(said: Option<(Seq32, Seq32, u16, Option<Timestamps>)>) -> usize {
    let timestamps = said.and_then(|(.., timestamps)| timestamps);
    Options { timestamps, nack: true, ..Options::default() }.sack_room()
}

/// Returns when a request is overdue.
fn request_timeout(config: &Config, rtt: &RttEstimator, hole: &Hole) -> Instant {
    let doublings = hole.requests.saturating_sub(1).min(MAX_DOUBLINGS);
    hole.last_request + rtt.with_deviations(4).max(config.min_timer).saturating_mul(1 << doublings)
}

#[cfg(test)]
mod tests;
