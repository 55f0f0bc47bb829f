//! Runs a [`Filter`] on bytes: brings it the packets of a [`PacketIo`], does what it says with them, sends what it sends.
//!
//! Packets that are not whole TCP segments over IPv4 or IPv6 with right checksums pass untouched, and are counted. A packet that the machine changes keeps
//! every byte but the acknowledgment number, its SACK blocks and the checksum.

mod pair;
mod rewrite;

use crate::filter::{Filter, OnTheWay, Transmit, Turn};
use crate::packet::{Connection, Packet, Side, Verdict};
use crate::packet_io::{Arrival, Fate, Injected, PacketIo};
use bytes::Bytes;
use hopline_core::Instant;
use hopline_wire::ParseError;
use hopline_wire::ip::{Header, IpHeader, Protocol};
use hopline_wire::tcp::Segment;
pub use pair::{PairCounts, PairDriver};
use std::net::IpAddr;
use std::ops::Range;

/// Packets taken before what is due has its turn.
const BATCH: usize = 64;

/// A machine, and what it has been brought.
#[derive(Debug)]
pub struct Driver<M> {
    machine: M,
    counts: Counts,
}

/// What a [`Driver`] has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Segments to the mobile side that the machine has seen.
    pub to_mobile: u64,
    /// Segments from the mobile side that the machine has seen.
    pub from_mobile: u64,
    /// Packets that passed without the machine.
    pub untouched: Untouched,
    /// Packets that went on changed.
    pub rewritten: u64,
    /// Packets that went no further.
    pub absorbed: u64,
    /// Packets sent to the mobile side: again, or as a question.
    pub sent_to_mobile: u64,
    /// ACKs sent to the fixed side.
    pub sent_to_fixed: u64,
    /// Of what was to be sent: packets for which there was no way.
    pub refused: u64,
    /// Packets to the mobile side that found the queue there full, as the machine was told: those that passed, and its own.
    pub dropped: u64,
}

/// Packets that passed without the machine, by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Untouched {
    /// Neither IPv4 nor IPv6.
    pub other_versions: u64,
    /// Not TCP, or hidden: encrypted, or behind an IPv6 routing header that leads to further hosts.
    pub other_protocols: u64,
    /// Fragments.
    pub fragments: u64,
    /// A checksum of IP or TCP is wrong: whoever receives it sees to that.
    pub bad_checksums: u64,
    /// Cut short, or with a length, option or extension header that contradicts the format; IPv6 jumbograms.
    pub malformed: u64,
}

/// Whether more packets may be waiting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Pumped {
    /// None was.
    All,
    /// So many have been taken that what is due elsewhere should have its turn.
    Batch,
}

impl<M: Filter<Bytes>> Driver<M> {
    /// One that has seen nothing.
    pub fn new(machine: M) -> Self {
        Self { machine, counts: Counts::default() }
    }

    /// Takes the packets that wait, 64 at most, then does what is due by `now`. Times do not go backwards.
    ///
    /// # Errors
    /// What `io` says; packets that were received stay without an answer then.
    pub fn pump<Io: PacketIo>(&mut self, now: Instant, io: &mut Io) -> Result<Pumped, Io::Error> {
        let mut pumped = Pumped::Batch;
        for _ in 0..BATCH {
            let Some(arrival) = io.receive()? else {
                pumped = Pumped::All;
                break;
            };
            let fate = self.pass(now, &arrival);
            io.conclude(arrival, fate)?;
            self.send(now, io)?;
        }
        // ACKs that were waiting may have made a timer superfluous.
        if self.machine.poll_timeout().is_some_and(|due| due <= now) {
            self.machine.handle_timeout(now);
            self.send(now, io)?;
        }
        io.flush()?;
        while let Some(packet) = io.next_dropped() {
            self.tell_dropped(now, &packet);
        }
        Ok(pumped)
    }

