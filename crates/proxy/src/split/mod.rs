//! Split connections (I-TCP; Bakre, Badrinath 1995): a connection is terminated at the border, under the
//! mobile host's address, and a second one continues it, under the fixed host's. Each half has its own
//! transport and recovers its own losses.
//!
//! * A SYN is passed on first: the client gets the answer of the server, when that has answered.
//! * Flow control is coupled: data of one half are read only as far as the other half accepts them, so that
//!   the window closes.
//! * A close is passed on after all data before it, a reset at once.
//! * Data that were acknowledged and not passed on are lost if the middlebox restarts. Packets of unknown
//!   connections are answered with a reset, so that no host waits for ever, and no stream has a hole.

mod config;
mod connection;
mod segments;
pub mod state_transfer;

use crate::packet::{Connection, Side};
use crate::table::{Table, TableIndex};
pub use config::{Config, UnknownConnections};
use connection::SplitConnection;
use hopline_core::{Instant, Payload, RandomStream};
use hopline_transport::any::{Segment, Transport};
use hopline_wire::tcp::Flags;
use segments::{is_connection_request, reset_for};
use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;

/// Maximum number of packets that wait for the state of their connections.
const MAX_WAITING_PACKETS: usize = 256;
/// Maximum number of mobile hosts at this base station.
const MAX_HOSTS: usize = 1024;

/// State of a mobile host at this base station.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum HostState {
    /// The host has arrived, and its connections may follow.
    Expecting { since: Instant },
    /// Its connections have arrived.
    Settled,
}

/// A connection in transfer between two base stations.
#[derive(Debug)]
pub struct TransferredConnection<P: Payload> {
    connection: Connection,
    state: SplitConnection<P>,
}

impl<P: Payload> TransferredConnection<P> {
    /// Returns the number of bytes to transfer: [`state_transfer::CONNECTION_STATE_BYTES`], and data acknowledged to one host and
    /// not yet acknowledged by the other.
    #[must_use]
    pub fn len_bytes(&self) -> u64 {
        state_transfer::CONNECTION_STATE_BYTES + self.state.buffered_bytes()
    }
}

/// Splits the connections that pass at one base station.
#[derive(Debug)]
pub struct Split<P: Payload> {
    config: Config,
    table: Table<SplitConnection<P>>,
    /// Mobile hosts at this base station, if connections are handed over.
    hosts: BTreeMap<IpAddr, HostState>,
    /// Packets that wait for the connections of these hosts.
    waiting_packets: VecDeque<(Connection, Side, Segment<P>)>,
    outgoing: VecDeque<Transmit<P>>,
    stats: Stats,
    random: RandomStream,
}

/// Segment to send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transmit<P> {
    /// Connection of the segment.
    pub connection: Connection,
    /// Side that it goes to.
    pub to: Side,
    /// The segment; its source is the host on the other side.
    pub segment: Segment<P>,
}

/// Counters of a [`Split`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Connections that were split.
    pub connections: u64,
    /// Packets of unknown connections, answered with a reset.
    pub unknown: u64,
    /// Packets held or dropped because their connection may be at another base station.
    pub delayed: u64,
    /// Segments with data that the halves have retransmitted.
    pub retransmissions: u64,
    /// Connections reset to make room for other connections.
    pub evicted: u64,
    /// Connections reset after silence.
    pub expired: u64,
}

impl<P: Payload> Split<P> {
    /// Creates a splitter without connections. `random`: source of random numbers of its endpoints.
    #[must_use]
    pub fn new(config: Config, random: RandomStream) -> Self {
        Self {
            config,
            table: Table::new(config.limits),
            hosts: BTreeMap::new(),
            waiting_packets: VecDeque::new(),
            outgoing: VecDeque::new(),
            stats: Stats::default(),
            random,
        }
    }

    /// Returns whether a segment from this side is of the transport of the half there. Other segments are not
    /// for the splitter.
    #[must_use]
    pub const fn is_supported(&self, from: Side, segment: &Segment<P>) -> bool {
        let half = match from {
            Side::Fixed => &self.config.fixed,
            Side::Mobile => &self.config.mobile,
        };
        matches!(
            (half, segment),
            (Transport::Tcp(_), Segment::Tcp(_)) | (Transport::Tpa(_), Segment::Tpa { .. })
        )
    }

    /// Handles a segment of a connection from a side. It is consumed by the half on that side.
    pub fn handle_packet(&mut self, now: Instant, connection: Connection, from: Side, segment: Segment<P>) {
        let opens = is_connection_request(&segment);
        let place = match self.table.touch(now, &connection) {
            Some(place) if opens && self.table.state_mut(place).is_closed() => {
                self.open_connection(now, connection, from)
            }
            Some(place) => place,
            // A SYN too: it may belong to a connection that was not answered yet.
            None if self.is_at_other_station(connection.mobile.0) => {
                self.stats.delayed += 1;
                return;
            }
            None if self.is_expecting(now, connection.mobile.0) => {
                self.stats.delayed += 1;
                if self.waiting_packets.len() < MAX_WAITING_PACKETS {
                    self.waiting_packets.push_back((connection, from, segment));
                }
                return;
            }
            None if opens => self.open_connection(now, connection, from),
            None => return self.send_reset(connection, from, &segment),
        };
        self.table.state_mut(place).handle_packet(now, from, segment);
        self.process(now, place, connection);
    }

