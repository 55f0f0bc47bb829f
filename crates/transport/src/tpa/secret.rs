//! Key for unpredictable values.

use core::hash::Hasher;
use hopline_wire::tpa::Tag;
use siphasher::sip::SipHasher24;

/// Key for unpredictable values: the tags of a listener, the nonces of data. Must be unpredictable itself.
#[derive(Clone, Copy)]
pub struct Secret(pub [u8; 16]);

impl Secret {
    /// Derives another key for `purpose` and `tag`.
    #[must_use]
    pub fn derive(&self, purpose: &[u8], tag: Tag) -> Self {
        let half = |number: u8| {
            let mut hasher = self.hasher();
            hasher.write(purpose);
            hasher.write_u64(tag.0.get());
            hasher.write_u8(number);
            hasher.finish().to_be_bytes()
        };
        let mut derived = [0; 16];
        derived[..8].copy_from_slice(&half(0));
        derived[8..].copy_from_slice(&half(1));
        Self(derived)
    }

    /// Returns a keyed hash function, SipHash-2-4.
    pub(super) fn hasher(&self) -> SipHasher24 {
        SipHasher24::new_with_key(&self.0)
    }
}

impl core::fmt::Debug for Secret {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Secret")
    }
}
