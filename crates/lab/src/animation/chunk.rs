//! Stretch of an animation, and its size in a page.

use super::recorder::{RawChunk, Room};

/// Maximum size of all animations of an experiment in a page, bytes.
pub const BUDGET_BYTES: usize = 3_000_000;

/// Best compression of miniz_oxide: a chunk is made once, and shared with others.
const COMPRESSION: u8 = 9;

/// Chunks that fit a page, compressed.
#[derive(Debug, Default)]
pub(super) struct CompressedChunks {
    pub(super) chunks: Vec<Chunk>,
    pub(super) reasons: Vec<&'static str>,
    bytes: usize,
    /// `true` once a chunk did not fit.
    is_full: bool,
}

impl CompressedChunks {
    /// Adds a chunk, if there is room for it.
    pub(super) fn push(&mut self, chunk: RawChunk) -> Room {
        let bytes = miniz_oxide::deflate::compress_to_vec(&chunk.rows, COMPRESSION);
        self.bytes += html_bytes(&bytes);
        self.is_full |= self.bytes > BUDGET_BYTES;
        if self.is_full {
            return Room::None;
        }
        self.chunks.push(Chunk { until_us: chunk.until_us, bytes });
        self.reasons.extend(chunk.reasons);
        Room::Left
    }

    pub(super) const fn is_full(&self) -> bool {
        self.is_full
    }
}

/// Events of a stretch of time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Chunk {
    /// Its end, in µs since the window began.
    pub(crate) until_us: i64,
    /// Rows in the format of `layout.rs`, deflated.
    pub(crate) bytes: Vec<u8>,
}

/// Returns the size of a chunk in a page, bytes: base64, and the end of its line.
pub(super) fn html_bytes(bytes: &[u8]) -> usize {
    bytes.len().div_ceil(3) * 4 + 1
}
