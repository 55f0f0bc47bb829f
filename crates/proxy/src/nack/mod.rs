//! Data from the mobile host: losses on the last hop happen before the base station, so that keeping packets there is of no use. The
//! station sees what is missing between those that come, and asks the mobile host for it at once (Balakrishnan, Seshan, Katz 1995, §3:
//! "negative acknowledgements"; neither a format nor a trigger is given, and nothing was measured).
//!
//! [`Nacks`] stands at the station. What it sends is an ACK with the last number of the fixed host, and the missing ranges in an option
//! ([`hopline_wire::tcp::Options::nack`]). At the mobile host stands [`Snoop`](crate::snoop::Snoop) with
//! [`Repairs::Told`](crate::snoop::Repairs): it keeps what the host sends, sends again what it is asked for, and hides from the host's
//! TCP the duplicate ACKs that come of it. Neither TCP knows of any of it, and hosts without it must not be asked: they would take the
//! question for a duplicate ACK. Where it is not known which hosts have it, they say so ([`Asks::Announced`]): an announcement is
//! an ACK with the same option and no range, which the station takes off the path.
//!
//! * It asks when one later packet has come, for all that is missing between that and the one before.
//! * It asks again when what it asked for has not come within the measured round trip of the last hop and four deviations; the wait
//!   doubles. After some times it leaves the loss to TCP.

use crate::filter::{Filter, OnTheWay, Transmit};
use crate::packet::{Connection, Nack, Packet, Verdict};
use crate::rtt::Rtt;
use crate::table::{Bounds, Place, Table};
use hopline_core::{Duration, Instant, Payload, Seq32};
use hopline_wire::tcp::{Flags, Options, SackBlock, SackBlocks, Segment, Timestamps};
use std::collections::VecDeque;
use std::net::IpAddr;

/// How it behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// How often it asks for what is missing; 0: never. Default 10.
    pub attempts: u8,
    /// Least time before it asks again. Default 5 ms.
    pub min_timer: Duration,
    /// Mobile hosts that are asked. Default all.
    pub asks: Asks,
    /// How much is remembered of connections.
    pub bounds: Bounds,
}

impl Default for Config {
    fn default() -> Self {
        Self { attempts: 10, min_timer: Duration::from_millis(5), asks: Asks::All, bounds: Bounds::default() }
    }
}

/// Mobile hosts that are asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asks {
    /// All: they are known to keep what they send.
    All,
    /// Those that announce that they keep what they send, connection by connection, for [`BELIEVED`] after each announcement.
    Announced,
}

/// Time for which an announcement is believed. A host repeats it every second while it sends.
pub const BELIEVED: Duration = Duration::from_secs(5);

/// The machine at a base station.
#[derive(Debug)]
pub struct Nacks<K> {
    config: Config,
    table: Table<Tracked>,
    out: VecDeque<Transmit<K>>,
    stats: Stats,
}

/// What a [`Nacks`] has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Questions sent.
    pub nacks: u64,
    /// Of those, the ones that a timer brought about.
    pub timeouts: u64,
    /// Ranges that came after they were asked for.
    pub repaired: u64,
    /// Announcements of mobile hosts that keep what they send.
    pub announcements: u64,
    /// Ranges that it did not ask for, because the mobile host has not announced that it keeps them.
    pub unasked: u64,
    /// Packets whose numbers lie beyond the window of the fixed host: forged, or of a connection that went on by another station.
    pub beyond: u64,
    /// Ranges that it no longer asked for.
    pub left_to_sender: u64,
    /// Connections forgotten to make room for others.
    pub evicted: u64,
    /// Connections forgotten because nothing passed any more.
    pub expired: u64,
}

/// What is known of a connection.
#[derive(Debug)]
struct Tracked {
    /// The number after the last that has come from the mobile host.
    edge: Seq32,
    /// What is missing before that, in order.
    holes: Vec<Hole>,
    rtt: Rtt,
    /// What the fixed host has said last: its next number, what it expects, its window, its clock.
    said: Option<(Seq32, Seq32, u16, Option<Timestamps>)>,
    /// Shift of the fixed host's window (RFC 7323 §2.2); `None` if its SYN was not seen.
    shift: Option<u8>,
    /// Numbers that came beyond the window of the fixed host, in one run: the connection is there if the fixed host acknowledges them.
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
    /// When it was asked for last; never asked for, when it was seen.
    asked: Instant,
    /// Number of requests for it.
    times: u8,
}

