//! Partial files.

use super::account::{self, Account};
use super::created_directories::CreatedDirectories;
use super::error::Error;
use super::file_failure::{FileFailure, exists};
use super::frame::{Content, Modified, Offer};
use super::hashing::{self, FileStamp, hash_into};
use super::path::{PART_PREFIX, RelativePath};
use super::permissions::{Existing, Origin};
use super::quota::{Quota, cost};
use super::reason::Reason;
use blake3::{Hash, Hasher};
use rustix::fs::{self, AtFlags, Mode, RenameFlags, Timespec, Timestamps};
use rustix::io::Errno;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

/// Block size of holes in bytes: the smallest block of common file systems.
const HOLE_LEN: usize = 4096;

/// A partial file, locked against concurrent transfers of the same file.
#[derive(Debug)]
pub(super) struct Part {
    directory: OwnedFd,
    name: String,
    file: File,
    target: RelativePath,
    end: EndAction,
    made: CreatedDirectories,
    quota: Arc<Quota>,
    /// Umask of the process: permissions that no file gets.
    umask: Mode,
    /// Bytes of the content received so far, holes included.
    received: u64,
    /// Hash of these bytes.
    hasher: Hasher,
    /// File metadata after the last write of this process. Another value shows a write by another program.
    stamp: Option<FileStamp>,
    integrity: Integrity,
}

/// A partial file that was opened and locked.
pub(super) struct Opened {
    pub(super) directory: OwnedFd,
    pub(super) name: String,
    pub(super) file: File,
    pub(super) made: CreatedDirectories,
    pub(super) quota: Arc<Quota>,
    pub(super) umask: Mode,
}

/// Treatment of a partial file when its transfer ends before it is complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EndAction {
    Keep,
    Remove,
    /// It has been moved to its place, or removed.
    Nothing,
}

/// Origin of the data in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Integrity {
    Trusted,
    /// Another program has written to the file or truncated it.
    Doubtful,
}

impl Part {
    /// Creates a part from an open and locked file, and charges it to the quota.
    pub(super) fn new(opened: Opened, target: RelativePath, end: EndAction) -> Result<Self, FileFailure> {
        let Opened { directory, name, file, made, quota, umask } = opened;
        let here = file.metadata().map_err(|e| FileFailure::of_io("looking at a partial file", e))?.len();
        let (hasher, left, ours) = (Hasher::new(), None, Integrity::Trusted);
        Ok(Self {
            directory,
            name,
            file,
            target,
            end,
            made,
            quota,
            umask,
            received: here,
            hasher,
            stamp: left,
            integrity: ours,
        })
    }

    /// Determines the length, at most `size` bytes, and the hash of the existing data, so that the transfer can be
    /// resumed.
    pub(super) fn resume(
        &mut self,
        size: u64,
        account: &Account,
        meanwhile: &mut dyn FnMut() -> Result<(), Error>,
    ) -> Result<(), FileFailure> {
        let doing = "reading a partial file";
        let stamp = FileStamp::of(&self.file).map_err(|e| FileFailure::of(doing, e))?;
        let (here, hasher) = match hashing::PARTIAL_HASHES.get(&stamp) {
            Some(hasher) => {
                self.file.seek(SeekFrom::Start(stamp.size)).map_err(|e| FileFailure::of_io(doing, e))?;
                (stamp.size, hasher)
            }
            None if stamp.size > size => (stamp.size, Hasher::new()),
            None if !account.may_hash() => {
                return Err(FileFailure::refused(
                    Reason::Busy,
                    format!("{}: {}", self.target, account::BUSY_TEXT),
                ));
            }
            None => account.hash(&mut self.file, doing, meanwhile)?,
        };
        if here > size {
            return self.rewind();
        }
        (self.received, self.hasher) = (here, hasher);
        self.record_stamp();
        Ok(())
    }

    /// Returns the bytes of the content received so far.
    pub(super) const fn received(&self) -> u64 {
        self.received
    }

    /// Returns the hash of the bytes received so far.
    pub(super) fn hash(&self) -> Hash {
        self.hasher.finalize()
    }

    /// Discards the data received so far.
    pub(super) fn rewind(&mut self) -> Result<(), FileFailure> {
        let emptied = self.file.set_len(0).and_then(|()| self.file.seek(SeekFrom::Start(0)));
        emptied.map_err(|e| FileFailure::of_io("emptying a partial file", e))?;
        self.quota.refund(cost(self.received) - cost(0));
        (self.received, self.hasher) = (0, Hasher::new());
        self.record_stamp();
        Ok(())
    }

    /// Appends data.
    pub(super) fn write(&mut self, data: &[u8]) -> Result<(), FileFailure> {
        let more = cost(self.received + data.len() as u64) - cost(self.received);
        if !self.quota.try_take(more) {
            return Err(FileFailure::quota());
        }
        self.check_stamp();
        if let Err(e) = write_around_holes(&mut self.file, data) {
            self.quota.refund(more);
            // A partial write was made by this program too.
            self.record_stamp();
            let kept = match self.end {
                EndAction::Keep => "; what has arrived is kept, and sending it again goes on from there",
                EndAction::Remove | EndAction::Nothing => "",
            };
            return Err(FileFailure::of_io(format!("writing {}{kept}", self.target), e));
        }
        self.hasher.update(data);
        self.received += data.len() as u64;
        self.record_stamp();
        Ok(())
    }

