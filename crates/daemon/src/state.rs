//! The folder where a daemon keeps what others must find: its lock, its socket, its list of rules.

use rustix::fs::{FlockOperation, flock};
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

/// The folder, and the right to be the daemon of its name. The right goes with the process, however it ends.
#[derive(Debug)]
pub(crate) struct State {
    folder: PathBuf,
    name: String,
    _lock: File,
}

/// Why there is no right.
#[derive(Debug, thiserror::Error)]
pub enum StateError {
    /// Another process has it.
    #[error(
        "a daemon called \"{name}\" is running already, as process {process}; give this one another name = \"…\""
    )]
    Taken {
        /// What both are called.
        name: String,
        /// The other one.
        process: String,
    },
    /// The folder cannot be used.
    #[error("{0}: {1}")]
    Folder(String, io::Error),
}

impl State {
    /// Takes the right.
    pub(crate) fn take(folder: &Path, name: &str) -> Result<Self, StateError> {
        let failed = |path: &Path, error: io::Error| StateError::Folder(path.display().to_string(), error);
        fs::create_dir_all(folder).map_err(|e| failed(folder, e))?;
        let path = folder.join(format!("{name}.lock"));
        // Not cut short: until the lock is ours the file says whose it is.
        let opened = File::options().create(true).truncate(false).read(true).write(true).open(&path);
        let mut lock = opened.map_err(|e| failed(&path, e))?;
        if flock(&lock, FlockOperation::NonBlockingLockExclusive).is_err() {
            let mut process = String::new();
            let _ = lock.read_to_string(&mut process);
            let process = process.trim();
            let process = if process.is_empty() { "?" } else { process };
            return Err(StateError::Taken { name: name.to_owned(), process: process.to_owned() });
        }
        lock.set_len(0)
            .and_then(|()| writeln!(lock, "{}", std::process::id()))
            .map_err(|e| failed(&path, e))?;
        Ok(Self { folder: folder.to_owned(), name: name.to_owned(), _lock: lock })
    }

    /// The folder.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Where the daemon says how it is.
    pub(crate) fn socket(&self) -> PathBuf {
        socket(&self.folder, &self.name)
    }
}

/// Where the daemon `name` says how it is.
pub(crate) fn socket(folder: &Path, name: &str) -> PathBuf {
    folder.join(format!("{name}.sock"))
}
