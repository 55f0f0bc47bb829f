//! Runs a [`Pep`] on bytes: passes it the packets of a [`PacketIo`], carries out its verdicts, and sends
//! its packets.
//!
//! Packets other than whole TCP segments over IPv4 or IPv6 with correct checksums pass untouched, and are
//! counted. A packet that the middlebox changes keeps every byte except the acknowledgment number, its SACK
//! blocks and the checksum.

mod pair;
mod parsed;
mod rewrite;

use crate::packet::{Connection, Side, Verdict};
use crate::packet_io::{Arrival, InjectResult, PacketIo, PacketVerdict};
use crate::pep::{LastHopProgress, Pep, QueuePosition, Transmit};
use bytes::Bytes;
use hopline_core::Instant;
use hopline_wire::ip::{Header, Protocol};
use hopline_wire::tcp::Segment;
pub use pair::{PairCounts, PairDriver};
use parsed::{BypassReason, ParsedSegment};
use std::net::IpAddr;

/// Maximum number of packets taken before timers are handled.
const BATCH: usize = 64;

/// A middlebox, and counters of its packets.
#[derive(Debug)]
pub struct Driver<M> {
    middlebox: M,
    counts: Counts,
}

/// Counters of a [`Driver`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Segments to the mobile side that the middlebox has seen.
    pub to_mobile: u64,
    /// Segments from the mobile side that the middlebox has seen.
    pub from_mobile: u64,
    /// Packets that bypassed the middlebox.
    pub bypassed: BypassedCounts,
    /// Packets forwarded with changes.
    pub rewritten: u64,
    /// Packets absorbed.
    pub absorbed: u64,
    /// Packets sent to the mobile side: retransmissions and negative acknowledgments.
    pub sent_to_mobile: u64,
    /// ACKs sent to the fixed side.
    pub sent_to_fixed: u64,
    /// Of the packets to send, those without a route.
    pub no_route: u64,
    /// Packets to the mobile side that its full queue dropped, as reported to the middlebox: those that
    /// passed, and its own.
    pub dropped: u64,
}

/// Packets that bypassed the middlebox, by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BypassedCounts {
    /// Neither IPv4 nor IPv6.
    pub other_versions: u64,
    /// Not TCP, or unreadable: encrypted, or behind an IPv6 routing header that leads to further hosts.
    pub other_protocols: u64,
    /// Fragments.
    pub fragments: u64,
    /// A checksum of IP or TCP is wrong: the receiver will discard it.
    pub bad_checksums: u64,
    /// Cut short, or with a length, option or extension header that contradicts the format; IPv6 jumbograms.
    pub malformed: u64,
}

/// Result of [`Driver::pump`]: `BatchFull` if more packets may be waiting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum PumpResult {
    /// No packet is waiting.
    Drained,
    /// The maximum number of packets was taken; other work should have its turn first.
    BatchFull,
}

impl<M: Pep<Bytes>> Driver<M> {
    /// Creates a driver that has seen nothing.
    pub fn new(machine: M) -> Self {
        Self { middlebox: machine, counts: Counts::default() }
    }

    /// Handles waiting packets, 64 at most, then does what is due by `now`. Times do not go backwards.
    ///
    /// # Errors
    /// Errors of `io`; packets that were received then remain without a verdict.
    pub fn pump<Io: PacketIo>(&mut self, now: Instant, io: &mut Io) -> Result<PumpResult, Io::Error> {
        let mut pumped = PumpResult::BatchFull;
        for _ in 0..BATCH {
            let Some(arrival) = io.receive()? else {
                pumped = PumpResult::Drained;
                break;
            };
            let fate = self.pass(now, &arrival);
            io.set_verdict(arrival, fate)?;
            self.send(now, io)?;
        }
        // The ACKs just handled may have made a timer superfluous.
        if self.middlebox.poll_timeout().is_some_and(|due| due <= now) {
            self.middlebox.handle_timeout(now);
            self.send(now, io)?;
        }
        io.flush()?;
        while let Some(packet) = io.next_dropped() {
            self.on_queue_drop(now, &packet);
        }
        Ok(pumped)
    }

