//! Runs a [`DProxy`] on bytes, and detects the presence of the other end. The mobile side is the link to that
//! end.

use super::{BATCH, BypassedCounts, ParsedSegment, PumpResult};
use crate::dproxy::{Config, DProxy, DProxyAction, Verdict};
use crate::packet::Side;
use crate::packet_io::{Arrival, InjectResult, PacketVerdict, Postpone};
use crate::pep::QueuePosition;
use crate::session::{self, HandshakeResult, PeerStatus, Session, datagram};
use bytes::Bytes;
use hopline_core::Instant;
use hopline_wire::dproxy::tunnel::{self, Datagram, MessageFormat, other_version};
use std::collections::VecDeque;
use std::net::IpAddr;

/// One end of a link, and counters of its packets.
#[derive(Debug)]
pub struct PairDriver {
    dproxy: DProxy<Stored>,
    session: Session,
    peer: IpAddr,
    /// Incarnation of the other end that the D-Proxy was told of.
    notified_epoch: Option<u64>,
    handshakes: VecDeque<session::Reply>,
    counts: PairCounts,
}

/// Counters of a [`PairDriver`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PairCounts {
    /// Segments that were sent over the link.
    pub sent: u64,
    /// Segments that arrived over it.
    pub received: u64,
    /// Packets that bypassed the D-Proxy.
    pub bypassed: BypassedCounts,
    /// Packets that waited for missing ones.
    pub postponed: u64,
    /// Packets replayed.
    pub replayed: u64,
    /// Of the packets to replay, those without a route or room.
    pub refused: u64,
    /// Messages to the other end.
    pub messages: u64,
    /// Greetings to the other end.
    pub handshakes: u64,
    /// Greetings without a valid tag: the other end has another key, or an attacker forges.
    pub handshakes_forged: u64,
    /// Sessions: one for each incarnation of the other end.
    pub sessions: u64,
    /// Malformed greetings.
    pub malformed: u64,
}

/// A packet as the D-Proxy stores it.
#[derive(Clone, Debug)]
enum Stored {
    /// Copy of a packet that was sent.
    Copy(Bytes),
    /// Packet that was received, and waits.
    Received(Arrival),
}

impl PairDriver {
    /// Creates a driver that has seen nothing, and knows of no other end. `life`: chosen at random by the
    /// caller, anew at each start.
    #[must_use]
    pub fn new(config: Config, life: u64) -> Self {
        let mut machine = DProxy::new(config);
        machine.handle_peer_absent(Instant::ZERO);
        Self {
            dproxy: machine,
            session: Session::new(config.key, MessageFormat::DProxy, life),
            peer: config.peer,
            notified_epoch: None,
            handshakes: VecDeque::new(),
            counts: PairCounts::default(),
        }
    }

    /// Handles waiting packets, 64 at most, then does what is due by `now`. Times do not go backwards. `tell`
    /// sends a datagram to the other end.
    ///
    /// # Errors
    /// Errors of `io`; packets that were received then remain without a verdict.
    pub fn pump<Io: Postpone>(
        &mut self,
        now: Instant,
        io: &mut Io,
        mut tell: impl FnMut(QueuePosition, &[u8]),
    ) -> Result<PumpResult, Io::Error> {
        let mut pumped = PumpResult::BatchFull;
        self.send_handshakes(now, &mut tell);
        for _ in 0..BATCH {
            let Some(arrival) = io.receive()? else {
                pumped = PumpResult::Drained;
                break;
            };
            self.pass(now, arrival, io)?;
            self.execute_actions(io, &mut tell)?;
        }
        if self.dproxy.poll_timeout().is_some_and(|due| due <= now) {
            self.dproxy.handle_timeout(now);
        }
        self.execute_actions(io, &mut tell)?;
        io.flush()?;
        while let Some(packet) = io.next_dropped() {
            self.on_queue_drop(&packet);
        }
        Ok(pumped)
    }

    /// Handles a datagram that has come from an address to the port of messages. Its effects follow with the
    /// next [`PairDriver::pump`].
    pub fn handle_datagram(&mut self, now: Instant, from: IpAddr, bytes: &[u8]) {
        if from == self.peer && bytes.first() == Some(&tunnel::MAGIC) {
            self.handle_handshake(now, bytes);
        } else if self.dproxy.handle_datagram(now, from, bytes) {
            self.session.record_message(now);
        } else if from == self.peer {
            self.handle_other_version(now, bytes);
        }
        self.notify_dproxy(now);
    }