    /// Does what is due at `now`.
    pub fn handle_timeout(&mut self, now: Instant) {
        while let Some(due) = self.table.next_due(now) {
            match due {
                Ok((place, connection)) => {
                    self.table.state_mut(place).handle_timeout(now);
                    self.process(now, place, connection);
                }
                Err((connection, halves)) => {
                    // An idle connection that had ended is not counted as expired.
                    self.stats.expired += u64::from(!halves.is_closed());
                    self.abort(now, connection, halves);
                }
            }
        }
    }

    /// Returns the next segment to send.
    pub fn poll_transmit(&mut self) -> Option<Transmit<P>> {
        self.outgoing.pop_front()
    }

    /// Returns the time of the next call of [`Split::handle_timeout`].
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

    /// Returns the bytes of a connection that were acknowledged to one host and not yet acknowledged by the
    /// other. They would be transferred with it to another base station, besides the state of both halves.
    #[must_use]
    pub fn buffered_bytes(&mut self, connection: &Connection) -> Option<u64> {
        let place = self.table.find(connection)?;
        Some(self.table.state_mut(place).buffered_bytes())
    }

    /// Removes the connections of a mobile host, to continue at another base station. Packets of them that
    /// still arrive here are dropped.
    pub fn remove_host(&mut self, mobile: IpAddr) -> Vec<TransferredConnection<P>> {
        let taken = self.table.remove_where(|connection| connection.mobile.0 == mobile);
        self.hosts.remove(&mobile);
        self.waiting_packets.retain(|(connection, ..)| connection.mobile.0 != mobile);
        taken
            .into_iter()
            .map(|(connection, halves)| TransferredConnection { connection, state: halves })
            .collect()
    }

    /// Adds the connections of a mobile host that have arrived from another base station; none if it had
    /// none.
    pub fn add_host(&mut self, now: Instant, mobile: IpAddr, moved: Vec<TransferredConnection<P>>) {
        if self.hosts.len() < MAX_HOSTS || self.hosts.contains_key(&mobile) {
            self.hosts.insert(mobile, HostState::Settled);
        }
        for TransferredConnection { connection, state: halves } in moved {
            let (place, evicted) = self.table.insert(now, connection, halves);
            if let Some((other, evicted)) = evicted.filter(|(other, _)| *other != connection) {
                self.stats.evicted += 1;
                self.abort(now, other, evicted);
            }
            self.process(now, place, connection);
        }
        // Packets that arrived too early are handled now.
        for (connection, from, segment) in core::mem::take(&mut self.waiting_packets) {
            if connection.mobile.0 == mobile {
                self.handle_packet(now, connection, from, segment);
            } else {
                self.waiting_packets.push_back((connection, from, segment));
            }
        }
    }

    /// Resets connections that were lost in transfer.
    pub fn reset(&mut self, now: Instant, moved: Vec<TransferredConnection<P>>) {
        for TransferredConnection { connection, state: halves } in moved {
            self.abort(now, connection, halves);
        }
    }

    /// Records that a mobile host has arrived, and that its connections may follow.
    pub fn expect_host(&mut self, now: Instant, mobile: IpAddr) {
        if self.hosts.len() < MAX_HOSTS || self.hosts.contains_key(&mobile) {
            self.hosts.insert(mobile, HostState::Expecting { since: now });
        }
    }

    /// Returns whether connections of a mobile host may be in transfer to this base station.
    #[must_use]
    pub fn is_expecting(&self, now: Instant, mobile: IpAddr) -> bool {
        let UnknownConnections::Hold(patience) = self.config.unknown else { return false };
        matches!(self.hosts.get(&mobile), Some(HostState::Expecting { since }) if now.since(*since) < patience)
    }

    /// Returns whether another base station is responsible for the connections of a mobile host.
    fn is_at_other_station(&self, mobile: IpAddr) -> bool {
        self.config.unknown != UnknownConnections::Reset && !self.hosts.contains_key(&mobile)
    }

    fn open_connection(&mut self, now: Instant, connection: Connection, initiator: Side) -> TableIndex {
        self.stats.connections += 1;
        let halves = SplitConnection::new(&self.config, connection, initiator, &mut self.random);
        let (place, before) = self.table.insert(now, connection, halves);
        if let Some((other, evicted)) = before.filter(|(other, _)| *other != connection) {
            self.stats.evicted += 1;
            self.abort(now, other, evicted);
        }
        place
    }

    /// Lets the halves send, and sets the timer.
    fn process(&mut self, now: Instant, place: TableIndex, connection: Connection) {
        let halves = self.table.state_mut(place);
        let before = halves.retransmissions();
        let out = &mut self.outgoing;
        halves.process(now, |to, segment| out.push_back(Transmit { connection, to, segment }));
        self.stats.retransmissions += halves.retransmissions() - before;
        let at = halves.poll_timeout();
        self.table.set_timer(place, at);
    }

    fn abort(&mut self, now: Instant, connection: Connection, mut halves: SplitConnection<P>) {
        halves.abort(now);
        let out = &mut self.outgoing;
        halves.process(now, |to, segment| out.push_back(Transmit { connection, to, segment }));
    }

    /// Answers a segment of an unknown connection with a reset. Resets and segments other than TCP are not
    /// answered.
    fn send_reset(&mut self, connection: Connection, from: Side, segment: &Segment<P>) {
        let Segment::Tcp(segment) = segment else { return };
        if segment.flags.contains(Flags::RST) {
            return;
        }
        self.stats.unknown += 1;
        self.outgoing.push_back(Transmit { connection, to: from, segment: Segment::Tcp(reset_for(segment)) });
    }
}
