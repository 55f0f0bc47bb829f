//! The list of what was made, which outlives whoever made it.

use super::program::RuleError;
use super::steps::Made;
use std::fs;
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

/// A file that lists what was made, in its order; each line is written before its thing is made.
#[derive(Debug)]
pub(super) struct Journal {
    path: PathBuf,
}

impl Journal {
    /// That of a daemon.
    pub(super) fn of(owner: &str, folder: &Path) -> Self {
        Self { path: folder.join(format!("{owner}.rules")) }
    }

    /// Adds a line, and sees to it that it is there.
    pub(super) fn add(&self, made: &Made) -> Result<(), RuleError> {
        let line = line(made);
        let write = || {
            let mut file = fs::File::options().create(true).append(true).open(&self.path)?;
            file.write_all(line.as_bytes())?;
            file.sync_data()
        };
        write().map_err(|e| self.failed(e))
    }

    /// What it lists. A line that was not finished lists nothing that was made.
    pub(super) fn read(&self) -> Result<Vec<Made>, RuleError> {
        match fs::read_to_string(&self.path) {
            Ok(text) => Ok(text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(Vec::new()),
            Err(error) => Err(self.failed(error)),
        }
    }

    /// Has it list these and no others.
    pub(super) fn rewrite(&self, made: impl Iterator<Item = Made>) -> Result<(), RuleError> {
        let text: String = made.map(|made| line(&made)).collect();
        let other = self.path.with_extension("rules.new");
        fs::write(&other, text).and_then(|()| fs::rename(&other, &self.path)).map_err(|e| self.failed(e))
    }

    /// Removes it.
    pub(super) fn remove(&self) -> Result<(), RuleError> {
        match fs::remove_file(&self.path) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(self.failed(error)),
            _ => Ok(()),
        }
    }

    fn failed(&self, error: io::Error) -> RuleError {
        RuleError::Journal(self.path.display().to_string(), error)
    }
}

fn line(made: &Made) -> String {
    serde_json::to_string(made).expect("words and numbers") + "\n"
}
