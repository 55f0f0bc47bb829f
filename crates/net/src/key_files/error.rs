//! What is wrong with a file of keys.

use hopline_secure::keys::{Mistake, PRIVATE, Quote};
use std::io;
use std::path::{Path, PathBuf};
use zeroize::Zeroizing;

/// A file of keys that cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("{}: {problem}", path.display())]
pub struct Error {
    /// The file, or the folder that it is in.
    pub path: PathBuf,
    /// Why.
    pub problem: Problem,
}

/// Why a file of keys cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Problem {
    /// It is not such a file, or others may do with it what they must not.
    #[error("{what}; {help}")]
    Unfit {
        /// Of what kind that is.
        kind: io::ErrorKind,
        /// What is wrong.
        what: String,
        /// What would be right.
        help: String,
    },
    /// It cannot be read.
    #[error("{0}")]
    Reading(io::Error),
    /// It cannot be written.
    #[error("cannot be written: {0}")]
    Writing(io::Error),
    /// What it says is wrong.
    #[error("{}", first(mistakes, text))]
    Mistakes {
        /// What and where; at least one.
        mistakes: Vec<Mistake>,
        /// All that it says.
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
        let problem = Problem::Unfit { kind, what: what.into(), help: help.into() };
        Self { path: path.to_owned(), problem }
    }

    pub(super) fn reading(path: &Path, error: io::Error) -> Self {
        Self { path: path.to_owned(), problem: Problem::Reading(error) }
    }

    pub(super) fn writing(path: &Path, error: io::Error) -> Self {
        Self { path: path.to_owned(), problem: Problem::Writing(error) }
    }

    pub(super) fn mistakes(path: &Path, text: Zeroizing<String>, mistakes: Vec<Mistake>) -> Self {
        Self { path: path.to_owned(), problem: Problem::Mistakes { mistakes, text } }
    }
}

impl Error {
    /// Returns what is wrong and where, and what would be right, if that is known.
    #[must_use]
    pub fn parts(&self) -> (String, Option<String>) {
        let name = self.path.display();
        match &self.problem {
            Problem::Unfit { what, help, .. } => (format!("{name}: {what}"), Some(help.clone())),
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
    /// Of what kind it is, for programs.
    #[must_use]
    pub fn kind(&self) -> io::ErrorKind {
        match self {
            Self::Unfit { kind, .. } => *kind,
            Self::Reading(error) | Self::Writing(error) => error.kind(),
            Self::Mistakes { .. } => io::ErrorKind::InvalidInput,
        }
    }

    /// What the file says, if people may be shown the lines that are wrong, with those around them: where one may hold a secret, none is.
    #[must_use]
    pub fn shown(&self) -> Option<&str> {
        match self {
            Self::Mistakes { mistakes, text }
                if !text.contains(PRIVATE) && mistakes.iter().all(|m| m.quote == Quote::Shown) =>
            {
                Some(text)
            }
            _ => None,
        }
    }
}

/// Where the first mistake is, and what.
fn first(mistakes: &[Mistake], text: &str) -> String {
    let told = |mistake: &Mistake| {
        let (line, column) = mistake.line_column(text);
        format!("line {line}, column {column}: {mistake}")
    };
    mistakes.first().map(told).unwrap_or_default()
}
