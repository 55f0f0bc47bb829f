//! Folders that vanish with their process.
//!
//! A process that is killed leaves its folder behind. The next process that makes one in the same place removes it: the
//! name marks such a folder, and its lock, which the system releases with the process, shows that it is in use.

use sha2::{Digest, Sha256};
use std::ffi::OsStr;
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
        let random = |unlocked: &str| unlocked.replacen(UNLOCKED, prefix, 1);
        Self::create(parent, prefix, random)
    }

    /// As [`create_in`](Self::create_in), with one name for all folders that are made for `purpose`.
    ///
    /// # Errors
    /// [`ErrorKind::AlreadyExists`](io::ErrorKind::AlreadyExists) if another process has a folder for it; other errors of
    /// the file system.
    pub fn create_for(parent: &Path, prefix: &str, purpose: &OsStr) -> io::Result<Self> {
        Self::create(parent, prefix, |_| prefix.to_owned() + &hash_of(purpose))
    }

    /// Makes a folder, locks it and gives it its name, from the name that it had.
    fn create(parent: &Path, prefix: &str, name: impl FnOnce(&str) -> String) -> io::Result<Self> {
        remove_abandoned(parent, prefix);
        let unlocked = tempfile::Builder::new().prefix(UNLOCKED).tempdir_in(parent)?;
        let lock = lock(unlocked.path());
        let now = unlocked.path().file_name().and_then(OsStr::to_str);
        // Without locks, as on Windows, the name must not say that there is one.
        let (Some(_), Some(now)) = (&lock, now) else {
            return Ok(Self { path: unlocked.keep(), _lock: lock });
        };
        let path = parent.join(name(now));
        rename_to_new(unlocked.path(), &path)?;
        let _ = unlocked.keep();
        Ok(Self { path, _lock: lock })
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

/// Returns 16 hexadecimal digits: not longer than names may be.
fn hash_of(purpose: &OsStr) -> String {
    let hash = Sha256::digest(purpose.as_encoded_bytes());
    hash[..8].iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Renames a folder to a name that nothing has.
fn rename_to_new(from: &Path, to: &Path) -> io::Result<()> {
    #[cfg(target_os = "linux")]
    {
        use rustix::fs::{CWD, RenameFlags, renameat_with};
        use rustix::io::Errno;
        match renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
            // The file system does not know the flag.
            Err(Errno::INVAL | Errno::NOSYS) => {}
            renamed => return Ok(renamed?),
        }
    }
    match to.exists() {
        true => Err(io::ErrorKind::AlreadyExists.into()),
        false => fs::rename(from, to),
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

    #[test]
    fn a_purpose_has_one_folder_at_a_time() {
        let parent = tempfile::tempdir().unwrap();
        let create = |purpose: &str| LockedFolder::create_for(parent.path(), "mine-", purpose.as_ref());
        let first = create("results").unwrap();
        let second = create("results").unwrap_err();
        assert_eq!(second.kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(fs::read_dir(parent.path()).unwrap().count(), 1, "nothing of the second is left");
        create("others").unwrap();
        drop(first);
        create("results").unwrap();
    }
}
