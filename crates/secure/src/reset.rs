//! Stateless reset. An end that has lost its connections notifies their peers by a token that it gave each of
//! them in the handshake, and can compute again (the idea is that of RFC 9000 §10.3).

use crate::config::{ConfigError, PARAMETERS_MAX};
use crate::keys::PrivateKey;
use bytes::Bytes;
use core::fmt;
use core::net::{IpAddr, SocketAddr};
use hopline_wire::secure::{ConnectionId, RESET_TOKEN_LEN, StatelessResetToken};
use zeroize::{Zeroize, ZeroizeOnDrop};

/// Context that separates keys of tokens from all other hashes (`blake3::derive_key`).
const CONTEXT: &str = "hopline 2026-11-27 tokens of lost connections";

/// Secret from which tokens are derived: the same before and after the loss, and known to one end alone, at
/// one address and port. Any other holder can end connections. Not shown, and wiped when dropped.
#[derive(Clone, Zeroize, ZeroizeOnDrop)]
pub struct ResetKey([u8; 32]);

impl ResetKey {
    /// Creates the key of these bytes: of a file, or of a generator.
    #[must_use]
    pub const fn new(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// Derives the key of the end that has this private key and is bound to `local` on `machine`, an
    /// identifier of the machine. Two ends must never have the same one, or each can be asked for the tokens
    /// of the other (RFC 9000 §21.11); after a restart, an end must have the same one again. Do not use it
    /// for addresses that change after a restart. No key is derived from a shared key: the peer has that too.
    #[must_use]
    pub fn derive(private: &PrivateKey, local: SocketAddr, machine: &[u8]) -> Self {
        let (ip, port) = (local.ip().to_canonical(), local.port());
        let ip = match ip {
            IpAddr::V4(ip) => ip.to_ipv6_mapped(),
            IpAddr::V6(ip) => ip,
        };
        // The parts before `machine` have a fixed length.
        let mut hasher = blake3::Hasher::new_derive_key(CONTEXT);
        hasher.update(private.bytes()).update(&ip.octets()).update(&port.to_be_bytes()).update(machine);
        let key = Self(*hasher.finalize().as_bytes());
        hasher.zeroize();
        key
    }

    /// Returns the token that shows that the connection with this id, chosen by this end, is not known any
    /// more.
    #[must_use]
    pub fn token(&self, id: ConnectionId) -> StatelessResetToken {
        let hash = blake3::keyed_hash(&self.0, &id.bytes());
        *hash.as_bytes().first_chunk().expect("a hash has 32 bytes")
    }

    /// Returns whether two tokens are equal. The comparison takes constant time.
    #[must_use]
    pub fn constant_time_eq(one: &StatelessResetToken, other: &StatelessResetToken) -> bool {
        (0..RESET_TOKEN_LEN).fold(0, |differs, at| differs | (one[at] ^ other[at])) == 0
    }
}

impl fmt::Debug for ResetKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ResetKey(…)")
    }
}

/// Announcement of an end to the peer's transport in the handshake: parameters, and behind them, where there
/// is a key, the token of the connection.
#[derive(Clone, Debug)]
pub struct Announcement {
    /// Parameters of the transport.
    pub parameters: Bytes,
    /// Key from which tokens are derived.
    pub reset_key: Option<ResetKey>,
}

impl Announcement {
    pub(crate) fn validate(&self) -> Result<(), ConfigError> {
        let len = self.parameters.len() + if self.reset_key.is_some() { RESET_TOKEN_LEN } else { 0 };
        if len > PARAMETERS_MAX { Err(ConfigError::Parameters(len)) } else { Ok(()) }
    }

    /// The same for the connection that is known to us by `id`.
    pub(crate) fn encode_for(&self, id: ConnectionId) -> Bytes {
        match &self.reset_key {
            None => self.parameters.clone(),
            Some(key) => [&self.parameters[..], &key.token(id)].concat().into(),
        }
    }
}

impl From<Bytes> for Announcement {
    fn from(parameters: Bytes) -> Self {
        Self { parameters, reset_key: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_depends_on_key_address_machine_and_connection() {
        let private = PrivateKey::new([1; 32]);
        let [one, other] = [[5; 8], [6; 8]].map(|id| ConnectionId::new(id).expect("an id"));
        let at = |address: &str, machine: &[u8]| {
            ResetKey::derive(&private, address.parse().expect("an address"), machine)
        };
        let token = at("10.0.0.1:7174", b"m").token(one);
        assert!(ResetKey::constant_time_eq(&at("10.0.0.1:7174", b"m").token(one), &token));
        assert!(ResetKey::constant_time_eq(&at("[::ffff:10.0.0.1]:7174", b"m").token(one), &token));
        for strange in [
            at("10.0.0.1:7174", b"m").token(other),
            at("10.0.0.1:7175", b"m").token(one),
            at("10.0.0.2:7174", b"m").token(one),
            at("0.0.0.0:7174", b"m").token(one),
            at("[::]:7174", b"m").token(one),
            at("10.0.0.1:7174", b"n").token(one),
            ResetKey::derive(&PrivateKey::new([2; 32]), ([10, 0, 0, 1], 7174).into(), b"m").token(one),
            ResetKey::new([1; 32]).token(one),
        ] {
            assert!(!ResetKey::constant_time_eq(&strange, &token));
        }
        assert_eq!(format!("{:?}", at("10.0.0.1:7174", b"")), "ResetKey(…)");
    }

    #[test]
    fn parameters_and_token_together_have_256_bytes() {
        let resets = Some(ResetKey::new([1; 32]));
        let of_len = |len| Announcement { parameters: vec![0; len].into(), reset_key: resets.clone() };
        assert_eq!(of_len(240).validate(), Ok(()));
        assert_eq!(of_len(241).validate(), Err(ConfigError::Parameters(257)));
        assert!(Announcement::from(Bytes::from(vec![0; 256])).validate().is_ok());
    }
}
