//! Papers that are built into hopline.

use crate::built_in::unpack;
use crate::claims::FILE;
use hopline_config::source::{Problem, nearest};
use include_dir::{Dir, include_dir};
use std::fs;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// The repository's `papers/` at the time of the build.
static BUILT_IN: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/../../papers");

/// A folder of papers.
#[derive(Debug)]
pub struct Papers {
    folder: PathBuf,
    /// Folder of the unpacked built-in papers; removed on drop.
    _unpacked: Option<TempDir>,
}

impl Papers {
    /// Opens the papers in `folder`, or the built-in ones.
    ///
    /// # Errors
    ///
    /// If they cannot be unpacked.
    pub fn open(folder: Option<&Path>) -> Result<Self, Problem> {
        if let Some(folder) = folder {
            return Ok(Self { folder: folder.to_owned(), _unpacked: None });
        }
        let unpacked = unpack(&BUILT_IN, "papers")?;
        Ok(Self { folder: unpacked.path().to_owned(), _unpacked: Some(unpacked) })
    }

    /// Returns the names of the papers.
    ///
    /// # Errors
    ///
    /// If the folder cannot be read.
    pub fn names(&self) -> Result<Vec<String>, Problem> {
        let unreadable = |e| Problem::new(format!("{}: {e}", self.folder.display()));
        let entries = fs::read_dir(&self.folder).map_err(unreadable)?;
        let folders = entries.flatten().filter(|entry| entry.path().join(FILE).exists());
        let mut names: Vec<String> =
            folders.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        Ok(names)
    }

    /// Returns the folder of a paper.
    ///
    /// # Errors
    ///
    /// If there is no such paper.
    pub fn folder(&self, paper: &str) -> Result<PathBuf, Problem> {
        let names = self.names()?;
        if names.iter().any(|name| name == paper) {
            return Ok(self.folder.join(paper));
        }
        let papers = format!("the papers are {}", names.join(", "));
        let help = match nearest(paper, names.iter().map(String::as_str)) {
            Some(near) => format!("did you mean `{near}`? {papers}"),
            None => papers,
        };
        Err(Problem::new(format!("there is no paper `{paper}`")).help(help))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_paper_is_answered_with_the_nearest_name_and_the_list() {
        let papers = Papers::open(None).unwrap();
        let refused = |name: &str| papers.folder(name).unwrap_err().to_string();
        assert!(refused("snopo").contains("did you mean `snoop`?"), "{}", refused("snopo"));
        let unlike = refused("reno-1990");
        assert!(
            unlike.contains("the papers are coexistence, door, dproxy") && !unlike.contains("did you mean"),
            "{unlike}"
        );
    }
}
