//! ACK pacing: spreads out bursts of ACKs. A link that delivers blocks of frames (IEEE 802.11-2020 §10.25)
//! delivers the ACKs of many segments at once. A sender that is clocked by its ACKs then sends as many
//! segments at once (ACK compression; D-Proxy §II-A.2 studies its effect).
//!
//! [`AckPacing`] is placed at the end of the link on the sender's side. ACKs that arrive in a burst are
//! forwarded one by one, evenly over the burst period, which is averaged over recent bursts.
//!
//! * Only pure ACKs wait: no data, no other flag, no SACK blocks, and some new data acknowledged. Any other
//!   segment of the connection passes at once, after all ACKs that waited: the order never changes.
//! * The first ACK of a burst and an isolated ACK pass at once if no ACK waits.
//! * The waiting time and the number of waiting ACKs are limited. ACKs beyond the limit pass.
//!
//! ACKs are cumulative. A restart loses the ACKs that waited; the next ACK covers them.

mod config;
mod rhythm;

use crate::packet::{Connection, Packet};
use crate::table::{Place, Table};
pub use config::Config;
use hopline_core::{Instant, Payload, Seq32};
use hopline_wire::tcp::{Flags, Segment};
use rhythm::{Heard, Rhythm};
use std::collections::VecDeque;
use std::net::IpAddr;

/// ACK pacing middlebox. `K`: a packet as the caller stores it, to forward it later.
#[derive(Debug)]
pub struct AckPacing<K> {
    config: Config,
    table: Table<Paced<K>>,
    /// Waiting ACKs of all connections.
    held: u32,
    out: VecDeque<K>,
    stats: Stats,
}

/// Counters of an [`AckPacing`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// ACKs that waited.
    pub held: u64,
    /// Of those, the ones forwarded ahead of a segment that does not wait.
    pub flushed: u64,
    /// Of those, the ones forwarded because there was no room.
    pub crowded: u64,
    /// Connections evicted to make room for other connections.
    pub evicted: u64,
    /// Connections that expired after silence.
    pub expired: u64,
}

/// Verdict on a packet that comes from the mobile host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Verdict {
    /// The packet is forwarded now.
    Forward,
    /// The middlebox keeps the packet; [`AckPacing::poll`] returns it, now or later.
    Taken,
}

/// State of a connection.
#[derive(Debug)]
struct Paced<K> {
    /// Highest acknowledged sequence number.
    acked: Seq32,
    rhythm: Rhythm,
    /// Time at which the last ACK was forwarded, or was due to be.
    gone: Instant,
    /// Largest number of ACKs that waited since the queue was last empty, and the one before them.
    crowd: usize,
    held: VecDeque<K>,
}

/// Numbers farther apart than this are not of one window: the connection is another one, on the same ports.
const FAR: i32 = 1 << 30;

impl<K> AckPacing<K> {
    /// Creates an ACK pacer without connections.
    #[must_use]
    pub fn new(config: Config) -> Self {
        let (table, out) = (Table::new(config.bounds), VecDeque::new());
        Self { config, table, held: 0, out, stats: Stats::default() }
    }

    /// Handles a packet from a mobile host. `keep` stores the packet so that it can be forwarded later.
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
        // ACKs of a loss recovery count for the rhythm, but do not wait.
        let heard = is_ack(segment).then(|| paced.rhythm.hear(now, &self.config));
        if let Some(heard) = heard.filter(|_| segment.options.sack.is_empty() && (1..FAR).contains(&news)) {
            self.space(now, place, heard, keep)
        } else {
            self.stats.flushed += self.flush(place);
            self.at_once(keep)
        }
    }

    /// Handles a packet to a mobile host.
    pub fn pass_to_mobile<P: Payload>(&mut self, packet: Packet<'_, P>) {
        if is_beginning_or_end(packet.segment) {
            self.end(&Connection::to_mobile(packet));
        }
    }

    /// Forwards the waiting ACKs of a mobile host that has left.
    pub fn forget_mobile(&mut self, mobile: IpAddr) {
        for (_, paced) in self.table.take_all(|connection| connection.mobile.0 == mobile) {
            self.let_go(paced);
        }
    }

    /// Does what is due at `now`.
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

    /// Returns the next packet to forward.
    pub fn poll(&mut self) -> Option<K> {
        self.out.pop_front()
    }

    /// Returns the time of the next call of [`AckPacing::handle_timeout`].
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.table.next_look()
    }

    /// Returns the counters.
    #[must_use]
    pub const fn stats(&self) -> &Stats {
        &self.stats
    }

    /// Returns the number of known connections.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.table.len()
    }

    /// Returns the number of waiting ACKs.
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

    /// Handles an ACK that may wait; it is forwarded at once if it is due.
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

    /// Forwards the ACKs that are due.
    fn release(&mut self, now: Instant, place: Place) {
        let paced = self.table.at(place);
        while paced.turn() <= now
            && let Some(kept) = paced.held.pop_front()
        {
            self.out.push_back(kept);
            // The scheduled time is noted, not the actual one: late wake-ups do not accumulate.
            (self.held, paced.gone) = (self.held - 1, paced.turn());
        }
        let next = (!paced.held.is_empty()).then(|| paced.turn());
        self.table.look(place, next);
    }

    /// Forwards all waiting ACKs of a connection. Returns their number.
    fn flush(&mut self, place: Place) -> u64 {
        let held = core::mem::take(&mut self.table.at(place).held);
        self.all_of(held)
    }

    /// As [`Self::flush`], for a connection that is removed.
    fn let_go(&mut self, paced: Paced<K>) -> u64 {
        self.all_of(paced.held)
    }

    fn all_of(&mut self, held: VecDeque<K>) -> u64 {
        self.held -= held.len() as u32;
        let count = held.len() as u64;
        self.out.extend(held);
        count
    }

    /// Forwards a packet that does not wait, after all packets that are due.
    fn at_once(&mut self, keep: impl FnOnce() -> K) -> Verdict {
        if self.out.is_empty() {
            return Verdict::Forward;
        }
        self.out.push_back(keep());
        Verdict::Taken
    }
}

impl<K> Paced<K> {
    /// Returns the time at which the next ACK is due. All waiting ACKs are forwarded within one burst period,
    /// which is at most [`Config::max_hold`].
    fn turn(&self) -> Instant {
        self.gone + self.rhythm.interval(self.crowd)
    }
}

/// Returns whether the segment begins or ends a connection, so that its state is obsolete.
fn is_beginning_or_end<P>(segment: &Segment<P>) -> bool {
    segment.flags.contains(Flags::SYN) || segment.flags.contains(Flags::RST)
}

/// Returns whether the segment is a pure ACK.
fn is_ack<P: Payload>(segment: &Segment<P>) -> bool {
    segment.flags == Flags::ACK && segment.payload.is_empty()
}

#[cfg(test)]
mod tests;
