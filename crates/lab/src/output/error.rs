//! Errors of output, and the handling of an existing target.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// Handling of an existing directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Existing {
    /// Refuse, and leave it alone.
    Refuse,
    /// Replace it, if it holds results of an earlier run or nothing.
    Replace,
}

/// Error of output.
#[derive(Debug)]
pub enum OutputError {
    /// The target exists, and may not be replaced.
    Exists {
        /// The directory.
        target: PathBuf,
    },
    /// Another process is writing the target.
    InUse {
        /// The directory.
        target: PathBuf,
    },
    /// The target does not look like results, so it is not replaced even on request.
    Foreign {
        /// The directory.
        target: PathBuf,
        /// Unexpected or missing content.
        why: String,
    },
    /// The target has appeared since the start, or may no longer be replaced. The results have another name.
    Appeared {
        /// The directory.
        target: PathBuf,
        /// Directory of the results.
        kept: PathBuf,
    },
    /// The target is a file instead of a directory, or the other way round.
    WrongKind {
        /// The file or directory.
        target: PathBuf,
        /// Kind of the target, and the kind that the option takes.
        why: &'static str,
    },
    /// Error of the file system.
    Io {
        /// The file or directory.
        path: PathBuf,
        /// The error.
        error: io::Error,
    },
}

impl fmt::Display for OutputError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exists { target } => {
                write!(
                    f,
                    "{} exists and is not overwritten; choose another name, or add --force",
                    target.display()
                )
            }
            Self::InUse { target } => {
                let target = target.display();
                write!(
                    f,
                    "another process is writing {target}; choose another name, or wait until it has ended"
                )
            }
            Self::Foreign { target, why } => {
                write!(f, "{} is not replaced, even with --force: {why}", target.display())
            }
            Self::Appeared { target, kept } => write!(
                f,
                "{} has changed since the start and is not overwritten; the results are in {}",
                target.display(),
                kept.display()
            ),
            Self::WrongKind { target, why } => write!(f, "{}: {why}", target.display()),
            Self::Io { path, error } => write!(f, "cannot write {}: {error}", path.display()),
        }
    }
}

impl std::error::Error for OutputError {}

impl OutputError {
    pub(super) fn at(path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        |error| Self::Io { path, error }
    }
}
