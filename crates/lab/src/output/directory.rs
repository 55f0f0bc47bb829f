//! Atomic output of a directory: it appears complete or not at all.

use super::error::{Existing, OutputError};
use super::file::{folder_of, without_draft};
use super::locked_folder::LockedFolder;
use super::names::{DRAWS_FORMAT, FORMAT, MANIFEST};
use crate::export::qlog;
use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

#[cfg(test)]
mod tests;

/// Beginning of the names of drafts.
const DRAFT: &str = ".hopline-draft-";

/// A directory of results that is being written.
#[derive(Debug)]
pub struct Directory {
    target: PathBuf,
    existing: Existing,
    /// Draft; removed with everything in it unless it becomes the target.
    draft: LockedFolder,
    /// Folders on the path to it that were missing. Dropped after the draft.
    folders: Folders,
}

/// Folders that were made, the outermost first. They are removed on drop unless they should stay.
#[derive(Debug, Default)]
struct Folders(Vec<PathBuf>);

impl Folders {
    /// Makes `folder` and its missing parents.
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

    fn keep(mut self) {
        self.0.clear();
    }
}

impl Drop for Folders {
    fn drop(&mut self) {
        // A folder that another process has put files into meanwhile stays.
        let _ = self.0.iter().rev().try_for_each(fs::remove_dir);
    }
}

impl Directory {
    /// Prepares to write `target`. Drafts of processes that were killed are removed from its folder.
    ///
    /// # Errors
    ///
    /// If it exists and may not be replaced, another process prepares it, or its folder can neither be made nor written.
    pub fn create(target: &Path, existing: Existing) -> Result<Self, OutputError> {
        // A target such as `results/` or `.` has no name to put a draft beside.
        let target = target.components().collect::<PathBuf>();
        check(&target, existing)?;
        let parent = folder_of(&target);
        let folders = Folders::make(parent)?;
        let name = target.file_name().unwrap_or(target.as_os_str());
        let draft = LockedFolder::create_for(parent, DRAFT, name).map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => OutputError::InUse { target: target.clone() },
            _ => OutputError::at(&target)(without_draft(error)),
        })?;
        Ok(Self { target, existing, draft, folders })
    }

    /// Writes one file through `content`.
    ///
    /// # Errors
    ///
    /// Errors of the file system.
    pub fn write(
        &self,
        name: &str,
        content: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>,
    ) -> Result<(), OutputError> {
        let mut file = self.file(name)?;
        content(&mut file).and_then(|()| file.flush()).map_err(|error| self.file_error(name, error))
    }

    /// Returns the error of a file of this directory.
    pub(super) fn file_error(&self, name: &str, error: io::Error) -> OutputError {
        OutputError::Io { path: self.place(name), error }
    }

    /// Returns the path that a file will have when the directory is finished.
    #[must_use]
    pub fn place(&self, name: &str) -> PathBuf {
        self.target.join(name)
    }

    /// Returns the folder in which the files are, until they are moved to their place.
    #[must_use]
    pub fn draft(&self) -> &Path {
        self.draft.path()
    }

    /// Opens a file for incremental output. The caller must flush the writer.
    ///
    /// # Errors
    ///
    /// Errors of the file system.
    pub fn file(&self, name: &str) -> Result<BufWriter<File>, OutputError> {
        let file = File::create(self.draft.path().join(name));
        file.map(BufWriter::new).map_err(|error| self.file_error(name, error))
    }

    /// Returns a function that appends text to a file of this directory, which it creates. No file stays open between
    /// calls.
    pub(super) fn appender(&self) -> impl FnMut(&str, &[u8]) -> io::Result<()> + 'static {
        let draft = self.draft.path().to_owned();
        move |name, text| OpenOptions::new().create(true).append(true).open(draft.join(name))?.write_all(text)
    }

    /// Moves the directory to its place.
    ///
    /// # Errors
    ///
    /// [`OutputError::Appeared`] if something else has taken the place meanwhile: the directory gets a free name beside it.
    /// Otherwise errors of the file system; nothing is left behind then.
    pub fn finish(self) -> Result<(), OutputError> {
        // Temporary directories are private; results should have the usual permissions.
        open_up(self.draft.path()).map_err(OutputError::at(&self.target))?;
        if check(&self.target, self.existing).is_err() {
            return Err(self.finish_beside());
        }
        if self.target.exists() {
            self.draft.replace(&self.target, exchange).map_err(OutputError::at(&self.target))
        } else {
            fs::rename(self.draft.path(), &self.target).map_err(OutputError::at(&self.target))?;
            self.folders.keep();
            Ok(())
        }
    }

    /// Moves the directory to a free name beside its place, which something else has taken.
    fn finish_beside(self) -> OutputError {
        let kept = names_beside(&self.target).next().expect("names with numbers are endless");
        match fs::rename(self.draft.path(), &kept) {
            Ok(()) => {
                self.folders.keep();
                OutputError::Appeared { target: self.target, kept }
            }
            Err(error) => OutputError::Io { path: kept, error },
        }
    }
}

/// Returns free names beside a directory, from `NAME-1` on.
fn names_beside(target: &Path) -> impl Iterator<Item = PathBuf> {
    let name = target.file_name().unwrap_or(target.as_os_str()).to_owned();
    let parent = folder_of(target).to_owned();
    let numbered = move |number: u32| {
        let mut name = name.clone();
        name.push(format!("-{number}"));
        parent.join(name)
    };
    (1..).map(numbered).filter(|path| fs::symlink_metadata(path).is_err())
}

/// Checks that `target` is a directory, or can become one.
///
/// # Errors
/// If there is a file in its place, or in that of one of its parents.
pub fn check_directory(target: &Path) -> Result<(), OutputError> {
    let there = target.ancestors().find(|path| path.exists());
    match there.filter(|path| !path.is_dir()) {
        None => Ok(()),
        Some(file) => {
            Err(OutputError::WrongKind { target: file.to_owned(), why: "it is a file; -o takes a directory" })
        }
    }
}

/// Returns an error unless `target` may be written.
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
    let entries = fs::read_dir(target).map_err(OutputError::at(target))?;
    let is_log = |name: &OsStr| name.to_str().is_some_and(|name| name.ends_with(qlog::EXTENSION));
    // An empty directory, or one of logs.
    if entries.map_while(Result::ok).all(|entry| is_log(&entry.file_name())) {
        return Ok(());
    }
    let manifest = fs::read(target.join(MANIFEST)).ok();
    let manifest = manifest.and_then(|text| serde_json::from_slice::<serde_json::Value>(&text).ok());
    match manifest {
        Some(manifest) if [FORMAT, DRAWS_FORMAT].iter().any(|format| manifest["format"] == *format) => Ok(()),
        _ => Err(foreign("it holds files but no manifest.json of hopline")),
    }
}

#[cfg(unix)]
fn open_up(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    // The permissions of a new directory, 0777 less the umask, cannot be read without changing the umask; a
    // probe in the file system shows them.
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

/// Exchanges two directories, in one step where the system supports it, otherwise by way of a third name.
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
