//! Tunnel with loss recovery between any two hosts. Frames travel in UDP datagrams, each with a tag and
//! protected against replay. It carries any IPv4 and IPv6 packets, and does not inspect them.
//!
//! A [`Tunnel`] at each end combines [`Opaque`](crate::dproxy::opaque::Opaque) or [`Arq`](crate::arq::Arq) with a session. Both
//! ends greet each other at start. After a restart an end has another identifier (`life`); the other end
//! follows once it has answered a fresh challenge, and both begin with empty windows. Until the ends have a
//! session, packets are dropped and counted. The reply to a greeting is as long as that, and a frame without
//! a valid tag gets no reply.

mod link;
mod repair;

use crate::dproxy::{Key, RecoveryStats};
use crate::pep::QueuePosition;
use crate::session::{self, HandshakeResult, OpenResult, PeerStatus, Session, datagram};
use bytes::Bytes;
use hopline_core::Instant;
use hopline_wire::dproxy::tunnel::{Datagram, HEADER_LEN, MessageFormat, other_version};
use link::{Link, LinkAction};
pub use repair::RecoveryScheme;
use std::collections::VecDeque;

/// Maximum overhead of a datagram, bytes: its own header, that of frames, and that of parity.
pub const MAX_OVERHEAD: usize = HEADER_LEN + 12;

/// Parameters of one end of a tunnel. Both ends need the same key and the same repair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Shared secret of both ends.
    pub key: Key,
    /// Loss recovery.
    pub recovery: RecoveryScheme,
}

/// Action of an end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TunnelAction {
    /// Send a datagram to the other end.
    SendDatagram {
        /// Turn in the queue.
        queue_position: QueuePosition,
        /// Payload of the datagram.
        datagram: Vec<u8>,
        /// Number of the packet in it, if there is one, for [`Tunnel::on_queue_drop`].
        packet: Option<u32>,
    },
    /// Deliver a packet that has crossed.
    Deliver(Bytes),
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
    pub retransmitted: u64,
    /// Packets restored from parity.
    pub restored: u64,
    /// Sessions: one for each incarnation of the other end.
    pub sessions: u64,
    /// Greetings sent.
    pub handshakes: u64,
    /// Malformed datagrams or frames: cut short, too long, of another version or kind.
    pub malformed: u64,
    /// Greetings without a valid tag: the other end has another key, or an attacker forges.
    pub forged_handshakes: u64,
    /// Frames without a valid tag: forged, damaged, or of a former session.
    pub forged: u64,
    /// Frames with a repeated number, or one below the replay window.
    pub replays_refused: u64,
    /// Own greetings that were reflected.
    pub reflected: u64,
}

/// One end of a tunnel.
#[derive(Debug)]
pub struct Tunnel {
    recovery_scheme: RecoveryScheme,
    session: Session,
    link: Link,
    actions: VecDeque<TunnelAction>,
    stats: Stats,
}

impl Tunnel {
    /// Creates an end without a session. `life`: chosen at random by the caller, anew at each start.
    #[must_use]
    pub fn new(config: Config, life: u64) -> Self {
        let Config { key, recovery: repair } = config;
        let speaks = match repair {
            RecoveryScheme::Nack(_) => MessageFormat::NackFrames,
            RecoveryScheme::Arq(_) => MessageFormat::ArqFrames,
        };
        let session = Session::new(key, speaks, life);
        let link = Link::new(repair, life);
        Self { recovery_scheme: repair, session, link, actions: VecDeque::new(), stats: Stats::default() }
    }

    /// Sends a packet through the tunnel.
    pub fn send(&mut self, now: Instant, packet: Bytes) {
        self.stats.packets += 1;
        if !self.session.is_ready() {
            self.stats.without_peer += 1;
            return;
        }
        self.session.record_traffic();
        self.link.send(now, packet);
        self.execute_actions();
    }

