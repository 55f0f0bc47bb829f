//! Reader of frames from a byte stream.

use super::error::Error;
use super::frame::{Frame, HEADER, MAX_DATA};
use std::io::{self, ErrorKind, Read};

/// Maximum buffer size: two frames of maximum length.
const MAX_BUFFER: usize = 2 * (HEADER + MAX_DATA);
/// Initial buffer size, enough for a peer that has sent little.
const INITIAL_BUFFER: usize = 256;
/// Maximum bytes that a receiver still reads after it gave up, so that its last frame is not lost in a connection reset.
const MAX_DRAIN: usize = 64 << 20;

/// Check whether to continue, made between frames and whenever no data arrive.
pub(super) type ShouldContinue<'a> = &'a dyn Fn() -> Result<(), Error>;

/// Reader of frames; buffers at most one frame and the bytes read with it.
#[derive(Debug)]
pub(super) struct Frames<R> {
    reader: R,
    /// Buffer; the range from `start` to `end` has been read.
    buffer: Vec<u8>,
    start: usize,
    end: usize,
}

/// A connected peer that may not have sent anything yet.
#[derive(Debug)]
pub struct PendingPeer<R> {
    pub(super) frames: Frames<R>,
    pub(super) first: Option<Frame>,
}

impl<R: Read> PendingPeer<R> {
    /// Creates a caller of which nothing has been read.
    pub fn new(reader: R) -> Self {
        Self { frames: Frames::new(reader), first: None }
    }

    /// Reads available data of a non-blocking reader. Returns whether the hello has arrived, so that the conversation can
    /// start.
    ///
    /// # Errors
    ///
    /// The peer has closed the connection, or sent an invalid frame.
    pub fn read_hello(&mut self) -> Result<bool, Error> {
        while self.first.is_none() {
            match self.frames.decode()? {
                Some(hello @ Frame::Hello { .. }) => self.first = Some(hello),
                Some(other) => return Err(super::unexpected_frame(&other)),
                None => match self.frames.read() {
                    Err(e) if e.kind() == ErrorKind::WouldBlock => return Ok(false),
                    Err(e) if e.kind() == ErrorKind::Interrupted => {}
                    Ok(0) => return Err(Error::Closed),
                    read => {
                        read.map_err(Error::Connection)?;
                    }
                },
            }
        }
        Ok(true)
    }

    /// Returns the reader.
    pub fn reader(&self) -> &R {
        &self.frames.reader
    }
}

impl<R: Read> From<R> for PendingPeer<R> {
    fn from(reader: R) -> Self {
        Self::new(reader)
    }
}

impl<R: Read> Frames<R> {
    pub(super) fn new(reader: R) -> Self {
        Self { reader, buffer: vec![0; INITIAL_BUFFER], start: 0, end: 0 }
    }

    pub(super) fn next(&mut self, go_on: ShouldContinue<'_>) -> Result<Frame, Error> {
        loop {
            go_on()?;
            if let Some(frame) = self.decode()? {
                return Ok(frame);
            }
            match self.read() {
                Ok(0) => return Err(Error::Closed),
                Ok(_) => {}
                Err(e) if is_transient(&e) => {}
                Err(e) => return Err(Error::Connection(e)),
            }
        }
    }

    /// Decodes a frame from the buffer.
    pub(super) fn decode(&mut self) -> Result<Option<Frame>, Error> {
        let Some((frame, len)) = Frame::decode(&self.buffer[self.start..self.end])? else { return Ok(None) };
        self.start += len;
        Ok(Some(frame))
    }

    fn read(&mut self) -> io::Result<usize> {
        if self.start > 0 {
            self.buffer.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
        }
        if self.end == self.buffer.len() {
            // A frame is at most half as long, so that there is always room.
            self.buffer.resize(MAX_BUFFER, 0);
        }
        let read = self.reader.read(&mut self.buffer[self.end..])?;
        self.end += read;
        Ok(read)
    }

    /// Reads and discards data until the peer has closed the connection.
    pub(super) fn drain(&mut self, go_on: ShouldContinue<'_>) {
        let mut left = MAX_DRAIN;
        while left > 0 && go_on().is_ok() {
            match self.reader.read(&mut self.buffer) {
                Ok(0) => return,
                Ok(read) => left = left.saturating_sub(read),
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                // Do not wait for a silent peer.
                Err(_) => return,
            }
        }
    }
}

/// Returns whether reading or writing may succeed later. `TimedOut` does not count, since the connection has ended then:
/// a call that reaches its own time limit returns `WouldBlock`.
pub(super) fn is_transient(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::Interrupted | ErrorKind::WouldBlock)
}
