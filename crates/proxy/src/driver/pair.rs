//! Runs a [`DProxy`] on bytes, and detects the presence of the other end. The mobile side is the link to that
//! end.

use super::{BATCH, Parsed, Pumped, Untouched};
use crate::dproxy::{Config, DProxy, Does, Verdict};
use crate::filter::Turn;
use crate::packet::Side;
use crate::packet_io::{Arrival, Fate, Injected, Postpones};
use crate::session::{self, Heard, Peer, Session, datagram};
use bytes::Bytes;
use hopline_core::Instant;
use hopline_wire::dproxy::tunnel::{self, Datagram, Speaks, other_version};
use std::collections::VecDeque;
use std::net::IpAddr;

/// One end of a link, and counters of its packets.
#[derive(Debug)]
pub struct PairDriver {
    machine: DProxy<Stored>,
    session: Session,
    peer: IpAddr,
    /// Incarnation of the other end that the D-Proxy was told of.
    told: Option<u64>,
    greetings: VecDeque<session::Reply>,
    counts: PairCounts,
}

/// Counters of a [`PairDriver`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PairCounts {
    /// Segments that were sent over the link.
    pub out: u64,
    /// Segments that arrived over it.
    pub come: u64,
    /// Packets that bypassed the D-Proxy.
    pub untouched: Untouched,
    /// Packets that waited for missing ones.
    pub postponed: u64,
    /// Packets replayed.
    pub sent_again: u64,
    /// Of the packets to replay, those without a route or room.
    pub refused: u64,
    /// Messages to the other end.
    pub messages: u64,
    /// Greetings to the other end.
    pub greetings: u64,
    /// Greetings without a valid tag: the other end has another key, or an attacker forges.
    pub greetings_forged: u64,
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
    Held(Arrival),
}

impl PairDriver {
    /// Creates a driver that has seen nothing, and knows of no other end. `life`: chosen at random by the
    /// caller, anew at each start.
    #[must_use]
    pub fn new(config: Config, life: u64) -> Self {
        let mut machine = DProxy::new(config);
        machine.peer_left(Instant::ZERO);
        Self {
            machine,
            session: Session::new(config.key, Speaks::Messages, life),
            peer: config.peer,
            told: None,
            greetings: VecDeque::new(),
            counts: PairCounts::default(),
        }
    }

    /// Handles waiting packets, 64 at most, then does what is due by `now`. Times do not go backwards. `tell`
    /// sends a datagram to the other end.
    ///
    /// # Errors
    /// Errors of `io`; packets that were received then remain without a verdict.
    pub fn pump<Io: Postpones>(
        &mut self,
        now: Instant,
        io: &mut Io,
        mut tell: impl FnMut(Turn, &[u8]),
    ) -> Result<Pumped, Io::Error> {
        let mut pumped = Pumped::Batch;
        self.greet(now, &mut tell);
        for _ in 0..BATCH {
            let Some(arrival) = io.receive()? else {
                pumped = Pumped::All;
                break;
            };
            self.pass(now, arrival, io)?;
            self.carry_out(io, &mut tell)?;
        }
        if self.machine.poll_timeout().is_some_and(|due| due <= now) {
            self.machine.handle_timeout(now);
        }
        self.carry_out(io, &mut tell)?;
        io.flush()?;
        while let Some(packet) = io.next_dropped() {
            self.refused(&packet);
        }
        Ok(pumped)
    }

    /// Handles a datagram that has come from an address to the port of messages. Its effects follow with the
    /// next [`PairDriver::pump`].
    pub fn handle_datagram(&mut self, now: Instant, from: IpAddr, bytes: &[u8]) {
        if from == self.peer && bytes.first() == Some(&tunnel::MAGIC) {
            self.handle_greeting(now, bytes);
        } else if self.machine.handle_datagram(now, from, bytes) {
            self.session.heard_message(now);
        } else if from == self.peer {
            self.find_version(now, bytes);
        }
        self.tell_machine(now);
    }

