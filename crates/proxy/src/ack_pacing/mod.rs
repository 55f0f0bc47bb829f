//! Bursts of ACKs, spread out: a link that delivers blocks of frames (IEEE 802.11-2020 §10.25) delivers the ACKs of many segments at
//! once, and a sender that is clocked by its ACKs sends as many segments at once (ack compression; D-Proxy §II-A.2 asks what comes of it).
//!
//! [`AckPacing`] stands where the link ends on the side of the sender. ACKs that come in a burst go on one by one, evenly over the time
//! from one burst to the next, as that was for the last bursts.
//!
//! * Only ACKs that are nothing but that wait: no data, no other flag, no SACK blocks, and something new is acknowledged. Whatever
//!   else comes of the connection passes at once, and ahead of it all that waited: the order never changes.
//! * The first ACK of a burst, and one that comes alone, passes at once if nothing waits.
//! * Nothing waits for longer than a given time, and no more ACKs wait than a given number. What there is no room for passes.
//!
//! ACKs are cumulative. A machine that is started anew loses those that waited, and what comes next says as much.

mod rhythm;

use crate::packet::{Connection, Packet};
use crate::table::{Bounds, Place, Table};
use core::num::NonZeroU16;
use hopline_core::{Duration, Instant, Payload, Seq32};
use hopline_wire::tcp::{Flags, Segment};
use rhythm::{Heard, Rhythm};
use std::collections::VecDeque;
use std::net::IpAddr;

/// How it behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Longest time that an ACK waits, and that a burst is spread over. Default 20 ms: a block of 64 frames of 1500 bytes takes 17 ms at
    /// 54 Mb/s.
    pub max_hold: Duration,
    /// An ACK that comes within this time of the one before is of the same burst. Default 200 µs: two ACKs of a block are 160 µs apart
    /// at 6 Mb/s, the lowest rate of 802.11a.
    pub burst_gap: Duration,
    /// Most ACKs of a connection that wait. One more, and the first one goes. Default 256.
    pub held_packets: NonZeroU16,
    /// Most ACKs that wait in all. Those of a connection that has one more go, and it with them. Default 4096.
    pub held_in_all: u32,
    /// How much is remembered of connections.
    pub bounds: Bounds,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            max_hold: Duration::from_millis(20),
            burst_gap: Duration::from_micros(200),
            held_packets: NonZeroU16::new(256).expect("not zero"),
            held_in_all: 4096,
            bounds: Bounds::default(),
        }
    }
}

/// The machine. `K`: a packet as whoever drives the machine keeps it, to let it go on.
#[derive(Debug)]
pub struct AckPacing<K> {
    config: Config,
    table: Table<Paced<K>>,
    /// ACKs that wait, of all connections.
    held: u32,
    out: VecDeque<K>,
    stats: Stats,
}

/// What an [`AckPacing`] has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// ACKs that waited.
    pub held: u64,
    /// Of those, the ones that went ahead of something that does not wait.
    pub flushed: u64,
    /// Of those, the ones that went because there was no room.
    pub crowded: u64,
    /// Connections forgotten to make room for others.
    pub evicted: u64,
    /// Connections forgotten because nothing passed any more.
    pub expired: u64,
}

/// What becomes of a packet that comes from the mobile host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Verdict {
    /// It goes on.
    Forward,
    /// The machine has it: [`AckPacing::poll`] gives it back, now or later.
    Taken,
}

/// What is known of a connection.
#[derive(Debug)]
struct Paced<K> {
    /// The highest number that was acknowledged.
    acked: Seq32,
    rhythm: Rhythm,
    /// When an ACK went on last, or had its turn to.
    gone: Instant,
    /// Most that have waited since none did, and the one before them.
    crowd: usize,
    held: VecDeque<K>,
}

/// Numbers farther apart than this are not of one window: the connection is another one, on the same ports.
const FAR: i32 = 1 << 30;

impl<K> AckPacing<K> {
    /// A machine that knows of no connection yet.
    #[must_use]
    pub fn new(config: Config) -> Self {
        let (table, out) = (Table::new(config.bounds), VecDeque::new());
        Self { config, table, held: 0, out, stats: Stats::default() }
    }

    /// A packet comes from a mobile host. `keep` makes of it what can go on later.
    pub fn pass_from_mobile<P: Payload>(
        &mut self,
        now: Instant,
        packet: Packet<'_, P>,
        keep: impl FnOnce() -> K,
    ) -> Verdict {
        let (connection, segment) = (Connection::from_mobile(packet), packet.segment);
        if is_beginning_or_end(segment) {
            self.end(&connection);
            return self.at_once(keep);
        }
        let Some(place) = self.table.hear(now, &connection) else {
            self.begin(now, connection, segment);
            return self.at_once(keep);
        };
        let paced = self.table.at(place);
        let news = segment.ack.distance_from(paced.acked);
        if !(-FAR..=0).contains(&news) {
            paced.acked = segment.ack;
        }
        // Those of a recovery keep the rhythm, and do not wait.
        let heard = is_ack(segment).then(|| paced.rhythm.hear(now, &self.config));
        if let Some(heard) = heard.filter(|_| segment.options.sack.is_empty() && (1..FAR).contains(&news)) {
            self.space(now, place, heard, keep)
        } else {
            self.stats.flushed += self.flush(place);
            self.at_once(keep)
        }
    }

