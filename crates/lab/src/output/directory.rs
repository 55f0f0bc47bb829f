//! A directory that appears whole or not at all.

use super::file::{folder_of, without_draft};
use super::{FORMAT, MANIFEST};
use std::fmt;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use tempfile::TempDir;

#[cfg(test)]
mod tests;

/// What to do with a directory that is there already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Existing {
    /// Leave it alone and refuse.
    Refuse,
    /// Replace it, if it holds results of an earlier run or nothing.
    Replace,
}

/// A directory of results on its way.
#[derive(Debug)]
pub struct Directory {
    target: PathBuf,
    existing: Existing,
    /// Removed with everything in it unless it becomes the target.
    draft: TempDir,
    /// Folders on the way to it that were not there. Behind the draft, which goes first.
    folders: Folders,
}

/// Folders that were made, the outermost first. They are removed again unless they are to stay.
#[derive(Debug, Default)]
struct Folders(Vec<PathBuf>);

impl Folders {
    /// Makes `folder` and those around it, as far as they are missing.
    fn make(folder: &Path) -> Result<Self, OutputError> {
        let missing: Vec<&Path> =
            folder.ancestors().take_while(|f| !f.as_os_str().is_empty() && !f.exists()).collect();
        let mut made = Self::default();
        for folder in missing.into_iter().rev() {
            fs::create_dir(folder).map_err(OutputError::at(folder))?;
            made.0.push(folder.to_owned());
        }
        Ok(made)
    }

    fn stay(mut self) {
        self.0.clear();
    }
}

impl Drop for Folders {
    fn drop(&mut self) {
        // Who has put something into one of them meanwhile keeps it.
        let _ = self.0.iter().rev().try_for_each(fs::remove_dir);
    }
}

