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

mod burst_estimator;
mod config;

use crate::packet::{Connection, Packet};
use crate::table::{Table, TableIndex};
use burst_estimator::{BurstEstimator, BurstPosition};
pub use config::Config;
use hopline_core::{Instant, Payload, Seq32};
use hopline_wire::tcp::{Flags, Segment};
use std::collections::VecDeque;
use std::net::IpAddr;

/// ACK pacing middlebox. `K`: a packet as the caller stores it, to forward it later.
#[derive(Debug)]
pub struct AckPacing<K> {
    config: Config,
    table: Table<PacedConnection<K>>,
    /// Waiting ACKs of all connections.
    delayed: u32,
    out: VecDeque<K>,
    stats: Stats,
}

/// Counters of an [`AckPacing`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// ACKs that waited.
    pub delayed: u64,
    /// Of those, the ones forwarded ahead of a segment that does not wait.
    pub flushed: u64,
    /// Of those, the ones forwarded because there was no room.
    pub overflowed: u64,
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
    /// The middlebox keeps the packet; [`AckPacing::poll_transmit`] returns it, now or later.
    Kept,
}

/// State of a connection.
#[derive(Debug)]
struct PacedConnection<K> {
    /// Highest acknowledged sequence number.
    acked: Seq32,
    burst_estimator: BurstEstimator,
    /// Time at which the last ACK was forwarded, or was due to be.
    last_release: Instant,
    /// Largest number of ACKs that waited since the queue was last empty, and the one before them.
    peak_queue_lens: usize,
    queue: VecDeque<K>,
}

/// Numbers farther apart than this are not of one window: the connection is another one, on the same ports.
const MAX_SEQ_DISTANCE: i32 = 1 << 30;

impl<K> AckPacing<K> {
    /// Creates an ACK pacer without connections.
    #[must_use]
    pub fn new(config: Config) -> Self {
        let (table, out) = (Table::new(config.limits), VecDeque::new());
        Self { config, table, delayed: 0, out, stats: Stats::default() }
    }

    /// Handles a packet from a mobile host. `keep` stores the packet so that it can be forwarded later.
    pub fn pass_from_mobile<P: Payload>(
        &mut self,
        now: Instant,
        packet: Packet<'_, P>,
        keep: impl FnOnce() -> K,
    ) -> Verdict {
        let (connection, segment) = (Connection::from_mobile(packet), packet.segment);
        if is_connection_start_or_end(segment) {
            self.remove_connection(&connection);
            return self.forward_unpaced(keep);
        }
        let Some(place) = self.table.touch(now, &connection) else {
            self.insert_connection(now, connection, segment);
            return self.forward_unpaced(keep);
        };
        let paced = self.table.state_mut(place);
        let news = segment.ack.distance_from(paced.acked);
        if !(-MAX_SEQ_DISTANCE..=0).contains(&news) {
            paced.acked = segment.ack;
        }
        // ACKs of a loss recovery count for the rhythm, but do not wait.
        let heard = is_ack(segment).then(|| paced.burst_estimator.on_ack(now, &self.config));
        if let Some(heard) =
            heard.filter(|_| segment.options.sack.is_empty() && (1..MAX_SEQ_DISTANCE).contains(&news))
        {
            self.pace(now, place, heard, keep)
        } else {
            self.stats.flushed += self.flush(place);
            self.forward_unpaced(keep)
        }
    }

    /// Handles a packet to a mobile host.
    pub fn pass_to_mobile<P: Payload>(&mut self, packet: Packet<'_, P>) {
        if is_connection_start_or_end(packet.segment) {
            self.remove_connection(&Connection::to_mobile(packet));
        }
    }

    /// Forwards the waiting ACKs of a mobile host that has left.
    pub fn flush_mobile(&mut self, mobile: IpAddr) {
        for (_, paced) in self.table.remove_where(|connection| connection.mobile.0 == mobile) {
            self.flush_removed(paced);
        }
    }

    /// Does what is due at `now`.
    pub fn handle_timeout(&mut self, now: Instant) {
        while let Some(due) = self.table.next_due(now) {
            match due {
                Err((_, paced)) => {
                    self.stats.expired += 1;
                    self.flush_removed(paced);
                }
                Ok((place, _)) => self.release(now, place),
            }
        }
    }

    /// Returns the next packet to forward.
    pub fn poll_transmit(&mut self) -> Option<K> {
        self.out.pop_front()
    }

    /// Returns the time of the next call of [`AckPacing::handle_timeout`].
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.table.poll_timeout()
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
    pub const fn delayed(&self) -> u32 {
        self.delayed
    }

