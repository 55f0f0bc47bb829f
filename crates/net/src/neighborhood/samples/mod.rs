//! Where the times of the radio come from.

pub mod survey;

mod meter;
mod text;

pub(super) use meter::{Meter, Step};

use crate::error::Error;
use rustix::net::{RecvFlags, recv};
use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt, PermissionsExt};
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use survey::SurveySocket;

/// Where the times of the radio come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// The driver, by nl80211: `NL80211_CMD_GET_SURVEY`. It must count what it receives and transmits, too.
    Survey,
    /// The last whole line of a file, which may grow or be replaced. `time busy received transmitted` in milliseconds, since any
    /// moment that stays the same, and the channel if there are several: decimal numbers with blanks between them.
    File(PathBuf),
    /// A Unix socket, made here, readable and writable for its owner alone, to which each datagram brings such a line.
    Socket(PathBuf),
}

/// Counters of a radio, in milliseconds, since any moment. They may begin anew at any time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reading {
    /// Which channel they are of, by any number.
    pub channel: Option<u32>,
    /// How long it was on the channel.
    pub time_ms: u64,
    /// Of that, not idle.
    pub busy_ms: u64,
    /// Of that, receiving, what is for this host if it can tell.
    pub receiving_ms: u64,
    /// Of that, transmitting.
    pub transmitting_ms: u64,
}

/// Why there is no reading now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoReading {
    /// Nothing has come, or the source is not there, or does not answer.
    Nothing,
    /// It does not say how long the radio received and transmitted.
    Incomplete,
    /// It is none.
    Malformed,
}

/// A source that has been opened.
#[derive(Debug)]
pub(super) enum Opened {
    Survey(SurveySocket),
    File(PathBuf),
    Socket(Listening),
}

impl Opened {
    /// Opens the source of readings about the interface with this number. A file need not be there yet.
    pub(super) fn new(source: &Source, interface: u32) -> Result<Self, Error> {
        Ok(match source {
            Source::Survey => Self::Survey(SurveySocket::open(interface)?),
            Source::File(path) => Self::File(path.clone()),
            Source::Socket(path) => Self::Socket(Listening::new(path)?),
        })
    }

    /// The latest reading.
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

/// A socket in the file system, which goes with the value.
#[derive(Debug)]
pub(super) struct Listening {
    socket: UnixDatagram,
    path: PathBuf,
}

impl Listening {
    fn new(path: &Path) -> Result<Self, Error> {
        let making = |e: io::Error| Error::new(format!("making the socket {}", path.display()), e);
        // What another process has left there; anything but a socket stays.
        if fs::symlink_metadata(path).is_ok_and(|there| there.file_type().is_socket()) {
            fs::remove_file(path).map_err(making)?;
        }
        let socket = UnixDatagram::bind(path).map_err(making)?;
        let listening = Self { socket, path: path.into() };
        fs::set_permissions(path, Permissions::from_mode(0o600)).map_err(making)?;
        Ok(listening)
    }

    /// The latest of what has come.
    fn read(&self) -> Result<Reading, NoReading> {
        let mut read = Err(NoReading::Nothing);
        let mut datagram = [0; text::LONGEST];
        // No more than the system keeps for a socket, whoever goes on writing.
        for _ in 0..MOST_WAITING {
            let flags = RecvFlags::DONTWAIT | RecvFlags::TRUNC;
            let Ok((_, len)) = recv(&self.socket, &mut datagram[..], flags) else { break };
            read = datagram.get(..len).ok_or(NoReading::Malformed).and_then(text::line);
        }
        read
    }
}

/// `net.unix.max_dgram_qlen` is 10 or 512 where nobody has changed it.
const MOST_WAITING: u32 = 512;

impl Drop for Listening {
    fn drop(&mut self) {
        // Who cannot remove it any more leaves it: the next one does.
        let _ = fs::remove_file(&self.path);
    }
}

/// The end of a file, long enough for its last line. Opened anew each time, as it may have been replaced.
fn last_line(path: &Path) -> io::Result<Vec<u8>> {
    // A pipe without a writer would keep this thread.
    let mut file: File = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path)?;
    let len = file.metadata()?.len();
    file.seek(SeekFrom::Start(len.saturating_sub(2 * text::LONGEST as u64)))?;
    let mut end = Vec::new();
    file.take(2 * text::LONGEST as u64).read_to_end(&mut end)?;
    Ok(end)
}

#[cfg(test)]
mod tests;
