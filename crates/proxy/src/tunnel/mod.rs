//! Tunnel with loss recovery between any two hosts. Frames travel in UDP datagrams, each with a tag and
//! protected against replay. It carries any IPv4 and IPv6 packets, and does not inspect them.
//!
//! A [`Tunnel`] at each end combines [`Opaque`](opaque::Opaque) or [`Arq`](arq::Arq) with a session. Both
//! ends greet each other at start. After a restart an end has another identifier (`life`); the other end
//! follows once it has answered a fresh challenge, and both begin with empty windows. Until the ends have a
//! session, packets are dropped and counted. The reply to a greeting is as long as that, and a frame without
//! a valid tag gets no reply.

mod link;
mod repair;

use crate::dproxy::{Key, RecoveryStats};
use crate::filter::Turn;
use crate::session::{self, Heard, Opened, Peer, Session, datagram};
use bytes::Bytes;
use hopline_core::Instant;
use hopline_wire::dproxy::tunnel::{Datagram, HEADER_LEN, Speaks, other_version};
use link::{Link, Wish};
pub use repair::Repair;
use std::collections::VecDeque;

/// Maximum overhead of a datagram, bytes: its own header, that of frames, and that of parity.
pub const OVERHEAD: usize = HEADER_LEN + 12;

/// Parameters of one end of a tunnel. Both ends need the same key and the same repair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Shared secret of both ends.
    pub key: Key,
    /// Loss recovery.
    pub repair: Repair,
}

/// Action of an end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Does {
    /// Send a datagram to the other end.
    Sends {
        /// Turn in the queue.
        turn: Turn,
        /// Payload of the datagram.
        datagram: Vec<u8>,
        /// Number of the packet in it, if there is one, for [`Tunnel::refused`].
        packet: Option<u32>,
    },
    /// Deliver a packet that has crossed.
    Delivers(Bytes),
}

/// Counters of an end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Packets to send.
    pub packets: u64,
    /// Of those, dropped because there was no session.
    pub without_peer: u64,
    /// Of those, dropped because too many were in flight, or the queue had no room.
    pub refused: u64,
    /// Packets delivered.
    pub delivered: u64,
    /// Packets retransmitted.
    pub sent_again: u64,
    /// Packets restored from parity.
    pub restored: u64,
    /// Sessions: one for each incarnation of the other end.
    pub sessions: u64,
    /// Greetings sent.
    pub greetings: u64,
    /// Malformed datagrams or frames: cut short, too long, of another version or kind.
    pub malformed: u64,
    /// Greetings without a valid tag: the other end has another key, or an attacker forges.
    pub forged_greetings: u64,
    /// Frames without a valid tag: forged, damaged, or of a former session.
    pub forged: u64,
    /// Frames with a repeated number, or one below the replay window.
    pub replays_refused: u64,
    /// Own greetings that were reflected.
    pub own: u64,
}

/// One end of a tunnel.
#[derive(Debug)]
pub struct Tunnel {
    repair: Repair,
    session: Session,
    link: Link,
    out: VecDeque<Does>,
    stats: Stats,
}

impl Tunnel {
    /// Creates an end without a session. `life`: chosen at random by the caller, anew at each start.
    #[must_use]
    pub fn new(config: Config, life: u64) -> Self {
        let Config { key, repair } = config;
        let speaks = match repair {
            Repair::Asking(_) => Speaks::Asking,
            Repair::Acknowledging(_) => Speaks::Acknowledging,
        };
        let session = Session::new(key, speaks, life);
        let link = Link::new(repair, life);
        Self { repair, session, link, out: VecDeque::new(), stats: Stats::default() }
    }

    /// Sends a packet through the tunnel.
    pub fn send(&mut self, now: Instant, packet: Bytes) {
        self.stats.packets += 1;
        if !self.session.is_ready() {
            self.stats.without_peer += 1;
            return;
        }
        self.session.note_traffic();
        self.link.send(now, packet);
        self.carry_out();
    }

