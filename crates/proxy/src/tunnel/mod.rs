//! A link that repairs its losses between any two hosts: its frames travel in UDP datagrams, each with proof that it comes from the other
//! end, and comes once. IPv4 and IPv6, TCP and whatever else: nothing looks into the packets.
//!
//! One [`Tunnel`] at each end is [`Opaque`](opaque::Opaque) or [`Arq`](arq::Arq), and a session around it. Both ends greet each other when
//! they begin. One that begins again has another life; the other follows as soon as it has met a fresh challenge, and both begin with empty
//! windows. Until the ends know each other packets are dropped, and counted. A greeting is answered by one as long, a frame by nothing if
//! it proves nothing.

mod link;

use crate::arq;
use crate::dproxy::{Key, RecoveryStats, opaque};
use crate::filter::Turn;
use crate::session::{self, Heard, Opened, Peer, Session, datagram};
use bytes::Bytes;
use hopline_core::Instant;
use hopline_wire::dproxy::tunnel::{Datagram, HEADER_LEN, Speaks, other_version};
use link::{Link, Wish};
use std::collections::VecDeque;

/// Longest that a datagram is beyond a packet in it, in bytes: its own header, that of frames, and what parity has beside the bytes.
pub const OVERHEAD: usize = HEADER_LEN + 12;

/// How one end of a tunnel behaves. Both ends must have the same key, and repair alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// What both ends share.
    pub key: Key,
    /// How losses are repaired.
    pub repair: Repair,
}

/// How losses of a tunnel are repaired.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repair {
    /// What is missing is asked for ([`opaque`]).
    Asking(opaque::Config),
    /// Each frame is acknowledged ([`arq`]). Parity is not sent, whatever the configuration says.
    Acknowledging(arq::Config),
}

/// What an end does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Does {
    /// It sends a datagram to the other end.
    Sends {
        /// When it has its turn.
        turn: Turn,
        /// Its payload.
        datagram: Vec<u8>,
        /// The number of the packet in it, if there is one: what [`Tunnel::refused`] wants to know.
        packet: Option<u32>,
    },
    /// A packet has crossed.
    Delivers(Bytes),
}

/// What an end has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Packets that were to cross.
    pub packets: u64,
    /// Of those, dropped because the ends did not know each other.
    pub without_peer: u64,
    /// Of those, dropped because too many were under way, or the queue had no room.
    pub refused: u64,
    /// Packets that have crossed.
    pub delivered: u64,
    /// Packets sent again.
    pub sent_again: u64,
    /// Packets made again from parity.
    pub restored: u64,
    /// Sessions begun: one for each life of the other end.
    pub sessions: u64,
    /// Greetings sent.
    pub greetings: u64,
    /// Datagrams or frames that are none: cut short, too long, of another version or kind.
    pub malformed: u64,
    /// Greetings without the right proof: the other end has another key, or somebody forges.
    pub forged_greetings: u64,
    /// Frames without the right proof: forged, damaged, or of a former session.
    pub forged: u64,
    /// Frames that have come before, or are too old.
    pub replays_refused: u64,
    /// Greetings of this end that came back to it.
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
    /// An end that knows nobody. `life`: chosen at random by whoever drives it, another one each time that it begins.
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

    /// A packet is to cross.
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

    /// The payload of a datagram has come that may be the other end's.
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

    /// The packet of this number had no room in the queue that datagrams wait in. That is congestion: it is not repaired.
    pub fn refused(&mut self, packet: u32) {
        self.link.refused(packet);
        self.carry_out();
    }

    /// Does what is due.
    pub fn handle_timeout(&mut self, now: Instant) {
        if let Some(greeting) = self.session.greet(now) {
            self.greet(greeting);
        }
        self.link.handle_timeout(now);
        self.carry_out();
    }

    /// The next thing to do.
    pub fn poll(&mut self) -> Option<Does> {
        self.out.pop_front()
    }

    /// When to call [`Tunnel::handle_timeout`].
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        [self.session.due()].into_iter().chain(self.link.poll_timeout()).min()
    }

    /// Whether the ends know each other.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.session.is_ready()
    }

    /// The other end, as far as this one can tell.
    #[must_use]
    pub const fn peer(&self) -> Peer {
        self.session.peer()
    }

    /// What it has done.
    #[must_use]
    pub fn stats(&self) -> Stats {
        let link = self.link.counts();
        Stats {
            sent_again: self.stats.sent_again + link.sent_again,
            restored: self.stats.restored + link.restored,
            ..self.stats
        }
    }

    /// What it has done about what was missing since the session began, if it asks.
    #[must_use]
    pub fn recovery(&self) -> Option<&RecoveryStats> {
        self.link.recovery()
    }

    /// The session is a new one: nothing of the last one counts any more. What waited for other packets then is lost with these.
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

    /// Has happen what the link wishes.
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
