//! Source of a transfer: a file, a directory with its content, or a stream.

use super::error::{Error, reason_of};
use super::frame::Modified;
use super::identity::SenderId;
use super::path::RelativePath;
use super::reason::{Reason, Refusal};
use crate::printable::printable_path;
use std::collections::BTreeSet;
use std::fmt;
use std::fs::{self, File, FileType, Metadata, OpenOptions};
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Items that a sender offers, in order: directories before their content, names sorted.
#[derive(Debug, Default)]
pub struct Source {
    pub(super) items: Vec<Item>,
    /// Entries that are neither file nor directory.
    skipped: Vec<Skipped>,
    /// Entries that cannot be sent.
    refused: Vec<Unsendable>,
    /// Bytes of all files.
    bytes: u64,
    /// Identifier by which the receiver recognises the sender; `None` for a stream, which cannot be sent again.
    pub(super) identity: Option<SenderId>,
}

/// An entry of a directory that is not sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Skipped {
    /// Path of the entry.
    pub path: PathBuf,
    /// Kind of the entry, as text.
    pub kind: &'static str,
}

/// Prints path and kind.
impl fmt::Display for Skipped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is {}", printable_path(&self.path), self.kind)
    }
}

/// An entry of a directory that cannot be read, or has an unacceptable name. Its content is not sent either.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unsendable {
    /// Path of the entry.
    pub path: PathBuf,
    /// Reason.
    pub refusal: Refusal,
}

/// An item to offer.
#[derive(Debug)]
pub(super) struct Item {
    /// Destination path.
    pub(super) path: RelativePath,
    pub(super) content: ItemContent,
}

pub(super) enum ItemContent {
    /// A file, and its size in bytes when it was listed.
    File(PathBuf, u64),
    Directory,
    Stream(Box<dyn Read + Send>),
}

impl fmt::Debug for ItemContent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(place, size) => f.debug_tuple("File").field(place).field(size).finish(),
            Self::Directory => f.write_str("Directory"),
            Self::Stream(_) => f.write_str("Stream"),
        }
    }
}

impl Source {
    /// Returns the source for a file, or a directory with all its content, under its own name or under `name`.
    ///
    /// # Errors
    ///
    /// If `place` itself is a device, a pipe or a socket, cannot be read, or has an unacceptable name. Entries of a
    /// directory that cannot be sent do not affect the rest, and nothing is skipped silently: [`Source::skipped`] lists
    /// entries that are neither file nor directory, [`Source::refused`] the rest.
    pub fn of_path(place: &Path, name: Option<&str>) -> Result<Self, Error> {
        let failed = |e| Error::files(format!("reading {}", printable_path(place)), e);
        // A link named by the user stands for its target.
        let found = fs::metadata(place).map_err(failed)?;
        let name = match name {
            Some(name) => name.as_bytes().to_vec(),
            None => own_name(place).map_err(failed)?,
        };
        let path = sendable(place, RelativePath::parse(&name))?;
        if !found.is_file() && !found.is_dir() {
            return Err(Error::Unsendable(format!(
                "{} is {}",
                printable_path(place),
                special(found.file_type())
            )));
        }
        if found.is_dir() {
            fs::read_dir(place).map_err(failed)?;
        }
        let mut source = Self { identity: Some(SenderId::of(place, &name)), ..Self::default() };
        source.add(place, path, &found);
        Ok(source)
    }

    /// Returns the source for a stream, as a file called `name`. If `reader` returns `WouldBlock` after a moment without
    /// data, [`Observer::interrupted`](super::Observer::interrupted) is checked and replies are processed meanwhile.
    ///
    /// # Errors
    ///
    /// If the name is unacceptable.
    pub fn of_stream(reader: impl Read + Send + 'static, name: &str) -> Result<Self, Error> {
        let path = sendable(Path::new(name), RelativePath::parse(name.as_bytes()))?;
        Ok(Self {
            items: vec![Item { path, content: ItemContent::Stream(Box::new(reader)) }],
            ..Self::default()
        })
    }

    /// Returns the symbolic links, pipes, sockets and devices that are not sent.
    #[must_use]
    pub fn skipped(&self) -> &[Skipped] {
        &self.skipped
    }

