//! Directory of a receiver. No operation leaves it.

use super::created_directories::CreatedDirectories;
use super::error::Error;
use super::file_failure::FileFailure;
use super::frame::{Content, Offer};
use super::part::{EndAction, Opened, Part, part_name};
use super::path::RelativePath;
use super::quota::{Quota, cost};
use super::reason::Reason;
use rustix::fs::{self, AtFlags, FileType, FlockOperation, Mode, OFlags, Stat};
use rustix::io::Errno;
use std::fs::File;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;

/// Directory of received files.
#[derive(Debug)]
pub struct Directory {
    root: OwnedFd,
    quota: Arc<Quota>,
    /// Umask of the process when the directory was opened.
    umask: Mode,
}

/// Do not follow a final symbolic link, do not block, and do not acquire a controlling terminal.
pub(super) const SAFE_FLAGS: OFlags =
    OFlags::NOFOLLOW.union(OFlags::CLOEXEC).union(OFlags::NONBLOCK).union(OFlags::NOCTTY);

impl Directory {
    /// Opens the directory, and creates it if it does not exist.
    ///
    /// # Errors
    ///
    /// [`Error::Files`] if it is not a directory or cannot be created.
    pub fn open(path: &Path) -> Result<Self, Error> {
        std::fs::create_dir_all(path).map_err(|e| Error::files(format!("making {}", path.display()), e))?;
        let flags = OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::RDONLY;
        let root = fs::open(path, flags, Mode::empty())
            .map_err(|e| Error::files(format!("opening {}", path.display()), e))?;
        Ok(Self { root, quota: Arc::new(Quota::new(u64::MAX)), umask: umask() })
    }

    /// Limits the bytes kept here to `bytes` from now on: partial files including existing ones, and stored files and
    /// directories. Each counts as at least 4096.
    ///
    /// # Errors
    ///
    /// [`Error::Files`] if the directory cannot be read.
    pub fn set_quota(&mut self, bytes: u64) -> Result<(), Error> {
        let quota = Quota::new(bytes);
        quota.take_up_to(self.parts()?.iter().map(|part| cost(part.bytes)).sum());
        self.quota = Arc::new(quota);
        Ok(())
    }

    pub(super) fn release(&self, bytes: u64) {
        self.quota.refund(bytes);
    }

    pub(super) fn root(&self) -> &OwnedFd {
        &self.root
    }

    /// Creates a directory and its parents; existing ones are kept.
    pub(super) fn make(&self, path: &RelativePath) -> Result<CreatedDirectories, FileFailure> {
        self.descend(path, path.names().count()).map(|(_, made)| made)
    }

    /// Returns whether an earlier transfer left a partial file for the offer.
    pub(super) fn has_part(&self, path: &RelativePath, offer: &Offer) -> Result<bool, FileFailure> {
        let (above, _) = split_path(path);
        let doing = |e| FileFailure::of(format!("looking for {path}"), e);
        let Some(directory) = self.open_nested(&above).map_err(doing)? else { return Ok(false) };
        let found = stat(&directory, part_name(path, offer).as_bytes()).map_err(doing)?;
        Ok(found.is_some_and(|found| !is_file(&found) || found.st_size > 0))
    }

    /// Opens the partial file of an offer, empty or with the data of an earlier transfer.
    pub(super) fn part(&self, path: &RelativePath, offer: &Offer) -> Result<Part, FileFailure> {
        let (directory, made) = self.descend(path, path.names().count() - 1)?;
        let name = part_name(path, offer);
        let (file, is_new) = open_part(&directory, &name).map_err(|e| match e {
            Errno::WOULDBLOCK => FileFailure::refused(
                Reason::Busy,
                format!("{path}: is being received from another sender right now"),
            ),
            e => FileFailure::of(format!("making a partial file for {path}"), e),
        })?;
        let quota = self.quota.clone();
        if is_new && !quota.try_take(cost(0)) {
            // It has just been created and is empty.
            let _ = fs::unlinkat(&directory, name.as_str(), AtFlags::empty());
            return Err(FileFailure::quota());
        }
        let owner = fs::fstat(&file)
            .map_err(|e| FileFailure::of(format!("looking at the partial file of {path}"), e))?;
        let me = rustix::process::geteuid().as_raw();
        if owner.st_uid != me {
            let text = format!(
                "{path}: its partial file belongs to user {} of the receiver's machine, which may change it; `hopline recv` runs as user {me}",
                owner.st_uid
            );
            return Err(FileFailure::refused(Reason::Permission, text));
        }
        let end =
            if matches!(offer.content, Content::File { .. }) { EndAction::Keep } else { EndAction::Remove };
        Part::new(Opened { directory, name, file, made, quota, umask: self.umask }, path.clone(), end)
    }

    /// Returns the entry at `path`, without creating anything.
    pub(super) fn existing(&self, path: &RelativePath) -> Result<Option<ExistingEntry>, FileFailure> {
        let (above, last) = split_path(path);
        let doing = || format!("looking for {path}");
        let below = self.open_nested(&above).map_err(|e| FileFailure::of(doing(), e))?;
        let Some(directory) = below else { return Ok(None) };
        let directory = &directory;
        let Some(found) = stat(directory, last).map_err(|e| FileFailure::of(doing(), e))? else {
            return Ok(None);
        };
        if FileType::from_raw_mode(found.st_mode) == FileType::Directory {
            return Ok(Some(ExistingEntry::Directory));
        }
        if !is_file(&found) {
            return Ok(Some(ExistingEntry::Other));
        }
        let opened = fs::openat(directory, last, OFlags::RDONLY | SAFE_FLAGS, Mode::empty());
        Ok(Some(opened.map_or(ExistingEntry::Other, |file| {
            ExistingEntry::File(File::from(file), found.st_size as u64)
        })))
    }

