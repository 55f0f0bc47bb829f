//! How an end proves who it is, and whom it believes.

use crate::keys::{Fingerprint, PreSharedKey, PrivateKey, PublicKey};
use hopline_wire::secure::Method;

/// How an end proves who it is. Both ends must have the same kind.
#[derive(Clone, Debug)]
pub enum Credentials {
    /// By a secret that both have: `Noise_NNpsk0`. Whoever has it may be either end.
    Shared(PreSharedKey),
    /// By a key of its own: `Noise_XX`.
    Keys {
        /// Its own.
        private: PrivateKey,
        /// Whom it believes.
        trust: Trust,
    },
}

/// Whose public keys are believed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trust {
    /// Anyone's: whoever drives the machine looks at [`Established::peer`](crate::Established::peer) before it believes anything that comes.
    Anyone,
    /// Only these. Who has another is a counted stranger.
    Only(Vec<PublicKey>),
    /// Only the one with this fingerprint.
    Fingerprint(Fingerprint),
}

impl Credentials {
    /// The method.
    #[must_use]
    pub const fn method(&self) -> Method {
        match self {
            Self::Shared(_) => Method::SharedKey,
            Self::Keys { .. } => Method::PublicKeys,
        }
    }

    /// Returns whether peers are chosen: not any that calls is believed.
    pub(crate) const fn choose(&self) -> bool {
        !matches!(self, Self::Keys { trust: Trust::Anyone, .. })
    }

    /// Whether who has `peer` is believed.
    pub(crate) fn believes(&self, peer: Option<PublicKey>) -> bool {
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
