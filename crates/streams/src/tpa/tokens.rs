//! Tokens and identities that a host derives from a key instead of storing them.

use hopline_core::{Duration, Instant};
use hopline_transport::tpa::{Identity, Secret};
use hopline_wire::tpa::{ChallengeToken, Tag};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::num::NonZeroU64;

/// Minimum lifetime of a token; the maximum is twice this.
const TOKEN_LIFETIME: Duration = Duration::from_secs(30);
/// Length that marks a challenge of an address instead of a path MTU probe.
pub(super) const ADDRESS_CHALLENGE: u16 = 0;

/// Key of all values that peers must not be able to guess.
#[derive(Clone, Copy, Debug)]
pub(super) struct TokenKey(Secret);

impl TokenKey {
    pub(super) fn new() -> io::Result<Self> {
        let mut secret = [0; 16];
        getrandom::fill(&mut secret)?;
        Ok(Self(Secret(secret)))
    }

    /// Returns the identity of a new connection of this host.
    pub(super) fn identity(&self) -> io::Result<Identity> {
        // Zero means "none"; one value more or less of 2⁶⁴ does not matter.
        let tag = Tag(NonZeroU64::new(getrandom::u64()?).unwrap_or(NonZeroU64::MIN));
        Ok(Identity { tag, secret: self.0.derive(b"receipts", tag) })
    }

    /// Returns a number that identifies a SYN of `caller` from `peer`.
    pub(super) fn syn_id(&self, peer: SocketAddr, caller: Tag) -> u64 {
        first_eight(self.0.derive(&address_bytes(peer), caller))
    }

    /// Returns a number that identifies the SYNs of `caller`, from any address.
    pub(super) fn caller_id(&self, caller: Tag) -> u64 {
        first_eight(self.0.derive(b"caller", caller))
    }

    /// Returns the token that the host at `peer` has to echo to the connection `own`, for a datagram of `length` bytes.
    pub(super) fn token(&self, now: Instant, own: Tag, peer: SocketAddr, length: u16) -> ChallengeToken {
        self.token_of(epoch(now), own, peer, length)
    }

    /// Returns whether `token` was issued recently.
    pub(super) fn is_valid(
        &self,
        now: Instant,
        own: Tag,
        peer: SocketAddr,
        length: u16,
        token: ChallengeToken,
    ) -> bool {
        let this = epoch(now);
        let epochs = [Some(this), this.checked_sub(1)];
        epochs.into_iter().flatten().any(|epoch| self.token_of(epoch, own, peer, length) == token)
    }

    fn token_of(&self, epoch: u64, own: Tag, peer: SocketAddr, length: u16) -> ChallengeToken {
        let mut purpose = b"path".to_vec();
        purpose.extend(address_bytes(peer));
        purpose.extend(length.to_be_bytes());
        purpose.extend(epoch.to_be_bytes());
        ChallengeToken(first_eight(self.0.derive(&purpose, own)))
    }
}

fn first_eight(Secret([a, b, c, d, e, f, g, h, ..]): Secret) -> u64 {
    u64::from_be_bytes([a, b, c, d, e, f, g, h])
}

fn epoch(now: Instant) -> u64 {
    now.as_nanos() / TOKEN_LIFETIME.as_nanos()
}

/// Returns the bytes that identify an address.
pub(super) fn address_bytes(peer: SocketAddr) -> Vec<u8> {
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
    fn a_token_is_valid_for_one_connection_address_and_length_for_30_to_60_seconds() {
        let trust = TokenKey(Secret([7; 16]));
        let tag = |n| Tag(NonZeroU64::new(n).unwrap());
        let at = Instant::from_secs;
        let peer = |port| SocketAddr::from(([10, 0, 0, 1], port));
        let token = trust.token(at(29), tag(1), peer(9), 1472);
        assert!(trust.is_valid(at(59), tag(1), peer(9), 1472, token));
        assert!(!trust.is_valid(at(60), tag(1), peer(9), 1472, token));
        assert!(!trust.is_valid(at(29), tag(2), peer(9), 1472, token));
        assert!(!trust.is_valid(at(29), tag(1), peer(8), 1472, token));
        assert!(!trust.is_valid(at(29), tag(1), peer(9), ADDRESS_CHALLENGE, token));
        assert!(!TokenKey(Secret([8; 16])).is_valid(at(29), tag(1), peer(9), 1472, token));
    }
}
