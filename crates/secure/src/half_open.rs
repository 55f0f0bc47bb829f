//! Handshakes that a responder has in progress: a bounded number of them, each for a bounded time.

use crate::admission::{AddressProof, Attempts, SourceMatch};
use crate::cookie::Digest;
use crate::noise::Handshake;
use crate::session::Established;
use bytes::Bytes;
use core::net::SocketAddr;
use hopline_core::pre_auth::{AddressClass, PreAuthLimit};
use hopline_core::{Duration, Instant};
use hopline_wire::secure::{ConnectionId, Suite};
use std::collections::{BTreeMap, VecDeque};

/// A handshake in progress.
#[derive(Debug)]
pub(crate) struct HalfOpen {
    /// Source address of the first message, and destination of the second one.
    pub(crate) address: SocketAddr,
    pub(crate) address_proof: AddressProof,
    pub(crate) digest: Digest,
    /// The second message, for whenever the first one comes again.
    pub(crate) second: Bytes,
    pub(crate) completes_with: CompletingMessage,
    pub(crate) attempts: Attempts,
    pub(crate) started_at: Instant,
}

impl HalfOpen {
    /// Compares the address that a message came from.
    pub(crate) fn source(&self, from: SocketAddr) -> SourceMatch {
        if self.address == from { SourceMatch::Expected } else { SourceMatch::Different }
    }
}

/// Message that completes a handshake.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "nearly all handshakes of a responder are of the same method")]
pub(crate) enum CompletingMessage {
    /// The third message, of public keys.
    Third { handshake: Handshake, version: u8, initiator: ConnectionId, suite: Suite },
    /// The first sealed datagram, under a shared key: an attacker that replays a recorded first message
    /// cannot seal one.
    Sealed(Established),
}

/// All of them. What was accepted lately is remembered for as long as a handshake may take, so that
/// repetitions are known for what they are.
#[derive(Debug)]
pub(crate) struct Table {
    /// Most handshakes.
    max: usize,
    timeout: Duration,
    by_id: BTreeMap<ConnectionId, (u64, HalfOpen)>,
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
            max: most,
            timeout: patience,
            by_id: BTreeMap::new(),
            by_digest: BTreeMap::new(),
            order: BTreeMap::new(),
            limit: PreAuthLimit::new(most),
            accepted: VecDeque::new(),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.by_id.len()
    }

    pub(crate) fn contains(&self, id: ConnectionId) -> bool {
        self.by_id.contains_key(&id)
    }

    pub(crate) fn get_mut(&mut self, id: ConnectionId) -> Option<&mut HalfOpen> {
        self.by_id.get_mut(&id).map(|(_, half_open)| half_open)
    }

    /// Returns the handshake that this first message began.
    pub(crate) fn by_first_message(&self, digest: Digest) -> Option<&HalfOpen> {
        self.by_id.get(self.by_digest.get(&digest)?).map(|(_, half_open)| half_open)
    }

    /// Returns what a cookie from `address` proves.
    pub(crate) fn proof_of(&self, address: SocketAddr) -> AddressProof {
        match self.limit.classify(address.ip()) {
            AddressClass::Trusted => AddressProof::KnownHost,
            AddressClass::Unknown => AddressProof::ByCookie,
        }
    }

    pub(crate) fn insert(&mut self, id: ConnectionId, half_open: HalfOpen) {
        let standing = match half_open.address_proof {
            AddressProof::KnownHost => AddressClass::Trusted,
            AddressProof::ByCookie | AddressProof::None => AddressClass::Unknown,
        };
        let number = self.limit.insert(half_open.address.ip(), standing);
        self.by_digest.insert(half_open.digest, id);
        self.order.insert(number, id);
        self.by_id.insert(id, (number, half_open));
    }

    /// If the table is full, gives up one handshake: the oldest with an initiator that has not shown that it
    /// receives at its address, or else the oldest of the heaviest prefix. Returns whether one was given up.
    pub(crate) fn make_room(&mut self) -> bool {
        if !self.limit.is_full() {
            return false;
        }
        let unproven = |id: &&ConnectionId| self.by_id[*id].1.address_proof == AddressProof::None;
        let unproven = self.order.values().find(unproven).copied();
        let gone = unproven.or_else(|| self.order.get(&self.limit.eviction_candidate()?).copied());
        gone.is_some_and(|id| self.remove(id).is_some())
    }

    pub(crate) fn remove(&mut self, id: ConnectionId) -> Option<HalfOpen> {
        let (number, gone) = self.by_id.remove(&id)?;
        self.by_digest.remove(&gone.digest);
        self.order.remove(&number);
        self.limit.remove(number);
        debug_assert_eq!(
            [self.by_digest.len(), self.order.len(), self.limit.len()],
            [self.by_id.len(); 3],
            "a trace of what is gone"
        );
        Some(gone)
    }

    /// Removes a handshake that is complete. As many completed ones are remembered as may be in progress.
    pub(crate) fn accept(&mut self, id: ConnectionId) -> Option<HalfOpen> {
        let accepted = self.remove(id)?;
        self.accepted.push_back((accepted.started_at + self.timeout, id, accepted.digest));
        if self.accepted.len() > self.max {
            self.accepted.pop_front();
        }
        Some(accepted)
    }

    /// Remembers that a trusted peer is at `address`.
    pub(crate) fn remember_host(&mut self, address: SocketAddr) {
        self.limit.trust_host(address.ip());
    }

    /// Returns whether the handshake that answers to `id` was completed recently.
    pub(crate) fn was_accepted_id(&self, id: ConnectionId) -> bool {
        self.accepted.iter().any(|(_, accepted, _)| *accepted == id)
    }

    /// Returns whether the handshake that this first message began was completed recently.
    pub(crate) fn was_started_by(&self, digest: Digest) -> bool {
        self.accepted.iter().any(|(_, _, accepted)| *accepted == digest)
    }

    /// Returns the time of the next expiry.
    pub(crate) fn next_expiry(&self) -> Option<Instant> {
        let first = self.oldest().map(|(begun, _)| begun + self.timeout());
        let accepted = self.accepted.iter().map(|(until, ..)| *until).min();
        [first, accepted].into_iter().flatten().min()
    }

    /// Lets go of what has expired; how many handshakes that were.
    pub(crate) fn expire(&mut self, now: Instant) -> usize {
        self.accepted.retain(|(until, ..)| *until > now);
        let mut expired = 0;
        while let Some((begun, id)) = self.oldest()
            && begun + self.timeout() <= now
        {
            expired += usize::from(self.remove(id).is_some());
        }
        expired
    }

    fn oldest(&self) -> Option<(Instant, ConnectionId)> {
        let (_, id) = self.order.first_key_value()?;
        Some((self.by_id[id].1.started_at, *id))
    }

    /// Returns the longest time of a handshake: a quarter, but a second at least, once more than half of the
    /// room is taken. Of the default that is enough for a message to be repeated twice.
    fn timeout(&self) -> Duration {
        let quarter = (self.timeout / 4).max(Duration::from_secs(1));
        if self.by_id.len() > self.max / 2 { quarter } else { self.timeout }
    }
}
