//! Reasons for which a script is not parsed to its end.

use core::fmt;

/// Reason for which a script was not parsed to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stop {
    /// Syntax error.
    Error(ParseError),
    /// Statement that does not concern this endpoint, with its name.
    NotApplicable {
        /// Line, from 1.
        line: usize,
        /// Reason.
        reason: String,
    },
}

/// Syntax error with its position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseError {
    /// Line, from 1.
    pub line: usize,
    /// Column, in characters from 1.
    pub column: usize,
    /// Position in the text, bytes from its start.
    pub offset: usize,
    /// Text at the position.
    pub found: String,
    /// Text that would be right.
    pub expected: String,
}

impl ParseError {
    /// Moves the position to the character of `text` that it lies in: parts of other systems were blank.
    pub(super) fn at_character_of(mut self, text: &str) -> Self {
        while !text.is_char_boundary(self.offset) {
            self.offset -= 1;
        }
        self
    }
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { line, column, found, expected, .. } = self;
        if found.is_empty() {
            return write!(f, "{line}:{column}: expected {expected}, found the end of the line");
        }
        write!(f, "{line}:{column}: expected {expected}, found `{found}`")
    }
}

impl core::error::Error for ParseError {}
