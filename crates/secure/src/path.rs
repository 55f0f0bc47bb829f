//! Address of the peer. A new address is used once it has shown that the peer receives there (RFC 9000 §8.2,
//! §9).

use crate::config::{ConfigError, PathConfig};
use crate::entropy::{Entropy, Seed};
use crate::session::{Order, Sealer};
use core::net::SocketAddr;
use hopline_core::{Duration, Instant};
use hopline_wire::secure::{CONTROL_LEN, Control};
use std::collections::VecDeque;

/// Number of addresses that are validated at a time.
const MAX_CANDIDATES: usize = 4;

/// Most responses that wait to be sent.
const MAX_RESPONSES: usize = 4;

/// Anti-amplification limit: multiple of the bytes received from an address that may be sent there before it
/// is validated (RFC 9000 §8.1).
const AMPLIFICATION: u64 = 3;

/// The least that a datagram with a control frame takes.
const MIN_DATAGRAM: u64 = (Sealer::OVERHEAD + CONTROL_LEN) as u64;

/// Addresses of a peer. Record only datagrams that [`Unsealer::open`](crate::Unsealer::open) has opened, so
/// that no attacker can move a connection.
#[derive(Debug)]
pub struct Paths {
    config: PathConfig,
    active: SocketAddr,
    candidates: Vec<Candidate>,
    responses: VecDeque<(SocketAddr, [u8; 8])>,
    events: VecDeque<PathEvent>,
    entropy: Entropy,
}

/// An address where the peer may be.
#[derive(Debug)]
struct Candidate {
    address: SocketAddr,
    challenge: [u8; 8],
    received: u64,
    sent: u64,
    tries_left: u8,
    wait: Duration,
    /// Time of the next challenge, or of giving up.
    due: Instant,
    /// Time of the last challenge.
    challenged_at: Option<Instant>,
    /// Time of the challenge, if there was one only.
    challenged_once_at: Option<Instant>,
}

/// Event of an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathEvent {
    /// The peer receives there: from now on everything is sent there.
    Moved {
        /// Former address.
        from: SocketAddr,
        /// New address.
        to: SocketAddr,
        /// A round trip on the new path, if one was measured.
        round_trip: Option<Duration>,
    },
    /// The peer did not show that it receives there.
    Abandoned {
        /// The address.
        address: SocketAddr,
        /// Reason for giving it up.
        reason: Abandoned,
    },
}

/// Reason that an address was given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Abandoned {
    /// All challenges were in vain.
    NoResponse,
    /// The peer has sent from the old address again.
    Returned,
    /// Newer addresses have taken its place.
    Displaced,
}

impl Paths {
    /// Creates a peer that has shown in the handshake that it receives at `active`.
    ///
    /// # Errors
    /// A setting out of its range.
    pub fn new(config: PathConfig, active: SocketAddr, seed: &Seed) -> Result<Self, ConfigError> {
        config.validate()?;
        Ok(Self {
            config,
            active,
            candidates: Vec::new(),
            responses: VecDeque::new(),
            events: VecDeque::new(),
            entropy: Entropy::new(seed),
        })
    }

    /// Returns the address to which everything but control frames is sent.
    #[must_use]
    pub const fn active(&self) -> SocketAddr {
        self.active
    }

    /// Returns the addresses in validation.
    pub fn candidates(&self) -> impl Iterator<Item = SocketAddr> {
        self.candidates.iter().map(|candidate| candidate.address)
    }

    /// Records that a datagram of `len` bytes from this address was opened.
    pub fn record_received(&mut self, now: Instant, from: SocketAddr, len: usize, order: Order) {
        if from == self.active {
            if order == Order::Newest {
                // RFC 9000 §9.3.3: an attacker that has copied datagrams to move us cannot keep the peer from
                // going on at its address.
                self.abandon_all(Abandoned::Returned);
            }
        } else if let Some(candidate) = self.candidates.iter_mut().find(|candidate| candidate.address == from)
        {
            candidate.received += len as u64;
            if order == Order::Newest {
                candidate.speed_up(self.config.initial_wait);
            }
        } else if order == Order::Newest {
            self.add_candidate(now, from, len);
        }
    }

    /// Records that a datagram from this address, already [`record_received`](Self::record_received), had this control frame in
    /// it.
    pub fn handle_control(&mut self, now: Instant, from: SocketAddr, control: Control) {
        match control {
            Control::Challenge(challenge) => {
                let known = from == self.active || self.candidates().any(|candidate| candidate == from);
                if known && self.responses.len() < MAX_RESPONSES {
                    self.responses.push_back((from, challenge));
                }
            }
            Control::Response(response) => {
                let answered = self.candidates.iter().position(|candidate| {
                    candidate.challenge == response && candidate.tries_left < self.config.max_challenges
                });
                if let Some(at) = answered {
                    self.move_to(now, at);
                }
            }
        }
    }

