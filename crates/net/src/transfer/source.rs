//! What is sent: a file, a directory with what is in it, or a stream.

use super::error::{Error, reason_of};
use super::frame::Modified;
use super::identity::SenderId;
use super::path::RelativePath;
use super::reason::{Reason, Refusal};
use crate::printable::shown;
use std::collections::BTreeSet;
use std::fmt;
use std::fs::{self, File, FileType, Metadata, OpenOptions};
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// What a sender offers, in order: directories before what is in them, names sorted.
#[derive(Debug, Default)]
pub struct Source {
    pub(super) items: Vec<Item>,
    /// Entries that are neither file nor directory.
    skipped: Vec<Skipped>,
    /// Entries that cannot be sent.
    refused: Vec<Unsendable>,
    /// Bytes of all files.
    bytes: u64,
    /// By what the receiver knows it again; a stream cannot be sent again.
    pub(super) identity: Option<SenderId>,
}

/// Something in a directory that is not sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Skipped {
    /// Its path.
    pub place: PathBuf,
    /// What it is, in words.
    pub what: &'static str,
}

/// What is said of it.
impl fmt::Display for Skipped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is {}", shown(&self.place), self.what)
    }
}

/// Something in a directory that cannot be read, or has a name that receivers do not take. What is in it goes neither.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unsendable {
    /// Where it is.
    pub place: PathBuf,
    /// Reason.
    pub refusal: Refusal,
}

/// One thing to offer.
#[derive(Debug)]
pub(super) struct Item {
    /// Where it goes.
    pub(super) path: RelativePath,
    pub(super) what: What,
}

pub(super) enum What {
    /// A file and its size when it was listed, bytes.
    File(PathBuf, u64),
    Directory,
    Stream(Box<dyn Read + Send>),
}

impl fmt::Debug for What {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(place, size) => f.debug_tuple("File").field(place).field(size).finish(),
            Self::Directory => f.write_str("Directory"),
            Self::Stream(_) => f.write_str("Stream"),
        }
    }
}

impl Source {
    /// A file, or a directory with everything in it, under its own name or under `name`.
    ///
    /// # Errors
    ///
    /// If `place` itself is a device, a pipe or a socket, cannot be read, or has a name that receivers do not take. What cannot be
    /// sent of a directory does not keep the rest from being sent, and nothing is left out in silence: [`Source::skipped`] lists
    /// what is neither file nor directory, [`Source::refused`] the rest.
    pub fn of_path(place: &Path, name: Option<&str>) -> Result<Self, Error> {
        let failed = |e| Error::files(format!("reading {}", shown(place)), e);
        // Who names a link means what it points to.
        let found = fs::metadata(place).map_err(failed)?;
        let name = match name {
            Some(name) => name.as_bytes().to_vec(),
            None => own_name(place).map_err(failed)?,
        };
        let path = sendable(place, RelativePath::parse(&name))?;
        if !found.is_file() && !found.is_dir() {
            return Err(Error::Unsendable(format!("{} is {}", shown(place), special(found.file_type()))));
        }
        if found.is_dir() {
            fs::read_dir(place).map_err(failed)?;
        }
        let mut source = Self { identity: Some(SenderId::of(place, &name)), ..Self::default() };
        source.add(place, path, &found);
        Ok(source)
    }

    /// Whatever `reader` gives, as a file called `name`. A reader that gives `WouldBlock` after a moment lets
    /// [`Watch::interrupted`](super::Watch::interrupted) be asked, and the receiver be heard, while nothing comes.
    ///
    /// # Errors
    ///
    /// If receivers do not take the name.
    pub fn of_stream(reader: impl Read + Send + 'static, name: &str) -> Result<Self, Error> {
        let path = sendable(Path::new(name), RelativePath::parse(name.as_bytes()))?;
        Ok(Self { items: vec![Item { path, what: What::Stream(Box::new(reader)) }], ..Self::default() })
    }

    /// Symbolic links, pipes, sockets and devices that are not sent.
    #[must_use]
    pub fn skipped(&self) -> &[Skipped] {
        &self.skipped
    }

    /// Returns the entries that cannot be read, or whose names receivers do not take.
    #[must_use]
    pub fn refused(&self) -> &[Unsendable] {
        &self.refused
    }

    /// Leaves out what is at `settled` already. Returns the bytes of these files.
    pub fn leave_out(&mut self, settled: &BTreeSet<RelativePath>) -> u64 {
        let mut left_out = 0;
        self.items.retain(|item| {
            let stays = !settled.contains(&item.path);
            if let What::File(_, size) = item.what
                && !stays
            {
                left_out += size;
            }
            stays
        });
        left_out
    }

    /// Bytes of all files together; a stream has none.
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Whether a second conversation could send the same: no stream is in it.
    #[must_use]
    pub fn is_repeatable(&self) -> bool {
        !self.items.iter().any(|item| matches!(item.what, What::Stream(_)))
    }

    fn add(&mut self, place: &Path, path: RelativePath, found: &Metadata) {
        if found.is_file() {
            self.bytes += found.len();
            self.items.push(Item { path, what: What::File(place.to_owned(), found.len()) });
            return;
        }
        let names = fs::read_dir(place)
            .and_then(|entries| entries.map(|entry| Ok(entry?.file_name())).collect::<io::Result<Vec<_>>>());
        let mut names = match names {
            Ok(names) => names,
            Err(e) => return self.unreadable(place, &e),
        };
        names.sort();
        self.items.push(Item { path: path.clone(), what: What::Directory });
        for name in names {
            let inner = place.join(&name);
            match fs::symlink_metadata(&inner) {
                Err(e) => self.unreadable(&inner, &e),
                Ok(found) if found.is_symlink() => {
                    self.skipped.push(Skipped { place: inner, what: "a symbolic link" });
                }
                Ok(found) if !found.is_file() && !found.is_dir() => {
                    self.skipped.push(Skipped { place: inner, what: special(found.file_type()) });
                }
                Ok(found) => match path.join(name.as_bytes()) {
                    Ok(path) => self.add(&inner, path, &found),
                    Err(problem) => {
                        let refusal = Refusal::new(Reason::Path, unsendable(&inner, &problem));
                        self.refused.push(Unsendable { place: inner, refusal });
                    }
                },
            }
        }
    }

    fn unreadable(&mut self, place: &Path, error: &io::Error) {
        let refusal = Refusal::new(reason_of(error), format!("{}: cannot be read: {error}", shown(place)));
        self.refused.push(Unsendable { place: place.to_owned(), refusal });
    }
}

/// Opens a file that was found: what it has become since is not followed elsewhere and does not block.
pub(super) fn open(place: &Path) -> io::Result<(File, Metadata)> {
    // The place itself may be a link that the user named; what is not a file any more is refused below.
    let file = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY).open(place)?;
    let found = file.metadata()?;
    if found.is_file() { Ok((file, found)) } else { Err(io::Error::other("it is no file any more")) }
}

pub(super) fn modified(found: &Metadata) -> Modified {
    Modified { seconds: found.mtime(), nanoseconds: u32::try_from(found.mtime_nsec()).unwrap_or(0) }
}

/// The last name of the path, also of `.` and `..`.
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
