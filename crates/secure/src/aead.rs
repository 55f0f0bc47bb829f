//! The cipher of sealed datagrams, with nonces and change of keys as Noise has them.

use core::fmt;
use hopline_wire::secure::{Cipher, TAG_LEN};
use ring::aead::{AES_256_GCM, Aad, Algorithm, CHACHA20_POLY1305, LessSafeKey, Nonce, Tag, UnboundKey};
use zeroize::Zeroizing;

/// Length of a key.
pub(crate) const KEY_LEN: usize = 32;

/// The nonce of REKEY (Noise §4.2), with which nothing is sealed.
const REKEY_NONCE: u64 = u64::MAX;

/// A key in one direction.
pub(crate) struct Key {
    cipher: Cipher,
    inner: LessSafeKey,
}

impl Key {
    pub(crate) fn new(cipher: Cipher, bytes: &[u8; KEY_LEN]) -> Self {
        let unbound = UnboundKey::new(algorithm(cipher), bytes).expect("both ciphers take keys of 32 bytes");
        Self { cipher, inner: LessSafeKey::new(unbound) }
    }

    /// Encrypts `content` where it stands; the tag.
    pub(crate) fn seal(&self, number: u64, header: &[u8], content: &mut [u8]) -> [u8; TAG_LEN] {
        let sealed = self.inner.seal_in_place_separate_tag(self.nonce(number), Aad::from(header), content);
        let tag = sealed.expect("datagrams are shorter than 64 GiB");
        tag.as_ref().try_into().expect("both ciphers have tags of 16 bytes")
    }

    /// Decrypts `content` in place, if it has not been changed. If it has, the content of the buffer is
    /// undefined afterwards.
    pub(crate) fn open(
        &self,
        number: u64,
        header: &[u8],
        content: &mut [u8],
        tag: [u8; TAG_LEN],
    ) -> Result<(), Forged> {
        let (nonce, header, tag) = (self.nonce(number), Aad::from(header), Tag::from(tag));
        match self.inner.open_in_place_separate_tag(nonce, header, tag, content, 0..) {
            Ok(_) => Ok(()),
            Err(ring::error::Unspecified) => Err(Forged),
        }
    }

    /// Returns the key that follows on this one, from which this one cannot be told (Noise §4.2, REKEY).
    pub(crate) fn next(&self) -> Self {
        let mut bytes = Zeroizing::new([0; KEY_LEN]);
        self.seal(REKEY_NONCE, &[], &mut bytes[..]);
        Self::new(self.cipher, &bytes)
    }

    /// Returns the nonce. Noise §12.3, §12.4: four bytes of zeros, then the number, which ChaChaPoly has in
    /// little-endian order and AESGCM in big-endian.
    fn nonce(&self, number: u64) -> Nonce {
        let mut bytes = [0; 12];
        bytes[4..].copy_from_slice(&match self.cipher {
            Cipher::ChaCha20Poly1305 => number.to_le_bytes(),
            Cipher::Aes256Gcm => number.to_be_bytes(),
        });
        Nonce::assume_unique_for_key(bytes)
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(…)")
    }
}

/// Failed authentication: the sender does not have the key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Forged;

fn algorithm(cipher: Cipher) -> &'static Algorithm {
    match cipher {
        Cipher::ChaCha20Poly1305 => &CHACHA20_POLY1305,
        Cipher::Aes256Gcm => &AES_256_GCM,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use snow::params::CipherChoice;
    use snow::resolvers::{CryptoResolver, RingResolver};

    const BOTH: [(Cipher, CipherChoice); 2] =
        [(Cipher::ChaCha20Poly1305, CipherChoice::ChaChaPoly), (Cipher::Aes256Gcm, CipherChoice::AESGCM)];

    #[test]
    fn nonces_and_next_keys_follow_noise() {
        for (cipher, choice) in BOTH {
            let mut theirs = RingResolver.resolve_cipher(&choice).unwrap();
            theirs.set(&[7; KEY_LEN]);
            let mut ours = Key::new(cipher, &[7; KEY_LEN]);
            for number in [0, 1, 0x0102_0304_0506_0708] {
                let mut content = *b"to be sealed";
                let tag = ours.seal(number, b"header", &mut content);
                let mut expected = [0; 28];
                assert_eq!(theirs.encrypt(number, b"header", b"to be sealed", &mut expected), 28);
                assert_eq!([&content[..], &tag].concat(), expected, "{cipher:?} {number}");
                ours = ours.next();
                theirs.rekey();
            }
        }
    }

    #[test]
    fn changed_datagrams_do_not_open() {
        for (cipher, _) in BOTH {
            let key = Key::new(cipher, &[7; KEY_LEN]);
            let mut sealed = *b"content";
            let tag = key.seal(5, b"header", &mut sealed);
            let opens = |number, header: &[u8], mut content: [u8; 7], tag| {
                key.open(number, header, &mut content, tag).map(|()| content)
            };
            assert_eq!(opens(5, b"header", sealed, tag), Ok(*b"content"));
            let flipped = |mut bytes: [u8; TAG_LEN]| {
                bytes[3] ^= 1;
                bytes
            };
            let mut other = sealed;
            other[0] ^= 0x80;
            assert_eq!(opens(6, b"header", sealed, tag), Err(Forged));
            assert_eq!(opens(5, b"Header", sealed, tag), Err(Forged));
            assert_eq!(opens(5, b"header", other, tag), Err(Forged));
            assert_eq!(opens(5, b"header", sealed, flipped(tag)), Err(Forged));
        }
    }
}
