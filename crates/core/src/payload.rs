//! Payloads of segments: a length in the simulator, real bytes on Linux.

use bytes::{Bytes, BytesMut};
use core::ops::Range;

/// A finite run of bytes that can be measured, cut and joined without looking inside.
///
/// # Example
///
/// ```
/// use bytes::Bytes;
/// use hopline_core::{Length, Payload};
///
/// fn first_half<P: Payload>(payload: &P) -> P {
///     payload.slice(0..payload.len() / 2)
/// }
///
/// assert_eq!(first_half(&Length(1000)), Length(500));
/// assert_eq!(first_half(&Bytes::from_static(b"hopline!")), "hopl");
/// ```
pub trait Payload: Clone + Default + core::fmt::Debug {
    /// Number of bytes.
    fn len(&self) -> u64;

    /// Returns whether there are no bytes.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The bytes of `range`. Panics if the range goes past the end: callers cut only what they hold.
    #[must_use]
    fn slice(&self, range: Range<u64>) -> Self;

    /// Appends `tail`.
    fn append(&mut self, tail: Self);

    /// Returns the same bytes in memory of their own. A small slice of a large payload otherwise keeps the whole payload
    /// alive.
    #[must_use]
    fn detached(self) -> Self {
        self
    }
}

/// Payload that consists of its length alone, for the simulator. Cutting and joining cost nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Length(pub u64);

impl Payload for Length {
    fn len(&self) -> u64 {
        self.0
    }

    fn slice(&self, range: Range<u64>) -> Self {
        assert!(range.start <= range.end && range.end <= self.0, "slice past the end of a payload");
        Self(range.end - range.start)
    }

    fn append(&mut self, tail: Self) {
        self.0 += tail.0;
    }
}

impl Payload for Bytes {
    fn len(&self) -> u64 {
        Bytes::len(self) as u64
    }

    fn slice(&self, range: Range<u64>) -> Self {
        Bytes::slice(self, range.start as usize..range.end as usize)
    }

    fn append(&mut self, tail: Self) {
        if Bytes::is_empty(self) {
            *self = tail;
        } else if !Bytes::is_empty(&tail) {
            let mut joined = BytesMut::with_capacity(Bytes::len(self) + Bytes::len(&tail));
            joined.extend_from_slice(self);
            joined.extend_from_slice(&tail);
            *self = joined.freeze();
        }
    }

    fn detached(self) -> Self {
        Self::copy_from_slice(&self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn assert_slices_append_to_the_whole<P: Payload + PartialEq>(whole: P) {
        let n = whole.len();
        for cut in 0..=n {
            let mut front = whole.slice(0..cut);
            front.append(whole.slice(cut..n));
            assert_eq!(front, whole);
        }
    }

    #[test]
    fn slices_append_to_the_whole() {
        assert_slices_append_to_the_whole(Length(9));
        assert_slices_append_to_the_whole(Bytes::from_static(b"multi-hop"));
    }

    #[test]
    #[should_panic(expected = "past the end")]
    fn a_length_cannot_be_sliced_past_its_end() {
        let _ = Length(3).slice(1..4);
    }
}
