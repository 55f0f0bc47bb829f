//! M-TCP's supervisor host (Brown, Singh, "M-TCP: TCP for Mobile Cellular Networks", ACM CCR 27(5), 1997): while a mobile host cannot be
//! reached its sender waits, and takes the silence for nothing else.
//!
//! The machine keeps back the last byte of what the mobile host has acknowledged. When nothing comes from the host although something
//! is under way, it acknowledges that byte with a window of zero: the sender goes into persist mode. When the host is heard again, the
//! sender gets the window back. No ACK is ever sent for data that the mobile host has not acknowledged; what was lost on the air the
//! sender sends again.
//!
//! The paper's own text is not at hand; what is ours is said where it stands:
//! * The last byte is kept back only while more is under way. Otherwise its sender would time out on it.
//! * Nor is it while the host reports holes by SACK. Its sender would send it again with the first hole, hear of a duplicate (RFC 2883),
//!   take that for reordering (RFC 8985 §6.2), and find every later loss late.
//! * Nor is it while the sender recovers: from a retransmission until all that was sent before is acknowledged. After a timeout its window
//!   is one packet; the byte would keep that packet in flight, and nothing more were sent until the next timeout.
//! * The host's return is noticed by what it sends. Since a host that only receives says nothing of its own, the machine sends the last
//!   packet again from time to time; the paper has the host send a greeting.
//! * What the sender sends against the closed window is answered from here, so that it does not give up.

use crate::filter::{Filter, OnTheWay, Transmit, Turn};
use crate::packet::{BareAck, Connection, Packet, Says, Verdict};
use crate::table::{Bounds, Place, Table};
use hopline_core::{Duration, Instant, Payload, Seq32};
use hopline_wire::tcp::{Flags, Segment, Timestamps};
use std::collections::VecDeque;
use std::net::IpAddr;

/// How it behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// How long nothing comes from a host to which something is under way before its sender is to wait. Default 200 ms: less than the
    /// least time-out of today's senders, more than most hosts delay an ACK.
    pub silence: Duration,
    /// Time between two packets that are to find out whether the host is back. Default 500 ms.
    pub probe: Duration,
    /// How much is remembered of connections.
    pub bounds: Bounds,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            silence: Duration::from_millis(200),
            probe: Duration::from_millis(500),
            bounds: Bounds::default(),
        }
    }
}

/// A supervisor host.
#[derive(Debug)]
pub struct Mtcp<K> {
    config: Config,
    table: Table<Tracked<K>>,
    out: VecDeque<Transmit<K>>,
    stats: Stats,
}

/// What a [`Mtcp`] has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// ACKs from which the last byte was kept back.
    pub withheld: u64,
    /// Times that a sender was told to wait.
    pub closed: u64,
    /// Times that it got its window back.
    pub reopened: u64,
    /// Packets sent to find out whether a host is back.
    pub probes: u64,
    /// ACKs made in the name of mobile hosts.
    pub acks_made: u64,
    /// ACKs for what was never sent: forwarded, and nothing else.
    pub acks_beyond: u64,
    /// Connections forgotten to make room for others.
    pub evicted: u64,
    /// Connections forgotten because nothing passed any more.
    pub expired: u64,
}

/// What is known of a connection.
#[derive(Debug)]
struct Tracked<K> {
    /// The number after the last that the sender has sent, and that after its FIN.
    seen: Seq32,
    fin: Option<Seq32>,
    /// What the mobile host expects next, and what the sender was told of it.
    acked: Option<Seq32>,
    told: Option<Seq32>,
    mobile_seq: Option<Seq32>,
    timestamps: Option<Timestamps>,
    /// While the mobile host has not acknowledged this its sender recovers from losses.
    recovers_to: Option<Seq32>,
    /// The last packet with data that passed.
    last: Option<K>,
    state: State,
}

/// Whether a sender may send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// It may, and nothing is under way to the mobile host.
    Idle,
    /// It may. Nothing has come from the mobile host since then.
    Open { since: Instant },
    /// It is to wait. Whether the host is back is tried at this time.
    Closed { probe: Instant },
}

/// Numbers farther apart than this are not of one window: the connection is another one, on the same ports.
const FAR: i32 = 1 << 30;

impl<K: Clone> Mtcp<K> {
    /// A machine that knows of no connection yet.
    #[must_use]
    pub fn new(config: Config) -> Self {
        Self { config, table: Table::new(config.bounds), out: VecDeque::new(), stats: Stats::default() }
    }

    /// Takes other parameters, and keeps what is known of connections; the bounds of the table stay as they are.
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

    /// Tells the sender to wait: everything is acknowledged, and there is no room.
    fn close(&mut self, place: Place, connection: Connection) {
        let tracked = self.table.at(place);
        let (Some(ack), Some(seq)) = (tracked.acked, tracked.mobile_seq) else { return };
        tracked.told = Some(ack);
        self.stats.acks_made += 1;
        let timestamps = tracked.timestamps;
        self.out.push_back(Transmit::Ack(BareAck { connection, seq, ack, window: 0, timestamps }));
    }

    /// A connection is due.
    fn wake(&mut self, now: Instant, place: Place, connection: Connection) {
        let Config { silence, probe: interval, .. } = self.config;
        let tracked = self.table.at(place);
        match tracked.state {
            State::Open { since } if since + silence <= now && tracked.acked.is_some() => {
                tracked.state = State::Closed { probe: now + interval };
                self.stats.closed += 1;
                self.close(place, connection);
            }
            // Nothing is known that could be acknowledged: nothing can be done.
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
            // It probes the window.
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
        // Whoever acknowledges what was not sent is hostile, or speaks of a connection that passed by here unseen.
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
    /// The host was heard: its sender may send, and whether more is under way decides what its silence means.
    fn rest(&mut self, now: Instant, place: Place) {
        let tracked = self.table.at(place);
        let under_way = tracked.acked.is_none_or(|acked| tracked.seen.after(acked));
        tracked.state = if under_way { State::Open { since: now } } else { State::Idle };
        self.look(place);
    }
}

impl<K> Tracked<K> {
    /// What the sender is told of this ACK.
    fn tell<P: Payload>(&mut self, segment: &Segment<P>) -> Seq32 {
        let ack = segment.ack;
        let has_holes = !segment.options.sack.is_empty();
        self.recovers_to = self.recovers_to.filter(|end| ack.before(*end));
        let is_all = has_holes
            || self.recovers_to.is_some()
            || ack == self.seen
            || self.fin.is_some_and(|fin| !ack.before(fin));
        let held = if is_all { ack } else { ack + u32::MAX };
        // What was told stays told; before the first number there is no byte to keep back.
        let told = match self.told {
            Some(told) => told.max(held),
            None => ack,
        };
        self.told = Some(told);
        told
    }

    /// Remembers how far the mobile host is with what it sends itself: an ACK in its name must not look older than what passed.
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