    /// Returns whether `hash` is that of the data on the disk, without reading them again if possible. If another program
    /// may have changed the file, it is read again.
    pub(super) fn matches(&mut self, hash: Hash) -> Result<bool, FileFailure> {
        let doing = |e| FileFailure::of_io("reading a partial file again", e);
        self.check_stamp();
        if self.integrity == Integrity::Trusted {
            return Ok(true);
        }
        let mut hasher = Hasher::new();
        self.file.seek(SeekFrom::Start(0)).map_err(doing)?;
        // A hole at the end is not in the file yet.
        let mut whole = (&self.file).chain(io::repeat(0));
        let read = hash_into(&mut hasher, &mut whole, self.received).map_err(doing)?;
        let longer = self.file.metadata().map_err(doing)?.len() > self.received;
        Ok(!longer && read == self.received && hasher.finalize() == hash)
    }

    /// Sets length, permissions and modification time of the complete file.
    pub(super) fn prepare(&self, offer: &Offer, origin: Origin) -> Result<(), FileFailure> {
        let trouble = |e| FileFailure::of(format!("storing {}", self.target), e);
        self.file
            .set_len(self.received)
            .map_err(|e| FileFailure::of_io(format!("storing {}", self.target), e))?;
        let mode = Mode::from_raw_mode(u32::from(origin.mode(offer.mode))).difference(self.umask);
        fs::fchmod(&self.file, mode).map_err(trouble)?;
        if offer.content != Content::Stream {
            fs::futimens(&self.file, &times(offer.modified)).map_err(trouble)?;
        }
        Ok(())
    }

    /// Moves the file, which is on the disk, to its place.
    pub(super) fn move_into_place(&mut self, existing: Existing) -> Result<(), FileFailure> {
        self.rename(existing).map_err(|e| match e {
            Errno::EXIST => exists(&self.target),
            e => FileFailure::of(format!("storing {}", self.target), e),
        })?;
        self.end = EndAction::Nothing;
        Ok(())
    }

    pub(super) fn file(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    /// Returns the directories with a new entry.
    pub(super) fn directories(&self) -> Vec<BorrowedFd<'_>> {
        self.made.parents().chain([self.directory.as_fd()]).collect()
    }

    pub(super) fn keep_directories(&mut self) {
        self.made.keep();
    }

    /// Marks the file for removal when it is dropped.
    pub(super) fn discard(&mut self) {
        self.end = EndAction::Remove;
    }

    fn rename(&self, existing: Existing) -> rustix::io::Result<()> {
        let (directory, from) = (self.directory.as_fd(), self.name.as_str());
        let to = self.target.names().next_back().expect("a path has a name");
        if existing == Existing::Replace {
            return fs::renameat(directory, from, directory, to);
        }
        match fs::renameat_with(directory, from, directory, to, RenameFlags::NOREPLACE) {
            // Some file systems do not support the flag; a hard link does not replace a file either.
            Err(Errno::INVAL | Errno::NOSYS) => {
                fs::linkat(directory, from, directory, to, AtFlags::empty())?;
                fs::unlinkat(directory, from, AtFlags::empty())
            }
            renamed => renamed,
        }
    }

    /// Records the file's metadata.
    fn record_stamp(&mut self) {
        self.stamp = FileStamp::of(&self.file).ok();
    }

    /// Marks the data as doubtful if the metadata have changed since this process wrote to the file.
    fn check_stamp(&mut self) {
        let now = FileStamp::of(&self.file).ok();
        if now != self.stamp {
            self.integrity = Integrity::Doubtful;
        }
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        let remove = match self.end {
            EndAction::Remove => true,
            EndAction::Keep => self.received == 0,
            EndAction::Nothing => return,
        };
        if remove {
            // A failure here cannot be reported.
            let _ = fs::unlinkat(&self.directory, self.name.as_str(), AtFlags::empty());
            self.quota.refund(cost(self.received));
            return;
        }
        // A partial file stays at the place for which it was offered. It includes a hole at its end, but not the rest of
        // a failed write.
        self.made.keep();
        self.check_stamp();
        if self.integrity == Integrity::Trusted
            && self.file.set_len(self.received).is_ok()
            && let Ok(stamp) = FileStamp::of(&self.file)
        {
            hashing::PARTIAL_HASHES.insert(stamp, self.hasher.clone());
        }
    }
}

/// Appends `data`, and skips zero blocks, so that holes are preserved.
fn write_around_holes(file: &mut File, data: &[u8]) -> io::Result<()> {
    let at = file.stream_position()?;
    let to_boundary = (at.next_multiple_of(HOLE_LEN as u64) - at) as usize;
    let (head, rest) = data.split_at(to_boundary.min(data.len()));
    file.write_all(head)?;
    let mut unwritten = rest;
    while !unwritten.is_empty() {
        let zeros = unwritten.chunks_exact(HOLE_LEN).take_while(|block| is_zero(block)).count() * HOLE_LEN;
        file.seek_relative(zeros as i64)?;
        unwritten = &unwritten[zeros..];
        let blocks = unwritten.chunks(HOLE_LEN).take_while(|block| block.len() < HOLE_LEN || !is_zero(block));
        let len = blocks.map(<[u8]>::len).sum();
        file.write_all(&unwritten[..len])?;
        unwritten = &unwritten[len..];
    }
    Ok(())
}

fn is_zero(block: &[u8]) -> bool {
    block.iter().all(|&byte| byte == 0)
}

/// Returns the name of a partial file, derived from path and content, so that parts of different content never collide.
pub(super) fn part_name(path: &RelativePath, offer: &Offer) -> String {
    let mut hasher = Hasher::new();
    if let Content::File { size, hash } = offer.content {
        hasher.update(&size.to_be_bytes()).update(hash.as_bytes());
    }
    let name: Hash = hasher.update(path.as_bytes()).finalize();
    format!("{PART_PREFIX}{}", &name.to_hex()[..32])
}

fn times(modified: Modified) -> Timestamps {
    let time = Timespec { tv_sec: modified.seconds, tv_nsec: modified.nanoseconds.into() };
    Timestamps { last_access: time, last_modification: time }
}
