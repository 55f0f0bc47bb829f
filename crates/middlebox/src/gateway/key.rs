//! Identities of gateways: names and pre-shared keys.

use std::fmt;
use std::str::FromStr;

/// Maximum bytes of a name.
pub const MAX_NAME_LEN: usize = 64;

/// Context of the key derivation, which separates this use of a secret from all others (`blake3::derive_key`).
const CONTEXT: &str = "hopline 2026-11-24 gateway, pre-shared key";

/// Pre-shared key of an entrance and an exit: 32 bytes, written as 64 hexadecimal digits.
///
/// It should come from a random number generator (`head -c32 /dev/urandom | xxd -p -c64`): an attacker that records a
/// handshake can test guesses of the key offline.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Key([u8; 32]);

/// Name under which an exit knows an entrance: 1 to 64 printable ASCII characters without spaces.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Name(String);

/// An entrance that an exit serves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peer {
    /// Its name.
    pub name: Name,
    /// Secret shared by this entrance and the exit only.
    pub key: Key,
}

/// Parse error of a key or a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseError {
    /// Not 64 hexadecimal digits.
    #[error("a key is 64 hexadecimal digits")]
    Key,
    /// Empty, too long, or with other characters.
    #[error("a name is 1 to 64 printable ASCII characters without spaces")]
    Name,
}

impl Key {
    /// Derives the key from `secret`. The key does not reveal the secret.
    #[must_use]
    pub fn new(secret: &[u8; 32]) -> Self {
        Self(blake3::derive_key(CONTEXT, secret))
    }

    /// Returns this key, bound to a channel between the two gateways that `ends` identifies.
    #[cfg(feature = "gateway")]
    pub(super) fn channel_bound(&self, ends: &[&[u8; 32]; 2]) -> Self {
        Self(*self.proof(b"channel", &[ends[0], ends[1]]).as_bytes())
    }

    /// Derives a secret for `purpose` from this key and `others`.
    #[cfg(feature = "gateway")]
    pub(super) fn derive_secret<'a>(
        &self,
        purpose: &[u8],
        others: impl IntoIterator<Item = &'a Self>,
    ) -> [u8; 32] {
        let others: Vec<&[u8]> = others.into_iter().map(|key| &key.0[..]).collect();
        *self.proof(b"secret", &[&[purpose.len() as u8], purpose, &others.concat()]).as_bytes()
    }

    /// Returns the keyed hash of `parts` that proves possession of the key. The concatenation of `parts` must be
    /// unambiguous.
    pub(super) fn proof(&self, purpose: &[u8], parts: &[&[u8]]) -> blake3::Hash {
        let mut hasher = blake3::Hasher::new_keyed(&self.0);
        hasher.update(purpose);
        parts.iter().for_each(|part| {
            hasher.update(part);
        });
        hasher.finalize()
    }
}

impl fmt::Debug for Key {
    /// Prints a placeholder, to keep keys out of logs.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(…)")
    }
}

impl FromStr for Key {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let digits = text.as_bytes();
        let mut secret = [0; 32];
        if digits.len() != 2 * secret.len() {
            return Err(ParseError::Key);
        }
        for (byte, pair) in secret.iter_mut().zip(digits.chunks_exact(2)) {
            let digit = |c: u8| char::from(c).to_digit(16).ok_or(ParseError::Key);
            *byte = (digit(pair[0])? << 4 | digit(pair[1])?) as u8;
        }
        Ok(Self::new(&secret))
    }
}

impl Name {
    /// Returns the name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub(super) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let fits = (1..=MAX_NAME_LEN).contains(&bytes.len()) && bytes.iter().all(u8::is_ascii_graphic);
        let text = std::str::from_utf8(bytes).ok().filter(|_| fits)?;
        Some(Self(text.into()))
    }
}

impl FromStr for Name {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        Self::from_bytes(text.as_bytes()).ok_or(ParseError::Name)
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_64_hexadecimal_digits_and_is_not_printed() {
        let key: Key = "00ff".repeat(16).parse().unwrap();
        assert_eq!(key, "00FF".repeat(16).parse().unwrap());
        assert_ne!(key, "00fe".repeat(16).parse().unwrap());
        assert_eq!(format!("{key:?}"), "Key(…)");
        for wrong in ["", "00", &"0".repeat(63), &"0".repeat(65), &"g".repeat(64), &"é".repeat(32)] {
            assert_eq!(wrong.parse::<Key>(), Err(ParseError::Key), "{wrong}");
        }
    }

    #[test]
    fn a_name_is_printable() {
        assert_eq!("drone-3".parse::<Name>().unwrap().as_str(), "drone-3");
        for wrong in ["", "a b", "a\n", "ä", &"a".repeat(65)] {
            assert_eq!(wrong.parse::<Name>(), Err(ParseError::Name), "{wrong}");
        }
    }
}
