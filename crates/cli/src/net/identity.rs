//! Own key of a transfer, and authentication of the peer.

use crate::net::args::{IdentityArgs, Transport};
use crate::net::keys::{self, default_path, load_key, load_peers};
use crate::problems::{Failure, print_error_line};
use hopline_lab::Problem;
use hopline_secure::keys::{KnownPeers, Name};
use hopline_secure::{Fingerprint, PreSharedKey, PrivateKey, PublicKey, Seed};
use hopline_streams::key_files::KeyInFile;
use std::fmt;
use std::path::{Path, PathBuf};
use zeroize::Zeroizing;

/// Own key.
pub(super) enum OwnKey {
    /// Pre-shared key.
    Shared(PreSharedKey),
    /// Own private key.
    Private(PrivateKey),
}

/// Rejects options of keys for TPA, which has none.
pub(super) fn check(args: &IdentityArgs) -> Result<(), Failure> {
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
pub(super) fn own_key(args: &IdentityArgs) -> Result<OwnKey, Failure> {
    if let Some(path) = &args.psk {
        return match load_key(path)? {
            KeyInFile::Shared(key) => Ok(OwnKey::Shared(key)),
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
            let path = default_path("key")?;
            if !path.exists() {
                create(&path)?;
            }
            path
        }
    };
    match load_key(&path)? {
        KeyInFile::Private(key) => Ok(OwnKey::Private(key)),
        KeyInFile::Shared(_) => {
            let what = format!("{}: a shared key, and --key takes a private one", path.display());
            Err(Problem::new(what).help("`hopline key new FILE` makes one; --psk takes a shared one").into())
        }
    }
}

/// Creates a private key in a file.
pub(super) fn create(path: &Path) -> Result<(), Failure> {
    let key =
        generate().map_err(|error| Failure::Other(format!("the system gives no random numbers: {error}")))?;
    keys::store_key(path, &key)?;
    print_error_line(&format!("a new private key is in {}; give others its public half", path.display()));
    Ok(())
}

/// Generates a private key.
pub(super) fn generate() -> Result<PrivateKey, getrandom::Error> {
    let mut random = Zeroizing::new([0; 32]);
    getrandom::fill(&mut random[..])?;
    Ok(PrivateKey::generate(&Seed::new(*random)))
}

/// Place of a peer's key in a file.
pub(super) struct KnownKey {
    file: PathBuf,
    line: usize,
    fingerprint: Fingerprint,
}

/// Writes advice for a peer that answers with another key.
impl fmt::Display for KnownKey {
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
pub(super) struct KnownPeersFile {
    peers: KnownPeers,
    path: PathBuf,
}

impl KnownPeersFile {
    /// Loads the file that the options name, or that of the user.
    pub(super) fn load(args: &IdentityArgs) -> Result<Self, Failure> {
        let path = args.known_peers.clone().map_or_else(|| default_path("known_peers"), Ok)?;
        let known = if args.known_peers.is_some() || path.exists() {
            load_peers(&path)?
        } else {
            KnownPeers::default()
        };
        Ok(Self { peers: known, path })
    }

    /// Returns the key of `peer` in the file, and its place there.
    pub(super) fn lookup(&self, peer: &Name) -> Option<(PublicKey, KnownKey)> {
        let peer = self.peers.get(peer)?;
        let (file, fingerprint) = (self.path.clone(), peer.key.fingerprint());
        Some((peer.key, KnownKey { file, line: peer.line, fingerprint }))
    }

    /// Adds `peer` with `key`.
    pub(super) fn add(&self, peer: &Name, key: &PublicKey) -> Result<(), Failure> {
        keys::add_peer(&self.path, peer, key)?;
        print_error_line(&format!(
            "{peer} is known from now on by {}, in {}",
            key.fingerprint(),
            self.path.display()
        ));
        Ok(())
    }

    /// Returns the error for a peer that is not known.
    pub(super) fn unknown_peer_error(&self, peer: &Name, key: &PublicKey) -> Failure {
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
pub(super) fn wrong_key_error(peer: &Name, found: Fingerprint, wanted: Fingerprint) -> Failure {
    let what = format!("who answers at {peer} has the fingerprint {found}, and not {wanted}");
    let help =
        "ask whoever runs `hopline recv` there for its fingerprint; if it is neither, somebody is in between";
    Problem::new(what).help(help).into()
}
