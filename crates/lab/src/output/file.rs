//! Atomic output of a file: it appears complete or not at all.

use super::error::{Existing, OutputError};
use std::fs;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use tempfile::NamedTempFile;

/// Writes `target` through `content`: to a draft beside it, which is renamed when it is complete.
///
/// # Errors
///
/// If it exists and may not be replaced, is a directory, or the file system refuses; nothing is left behind
/// then.
pub fn write_file(
    target: &Path,
    existing: Existing,
    content: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<(), OutputError> {
    check(target, existing)?;
    let written = match existing {
        Existing::Replace => replace_file(target, content),
        Existing::Refuse => draft(target, content)
            .and_then(|draft| draft.persist_noclobber(target).map_err(|e| e.error))
            .map(drop),
    };
    written.map_err(|error| match error.kind() {
        // Another process was faster since the check.
        io::ErrorKind::AlreadyExists => OutputError::Exists { target: target.to_owned() },
        _ => OutputError::at(target)(error),
    })
}

/// Checks that a file can be made beside `target`, so that it can be written later.
///
/// # Errors
///
/// Errors of the file system.
pub fn check_file(target: &Path) -> Result<(), OutputError> {
    empty_draft(target).map(drop).map_err(OutputError::at(target))
}

/// Writes `target` in the same way, replacing any existing file.
pub(crate) fn replace_file(
    target: &Path,
    content: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> io::Result<()> {
    draft(target, content)?.persist(target).map_err(|e| e.error)?;
    Ok(())
}

/// Creates a file beside `target` with the whole content.
fn draft(target: &Path, content: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<NamedTempFile> {
    let mut file = BufWriter::new(empty_draft(target)?);
    content(&mut file)?;
    file.into_inner().map_err(io::IntoInnerError::into_error)
}

fn check(target: &Path, existing: Existing) -> Result<(), OutputError> {
    match fs::symlink_metadata(target) {
        Err(_) => Ok(()),
        Ok(found) if found.is_dir() => Err(OutputError::WrongKind {
            target: target.to_owned(),
            why: "it is a directory; -o takes a file",
        }),
        Ok(_) if existing == Existing::Refuse => Err(OutputError::Exists { target: target.to_owned() }),
        Ok(found) if found.is_file() => Ok(()),
        Ok(_) => {
            let why = "it is not a regular file".to_owned();
            Err(OutputError::Foreign { target: target.to_owned(), why })
        }
    }
}

/// Creates an empty file beside `target`, with the usual permissions: temporary files are private by default.
pub(super) fn empty_draft(target: &Path) -> io::Result<NamedTempFile> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(".hopline-");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        builder.permissions(fs::Permissions::from_mode(0o666)); // less the umask
    }
    builder.tempfile_in(folder_of(target)).map_err(without_draft)
}

/// Removes the draft's name from an error, as it means nothing to users. tempfile appends it to the words of
/// the system, and gives those in no other way.
pub(super) fn without_draft(error: io::Error) -> io::Error {
    let text = error.to_string();
    match text.split_once(" at path \"") {
        Some((words, _draft)) => io::Error::new(error.kind(), words),
        None => error,
    }
}

/// Returns the folder that `target` is or will be in.
pub(super) fn folder_of(target: &Path) -> &Path {
    match target.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]
mod tests {
    use super::*;

    fn write(target: &Path, existing: Existing, text: &str) -> Result<(), OutputError> {
        write_file(target, existing, |file| file.write_all(text.as_bytes()))
    }

    #[test]
    fn a_file_is_replaced_only_on_request() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("f");
        write(&target, Existing::Refuse, "one").unwrap();
        let refused = write(&target, Existing::Refuse, "two").unwrap_err();
        assert!(matches!(refused, OutputError::Exists { .. }), "{refused}");
        assert_eq!(fs::read_to_string(&target).unwrap(), "one");
        write(&target, Existing::Replace, "two").unwrap();
        assert_eq!(fs::read_to_string(&target).unwrap(), "two");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_failed_write_keeps_the_existing_file() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("f");
        write(&target, Existing::Refuse, "one").unwrap();
        let failed = write_file(&target, Existing::Replace, |file| {
            file.write_all(b"half")?;
            Err(io::Error::other("disk full"))
        });
        assert!(failed.unwrap_err().to_string().ends_with("disk full"));
        assert_eq!(fs::read_to_string(&target).unwrap(), "one");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_directory_is_not_replaced_by_a_file() {
        let folder = tempfile::tempdir().unwrap();
        let refused = write(folder.path(), Existing::Replace, "x").unwrap_err();
        assert!(matches!(refused, OutputError::WrongKind { .. }), "{refused}");
        let missing = write(&folder.path().join("no/such"), Existing::Refuse, "x").unwrap_err();
        assert!(matches!(missing, OutputError::Io { .. }), "{missing}");
        assert!(
            missing.to_string().ends_with("no/such: No such file or directory (os error 2)"),
            "{missing}"
        );
    }

    #[cfg(unix)]
    #[test]
    fn a_file_has_the_default_permissions() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let mode = |name: &str| fs::metadata(folder.path().join(name)).unwrap().permissions().mode();
        fs::write(folder.path().join("other"), "").unwrap();
        write(&folder.path().join("f"), Existing::Refuse, "").unwrap();
        assert_eq!(mode("f"), mode("other"));
    }
}
