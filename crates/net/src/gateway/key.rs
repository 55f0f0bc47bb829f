//! Who is who: names and pre-shared keys.

use std::fmt;
use std::str::FromStr;

/// Most bytes of a name.
pub const LONGEST_NAME: usize = 64;

/// What separates our use of a secret from all others (`blake3::derive_key`).
const CONTEXT: &str = "hopline 2026-11-24 gateway, pre-shared key";

/// A secret that an entrance and an exit share: 32 bytes, written as 64 hexadecimal digits.
///
/// It should come from a generator of random numbers (`head -c32 /dev/urandom | xxd -p -c64`): who can record a conversation can
/// try guesses on it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Key([u8; 32]);

/// By what name an entrance is known to an exit: 1 to 64 printable ASCII characters without spaces.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Name(String);

/// An entrance that an exit serves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peer {
    /// Its name.
    pub name: Name,
    /// The secret that only it and the exit have.
    pub key: Key,
}

/// What is no key, or no name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unreadable {
    /// Not 64 hexadecimal digits.
    #[error("a key is 64 hexadecimal digits")]
    Key,
    /// Empty, too long, or with other characters.
    #[error("a name is 1 to 64 printable ASCII characters without spaces")]
    Name,
}

impl Key {
    /// The key that is made of `secret`. Nobody who sees what is done with the key learns the secret.
    #[must_use]
    pub fn new(secret: &[u8; 32]) -> Self {
        Self(blake3::derive_key(CONTEXT, secret))
    }

    /// This key for a channel between two ends that are known by `ends`.
    #[cfg(feature = "gateway")]
    pub(super) fn bound(&self, ends: &[&[u8; 32]; 2]) -> Self {
        Self(*self.proof(b"channel", &[ends[0], ends[1]]).as_bytes())
    }

    /// A secret for `purpose`, of those who have this key, or this one and all of `others`.
    #[cfg(feature = "gateway")]
    pub(super) fn secret<'a>(&self, purpose: &[u8], others: impl IntoIterator<Item = &'a Self>) -> [u8; 32] {
        let others: Vec<&[u8]> = others.into_iter().map(|key| &key.0[..]).collect();
        *self.proof(b"secret", &[&[purpose.len() as u8], purpose, &others.concat()]).as_bytes()
    }

    /// What only who has the key can say of `parts`, which must be such that their concatenation has one meaning.
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
    /// Keys do not get into logs.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(…)")
    }
}

impl FromStr for Key {
    type Err = Unreadable;

    fn from_str(text: &str) -> Result<Self, Unreadable> {
        let digits = text.as_bytes();
        let mut secret = [0; 32];
        if digits.len() != 2 * secret.len() {
            return Err(Unreadable::Key);
        }
        for (byte, pair) in secret.iter_mut().zip(digits.chunks_exact(2)) {
            let digit = |c: u8| char::from(c).to_digit(16).ok_or(Unreadable::Key);
            *byte = (digit(pair[0])? << 4 | digit(pair[1])?) as u8;
        }
        Ok(Self::new(&secret))
    }
}

impl Name {
    /// The name as it is written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub(super) fn of(bytes: &[u8]) -> Option<Self> {
        let fits = (1..=LONGEST_NAME).contains(&bytes.len()) && bytes.iter().all(u8::is_ascii_graphic);
        let text = std::str::from_utf8(bytes).ok().filter(|_| fits)?;
        Some(Self(text.into()))
    }
}

impl FromStr for Name {
    type Err = Unreadable;

    fn from_str(text: &str) -> Result<Self, Unreadable> {
        Self::of(text.as_bytes()).ok_or(Unreadable::Name)
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
    fn a_key_is_64_hexadecimal_digits_and_is_not_shown() {
        let key: Key = "00ff".repeat(16).parse().unwrap();
        assert_eq!(key, "00FF".repeat(16).parse().unwrap());
        assert_ne!(key, "00fe".repeat(16).parse().unwrap());
        assert_eq!(format!("{key:?}"), "Key(…)");
        for wrong in ["", "00", &"0".repeat(63), &"0".repeat(65), &"g".repeat(64), &"é".repeat(32)] {
            assert_eq!(wrong.parse::<Key>(), Err(Unreadable::Key), "{wrong}");
        }
    }

    #[test]
    fn a_name_is_printable() {
        assert_eq!("drone-3".parse::<Name>().unwrap().as_str(), "drone-3");
        for wrong in ["", "a b", "a\n", "ä", &"a".repeat(65)] {
            assert_eq!(wrong.parse::<Name>(), Err(Unreadable::Name), "{wrong}");
        }
    }
}
