//! Keyed hashes: initial sequence numbers and ports that an attacker beside the path cannot guess.

use core::fmt;
use core::hash::Hasher;
use hopline_core::{Instant, Seq32};
use siphasher::sip::SipHasher24;
use std::net::{IpAddr, SocketAddr};

/// Ports from which a connection may come: those that Linux takes by default.
const EPHEMERAL_PORTS: core::ops::RangeInclusive<u16> = 32_768..=60_999;
/// Period of the clock of initial sequence numbers (RFC 6528 §3).
const TICK_NS: u64 = 4000;

/// Key of a stack. Must be unpredictable.
#[derive(Clone, Copy)]
pub struct Secret(pub [u8; 16]);

impl Secret {
    /// Returns the initial sequence number of a connection (RFC 6528 §3).
    pub(crate) fn initial_sequence(&self, now: Instant, local: SocketAddr, remote: SocketAddr) -> Seq32 {
        let mut hasher = self.hasher(b's');
        hash_address(&mut hasher, local);
        hash_address(&mut hasher, remote);
        Seq32((hasher.finish() as u32).wrapping_add((now.as_nanos() / TICK_NS) as u32))
    }

    /// Returns ports for connection number `count` to `remote`, each once, from an unpredictable one on (RFC 6056 §3.3.3).
    pub(crate) fn ephemeral_ports(&self, remote: SocketAddr, count: u64) -> impl Iterator<Item = u16> {
        let mut hasher = self.hasher(b'p');
        hash_address(&mut hasher, remote);
        hasher.write_u64(count);
        let start = hasher.finish() % EPHEMERAL_PORTS.len() as u64;
        EPHEMERAL_PORTS.cycle().skip(start as usize).take(EPHEMERAL_PORTS.len())
    }

    fn hasher(&self, purpose: u8) -> SipHasher24 {
        let mut hasher = SipHasher24::new_with_key(&self.0);
        hasher.write_u8(purpose);
        hasher
    }
}

fn hash_address(hasher: &mut SipHasher24, address: SocketAddr) {
    match address.ip() {
        IpAddr::V4(ip) => hasher.write(&ip.octets()),
        IpAddr::V6(ip) => hasher.write(&ip.octets()),
    }
    hasher.write_u16(address.port());
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}
