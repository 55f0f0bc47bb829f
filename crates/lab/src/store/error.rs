//! Errors of the storage of results.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// Error of the storage of results.
#[derive(Debug)]
pub enum StoreError {
    /// The directory does not hold an experiment.
    Foreign {
        /// The directory.
        path: PathBuf,
        /// Unexpected or missing content.
        why: String,
    },
    /// The directory holds results of another version of hopline.
    OtherVersion {
        /// The directory.
        path: PathBuf,
        /// The version.
        theirs: String,
    },
    /// The directory holds results of another plan.
    OtherPlan {
        /// The directory.
        path: PathBuf,
        /// The first difference.
        why: String,
    },
    /// This build of hopline does not reproduce the stored results.
    OtherBuild {
        /// The directory.
        path: PathBuf,
        /// The run with another result.
        run: String,
    },
    /// The directory holds more runs than requested.
    MoreRuns {
        /// The directory.
        path: PathBuf,
        /// Stored runs of each point.
        there: u64,
        /// Requested runs of each point.
        asked: u64,
    },
    /// The directory holds Parquet tables, and this build writes none.
    NeedsParquet {
        /// The directory.
        path: PathBuf,
    },
    /// Another process writes the directory.
    Busy {
        /// The directory.
        path: PathBuf,
    },
    /// A file is damaged.
    Damaged {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// Problem of the line.
        why: String,
    },
    /// Error of the file system.
    Io {
        /// The file or directory.
        path: PathBuf,
        /// The error.
        error: io::Error,
    },
}

impl StoreError {
    pub(super) fn io(path: &Path, error: io::Error) -> Self {
        Self::Io { path: path.to_owned(), error }
    }

    pub(super) fn foreign(path: &Path, why: &str) -> Self {
        Self::Foreign { path: path.to_owned(), why: why.to_owned() }
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Foreign { path, why } => {
                write!(f, "{} is not a directory of results: {why}; choose another name", path.display())
            }
            Self::OtherVersion { path, theirs } => {
                let ours = env!("CARGO_PKG_VERSION");
                write!(
                    f,
                    "{} holds results of hopline {theirs}, this is {ours}, and results of two versions are not mixed; \
                     choose another name, or add --force to begin anew",
                    path.display()
                )
            }
            Self::OtherPlan { path, why } => {
                write!(
                    f,
                    "{} holds results of another plan: {why}; choose another name, or add --force to begin anew",
                    path.display()
                )
            }
            Self::OtherBuild { path, run } => {
                write!(
                    f,
                    "{} holds results of another build of hopline: {run} has another fingerprint now, and results of \
                     two builds are not mixed; choose another name, or add --force to begin anew",
                    path.display()
                )
            }
            Self::MoreRuns { path, there, asked } => {
                write!(
                    f,
                    "{} holds {there} runs of each point, and {asked} are asked for; ask for {there} or more, or \
                     choose another name",
                    path.display()
                )
            }
            Self::NeedsParquet { path } => {
                write!(
                    f,
                    "{} holds Parquet tables, which this build of hopline does not write; `make build` makes one that \
                     does, or choose another name",
                    path.display()
                )
            }
            Self::Busy { path } => write!(f, "another hopline is writing {}", path.display()),
            Self::Damaged { path, line, why } => {
                write!(
                    f,
                    "{}, line {line} is damaged: {why}; restore the file, or remove that line",
                    path.display()
                )
            }
            Self::Io { path, error } => write!(f, "cannot read or write {}: {error}", path.display()),
        }
    }
}

impl std::error::Error for StoreError {}
