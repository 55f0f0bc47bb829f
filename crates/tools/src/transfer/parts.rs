//! Search for partial files, and removal of abandoned ones.

use super::error::Error;
use super::path::PART_PREFIX;
use super::quota::cost;
use super::store::{Directory, SAFE_FLAGS, is_file, stat, step};
use crate::printable::printable_path;
use rustix::fs::{self, AtFlags, Dir, FileType, FlockOperation, Mode, OFlags};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::fmt;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A partial file in a receiver's directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundPart {
    /// Path below the directory.
    pub path: PathBuf,
    /// Size in bytes.
    pub bytes: u64,
    /// Time since the last write.
    pub age: Duration,
}

/// Prints the path in printable form.
impl fmt::Display for FoundPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&printable_path(&self.path))
    }
}

impl Directory {
    /// Returns all partial files, in no particular order. Symbolic links are not followed.
    ///
    /// # Errors
    ///
    /// [`Error::Files`] if a directory cannot be read.
    pub fn parts(&self) -> Result<Vec<FoundPart>, Error> {
        let mut found = Vec::new();
        self.each_part(&mut |_, _, part| found.push(part))?;
        Ok(found)
    }

    /// Removes and returns the partial files with no write for at least `age`, unless a transfer is using them.
    ///
    /// # Errors
    ///
    /// [`Error::Files`] if a directory cannot be read.
    pub fn remove_parts(&self, age: Duration) -> Result<Vec<FoundPart>, Error> {
        let mut removed = Vec::new();
        self.each_part(&mut |directory, name, part| {
            if part.age >= age && remove_unless_locked(directory, name).is_ok() {
                self.release(cost(part.bytes));
                removed.push(part);
            }
        })?;
        Ok(removed)
    }

    fn each_part(&self, take: &mut dyn FnMut(&OwnedFd, &[u8], FoundPart)) -> Result<(), Error> {
        // Store paths instead of descriptors: a tree may be wider than the limit of open files.
        let mut places = vec![PathBuf::new()];
        while let Some(place) = places.pop() {
            let failed = |e: Errno| Error::files(format!("reading {}", printable_path(&place)), e);
            let entries = match self
                .open_subdirectory(&place)
                .and_then(|found| Ok((Dir::read_from(&found)?, found)))
            {
                Ok(entries) => entries,
                // The directory has disappeared, or is not readable and contains no partial file.
                Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::ACCESS) if place != Path::new("") => {
                    continue;
                }
                Err(e) => return Err(failed(e)),
            };
            let (entries, directory) = entries;
            for entry in entries {
                let entry = entry.map_err(failed)?;
                let name = entry.file_name().to_bytes();
                let Ok(Some(found)) = stat(&directory, name) else { continue };
                let inner = place.join(OsStr::from_bytes(name));
                let is_part = name.starts_with(PART_PREFIX.as_bytes()) && is_file(&found);
                if is_part {
                    let age = age_of(found.st_mtime);
                    take(&directory, name, FoundPart { path: inner, bytes: found.st_size as u64, age });
                } else if FileType::from_raw_mode(found.st_mode) == FileType::Directory
                    && !matches!(name, b"." | b"..")
                {
                    places.push(inner);
                }
            }
        }
        Ok(())
    }

    /// Opens a directory below this one.
    fn open_subdirectory(&self, place: &Path) -> rustix::io::Result<OwnedFd> {
        let mut directory = self.root().try_clone().map_err(|_| Errno::MFILE)?;
        for name in place {
            directory = step(&directory, name.as_bytes())?;
        }
        Ok(directory)
    }
}

fn remove_unless_locked(directory: &OwnedFd, name: &[u8]) -> rustix::io::Result<()> {
    let file = fs::openat(directory, name, OFlags::RDWR | SAFE_FLAGS, Mode::empty())?;
    fs::flock(&file, FlockOperation::NonBlockingLockExclusive)?;
    fs::unlinkat(directory, name, AtFlags::empty())
}

#[expect(clippy::disallowed_methods, reason = "the age of a file is counted from now")]
fn age_of(modified: i64) -> Duration {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    now.saturating_sub(Duration::from_secs(u64::try_from(modified).unwrap_or(0)))
}
