//! M-TCP's supervisor host (Brown, Singh, "M-TCP: TCP for Mobile Cellular Networks", ACM CCR 27(5), 1997):
//! while a mobile host is unreachable, its sender waits in persist mode instead of timing out.
//!
//! The middlebox withholds the acknowledgment of the last byte that the mobile host has acknowledged. If the
//! host falls silent although data are in flight, the middlebox acknowledges that byte with a zero window:
//! the sender enters persist mode. When the host is heard again, the sender gets the window back. No ACK is
//! ever sent for data that the mobile host has not acknowledged. The sender retransmits what the wireless hop
//! has lost.
//!
//! The paper's own text is not at hand. Design decisions of hopline:
//! * The last byte is withheld only while more is in flight. Otherwise its sender would time out on it.
//! * The byte is not withheld while the host reports holes by SACK. Its sender would retransmit it with the
//!   first hole, hear of a duplicate (RFC 2883), take that for reordering (RFC 8985 §6.2), and detect every
//!   later loss late.
//! * The byte is not withheld while the sender recovers: from a retransmission until all data sent before are
//!   acknowledged. After a timeout its window is one packet; the byte would keep that packet in flight, and
//!   nothing more would be sent until the next timeout.
//! * The host's return is detected by its packets. Since a host that only receives sends nothing on its own,
//!   the middlebox retransmits the last packet from time to time; in the paper the host sends a greeting.
//! * Window probes of the sender are answered by the middlebox, so that it does not give up.

use crate::filter::{Filter, OnTheWay, Transmit, Turn};
use crate::packet::{BareAck, Connection, Packet, Says, Verdict};
use crate::table::{Bounds, Place, Table};
use hopline_core::{Duration, Instant, Payload, Seq32};
use hopline_wire::tcp::{Flags, Segment, Timestamps};
use std::collections::VecDeque;
use std::net::IpAddr;

/// Parameters of [`Mtcp`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Silence of a host with data in flight after which its sender is told to wait. Default 200 ms: less
    /// than the minimum timeout of today's senders, more than most hosts delay an ACK.
    pub silence: Duration,
    /// Interval of packets that probe for the host's return. Default 500 ms.
    pub probe: Duration,
    /// Limits of the connection table.
    pub bounds: Bounds,
}

impl Config {
    /// The defaults.
    pub const DEFAULT: Self = Self {
        silence: Duration::from_millis(200),
        probe: Duration::from_millis(500),
        bounds: Bounds::DEFAULT,
    };
}

impl Default for Config {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// M-TCP supervisor host.
#[derive(Debug)]
pub struct Mtcp<K> {
    config: Config,
    table: Table<Tracked<K>>,
    out: VecDeque<Transmit<K>>,
    stats: Stats,
}

/// Counters of a [`Mtcp`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// ACKs with the last byte withheld.
    pub withheld: u64,
    /// Number of times that a sender was told to wait.
    pub closed: u64,
    /// Number of times that a sender got its window back.
    pub reopened: u64,
    /// Packets that probe for a host's return.
    pub probes: u64,
    /// ACKs made on behalf of mobile hosts.
    pub acks_made: u64,
    /// ACKs of data that were never sent: forwarded and otherwise ignored.
    pub acks_beyond: u64,
    /// Connections evicted to make room for other connections.
    pub evicted: u64,
    /// Connections that expired after silence.
    pub expired: u64,
}

/// State of a connection.
#[derive(Debug)]
struct Tracked<K> {
    /// End of the highest sequence number sent, and end of the FIN.
    seen: Seq32,
    fin: Option<Seq32>,
    /// Next byte expected by the mobile host, and the acknowledgment sent to the sender.
    acked: Option<Seq32>,
    told: Option<Seq32>,
    mobile_seq: Option<Seq32>,
    timestamps: Option<Timestamps>,
    /// End of the sender's loss recovery: it recovers until the mobile host has acknowledged this.
    recovers_to: Option<Seq32>,
    /// Last packet with data that passed.
    last: Option<K>,
    state: State,
}

