//! Folders that vanish with their process.
//!
//! A process that is killed leaves its folder behind. The next process that makes one in the same place removes it: the
//! name marks such a folder, and its lock, which the system releases with the process, shows that it is in use.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

/// Beginning of the names of folders that are not locked yet.
const UNLOCKED: &str = ".hopline-";

/// A folder, removed with everything in it on drop, unless it was moved away.
#[derive(Debug)]
pub struct LockedFolder {
    path: PathBuf,
    _lock: Option<File>,
}

impl LockedFolder {
    /// Removes abandoned folders in `parent` with names that begin with `prefix`, and makes a new one. All folders with such
    /// names are locked from the time on at which they have them.
    ///
    /// # Errors
    /// Errors of the file system.
    pub fn create_in(parent: &Path, prefix: &str) -> io::Result<Self> {
        remove_abandoned(parent, prefix);
        let unlocked = tempfile::Builder::new().prefix(UNLOCKED).tempdir_in(parent)?;
        let lock = lock(unlocked.path());
        // Without locks, as on Windows, the name must not say that there is one.
        let path = lock.as_ref().and_then(|_| {
            let name = unlocked.path().file_name()?.to_str()?;
            let path = parent.join(name.replacen(UNLOCKED, prefix, 1));
            fs::rename(unlocked.path(), &path).ok()?;
            Some(path)
        });
        let unlocked = unlocked.keep();
        Ok(Self { path: path.unwrap_or(unlocked), _lock: lock })
    }

    /// Returns the path of the folder.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for LockedFolder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.path);
    }
}

fn remove_abandoned(parent: &Path, prefix: &str) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let is_named = entry.file_name().to_str().is_some_and(|name| name.starts_with(prefix));
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

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn folders_of_killed_processes_are_removed_and_those_of_running_ones_stay() {
        let parent = tempfile::tempdir().unwrap();
        let abandoned = parent.path().join("mine-abandoned");
        let foreign = parent.path().join("foreign");
        fs::create_dir(&abandoned).unwrap();
        fs::create_dir(&foreign).unwrap();
        let [one, other] = [(), ()].map(|()| LockedFolder::create_in(parent.path(), "mine-").unwrap());
        assert!(one.path().is_dir() && other.path().is_dir() && foreign.is_dir() && !abandoned.exists());
        let path = one.path().to_owned();
        drop(one);
        assert!(!path.exists() && other.path().is_dir());
    }
}
