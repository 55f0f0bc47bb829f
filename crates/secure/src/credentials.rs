//! Credentials of an end, and the keys of peers that it trusts.

use crate::keys::{Fingerprint, PreSharedKey, PrivateKey, PublicKey};
use hopline_wire::secure::Method;

/// Credentials by which an end proves its identity. Both ends must have the same kind.
#[derive(Clone, Debug)]
pub enum Credentials {
    /// A secret that both have: `Noise_NNpsk0`. Any holder of it may be either end.
    Shared(PreSharedKey),
    /// A key pair of its own: `Noise_XX`.
    Keys {
        /// Its own.
        private: PrivateKey,
        /// Public keys that it trusts.
        trust: Trust,
    },
}

/// Public keys that are trusted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trust {
    /// All keys: the caller checks [`Established::peer`](crate::Established::peer) before it trusts anything
    /// that arrives.
    Anyone,
    /// Only these. A peer with another key is counted as a stranger.
    Only(Vec<PublicKey>),
    /// Only the one with this fingerprint.
    Fingerprint(Fingerprint),
}

impl Credentials {
    /// Returns the method.
    #[must_use]
    pub const fn method(&self) -> Method {
        match self {
            Self::Shared(_) => Method::SharedKey,
            Self::Keys { .. } => Method::PublicKeys,
        }
    }

    /// Returns whether only selected peers are trusted.
    pub(crate) const fn selects_peers(&self) -> bool {
        !matches!(self, Self::Keys { trust: Trust::Anyone, .. })
    }

    /// Returns whether a peer with the key `peer` is trusted.
    pub(crate) fn trusts(&self, peer: Option<PublicKey>) -> bool {
        match (self, peer) {
            (Self::Shared(_), _) | (Self::Keys { trust: Trust::Anyone, .. }, Some(_)) => true,
            (Self::Keys { trust: Trust::Only(keys), .. }, Some(peer)) => keys.contains(&peer),
            (Self::Keys { trust: Trust::Fingerprint(wanted), .. }, Some(peer)) => {
                peer.fingerprint() == *wanted
            }
            (Self::Keys { .. }, None) => false,
        }
    }
}