    /// When to call [`Driver::pump`] though no packet waits.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.machine.poll_timeout()
    }

    /// What has been done.
    #[must_use]
    pub const fn counts(&self) -> &Counts {
        &self.counts
    }

    /// The machine.
    #[must_use]
    pub const fn machine(&self) -> &M {
        &self.machine
    }

    /// The machine, to give it other parameters or to put another one in its place, which picks connections up from what passes.
    pub const fn machine_mut(&mut self) -> &mut M {
        &mut self.machine
    }

    /// What becomes of a packet.
    fn pass(&mut self, now: Instant, arrival: &Arrival) -> Fate {
        let parsed = match Parsed::of(&arrival.packet) {
            Ok(parsed) => parsed,
            Err(why) => {
                *self.counts.untouched.of(why) += 1;
                return Fate::Pass;
            }
        };
        let packet = parsed.packet();
        match arrival.from {
            Side::Fixed => {
                self.counts.to_mobile += 1;
                let keep = || parsed.whole(&arrival.packet);
                match self.machine.pass_to_mobile(now, packet, keep) {
                    // Machines change what comes from the mobile side alone.
                    Verdict::Forward | Verdict::ForwardWith(_) => Fate::Pass,
                    Verdict::Absorb => self.absorb(),
                }
            }
            Side::Mobile => {
                self.counts.from_mobile += 1;
                match self.machine.pass_from_mobile(now, packet) {
                    Verdict::Forward => Fate::Pass,
                    Verdict::ForwardWith(says) => {
                        self.counts.rewritten += 1;
                        Fate::Replace(rewrite::saying(says, &parsed, &arrival.packet))
                    }
                    Verdict::Absorb => self.absorb(),
                }
            }
        }
    }

    fn absorb(&mut self) -> Fate {
        self.counts.absorbed += 1;
        Fate::Drop
    }

    /// The queue of the last hop has dropped a packet.
    fn tell_dropped(&mut self, now: Instant, packet: &Bytes) {
        if let Ok(parsed) = Parsed::of(packet) {
            self.counts.dropped += 1;
            let connection = Connection::to_mobile(parsed.packet());
            self.machine.note(now, connection, parsed.segment.seq, OnTheWay::Refused);
        }
    }

    /// Sends what the machine has to send.
    fn send<Io: PacketIo>(&mut self, now: Instant, io: &mut Io) -> Result<(), Io::Error> {
        while let Some(transmit) = self.machine.poll_transmit() {
            let (to, turn, packet) = match transmit {
                Transmit::Again { turn, kept, clock: None, .. } => (Side::Mobile, turn, kept),
                Transmit::Again { turn, kept, clock: Some(clock), .. } => {
                    (Side::Mobile, turn, showing(clock, kept))
                }
                Transmit::Nack(nack) => {
                    let (fixed, mobile) = (nack.connection.fixed.0, nack.connection.mobile.0);
                    (Side::Mobile, Turn::First, made(fixed, mobile, &nack.segment()))
                }
                Transmit::Ack(ack) => {
                    let (fixed, mobile) = (ack.connection.fixed.0, ack.connection.mobile.0);
                    (Side::Fixed, Turn::Last, made(mobile, fixed, &ack.segment()))
                }
            };
            match (io.inject(to, turn, &packet)?, to) {
                (Injected::NoRoom, Side::Mobile) => self.tell_dropped(now, &packet),
                (Injected::Refused | Injected::NoRoom, _) => self.counts.refused += 1,
                (Injected::Sent, Side::Mobile) => self.counts.sent_to_mobile += 1,
                (Injected::Sent, Side::Fixed) => self.counts.sent_to_fixed += 1,
            }
        }
        Ok(())
    }
}

impl Untouched {
    /// All of them.
    #[must_use]
    pub const fn total(&self) -> u64 {
        self.other_versions + self.other_protocols + self.fragments + self.bad_checksums + self.malformed
    }

    const fn of(&mut self, why: Why) -> &mut u64 {
        match why {
            Why::OtherVersion => &mut self.other_versions,
            Why::OtherProtocol => &mut self.other_protocols,
            Why::Fragment => &mut self.fragments,
            Why::BadChecksum => &mut self.bad_checksums,
            Why::Malformed => &mut self.malformed,
        }
    }
}

/// Why a packet is not for the machine.
#[derive(Clone, Copy, Debug)]
enum Why {
    OtherVersion,
    OtherProtocol,
    Fragment,
    BadChecksum,
    Malformed,
}

/// A TCP segment in a packet.
#[derive(Debug)]
struct Parsed {
    ip: Header,
    segment: Segment<Bytes>,
    /// Place of the segment in the packet. The packet ends there; padding of the link may follow.
    place: Range<usize>,
}

impl Parsed {
    fn of(packet: &Bytes) -> Result<Self, Why> {
        let (ip, place) = Header::parse(packet).map_err(|error| match error {
            ParseError::Unsupported { what: "ip fragment", .. } => Why::Fragment,
            ParseError::Unsupported { what: "ip version", .. } => Why::OtherVersion,
            other => Why::of(other),
        })?;
        if ip.protocol() != Protocol::Tcp {
            return Err(Why::OtherProtocol);
        }
        let segment = Segment::parse(&ip, &packet.slice(place.clone())).map_err(Why::of)?;
        Ok(Self { ip, segment, place })
    }

    fn packet(&self) -> Packet<'_, Bytes> {
        Packet::new(&self.ip, &self.segment)
    }

    /// The packet that was parsed, without what the link padded: what sends it again takes all of it for the packet.
    fn whole(&self, packet: &Bytes) -> Bytes {
        packet.slice(..self.place.end)
    }
}

impl Why {
    const fn of(error: ParseError) -> Self {
        match error {
            ParseError::BadChecksum => Self::BadChecksum,
            _ => Self::Malformed,
        }
    }
}

/// The packet with this clock of its sender's.
fn showing(clock: u32, packet: Bytes) -> Bytes {
    match Parsed::of(&packet) {
        Ok(parsed) => rewrite::showing(clock, &parsed, &packet).into(),
        Err(_) => packet,
    }
}

/// A packet of the machine's own, in the name of `src`.
fn made(src: IpAddr, dst: IpAddr, segment: &Segment<Bytes>) -> Bytes {
    let ip = Header::between(src, dst, Protocol::Tcp);
    let mut packet = Vec::with_capacity(ip.min_len() + segment.wire_len());
    ip.emit(segment.wire_len(), &mut packet);
    segment.emit(&ip, &mut packet);
    packet.into()
}
