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

use crate::packet::{AckContent, BareAck, Connection, Packet, Verdict};
use crate::pep::{LastHopProgress, Pep, QueuePosition, Transmit};
use crate::table::{Table, TableIndex, TableLimits};
use hopline_core::{Duration, Instant, Payload, Seq32};
use hopline_wire::tcp::{Flags, Segment, Timestamps};
use std::collections::VecDeque;
use std::net::IpAddr;

/// Parameters of [`Mtcp`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Silence of a host with data in flight after which its sender is told to wait. Default 200 ms: less
    /// than the minimum timeout of today's senders, more than most hosts delay an ACK.
    pub silence_timeout: Duration,
    /// Interval of packets that probe for the host's return. Default 500 ms.
    pub probe_interval: Duration,
    /// Limits of the connection table.
    pub limits: TableLimits,
}

impl Config {
    /// The defaults.
    pub const DEFAULT: Self = Self {
        silence_timeout: Duration::from_millis(200),
        probe_interval: Duration::from_millis(500),
        limits: TableLimits::DEFAULT,
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
    table: Table<ConnectionState<K>>,
    outgoing: VecDeque<Transmit<K>>,
    stats: Stats,
}

/// Counters of a [`Mtcp`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// ACKs with the last byte withheld.
    pub withheld: u64,
    /// Number of times that a sender was told to wait.
    pub windows_closed: u64,
    /// Number of times that a sender got its window back.
    pub windows_reopened: u64,
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
struct ConnectionState<K> {
    /// End of the highest sequence number sent, and end of the FIN.
    highest_sent: Seq32,
    fin: Option<Seq32>,
    /// Next byte expected by the mobile host, and the acknowledgment sent to the sender.
    acked: Option<Seq32>,
    announced_ack: Option<Seq32>,
    mobile_seq: Option<Seq32>,
    timestamps: Option<Timestamps>,
    /// End of the sender's loss recovery: it recovers until the mobile host has acknowledged this.
    recovery_end: Option<Seq32>,
    /// Last packet with data that passed.
    last_packet: Option<K>,
    state: SenderState,
}

/// State of a connection's sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SenderState {
    /// The sender may send, and nothing is in flight to the mobile host.
    Idle,
    /// The sender may send. Nothing has come from the mobile host since then.
    Open { since: Instant },
    /// The sender waits. The host's return is probed at this time.
    Closed { probe: Instant },
}

/// Minimum distance of sequence numbers that belong to different windows: beyond it, a new connection reuses
/// the ports.
const MAX_SEQ_DISTANCE: i32 = 1 << 30;

impl<K: Clone> Mtcp<K> {
    /// Creates a supervisor host without connections.
    #[must_use]
    pub fn new(config: Config) -> Self {
        Self { config, table: Table::new(config.limits), outgoing: VecDeque::new(), stats: Stats::default() }
    }

    /// Sets other parameters, and keeps the state of connections; the limits of the table stay as they are.
    pub fn set_config(&mut self, config: Config) {
        self.config = Config { limits: self.config.limits, ..config };
    }

    fn insert_connection(&mut self, now: Instant, connection: Connection, seen: Seq32) -> TableIndex {
        let tracked = ConnectionState {
            highest_sent: seen,
            fin: None,
            acked: None,
            announced_ack: None,
            mobile_seq: None,
            timestamps: None,
            recovery_end: None,
            last_packet: None,
            state: SenderState::Idle,
        };
        let (place, evicted) = self.table.insert(now, connection, tracked);
        self.stats.evicted += u64::from(evicted.is_some_and(|(other, _)| other != connection));
        place
    }

    fn set_timer(&mut self, place: TableIndex) {
        let at = match self.table.state_mut(place).state {
            SenderState::Idle => None,
            SenderState::Open { since } => Some(since + self.config.silence_timeout),
            SenderState::Closed { probe } => Some(probe),
        };
        self.table.set_timer(place, at);
    }

    /// Tells the sender to wait: acknowledges everything with a zero window.
    fn close_window(&mut self, place: TableIndex, connection: Connection) {
        let tracked = self.table.state_mut(place);
        let (Some(ack), Some(seq)) = (tracked.acked, tracked.mobile_seq) else { return };
        tracked.announced_ack = Some(ack);
        self.stats.acks_made += 1;
        let timestamps = tracked.timestamps;
        self.outgoing.push_back(Transmit::Ack(BareAck { connection, seq, ack, window: 0, timestamps }));
    }

    /// Does what is due for a connection.
    fn handle_connection_timeout(&mut self, now: Instant, place: TableIndex, connection: Connection) {
        let Config { silence_timeout: silence, probe_interval: interval, .. } = self.config;
        let tracked = self.table.state_mut(place);
        match tracked.state {
            SenderState::Open { since } if since + silence <= now && tracked.acked.is_some() => {
                tracked.state = SenderState::Closed { probe: now + interval };
                self.stats.windows_closed += 1;
                self.close_window(place, connection);
            }
            // No acknowledgment has been seen: a zero window cannot be sent.
            SenderState::Open { since } if since + silence <= now => tracked.state = SenderState::Idle,
            SenderState::Closed { probe } if probe <= now => {
                tracked.state = SenderState::Closed { probe: now + interval };
                if let Some(kept) = tracked.last_packet.clone() {
                    self.stats.probes += 1;
                    self.outgoing.push_back(Transmit::Retransmission {
                        queue_position: QueuePosition::Front,
                        connection,
                        packet: kept,
                        tsval: None,
                    });
                }
            }
            SenderState::Idle | SenderState::Open { .. } | SenderState::Closed { .. } => {}
        }
    }
}