    /// Handles the payload of a datagram that may be from the other end.
    pub fn handle_datagram(&mut self, now: Instant, bytes: &Bytes) {
        match Datagram::parse(bytes) {
            Err(_) => {
                self.stats.malformed += 1;
                if let Some(version) = other_version(bytes) {
                    self.session.hear_other_version(now, version);
                }
            }
            Ok(Datagram::Greeting(greeting, tag)) => match self.session.hear(now, &greeting, &tag) {
                Heard::Forged => self.stats.forged_greetings += 1,
                Heard::Own => self.stats.own += 1,
                Heard::Nothing(answer) => answer.into_iter().for_each(|answer| self.greet(answer)),
                Heard::Began(answer) => {
                    self.begin();
                    self.greet(answer);
                }
            },
            Ok(Datagram::Frame(sealed)) => match self.session.open(now, sealed) {
                Opened::Forged => self.stats.forged += 1,
                Opened::Replayed => self.stats.replays_refused += 1,
                Opened::Frame(frame) => {
                    if self.link.handle_frame(now, &frame).is_err() {
                        self.stats.malformed += 1;
                    }
                    self.carry_out();
                }
            },
        }
    }

    /// Records that the queue of datagrams had no room for the packet of this number. This is congestion: it
    /// is not repaired.
    pub fn refused(&mut self, packet: u32) {
        self.link.refused(packet);
        self.carry_out();
    }

    /// Does what is due at `now`.
    pub fn handle_timeout(&mut self, now: Instant) {
        if let Some(greeting) = self.session.greet(now) {
            self.greet(greeting);
        }
        self.link.handle_timeout(now);
        self.carry_out();
    }

    /// Returns the next action.
    pub fn poll(&mut self) -> Option<Does> {
        self.out.pop_front()
    }

    /// Returns the time of the next call of [`Tunnel::handle_timeout`].
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        [self.session.due()].into_iter().chain(self.link.poll_timeout()).min()
    }

    /// Returns whether the ends have a session.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.session.is_ready()
    }

    /// Returns the state of the other end, as far as known.
    #[must_use]
    pub const fn peer(&self) -> Peer {
        self.session.peer()
    }

    /// Returns the counters.
    #[must_use]
    pub fn stats(&self) -> Stats {
        let link = self.link.counts();
        Stats {
            sent_again: self.stats.sent_again + link.sent_again,
            restored: self.stats.restored + link.restored,
            ..self.stats
        }
    }

    /// Returns the counters of the recovery since the session began, if missing packets are requested.
    #[must_use]
    pub fn recovery(&self) -> Option<&RecoveryStats> {
        self.link.recovery()
    }

    /// Starts a new session with empty state. Packets that waited for missing ones are lost.
    fn begin(&mut self) {
        self.stats.sessions += 1;
        let link = self.link.counts();
        self.stats.sent_again += link.sent_again;
        self.stats.restored += link.restored;
        self.link = Link::new(self.repair, self.session.life());
    }

    fn greet(&mut self, greeting: session::Reply) {
        self.stats.greetings += 1;
        self.out.push_back(Does::Sends { turn: Turn::First, datagram: datagram(greeting), packet: None });
    }

    /// Carries out the actions of the link.
    fn carry_out(&mut self) {
        while let Some(wish) = self.link.poll() {
            match wish {
                Wish::Send { turn, frame, packet } => {
                    if let Some(datagram) = self.session.seal(|out| frame.emit(out)) {
                        self.out.push_back(Does::Sends { turn, datagram, packet });
                    }
                }
                Wish::Deliver(packet) => {
                    self.stats.delivered += 1;
                    self.out.push_back(Does::Delivers(packet));
                }
                Wish::Drop => self.stats.refused += 1,
            }
        }
    }
}

#[cfg(test)]
mod tests;
