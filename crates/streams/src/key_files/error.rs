//! Errors of key files.

use hopline_secure::keys::{KeyFileError, PRIVATE, Visibility};
use std::io;
use std::path::{Path, PathBuf};
use zeroize::Zeroizing;

/// A key file that cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("{}: {problem}", path.display())]
pub struct Error {
    /// The file, or its folder.
    pub path: PathBuf,
    /// Reason.
    pub problem: Problem,
}

/// Reason that a key file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Problem {
    /// It is not such a file, or other users have too many permissions.
    #[error("{what}; {help}")]
    Unsuitable {
        /// Kind of the error, for programs.
        kind: io::ErrorKind,
        /// Description of the fault.
        what: String,
        /// Description of the remedy.
        help: String,
    },
    /// It cannot be read.
    #[error("{0}")]
    Reading(io::Error),
    /// It cannot be written.
    #[error("cannot be written: {0}")]
    Writing(io::Error),
    /// Its content is wrong.
    #[error("{}", first(mistakes, text))]
    Mistakes {
        /// Faults and their positions; at least one.
        mistakes: Vec<KeyFileError>,
        /// Content of the file.
        text: Zeroizing<String>,
    },
}

impl Error {
    pub(super) fn of(
        path: &Path,
        kind: io::ErrorKind,
        what: impl Into<String>,
        help: impl Into<String>,
    ) -> Self {
        let problem = Problem::Unsuitable { kind, what: what.into(), help: help.into() };
        Self { path: path.to_owned(), problem }
    }

    pub(super) fn reading(path: &Path, error: io::Error) -> Self {
        Self { path: path.to_owned(), problem: Problem::Reading(error) }
    }

    pub(super) fn writing(path: &Path, error: io::Error) -> Self {
        Self { path: path.to_owned(), problem: Problem::Writing(error) }
    }

    pub(super) fn mistakes(path: &Path, text: Zeroizing<String>, mistakes: Vec<KeyFileError>) -> Self {
        Self { path: path.to_owned(), problem: Problem::Mistakes { mistakes, text } }
    }
}

impl Error {
    /// Returns the faults with their positions, and the remedies, if known.
    #[must_use]
    pub fn parts(&self) -> (String, Option<String>) {
        let name = self.path.display();
        match &self.problem {
            Problem::Unsuitable { what, help, .. } => (format!("{name}: {what}"), Some(help.clone())),
            Problem::Mistakes { mistakes, text } => match mistakes.first() {
                Some(mistake) => {
                    let (line, column) = mistake.line_column(text);
                    (format!("{name}:{line}:{column}: {}", mistake.message), Some(mistake.help.clone()))
                }
                None => (name.to_string(), None),
            },
            Problem::Reading(_) | Problem::Writing(_) => (self.to_string(), None),
        }
    }
}

impl Problem {
    /// Returns the kind of the error, for programs.
    #[must_use]
    pub fn kind(&self) -> io::ErrorKind {
        match self {
            Self::Unsuitable { kind, .. } => *kind,
            Self::Reading(error) | Self::Writing(error) => error.kind(),
            Self::Mistakes { .. } => io::ErrorKind::InvalidInput,
        }
    }

    /// Returns the content of the file, if users may see the faulty lines and those around them. `None` if one may hold a
    /// secret.
    #[must_use]
    pub fn shown(&self) -> Option<&str> {
        match self {
            Self::Mistakes { mistakes, text }
                if !text.contains(PRIVATE) && mistakes.iter().all(|m| m.visibility == Visibility::Shown) =>
            {
                Some(text)
            }
            _ => None,
        }
    }
}

/// Returns the first fault with its position.
fn first(mistakes: &[KeyFileError], text: &str) -> String {
    let told = |mistake: &KeyFileError| {
        let (line, column) = mistake.line_column(text);
        format!("line {line}, column {column}: {mistake}")
    };
    mistakes.first().map(told).unwrap_or_default()
}
