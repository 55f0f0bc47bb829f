//! Handshakes that an answerer has under way: a bounded number of them, each for a bounded time.

use crate::cookie::Digest;
use crate::noise::Handshake;
use crate::session::Established;
use bytes::Bytes;
use core::net::{IpAddr, SocketAddr};
use hopline_core::Instant;
use hopline_wire::secure::{ConnectionId, Suite};
use std::collections::{BTreeMap, VecDeque};

/// A handshake under way.
#[derive(Debug)]
pub(crate) struct HalfOpen {
    /// Where the first message came from, and the second one went.
    pub(crate) address: SocketAddr,
    pub(crate) proven: Proven,
    pub(crate) digest: Digest,
    /// The second message, for whenever the first one comes again.
    pub(crate) second: Bytes,
    pub(crate) awaits: Awaits,
    pub(crate) until: Instant,
}

/// Whether an opener has shown that it receives at its address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Proven {
    /// It came with a cookie.
    ByCookie,
    /// Not yet.
    No,
}

/// What completes a handshake.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "nearly all handshakes of an answerer are of the same method")]
pub(crate) enum Awaits {
    /// The third message, of public keys.
    Third { handshake: Handshake, version: u8, opener: ConnectionId, suite: Suite },
    /// The first sealed datagram, under a shared key: whoever has recorded a first message and plays it cannot seal one.
    Sealed(Established),
}

/// All of them. What was accepted lately is remembered for as long as a handshake may take, so that repetitions are known for what they are.
#[derive(Debug, Default)]
pub(crate) struct Table {
    all: BTreeMap<ConnectionId, HalfOpen>,
    by_digest: BTreeMap<Digest, ConnectionId>,
    /// As they expire: all have the same time.
    order: VecDeque<(Instant, ConnectionId)>,
    accepted: VecDeque<(Instant, ConnectionId, Digest)>,
}

impl Table {
    pub(crate) fn len(&self) -> usize {
        self.all.len()
    }

    pub(crate) fn contains(&self, id: ConnectionId) -> bool {
        self.all.contains_key(&id)
    }

    pub(crate) fn get_mut(&mut self, id: ConnectionId) -> Option<&mut HalfOpen> {
        self.all.get_mut(&id)
    }

    /// The handshake that this first message began.
    pub(crate) fn of_digest(&self, digest: Digest) -> Option<&HalfOpen> {
        self.all.get(self.by_digest.get(&digest)?)
    }

    /// How many are under way with a host.
    pub(crate) fn with_host(&self, address: SocketAddr) -> usize {
        let host = host(address);
        self.all.values().filter(|half_open| self::host(half_open.address) == host).count()
    }

    pub(crate) fn insert(&mut self, id: ConnectionId, half_open: HalfOpen) {
        self.by_digest.insert(half_open.digest, id);
        self.order.push_back((half_open.until, id));
        self.all.insert(id, half_open);
    }

    /// Lets go of the oldest whose opener has not shown that it receives at its address; whether there was one.
    pub(crate) fn evict(&mut self) -> bool {
        let unproven =
            |(_, id): &&(Instant, ConnectionId)| self.all.get(id).is_some_and(|one| one.proven == Proven::No);
        let Some(&(_, id)) = self.order.iter().find(unproven) else { return false };
        self.remove(id).is_some()
    }

    pub(crate) fn remove(&mut self, id: ConnectionId) -> Option<HalfOpen> {
        let gone = self.all.remove(&id)?;
        self.by_digest.remove(&gone.digest);
        self.order.retain(|(_, other)| *other != id);
        debug_assert_eq!(
            [self.by_digest.len(), self.order.len()],
            [self.all.len(); 2],
            "a trace of what is gone"
        );
        Some(gone)
    }

    /// Takes out one whose handshake is complete; at most `most` such are remembered.
    pub(crate) fn accept(&mut self, id: ConnectionId, most: usize) -> Option<HalfOpen> {
        let accepted = self.remove(id)?;
        self.accepted.push_back((accepted.until, id, accepted.digest));
        if self.accepted.len() > most {
            self.accepted.pop_front();
        }
        Some(accepted)
    }

    /// Whether the handshake that answers to `id` was completed lately.
    pub(crate) fn was_accepted(&self, id: ConnectionId) -> bool {
        self.accepted.iter().any(|(_, accepted, _)| *accepted == id)
    }

    /// Whether the handshake that this first message began was completed lately.
    pub(crate) fn was_begun_by(&self, digest: Digest) -> bool {
        self.accepted.iter().any(|(_, _, accepted)| *accepted == digest)
    }

    /// When something expires.
    pub(crate) fn next_expiry(&self) -> Option<Instant> {
        let first = self.order.front().map(|(until, _)| *until);
        let accepted = self.accepted.iter().map(|(until, ..)| *until).min();
        [first, accepted].into_iter().flatten().min()
    }

    /// Lets go of what has expired; how many handshakes that were.
    pub(crate) fn expire(&mut self, now: Instant) -> usize {
        self.accepted.retain(|(until, ..)| *until > now);
        let mut expired = 0;
        while let Some(&(until, id)) = self.order.front()
            && until <= now
        {
            expired += usize::from(self.remove(id).is_some());
        }
        expired
    }
}

/// What one host can choose its addresses from: of IPv6 a whole /64 network.
fn host(address: SocketAddr) -> u128 {
    match address.ip().to_canonical() {
        IpAddr::V4(ip) => u128::from(ip.to_bits()),
        IpAddr::V6(ip) => ip.to_bits() >> 64 | 1 << 127,
    }
}