    /// Returns when to call [`Driver::pump`] even if no packet waits.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.middlebox.poll_timeout()
    }

    /// Returns the counters.
    #[must_use]
    pub const fn counts(&self) -> &Counts {
        &self.counts
    }

    /// Returns the middlebox.
    #[must_use]
    pub const fn middlebox(&self) -> &M {
        &self.middlebox
    }

    /// Returns the middlebox, to set its parameters or to replace it by another one, which picks up
    /// connections from packets that pass.
    pub const fn middlebox_mut(&mut self) -> &mut M {
        &mut self.middlebox
    }

    /// Returns the verdict on a packet.
    fn pass(&mut self, now: Instant, arrival: &Arrival) -> PacketVerdict {
        let parsed = match ParsedSegment::parse(&arrival.packet) {
            Ok(parsed) => parsed,
            Err(why) => {
                *self.counts.bypassed.counter(why) += 1;
                return PacketVerdict::Forward;
            }
        };
        let packet = parsed.packet();
        match arrival.from {
            Side::Fixed => {
                self.counts.to_mobile += 1;
                let keep = || parsed.without_padding(&arrival.packet);
                match self.middlebox.handle_packet_to_mobile(now, packet, keep) {
                    // Filters change packets from the mobile side only.
                    Verdict::Forward | Verdict::ForwardWith(_) => PacketVerdict::Forward,
                    Verdict::Absorb => self.absorb(),
                }
            }
            Side::Mobile => {
                self.counts.from_mobile += 1;
                match self.middlebox.handle_packet_from_mobile(now, packet) {
                    Verdict::Forward => PacketVerdict::Forward,
                    Verdict::ForwardWith(says) => {
                        self.counts.rewritten += 1;
                        PacketVerdict::Replace(rewrite::with_ack(says, &parsed, &arrival.packet))
                    }
                    Verdict::Absorb => self.absorb(),
                }
            }
        }
    }

    fn absorb(&mut self) -> PacketVerdict {
        self.counts.absorbed += 1;
        PacketVerdict::Drop
    }

    /// Tells the middlebox that the queue of the last hop has dropped a packet.
    fn on_queue_drop(&mut self, now: Instant, packet: &Bytes) {
        if let Ok(parsed) = ParsedSegment::parse(packet) {
            self.counts.dropped += 1;
            let connection = Connection::to_mobile(parsed.packet());
            self.middlebox.handle_progress(now, connection, parsed.segment.seq, LastHopProgress::Dropped);
        }
    }

    /// Sends the packets of the middlebox.
    fn send<Io: PacketIo>(&mut self, now: Instant, io: &mut Io) -> Result<(), Io::Error> {
        while let Some(transmit) = self.middlebox.poll_transmit() {
            let (to, turn, packet) = match transmit {
                Transmit::Retransmission { queue_position: turn, packet: kept, tsval: None, .. } => {
                    (Side::Mobile, turn, kept)
                }
                Transmit::Retransmission {
                    queue_position: turn, packet: kept, tsval: Some(clock), ..
                } => (Side::Mobile, turn, with_timestamp(clock, kept)),
                Transmit::Nack(nack) => {
                    let (fixed, mobile) = (nack.connection.fixed.0, nack.connection.mobile.0);
                    (Side::Mobile, QueuePosition::Front, build_packet(fixed, mobile, &nack.segment()))
                }
                Transmit::Ack(ack) => {
                    let (fixed, mobile) = (ack.connection.fixed.0, ack.connection.mobile.0);
                    (Side::Fixed, QueuePosition::Back, build_packet(mobile, fixed, &ack.segment()))
                }
            };
            match (io.inject(to, turn, &packet)?, to) {
                (InjectResult::QueueFull, Side::Mobile) => self.on_queue_drop(now, &packet),
                (InjectResult::NoRoute | InjectResult::QueueFull, _) => self.counts.no_route += 1,
                (InjectResult::Sent, Side::Mobile) => self.counts.sent_to_mobile += 1,
                (InjectResult::Sent, Side::Fixed) => self.counts.sent_to_fixed += 1,
            }
        }
        Ok(())
    }
}

impl BypassedCounts {
    /// Returns the sum.
    #[must_use]
    pub const fn total(&self) -> u64 {
        self.other_versions + self.other_protocols + self.fragments + self.bad_checksums + self.malformed
    }

    const fn counter(&mut self, why: BypassReason) -> &mut u64 {
        match why {
            BypassReason::OtherVersion => &mut self.other_versions,
            BypassReason::OtherProtocol => &mut self.other_protocols,
            BypassReason::Fragment => &mut self.fragments,
            BypassReason::BadChecksum => &mut self.bad_checksums,
            BypassReason::Malformed => &mut self.malformed,
        }
    }
}

/// Returns the packet with this timestamp value (TSval).
fn with_timestamp(clock: u32, packet: Bytes) -> Bytes {
    match ParsedSegment::parse(&packet) {
        Ok(parsed) => rewrite::with_timestamp(clock, &parsed, &packet).into(),
        Err(_) => packet,
    }
}

/// Returns a packet of the middlebox with source `src`.
fn build_packet(src: IpAddr, dst: IpAddr, segment: &Segment<Bytes>) -> Bytes {
    let ip = Header::new(src, dst, Protocol::Tcp);
    let mut packet = Vec::with_capacity(ip.min_len() + segment.wire_len());
    ip.emit(segment.wire_len(), &mut packet);
    segment.emit(&ip, &mut packet);
    packet.into()
}