    /// Rejects a file that exceeds the quota or the free space. `here`: bytes of its partial file, if it has one.
    pub(super) fn can_hold(
        &self,
        path: &RelativePath,
        size: u64,
        here: Option<u64>,
    ) -> Result<(), FileFailure> {
        let (needed, left) = (cost(size) - here.map_or(0, cost), self.quota.left());
        if needed > left {
            let text = format!("{path}: needs {needed} bytes, and the receiver's quota has {left} left");
            return Err(FileFailure::refused(Reason::TooMuch, text));
        }
        let (needed, free) = (size - here.unwrap_or(0), self.free());
        if needed > free {
            let text =
                format!("{path}: needs {needed} bytes, and only {free} are free on the receiver's disk");
            return Err(FileFailure::refused(Reason::NoSpace, text));
        }
        Ok(())
    }

    /// Returns the free bytes of the file system.
    fn free(&self) -> u64 {
        fs::fstatvfs(&self.root).map_or(u64::MAX, |found| found.f_bavail.saturating_mul(found.f_frsize))
    }

    /// Opens nested directories, if they exist.
    fn open_nested(&self, names: &[&[u8]]) -> rustix::io::Result<Option<OwnedFd>> {
        let mut directory = self.root.try_clone().map_err(|_| Errno::MFILE)?;
        for name in names {
            match step(&directory, name) {
                Err(Errno::NOENT) => return Ok(None),
                stepped => directory = stepped?,
            }
        }
        Ok(Some(directory))
    }

    /// Opens the first `depth` nested directories of `path`, and creates missing ones.
    fn descend(
        &self,
        path: &RelativePath,
        depth: usize,
    ) -> Result<(OwnedFd, CreatedDirectories), FileFailure> {
        let trouble = |e| FileFailure::of(format!("making directories for {path}"), e);
        let mut directory =
            self.root.try_clone().map_err(|e| FileFailure::Fail(Error::files("duplicating", e)))?;
        let mut made = CreatedDirectories::new(self.quota.clone());
        for name in path.names().take(depth) {
            match fs::mkdirat(&directory, name, Mode::RWXU | Mode::RWXG | Mode::RWXO) {
                Ok(()) => made.record(&directory, name)?,
                Err(Errno::EXIST) => {}
                Err(e) => return Err(trouble(e)),
            }
            directory = step(&directory, name).map_err(trouble)?;
        }
        Ok((directory, made))
    }
}

/// Opens and locks a partial file, and creates it if it does not exist. Returns whether it did.
fn open_part(directory: &OwnedFd, name: &str) -> rustix::io::Result<(File, bool)> {
    let open = |more| {
        let flags = OFlags::RDWR | SAFE_FLAGS | more;
        fs::openat(directory, name, flags, Mode::RUSR | Mode::WUSR)
    };
    let (file, is_new) = match open(OFlags::empty()) {
        Err(Errno::NOENT) => match open(OFlags::CREATE | OFlags::EXCL) {
            Err(Errno::EXIST) => (open(OFlags::empty())?, false),
            made => (made?, true),
        },
        there => (there?, false),
    };
    fs::flock(&file, FlockOperation::NonBlockingLockExclusive)?;
    let (opened, named) = (fs::fstat(&file)?, stat(directory, name.as_bytes())?);
    // The previous holder of the lock may have moved the file to its place meanwhile.
    let same = named.is_some_and(|named| (named.st_dev, named.st_ino) == (opened.st_dev, opened.st_ino));
    let own = same && is_file(&opened) && opened.st_nlink == 1;
    own.then(|| (File::from(file), is_new)).ok_or(Errno::WOULDBLOCK)
}

/// Splits a path into the names of its parents and its last name.
fn split_path(path: &RelativePath) -> (Vec<&[u8]>, &[u8]) {
    let mut names: Vec<_> = path.names().collect();
    let last = names.pop().expect("a path has a name");
    (names, last)
}

/// Returns the umask of the process without a momentary change of it: Linux 4.7 and later report it.
fn umask() -> Mode {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let told = status.lines().find_map(|line| line.strip_prefix("Umask:"));
    let bits = told.and_then(|bits| u32::from_str_radix(bits.trim(), 8).ok());
    Mode::from_raw_mode(bits.unwrap_or(0o022))
}

/// Existing entry at the destination of an offer.
pub(super) enum ExistingEntry {
    /// A file and its size in bytes.
    File(File, u64),
    Directory,
    /// A symbolic link, a device, or an unreadable file.
    Other,
}

pub(super) fn step(directory: &OwnedFd, name: &[u8]) -> rustix::io::Result<OwnedFd> {
    fs::openat(directory, name, OFlags::DIRECTORY | OFlags::RDONLY | SAFE_FLAGS, Mode::empty())
}

/// Returns the metadata of `name` itself; a link is not followed.
pub(super) fn stat(directory: &OwnedFd, name: &[u8]) -> rustix::io::Result<Option<Stat>> {
    match fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW) {
        Err(Errno::NOENT) => Ok(None),
        found => found.map(Some),
    }
}

pub(super) fn is_file(stat: &Stat) -> bool {
    FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile
}
