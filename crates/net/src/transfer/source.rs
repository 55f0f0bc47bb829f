//! What is sent: a file, a directory with what is in it, or a stream.

use super::error::Error;
use super::frame::Modified;
use super::identity::SenderId;
use super::path::RelativePath;
use crate::printable::shown;
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
    /// What was left out.
    skipped: Vec<Skipped>,
    /// Bytes of all files.
    bytes: u64,
    /// By what the receiver knows it again; a stream cannot be sent again.
    pub(super) identity: Option<SenderId>,
}

/// Something in a directory that is not sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Skipped {
    /// Where it is.
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

/// One thing to offer.
#[derive(Debug)]
pub(super) struct Item {
    /// Where it goes.
    pub(super) path: RelativePath,
    pub(super) what: What,
}

pub(super) enum What {
    File(PathBuf),
    Directory,
    Stream(Box<dyn Read + Send>),
}

impl fmt::Debug for What {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(place) => f.debug_tuple("File").field(place).finish(),
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
    /// If `place` itself is a device, a pipe or a socket; if a name is one that receivers do not take; if a directory cannot
    /// be read. Nothing is left out in silence: what in a directory is neither file nor directory is listed by
    /// [`Source::skipped`].
    pub fn of_path(place: &Path, name: Option<&str>) -> Result<Self, Error> {
        let failed = |e| Error::files(format!("reading {}", shown(place)), e);
        // Who names a link means what it points to.
        let found = fs::metadata(place).map_err(failed)?;
        let name = match name {
            Some(name) => name.as_bytes().to_vec(),
            None => own_name(place).map_err(failed)?,
        };
        let path = sendable(place, RelativePath::parse(&name))?;
        let mut source = Self { identity: Some(SenderId::of(place, &name)), ..Self::default() };
        source.add(place, path, &found)?;
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

    fn add(&mut self, place: &Path, path: RelativePath, found: &Metadata) -> Result<(), Error> {
        if found.is_file() {
            self.bytes += found.len();
            self.items.push(Item { path, what: What::File(place.to_owned()) });
            return Ok(());
        }
        if !found.is_dir() {
            return Err(Error::Unsendable(format!("{} is {}", shown(place), special(found.file_type()))));
        }
        let failed = |e| Error::files(format!("reading {}", shown(place)), e);
        let mut names = fs::read_dir(place)
            .and_then(|entries| entries.map(|entry| Ok(entry?.file_name())).collect::<io::Result<Vec<_>>>())
            .map_err(failed)?;
        names.sort();
        self.items.push(Item { path: path.clone(), what: What::Directory });
        for name in names {
            let inner = place.join(&name);
            let found = fs::symlink_metadata(&inner)
                .map_err(|e| Error::files(format!("reading {}", shown(&inner)), e))?;
            if found.is_symlink() {
                self.skipped.push(Skipped { place: inner, what: "a symbolic link" });
            } else if !found.is_file() && !found.is_dir() {
                self.skipped.push(Skipped { place: inner, what: special(found.file_type()) });
            } else {
                let path = sendable(&inner, path.join(name.as_bytes()))?;
                self.add(&inner, path, &found)?;
            }
        }
        Ok(())
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
    path.map_err(|problem| {
        Error::Unsendable(format!("{:?} cannot be sent under that name: {problem}", place))
    })
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