/// Why results could not be kept.
#[derive(Debug)]
pub enum OutputError {
    /// Something is there already, and it may not be replaced.
    Exists {
        /// The directory.
        target: PathBuf,
    },
    /// What is there does not look like results, so it is not replaced even when asked to.
    Foreign {
        /// The directory.
        target: PathBuf,
        /// What it has or lacks.
        why: String,
    },
    /// A file is in the place of a directory, or a directory in that of a file.
    WrongKind {
        /// The file or directory.
        target: PathBuf,
        /// Kind of the target, and the kind that the option takes.
        why: &'static str,
    },
    /// The file system refused.
    Io {
        /// The file or directory.
        path: PathBuf,
        /// What it said.
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
            Self::Foreign { target, why } => {
                write!(f, "{} is not replaced, even with --force: {why}", target.display())
            }
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

impl Directory {
    /// Prepares to write `target`.
    ///
    /// # Errors
    ///
    /// It exists and may not be replaced, or the folder that it is in can neither be made nor written.
    pub fn create(target: &Path, existing: Existing) -> Result<Self, OutputError> {
        // A target such as `results/` or `.` has no name to put a draft beside.
        let target = target.components().collect::<PathBuf>();
        check(&target, existing)?;
        let parent = folder_of(&target);
        let folders = Folders::make(parent)?;
        let draft = tempfile::Builder::new().prefix(".hopline-").tempdir_in(parent);
        let draft = draft.map_err(|error| OutputError::at(&target)(without_draft(error)))?;
        Ok(Self { target, existing, draft, folders })
    }

    /// Writes one file through `content`.
    ///
    /// # Errors
    ///
    /// Whatever the file system says.
    pub fn write(
        &self,
        name: &str,
        content: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>,
    ) -> Result<(), OutputError> {
        let mut file = self.file(name)?;
        content(&mut file).and_then(|()| file.flush()).map_err(|error| self.refused(name, error))
    }

    /// The error of a file of this directory.
    pub(super) fn refused(&self, name: &str, error: io::Error) -> OutputError {
        OutputError::Io { path: self.target.join(name), error }
    }

    /// Opens a file to be written bit by bit. The writer is to be flushed.
    ///
    /// # Errors
    ///
    /// Whatever the file system says.
    pub fn file(&self, name: &str) -> Result<BufWriter<File>, OutputError> {
        let file = File::create(self.draft.path().join(name));
        file.map(BufWriter::new).map_err(|error| self.refused(name, error))
    }

    /// Puts the directory in its place.
    ///
    /// # Errors
    ///
    /// Something has appeared there meanwhile, or the file system refuses; nothing is left behind then.
    pub fn finish(self) -> Result<(), OutputError> {
        check(&self.target, self.existing)?;
        // Directories of temporary files are private; results are as open as any other file.
        open_up(self.draft.path()).map_err(OutputError::at(&self.target))?;
        if self.target.exists() {
            // What was there takes the draft's place, and is removed with it.
            exchange(self.draft.path(), &self.target).map_err(OutputError::at(&self.target))
        } else {
            fs::rename(self.draft.path(), &self.target).map_err(OutputError::at(&self.target))?;
            let _moved_away = self.draft.keep();
            self.folders.stay();
            Ok(())
        }
    }
}

/// Checks that `target` is a directory, or can become one.
///
/// # Errors
/// There is a file in its place, or in that of a folder on the way to it.
pub fn check_directory(target: &Path) -> Result<(), OutputError> {
    let there = target.ancestors().find(|path| path.exists());
    match there.filter(|path| !path.is_dir()) {
        None => Ok(()),
        Some(file) => {
            Err(OutputError::WrongKind { target: file.to_owned(), why: "it is a file; -o takes a directory" })
        }
    }
}

/// Whether `target` may be written.
fn check(target: &Path, existing: Existing) -> Result<(), OutputError> {
    check_directory(target)?;
    if fs::symlink_metadata(target).is_err() {
        return Ok(());
    }
    let foreign = |why: &str| OutputError::Foreign { target: target.to_owned(), why: why.to_owned() };
    if existing == Existing::Refuse {
        return Err(OutputError::Exists { target: target.to_owned() });
    }
    if fs::symlink_metadata(target).is_ok_and(|m| !m.is_dir()) {
        return Err(foreign("it is not a directory"));
    }
    let mut entries = fs::read_dir(target).map_err(OutputError::at(target))?;
    if entries.next().is_none() {
        return Ok(());
    }
    let manifest = fs::read(target.join(MANIFEST)).ok();
    let manifest = manifest.and_then(|text| serde_json::from_slice::<serde_json::Value>(&text).ok());
    match manifest {
        Some(manifest) if manifest["format"] == FORMAT => Ok(()),
        _ => Err(foreign("it holds files but no manifest.json of hopline")),
    }
}

#[cfg(unix)]
fn open_up(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    // What a new directory gets, 0777 less the umask, is not known without changing it; ask the file system.
    let probe = path.join(".mode");
    fs::create_dir(&probe)?;
    let mode = fs::metadata(&probe)?.permissions().mode();
    fs::remove_dir(&probe)?;
    fs::set_permissions(path, fs::Permissions::from_mode(mode))
}

#[cfg(not(unix))]
fn open_up(_path: &Path) -> io::Result<()> {
    Ok(())
}

/// Exchanges two directories in one step where the system can, otherwise by way of a third name.
fn exchange(draft: &Path, target: &Path) -> io::Result<()> {
    #[cfg(target_os = "linux")]
    {
        use rustix::fs::{CWD, RenameFlags, renameat_with};
        if renameat_with(CWD, draft, CWD, target, RenameFlags::EXCHANGE).is_ok() {
            return Ok(());
        }
    }
    let aside = draft.with_extension("old");
    fs::rename(target, &aside)?;
    if let Err(error) = fs::rename(draft, target) {
        fs::rename(&aside, target)?;
        return Err(error);
    }
    fs::rename(&aside, draft)
}
