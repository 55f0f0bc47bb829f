//! Own key of a transfer, and authentication of the peer.

use crate::net::args::{Identity, Transport};
use crate::net::keys::{self, default_place, load_key, load_peers};
use crate::problems::{Failure, say};
use hopline_lab::Problem;
use hopline_secure::keys::{KnownPeers, Name};
use hopline_secure::{Fingerprint, PreSharedKey, PrivateKey, PublicKey, Seed};
use hopline_streams::key_files::KeyInFile;
use std::fmt;
use std::path::{Path, PathBuf};
use zeroize::Zeroizing;

/// Own key.
pub(super) enum Ours {
    /// Pre-shared key.
    Shared(PreSharedKey),
    /// Own private key.
    Own(PrivateKey),
}

/// Rejects options of keys for TPA, which has none.
pub(super) fn check(args: &Identity) -> Result<(), Failure> {
    let keys = [("--key", &args.key), ("--psk", &args.psk), ("--known-peers", &args.known_peers)];
    match keys.into_iter().find(|(_, file)| file.is_some()) {
        Some((option, _)) if args.transport == Transport::Tpa => {
            let what = format!(
                "{option} is of no use with --transport tpa, which neither encrypts nor knows who is there"
            );
            Err(Problem::new(what).help("leave out one of the two").into())
        }
        _ => Ok(()),
    }
}

/// Returns the key that the options name, or that of the user, which is created if it does not exist.
pub(super) fn ours(args: &Identity) -> Result<Ours, Failure> {
    if let Some(path) = &args.psk {
        return match load_key(path)? {
            KeyInFile::Shared(key) => Ok(Ours::Shared(key)),
            KeyInFile::Private(_) => {
                let what =
                    format!("{}: a private key, and --psk takes one that both ends share", path.display());
                Err(Problem::new(what)
                    .help("64 hexadecimal digits, as `openssl rand -hex 32` prints them, or --key")
                    .into())
            }
        };
    }
    let path = match &args.key {
        Some(path) => path.clone(),
        None => {
            let path = default_place("key")?;
            if !path.exists() {
                make(&path)?;
            }
            path
        }
    };
    match load_key(&path)? {
        KeyInFile::Private(key) => Ok(Ours::Own(key)),
        KeyInFile::Shared(_) => {
            let what = format!("{}: a shared key, and --key takes a private one", path.display());
            Err(Problem::new(what).help("`hopline key new FILE` makes one; --psk takes a shared one").into())
        }
    }
}

/// Creates a private key in a file.
pub(super) fn make(path: &Path) -> Result<(), Failure> {
    let key =
        generate().map_err(|error| Failure::Other(format!("the system gives no random numbers: {error}")))?;
    keys::store_key(path, &key)?;
    say(&format!("a new private key is in {}; give others its public half", path.display()));
    Ok(())
}

/// Generates a private key.
pub(super) fn generate() -> Result<PrivateKey, getrandom::Error> {
    let mut random = Zeroizing::new([0; 32]);
    getrandom::fill(&mut random[..])?;
    Ok(PrivateKey::generate(&Seed::new(*random)))
}

/// Place of a peer's key in a file.
pub(super) struct Known {
    file: PathBuf,
    line: usize,
    fingerprint: Fingerprint,
}

/// Writes advice for a peer that answers with another key.
impl fmt::Display for Known {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { file, line, fingerprint } = self;
        let file = file.display();
        write!(
            f,
            "{file}:{line} has another key for it, with the fingerprint {fingerprint}. If the receiver has a new key, compare what \
             `hopline recv` prints there, and remove line {line} of {file}"
        )
    }
}

/// Known peers, and the path of their file.
pub(super) struct Acquaintances {
    known: KnownPeers,
    path: PathBuf,
}

impl Acquaintances {
    /// Loads the file that the options name, or that of the user.
    pub(super) fn load(args: &Identity) -> Result<Self, Failure> {
        let path = args.known_peers.clone().map_or_else(|| default_place("known_peers"), Ok)?;
        let known = if args.known_peers.is_some() || path.exists() {
            load_peers(&path)?
        } else {
            KnownPeers::default()
        };
        Ok(Self { known, path })
    }

    /// Returns the key of `peer` in the file, and its place there.
    pub(super) fn known(&self, peer: &Name) -> Option<(PublicKey, Known)> {
        let peer = self.known.get(peer)?;
        let (file, fingerprint) = (self.path.clone(), peer.key.fingerprint());
        Some((peer.key, Known { file, line: peer.line, fingerprint }))
    }

    /// Adds `peer` with `key`.
    pub(super) fn add(&self, peer: &Name, key: &PublicKey) -> Result<(), Failure> {
        keys::add_peer(&self.path, peer, key)?;
        say(&format!("{peer} is known from now on by {}, in {}", key.fingerprint(), self.path.display()));
        Ok(())
    }

    /// Returns the error for a peer that is not known.
    pub(super) fn stranger(&self, peer: &Name, key: &PublicKey) -> Failure {
        let fingerprint = key.fingerprint();
        let what = format!("{peer} is not known; who answers there has the fingerprint {fingerprint}");
        let help = format!(
            "compare it with what `hopline recv` says there; if it is the same: --trust {fingerprint}, or this line in {}: {peer} {key}",
            self.path.display()
        );
        Problem::new(what).help(help).into()
    }
}

/// Returns the error for a peer with another key than the expected one.
pub(super) fn impostor(peer: &Name, found: Fingerprint, wanted: Fingerprint) -> Failure {
    let what = format!("who answers at {peer} has the fingerprint {found}, and not {wanted}");
    let help =
        "ask whoever runs `hopline recv` there for its fingerprint; if it is neither, somebody is in between";
    Problem::new(what).help(help).into()
}
