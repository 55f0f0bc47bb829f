//! Defaults of keys, as values.

use core::fmt;
use hopline_core::Duration;
use serde_json::{Value as Json, json};

/// Value of a key that is not given.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Default {
    /// The key must be given.
    Required,
    /// The value of the chosen preset, or as the meaning describes.
    Unset,
    /// This number.
    Number(f64),
    /// This whole number.
    Integer(u64),
    /// This word.
    Word(&'static str),
    /// The constant that the configuration of the algorithm starts from, and its exceptions. A [`Section`](crate::schema::Section) does not
    /// return it, since a table may lie over another one.
    Of(Literal, &'static [Exception]),
    /// A value that follows from other keys or the environment, or the absence of a value: the text says which.
    Derived(&'static str),
}

/// Value of a default.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Literal {
    /// A number.
    Number(f64),
    /// A whole number.
    Integer(u64),
    /// A word, as the key takes it.
    Word(&'static str),
    /// `true` or `false`.
    Flag(bool),
    /// A description, of an exception that has no single value.
    Text(&'static str),
}

/// Default that differs where a condition holds, such as a preset or a kind.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Exception {
    /// The condition: "of preset linux", "over Linux".
    pub when: &'static str,
    /// The default there.
    pub value: Literal,
}

impl Exception {
    /// Creates an exception.
    #[must_use]
    pub const fn new(when: &'static str, value: Literal) -> Self {
        Self { when, value }
    }
}

impl Literal {
    /// Converts a duration to seconds.
    #[must_use]
    pub const fn seconds(time: Duration) -> Self {
        Self::Number(time.as_nanos() as f64 / 1e9)
    }

    /// Converts a duration to milliseconds.
    #[must_use]
    pub const fn milliseconds(time: Duration) -> Self {
        Self::Number(time.as_nanos() as f64 / 1e6)
    }

    /// Converts a duration to whole milliseconds.
    #[must_use]
    pub const fn whole_milliseconds(time: Duration) -> Self {
        Self::Integer(time.as_millis())
    }

    /// Returns the value for JSON; `None` for a description.
    #[must_use]
    pub fn json(self) -> Option<Json> {
        match self {
            Self::Number(x) => Some(json!(x)),
            Self::Integer(i) => Some(json!(i)),
            Self::Word(word) => Some(json!(word)),
            Self::Flag(flag) => Some(json!(flag)),
            Self::Text(_) => None,
        }
    }
}

impl fmt::Display for Literal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(x) => write!(f, "{x}"),
            Self::Integer(i) => write!(f, "{i}"),
            Self::Word(word) => write!(f, "`{word}`"),
            Self::Flag(flag) => write!(f, "`{flag}`"),
            Self::Text(text) => f.write_str(text),
        }
    }
}

impl Default {
    /// Returns the value, if it is a single one.
    #[must_use]
    pub const fn value(self) -> Option<Literal> {
        match self {
            Self::Required | Self::Unset | Self::Derived(_) => None,
            Self::Number(x) => Some(Literal::Number(x)),
            Self::Integer(i) => Some(Literal::Integer(i)),
            Self::Word(word) => Some(Literal::Word(word)),
            Self::Of(value, _) => Some(value),
        }
    }

    /// Returns the value that a [`Section`](crate::schema::Section) has where the key is not given.
    #[must_use]
    pub const fn read(self) -> Option<Literal> {
        match self {
            Self::Of(..) => None,
            other => other.value(),
        }
    }

    /// Returns its exceptions, and a default without a single value, as the end of a description.
    #[must_use]
    pub fn remark(self) -> String {
        match self {
            Self::Of(_, exceptions) => {
                exceptions.iter().map(|e| format!("; default {}: {}", e.when, e.value)).collect()
            }
            Self::Derived(text) => format!("; default: {text}"),
            _ => String::new(),
        }
    }
}

impl fmt::Display for Default {
    /// Writes the default with its exceptions; nothing if the key must be given, or a preset has the value.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Self::Derived(text) = self {
            return f.write_str(text);
        }
        if let Some(value) = self.value() {
            write!(f, "{value}")?;
        }
        if let Self::Of(_, exceptions) = self {
            for exception in *exceptions {
                write!(f, ", {}: {}", exception.when, exception.value)?;
            }
        }
        Ok(())
    }
}
