//! Folders that vanish with their process.
//!
//! A process that is killed leaves its folder behind. The next process that makes one in the same place removes it: the
//! name marks such a folder, and its lock, which the system releases with the process, shows that it is in use.
//!
//! Processes may begin and end at the same time, with the same name. A process therefore removes or replaces only what has
//! the name while it holds the lock of the folder with this name.

use sha2::{Digest, Sha256};
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

/// Beginning of the names of folders that are not locked yet.
const UNLOCKED: &str = ".hopline-";
/// Continuation of the names of abandoned folders that are being removed.
const REMOVED: &str = "removed-";

/// A folder, removed with everything in it on drop, unless it was moved away.
#[derive(Debug)]
pub struct LockedFolder {
    path: PathBuf,
    /// `None` where the system has no locks. The name is then of this folder alone.
    lock: Option<File>,
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
            return Ok(Self { path: unlocked.keep(), lock });
        };
        let path = parent.join(name(now));
        rename_to_new(unlocked.path(), &path)?;
        let _ = unlocked.keep();
        Ok(Self { path, lock })
    }

    /// Returns the path of the folder.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Exchanges the folder with another one, by `exchange`, and removes the other.
    ///
    /// # Errors
    /// Those of `exchange`.
    pub(super) fn replace(
        self,
        other: &Path,
        exchange: impl FnOnce(&Path, &Path) -> io::Result<()>,
    ) -> io::Result<()> {
        // It has the name of this folder until it is removed: no other process may take it for an abandoned one. The process
        // that moved it to its place may not have released it yet.
        let opened = File::open(other).ok();
        let _locked = opened.as_ref().and_then(|opened| opened.lock().ok());
        exchange(&self.path, other)?;
        let _ = fs::remove_dir_all(&self.path);
        Ok(())
    }
}

impl Drop for LockedFolder {
    fn drop(&mut self) {
        // Once it was moved away, another process may have a folder of its name.
        if self.lock.as_ref().is_none_or(|lock| is_at(lock, &self.path)) {
            let _ = fs::remove_dir_all(&self.path);
        }
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

/// Removes folders with such names that no process has locked, each under its lock.
fn remove_abandoned(parent: &Path, prefix: &str) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let is_named = entry.file_name().to_str().is_some_and(|name| name.starts_with(prefix));
        if !is_named || !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            continue;
        }
        if let Some(_lock) = lock(&entry.path()) {
            // Its name is free at once, however long it takes to remove the files.
            let aside = parent.join(format!("{prefix}{REMOVED}{:x}", std::process::id()));
            let moved = rename_to_new(&entry.path(), &aside).map_or(entry.path(), |()| aside);
            let _ = fs::remove_dir_all(moved);
        }
    }
}

/// Locks the folder with this name while the result exists. `None` if another process has locked it, it has gone, or the
/// system cannot.
fn lock(folder: &Path) -> Option<File> {
    lock_opened(File::open(folder).ok()?, folder)
}

fn lock_opened(opened: File, folder: &Path) -> Option<File> {
    opened.try_lock().ok()?;
    is_at(&opened, folder).then_some(opened)
}

/// Returns whether an open folder has this name: another may have got it since.
#[cfg(unix)]
fn is_at(opened: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let [Ok(opened), Ok(named)] = [opened.metadata(), fs::symlink_metadata(path)] else { return false };
    (opened.dev(), opened.ino()) == (named.dev(), named.ino())
}

/// There are no locks of folders.
#[cfg(not(unix))]
fn is_at(_opened: &File, _path: &Path) -> bool {
    true
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

    #[test]
    fn a_folder_that_was_moved_away_leaves_its_name_to_the_next() {
        let parent = tempfile::tempdir().unwrap();
        let create = || LockedFolder::create_for(parent.path(), "mine-", "results".as_ref()).unwrap();
        let first = create();
        fs::rename(first.path(), parent.path().join("results")).unwrap();
        let second = create();
        drop(first);
        assert!(second.path().is_dir() && parent.path().join("results").is_dir());
    }

    #[test]
    fn a_folder_is_not_locked_by_a_name_that_another_has_got() {
        let parent = tempfile::tempdir().unwrap();
        let folder = parent.path().join("mine-abandoned");
        fs::create_dir(&folder).unwrap();
        let opened = File::open(&folder).unwrap();
        fs::rename(&folder, parent.path().join("elsewhere")).unwrap();
        assert!(lock_opened(opened.try_clone().unwrap(), &folder).is_none(), "the name is gone");
        fs::create_dir(&folder).unwrap();
        assert!(lock_opened(opened, &folder).is_none(), "the name is another folder's");
        assert!(lock(&folder).is_some());
    }

    #[test]
    fn the_folder_that_is_replaced_is_removed_before_the_next_has_the_name() {
        let parent = tempfile::tempdir().unwrap();
        let create = || LockedFolder::create_for(parent.path(), "mine-", "results".as_ref());
        let results = parent.path().join("results");
        fs::create_dir(&results).unwrap();
        let first = create().unwrap();
        let aside = parent.path().join("aside");
        let exchange = |from: &Path, to: &Path| {
            fs::rename(to, &aside)?;
            fs::rename(from, to)?;
            fs::rename(&aside, from)?;
            assert_eq!(create().unwrap_err().kind(), io::ErrorKind::AlreadyExists);
            Ok(())
        };
        first.replace(&results, exchange).unwrap();
        assert_eq!(fs::read_dir(parent.path()).unwrap().count(), 1);
        create().unwrap();
    }

    /// A lock belongs to an open folder, so that threads exclude each other as processes do.
    #[test]
    fn processes_that_begin_at_once_do_not_remove_folders_of_each_other() {
        let parent = tempfile::tempdir().unwrap();
        let begin = &|number: usize| {
            for round in 0..100 {
                let purpose = format!("results {}", (number + round) % 2);
                let created = LockedFolder::create_for(parent.path(), "mine-", purpose.as_ref());
                let Ok(mut mine) = created else { continue };
                for name in 0..10 {
                    fs::write(mine.path().join(name.to_string()), &purpose).unwrap();
                }
                assert_eq!(fs::read_dir(mine.path()).unwrap().count(), 10, "round {round} of {number}");
                if round % 3 == 0 {
                    // As if the process was killed: the folder stays, without its lock.
                    mine.path = parent.path().join("none");
                }
            }
        };
        std::thread::scope(|scope| {
            let spawn = |number| scope.spawn(move || begin(number));
            (0..8).map(spawn).collect::<Vec<_>>().into_iter().for_each(|thread| thread.join().unwrap());
        });
    }
}
