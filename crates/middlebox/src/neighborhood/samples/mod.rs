//! Sources of the radio's channel times.

pub mod survey;

mod meter;
mod text;

pub(super) use meter::{ChannelMeter, Step};

use hopline_linux::Error;
use rustix::net::{RecvFlags, recv};
use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt, PermissionsExt};
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use survey::SurveySocket;

/// Source of the radio's channel times.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// The driver, by nl80211: `NL80211_CMD_GET_SURVEY`. It must count receive and transmit times too.
    Survey,
    /// The last complete line of a file, which may grow or be replaced: `time busy received transmitted` in milliseconds
    /// since an arbitrary but fixed moment, and the channel if there are several. Decimal numbers separated by blanks.
    File(PathBuf),
    /// A Unix socket, created here with access for its owner only. Each datagram carries such a line.
    Socket(PathBuf),
}

/// Counters of a radio, in milliseconds since an arbitrary moment. They may restart at any time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reading {
    /// Arbitrary identifier of the channel.
    pub channel: Option<u32>,
    /// Time on the channel.
    pub time_ms: u64,
    /// Time that the channel was busy.
    pub busy_ms: u64,
    /// Time spent receiving; only frames for this host, if the source distinguishes them.
    pub receiving_ms: u64,
    /// Time spent transmitting.
    pub transmitting_ms: u64,
}

/// Reason that there is no reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoReading {
    /// No data: the source is absent or does not answer.
    Nothing,
    /// The receive and transmit times are missing.
    Incomplete,
    /// The data are malformed.
    Malformed,
}

/// A source that has been opened.
#[derive(Debug)]
pub(super) enum OpenSource {
    Survey(SurveySocket),
    File(PathBuf),
    Socket(SocketSource),
}

impl OpenSource {
    /// Opens the source for the interface with this index. A file need not exist yet.
    pub(super) fn new(source: &Source, interface: u32) -> Result<Self, Error> {
        Ok(match source {
            Source::Survey => Self::Survey(SurveySocket::open(interface)?),
            Source::File(path) => Self::File(path.clone()),
            Source::Socket(path) => Self::Socket(SocketSource::new(path)?),
        })
    }

    /// Returns the latest reading.
    pub(super) fn read(&mut self) -> Result<Reading, NoReading> {
        match self {
            Self::Survey(socket) => socket.read(),
            Self::File(path) => {
                last_line(path).map_err(|_| NoReading::Nothing).and_then(|end| text::last(&end))
            }
            Self::Socket(listening) => listening.read(),
        }
    }
}

/// A socket in the file system, removed when the value is dropped.
#[derive(Debug)]
pub(super) struct SocketSource {
    socket: UnixDatagram,
    path: PathBuf,
}

impl SocketSource {
    fn new(path: &Path) -> Result<Self, Error> {
        let making = |e: io::Error| Error::new(format!("making the socket {}", path.display()), e);
        // Remove the socket that another process has left; other files stay.
        if fs::symlink_metadata(path).is_ok_and(|there| there.file_type().is_socket()) {
            fs::remove_file(path).map_err(making)?;
        }
        let socket = UnixDatagram::bind(path).map_err(making)?;
        let listening = Self { socket, path: path.into() };
        fs::set_permissions(path, Permissions::from_mode(0o600)).map_err(making)?;
        Ok(listening)
    }

    /// Returns the latest reading received.
    fn read(&self) -> Result<Reading, NoReading> {
        let mut read = Err(NoReading::Nothing);
        let mut datagram = [0; text::MAX_LINE];
        // Bounded by the system's queue length, even if the sender continues to write.
        for _ in 0..MAX_QUEUED {
            let flags = RecvFlags::DONTWAIT | RecvFlags::TRUNC;
            let Ok((_, len)) = recv(&self.socket, &mut datagram[..], flags) else { break };
            read = datagram.get(..len).ok_or(NoReading::Malformed).and_then(text::line);
        }
        read
    }
}

/// Upper bound of `net.unix.max_dgram_qlen`, which is 10 or 512 by default.
const MAX_QUEUED: u32 = 512;

impl Drop for SocketSource {
    fn drop(&mut self) {
        // If the removal fails, the next process removes it.
        let _ = fs::remove_file(&self.path);
    }
}

/// Returns the end of a file, long enough for its last line. The file is opened anew each time, since it may have been
/// replaced.
fn last_line(path: &Path) -> io::Result<Vec<u8>> {
    // Opening a pipe without a writer would block this thread.
    let mut file: File = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path)?;
    let len = file.metadata()?.len();
    file.seek(SeekFrom::Start(len.saturating_sub(2 * text::MAX_LINE as u64)))?;
    let mut end = Vec::new();
    file.take(2 * text::MAX_LINE as u64).read_to_end(&mut end)?;
    Ok(end)
}

#[cfg(test)]
mod tests;
