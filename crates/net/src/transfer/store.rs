//! The receiver's directory: nothing is opened, made or replaced outside of it.

use super::error::Error;
use super::frame::{Content, Offer, Reason};
use super::part::{AtEnd, Made, Part, part_name};
use super::path::RelativePath;
use super::quota::Quota;
use super::trouble::Trouble;
use rustix::fs::{self, AtFlags, FileType, FlockOperation, Mode, OFlags, Stat};
use rustix::io::Errno;
use std::fs::File;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;

/// Where received files go.
#[derive(Debug)]
pub struct Directory {
    root: OwnedFd,
    quota: Arc<Quota>,
}

/// No final symbolic link is followed, and nothing blocks or becomes a terminal.
pub(super) const SAFELY: OFlags =
    OFlags::NOFOLLOW.union(OFlags::CLOEXEC).union(OFlags::NONBLOCK).union(OFlags::NOCTTY);

impl Directory {
    /// Opens the directory, and makes it first where there is none.
    ///
    /// # Errors
    ///
    /// [`Error::Files`] if it is no directory or cannot be made.
    pub fn open(path: &Path) -> Result<Self, Error> {
        std::fs::create_dir_all(path).map_err(|e| Error::files(format!("making {}", path.display()), e))?;
        let flags = OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::RDONLY;
        let root = fs::open(path, flags, Mode::empty())
            .map_err(|e| Error::files(format!("opening {}", path.display()), e))?;
        Ok(Self { root, quota: Arc::new(Quota::new(u64::MAX)) })
    }

    /// From now on at most `bytes` are kept here: of partial files, those that are there included, and of files that are
    /// stored.
    ///
    /// # Errors
    ///
    /// [`Error::Files`] if the directory cannot be read.
    pub fn set_quota(&mut self, bytes: u64) -> Result<(), Error> {
        let quota = Quota::new(bytes);
        quota.take_what_there_is(self.parts()?.iter().map(|part| part.bytes).sum());
        self.quota = Arc::new(quota);
        Ok(())
    }

    pub(super) fn give_back(&self, bytes: u64) {
        self.quota.give_back(bytes);
    }

    pub(super) fn root(&self) -> &OwnedFd {
        &self.root
    }

    /// Bytes that may still be kept.
    pub(super) fn quota_left(&self) -> u64 {
        self.quota.left()
    }

    /// Makes a directory and those above it; those that are there are fine.
    pub(super) fn make(&self, path: &RelativePath) -> Result<(), Trouble> {
        self.descend(path, path.names().count()).map(|(_, made)| made.keep())
    }

    /// Opens the part of a file that is offered, empty or as an earlier transfer left it.
    pub(super) fn part(&self, path: &RelativePath, offer: &Offer) -> Result<Part, Trouble> {
        let (directory, made) = self.descend(path, path.names().count() - 1)?;
        let name = part_name(path, offer);
        let open = || {
            let flags = OFlags::RDWR | OFlags::CREATE | SAFELY;
            let file = fs::openat(&directory, name.as_str(), flags, Mode::RUSR | Mode::WUSR)?;
            fs::flock(&file, FlockOperation::NonBlockingLockExclusive)?;
            let (opened, named) = (fs::fstat(&file)?, stat(&directory, name.as_bytes())?);
            // Who held the lock before may have put the file into its place meanwhile.
            let same =
                named.is_some_and(|named| (named.st_dev, named.st_ino) == (opened.st_dev, opened.st_ino));
            let own = same && is_file(&opened) && opened.st_nlink == 1;
            own.then(|| File::from(file)).ok_or(Errno::WOULDBLOCK)
        };
        let file = open().map_err(|e| match e {
            Errno::WOULDBLOCK => Trouble::refuse(
                Reason::Busy,
                format!("{path}: is being received from somebody else right now"),
            ),
            e => Trouble::of(format!("making a partial file for {path}"), e),
        })?;
        let end = if matches!(offer.content, Content::File { .. }) { AtEnd::Keep } else { AtEnd::Remove };
        Part::new(directory, name, file, path.clone(), end, made, self.quota.clone())
    }

    /// What is in the place of `path`, without making anything.
    pub(super) fn existing(&self, path: &RelativePath) -> Result<Option<Found>, Trouble> {
        let (mut directory, names) = (None, path.names().collect::<Vec<_>>());
        let (last, above) = names.split_last().expect("a path has a name");
        let doing = || format!("looking for {path}");
        for name in above {
            match step(directory.as_ref().unwrap_or(&self.root), name) {
                Err(Errno::NOENT) => return Ok(None),
                stepped => directory = Some(stepped.map_err(|e| Trouble::of(doing(), e))?),
            }
        }
        let directory = directory.as_ref().unwrap_or(&self.root);
        let Some(found) = stat(directory, last).map_err(|e| Trouble::of(doing(), e))? else {
            return Ok(None);
        };
        if FileType::from_raw_mode(found.st_mode) == FileType::Directory {
            return Ok(Some(Found::Directory));
        }
        if !is_file(&found) {
            return Ok(Some(Found::Other));
        }
        let opened = fs::openat(directory, *last, OFlags::RDONLY | SAFELY, Mode::empty());
        Ok(Some(opened.map_or(Found::Other, |file| Found::File(File::from(file), found.st_size as u64))))
    }

    /// Bytes that may still be written to the file system.
    pub(super) fn free(&self) -> u64 {
        fs::fstatvfs(&self.root).map_or(u64::MAX, |found| found.f_bavail.saturating_mul(found.f_frsize))
    }

    /// Opens the first `depth` directories of `path`, one in the other, and makes what is not there.
    fn descend(&self, path: &RelativePath, depth: usize) -> Result<(OwnedFd, Made), Trouble> {
        let trouble = |e| Trouble::of(format!("making directories for {path}"), e);
        let mut directory =
            self.root.try_clone().map_err(|e| Trouble::Fail(Error::files("duplicating", e)))?;
        let mut made = Made::default();
        for name in path.names().take(depth) {
            match fs::mkdirat(&directory, name, Mode::RWXU | Mode::RWXG | Mode::RWXO) {
                Ok(()) => {
                    fs::fsync(&directory).map_err(trouble)?;
                    made.note(&directory, name);
                }
                Err(Errno::EXIST) => {}
                Err(e) => return Err(trouble(e)),
            }
            directory = step(&directory, name).map_err(trouble)?;
        }
        Ok((directory, made))
    }
}

/// What is in the place of a file that is offered.
pub(super) enum Found {
    /// A file and its size in bytes.
    File(File, u64),
    Directory,
    /// A symbolic link, a device, or a file that may not be read.
    Other,
}

pub(super) fn step(directory: &OwnedFd, name: &[u8]) -> rustix::io::Result<OwnedFd> {
    fs::openat(directory, name, OFlags::DIRECTORY | OFlags::RDONLY | SAFELY, Mode::empty())
}

/// What `name` is, not what it points to.
pub(super) fn stat(directory: &OwnedFd, name: &[u8]) -> rustix::io::Result<Option<Stat>> {
    match fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW) {
        Err(Errno::NOENT) => Ok(None),
        found => found.map(Some),
    }
}

pub(super) fn is_file(stat: &Stat) -> bool {
    FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile
}