    fn insert_connection<P: Payload>(&mut self, now: Instant, connection: Connection, segment: &Segment<P>) {
        let rhythm = BurstEstimator::default();
        let mut paced = PacedConnection {
            acked: segment.ack,
            burst_estimator: rhythm,
            last_release: now,
            peak_queue_lens: 1,
            queue: VecDeque::new(),
        };
        if is_ack(segment) {
            paced.burst_estimator.on_ack(now, &self.config);
        }
        let (_, evicted) = self.table.insert(now, connection, paced);
        if let Some((_, paced)) = evicted {
            self.stats.evicted += 1;
            self.flush_removed(paced);
        }
    }

    fn remove_connection(&mut self, connection: &Connection) {
        if let Some(paced) = self.table.remove(connection) {
            self.stats.flushed += self.flush_removed(paced);
        }
    }

    /// Handles an ACK that may wait; it is forwarded at once if it is due.
    fn pace(
        &mut self,
        now: Instant,
        place: TableIndex,
        heard: BurstPosition,
        keep: impl FnOnce() -> K,
    ) -> Verdict {
        let paced = self.table.state_mut(place);
        if paced.queue.is_empty() {
            paced.peak_queue_lens = 1;
            if heard == BurstPosition::First || paced.next_release() <= now {
                paced.last_release = now;
                return self.forward_unpaced(keep);
            }
        }
        if self.delayed >= self.config.max_total_delayed_acks {
            paced.last_release = now;
            self.stats.overflowed += self.flush(place);
            return self.forward_unpaced(keep);
        }
        if paced.queue.len() >= usize::from(self.config.max_delayed_acks.get()) {
            paced.last_release = now;
            let first = paced.queue.pop_front();
            self.out.extend(first);
            (self.delayed, self.stats.overflowed) = (self.delayed - 1, self.stats.overflowed + 1);
        }
        let paced = self.table.state_mut(place);
        paced.queue.push_back(keep());
        paced.peak_queue_lens = paced.peak_queue_lens.max(paced.queue.len() + 1);
        (self.delayed, self.stats.delayed) = (self.delayed + 1, self.stats.delayed + 1);
        self.release(now, place);
        Verdict::Kept
    }

    /// Forwards the ACKs that are due.
    fn release(&mut self, now: Instant, place: TableIndex) {
        let paced = self.table.state_mut(place);
        while paced.next_release() <= now
            && let Some(kept) = paced.queue.pop_front()
        {
            self.out.push_back(kept);
            // The scheduled time is noted, not the actual one: late wake-ups do not accumulate.
            (self.delayed, paced.last_release) = (self.delayed - 1, paced.next_release());
        }
        let next = (!paced.queue.is_empty()).then(|| paced.next_release());
        self.table.set_timer(place, next);
    }

    /// Forwards all waiting ACKs of a connection. Returns their number.
    fn flush(&mut self, place: TableIndex) -> u64 {
        let held = core::mem::take(&mut self.table.state_mut(place).queue);
        self.flush_queue(held)
    }

    /// As [`Self::flush`], for a connection that is removed.
    fn flush_removed(&mut self, paced: PacedConnection<K>) -> u64 {
        self.flush_queue(paced.queue)
    }

    fn flush_queue(&mut self, held: VecDeque<K>) -> u64 {
        self.delayed -= held.len() as u32;
        let count = held.len() as u64;
        self.out.extend(held);
        count
    }

    /// Forwards a packet that does not wait, after all packets that are due.
    fn forward_unpaced(&mut self, keep: impl FnOnce() -> K) -> Verdict {
        if self.out.is_empty() {
            return Verdict::Forward;
        }
        self.out.push_back(keep());
        Verdict::Kept
    }
}

impl<K> PacedConnection<K> {
    /// Returns the time at which the next ACK is due. All waiting ACKs are forwarded within one burst period,
    /// which is at most [`Config::max_delay`].
    fn next_release(&self) -> Instant {
        self.last_release + self.burst_estimator.release_interval(self.peak_queue_lens)
    }
}

/// Returns whether the segment begins or ends a connection, so that its state is obsolete.
fn is_connection_start_or_end<P>(segment: &Segment<P>) -> bool {
    segment.flags.contains(Flags::SYN) || segment.flags.contains(Flags::RST)
}

/// Returns whether the segment is a pure ACK.
fn is_ack<P: Payload>(segment: &Segment<P>) -> bool {
    segment.flags == Flags::ACK && segment.payload.is_empty()
}

#[cfg(test)]
mod tests;
