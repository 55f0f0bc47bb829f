//! Files of one key: a private key, or a secret that both ends have.

use super::key::{PRIVATE, PUBLIC, PreSharedKey, PrivateKey, PublicKey};
use super::key_file_error::KeyFileError;
use core::fmt::Write;
use core::ops::Range;
use core::str::FromStr;
use zeroize::Zeroizing;

/// Kind of key in a file of one key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileKind {
    /// A private key.
    Private,
    /// A secret that both ends have.
    Shared,
}

impl FileKind {
    /// Returns the kind of key that `text` seems to hold: a private key says that it is one.
    #[must_use]
    pub fn of(text: &str) -> Self {
        if words(text).any(|span| text[span].starts_with(PRIVATE)) { Self::Private } else { Self::Shared }
    }
}

/// Returns the text of a file of `key`.
#[must_use]
pub fn private_key_file(key: &PrivateKey) -> Zeroizing<String> {
    let mut text = Zeroizing::new(String::with_capacity(256));
    text.push_str(
        "# A private key of hopline (X25519). Whoever has it can pass for its owner: show it to nobody.\n",
    );
    text.push_str(PRIVATE);
    for byte in key.bytes() {
        write!(text, "{byte:02x}").expect("a string takes everything");
    }
    text.push('\n');
    text
}

/// Reads a file of a private key: a line `private:` and 64 hexadecimal digits; lines that begin with `#`, and
/// empty ones, say nothing.
///
/// # Errors
/// Fault of a file, its place, and the remedy.
pub fn private_key(text: &str) -> Result<PrivateKey, KeyFileError> {
    const RIGHT: &str =
        "`hopline key new FILE` makes a file with a private key: `private:` and 64 hexadecimal digits";
    let span = only_word(text, "private key", RIGHT)?;
    let Some(digits) = text[span.clone()].strip_prefix(PRIVATE) else {
        let what = if text[span.clone()].starts_with(PUBLIC) {
            "this is a public key, and here belongs the private one"
        } else {
            "this is no private key"
        };
        return Err(KeyFileError::new(span, what, RIGHT).hidden());
    };
    let bytes = key(digits, span.start + PRIVATE.len()).map_err(KeyFileError::hidden)?;
    Ok(PrivateKey::new(*bytes))
}

/// Reads a file of a secret that both ends have: a line of 64 hexadecimal digits; lines that begin with `#`,
/// and empty ones, say nothing.
///
/// # Errors
/// Fault of a file, its place, and the remedy.
pub fn shared_key(text: &str) -> Result<PreSharedKey, KeyFileError> {
    secret(text).map(|bytes| PreSharedKey::new(*bytes))
}

/// Reads a file of a secret of `N` bytes that both ends have: a line of hexadecimal digits; lines that begin
/// with `#`, and empty ones, say nothing.
///
/// # Errors
/// Fault of a file, its place, and the remedy.
pub fn secret<const N: usize>(text: &str) -> Result<Zeroizing<[u8; N]>, KeyFileError> {
    let right = format!("{} hexadecimal digits, as `openssl rand -hex {N}` prints them", 2 * N);
    let span = only_word(text, "shared key", &right)?;
    let word = &text[span.clone()];
    if word.starts_with(PRIVATE) || word.starts_with(PUBLIC) {
        let what = "this is half of a pair of keys, and here belongs a secret that both ends have";
        return Err(KeyFileError::new(span, what, right).hidden());
    }
    let bytes = key(word, span.start).map_err(KeyFileError::hidden)?;
    if *bytes == [0; N] {
        return Err(KeyFileError::new(span, "zeros are no secret", right).hidden());
    }
    Ok(bytes)
}

impl FromStr for PublicKey {
    type Err = KeyFileError;

    /// Parses `public:` and 64 hexadecimal digits.
    fn from_str(text: &str) -> Result<Self, KeyFileError> {
        public_key(text, 0)
    }
}

/// Reads a public key that stands at `at` of a text.
pub(super) fn public_key(word: &str, at: usize) -> Result<PublicKey, KeyFileError> {
    let span = at..at + word.len();
    if word.starts_with(PRIVATE) {
        let what = "this is a private key, which nobody else may see; here belongs the public one";
        return Err(KeyFileError::new(
            span,
            what,
            "`hopline key show FILE` prints the public key of a private one",
        )
        .hidden());
    }
    let Some(digits) = word.strip_prefix(PUBLIC) else {
        // Whatever it is may have been meant to be a secret.
        let what = "this is no public key";
        return Err(KeyFileError::new(span, what, "`public:` and 64 hexadecimal digits").hidden());
    };
    key(digits, at + PUBLIC.len()).map(|bytes| PublicKey::new(*bytes))
}

/// Decodes the hexadecimal digits of `N` bytes, which stand at `at` of a text.
fn key<const N: usize>(digits: &str, at: usize) -> Result<Zeroizing<[u8; N]>, KeyFileError> {
    let help = format!("a key is {} hexadecimal digits", 2 * N);
    let bad = digits.char_indices().find(|(_, c)| !c.is_ascii_hexdigit());
    if let Some((start, c)) = bad {
        let span = at + start..at + start + c.len_utf8();
        return Err(KeyFileError::new(span, "this is no hexadecimal digit", help));
    }
    let (count, right) = (digits.len(), 2 * N);
    if count != right {
        let span = at + count.min(right)..at + count;
        return Err(KeyFileError::new(span, format!("{count} digits are not {right}"), help));
    }
    let mut bytes = Zeroizing::new([0; N]);
    for (byte, pair) in bytes.iter_mut().zip(digits.as_bytes().chunks_exact(2)) {
        let value = |digit: u8| char::from(digit).to_digit(16).expect("all are hexadecimal digits") as u8;
        *byte = value(pair[0]) << 4 | value(pair[1]);
    }
    Ok(bytes)
}

/// Returns the only word of a text.
fn only_word(text: &str, what: &str, right: &str) -> Result<Range<usize>, KeyFileError> {
    let mut all = words(text);
    match (all.next(), all.next()) {
        (Some(word), None) => Ok(word),
        (None, _) => {
            Err(KeyFileError::new(text.len()..text.len(), format!("there is no {what}"), right).hidden())
        }
        (Some(_), Some(second)) => {
            Err(KeyFileError::new(second, format!("there is more than a {what}"), right).hidden())
        }
    }
}

/// Returns the words of all lines that are no comments.
fn words(text: &str) -> impl Iterator<Item = Range<usize>> {
    lines(text)
        .filter(|(_, line)| !line.trim_start().starts_with('#'))
        .flat_map(|(at, line)| words_of(at, line))
}

/// Returns the words of a line that stands at `at` of a text.
pub(super) fn words_of(at: usize, line: &str) -> impl Iterator<Item = Range<usize>> {
    let mut end = 0;
    core::iter::from_fn(move || {
        let start = end + line[end..].find(|c: char| !c.is_whitespace())?;
        end = line[start..].find(char::is_whitespace).map_or(line.len(), |len| start + len);
        Some(at + start..at + end)
    })
}

/// Returns the lines of a text and where they begin; a byte order mark is not in the first.
pub(super) fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mark = if text.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 };
    let mut next = mark;
    text[mark..].split_inclusive('\n').map(move |line| {
        let at = next;
        next += line.len();
        (at, line.trim_end_matches(['\n', '\r']))
    })
}
