//! Complete files and directories that are to be written to the disk.
//!
//! Waiting for the disk takes ten milliseconds or more for each file. The disk serves several concurrent requests
//! together.

use super::Observer;
use super::created_directories::CreatedDirectories;
use super::file_failure::FileFailure;
use super::frame::{Number, Offer};
use super::part::Part;
use super::path::RelativePath;
use super::permissions::{Existing, Origin};
use super::reason::Reason;
use blake3::Hash;
use rustix::fs;
use std::collections::BTreeMap;
use std::os::fd::BorrowedFd;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

/// Maximum number of concurrent waits for the disk.
const MAX_CONCURRENT: usize = 16;

/// Interval at which a conversation that waits for the disk reports so.
const POLL_INTERVAL: Duration = Duration::from_millis(200);

/// Maximum number of files and directories in a batch: each has up to three descriptors.
const MAX_ENTRIES: usize = 32;

/// Complete files and directories that may not be on the disk yet.
#[derive(Debug, Default)]
pub(super) struct Batch(Vec<Entry>);

#[derive(Debug)]
pub(super) struct Entry {
    pub(super) number: Number,
    pub(super) path: RelativePath,
    pub(super) content: Complete,
}

#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "nearly all are files")]
pub(super) enum Complete {
    File { part: Part, offer: Offer, hash: Hash },
    Directory(CreatedDirectories),
}

/// Rules for files that are moved to their places.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rules {
    pub(super) existing: Existing,
    pub(super) origin: Origin,
}

impl Batch {
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns whether a [`commit`](Self::commit) is due.
    pub(super) fn is_full(&self) -> bool {
        self.0.len() >= MAX_ENTRIES
    }

    pub(super) fn push(&mut self, entry: Entry) {
        self.0.push(entry);
    }

    /// Moves everything to its place, durably. Returns the results in order.
    pub(super) fn commit(
        &mut self,
        rules: Rules,
        watch: &mut dyn Observer,
    ) -> Vec<(Entry, Result<(), FileFailure>)> {
        let mut entries: Vec<_> = std::mem::take(&mut self.0)
            .into_iter()
            .map(|mut entry| {
                let prepared = entry.prepare(rules.origin);
                (entry, prepared)
            })
            .collect();
        sync(&mut entries, Entry::files, watch);
        for (entry, so_far) in &mut entries {
            if so_far.is_ok() {
                *so_far = entry.move_into_place(rules.existing);
            }
        }
        sync(&mut entries, Entry::directories, watch);
        for (entry, settled) in &mut entries {
            entry.record_outcome(settled);
        }
        entries
    }
}

impl Entry {
    fn prepare(&mut self, origin: Origin) -> Result<(), FileFailure> {
        let Complete::File { part, offer, hash } = &mut self.content else { return Ok(()) };
        if !part.matches(*hash)? {
            part.discard();
            let text =
                format!("{}: another program wrote to it while it arrived; it was thrown away", self.path);
            return Err(FileFailure::refused(Reason::Checksum, text));
        }
        part.prepare(offer, origin)
    }

    /// Returns the files that must be on the disk before they are moved to their places.
    fn files(&self) -> Vec<BorrowedFd<'_>> {
        match &self.content {
            Complete::File { part, .. } => vec![part.file()],
            Complete::Directory(_) => Vec::new(),
        }
    }

    fn move_into_place(&mut self, existing: Existing) -> Result<(), FileFailure> {
        match &mut self.content {
            Complete::File { part, .. } => part.move_into_place(existing),
            Complete::Directory(_) => Ok(()),
        }
    }

    /// Returns the directories with a new entry.
    fn directories(&self) -> Vec<BorrowedFd<'_>> {
        match &self.content {
            Complete::File { part, .. } => part.directories(),
            Complete::Directory(made) => made.parents().collect(),
        }
    }

    fn record_outcome(&mut self, settled: &Result<(), FileFailure>) {
        if settled.is_ok() {
            match &mut self.content {
                Complete::File { part, .. } => part.keep_directories(),
                Complete::Directory(made) => made.keep(),
            }
        }
    }
}

/// Syncs the descriptors that `of` returns for each entry without an error; duplicates are synced once.
fn sync(
    entries: &mut [(Entry, Result<(), FileFailure>)],
    of: impl for<'a> Fn(&'a Entry) -> Vec<BorrowedFd<'a>>,
    watch: &mut dyn Observer,
) {
    let mut wanted: Vec<BorrowedFd<'_>> = Vec::new();
    let mut seen = BTreeMap::new();
    // For each entry, indices into `wanted`.
    let mut places: Vec<Vec<usize>> = Vec::new();
    for (entry, so_far) in entries.iter() {
        let fds = if so_far.is_ok() { of(entry) } else { Vec::new() };
        places.push(
            fds.into_iter()
                .map(|fd| {
                    let id = fs::fstat(fd).map(|found| (found.st_dev, found.st_ino)).ok();
                    let next = wanted.len();
                    let place = id.map_or(next, |id| *seen.entry(id).or_insert(next));
                    if place == next {
                        wanted.push(fd);
                    }
                    place
                })
                .collect(),
        );
    }
    let synced = sync_all(&wanted, watch);
    for ((entry, so_far), places) in entries.iter_mut().zip(places) {
        if let Some(errno) = places.into_iter().find_map(|place| synced[place].err()) {
            *so_far = Err(FileFailure::of(format!("storing {}", entry.path), errno));
        }
    }
}

/// Syncs files on concurrent threads. Meanwhile `watch` reports progress.
fn sync_all(files: &[BorrowedFd<'_>], watch: &mut dyn Observer) -> Vec<rustix::io::Result<()>> {
    let each = files.len().div_ceil(MAX_CONCURRENT).max(1);
    let mut done = vec![None; files.len()];
    thread::scope(|scope| {
        let (give, synced) = mpsc::channel();
        for (number, chunk) in files.chunks(each).enumerate() {
            let give = give.clone();
            let wait = move || {
                for (at, file) in chunk.iter().enumerate() {
                    // The receiver waits until all results have been sent.
                    let _ = give.send((number * each + at, fs::fsync(file)));
                }
            };
            // Without a thread, the files are synced below.
            let _ = thread::Builder::new().name("disk".into()).spawn_scoped(scope, wait);
        }
        drop(give);
        loop {
            match synced.recv_timeout(POLL_INTERVAL) {
                Ok((at, result)) => done[at] = Some(result),
                Err(RecvTimeoutError::Disconnected) => return,
                // A sync in progress is completed, whatever the state of the sender.
                Err(RecvTimeoutError::Timeout) => drop(watch.working()),
            }
        }
    });
    done.into_iter().zip(files).map(|(done, file)| done.unwrap_or_else(|| fs::fsync(file))).collect()
}
