//! Own key of a socket, and authentication of the peer.

use crate::error::{Error, Result};
use crate::key_files;
use hopline_secure::keys::{KnownPeers, Name};
use hopline_streams::wide::{
    Config, Credentials, Fingerprint, Info, PreSharedKey, PrivateKey, Trust, config,
};
use std::net::SocketAddr;
use std::path::PathBuf;

/// Key settings of a socket.
#[derive(Clone, Debug, Default)]
pub(crate) struct Identity {
    /// Own key; without it, the user's private key.
    pub(crate) own_key: Option<OwnKey>,
    pub(crate) known_peers: Option<PathBuf>,
    pub(crate) peer_name: Option<Name>,
    /// Expected fingerprint of the peer's key.
    pub(crate) trust: Option<Fingerprint>,
    pub(crate) unknown_peers: UnknownPeers,
}

/// Own key.
#[derive(Clone, Debug)]
pub(crate) enum OwnKey {
    /// Pre-shared key.
    Shared(PreSharedKey),
    /// Own private key.
    Private(PrivateKey),
}

/// Policy for peers that are not known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum UnknownPeers {
    /// The connection is refused.
    #[default]
    Reject,
    /// The peer is accepted and added to the known peers (trust on first use).
    TrustOnFirstUse,
}

/// Check of the peer's identity once the connection is open, before data are sent or received.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PeerCheck {
    /// No check is left: the handshake has authenticated the peer.
    None,
    /// The key must have this fingerprint.
    Fingerprint(Fingerprint),
    /// The peer is not known: the policy for unknown peers applies.
    UnknownPeer { name: Name, file: PathBuf, strangers: UnknownPeers },
}

impl Identity {
    /// Returns whether any key is set, an own key or one of a peer.
    pub(crate) fn has_key(&self) -> bool {
        let Self { own_key: ours, known_peers, peer_name, trust, unknown_peers: strangers } = self;
        ours.is_some()
            || known_peers.is_some()
            || peer_name.is_some()
            || trust.is_some()
            || *strangers == UnknownPeers::TrustOnFirstUse
    }

    /// Returns the configuration of a connection to `peer`, and the check of its key.
    pub(crate) fn to_connect(&self, peer: SocketAddr) -> Result<(Config, PeerCheck)> {
        let private = match self.own_key()? {
            OwnKey::Shared(key) => return Ok((config(Credentials::Shared(key)), PeerCheck::None)),
            OwnKey::Private(private) => private,
        };
        let (trust, check) = self.trusted_peer(peer)?;
        Ok((config(Credentials::Keys { private, trust }), check))
    }

    /// Returns the configuration of a listener.
    pub(crate) fn to_listen(&self) -> Result<Config> {
        if self.trust.is_some() || self.unknown_peers == UnknownPeers::TrustOnFirstUse {
            let what = "TPA_TRUST and TPA_TRUST_ON_FIRST_USE are for tpa_connect; who listens takes TPA_KNOWN_PEERS or a shared key";
            return Err(Error::new(libc::EINVAL, what));
        }
        Ok(config(match self.own_key()? {
            OwnKey::Shared(key) => Credentials::Shared(key),
            OwnKey::Private(private) => Credentials::Keys { private, trust: self.trusted_senders()? },
        }))
    }

    /// Returns the fingerprint of the own key.
    pub(crate) fn fingerprint(&self) -> Result<String> {
        Ok(match self.own_key()? {
            OwnKey::Shared(key) => key.fingerprint(),
            OwnKey::Private(key) => key.public().fingerprint(),
        }
        .to_string())
    }

    fn own_key(&self) -> Result<OwnKey> {
        if let Some(ours) = &self.own_key {
            return Ok(ours.clone());
        }
        let path = key_files::of_user("key")?;
        if !path.exists() {
            let what = format!(
                "there is no key: TPA_PSK, TPA_PSK_FILE and TPA_KEY_FILE name one, and `hopline key new` makes {}",
                path.display()
            );
            return Err(Error::new(libc::ENOENT, what));
        }
        key_files::load_private(&path).map(OwnKey::Private)
    }

    fn trusted_senders(&self) -> Result<Trust> {
        let Some(path) = &self.known_peers else { return Ok(Trust::Anyone) };
        let known = key_files::load_peers(path)?;
        Ok(Trust::Only(known.peers().iter().map(|peer| peer.key).collect()))
    }

    fn trusted_peer(&self, peer: SocketAddr) -> Result<(Trust, PeerCheck)> {
        let file = self.known_peers.clone().map_or_else(|| key_files::of_user("known_peers"), Ok)?;
        let known = if self.known_peers.is_some() || file.exists() {
            key_files::load_peers(&file)?
        } else {
            KnownPeers::default()
        };
        let name = match &self.peer_name {
            Some(name) => name.clone(),
            None => address_name(peer),
        };
        Ok(match (known.get(&name), &self.trust) {
            (Some(known), Some(wanted)) if known.key.fingerprint() != *wanted => {
                let other = known.key.fingerprint();
                let what = format!(
                    "{name} is known by a key with the fingerprint {other}, and TPA_TRUST says {wanted}"
                );
                return Err(Error::new(libc::EACCES, what));
            }
            (Some(known), _) => (Trust::Only(vec![known.key]), PeerCheck::None),
            (None, Some(wanted)) => (Trust::Fingerprint(*wanted), PeerCheck::Fingerprint(*wanted)),
            (None, None) => {
                // The own public key is not revealed to an unknown responder unless unknown peers are accepted.
                let trust = match self.unknown_peers {
                    UnknownPeers::Reject => Trust::Only(Vec::new()),
                    UnknownPeers::TrustOnFirstUse => Trust::Anyone,
                };
                (trust, PeerCheck::UnknownPeer { name, file, strangers: self.unknown_peers })
            }
        })
    }
}

impl PeerCheck {
    /// Applies the check to an open connection. Adds an unknown peer to the known peers if the policy accepts it.
    pub(crate) fn apply(&self, info: &Info) -> Result<()> {
        match self {
            Self::UnknownPeer { name, file, strangers: UnknownPeers::TrustOnFirstUse } => {
                let gone = || Error::new(libc::ECONNABORTED, "it was gone before it said who it is");
                key_files::add_peer(file, name, &info.peer.key.ok_or_else(gone)?)
            }
            Self::None | Self::Fingerprint(_) | Self::UnknownPeer { .. } => Ok(()),
        }
    }

    /// Returns the error to report for a connection that was not opened.
    pub(crate) fn failed(&self, error: Error) -> Error {
        match self {
            Self::Fingerprint(wanted) if error.errno == libc::EACCES => {
                Error { message: format!("{}, and not {wanted}", error.message), ..error }
            }
            Self::UnknownPeer { name, file, strangers: UnknownPeers::Reject }
                if error.errno == libc::EACCES =>
            {
                let message = format!(
                    "{name} is not known: {}; compare it, then TPA_TRUST, or a line in {}: {name} and its public key",
                    error.message,
                    file.display()
                );
                Error { message, ..error }
            }
            Self::None | Self::Fingerprint(_) | Self::UnknownPeer { .. } => error,
        }
    }
}

fn address_name(peer: SocketAddr) -> Name {
    peer.to_string().parse().expect("an address is 64 printable characters at most")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_address_is_a_valid_name() {
        let longest = "[ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff%4294967295]:65535";
        assert_eq!(address_name(longest.parse().unwrap()).as_str(), longest);
    }
}
