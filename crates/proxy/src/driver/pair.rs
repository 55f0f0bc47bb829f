//! Runs a [`DProxy`] on bytes. The mobile side of the place is the link with the other end behind it.

use super::{BATCH, Pumped, Untouched, parse, whole};
use crate::dproxy::{Config, DProxy, Does, Verdict};
use crate::filter::Turn;
use crate::packet::{Packet, Side};
use crate::packet_io::{Arrival, Fate, Injected, Postpones};
use bytes::Bytes;
use hopline_core::Instant;
use hopline_wire::dproxy::Sealed;
use std::net::Ipv4Addr;

/// One end of a link, and what it has been brought.
#[derive(Debug)]
pub struct PairDriver {
    machine: DProxy<Stored>,
    counts: PairCounts,
}

/// What a [`PairDriver`] has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PairCounts {
    /// Segments that went out over the link.
    pub out: u64,
    /// Segments that came over it.
    pub come: u64,
    /// Packets that passed without the machine.
    pub untouched: Untouched,
    /// Packets that waited for others.
    pub postponed: u64,
    /// Packets sent again.
    pub sent_again: u64,
    /// Of what was to be sent again: packets for which there was no way, or no room.
    pub refused: u64,
    /// Messages to the other end.
    pub messages: u64,
}

/// A packet as the machine has it.
#[derive(Clone, Debug)]
enum Stored {
    /// Of one that has gone out.
    Copy(Bytes),
    /// One that has come in, and waits.
    Held(Arrival),
}

impl PairDriver {
    /// One that has seen nothing.
    #[must_use]
    pub fn new(config: Config) -> Self {
        Self { machine: DProxy::new(config), counts: PairCounts::default() }
    }

    /// Takes the packets that wait, 64 at most, then does what is due by `now`. Times do not go backwards. `tell` sends a message to the
    /// other end.
    ///
    /// # Errors
    /// What `io` says; packets that were received stay without an answer then.
    pub fn pump<Io: Postpones>(
        &mut self,
        now: Instant,
        io: &mut Io,
        mut tell: impl FnMut(Turn, &Sealed),
    ) -> Result<Pumped, Io::Error> {
        let mut pumped = Pumped::Batch;
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

    /// Takes a datagram that has come from an address to the port of messages. What follows from it happens with the next
    /// [`PairDriver::pump`].
    pub fn handle_datagram(&mut self, now: Instant, from: Ipv4Addr, bytes: &[u8]) {
        self.machine.handle_datagram(now, from, bytes);
    }

    /// When to call [`PairDriver::pump`] though no packet waits.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.machine.poll_timeout()
    }

    /// What has been done.
    #[must_use]
    pub const fn counts(&self) -> &PairCounts {
        &self.counts
    }

    /// What the machine has done.
    #[must_use]
    pub const fn stats(&self) -> &crate::dproxy::Stats {
        self.machine.stats()
    }

    /// What it has done about what was missing.
    #[must_use]
    pub const fn recovery(&self) -> &crate::dproxy::RecoveryStats {
        self.machine.recovery()
    }

    /// Packets that wait.
    #[must_use]
    pub const fn held(&self) -> u32 {
        self.machine.held()
    }

    /// Packets that are kept.
    #[must_use]
    pub const fn cached(&self) -> usize {
        self.machine.cached()
    }

    /// Connections that are known.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.machine.connections()
    }

    /// The queue of the link has dropped this packet: it is not repaired.
    fn refused(&mut self, packet: &Bytes) {
        if let Ok((ip, segment)) = parse(packet) {
            self.machine.refused(Packet { ip: &ip, segment: &segment });
        }
    }

    fn pass<Io: Postpones>(&mut self, now: Instant, arrival: Arrival, io: &mut Io) -> Result<(), Io::Error> {
        let (ip, segment) = match parse(&arrival.packet) {
            Ok(parsed) => parsed,
            Err(why) => {
                *self.counts.untouched.of(why) += 1;
                return io.conclude(arrival, Fate::Pass);
            }
        };
        let packet = Packet { ip: &ip, segment: &segment };
        if arrival.from == Side::Fixed {
            self.counts.out += 1;
            self.machine.pass_out(now, packet, || Stored::Copy(whole(&arrival.packet)));
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
        tell: &mut impl FnMut(Turn, &Sealed),
    ) -> Result<(), Io::Error> {
        while let Some(does) = self.machine.poll() {
            match does {
                Does::Replays(stored) | Does::Releases(stored) => match stored {
                    Stored::Held(arrival) => io.conclude(arrival, Fate::Pass)?,
                    Stored::Copy(packet) => match io.inject(Side::Mobile, Turn::First, &packet)? {
                        Injected::Sent => self.counts.sent_again += 1,
                        Injected::Refused => self.counts.refused += 1,
                        Injected::NoRoom => {
                            self.counts.refused += 1;
                            self.refused(&packet);
                        }
                    },
                },
                Does::Sends { turn, sealed, .. } => {
                    self.counts.messages += 1;
                    tell(turn, &sealed);
                }
            }
        }
        Ok(())
    }
}
