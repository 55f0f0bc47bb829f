//! Key files, with errors as C reports them.

use crate::error::{Error, Result};
use hopline_secure::keys::{KnownPeers, Name, PublicKey};
use hopline_secure::{PreSharedKey, PrivateKey};
use hopline_streams::key_files::{self, KeyInFile};
use std::io;
use std::path::{Path, PathBuf};

/// Returns the path of the user's file called `name`.
pub(crate) fn of_user(name: &str) -> Result<PathBuf> {
    key_files::of_user(name).ok_or_else(|| {
        Error::new(libc::ENOENT, "neither XDG_CONFIG_HOME nor HOME says where the user's keys are")
    })
}

/// Reads a private key.
pub(crate) fn load_private(path: &Path) -> Result<PrivateKey> {
    match key_files::load_key(path)? {
        KeyInFile::Private(key) => Ok(key),
        KeyInFile::Shared(_) => {
            Err(Error::new(libc::EINVAL, "no private key, as `hopline key new` makes it")
                .with_context(path.display()))
        }
    }
}

/// Reads a shared key.
pub(crate) fn load_shared(path: &Path) -> Result<PreSharedKey> {
    match key_files::load_key(path)? {
        KeyInFile::Shared(key) => Ok(key),
        KeyInFile::Private(_) => {
            let what = "a private key, and no shared one of 64 hexadecimal digits";
            Err(Error::new(libc::EINVAL, what).with_context(path.display()))
        }
    }
}

/// Reads a file of known peers.
pub(crate) fn load_peers(path: &Path) -> Result<KnownPeers> {
    Ok(key_files::load_peers(path)?)
}

/// Adds a line to a file of known peers, which is created if it does not exist.
pub(crate) fn add_peer(path: &Path, name: &Name, key: &PublicKey) -> Result<()> {
    Ok(key_files::add_peer(path, name, key)?)
}

impl From<key_files::Error> for Error {
    fn from(error: key_files::Error) -> Self {
        let number = match &error.problem {
            key_files::Problem::Reading(error) | key_files::Problem::Writing(error) => error.raw_os_error(),
            key_files::Problem::Unsuitable { .. } | key_files::Problem::Mistakes { .. } => None,
        };
        let of_kind = || Self::from(io::Error::from(error.problem.kind())).errno;
        Self::new(number.unwrap_or_else(of_kind), error.to_string())
    }
}
