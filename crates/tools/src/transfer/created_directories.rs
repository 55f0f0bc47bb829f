//! Directories that were created for incoming files.

use super::file_failure::FileFailure;
use super::quota::{DIRECTORY, Quota};
use rustix::fs::{self, AtFlags};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

/// Directories that were created for a file, and are removed if it is not stored.
#[derive(Debug)]
pub(super) struct CreatedDirectories {
    /// Parent and name of each directory.
    directories: Vec<(OwnedFd, Vec<u8>)>,
    quota: Arc<Quota>,
}

impl CreatedDirectories {
    pub(super) const fn new(quota: Arc<Quota>) -> Self {
        Self { directories: Vec::new(), quota }
    }

    /// Records that `name` was created in `directory`.
    pub(super) fn record(&mut self, directory: &OwnedFd, name: &[u8]) -> Result<(), FileFailure> {
        let remove = || {
            // It stays if another conversation has put something there meanwhile.
            let _ = fs::unlinkat(directory, name, AtFlags::REMOVEDIR);
        };
        if !self.quota.try_take(DIRECTORY) {
            remove();
            return Err(FileFailure::quota());
        }
        match directory.try_clone() {
            Ok(directory) => self.directories.push((directory, name.to_vec())),
            Err(error) => {
                remove();
                self.quota.refund(DIRECTORY);
                return Err(FileFailure::of_io("making a directory", error));
            }
        }
        Ok(())
    }

    /// Returns the directories with a new entry.
    pub(super) fn parents(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.directories.iter().map(|(directory, _)| directory.as_fd())
    }

    pub(super) fn keep(&mut self) {
        self.directories.clear();
    }
}

impl Drop for CreatedDirectories {
    fn drop(&mut self) {
        for (directory, name) in self.directories.drain(..).rev() {
            // It stays if another conversation has put something there meanwhile.
            if fs::unlinkat(directory, name.as_slice(), AtFlags::REMOVEDIR).is_ok() {
                self.quota.refund(DIRECTORY);
            }
        }
    }
}
