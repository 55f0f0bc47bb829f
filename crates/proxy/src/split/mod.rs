//! A connection split in two (I-TCP; Bakre, Badrinath 1995): it ends at the border, under the mobile host's address, and another one
//! leads on, under the fixed host's. Each half has its own transport and repairs its own losses.
//!
//! * A call is passed on first: who calls is answered when, and as, the other host has answered.
//! * Flow control is coupled: of what one half has received no more is read than the other takes, so that its window closes.
//! * The end of one direction is passed on when everything before it is, a reset at once.
//! * What was acknowledged and not passed on is lost with the machine: packets of connections that it does not know are answered with a
//!   reset, so that no host waits for ever, and none gets a stream with a hole.

mod halves;
pub mod handover;

use crate::packet::{Connection, Side};
use crate::table::{Bounds, Place, Table};
use halves::Halves;
use hopline_core::{Duration, Instant, Payload, Seq32, Stream};
use hopline_transport::any::{Segment, Transport};
use hopline_wire::tcp::{self, Flags};
use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;

/// What splits connections.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Config {
    /// The half in the wired network.
    pub fixed: Transport,
    /// The half over the last hop.
    pub mobile: Transport,
    /// What becomes of packets of connections that are not known. Default: a reset.
    pub unknown: Unknown,
    /// How much is remembered of connections. Default idle time: 2 hours and 4 minutes (RFC 5382 §5).
    pub bounds: Bounds,
}

/// What becomes of packets of connections that are not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unknown {
    /// They are answered with a reset: nobody else knows of them either.
    Reset,
    /// They are dropped while their host is at another station, and for so long after it has come: their state may be on its way.
    WaitedFor(Duration),
}

/// Most packets that wait for the state of their connections.
const MOST_HELD_OFF: usize = 256;
/// Most mobile hosts that are here at once.
const MOST_HOSTS: usize = 1024;

/// A mobile host at this station.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stay {
    /// It has come, and its connections may follow.
    Expecting { since: Instant },
    /// Its connections have come.
    Settled,
}

/// A connection between two stations.
#[derive(Debug)]
pub struct Moved<P: Payload> {
    connection: Connection,
    halves: Halves<P>,
}

impl<P: Payload> Moved<P> {
    /// What has to move: [`handover::STATE`], and what one host believes delivered and the other has not acknowledged.
    #[must_use]
    pub fn len_bytes(&self) -> u64 {
        handover::STATE + self.halves.held_bytes()
    }
}

impl Config {
    /// Halves over these transports, each with room for so many bytes that wait to be passed on; a full segment fits at least.
    #[must_use]
    pub fn new(fixed: Transport, mobile: Transport, buffer_bytes: u64) -> Self {
        let bounds = Bounds { idle: Duration::from_secs(7440), ..Bounds::default() };
        let (fixed, mobile) = (bounded(fixed, buffer_bytes), bounded(mobile, buffer_bytes));
        Self { fixed, mobile, unknown: Unknown::Reset, bounds }
    }
}

fn bounded(mut transport: Transport, bytes: u64) -> Transport {
    match &mut transport {
        Transport::Tcp(config) => config.send_buffer = Some(bytes.max(config.mss.into())),
        // At least a block fits (TPA §3.1).
        Transport::Tpa(config) => {
            let block = u64::from(config.mss) * u64::from(config.block_segments);
            config.send_buffer = Some(bytes.max(block));
        }
        Transport::Wide(config) => config.send_buffer = Some(bytes.max(config.mss.into())),
    }
    transport
}

/// Splits the connections that pass at one station.
#[derive(Debug)]
pub struct Split<P: Payload> {
    config: Config,
    table: Table<Halves<P>>,
    /// Where connections follow their hosts: those that are here.
    hosts: BTreeMap<IpAddr, Stay>,
    /// What has come for these meanwhile.
    held_off: VecDeque<(Connection, Side, Segment<P>)>,
    out: VecDeque<Transmit<P>>,
    stats: Stats,
    random: Stream,
}

/// What it sends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transmit<P> {
    /// Of which connection.
    pub connection: Connection,
    /// To which side.
    pub to: Side,
    /// What; its source is the host on the other side.
    pub segment: Segment<P>,
}