    /// Records that a datagram of `len` bytes was sent there.
    pub fn record_sent(&mut self, to: SocketAddr, len: usize) {
        if let Some(candidate) = self.candidates.iter_mut().find(|candidate| candidate.address == to) {
            candidate.sent += len as u64;
        }
    }

    /// Returns the number of bytes that may be sent there: any number to the address of the peer; three times
    /// as many as came, less those sent, to an address in validation; none to any other.
    #[must_use]
    pub fn allowance(&self, to: SocketAddr) -> u64 {
        if to == self.active {
            return u64::MAX;
        }
        let candidate = self.candidates.iter().find(|candidate| candidate.address == to);
        candidate.map_or(0, Candidate::allowance)
    }

    /// Returns the next control frame to send, and its destination: in a datagram of no more than
    /// [`allowance`](Self::allowance) bytes, which is then reported to [`record_sent`](Self::record_sent) before anything
    /// else.
    #[must_use]
    pub fn poll_control(&mut self, now: Instant) -> Option<(SocketAddr, Control)> {
        while let Some((to, response)) = self.responses.pop_front() {
            if self.allowance(to) >= MIN_DATAGRAM {
                return Some((to, Control::Response(response)));
            }
        }
        let tries = self.config.max_challenges;
        let ready = |candidate: &&mut Candidate| {
            candidate.due <= now && candidate.tries_left > 0 && candidate.allowance() >= MIN_DATAGRAM
        };
        let candidate = self.candidates.iter_mut().find(ready)?;
        candidate.challenged_at = Some(now);
        candidate.challenged_once_at = (candidate.tries_left == tries).then_some(now);
        candidate.wait =
            if candidate.tries_left == tries { candidate.wait } else { candidate.wait.saturating_mul(2) };
        candidate.tries_left -= 1;
        candidate.due = now + candidate.wait;
        Some((candidate.address, Control::Challenge(candidate.challenge)))
    }

    /// Takes the passing of time; then [`poll_control`](Self::poll_control) may have something.
    pub fn handle_timeout(&mut self, now: Instant) {
        let silent = |candidate: &mut Candidate| {
            candidate.due <= now && (candidate.tries_left == 0 || candidate.allowance() < MIN_DATAGRAM)
        };
        let gone = self.candidates.extract_if(.., silent);
        let told =
            gone.map(|gone| PathEvent::Abandoned { address: gone.address, reason: Abandoned::NoResponse });
        self.events.extend(told);
    }

    /// Returns the time at which to call [`handle_timeout`](Self::handle_timeout).
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.candidates.iter().map(|candidate| candidate.due).min()
    }

    /// Returns the next event of an address.
    #[must_use]
    pub fn poll_event(&mut self) -> Option<PathEvent> {
        self.events.pop_front()
    }

    fn add_candidate(&mut self, now: Instant, address: SocketAddr, len: usize) {
        if self.candidates.len() == MAX_CANDIDATES {
            let address = self.candidates.remove(0).address;
            self.events.push_back(PathEvent::Abandoned { address, reason: Abandoned::Displaced });
        }
        self.candidates.push(Candidate {
            address,
            challenge: self.entropy.bytes(),
            received: len as u64,
            sent: 0,
            tries_left: self.config.max_challenges,
            wait: self.config.initial_wait,
            due: now,
            challenged_at: None,
            challenged_once_at: None,
        });
    }

    fn move_to(&mut self, now: Instant, at: usize) {
        let reached = self.candidates.swap_remove(at);
        let round_trip = reached.challenged_once_at.map(|challenged| now.since(challenged));
        let from = core::mem::replace(&mut self.active, reached.address);
        self.events.push_back(PathEvent::Moved { from, to: reached.address, round_trip });
        self.abandon_all(Abandoned::Displaced);
    }

    fn abandon_all(&mut self, reason: Abandoned) {
        let gone = self.candidates.drain(..);
        self.events.extend(gone.map(|gone| PathEvent::Abandoned { address: gone.address, reason }));
    }
}

impl Candidate {
    /// Speeds up the validation of a path from which the peer goes on sending, so that the path from the peer
    /// works: only the challenge or the response is lost, not the path.
    fn speed_up(&mut self, first_wait: Duration) {
        self.wait = first_wait;
        if let Some(challenged) = self.challenged_at {
            self.due = self.due.min(challenged + first_wait);
        }
    }

    fn allowance(&self) -> u64 {
        self.received.saturating_mul(AMPLIFICATION).saturating_sub(self.sent)
    }
}

#[cfg(test)]
mod tests;
