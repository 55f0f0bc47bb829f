//! Data taken from the user and not yet acknowledged, sliceable at any position.

use crate::connection::SendError;
use hopline_core::Payload;
use std::collections::VecDeque;

/// Most bytes an unlimited queue takes: far from where positions would overflow.
const UNLIMITED: u64 = 1 << 62;

/// Chunks as the user handed them over. One huge chunk of length-only payload costs nothing.
#[derive(Clone, Debug)]
pub(crate) struct SendQueue<P> {
    chunks: VecDeque<Chunk<P>>,
    /// First position not yet acknowledged.
    start: u64,
    /// Position after the last byte handed over.
    end: u64,
    /// Most bytes held.
    limit: u64,
    /// Data were refused for want of space.
    refused: bool,
}

#[derive(Clone, Debug)]
struct Chunk<P> {
    start: u64,
    data: P,
}

impl<P: Payload> SendQueue<P> {
    /// An empty queue whose first byte has position `first`. `limit`: most bytes it holds, if there is one.
    pub(crate) fn new(first: u64, limit: Option<u64>) -> Self {
        let limit = limit.unwrap_or(UNLIMITED);
        Self { chunks: VecDeque::new(), start: first, end: first, limit, refused: false }
    }

    /// Position after the last byte handed over.
    pub(crate) fn end(&self) -> u64 {
        self.end
    }

    /// Bytes held.
    pub(crate) fn len(&self) -> u64 {
        self.end - self.start
    }

    /// Bytes that would be taken now.
    pub(crate) fn free(&self) -> u64 {
        self.limit.saturating_sub(self.len())
    }

    /// Takes all of `data` or nothing.
    pub(crate) fn push(&mut self, data: P) -> Result<(), SendError> {
        let (len, free) = (data.len(), self.free());
        if len > free {
            self.refused = true;
            return Err(SendError::Full { free });
        }
        if len > 0 {
            self.chunks.push_back(Chunk { start: self.end, data });
            self.end += len;
        }
        Ok(())
    }

    /// Whether data were refused since this was asked last.
    pub(crate) fn take_refusal(&mut self) -> bool {
        core::mem::take(&mut self.refused)
    }

    /// Everything below `position` is acknowledged. Returns how many bytes that lets go of.
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

    /// The `len` bytes from `position`; both within what is held.
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

    /// Drops everything.
    pub(crate) fn clear(&mut self) {
        self.chunks.clear();
        self.start = self.end;
    }
}
