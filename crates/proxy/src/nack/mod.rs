//! Negative acknowledgments for data from the mobile host. Losses on the last hop happen before the base
//! station, so a cache there is of no use. The base station detects missing data from later packets, and
//! requests them from the mobile host at once (Balakrishnan, Seshan, Katz 1995, §3: "negative
//! acknowledgements"; the paper gives neither a format nor a trigger, and no measurement).
//!
//! [`Nacks`] runs at the base station. It sends an ACK with the last number of the fixed host, and the
//! missing ranges in an option ([`hopline_wire::tcp::Options::nack`]). On the mobile host runs
//! [`Snoop`](crate::snoop::Snoop) with [`Repairs::Told`](crate::snoop::Repairs): it caches the host's data,
//! retransmits requested ranges, and suppresses the resulting duplicate ACKs. Both TCPs are unaware of it.
//! Hosts without it must not be sent requests: they would take one for a duplicate ACK. If the base station
//! does not know which hosts have it, they announce it ([`Asks::Announced`]): an announcement is an ACK with
//! the same option and no range, which the base station absorbs.
//!
//! * It requests missing data when one later packet has arrived: all between that and the one before.
//! * It repeats a request after the measured round-trip time of the last hop and four deviations; the wait
//!   doubles. After a number of attempts it leaves the loss to TCP.

use crate::filter::{Filter, OnTheWay, Transmit};
use crate::packet::{Connection, Nack, Packet, Verdict};
use crate::rtt::Rtt;
use crate::table::{Bounds, Place, Table};
use hopline_core::{Duration, Instant, Payload, Seq32};
use hopline_wire::tcp::{Flags, Options, SackBlock, SackBlocks, Segment, Timestamps};
use std::collections::VecDeque;
use std::net::IpAddr;

/// Parameters of [`Nacks`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Maximum number of requests for a missing range; 0: none. Default 10.
    pub attempts: u8,
    /// Minimum time before a request is repeated. Default 5 ms.
    pub min_timer: Duration,
    /// Mobile hosts that requests are sent to. Default all.
    pub asks: Asks,
    /// Limits of the connection table.
    pub bounds: Bounds,
}

impl Config {
    /// The defaults.
    pub const DEFAULT: Self =
        Self { attempts: 10, min_timer: Duration::from_millis(5), asks: Asks::All, bounds: Bounds::DEFAULT };
}

impl Default for Config {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// Mobile hosts that requests are sent to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asks {
    /// All: they are known to cache their data.
    All,
    /// Those that announce that they cache their data, for each connection, for [`BELIEVED`] after each
    /// announcement.
    Announced,
}

/// Lifetime of an announcement. A host repeats it every second while it sends.
pub const BELIEVED: Duration = Duration::from_secs(5);

/// Negative acknowledgments at a base station.
#[derive(Debug)]
pub struct Nacks<K> {
    config: Config,
    table: Table<Tracked>,
    out: VecDeque<Transmit<K>>,
    stats: Stats,
}

/// Counters of a [`Nacks`].
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
    pub unasked: u64,
    /// Packets with numbers beyond the window of the fixed host: forged, or of a connection that moved to
    /// another base station meanwhile.
    pub beyond: u64,
    /// Ranges given up.
    pub left_to_sender: u64,
    /// Connections evicted to make room for other connections.
    pub evicted: u64,
    /// Connections that expired after silence.
    pub expired: u64,
}

/// State of a connection.
#[derive(Debug)]
struct Tracked {
    /// End of the highest sequence number from the mobile host.
    edge: Seq32,
    /// Missing ranges before `edge`, in order.
    holes: Vec<Hole>,
    rtt: Rtt,
    /// Last values of the fixed host: its next sequence number, acknowledgment number, window and timestamps.
    said: Option<(Seq32, Seq32, u16, Option<Timestamps>)>,
    /// Shift of the fixed host's window (RFC 7323 §2.2); `None` if its SYN was not seen.
    shift: Option<u8>,
    /// Contiguous range beyond the window of the fixed host: the connection has moved on to it if the fixed
    /// host acknowledges it.
    elsewhere: Option<SackBlock>,
    /// Right edge of the fixed host's window, the farthest that it has announced.
    limit: Option<Seq32>,
    /// Time of the last announcement of the mobile host.
    announced: Option<Instant>,
}

