//! Folder for the files of kernels, which vanishes with the emulation.

use rustix::fs::{FlockOperation, flock};
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

/// Beginning of the name of a folder, in that for temporary files.
const PREFIX: &str = "hopline-kernels-";
/// The same of one that is not locked yet.
const NEW_PREFIX: &str = ".hopline-kernels-";

/// Folder of one emulation. It is locked while the emulation runs, and removed with the value.
#[derive(Debug)]
pub(super) struct RunFolder {
    path: PathBuf,
    _lock: File,
}

impl RunFolder {
    /// Creates a folder in that for temporary files, and removes the folders of emulations that were killed.
    pub(super) fn create() -> io::Result<Self> {
        Self::create_in(&std::env::temp_dir())
    }

    fn create_in(parent: &Path) -> io::Result<Self> {
        remove_abandoned(parent);
        let new = tempfile::Builder::new().prefix(NEW_PREFIX).tempdir_in(parent)?;
        let lock = File::open(new.path())?;
        flock(&lock, FlockOperation::NonBlockingLockExclusive)?;
        // Only now: one that is not locked would be taken for abandoned.
        let name = new.path().file_name().expect("a folder has a name").to_string_lossy().into_owned();
        let path = parent.join(&name[1..]);
        fs::rename(new.path(), &path)?;
        let _ = new.keep();
        Ok(Self { path, _lock: lock })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for RunFolder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// Removes folders of emulations that no longer run. Folders of other users stay.
fn remove_abandoned(parent: &Path) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let is_ours = entry.file_name().to_string_lossy().starts_with(PREFIX);
        let Some(folder) = is_ours.then(|| File::open(entry.path()).ok()).flatten() else { continue };
        if flock(&folder, FlockOperation::NonBlockingLockExclusive).is_ok() {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_of_killed_emulations_are_removed_and_those_of_running_ones_stay() {
        let parent = tempfile::tempdir().unwrap();
        let abandoned = parent.path().join(format!("{PREFIX}abandoned"));
        let foreign = parent.path().join("foreign");
        fs::create_dir(&abandoned).unwrap();
        fs::create_dir(&foreign).unwrap();
        let [one, other] = [(), ()].map(|()| RunFolder::create_in(parent.path()).unwrap());
        assert!(one.path().is_dir() && other.path().is_dir() && foreign.is_dir() && !abandoned.exists());
        let path = one.path().to_owned();
        drop(one);
        assert!(!path.exists() && other.path().is_dir());
    }
}
