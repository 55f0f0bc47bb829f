//! Position in the text of a script.

use super::error::{ParseError, Stop};
use hopline_core::Duration;

/// Largest time of a script, seconds: sums of times stay far from the end of the clock.
const LONGEST_SECONDS: u64 = 1_000_000;

/// Most expressions within one another.
const DEEPEST_NESTING: usize = 64;

/// Text that is read from front to back.
#[derive(Clone, Copy)]
pub(super) struct Cursor<'t> {
    text: &'t str,
    at: usize,
    /// Number of arrays and structures around this position.
    depth: usize,
}

impl<'t> Cursor<'t> {
    pub(super) const fn new(text: &'t str) -> Self {
        Self { text, at: 0, depth: 0 }
    }

    pub(super) fn rest(&self) -> &'t str {
        &self.text[self.at..]
    }

    /// Returns the line, from 1.
    pub(super) fn line(&self) -> usize {
        1 + self.text[..self.at].matches('\n').count()
    }

    /// Returns the column, in characters from 1.
    fn column(&self) -> usize {
        let start = self.text[..self.at].rfind('\n').map_or(0, |newline| newline + 1);
        1 + self.text[start..self.at].chars().count()
    }

    /// Enters an expression within another one.
    pub(super) fn enter(&mut self) -> Result<(), Stop> {
        if self.depth == DEEPEST_NESTING {
            return self.error(format!("at most {DEEPEST_NESTING} nested expressions"));
        }
        self.depth += 1;
        Ok(())
    }

    /// Leaves it.
    pub(super) fn leave(&mut self) {
        self.depth -= 1;
    }

    /// Returns an error at this position.
    pub(super) fn error<T>(&self, expected: impl Into<String>) -> Result<T, Stop> {
        Err(Stop::Error(ParseError {
            line: self.line(),
            column: self.column(),
            offset: self.at,
            found: self.rest().chars().take_while(|c| *c != '\n').take(24).collect(),
            expected: expected.into(),
        }))
    }

    /// Skips blanks and comments.
    pub(super) fn skip(&mut self) -> Result<(), Stop> {
        loop {
            let rest = self.rest();
            let trimmed = rest.trim_start();
            self.at += rest.len() - trimmed.len();
            if trimmed.starts_with("//") {
                self.at += trimmed.find('\n').unwrap_or(trimmed.len());
            } else if trimmed.starts_with("/*") {
                match trimmed.find("*/") {
                    Some(end) => self.at += end + 2,
                    None => return self.error("`*/` at the end of the comment"),
                }
            } else {
                return Ok(());
            }
        }
    }

    pub(super) fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    pub(super) fn starts_with(&self, token: &str) -> bool {
        self.rest().starts_with(token)
    }

    /// Takes a token, after blanks.
    pub(super) fn take(&mut self, token: &str) -> Result<bool, Stop> {
        self.skip()?;
        let found = self.starts_with(token);
        if found {
            self.at += token.len();
        }
        Ok(found)
    }

    /// Takes a token that has to be there.
    pub(super) fn require(&mut self, token: &str) -> Result<(), Stop> {
        if self.take(token)? { Ok(()) } else { self.error(format!("`{token}`")) }
    }

    /// Takes a whole word, after blanks.
    pub(super) fn take_word(&mut self, word: &str) -> Result<bool, Stop> {
        let mut ahead = *self;
        let found = ahead.word()?.is_some_and(|found| found == word);
        if found {
            *self = ahead;
        }
        Ok(found)
    }

    /// Takes characters while `accepts` them.
    pub(super) fn take_while(&mut self, accepts: impl Fn(char) -> bool) -> &'t str {
        let rest = self.rest();
        let len = rest.find(|c| !accepts(c)).unwrap_or(rest.len());
        self.at += len;
        &rest[..len]
    }

    /// Takes an identifier, after blanks.
    pub(super) fn word(&mut self) -> Result<Option<&'t str>, Stop> {
        self.skip()?;
        match self.peek() {
            Some(c) if c.is_ascii_alphabetic() || c == '_' => {
                Ok(Some(self.take_while(|c| c.is_ascii_alphanumeric() || c == '_')))
            }
            _ => Ok(None),
        }
    }

    /// Takes the text up to `end`, and `end`.
    pub(super) fn until(&mut self, end: &str) -> Result<&'t str, Stop> {
        let rest = self.rest();
        match rest.find(end) {
            Some(len) => {
                self.at += len + end.len();
                Ok(&rest[..len])
            }
            None => self.error(format!("`{end}` further down")),
        }
    }

    /// Takes an unsigned integer, decimal or with `0x`, after blanks.
    pub(super) fn unsigned(&mut self) -> Result<u64, Stop> {
        self.skip()?;
        let before = *self;
        let (digits, radix) = if self.take("0x")? {
            (self.take_while(|c| c.is_ascii_hexdigit()), 16)
        } else {
            (self.take_while(|c| c.is_ascii_digit()), 10)
        };
        match u64::from_str_radix(digits, radix) {
            Ok(value) => Ok(value),
            Err(_) => before.error("an integer"),
        }
    }

    /// Takes an integer that fits into `T`.
    pub(super) fn integer<T: TryFrom<u64>>(&mut self, name: &str) -> Result<T, Stop> {
        self.skip()?;
        let before = *self;
        match T::try_from(self.unsigned()?) {
            Ok(value) => Ok(value),
            Err(_) => before.error(format!("{name} that fits its field")),
        }
    }

    /// Takes a time in seconds, with at most nine decimals.
    pub(super) fn seconds(&mut self) -> Result<Duration, Stop> {
        self.skip()?;
        let before = *self;
        let whole = self.take_while(|c| c.is_ascii_digit());
        // `0...0.2`: the dots of a range are not a decimal point.
        let has_decimals = self.starts_with(".") && !self.starts_with("..");
        let decimals = if has_decimals {
            self.at += 1;
            self.take_while(|c| c.is_ascii_digit())
        } else {
            ""
        };
        let nanos = format!("{decimals:0<9}");
        let parsed = (!whole.is_empty() || !decimals.is_empty())
            .then(|| {
                let whole = if whole.is_empty() { 0 } else { whole.parse::<u64>().ok()? };
                let nanos = nanos.get(..9)?.parse::<u64>().ok()?;
                whole.checked_mul(1_000_000_000)?.checked_add(nanos)
            })
            .flatten();
        match parsed {
            Some(nanos) if nanos <= LONGEST_SECONDS * 1_000_000_000 => Ok(Duration::from_nanos(nanos)),
            Some(_) => before.error(format!("a time in seconds, at most {LONGEST_SECONDS}")),
            None => before.error("a time in seconds"),
        }
    }
}