/// A missing range.
#[derive(Clone, Copy, Debug)]
struct Hole {
    left: Seq32,
    right: Seq32,
    /// Time of the last request; without a request, time of detection.
    asked: Instant,
    /// Number of requests for it.
    times: u8,
}

/// Maximum number of ranges that are remembered; the first ones are kept.
const HOLES: usize = 64;
/// Retransmission timeout before the first sample.
const INITIAL: Duration = Duration::from_millis(100);
/// Maximum number of doublings of the timeout.
const MOST_DOUBLINGS: u8 = 6;
/// Sequence numbers farther apart than this cannot be compared.
const FAR: i32 = 1 << 30;
/// Window that is assumed for a fixed host without a SYN seen, 16 MiB: more than windows of today.
const WINDOW: u32 = 1 << 24;
/// Largest shift (RFC 7323 §2.3).
const MOST_SHIFT: u8 = 14;
/// Maximum distance, bytes, of the next byte named in an announcement ahead of the data received: 4 MiB.
const AHEAD: i32 = 1 << 22;

impl<K> Nacks<K> {
    /// Creates an instance without connections.
    #[must_use]
    pub fn new(config: Config) -> Self {
        Self { config, table: Table::new(config.bounds), out: VecDeque::new(), stats: Stats::default() }
    }

    /// Sets other parameters, and keeps the state of connections; the limits of the table stay as they are.
    pub fn set_config(&mut self, config: Config) {
        self.config = Config { bounds: self.config.bounds, ..config };
    }

    fn begin(&mut self, now: Instant, connection: Connection, edge: Seq32) -> Place {
        let rtt = Rtt::until_sampled(INITIAL);
        let tracked = Tracked {
            edge,
            holes: Vec::new(),
            rtt,
            said: None,
            shift: None,
            elsewhere: None,
            limit: None,
            announced: None,
        };
        let (place, evicted) = self.table.insert(now, connection, tracked);
        self.stats.evicted += u64::from(evicted.is_some_and(|(other, _)| other != connection));
        place
    }

    /// Handles an ACK without data from the mobile host.
    fn take_ack<P>(&mut self, now: Instant, known: Option<Place>, segment: &Segment<P>) -> Verdict {
        if !segment.options.nack || !segment.options.sack.is_empty() {
            return Verdict::Forward;
        }
        let Some(place) = known else { return Verdict::Forward };
        let tracked = self.table.at(place);
        // An announcement follows data; an attacker that spoofs another host would have to guess the numbers.
        if !(0..=AHEAD).contains(&segment.seq.distance_from(tracked.edge)) {
            return Verdict::Forward;
        }
        tracked.announced = Some(now);
        self.stats.announcements += 1;
        Verdict::Absorb
    }

    /// Requests these ranges, if a segment of the fixed host has been seen.
    fn ask(&mut self, place: Place, connection: Connection, missing: SackBlocks) {
        let Some((seq, ack, window, timestamps)) = self.table.at(place).said else { return };
        self.stats.nacks += 1;
        self.out.push_back(Transmit::Nack(Nack { connection, seq, ack, window, timestamps, missing }));
    }

    fn look(&mut self, place: Place) {
        let config = self.config;
        let tracked = self.table.at(place);
        let due = tracked.holes.iter().map(|hole| tracked.due(&config, hole)).min();
        self.table.look(place, due);
    }