/// What it has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Connections that were split.
    pub connections: u64,
    /// Packets of which nothing was known, answered with a reset.
    pub unknown: u64,
    /// Packets held off, since their connection may be at another station.
    pub held_off: u64,
    /// Segments with data that halves sent again.
    pub retransmissions: u64,
    /// Connections reset to make room for others.
    pub evicted: u64,
    /// Connections reset because nothing passed any more.
    pub expired: u64,
}

impl<P: Payload> Split<P> {
    /// A machine that knows of no connection yet. `random`: for what its endpoints draw.
    #[must_use]
    pub fn new(config: Config, random: Stream) -> Self {
        Self {
            config,
            table: Table::new(config.bounds),
            hosts: BTreeMap::new(),
            held_off: VecDeque::new(),
            out: VecDeque::new(),
            stats: Stats::default(),
            random,
        }
    }

    /// Whether a segment from this side is of the transport of the half there. Others are not this machine's concern.
    #[must_use]
    pub const fn speaks(&self, from: Side, segment: &Segment<P>) -> bool {
        let half = match from {
            Side::Fixed => &self.config.fixed,
            Side::Mobile => &self.config.mobile,
        };
        matches!(
            (half, segment),
            (Transport::Tcp(_), Segment::Tcp(_)) | (Transport::Tpa(_), Segment::Tpa { .. })
        )
    }

    /// A segment of a connection has come from a side. It goes no further: the half on that side takes it.
    pub fn handle_packet(&mut self, now: Instant, connection: Connection, from: Side, segment: Segment<P>) {
        let opens = opens(&segment);
        let place = match self.table.hear(now, &connection) {
            Some(place) if opens && self.table.at(place).is_over() => self.open(now, connection, from),
            Some(place) => place,
            // A call too: it may be one that was not answered yet.
            None if self.is_elsewhere(connection.mobile.0) => {
                self.stats.held_off += 1;
                return;
            }
            None if self.is_expecting(now, connection.mobile.0) => {
                self.stats.held_off += 1;
                if self.held_off.len() < MOST_HELD_OFF {
                    self.held_off.push_back((connection, from, segment));
                }
                return;
            }
            None if opens => self.open(now, connection, from),
            None => return self.refuse(connection, from, &segment),
        };
        self.table.at(place).handle_packet(now, from, segment);
        self.settle(now, place, connection);
    }

    /// Does what is due.
    pub fn handle_timeout(&mut self, now: Instant) {
        while let Some(due) = self.table.next_due(now) {
            match due {
                Ok((place, connection)) => {
                    self.table.at(place).handle_timeout(now);
                    self.settle(now, place, connection);
                }
                Err((connection, halves)) => {
                    // Who was done left nobody behind.
                    self.stats.expired += u64::from(!halves.is_over());
                    self.give_up(now, connection, halves);
                }
            }
        }
    }

    /// The next segment to send.
    pub fn poll_transmit(&mut self) -> Option<Transmit<P>> {
        self.out.pop_front()
    }

    /// When to call [`Split::handle_timeout`].
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

    /// Bytes of a connection that one host believes delivered and that the other has not acknowledged: what would have to move with it
    /// to another station, beside the state of both halves.
    #[must_use]
    pub fn held_bytes(&mut self, connection: &Connection) -> Option<u64> {
        let place = self.table.find(connection)?;
        Some(self.table.at(place).held_bytes())
    }

    /// The connections of a mobile host leave, to go on at another station. What still comes of them here is dropped.
    pub fn take_out(&mut self, mobile: IpAddr) -> Vec<Moved<P>> {
        let taken = self.table.take_all(|connection| connection.mobile.0 == mobile);
        self.hosts.remove(&mobile);
        self.held_off.retain(|(connection, ..)| connection.mobile.0 != mobile);
        taken.into_iter().map(|(connection, halves)| Moved { connection, halves }).collect()
    }

    /// Everything that another station knew of the connections of a mobile host has come, and if that is nothing.
    pub fn put_in(&mut self, now: Instant, mobile: IpAddr, moved: Vec<Moved<P>>) {
        if self.hosts.len() < MOST_HOSTS || self.hosts.contains_key(&mobile) {
            self.hosts.insert(mobile, Stay::Settled);
        }
        for Moved { connection, halves } in moved {
            let (place, evicted) = self.table.insert(now, connection, halves);
            if let Some((other, evicted)) = evicted.filter(|(other, _)| *other != connection) {
                self.stats.evicted += 1;
                self.give_up(now, other, evicted);
            }
            self.settle(now, place, connection);
        }
        // What has come too early has its turn.
        for (connection, from, segment) in core::mem::take(&mut self.held_off) {
            if connection.mobile.0 == mobile {
                self.handle_packet(now, connection, from, segment);
            } else {
                self.held_off.push_back((connection, from, segment));
            }
        }
    }

