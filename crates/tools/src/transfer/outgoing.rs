//! Files that are being sent.

use super::error::Error;
use super::frame::{Content, Modified};
use super::hashing::{self, FileStamp, hash_into};
use super::source;
use blake3::{Hash, Hasher};
use std::fmt;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Bytes of a file in a frame: the header of 12 bytes adds less than 0.1 %, and an interruption loses no more than this.
pub const CHUNK: usize = 16 << 10;

/// An open file or stream with its position.
pub(super) struct Outgoing {
    content: OutgoingContent,
    /// Hash of the bytes that the receiver has or that were sent.
    hasher: Hasher,
}

enum OutgoingContent {
    File { file: File, size: u64, hash: Hash, modified: Modified, left: u64 },
    Stream(Box<dyn Read + Send>),
}

/// Next piece of a file.
pub(super) enum Piece {
    Data(Vec<u8>),
    End(Hash),
    /// The stream has no data at present.
    Pending,
    /// It cannot be sent completely, for this reason.
    Broken(String),
}

impl fmt::Debug for Outgoing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.content {
            OutgoingContent::File { size, left, .. } => write!(f, "File({left} of {size} bytes left)"),
            OutgoingContent::Stream(_) => f.write_str("Stream"),
        }
    }
}

impl Outgoing {
    pub(super) fn stream(reader: Box<dyn Read + Send>) -> Self {
        Self { content: OutgoingContent::Stream(reader), hasher: Hasher::new() }
    }

    /// Opens a file and reads it once for its hash. Also returns its mode and modification time.
    pub(super) fn open(place: &Path) -> io::Result<(Self, Content, u16, Modified)> {
        let (mut file, found) = source::open(place)?;
        let size = found.len();
        let hash = hash_of(&mut file, size)?;
        if size == 0 && file.read(&mut [0])? > 0 {
            return Err(io::Error::other(
                "it says that it is empty, and is not; send what comes out of it with `-`",
            ));
        }
        let mode = (found.mode() & 0o777) as u16;
        let modified = source::modified(&found);
        let content = OutgoingContent::File { file, size, hash, modified, left: size };
        Ok((Self { content, hasher: Hasher::new() }, Content::File { size, hash }, mode, modified))
    }

    /// Returns whether it is a file, with known content.
    pub(super) const fn is_file(&self) -> bool {
        matches!(self.content, OutgoingContent::File { .. })
    }

    /// Returns the size in bytes of a file.
    pub(super) const fn size(&self) -> Option<u64> {
        match &self.content {
            OutgoingContent::File { size, .. } => Some(*size),
            OutgoingContent::Stream(_) => None,
        }
    }

    /// Returns the bytes left to send, as far as known.
    pub(super) const fn remaining(&self) -> u64 {
        match &self.content {
            OutgoingContent::File { left, .. } => *left,
            OutgoingContent::Stream(_) => u64::MAX,
        }
    }

    /// Continues after `offset` bytes if these have the hash `prefix`, otherwise at the beginning. Returns the position.
    /// The inner error is that of reading the file.
    ///
    /// # Errors
    /// The receiver cannot have these bytes.
    pub(super) fn resume_from(&mut self, offset: u64, prefix: Hash) -> Result<io::Result<u64>, Error> {
        match &mut self.content {
            OutgoingContent::File { size, .. } if offset > *size => {
                Err(Error::Protocol("it accepted more than was offered".into()))
            }
            OutgoingContent::Stream(_) if offset > 0 => {
                Err(Error::Protocol("it has the beginning of what it cannot know".into()))
            }
            OutgoingContent::Stream(_) => Ok(Ok(0)),
            OutgoingContent::File { file, size, left, .. } => {
                let at = seek(file, &mut self.hasher, offset, prefix);
                *left = *size - at.as_ref().copied().unwrap_or(0);
                Ok(at)
            }
        }
    }

    /// Reads the next piece.
    ///
    /// # Errors
    /// A stream cannot be read.
    pub(super) fn next(&mut self) -> io::Result<Piece> {
        let mut data = Vec::with_capacity(CHUNK);
        let read = match &mut self.content {
            OutgoingContent::File { file, left, .. } => {
                file.take((*left).min(CHUNK as u64)).read_to_end(&mut data)
            }
            // Send what is available: the time of further data is unknown.
            OutgoingContent::Stream(reader) => read_some(reader, &mut data),
        };
        match (read, &mut self.content) {
            (Err(e), OutgoingContent::Stream(_)) if e.kind() == io::ErrorKind::WouldBlock => {
                return Ok(Piece::Pending);
            }
            (Err(e), OutgoingContent::Stream(_)) => return Err(e),
            (Err(e), OutgoingContent::File { .. }) => {
                return Ok(Piece::Broken(format!("it cannot be read: {e}")));
            }
            (Ok(0), OutgoingContent::File { file, size, hash, modified, left })
                if *left > 0 || *hash != self.hasher.finalize() || has_changed(file, *size, *modified) =>
            {
                // A program that has mapped the file changes it without an immediate change of its times.
                if let Ok(stamp) = FileStamp::of(file) {
                    hashing::FILE_HASHES.remove(&stamp);
                }
                return Ok(Piece::Broken("it changed while it was being sent".into()));
            }
            (Ok(0), _) => return Ok(Piece::End(self.hasher.finalize())),
            (Ok(read), OutgoingContent::File { left, .. }) => *left -= read as u64,
            (Ok(_), OutgoingContent::Stream(_)) => {}
        }
        self.hasher.update(&data);
        Ok(Piece::Data(data))
    }
}

/// Returns the hash of the first `size` bytes, from the cache if possible.
fn hash_of(file: &mut File, size: u64) -> io::Result<Hash> {
    let before = (FileStamp::of(file)?, hashing::time_of_day());
    if before.0.size == size
        && let Some(known) = hashing::FILE_HASHES.get(&before.0)
    {
        return Ok(known);
    }
    let mut hasher = Hasher::new();
    if hash_into(&mut hasher, file, size)? < size {
        return Err(io::Error::other("it became shorter while it was being read"));
    }
    let hash = hasher.finalize();
    hashing::FILE_HASHES.insert_if_unchanged(before, file, hash);
    Ok(hash)
}

/// Returns whether the file has changed since it was offered, before or behind the current position.
fn has_changed(file: &File, size: u64, modified: Modified) -> bool {
    !file.metadata().is_ok_and(|now| now.len() == size && source::modified(&now) == modified)
}

/// Sets `file` and `hasher` to the position at which the data continue: after `offset` bytes if these have the hash
/// `prefix`, otherwise at the beginning.
fn seek(file: &mut File, hasher: &mut Hasher, offset: u64, prefix: Hash) -> io::Result<u64> {
    file.rewind()?;
    hash_into(hasher, file, offset)?;
    if hasher.finalize() == prefix {
        return Ok(offset);
    }
    *hasher = Hasher::new();
    file.seek(SeekFrom::Start(0))
}

/// Appends the result of one call of `read`, at most [`CHUNK`] bytes; 0 at the end.
fn read_some(reader: &mut impl Read, data: &mut Vec<u8>) -> io::Result<usize> {
    data.resize(CHUNK, 0);
    loop {
        match reader.read(data) {
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            read => {
                data.truncate(*read.as_ref().unwrap_or(&0));
                return read;
            }
        }
    }
}