    /// Repeats overdue requests.
    fn wake(&mut self, now: Instant, place: Place, connection: Connection) {
        let (config, tracked) = (self.config, self.table.at(place));
        let attempts = if tracked.may_be_asked(now, config.asks) { config.attempts } else { 0 };
        let rtt = tracked.rtt;
        let is_due = |hole: &Hole| due(&config, &rtt, hole) <= now;
        let before = tracked.holes.len();
        tracked.holes.retain(|hole| hole.times < attempts || !is_due(hole));
        self.stats.left_to_sender += (before - tracked.holes.len()) as u64;
        let mut missing = SackBlocks::default();
        let room = room(tracked.said);
        for hole in tracked.holes.iter_mut().filter(|hole| is_due(hole)).take(room) {
            if missing.push(SackBlock { left: hole.left, right: hole.right }) {
                (hole.asked, hole.times) = (now, hole.times + 1);
            }
        }
        if !missing.is_empty() {
            self.stats.timeouts += 1;
            self.ask(place, connection, missing);
        }
    }
}

impl<K> Filter<K> for Nacks<K> {
    type Stats = Stats;

    fn pass_to_mobile<P: Payload>(
        &mut self,
        now: Instant,
        packet: Packet<'_, P>,
        _keep: impl FnOnce() -> K,
    ) -> Verdict {
        let (connection, segment) = (Connection::to_mobile(packet), packet.segment);
        if segment.flags.contains(Flags::RST) {
            self.table.remove(&connection);
        } else if segment.flags.contains(Flags::ACK)
            && let Some(place) = self.table.hear(now, &connection)
        {
            let tracked = self.table.at(place);
            if segment.flags.contains(Flags::SYN) {
                tracked.shift = Some(segment.options.window_scale.unwrap_or(0).min(MOST_SHIFT));
            }
            let (elsewhere, shift) = (tracked.acknowledged_elsewhere(segment.ack), tracked.shift);
            if let Some(edge) = elsewhere {
                let place = self.begin(now, connection, edge);
                let tracked = self.table.at(place);
                tracked.shift = shift;
                tracked.hear_fixed(segment);
            } else if !segment.ack.after(tracked.edge) {
                tracked.fill(segment.ack - FAR as u32, segment.ack);
                tracked.hear_fixed(segment);
            }
            self.look(place);
        }
        Verdict::Forward
    }

    fn pass_from_mobile<P: Payload>(&mut self, now: Instant, packet: Packet<'_, P>) -> Verdict {
        let (connection, segment) = (Connection::from_mobile(packet), packet.segment);
        if segment.flags.contains(Flags::RST) {
            self.table.remove(&connection);
            return Verdict::Forward;
        }
        if segment.flags.contains(Flags::SYN) {
            self.begin(now, connection, segment.seq_end());
            return Verdict::Forward;
        }
        let known = self.table.hear(now, &connection);
        if segment.seq_len() == 0 {
            return self.take_ack(now, known, segment);
        }
        let (left, right) = (segment.seq, segment.seq_end());
        let place = match known {
            Some(place) if self.table.at(place).may_send(left, right) => place,
            // RFC 9293 §3.10.7.4: data beyond the window are of no use to the fixed host. A forged number
            // must not move the edge.
            Some(place) => {
                self.stats.beyond += 1;
                self.table.at(place).note_elsewhere(left, right);
                return Verdict::Forward;
            }
            None => self.begin(now, connection, left),
        };
        let (config, tracked) = (self.config, self.table.at(place));
        if let Some(filled) = tracked.fill(left, right) {
            self.stats.repaired += 1;
            tracked.rtt.sample(now.since(filled.asked));
        }
        let edge = tracked.edge;
        tracked.edge = edge.max(right);
        tracked.elsewhere = tracked.elsewhere.filter(|run| run.left.after(right));
        if left.after(edge) && tracked.holes.len() < HOLES && config.attempts > 0 {
            if tracked.may_be_asked(now, config.asks) {
                tracked.holes.push(Hole { left: edge, right: left, asked: now, times: 1 });
                let mut missing = SackBlocks::default();
                missing.push(SackBlock { left: edge, right: left });
                self.ask(place, connection, missing);
            } else {
                self.stats.unasked += 1;
            }
        }
        self.look(place);
        Verdict::Forward
    }

    fn note(&mut self, _: Instant, _: Connection, _: Seq32, _: OnTheWay) {}

    fn forget_mobile(&mut self, mobile: IpAddr) {
        self.table.forget(|connection| connection.mobile.0 == mobile);
    }

