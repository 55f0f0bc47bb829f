//! File of an HTML report.

use super::OutputError;
use super::file::{check_file, replace_file};
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// Output file of a report. It replaces an earlier report, and no other file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReportFile {
    path: PathBuf,
}

/// Mark among the first bytes of every report.
const REPORT_MARK: &str = "<meta name=\"generator\" content=\"hopline";
/// Number of bytes that are searched for the mark.
const SEARCHED_BYTES: u64 = 2048;

impl ReportFile {
    /// Creates an output file at `path`.
    #[must_use]
    pub const fn new(path: PathBuf) -> Self {
        Self { path }
    }

    /// Returns its path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Checks that a report may be written there.
    ///
    /// # Errors
    ///
    /// If another file is there, or no file can be made there.
    pub fn check(&self) -> Result<(), OutputError> {
        match std::fs::metadata(&self.path) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => check_file(&self.path),
            Err(error) => Err(OutputError::at(&self.path)(error)),
            Ok(found) if found.is_dir() => Err(OutputError::WrongKind {
                target: self.path.clone(),
                why: "it is a directory; --report takes a file",
            }),
            Ok(_) if self.is_report() => check_file(&self.path),
            Ok(_) => Err(OutputError::Foreign {
                target: self.path.clone(),
                why: "it is not a report of hopline; choose another name with --report".to_owned(),
            }),
        }
    }

    /// Writes the report atomically: on an error the earlier file remains.
    ///
    /// # Errors
    ///
    /// Errors of [`ReportFile::check`] and of the file system.
    pub fn write(&self, html: &str) -> Result<(), OutputError> {
        self.check()?;
        replace_file(&self.path, |file| file.write_all(html.as_bytes())).map_err(OutputError::at(&self.path))
    }

    fn is_report(&self) -> bool {
        let mut head = Vec::new();
        let read = File::open(&self.path).and_then(|file| file.take(SEARCHED_BYTES).read_to_end(&mut head));
        read.is_ok() && String::from_utf8_lossy(&head).contains(REPORT_MARK)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "<!doctype html><meta name=\"generator\" content=\"hopline 0.1.0\">";

    #[test]
    fn a_report_replaces_only_a_report() {
        let folder = tempfile::tempdir().unwrap();
        let file = ReportFile::new(folder.path().join("a.html"));
        file.check().unwrap();
        assert!(!file.path().exists(), "checking leaves nothing behind");
        file.write(PAGE).unwrap();
        file.write(&format!("{PAGE}2")).unwrap();
        assert_eq!(std::fs::read_to_string(file.path()).unwrap(), format!("{PAGE}2"));
        std::fs::write(file.path(), "<p>my own</p>").unwrap();
        let error = file.check().unwrap_err();
        assert!(matches!(error, OutputError::Foreign { .. }), "{error}");
        assert!(file.write(PAGE).is_err());
        assert_eq!(std::fs::read_to_string(file.path()).unwrap(), "<p>my own</p>");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "no drafts are left");
    }

    #[test]
    fn a_folder_in_its_place_or_a_missing_folder_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let error = ReportFile::new(folder.path().into()).check().unwrap_err();
        assert!(error.to_string().contains("it is a directory; --report takes a file"), "{error}");
        let error = ReportFile::new("/no/such/folder/a.html".into()).check().unwrap_err();
        assert!(error.to_string().contains("/no/such/folder"), "{error}");
    }
}
