//! What a host can tell again without having kept it.

use hopline_core::{Duration, Instant};
use hopline_transport::tpa::{Identity, Secret};
use hopline_wire::tpa::{Tag, Token};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::num::NonZeroU64;

/// How long a token is good: at least this, at most twice this.
const TOKEN_LIFETIME: Duration = Duration::from_secs(30);
/// The length that stands for a question about an address and not about a length.
pub(super) const ADDRESS: u16 = 0;

/// The key of everything that peers must not guess.
#[derive(Clone, Copy, Debug)]
pub(super) struct Trust(Secret);

impl Trust {
    pub(super) fn new() -> io::Result<Self> {
        let mut secret = [0; 16];
        getrandom::fill(&mut secret)?;
        Ok(Self(Secret(secret)))
    }

    /// What a new connection of ours is known by.
    pub(super) fn identity(&self) -> io::Result<Identity> {
        // Zero stands for "none"; one value more or less in 2⁶⁴ does not matter.
        let tag = Tag(NonZeroU64::new(getrandom::u64()?).unwrap_or(NonZeroU64::MIN));
        Ok(Identity { tag, secret: self.0.derive(b"receipts", tag) })
    }

    /// A number for the call of `caller` from `peer`, another for each.
    pub(super) fn number(&self, peer: SocketAddr, caller: Tag) -> u64 {
        first_eight(self.0.derive(&name(peer), caller))
    }

    /// A number for the calls of `caller`, wherever they come from.
    pub(super) fn name_of(&self, caller: Tag) -> u64 {
        first_eight(self.0.derive(b"caller", caller))
    }

    /// What whoever is at `peer` is asked to echo to the connection `own`, in a datagram of `length` bytes.
    pub(super) fn token(&self, now: Instant, own: Tag, peer: SocketAddr, length: u16) -> Token {
        self.token_of(epoch(now), own, peer, length)
    }

    /// Whether `token` was given lately.
    pub(super) fn gave(&self, now: Instant, own: Tag, peer: SocketAddr, length: u16, token: Token) -> bool {
        let this = epoch(now);
        let epochs = [Some(this), this.checked_sub(1)];
        epochs.into_iter().flatten().any(|epoch| self.token_of(epoch, own, peer, length) == token)
    }

    fn token_of(&self, epoch: u64, own: Tag, peer: SocketAddr, length: u16) -> Token {
        let mut purpose = b"path".to_vec();
        purpose.extend(name(peer));
        purpose.extend(length.to_be_bytes());
        purpose.extend(epoch.to_be_bytes());
        Token(first_eight(self.0.derive(&purpose, own)))
    }
}

fn first_eight(Secret([a, b, c, d, e, f, g, h, ..]): Secret) -> u64 {
    u64::from_be_bytes([a, b, c, d, e, f, g, h])
}

fn epoch(now: Instant) -> u64 {
    now.as_nanos() / TOKEN_LIFETIME.as_nanos()
}

/// The bytes by which an address is known.
pub(super) fn name(peer: SocketAddr) -> Vec<u8> {
    let mut name = match peer.ip() {
        IpAddr::V4(ip) => ip.octets().to_vec(),
        IpAddr::V6(ip) => ip.octets().to_vec(),
    };
    name.extend(peer.port().to_be_bytes());
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_good_for_one_connection_one_address_one_length_and_30_to_60_seconds() {
        let trust = Trust(Secret([7; 16]));
        let tag = |n| Tag(NonZeroU64::new(n).unwrap());
        let at = Instant::from_secs;
        let peer = |port| SocketAddr::from(([10, 0, 0, 1], port));
        let token = trust.token(at(29), tag(1), peer(9), 1472);
        assert!(trust.gave(at(59), tag(1), peer(9), 1472, token));
        assert!(!trust.gave(at(60), tag(1), peer(9), 1472, token));
        assert!(!trust.gave(at(29), tag(2), peer(9), 1472, token));
        assert!(!trust.gave(at(29), tag(1), peer(8), 1472, token));
        assert!(!trust.gave(at(29), tag(1), peer(9), ADDRESS, token));
        assert!(!Trust(Secret([8; 16])).gave(at(29), tag(1), peer(9), 1472, token));
    }
}
