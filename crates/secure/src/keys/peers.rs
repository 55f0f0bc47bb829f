//! Known peers and their public keys.

use super::PublicKey;
use super::file::{lines, public_key, words_of};
use super::key_file_error::KeyFileError;
use core::fmt;
use core::ops::Range;
use core::str::FromStr;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use thiserror::Error;

/// Most bytes of a name.
pub const MAX_NAME: usize = 64;

/// After so many mistakes no more are looked for.
const MAX_ERRORS: usize = 20;

/// Name of a peer: 1 to 64 printable ASCII characters without spaces, of which the first is no `#`. Host
/// names, addresses and other names of machines qualify.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name(String);

/// It is no [`Name`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("a name is 1 to 64 printable ASCII characters without spaces, and does not begin with #")]
pub struct UnusableName;

impl Name {
    /// Returns the name as it is written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for Name {
    type Err = UnusableName;

    fn from_str(text: &str) -> Result<Self, UnusableName> {
        let fits = (1..=MAX_NAME).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic());
        if fits && !text.starts_with('#') { Ok(Self(text.into())) } else { Err(UnusableName) }
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A known peer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peer {
    /// Name of the peer.
    pub name: Name,
    /// Public key of the peer.
    pub key: PublicKey,
    /// In this line, from 1.
    pub line: usize,
}

/// All known peers of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KnownPeers {
    peers: Vec<Peer>,
    by_name: BTreeMap<Name, usize>,
}

/// Result of the check of a peer's key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Check<'a> {
    /// The name and the key match a known peer.
    Known,
    /// No known peer has this name.
    Unknown,
    /// The known peer with this name has another key: the machine has a new key, or another machine claims
    /// this name.
    Changed(&'a Peer),
}

impl KnownPeers {
    /// Reads a file: in each line a name and a public key, in between spaces; what begins with `#`, behind a
    /// key too, and empty lines say nothing.
    ///
    /// # Errors
    /// All that is wrong, up to 20 mistakes: where, and what would be right.
    pub fn parse(text: &str) -> Result<Self, Vec<KeyFileError>> {
        let mut known = Self::default();
        let mut mistakes = Vec::new();
        for (number, (at, line)) in lines(text).enumerate() {
            if let Err(mistake) = known.parse_line(number + 1, at, line, text) {
                mistakes.push(mistake);
            }
            if mistakes.len() == MAX_ERRORS {
                break;
            }
        }
        if mistakes.is_empty() { Ok(known) } else { Err(mistakes) }
    }

    /// Returns the line that makes `key` known by `name`.
    #[must_use]
    pub fn line(name: &Name, key: &PublicKey) -> String {
        format!("{name} {key}\n")
    }

    /// Checks whether the peer called `name` may have `key`.
    #[must_use]
    pub fn check(&self, name: &Name, key: &PublicKey) -> Check<'_> {
        match self.get(name) {
            None => Check::Unknown,
            Some(peer) if peer.key == *key => Check::Known,
            Some(peer) => Check::Changed(peer),
        }
    }

    /// Returns the peer called `name`.
    #[must_use]
    pub fn get(&self, name: &Name) -> Option<&Peer> {
        self.by_name.get(name).map(|at| &self.peers[*at])
    }

    /// Returns all known peers, in the order of the file.
    #[must_use]
    pub fn peers(&self) -> &[Peer] {
        &self.peers
    }

    fn parse_line(&mut self, number: usize, at: usize, line: &str, text: &str) -> Result<(), KeyFileError> {
        let mut words = words_of(at, line);
        let Some(name) = words.next().filter(|name| !text[name.clone()].starts_with('#')) else {
            return Ok(());
        };
        let key = words.next().filter(|key| !text[key.clone()].starts_with('#'));
        let Some(key) = key else { return Err(missing_key(name, text)) };
        if let Some(more) = words.next().filter(|more| !text[more.clone()].starts_with('#')) {
            let right = "a name, a key, and nothing else but a comment, which begins with #";
            return Err(KeyFileError::new(
                more.start..at + line.len(),
                "there is more than a name and a key",
                right,
            )
            .hidden());
        }
        let called = parse_name(name.clone(), text)?;
        let key = public_key(&text[key.clone()], key.start)?;
        let at = self.peers.len();
        match self.by_name.entry(called.clone()) {
            Entry::Occupied(first) => {
                let first = self.peers[*first.get()].line;
                let what = format!("`{called}` is known already, from line {first}");
                Err(KeyFileError::new(name, what, "one line for each name"))
            }
            Entry::Vacant(free) => {
                free.insert(at);
                self.peers.push(Peer { name: called, key, line: number });
                Ok(())
            }
        }
    }
}

fn parse_name(span: Range<usize>, text: &str) -> Result<Name, KeyFileError> {
    text[span.clone()]
        .parse()
        .map_err(|error: UnusableName| KeyFileError::new(span, "this is no name", error.to_string()).hidden())
}

/// Returns the mistake of a line of one word.
fn missing_key(word: Range<usize>, text: &str) -> KeyFileError {
    const RIGHT: &str = "a name, a space, and a public key: `public:` and 64 hexadecimal digits";
    let what = if text[word.clone()].contains(':') {
        "there is no name before this"
    } else {
        "there is no key behind this name"
    };
    KeyFileError::new(word, what, RIGHT).hidden()
}