    fn handle_timeout(&mut self, now: Instant) {
        while let Some(due) = self.table.next_due(now) {
            match due {
                Err(_) => self.stats.expired += 1,
                Ok((place, connection)) => {
                    self.wake(now, place, connection);
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

impl Tracked {
    /// Returns whether the mobile host is known to keep what it sends.
    fn may_be_asked(&self, now: Instant, asks: Asks) -> bool {
        asks == Asks::All || self.announced.is_some_and(|announced| now.since(announced) <= BELIEVED)
    }

    fn due(&self, config: &Config, hole: &Hole) -> Instant {
        due(config, &self.rtt, hole)
    }

    /// Returns whether this range is plausible: it ends within the window of the fixed host, or before data
    /// received. A window probe and a FIN may lie one number beyond.
    fn may_send(&self, left: Seq32, right: Seq32) -> bool {
        let limit = self.limit.unwrap_or(self.edge + WINDOW).max(self.edge) + 1;
        left.distance_from(self.edge) >= -FAR && !right.after(limit)
    }

    /// Records data beyond the window.
    fn note_elsewhere(&mut self, left: Seq32, right: Seq32) {
        let follows = |run: &SackBlock| left.distance_from(run.right).unsigned_abs() <= WINDOW;
        self.elsewhere = Some(match self.elsewhere.filter(follows) {
            Some(run) => SackBlock { left: run.left, right: run.right.max(right) },
            None => SackBlock { left, right },
        });
    }

    /// Returns the end of the data beyond the window, if the fixed host has acknowledged part of them: the
    /// connection has moved on.
    fn acknowledged_elsewhere(&self, ack: Seq32) -> Option<Seq32> {
        let run = self.elsewhere.filter(|run| ack.after(run.left) && !ack.after(run.right))?;
        Some(run.right)
    }

    /// Removes a received range from the holes. Returns a hole that it fills and that was requested once.
    fn fill(&mut self, left: Seq32, right: Seq32) -> Option<Hole> {
        let mut answered = None;
        let mut rest = Vec::with_capacity(self.holes.len());
        for hole in self.holes.drain(..) {
            let (from, to) = (hole.left.max(left), hole.right.min(right));
            if !to.after(from) {
                rest.push(hole);
                continue;
            }
            // Karn: after a repetition it is not known which request was answered.
            answered = answered.or((hole.times == 1).then_some(hole));
            let parts = [Hole { right: from, ..hole }, Hole { left: to, ..hole }];
            rest.extend(parts.into_iter().filter(|part| part.right.after(part.left)));
        }
        rest.truncate(HOLES);
        self.holes = rest;
        answered
    }

    fn hear_fixed<P: Payload>(&mut self, segment: &Segment<P>) {
        let is_older = self.said.is_some_and(|(_, ack, ..)| segment.ack.before(ack));
        if !is_older {
            let timestamps = segment.options.timestamps;
            self.said = Some((segment.seq_end(), segment.ack, segment.window, timestamps));
            // The window of a SYN is not scaled (RFC 7323 §2.2).
            let shift = if segment.flags.contains(Flags::SYN) { Some(0) } else { self.shift };
            let window = shift.map_or(WINDOW, |shift| u32::from(segment.window) << shift);
            let limit = segment.ack + window;
            self.limit = Some(self.limit.map_or(limit, |known| known.max(limit)));
        }
    }
}

/// Returns the number of ranges that fit into the option space besides the timestamps.
fn room(said: Option<(Seq32, Seq32, u16, Option<Timestamps>)>) -> usize {
    let timestamps = said.and_then(|(.., timestamps)| timestamps);
    Options { timestamps, nack: true, ..Options::default() }.sack_room()
}

/// Returns when a request is overdue.
fn due(config: &Config, rtt: &Rtt, hole: &Hole) -> Instant {
    let doublings = hole.times.saturating_sub(1).min(MOST_DOUBLINGS);
    hole.asked + rtt.with_deviations(4).max(config.min_timer).saturating_mul(1 << doublings)
}

#[cfg(test)]
mod tests;