    /// Returns the entries that cannot be read or have unacceptable names.
    #[must_use]
    pub fn refused(&self) -> &[Unsendable] {
        &self.refused
    }

    /// Removes the files at the paths `settled`. Returns their bytes.
    pub fn remove_settled(&mut self, settled: &BTreeSet<RelativePath>) -> u64 {
        let mut left_out = 0;
        self.items.retain(|item| {
            let stays = !settled.contains(&item.path);
            if let ItemContent::File(_, size) = item.content
                && !stays
            {
                left_out += size;
            }
            stays
        });
        left_out
    }

    /// Returns the bytes of all files; 0 for a stream.
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns whether a second conversation could send the same: the source has no stream.
    #[must_use]
    pub fn is_repeatable(&self) -> bool {
        !self.items.iter().any(|item| matches!(item.content, ItemContent::Stream(_)))
    }

    fn add(&mut self, place: &Path, path: RelativePath, found: &Metadata) {
        if found.is_file() {
            self.bytes += found.len();
            self.items.push(Item { path, content: ItemContent::File(place.to_owned(), found.len()) });
            return;
        }
        let names = fs::read_dir(place)
            .and_then(|entries| entries.map(|entry| Ok(entry?.file_name())).collect::<io::Result<Vec<_>>>());
        let mut names = match names {
            Ok(names) => names,
            Err(e) => return self.unreadable(place, &e),
        };
        names.sort();
        self.items.push(Item { path: path.clone(), content: ItemContent::Directory });
        for name in names {
            let inner = place.join(&name);
            match fs::symlink_metadata(&inner) {
                Err(e) => self.unreadable(&inner, &e),
                Ok(found) if found.is_symlink() => {
                    self.skipped.push(Skipped { path: inner, kind: "a symbolic link" });
                }
                Ok(found) if !found.is_file() && !found.is_dir() => {
                    self.skipped.push(Skipped { path: inner, kind: special(found.file_type()) });
                }
                Ok(found) => match path.join(name.as_bytes()) {
                    Ok(path) => self.add(&inner, path, &found),
                    Err(problem) => {
                        let refusal = Refusal::new(Reason::Path, unsendable(&inner, &problem));
                        self.refused.push(Unsendable { path: inner, refusal });
                    }
                },
            }
        }
    }

    fn unreadable(&mut self, place: &Path, error: &io::Error) {
        let refusal =
            Refusal::new(reason_of(error), format!("{}: cannot be read: {error}", printable_path(place)));
        self.refused.push(Unsendable { path: place.to_owned(), refusal });
    }
}

/// Opens a listed file without following a link that replaced it, and without blocking.
pub(super) fn open(place: &Path) -> io::Result<(File, Metadata)> {
    // The path may be a link that the user named; anything but a file is rejected below.
    let file = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY).open(place)?;
    let found = file.metadata()?;
    if found.is_file() { Ok((file, found)) } else { Err(io::Error::other("it is no file any more")) }
}

pub(super) fn modified(found: &Metadata) -> Modified {
    Modified { seconds: found.mtime(), nanoseconds: u32::try_from(found.mtime_nsec()).unwrap_or(0) }
}

/// Returns the last name of the path, also for `.` and `..`.
fn own_name(place: &Path) -> io::Result<Vec<u8>> {
    if let Some(name) = place.file_name() {
        return Ok(name.as_bytes().to_vec());
    }
    let whole = fs::canonicalize(place)?;
    let name = whole
        .file_name()
        .ok_or_else(|| io::Error::other("the root directory has no name to send it under"))?;
    Ok(name.as_bytes().to_vec())
}

fn sendable<E: fmt::Display>(place: &Path, path: Result<RelativePath, E>) -> Result<RelativePath, Error> {
    path.map_err(|problem| Error::Unsendable(unsendable(place, &problem)))
}

fn unsendable(place: &Path, problem: &impl fmt::Display) -> String {
    format!("{place:?} cannot be sent under that name: {problem}")
}

fn special(kind: FileType) -> &'static str {
    if kind.is_fifo() {
        "a pipe: send what comes out of it with `-`"
    } else if kind.is_socket() {
        "a socket, and no file"
    } else {
        "a device, and no file"
    }
}