    /// Returns when to call [`PairDriver::pump`] even if no packet waits.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        let greets = if self.handshakes.is_empty() { self.session.poll_timeout() } else { Instant::ZERO };
        [greets].into_iter().chain(self.dproxy.poll_timeout()).min()
    }

    /// Returns the state of the other end, as far as known.
    #[must_use]
    pub const fn peer(&self) -> PeerStatus {
        self.session.peer()
    }

    /// Returns the counters.
    #[must_use]
    pub const fn counts(&self) -> &PairCounts {
        &self.counts
    }

    /// Returns the counters of the D-Proxy.
    #[must_use]
    pub const fn stats(&self) -> &crate::dproxy::Stats {
        self.dproxy.stats()
    }

    /// Returns the counters of the recovery.
    #[must_use]
    pub const fn recovery(&self) -> &crate::dproxy::RecoveryStats {
        self.dproxy.recovery()
    }

    /// Returns the number of waiting packets.
    #[must_use]
    pub const fn waiting_packets(&self) -> u32 {
        self.dproxy.waiting_packets()
    }

    /// Returns the number of cached packets.
    #[must_use]
    pub const fn cached(&self) -> usize {
        self.dproxy.cached()
    }

    /// Returns the number of known connections.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.dproxy.connections()
    }

    fn handle_handshake(&mut self, now: Instant, bytes: &[u8]) {
        let Ok(Datagram::Handshake(greeting, tag)) = Datagram::parse(&Bytes::copy_from_slice(bytes)) else {
            self.counts.malformed += 1;
            return self.handle_other_version(now, bytes);
        };
        match self.session.handle_handshake(now, &greeting, &tag) {
            HandshakeResult::Forged => self.counts.handshakes_forged += 1,
            HandshakeResult::Reflected => {}
            HandshakeResult::Unchanged(answer) => self.handshakes.extend(answer),
            HandshakeResult::Established(answer) => {
                self.counts.sessions += 1;
                self.handshakes.push_back(answer);
            }
        }
    }

    fn handle_other_version(&mut self, now: Instant, bytes: &[u8]) {
        if let Some(version) = other_version(bytes) {
            self.session.handle_other_version(now, version);
        }
    }

    /// Tells the D-Proxy about the presence of the other end, if it has changed.
    fn notify_dproxy(&mut self, now: Instant) {
        let present = self.session.present_epoch();
        if present == self.notified_epoch {
            return;
        }
        self.notified_epoch = present;
        match present.and_then(|_| self.session.keys()) {
            Some(keys) => self.dproxy.handle_peer_present(now, keys),
            None => self.dproxy.handle_peer_absent(now),
        }
    }

    fn send_handshakes(&mut self, now: Instant, tell: &mut impl FnMut(QueuePosition, &[u8])) {
        self.handshakes.extend(self.session.poll_handshake(now));
        self.notify_dproxy(now);
        for greeting in self.handshakes.drain(..) {
            self.counts.handshakes += 1;
            tell(QueuePosition::Front, &datagram(greeting));
        }
    }

    /// Records that the link's queue has dropped this packet: it is not repaired.
    fn on_queue_drop(&mut self, packet: &Bytes) {
        if let Ok(parsed) = ParsedSegment::parse(packet) {
            self.dproxy.on_queue_drop(parsed.packet());
        }
    }

    fn pass<Io: Postpone>(&mut self, now: Instant, arrival: Arrival, io: &mut Io) -> Result<(), Io::Error> {
        let parsed = match ParsedSegment::parse(&arrival.packet) {
            Ok(parsed) => parsed,
            Err(why) => {
                *self.counts.bypassed.counter(why) += 1;
                return io.set_verdict(arrival, PacketVerdict::Forward);
            }
        };
        let packet = parsed.packet();
        self.session.record_traffic();
        if arrival.from == Side::Fixed {
            self.counts.sent += 1;
            self.dproxy.pass_out(now, packet, || Stored::Copy(parsed.without_padding(&arrival.packet)));
            return io.set_verdict(arrival, PacketVerdict::Forward);
        }
        self.counts.received += 1;
        match self.dproxy.pass_in(now, packet, || Stored::Received(arrival.clone())) {
            Verdict::Forward => io.set_verdict(arrival, PacketVerdict::Forward),
            Verdict::Delayed => {
                self.counts.postponed += 1;
                io.postpone(&arrival)
            }
        }
    }

    fn execute_actions<Io: Postpone>(
        &mut self,
        io: &mut Io,
        tell: &mut impl FnMut(QueuePosition, &[u8]),
    ) -> Result<(), Io::Error> {
        let mut message = Vec::new();
        while let Some(does) = self.dproxy.poll_action() {
            match does {
                DProxyAction::Retransmit(turn, Stored::Copy(packet)) => {
                    match io.inject(Side::Mobile, turn, &packet)? {
                        InjectResult::Sent => self.counts.replayed += 1,
                        InjectResult::NoRoute => self.counts.refused += 1,
                        InjectResult::QueueFull => {
                            self.counts.refused += 1;
                            self.on_queue_drop(&packet);
                        }
                    }
                }
                DProxyAction::Forward(Stored::Received(arrival)) => {
                    io.set_verdict(arrival, PacketVerdict::Forward)?
                }
                DProxyAction::Retransmit(_, Stored::Received(_)) | DProxyAction::Forward(Stored::Copy(_)) => {
                    unreachable!("what goes out is kept as a copy, and what comes in waits as it is")
                }
                DProxyAction::Send { queue_position: turn, sealed, .. } => {
                    self.counts.messages += 1;
                    message.clear();
                    sealed.emit(&mut message);
                    tell(turn, &message);
                }
            }
        }
        Ok(())
    }
}