    /// Connections that got lost on their way end here.
    pub fn reset(&mut self, now: Instant, moved: Vec<Moved<P>>) {
        for Moved { connection, halves } in moved {
            self.give_up(now, connection, halves);
        }
    }

    /// A mobile host has come, and its connections may follow.
    pub fn expect(&mut self, now: Instant, mobile: IpAddr) {
        if self.hosts.len() < MOST_HOSTS || self.hosts.contains_key(&mobile) {
            self.hosts.insert(mobile, Stay::Expecting { since: now });
        }
    }

    /// Whether connections of a mobile host may be on their way here.
    #[must_use]
    pub fn is_expecting(&self, now: Instant, mobile: IpAddr) -> bool {
        let Unknown::WaitedFor(patience) = self.config.unknown else { return false };
        matches!(self.hosts.get(&mobile), Some(Stay::Expecting { since }) if now.since(*since) < patience)
    }

    /// Whether the connections of a mobile host are a matter of another station.
    fn is_elsewhere(&self, mobile: IpAddr) -> bool {
        self.config.unknown != Unknown::Reset && !self.hosts.contains_key(&mobile)
    }

    fn open(&mut self, now: Instant, connection: Connection, opener: Side) -> Place {
        self.stats.connections += 1;
        let halves = Halves::new(&self.config, connection, opener, &mut self.random);
        let (place, before) = self.table.insert(now, connection, halves);
        if let Some((other, evicted)) = before.filter(|(other, _)| *other != connection) {
            self.stats.evicted += 1;
            self.give_up(now, other, evicted);
        }
        place
    }

    /// Lets the halves say what they have to, and arranges to be woken.
    fn settle(&mut self, now: Instant, place: Place, connection: Connection) {
        let halves = self.table.at(place);
        let before = halves.retransmissions();
        let out = &mut self.out;
        halves.settle(now, |to, segment| out.push_back(Transmit { connection, to, segment }));
        self.stats.retransmissions += halves.retransmissions() - before;
        let at = halves.next_wake();
        self.table.look(place, at);
    }

    fn give_up(&mut self, now: Instant, connection: Connection, mut halves: Halves<P>) {
        halves.abort(now);
        let out = &mut self.out;
        halves.settle(now, |to, segment| out.push_back(Transmit { connection, to, segment }));
    }

    /// Answers a segment of which nothing is known with a reset. A reset is not answered, nor is what is not TCP.
    fn refuse(&mut self, connection: Connection, from: Side, segment: &Segment<P>) {
        let Segment::Tcp(segment) = segment else { return };
        if segment.flags.contains(Flags::RST) {
            return;
        }
        self.stats.unknown += 1;
        self.out.push_back(Transmit { connection, to: from, segment: Segment::Tcp(reset_of(segment)) });
    }
}

/// The reset that answers a segment (RFC 9293 §3.10.7.1).
fn reset_of<P: Payload>(segment: &tcp::Segment<P>) -> tcp::Segment<P> {
    let acks = segment.flags.contains(Flags::ACK);
    tcp::Segment {
        src_port: segment.dst_port,
        dst_port: segment.src_port,
        seq: if acks { segment.ack } else { Seq32(0) },
        ack: if acks { Seq32(0) } else { segment.seq_end() },
        flags: if acks { Flags::RST } else { Flags::RST | Flags::ACK },
        ..tcp::Segment::default()
    }
}

/// Whether a segment may begin a connection. TPA says so itself.
fn opens<P: Payload>(segment: &Segment<P>) -> bool {
    match segment {
        Segment::Tcp(segment) => segment.flags.contains(Flags::SYN) && !segment.flags.contains(Flags::ACK),
        Segment::Tpa { segment, .. } => segment.control == hopline_wire::tpa::Control::Syn,
        Segment::Wide { packet, .. } => packet.opening.is_some() && packet.ack.is_none(),
    }
}
