//! Payloads of hopline as bytes of a stream.

use bytes::Bytes;
use hopline_core::{Length, Payload};

/// Largest number of bytes that are handed to a stream at once.
pub(crate) const CHUNK_BYTES: u64 = 1 << 16;

static ZEROS: [u8; CHUNK_BYTES as usize] = [0; CHUNK_BYTES as usize];

/// Payload that a stream can carry.
pub trait StreamData: Payload + Send + 'static {
    /// Returns the bytes of at most 64 KiB of payload.
    fn to_bytes(&self) -> Bytes;

    /// Returns the payload of received bytes.
    fn from_bytes(bytes: Bytes) -> Self;
}

impl StreamData for Bytes {
    fn to_bytes(&self) -> Bytes {
        self.clone()
    }

    fn from_bytes(bytes: Bytes) -> Self {
        bytes
    }
}

/// The simulator keeps no contents: zeros are sent.
impl StreamData for Length {
    fn to_bytes(&self) -> Bytes {
        Bytes::from_static(&ZEROS[..self.0.min(CHUNK_BYTES) as usize])
    }

    fn from_bytes(bytes: Bytes) -> Self {
        Self(bytes.len() as u64)
    }
}