    /// Returns when to call [`PairDriver::pump`] even if no packet waits.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        let greets = if self.greetings.is_empty() { self.session.due() } else { Instant::ZERO };
        [greets].into_iter().chain(self.machine.poll_timeout()).min()
    }

    /// Returns the state of the other end, as far as known.
    #[must_use]
    pub const fn peer(&self) -> Peer {
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
        self.machine.stats()
    }

    /// Returns the counters of the recovery.
    #[must_use]
    pub const fn recovery(&self) -> &crate::dproxy::RecoveryStats {
        self.machine.recovery()
    }

    /// Returns the number of waiting packets.
    #[must_use]
    pub const fn held(&self) -> u32 {
        self.machine.held()
    }

    /// Returns the number of cached packets.
    #[must_use]
    pub const fn cached(&self) -> usize {
        self.machine.cached()
    }

    /// Returns the number of known connections.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.machine.connections()
    }

    fn handle_greeting(&mut self, now: Instant, bytes: &[u8]) {
        let Ok(Datagram::Greeting(greeting, tag)) = Datagram::parse(&Bytes::copy_from_slice(bytes)) else {
            self.counts.malformed += 1;
            return self.find_version(now, bytes);
        };
        match self.session.hear(now, &greeting, &tag) {
            Heard::Forged => self.counts.greetings_forged += 1,
            Heard::Own => {}
            Heard::Nothing(answer) => self.greetings.extend(answer),
            Heard::Began(answer) => {
                self.counts.sessions += 1;
                self.greetings.push_back(answer);
            }
        }
    }

    fn find_version(&mut self, now: Instant, bytes: &[u8]) {
        if let Some(version) = other_version(bytes) {
            self.session.hear_other_version(now, version);
        }
    }

    /// Tells the D-Proxy about the presence of the other end, if it has changed.
    fn tell_machine(&mut self, now: Instant) {
        let present = self.session.present();
        if present == self.told {
            return;
        }
        self.told = present;
        match present.and_then(|_| self.session.keys()) {
            Some(keys) => self.machine.peer_came(now, keys),
            None => self.machine.peer_left(now),
        }
    }

    fn greet(&mut self, now: Instant, tell: &mut impl FnMut(Turn, &[u8])) {
        self.greetings.extend(self.session.greet(now));
        self.tell_machine(now);
        for greeting in self.greetings.drain(..) {
            self.counts.greetings += 1;
            tell(Turn::First, &datagram(greeting));
        }
    }

    /// Records that the link's queue has dropped this packet: it is not repaired.
    fn refused(&mut self, packet: &Bytes) {
        if let Ok(parsed) = Parsed::of(packet) {
            self.machine.refused(parsed.packet());
        }
    }

    fn pass<Io: Postpones>(&mut self, now: Instant, arrival: Arrival, io: &mut Io) -> Result<(), Io::Error> {
        let parsed = match Parsed::of(&arrival.packet) {
            Ok(parsed) => parsed,
            Err(why) => {
                *self.counts.untouched.of(why) += 1;
                return io.conclude(arrival, Fate::Pass);
            }
        };
        let packet = parsed.packet();
        self.session.note_traffic();
        if arrival.from == Side::Fixed {
            self.counts.out += 1;
            self.machine.pass_out(now, packet, || Stored::Copy(parsed.whole(&arrival.packet)));
            return io.conclude(arrival, Fate::Pass);
        }
        self.counts.come += 1;
        match self.machine.pass_in(now, packet, || Stored::Held(arrival.clone())) {
            Verdict::Forward => io.conclude(arrival, Fate::Pass),
            Verdict::Held => {
                self.counts.postponed += 1;
                io.postpone(&arrival)
            }
        }
    }

    fn carry_out<Io: Postpones>(
        &mut self,
        io: &mut Io,
        tell: &mut impl FnMut(Turn, &[u8]),
    ) -> Result<(), Io::Error> {
        let mut message = Vec::new();
        while let Some(does) = self.machine.poll() {
            match does {
                Does::Replays(turn, Stored::Copy(packet)) => match io.inject(Side::Mobile, turn, &packet)? {
                    Injected::Sent => self.counts.sent_again += 1,
                    Injected::Refused => self.counts.refused += 1,
                    Injected::NoRoom => {
                        self.counts.refused += 1;
                        self.refused(&packet);
                    }
                },
                Does::Releases(Stored::Held(arrival)) => io.conclude(arrival, Fate::Pass)?,
                Does::Replays(_, Stored::Held(_)) | Does::Releases(Stored::Copy(_)) => {
                    unreachable!("what goes out is kept as a copy, and what comes in waits as it is")
                }
                Does::Sends { turn, sealed, .. } => {
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