    /// Handles the payload of a datagram that may be from the other end.
    pub fn handle_datagram(&mut self, now: Instant, bytes: &Bytes) {
        match Datagram::parse(bytes) {
            Err(_) => {
                self.stats.malformed += 1;
                if let Some(version) = other_version(bytes) {
                    self.session.handle_other_version(now, version);
                }
            }
            Ok(Datagram::Handshake(greeting, tag)) => {
                match self.session.handle_handshake(now, &greeting, &tag) {
                    HandshakeResult::Forged => self.stats.forged_handshakes += 1,
                    HandshakeResult::Reflected => self.stats.reflected += 1,
                    HandshakeResult::Unchanged(answer) => {
                        answer.into_iter().for_each(|answer| self.send_handshake(answer))
                    }
                    HandshakeResult::Established(answer) => {
                        self.start_session();
                        self.send_handshake(answer);
                    }
                }
            }
            Ok(Datagram::Frame(sealed)) => match self.session.open(now, sealed) {
                OpenResult::Forged => self.stats.forged += 1,
                OpenResult::Replayed => self.stats.replays_refused += 1,
                OpenResult::Frame(frame) => {
                    if self.link.handle_frame(now, &frame).is_err() {
                        self.stats.malformed += 1;
                    }
                    self.execute_actions();
                }
            },
        }
    }

    /// Records that the queue of datagrams had no room for the packet of this number. This is congestion: it
    /// is not repaired.
    pub fn on_queue_drop(&mut self, packet: u32) {
        self.link.on_queue_drop(packet);
        self.execute_actions();
    }

    /// Does what is due at `now`.
    pub fn handle_timeout(&mut self, now: Instant) {
        if let Some(greeting) = self.session.poll_handshake(now) {
            self.send_handshake(greeting);
        }
        self.link.handle_timeout(now);
        self.execute_actions();
    }

    /// Returns the next action.
    pub fn poll_action(&mut self) -> Option<TunnelAction> {
        self.actions.pop_front()
    }

    /// Returns the time of the next call of [`Tunnel::handle_timeout`].
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        [self.session.poll_timeout()].into_iter().chain(self.link.poll_timeout()).min()
    }

    /// Returns whether the ends have a session.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.session.is_ready()
    }

    /// Returns the state of the other end, as far as known.
    #[must_use]
    pub const fn peer(&self) -> PeerStatus {
        self.session.peer()
    }

    /// Returns the counters.
    #[must_use]
    pub fn stats(&self) -> Stats {
        let link = self.link.counts();
        Stats {
            retransmitted: self.stats.retransmitted + link.retransmitted,
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
    fn start_session(&mut self) {
        self.stats.sessions += 1;
        let link = self.link.counts();
        self.stats.retransmitted += link.retransmitted;
        self.stats.restored += link.restored;
        self.link = Link::new(self.recovery_scheme, self.session.epoch());
    }

    fn send_handshake(&mut self, greeting: session::Reply) {
        self.stats.handshakes += 1;
        self.actions.push_back(TunnelAction::SendDatagram {
            queue_position: QueuePosition::Front,
            datagram: datagram(greeting),
            packet: None,
        });
    }

    /// Carries out the actions of the link.
    fn execute_actions(&mut self) {
        while let Some(wish) = self.link.poll() {
            match wish {
                LinkAction::Send { queue_position: turn, frame, packet } => {
                    if let Some(datagram) = self.session.seal(|out| frame.emit(out)) {
                        self.actions.push_back(TunnelAction::SendDatagram {
                            queue_position: turn,
                            datagram,
                            packet,
                        });
                    }
                }
                LinkAction::Deliver(packet) => {
                    self.stats.delivered += 1;
                    self.actions.push_back(TunnelAction::Deliver(packet));
                }
                LinkAction::Drop => self.stats.refused += 1,
            }
        }
    }
}

#[cfg(test)]
mod tests;