/// State of a connection's sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// The sender may send, and nothing is in flight to the mobile host.
    Idle,
    /// The sender may send. Nothing has come from the mobile host since then.
    Open { since: Instant },
    /// The sender waits. The host's return is probed at this time.
    Closed { probe: Instant },
}

/// Minimum distance of sequence numbers that belong to different windows: beyond it, a new connection reuses
/// the ports.
const FAR: i32 = 1 << 30;

impl<K: Clone> Mtcp<K> {
    /// Creates a supervisor host without connections.
    #[must_use]
    pub fn new(config: Config) -> Self {
        Self { config, table: Table::new(config.bounds), out: VecDeque::new(), stats: Stats::default() }
    }

    /// Sets other parameters, and keeps the state of connections; the limits of the table stay as they are.
    pub fn set_config(&mut self, config: Config) {
        self.config = Config { bounds: self.config.bounds, ..config };
    }

    fn begin(&mut self, now: Instant, connection: Connection, seen: Seq32) -> Place {
        let tracked = Tracked {
            seen,
            fin: None,
            acked: None,
            told: None,
            mobile_seq: None,
            timestamps: None,
            recovers_to: None,
            last: None,
            state: State::Idle,
        };
        let (place, evicted) = self.table.insert(now, connection, tracked);
        self.stats.evicted += u64::from(evicted.is_some_and(|(other, _)| other != connection));
        place
    }

    fn look(&mut self, place: Place) {
        let at = match self.table.at(place).state {
            State::Idle => None,
            State::Open { since } => Some(since + self.config.silence),
            State::Closed { probe } => Some(probe),
        };
        self.table.look(place, at);
    }

    /// Tells the sender to wait: acknowledges everything with a zero window.
    fn close(&mut self, place: Place, connection: Connection) {
        let tracked = self.table.at(place);
        let (Some(ack), Some(seq)) = (tracked.acked, tracked.mobile_seq) else { return };
        tracked.told = Some(ack);
        self.stats.acks_made += 1;
        let timestamps = tracked.timestamps;
        self.out.push_back(Transmit::Ack(BareAck { connection, seq, ack, window: 0, timestamps }));
    }

    /// Does what is due for a connection.
    fn wake(&mut self, now: Instant, place: Place, connection: Connection) {
        let Config { silence, probe: interval, .. } = self.config;
        let tracked = self.table.at(place);
        match tracked.state {
            State::Open { since } if since + silence <= now && tracked.acked.is_some() => {
                tracked.state = State::Closed { probe: now + interval };
                self.stats.closed += 1;
                self.close(place, connection);
            }
            // No acknowledgment has been seen: a zero window cannot be sent.
            State::Open { since } if since + silence <= now => tracked.state = State::Idle,
            State::Closed { probe } if probe <= now => {
                tracked.state = State::Closed { probe: now + interval };
                if let Some(kept) = tracked.last.clone() {
                    self.stats.probes += 1;
                    self.out.push_back(Transmit::Again { turn: Turn::First, connection, kept, clock: None });
                }
            }
            State::Idle | State::Open { .. } | State::Closed { .. } => {}
        }
    }
}

impl<K: Clone> Filter<K> for Mtcp<K> {
    type Stats = Stats;

    fn pass_to_mobile<P: Payload>(
        &mut self,
        now: Instant,
        packet: Packet<'_, P>,
        keep: impl FnOnce() -> K,
    ) -> Verdict {
        let (connection, segment) = (Connection::to_mobile(packet), packet.segment);
        if segment.flags.contains(Flags::RST) {
            self.table.remove(&connection);
            return Verdict::Forward;
        }
        if segment.flags.contains(Flags::SYN) {
            self.begin(now, connection, segment.seq_end());
            return Verdict::Forward;
        }
        if segment.seq_len() == 0 {
            return Verdict::Forward;
        }
        let known = self.table.hear(now, &connection);
        let near = |tracked: &Tracked<K>| (-FAR..FAR).contains(&segment.seq.distance_from(tracked.seen));
        let place = match known.filter(|place| near(self.table.at(*place))) {
            Some(place) => place,
            None => self.begin(now, connection, segment.seq),
        };
        let tracked = self.table.at(place);
        if segment.seq.before(tracked.seen) {
            tracked.recovers_to = Some(tracked.seen);
        }
        tracked.seen = tracked.seen.max(segment.seq_end());
        if segment.flags.contains(Flags::FIN) {
            tracked.fin = Some(segment.seq_end());
        }
        tracked.last = Some(keep());
        match tracked.state {
            State::Idle => tracked.state = State::Open { since: now },
            State::Open { .. } => {}
            // It is a window probe.
            State::Closed { .. } => self.close(place, connection),
        }
        self.look(place);
        Verdict::Forward
    }

