//! Errors in a file of keys.

use core::fmt;
use core::ops::Range;

/// An error in a text: its place, and the remedy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyFileError {
    /// The bytes of the text that are wrong.
    pub span: Range<usize>,
    /// Description of the error.
    pub message: String,
    /// Remedy.
    pub help: String,
    /// Permission to show the line.
    pub visibility: Visibility,
}

/// Permission to show a line to users.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Visibility {
    /// Nothing in it is secret.
    Shown,
    /// It is, or may be, a secret.
    Hidden,
}

impl KeyFileError {
    pub(crate) fn new(span: Range<usize>, message: impl Into<String>, help: impl Into<String>) -> Self {
        Self { span, message: message.into(), help: help.into(), visibility: Visibility::Shown }
    }

    pub(crate) fn hidden(self) -> Self {
        Self { visibility: Visibility::Hidden, ..self }
    }

    /// Returns the line and column in `text`, both from 1; the column counts characters.
    #[must_use]
    pub fn line_column(&self, text: &str) -> (usize, usize) {
        let end = (0..=self.span.start.min(text.len())).rev().find(|at| text.is_char_boundary(*at));
        let before = &text[..end.unwrap_or(0)];
        let start = before.rfind('\n').map_or(0, |at| at + 1);
        (before.matches('\n').count() + 1, before[start..].chars().count() + 1)
    }
}

impl fmt::Display for KeyFileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; {}", self.message, self.help)
    }
}

impl core::error::Error for KeyFileError {}
