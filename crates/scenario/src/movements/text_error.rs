//! Errors in a movement file, with their place.

use core::ops::Range;
use hopline_config::source::line_column;

/// An error in a movement file: its place, and the remedy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: {message}; {help}")]
pub struct MovementError {
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// The bytes of the text that are wrong; may be empty.
    pub span: Range<usize>,
    /// Description of the error.
    pub message: String,
    /// Remedy.
    pub help: String,
}

/// The same before lines are counted: what is wrong with a stretch of a text.
#[derive(Debug)]
pub(super) struct TextError {
    /// Bytes of the text, or of the line, that is being read.
    pub(super) range: Range<usize>,
    pub(super) message: String,
    pub(super) help: String,
}

impl TextError {
    pub(super) fn new(range: Range<usize>, message: impl Into<String>, help: impl Into<String>) -> Self {
        Self { range, message: message.into(), help: help.into() }
    }

    /// Returns the flaw of a part of a text as a flaw of the text, in which the part begins at byte `start`.
    pub(super) fn offset_by(self, start: usize) -> Self {
        Self { range: self.range.start + start..self.range.end + start, ..self }
    }

    /// Adds line and column in `text`.
    pub(super) fn in_text(self, text: &str) -> MovementError {
        let (line, column) = line_column(text, self.range.start);
        MovementError { line, column, span: self.range, message: self.message, help: self.help }
    }
}

/// Keeps messages readable when the input is not.
pub(super) fn shorten(word: &str) -> String {
    const MOST: usize = 40;
    let mut text: String = word.chars().take(MOST).flat_map(char::escape_debug).collect();
    if word.chars().nth(MOST).is_some() {
        text.push('…');
    }
    text
}
