//! Admission of senders, and their identity.

use super::super::identity::{self, OwnKey};
use super::super::keys::load_peers;
use crate::net::args::{Recv as Args, Transport};
use crate::problems::Failure;
use hopline_lab::Problem;
use hopline_secure::keys::KnownPeers;
use hopline_streams::Protocol;
use hopline_streams::tpa::Tpa;
use hopline_streams::wide::{Credentials, Fingerprint, PublicKey, Trust, Wide};
use hopline_tools::transfer::Origin;
use serde_json::{Value, json};
use std::fmt;
use std::net::SocketAddr;

/// Senders that may send.
#[derive(Debug)]
pub(super) enum Admission {
    /// All senders (`--anyone`). Those in the file of `--known-peers` count as known.
    Anyone(KnownPeers),
    /// Senders in the file of `--known-peers`.
    Known(KnownPeers),
    /// Senders with the key of `--psk`.
    Shared,
}

/// Sender of a conversation, as far as it is known.
#[derive(Clone, Debug)]
pub(crate) struct Sender {
    address: SocketAddr,
    fingerprint: Option<Fingerprint>,
    /// Name in the file of known peers.
    name: Option<String>,
    /// Origin: known by a key, or not.
    pub(super) origin: Origin,
}

impl Admission {
    /// Returns the admission that the options describe.
    ///
    /// # Errors
    /// The options do not say which senders may send.
    pub(super) fn of(args: &Args) -> Result<Self, Failure> {
        let file = args.identity.known_peers.as_deref();
        let known = file.map(load_peers).transpose()?;
        Ok(match (known, args.anyone) {
            _ if args.identity.psk.is_some() => Self::Shared,
            (known, true) => Self::Anyone(known.unwrap_or_default()),
            (Some(known), false) => Self::Known(known),
            (None, false) => return Err(missing_choice(args)),
        })
    }

    /// Returns the own key, and the keys of peers that are accepted.
    pub(super) fn credentials(&self, args: &Args) -> Result<Credentials, Failure> {
        Ok(match identity::own_key(&args.identity)? {
            OwnKey::Shared(key) => Credentials::Shared(key),
            OwnKey::Private(private) => Credentials::Keys { private, trust: self.trust() },
        })
    }

    fn trust(&self) -> Trust {
        match self {
            Self::Known(known) => Trust::Only(known.peers().iter().map(|peer| peer.key).collect()),
            Self::Anyone(_) | Self::Shared => Trust::Anyone,
        }
    }

    /// Returns the number of conversations that are reserved for known senders: a quarter, if unknown senders may send too.
    pub(super) fn reserved_for_known(&self, in_all: usize) -> usize {
        match self {
            Self::Anyone(known) if !known.peers().is_empty() => in_all / 4,
            Self::Anyone(_) | Self::Known(_) | Self::Shared => 0,
        }
    }

    /// Returns the sender at `address` with the authenticated `key`.
    pub(super) fn sender(&self, address: SocketAddr, key: Option<PublicKey>) -> Sender {
        let name = match self {
            Self::Anyone(known) | Self::Known(known) => {
                known.peers().iter().find(|peer| Some(peer.key) == key).map(|peer| peer.name.to_string())
            }
            Self::Shared => None,
        };
        let is_known = name.is_some() || matches!(self, Self::Shared);
        let origin = if is_known { Origin::Known } else { Origin::Unknown };
        Sender { address, fingerprint: key.map(|key| key.fingerprint()), name, origin }
    }
}

/// Describes the admission for people.
impl fmt::Display for Admission {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Anyone(_) => f.write_str(
                "any sender may send; without a known key no odd names, such as those that begin with a dot, and no execute permission",
            ),
            Self::Known(known) => write!(f, "senders with one of {} known keys may send", known.peers().len()),
            Self::Shared => f.write_str("senders with the same shared key may send"),
        }
    }
}

impl Sender {
    /// Returns its identity, which is the same in all of its conversations.
    pub(crate) fn identity(&self) -> String {
        self.fingerprint.map_or_else(|| self.address.ip().to_string(), |fingerprint| fingerprint.to_string())
    }

    /// Returns the members of a JSON line about it.
    pub(crate) fn json(&self) -> Value {
        json!({
            "address": self.address.to_string(),
            "fingerprint": self.fingerprint.map(|fingerprint| fingerprint.to_string()),
            "name": self.name,
        })
    }
}

/// Writes its name or fingerprint, and its address.
impl fmt::Display for Sender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { address, fingerprint, name, .. } = self;
        match (name, fingerprint) {
            (Some(name), _) => write!(f, "{name} ({address})"),
            (None, Some(fingerprint)) => write!(f, "{fingerprint} ({address})"),
            (None, None) => write!(f, "{address}"),
        }
    }
}

/// Protocol that may authenticate a peer's key.
pub(super) trait AuthenticatesPeer: Protocol {
    /// Returns the authenticated key of the peer.
    fn key(info: &Self::Info) -> Option<PublicKey>;
}

impl AuthenticatesPeer for Tpa {
    fn key(_: &Self::Info) -> Option<PublicKey> {
        None
    }
}

impl AuthenticatesPeer for Wide {
    fn key(info: &Self::Info) -> Option<PublicKey> {
        info.peer.key
    }
}

fn missing_choice(args: &Args) -> Failure {
    let output = args.output.display();
    let what = "nothing says which senders may send";
    let help = if args.identity.transport == Transport::Tpa {
        format!(
            "`hopline recv -o {output} --transport tpa --anyone`: TPA knows no keys, so that any sender may"
        )
    } else {
        format!(
            "write one of\n\
             `hopline recv -o {output} --known-peers FILE`: senders in FILE, in each line a name and what `hopline key show` prints there\n\
             `hopline recv -o {output} --psk FILE`: senders with the same key, which `openssl rand -hex 32` makes\n\
             `hopline recv -o {output} --anyone`: any sender, but no names that begin with a dot and no execute permission"
        )
    };
    Problem::new(what).help(help).into()
}