    fn pass_from_mobile<P: Payload>(&mut self, now: Instant, packet: Packet<'_, P>) -> Verdict {
        let (connection, segment) = (Connection::from_mobile(packet), packet.segment);
        let begins = segment.flags.contains(Flags::SYN) && !segment.flags.contains(Flags::ACK);
        if segment.flags.contains(Flags::RST) || begins {
            self.table.remove(&connection);
            return Verdict::Forward;
        }
        let Some(place) = self.table.hear(now, &connection) else { return Verdict::Forward };
        if !segment.flags.contains(Flags::ACK) {
            return Verdict::Forward;
        }
        let tracked = self.table.at(place);
        // An ACK of data that were not sent is hostile, or belongs to a connection of which packets took
        // another path.
        if segment.ack.after(tracked.seen) {
            self.stats.acks_beyond += 1;
            return Verdict::Forward;
        }
        let is_back = matches!(tracked.state, State::Closed { .. });
        self.stats.reopened += u64::from(is_back);
        tracked.hear_mobile(segment);
        if tracked.acked.is_some_and(|acked| segment.ack.before(acked)) {
            self.rest(now, place);
            return Verdict::Forward;
        }
        tracked.acked = Some(segment.ack);
        let tell = tracked.tell(segment);
        self.rest(now, place);
        if tell == segment.ack {
            return Verdict::Forward;
        }
        self.stats.withheld += 1;
        Verdict::ForwardWith(Says { ack: tell, ..Says::of(segment) })
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

impl<K: Clone> Mtcp<K> {
    /// Handles a sign of the host: its sender may send. The silence timer runs if more is in flight.
    fn rest(&mut self, now: Instant, place: Place) {
        let tracked = self.table.at(place);
        let under_way = tracked.acked.is_none_or(|acked| tracked.seen.after(acked));
        tracked.state = if under_way { State::Open { since: now } } else { State::Idle };
        self.look(place);
    }
}

impl<K> Tracked<K> {
    /// Returns the acknowledgment number to send to the sender for this ACK.
    fn tell<P: Payload>(&mut self, segment: &Segment<P>) -> Seq32 {
        let ack = segment.ack;
        let has_holes = !segment.options.sack.is_empty();
        self.recovers_to = self.recovers_to.filter(|end| ack.before(*end));
        let is_all = has_holes
            || self.recovers_to.is_some()
            || ack == self.seen
            || self.fin.is_some_and(|fin| !ack.before(fin));
        let held = if is_all { ack } else { ack + u32::MAX };
        // Acknowledgments do not go back; before the first number there is no byte to withhold.
        let told = match self.told {
            Some(told) => told.max(held),
            None => ack,
        };
        self.told = Some(told);
        told
    }

    /// Records sequence number and timestamp of the mobile host: an ACK on its behalf must not look older
    /// than what passed.
    fn hear_mobile<P: Payload>(&mut self, segment: &Segment<P>) {
        let end = segment.seq_end();
        self.mobile_seq = Some(self.mobile_seq.map_or(end, |known| known.max(end)));
        if let Some(new) = segment.options.timestamps
            && self.timestamps.is_none_or(|known| !Seq32(new.value).before(Seq32(known.value)))
        {
            self.timestamps = Some(new);
        }
    }
}

#[cfg(test)]
mod tests;
