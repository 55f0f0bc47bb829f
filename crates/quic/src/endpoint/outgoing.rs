//! Data of the user that a stream has not taken yet.

use crate::controllers::Backlog;
use crate::stream_data::{CHUNK_BYTES, StreamData};
use quinn_proto::{Connection, Dir, StreamId};
use std::collections::VecDeque;
use std::ops::Range;

/// Stream of one end, and the data that are to go into it.
#[derive(Debug)]
pub(super) struct Outgoing<P> {
    pending: VecDeque<P>,
    stream: StreamState,
    /// The user has closed.
    is_closed: bool,
    /// The stream takes no more for now.
    is_blocked: bool,
    /// Bytes that the stream has taken.
    written: u64,
    /// End of what was sent at least once.
    sent: u64,
}

/// State of the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StreamState {
    /// The handshake is not complete.
    Waiting,
    /// It can be opened.
    Ready,
    /// It is open.
    Open(StreamId),
    /// All data and its end are written.
    Finished,
    /// All of it is acknowledged.
    Acknowledged,
}

impl<P> Default for Outgoing<P> {
    fn default() -> Self {
        Self {
            pending: VecDeque::new(),
            stream: StreamState::Waiting,
            is_closed: false,
            is_blocked: false,
            written: 0,
            sent: 0,
        }
    }
}

impl<P: StreamData> Outgoing<P> {
    pub(super) fn push(&mut self, data: P) {
        if !data.is_empty() {
            self.pending.push_back(data);
        }
    }

    pub(super) const fn close(&mut self) {
        self.is_closed = true;
    }

    pub(super) const fn open(&mut self) {
        self.stream = StreamState::Ready;
    }

    pub(super) const fn unblock(&mut self) {
        self.is_blocked = false;
    }

    pub(super) const fn acknowledge(&mut self) {
        self.stream = StreamState::Acknowledged;
    }

    pub(super) fn is_acknowledged(&self) -> bool {
        self.stream == StreamState::Acknowledged
    }

    /// Returns the bytes known to be acknowledged: all or none.
    pub(super) fn acknowledged(&self) -> u64 {
        if self.is_acknowledged() { self.written } else { 0 }
    }

    /// Records that a range was sent. Returns whether a part of it was sent before.
    pub(super) fn is_retransmission(&mut self, range: &Range<u64>) -> bool {
        let is_old = range.start < self.sent;
        self.sent = self.sent.max(range.end);
        is_old
    }

    /// Returns whether some data were never sent.
    pub(super) fn backlog(&self) -> Backlog {
        match self.pending.is_empty() && self.sent >= self.written {
            true => Backlog::Empty,
            false => Backlog::Waiting,
        }
    }

    /// Writes as much as the stream takes, and its end behind all data.
    pub(super) fn write(&mut self, connection: &mut Connection) {
        if self.is_blocked || self.pending.is_empty() && !self.is_closed {
            return;
        }
        if self.stream == StreamState::Ready
            && let Some(id) = connection.streams().open(Dir::Uni)
        {
            self.stream = StreamState::Open(id);
        }
        let StreamState::Open(id) = self.stream else { return };
        let mut stream = connection.send_stream(id);
        while let Some(first) = self.pending.front_mut() {
            let length = first.len();
            let chunk = first.slice(0..length.min(CHUNK_BYTES)).to_bytes();
            let Ok(written) = stream.write_chunks(&mut [chunk]) else {
                self.is_blocked = true;
                return;
            };
            self.written += written.bytes as u64;
            if written.bytes as u64 == length {
                self.pending.pop_front();
            } else {
                *first = first.slice(written.bytes as u64..length);
            }
        }
        if self.is_closed && stream.finish().is_ok() {
            self.stream = StreamState::Finished;
        }
    }
}
