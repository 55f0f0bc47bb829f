//! Keys and fingerprints.

use crate::entropy::{Entropy, Seed};
use core::fmt;
use core::str::FromStr;
use curve25519_dalek::MontgomeryPoint;
use zeroize::{Zeroize, ZeroizeOnDrop};

/// Length of every key in bytes.
pub const KEY_LEN: usize = 32;
/// Prefix of the digits of a public key.
pub const PUBLIC: &str = "public:";
/// Prefix of the digits of a private key.
pub const PRIVATE: &str = "private:";

/// Context that separates fingerprints from all other hashes (`blake3::derive_key`).
const FINGERPRINT_CONTEXT: &str = "hopline 2026-11-25 fingerprint of a key";

/// A private key of X25519. Wiped when dropped, and never shown.
#[derive(Clone, Zeroize, ZeroizeOnDrop)]
pub struct PrivateKey([u8; KEY_LEN]);

/// A public key of X25519.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PublicKey([u8; KEY_LEN]);

/// A secret that both ends have: 32 bytes from a generator of random numbers, never a word that an attacker
/// can guess. Wiped when dropped, and never shown.
#[derive(Clone, Zeroize, ZeroizeOnDrop)]
pub struct PreSharedKey([u8; KEY_LEN]);

/// 128 bits that two people can read to each other: equal fingerprints mean equal keys.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fingerprint([u8; 16]);

impl PrivateKey {
    /// Creates a new key.
    #[must_use]
    pub fn generate(seed: &Seed) -> Self {
        Self(Entropy::new(seed).bytes())
    }

    /// Creates the key of these bytes.
    #[must_use]
    pub const fn new(bytes: [u8; KEY_LEN]) -> Self {
        Self(bytes)
    }

    /// Returns the public key, which peers may know.
    #[must_use]
    pub fn public(&self) -> PublicKey {
        PublicKey(MontgomeryPoint::mul_base_clamped(self.0).to_bytes())
    }

    pub(crate) const fn bytes(&self) -> &[u8; KEY_LEN] {
        &self.0
    }
}

impl PublicKey {
    /// Creates the key of these bytes.
    #[must_use]
    pub const fn new(bytes: [u8; KEY_LEN]) -> Self {
        Self(bytes)
    }

    /// Its bytes.
    #[must_use]
    pub const fn bytes(&self) -> &[u8; KEY_LEN] {
        &self.0
    }

    /// Returns the fingerprint, for comparison.
    #[must_use]
    pub fn fingerprint(&self) -> Fingerprint {
        Fingerprint::of(PUBLIC, &self.0)
    }
}

impl PreSharedKey {
    /// Creates the key of these bytes.
    #[must_use]
    pub const fn new(bytes: [u8; KEY_LEN]) -> Self {
        Self(bytes)
    }

    /// Returns the fingerprint, for comparison. It reveals nothing of the key to an attacker that cannot
    /// guess the key.
    #[must_use]
    pub fn fingerprint(&self) -> Fingerprint {
        Fingerprint::of("shared:", &self.0)
    }

    pub(crate) const fn bytes(&self) -> &[u8; KEY_LEN] {
        &self.0
    }
}

impl Fingerprint {
    fn of(kind: &str, key: &[u8; KEY_LEN]) -> Self {
        let mut hasher = blake3::Hasher::new_derive_key(FINGERPRINT_CONTEXT);
        let hash = hasher.update(kind.as_bytes()).update(key).finalize();
        hasher.zeroize();
        Self(*hash.as_bytes().first_chunk().expect("a hash has 32 bytes"))
    }
}

/// Text is no fingerprint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no fingerprint: eight groups of four hexadecimal digits with - between them")]
pub struct NoFingerprint;

impl FromStr for Fingerprint {
    type Err = NoFingerprint;

    fn from_str(text: &str) -> Result<Self, NoFingerprint> {
        let groups: Vec<&str> = text.split('-').collect();
        let fits = |group: &&str| group.len() == 4 && group.bytes().all(|byte| byte.is_ascii_hexdigit());
        let digits = groups.concat();
        let mut bytes = [0; 16];
        if groups.len() != 8 || !groups.iter().all(fits) {
            return Err(NoFingerprint);
        }
        for (at, byte) in bytes.iter_mut().enumerate() {
            *byte = u8::from_str_radix(&digits[2 * at..2 * at + 2], 16).map_err(|_| NoFingerprint)?;
        }
        Ok(Self(bytes))
    }
}

impl fmt::Display for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(PUBLIC)?;
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, pair) in self.0.chunks_exact(2).enumerate() {
            let dash = if at == 0 { "" } else { "-" };
            write!(f, "{dash}{:02x}{:02x}", pair[0], pair[1])?;
        }
        Ok(())
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Debug for PrivateKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PrivateKey(…)")
    }
}

impl fmt::Debug for PreSharedKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PreSharedKey(…)")
    }
}
