//! Handshakes that a responder has in progress: a bounded number of them, each for a bounded time.

use crate::admission::{Attempts, Proven, Source};
use crate::cookie::Digest;
use crate::noise::Handshake;
use crate::session::Established;
use bytes::Bytes;
use core::net::SocketAddr;
use hopline_core::pre_auth::{PreAuthLimit, Standing};
use hopline_core::{Duration, Instant};
use hopline_wire::secure::{ConnectionId, Suite};
use std::collections::{BTreeMap, VecDeque};

/// A handshake in progress.
#[derive(Debug)]
pub(crate) struct HalfOpen {
    /// Source address of the first message, and destination of the second one.
    pub(crate) address: SocketAddr,
    pub(crate) proven: Proven,
    pub(crate) digest: Digest,
    /// The second message, for whenever the first one comes again.
    pub(crate) second: Bytes,
    pub(crate) awaits: Awaits,
    pub(crate) attempts: Attempts,
    pub(crate) begun: Instant,
}

impl HalfOpen {
    /// Compares the address that a message came from.
    pub(crate) fn source(&self, from: SocketAddr) -> Source {
        if self.address == from { Source::Expected } else { Source::Elsewhere }
    }
}

/// Message that completes a handshake.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "nearly all handshakes of an answerer are of the same method")]
pub(crate) enum Awaits {
    /// The third message, of public keys.
    Third { handshake: Handshake, version: u8, opener: ConnectionId, suite: Suite },
    /// The first sealed datagram, under a shared key: an attacker that replays a recorded first message
    /// cannot seal one.
    Sealed(Established),
}

/// All of them. What was accepted lately is remembered for as long as a handshake may take, so that
/// repetitions are known for what they are.
#[derive(Debug)]
pub(crate) struct Table {
    /// Most handshakes.
    most: usize,
    patience: Duration,
    all: BTreeMap<ConnectionId, (u64, HalfOpen)>,
    by_digest: BTreeMap<Digest, ConnectionId>,
    /// Handshakes by number, in the order of their beginnings.
    order: BTreeMap<u64, ConnectionId>,
    /// Tells which one has to make room.
    limit: PreAuthLimit,
    accepted: VecDeque<(Instant, ConnectionId, Digest)>,
}

impl Table {
    /// Creates an empty table for `most` handshakes, each of which may take `patience`.
    pub(crate) fn new(most: usize, patience: Duration) -> Self {
        Self {
            most,
            patience,
            all: BTreeMap::new(),
            by_digest: BTreeMap::new(),
            order: BTreeMap::new(),
            limit: PreAuthLimit::new(most),
            accepted: VecDeque::new(),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.all.len()
    }

    pub(crate) fn contains(&self, id: ConnectionId) -> bool {
        self.all.contains_key(&id)
    }

    pub(crate) fn get_mut(&mut self, id: ConnectionId) -> Option<&mut HalfOpen> {
        self.all.get_mut(&id).map(|(_, half_open)| half_open)
    }

    /// Returns the handshake that this first message began.
    pub(crate) fn of_digest(&self, digest: Digest) -> Option<&HalfOpen> {
        self.all.get(self.by_digest.get(&digest)?).map(|(_, half_open)| half_open)
    }

    /// Returns what a cookie from `address` proves.
    pub(crate) fn proven(&self, address: SocketAddr) -> Proven {
        match self.limit.standing(address.ip()) {
            Standing::Familiar => Proven::Familiar,
            Standing::Stranger => Proven::ByCookie,
        }
    }

    pub(crate) fn insert(&mut self, id: ConnectionId, half_open: HalfOpen) {
        let standing = match half_open.proven {
            Proven::Familiar => Standing::Familiar,
            Proven::ByCookie | Proven::No => Standing::Stranger,
        };
        let number = self.limit.insert(half_open.address.ip(), standing);
        self.by_digest.insert(half_open.digest, id);
        self.order.insert(number, id);
        self.all.insert(id, (number, half_open));
    }

    /// If the table is full, gives up one handshake: the oldest with an initiator that has not shown that it
    /// receives at its address, or else the oldest of the heaviest prefix. Returns whether one was given up.
    pub(crate) fn make_room(&mut self) -> bool {
        if !self.limit.is_full() {
            return false;
        }
        let unproven = |id: &&ConnectionId| self.all[*id].1.proven == Proven::No;
        let unproven = self.order.values().find(unproven).copied();
        let gone = unproven.or_else(|| self.order.get(&self.limit.first_to_go()?).copied());
        gone.is_some_and(|id| self.remove(id).is_some())
    }

    pub(crate) fn remove(&mut self, id: ConnectionId) -> Option<HalfOpen> {
        let (number, gone) = self.all.remove(&id)?;
        self.by_digest.remove(&gone.digest);
        self.order.remove(&number);
        self.limit.remove(number);
        debug_assert_eq!(
            [self.by_digest.len(), self.order.len(), self.limit.len()],
            [self.all.len(); 3],
            "a trace of what is gone"
        );
        Some(gone)
    }

    /// Removes a handshake that is complete. As many completed ones are remembered as may be in progress.
    pub(crate) fn accept(&mut self, id: ConnectionId) -> Option<HalfOpen> {
        let accepted = self.remove(id)?;
        self.accepted.push_back((accepted.begun + self.patience, id, accepted.digest));
        if self.accepted.len() > self.most {
            self.accepted.pop_front();
        }
        Some(accepted)
    }

    /// Remembers that a trusted peer is at `address`.
    pub(crate) fn remember_host(&mut self, address: SocketAddr) {
        self.limit.remember(address.ip());
    }

    /// Returns whether the handshake that answers to `id` was completed recently.
    pub(crate) fn was_accepted(&self, id: ConnectionId) -> bool {
        self.accepted.iter().any(|(_, accepted, _)| *accepted == id)
    }

    /// Returns whether the handshake that this first message began was completed recently.
    pub(crate) fn was_begun_by(&self, digest: Digest) -> bool {
        self.accepted.iter().any(|(_, _, accepted)| *accepted == digest)
    }

    /// Returns the time of the next expiry.
    pub(crate) fn next_expiry(&self) -> Option<Instant> {
        let first = self.oldest().map(|(begun, _)| begun + self.patience());
        let accepted = self.accepted.iter().map(|(until, ..)| *until).min();
        [first, accepted].into_iter().flatten().min()
    }

    /// Lets go of what has expired; how many handshakes that were.
    pub(crate) fn expire(&mut self, now: Instant) -> usize {
        self.accepted.retain(|(until, ..)| *until > now);
        let mut expired = 0;
        while let Some((begun, id)) = self.oldest()
            && begun + self.patience() <= now
        {
            expired += usize::from(self.remove(id).is_some());
        }
        expired
    }

    fn oldest(&self) -> Option<(Instant, ConnectionId)> {
        let (_, id) = self.order.first_key_value()?;
        Some((self.all[id].1.begun, *id))
    }

    /// Returns the longest time of a handshake: a quarter, but a second at least, once more than half of the
    /// room is taken. Of the default that is enough for a message to be repeated twice.
    fn patience(&self) -> Duration {
        let quarter = (self.patience / 4).max(Duration::from_secs(1));
        if self.all.len() > self.most / 2 { quarter } else { self.patience }
    }
}
