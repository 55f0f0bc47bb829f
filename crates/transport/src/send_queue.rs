//! Data accepted from the user and not yet acknowledged, sliceable at any position.

use crate::connection::SendError;
use hopline_core::Payload;
use std::collections::VecDeque;

/// Largest size of an unlimited queue: far below an overflow of positions.
const UNLIMITED: u64 = 1 << 62;

/// Chunks as the user passed them. A huge chunk of length-only payload costs nothing.
#[derive(Clone, Debug)]
pub(crate) struct SendQueue<P> {
    chunks: VecDeque<Chunk<P>>,
    /// First unacknowledged position.
    start: u64,
    /// Position after the last accepted byte.
    end: u64,
    /// Largest number of bytes held.
    limit: u64,
    /// `true` if data were refused for want of space.
    was_refused: bool,
}

#[derive(Clone, Debug)]
struct Chunk<P> {
    start: u64,
    data: P,
}

impl<P: Payload> SendQueue<P> {
    /// Creates an empty queue with the first byte at position `first`. `limit`: largest number of bytes held, if limited.
    pub(crate) fn new(first: u64, limit: Option<u64>) -> Self {
        let limit = limit.unwrap_or(UNLIMITED);
        Self { chunks: VecDeque::new(), start: first, end: first, limit, was_refused: false }
    }

    /// Returns the position after the last accepted byte.
    pub(crate) fn end(&self) -> u64 {
        self.end
    }

    /// Returns the number of bytes held.
    pub(crate) fn len(&self) -> u64 {
        self.end - self.start
    }

    /// Returns the number of bytes that would be accepted now.
    pub(crate) fn free(&self) -> u64 {
        self.limit.saturating_sub(self.len())
    }

    /// Accepts all of `data` or nothing.
    pub(crate) fn push(&mut self, data: P) -> Result<(), SendError> {
        let (len, free) = (data.len(), self.free());
        if len > free {
            self.was_refused = true;
            return Err(SendError::Full { free });
        }
        if len > 0 {
            self.chunks.push_back(Chunk { start: self.end, data });
            self.end += len;
        }
        Ok(())
    }

    /// Returns whether data were refused since the last call.
    pub(crate) fn take_refused(&mut self) -> bool {
        core::mem::take(&mut self.was_refused)
    }

    /// Removes the data below `position`, which are acknowledged. Returns the number of removed bytes.
    pub(crate) fn advance(&mut self, position: u64) -> u64 {
        let before = self.start;
        self.start = position.clamp(self.start, self.end);
        while let Some(front) = self.chunks.front() {
            if front.start + front.data.len() > self.start {
                break;
            }
            self.chunks.pop_front();
        }
        self.start - before
    }

    /// Returns the `len` bytes from `position`, which have to be held.
    pub(crate) fn slice(&self, position: u64, len: u64) -> P {
        if len == 0 {
            return P::default();
        }
        debug_assert!(position >= self.start && position + len <= self.end);
        let mut i = match self.chunks.front() {
            Some(front) if position < front.start + front.data.len() => 0,
            _ => self.chunks.partition_point(|c| c.start <= position) - 1,
        };
        let mut out = P::default();
        let (mut at, end) = (position, position + len);
        while at < end {
            let chunk = &self.chunks[i];
            let upto = end.min(chunk.start + chunk.data.len());
            let piece = chunk.data.slice(at - chunk.start..upto - chunk.start);
            if at == position {
                out = piece;
            } else {
                out.append(piece);
            }
            at = upto;
            i += 1;
        }
        out
    }

    /// Removes all data.
    pub(crate) fn clear(&mut self) {
        self.chunks.clear();
        self.start = self.end;
    }
}