/// Most ranges that are remembered. Of more the first ones count.
const HOLES: usize = 64;
/// Until the first answer.
const INITIAL: Duration = Duration::from_millis(100);
/// Most doublings of the time before it asks again.
const MOST_DOUBLINGS: u8 = 6;
/// Numbers farther apart than this cannot be compared.
const FAR: i32 = 1 << 30;
/// Window that is assumed for a fixed host if its SYN was not seen, 16 MiB: more than windows of today.
const WINDOW: u32 = 1 << 24;
/// Largest shift (RFC 7323 §2.3).
const MOST_SHIFT: u8 = 14;
/// An announcement names the next byte of the host. It is at most so far behind what has come, 4 MiB.
const AHEAD: i32 = 1 << 22;

impl<K> Nacks<K> {
    /// A machine that knows of no connection yet.
    #[must_use]
    pub fn new(config: Config) -> Self {
        Self { config, table: Table::new(config.bounds), out: VecDeque::new(), stats: Stats::default() }
    }

    /// Takes other parameters, and keeps what is known of connections; the bounds of the table stay as they are.
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

    /// An ACK without data comes from the mobile host.
    fn take_ack<P>(&mut self, now: Instant, known: Option<Place>, segment: &Segment<P>) -> Verdict {
        if !segment.options.nack || !segment.options.sack.is_empty() {
            return Verdict::Forward;
        }
        let Some(place) = known else { return Verdict::Forward };
        let tracked = self.table.at(place);
        // It leaves behind data; in the name of another host its numbers would have to be guessed.
        if !(0..=AHEAD).contains(&segment.seq.distance_from(tracked.edge)) {
            return Verdict::Forward;
        }
        tracked.announced = Some(now);
        self.stats.announcements += 1;
        Verdict::Absorb
    }

    /// Asks for these ranges, if the fixed host has said anything yet.
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

    /// Asks again for what is overdue.
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
            // RFC 9293 §3.10.7.4: nothing beyond its window is of use to the fixed host. A forged number must not move the edge.
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

    /// Returns whether the mobile host may send this: it ends within the window of the fixed host, or before what has come. A probe of a
    /// closed window and a FIN may lie one number beyond.
    fn may_send(&self, left: Seq32, right: Seq32) -> bool {
        let limit = self.limit.unwrap_or(self.edge + WINDOW).max(self.edge) + 1;
        left.distance_from(self.edge) >= -FAR && !right.after(limit)
    }

    /// Records what came beyond the window.
    fn note_elsewhere(&mut self, left: Seq32, right: Seq32) {
        let follows = |run: &SackBlock| left.distance_from(run.right).unsigned_abs() <= WINDOW;
        self.elsewhere = Some(match self.elsewhere.filter(follows) {
            Some(run) => SackBlock { left: run.left, right: run.right.max(right) },
            None => SackBlock { left, right },
        });
    }

    /// Returns the end of what came beyond the window, if the fixed host has acknowledged part of it: the connection is there.
    fn acknowledged_elsewhere(&self, ack: Seq32) -> Option<Seq32> {
        let run = self.elsewhere.filter(|run| ack.after(run.left) && !ack.after(run.right))?;
        Some(run.right)
    }

    /// A range is there. A missing one that it fills and that was asked for once.
    fn fill(&mut self, left: Seq32, right: Seq32) -> Option<Hole> {
        let mut answered = None;
        let mut rest = Vec::with_capacity(self.holes.len());
        for hole in self.holes.drain(..) {
            let (from, to) = (hole.left.max(left), hole.right.min(right));
            if !to.after(from) {
                rest.push(hole);
                continue;
            }
            // Karn: which question was answered is known only if there was one.
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

/// How many ranges fit beside what the fixed host has said.
fn room(said: Option<(Seq32, Seq32, u16, Option<Timestamps>)>) -> usize {
    let timestamps = said.and_then(|(.., timestamps)| timestamps);
    Options { timestamps, nack: true, ..Options::default() }.sack_room()
}

/// When what was asked for should have come.
fn due(config: &Config, rtt: &Rtt, hole: &Hole) -> Instant {
    let doublings = hole.times.saturating_sub(1).min(MOST_DOUBLINGS);
    hole.asked + rtt.with_deviations(4).max(config.min_timer).saturating_mul(1 << doublings)
}

#[cfg(test)]
mod tests;