impl<K: Clone> Pep<K> for Mtcp<K> {
    type Stats = Stats;

    fn handle_packet_to_mobile<P: Payload>(
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
            self.insert_connection(now, connection, segment.seq_end());
            return Verdict::Forward;
        }
        if segment.seq_len() == 0 {
            return Verdict::Forward;
        }
        let known = self.table.touch(now, &connection);
        let near = |tracked: &ConnectionState<K>| {
            (-MAX_SEQ_DISTANCE..MAX_SEQ_DISTANCE).contains(&segment.seq.distance_from(tracked.highest_sent))
        };
        let place = match known.filter(|place| near(self.table.state_mut(*place))) {
            Some(place) => place,
            None => self.insert_connection(now, connection, segment.seq),
        };
        let tracked = self.table.state_mut(place);
        if segment.seq.before(tracked.highest_sent) {
            tracked.recovery_end = Some(tracked.highest_sent);
        }
        tracked.highest_sent = tracked.highest_sent.max(segment.seq_end());
        if segment.flags.contains(Flags::FIN) {
            tracked.fin = Some(segment.seq_end());
        }
        tracked.last_packet = Some(keep());
        match tracked.state {
            SenderState::Idle => tracked.state = SenderState::Open { since: now },
            SenderState::Open { .. } => {}
            // It is a window probe.
            SenderState::Closed { .. } => self.close_window(place, connection),
        }
        self.set_timer(place);
        Verdict::Forward
    }

    fn handle_packet_from_mobile<P: Payload>(&mut self, now: Instant, packet: Packet<'_, P>) -> Verdict {
        let (connection, segment) = (Connection::from_mobile(packet), packet.segment);
        let begins = segment.flags.contains(Flags::SYN) && !segment.flags.contains(Flags::ACK);
        if segment.flags.contains(Flags::RST) || begins {
            self.table.remove(&connection);
            return Verdict::Forward;
        }
        let Some(place) = self.table.touch(now, &connection) else { return Verdict::Forward };
        if !segment.flags.contains(Flags::ACK) {
            return Verdict::Forward;
        }
        let tracked = self.table.state_mut(place);
        // An ACK of data that were not sent is hostile, or belongs to a connection of which packets took
        // another path.
        if segment.ack.after(tracked.highest_sent) {
            self.stats.acks_beyond += 1;
            return Verdict::Forward;
        }
        let is_back = matches!(tracked.state, SenderState::Closed { .. });
        self.stats.windows_reopened += u64::from(is_back);
        tracked.record_mobile_segment(segment);
        if tracked.acked.is_some_and(|acked| segment.ack.before(acked)) {
            self.restart_silence_timer(now, place);
            return Verdict::Forward;
        }
        tracked.acked = Some(segment.ack);
        let tell = tracked.ack_for_sender(segment);
        self.restart_silence_timer(now, place);
        if tell == segment.ack {
            return Verdict::Forward;
        }
        self.stats.withheld += 1;
        Verdict::ForwardWith(AckContent { ack: tell, ..AckContent::from_segment(segment) })
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

impl<K: Clone> Mtcp<K> {
    /// Handles a sign of the host: its sender may send. The silence timer runs if more is in flight.
    fn restart_silence_timer(&mut self, now: Instant, place: TableIndex) {
        let tracked = self.table.state_mut(place);
        let under_way = tracked.acked.is_none_or(|acked| tracked.highest_sent.after(acked));
        tracked.state = if under_way { SenderState::Open { since: now } } else { SenderState::Idle };
        self.set_timer(place);
    }
}

impl<K> ConnectionState<K> {
    /// Returns the acknowledgment number to send to the sender for this ACK.
    fn ack_for_sender<P: Payload>(&mut self, segment: &Segment<P>) -> Seq32 {
        let ack = segment.ack;
        let has_holes = !segment.options.sack.is_empty();
        self.recovery_end = self.recovery_end.filter(|end| ack.before(*end));
        let is_all = has_holes
            || self.recovery_end.is_some()
            || ack == self.highest_sent
            || self.fin.is_some_and(|fin| !ack.before(fin));
        let held = if is_all { ack } else { ack + u32::MAX };
        // Acknowledgments do not go back; before the first number there is no byte to withhold.
        let told = match self.announced_ack {
            Some(told) => told.max(held),
            None => ack,
        };
        self.announced_ack = Some(told);
        told
    }

    /// Records sequence number and timestamp of the mobile host: an ACK on its behalf must not look older
    /// than what passed.
    fn record_mobile_segment<P: Payload>(&mut self, segment: &Segment<P>) {
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
