//! Stretch of an animation, and its size in a page.

/// Maximum size of all animations of an experiment in a page, bytes.
pub const BUDGET_BYTES: usize = 3_000_000;

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
