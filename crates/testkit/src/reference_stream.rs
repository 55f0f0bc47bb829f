//! Invariants that hold for any behaviour of the network.

use bytes::Bytes;

/// Checks that a received stream is the reference stream: every byte once, in order.
#[derive(Clone, Debug, Default)]
pub struct InOrder {
    received: u64,
}

impl InOrder {
    /// Returns the byte at `position` of the reference stream: a pattern with a long period, so that a shift shows.
    #[must_use]
    pub fn byte(position: u64) -> u8 {
        (position.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8
    }

    /// Returns the bytes `from..from + len` of the reference stream.
    #[must_use]
    pub fn bytes(from: u64, len: usize) -> Bytes {
        (from..from + len as u64).map(Self::byte).collect::<Vec<u8>>().into()
    }

    /// Checks the next bytes received. Panics at the first that differs from the reference stream.
    pub fn check(&mut self, data: &Bytes) {
        for &byte in data {
            assert_eq!(byte, Self::byte(self.received), "byte {} of the stream is wrong", self.received);
            self.received += 1;
        }
    }

    /// Returns the number of bytes received.
    #[must_use]
    pub fn received(&self) -> u64 {
        self.received
    }
}
