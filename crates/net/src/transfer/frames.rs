//! Frames out of a stream of bytes.

use super::error::Error;
use super::frame::{Frame, HEADER, MAX_DATA};
use std::io::{self, ErrorKind, Read};

/// Two of the longest frames.
const MOST: usize = 2 * (HEADER + MAX_DATA);
/// Enough for whoever has not said much yet.
const LEAST: usize = 256;
/// What a receiver that gave up still reads, so that its last words are not lost in a reset connection; in bytes.
const LAST_WORDS: usize = 64 << 20;

/// Whether to go on; asked between frames, and whenever nothing comes.
pub(super) type GoOn<'a> = &'a dyn Fn() -> Result<(), Error>;

/// Frames out of a stream; holds at most one frame and what was read with it.
#[derive(Debug)]
pub(super) struct Frames<R> {
    reader: R,
    /// What was read, from `start` to `end`.
    buffer: Vec<u8>,
    start: usize,
    end: usize,
}

/// One who has called and may not have said anything yet.
#[derive(Debug)]
pub struct Caller<R> {
    pub(super) frames: Frames<R>,
    pub(super) first: Option<Frame>,
}

impl<R: Read> Caller<R> {
    /// Nothing is read yet.
    pub fn new(reader: R) -> Self {
        Self { frames: Frames::new(reader), first: None }
    }

    /// Reads what has come of a reader that does not wait. Whether the caller has said hello, so that the conversation can
    /// begin.
    ///
    /// # Errors
    ///
    /// It has gone, or says something else.
    pub fn poll(&mut self) -> Result<bool, Error> {
        while self.first.is_none() {
            match self.frames.decode()? {
                Some(hello @ Frame::Hello { .. }) => self.first = Some(hello),
                Some(other) => return Err(super::out_of_turn(&other)),
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

    /// What is read from.
    pub fn reader(&self) -> &R {
        &self.frames.reader
    }
}

impl<R: Read> From<R> for Caller<R> {
    fn from(reader: R) -> Self {
        Self::new(reader)
    }
}

impl<R: Read> Frames<R> {
    pub(super) fn new(reader: R) -> Self {
        Self { reader, buffer: vec![0; LEAST], start: 0, end: 0 }
    }

    pub(super) fn next(&mut self, go_on: GoOn<'_>) -> Result<Frame, Error> {
        loop {
            go_on()?;
            if let Some(frame) = self.decode()? {
                return Ok(frame);
            }
            match self.read() {
                Ok(0) => return Err(Error::Closed),
                Ok(_) => {}
                Err(e) if is_passing(&e) => {}
                Err(e) => return Err(Error::Connection(e)),
            }
        }
    }

    /// A frame of what was read already.
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
            // No frame is longer than half of this, so that there is always room.
            self.buffer.resize(MOST, 0);
        }
        let read = self.reader.read(&mut self.buffer[self.end..])?;
        self.end += read;
        Ok(read)
    }

    /// Reads on and forgets it, until the peer has closed.
    pub(super) fn drain(&mut self, go_on: GoOn<'_>) {
        let mut left = LAST_WORDS;
        while left > 0 && go_on().is_ok() {
            match self.reader.read(&mut self.buffer) {
                Ok(0) => return,
                Ok(read) => left = left.saturating_sub(read),
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                // A peer that says nothing more is not waited for.
                Err(_) => return,
            }
        }
    }
}

/// Whether reading or writing again may succeed. A connection that has timed out is over, and not one of these: calls with
/// a time limit say `WouldBlock`.
pub(super) fn is_passing(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::Interrupted | ErrorKind::WouldBlock)
}