    /// A packet goes to a mobile host.
    pub fn pass_to_mobile<P: Payload>(&mut self, packet: Packet<'_, P>) {
        if is_beginning_or_end(packet.segment) {
            self.end(&Connection::to_mobile(packet));
        }
    }

    /// A mobile host has gone elsewhere: what waits goes on.
    pub fn forget_mobile(&mut self, mobile: IpAddr) {
        for (_, paced) in self.table.take_all(|connection| connection.mobile.0 == mobile) {
            self.let_go(paced);
        }
    }

    /// Does what is due.
    pub fn handle_timeout(&mut self, now: Instant) {
        while let Some(due) = self.table.next_due(now) {
            match due {
                Err((_, paced)) => {
                    self.stats.expired += 1;
                    self.let_go(paced);
                }
                Ok((place, _)) => self.release(now, place),
            }
        }
    }

    /// The next packet that goes on.
    pub fn poll(&mut self) -> Option<K> {
        self.out.pop_front()
    }

    /// When to call [`AckPacing::handle_timeout`].
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.table.next_look()
    }

    /// What it has done.
    #[must_use]
    pub const fn stats(&self) -> &Stats {
        &self.stats
    }

    /// Connections that it knows of.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.table.len()
    }

    /// ACKs that wait.
    #[must_use]
    pub const fn held(&self) -> u32 {
        self.held
    }

    fn begin<P: Payload>(&mut self, now: Instant, connection: Connection, segment: &Segment<P>) {
        let rhythm = Rhythm::default();
        let mut paced = Paced { acked: segment.ack, rhythm, gone: now, crowd: 1, held: VecDeque::new() };
        if is_ack(segment) {
            paced.rhythm.hear(now, &self.config);
        }
        let (_, evicted) = self.table.insert(now, connection, paced);
        if let Some((_, paced)) = evicted {
            self.stats.evicted += 1;
            self.let_go(paced);
        }
    }

    fn end(&mut self, connection: &Connection) {
        if let Some(paced) = self.table.remove(connection) {
            self.stats.flushed += self.let_go(paced);
        }
    }

    /// An ACK that may wait: it goes if its turn has come.
    fn space(&mut self, now: Instant, place: Place, heard: Heard, keep: impl FnOnce() -> K) -> Verdict {
        let paced = self.table.at(place);
        if paced.held.is_empty() {
            paced.crowd = 1;
            if heard == Heard::First || paced.turn() <= now {
                paced.gone = now;
                return self.at_once(keep);
            }
        }
        if self.held >= self.config.held_in_all {
            paced.gone = now;
            self.stats.crowded += self.flush(place);
            return self.at_once(keep);
        }
        if paced.held.len() >= usize::from(self.config.held_packets.get()) {
            paced.gone = now;
            let first = paced.held.pop_front();
            self.out.extend(first);
            (self.held, self.stats.crowded) = (self.held - 1, self.stats.crowded + 1);
        }
        let paced = self.table.at(place);
        paced.held.push_back(keep());
        paced.crowd = paced.crowd.max(paced.held.len() + 1);
        (self.held, self.stats.held) = (self.held + 1, self.stats.held + 1);
        self.release(now, place);
        Verdict::Taken
    }

    /// Lets those go on whose turn has come.
    fn release(&mut self, now: Instant, place: Place) {
        let paced = self.table.at(place);
        while paced.turn() <= now
            && let Some(kept) = paced.held.pop_front()
        {
            self.out.push_back(kept);
            // Who is woken late does not fall behind.
            (self.held, paced.gone) = (self.held - 1, paced.turn());
        }
        let next = (!paced.held.is_empty()).then(|| paced.turn());
        self.table.look(place, next);
    }

    /// All that waits of a connection goes on: how much.
    fn flush(&mut self, place: Place) -> u64 {
        let held = core::mem::take(&mut self.table.at(place).held);
        self.all_of(held)
    }

    /// The same, of one that is forgotten.
    fn let_go(&mut self, paced: Paced<K>) -> u64 {
        self.all_of(paced.held)
    }

    fn all_of(&mut self, held: VecDeque<K>) -> u64 {
        self.held -= held.len() as u32;
        let count = held.len() as u64;
        self.out.extend(held);
        count
    }

    /// A packet that does not wait goes after all that has its turn.
    fn at_once(&mut self, keep: impl FnOnce() -> K) -> Verdict {
        if self.out.is_empty() {
            return Verdict::Forward;
        }
        self.out.push_back(keep());
        Verdict::Taken
    }
}

impl<K> Paced<K> {
    /// When the next one has its turn. A crowd is over in the time between bursts, which is at most the longest time to wait.
    fn turn(&self) -> Instant {
        self.gone + self.rhythm.interval(self.crowd)
    }
}

/// Whether a connection begins or ends: nothing that is known of it holds any more.
fn is_beginning_or_end<P>(segment: &Segment<P>) -> bool {
    segment.flags.contains(Flags::SYN) || segment.flags.contains(Flags::RST)
}

/// Whether a segment acknowledges, and does nothing else.
fn is_ack<P: Payload>(segment: &Segment<P>) -> bool {
    segment.flags == Flags::ACK && segment.payload.is_empty()
}

#[cfg(test)]
mod tests;
