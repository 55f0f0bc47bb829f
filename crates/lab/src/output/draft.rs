//! Draft of a directory of results: a hidden folder beside its place.
//!
//! A process that is killed leaves its draft behind. The next process that makes one in the same folder removes it: the
//! name marks a draft, and its lock, which the system releases with the process, shows that it is in use.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

/// Beginning of the names of folders that are not locked yet.
const UNLOCKED: &str = ".hopline-";
/// Beginning of the names of drafts. Each is locked from the time on at which it has this name.
const PREFIX: &str = ".hopline-draft-";

/// A folder, removed with everything in it on drop, unless it was moved away.
#[derive(Debug)]
pub(super) struct Draft {
    path: PathBuf,
    _lock: Option<File>,
}

impl Draft {
    /// Removes abandoned drafts in `folder`, and makes a new one.
    pub(super) fn create_in(folder: &Path) -> io::Result<Self> {
        remove_abandoned(folder);
        let unlocked = tempfile::Builder::new().prefix(UNLOCKED).tempdir_in(folder)?;
        let lock = lock(unlocked.path());
        // Without locks, as on Windows, the name must not say that there is one.
        let path = lock.as_ref().and_then(|_| {
            let name = unlocked.path().file_name()?.to_str()?;
            let path = folder.join(name.replacen(UNLOCKED, PREFIX, 1));
            fs::rename(unlocked.path(), &path).ok()?;
            Some(path)
        });
        let unlocked = unlocked.keep();
        Ok(Self { path: path.unwrap_or(unlocked), _lock: lock })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.path);
    }
}

fn remove_abandoned(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let is_named = entry.file_name().to_str().is_some_and(|name| name.starts_with(PREFIX));
        if is_named && entry.file_type().is_ok_and(|kind| kind.is_dir()) && lock(&entry.path()).is_some() {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// Locks a folder while the result exists. `None` if another process has locked it, or the system cannot.
fn lock(folder: &Path) -> Option<File> {
    let opened = File::open(folder).ok()?;
    opened.try_lock().ok()?;
    Some(opened)
}
