//! Who may read and write a file of keys: looked at as ssh does, before anything in it is believed.

use super::error::Error;
use std::fs::{File, Metadata};
use std::io::{ErrorKind, Read};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;
use zeroize::Zeroizing;

/// The largest file of keys: thousands of peers.
const LARGEST: u64 = 1 << 20;

/// What must hold for a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kept {
    /// Nobody else may read it.
    Secret,
    /// Nobody else may change it.
    Unchanged,
}

/// The text of a file for which `kept` holds.
pub(super) fn read(path: &Path, kept: Kept) -> Result<Zeroizing<String>, Error> {
    // Without waiting for who might write to a pipe.
    let opened = File::options().read(true).custom_flags(libc::O_NONBLOCK).open(path);
    let file = opened.map_err(|error| match error.kind() {
        ErrorKind::NotFound => missing(path, kept),
        _ => Error::reading(path, error),
    })?;
    // Of the file that is read, whatever its name means by then.
    let found = file.metadata().map_err(|error| Error::reading(path, error))?;
    check(path, &found, kept)?;
    check_folder(folder(path))?;
    let mut text = Zeroizing::new(String::with_capacity(found.len().min(LARGEST) as usize + 1));
    file.take(LARGEST + 1).read_to_string(&mut text).map_err(|error| match error.kind() {
        ErrorKind::InvalidData => {
            Error::of(path, ErrorKind::InvalidInput, "not UTF-8 text", "files of keys are text")
        }
        _ => Error::reading(path, error),
    })?;
    if text.len() as u64 > LARGEST {
        return Err(Error::of(path, ErrorKind::FileTooLarge, "larger than 1 MiB", "name a file of keys"));
    }
    Ok(text)
}

/// The folder that a file is in.
pub(super) fn folder(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    }
}

/// A user that may write to a folder may put another file in the place of one in it.
pub(super) fn check_folder(folder: &Path) -> Result<(), Error> {
    let found = folder.metadata().map_err(|error| Error::reading(folder, error))?;
    if let Some((writers, bits)) = writers(found.mode()) {
        let what = format!("{writers} may write to this folder, so that a key in it may be of any of them");
        let help = format!("chmod {bits} {}, or another folder", folder.display());
        return Err(Error::of(folder, ErrorKind::PermissionDenied, what, help));
    }
    Ok(())
}

fn check(path: &Path, found: &Metadata, kept: Kept) -> Result<(), Error> {
    let name = path.display();
    if !found.is_file() {
        let kind = if found.is_dir() { "a directory" } else { "not a regular file" };
        return Err(Error::of(path, ErrorKind::InvalidInput, kind, "name a file of keys"));
    }
    let refused = |what: String, help: String| Err(Error::of(path, ErrorKind::PermissionDenied, what, help));
    let mode = found.mode() & 0o7777;
    if kept == Kept::Secret && mode & 0o077 != 0 {
        let what = format!("others may read or write it (mode {mode:04o}), so that it is no secret");
        return refused(what, format!("chmod 600 {name}; if others had access, make a new key"));
    }
    if let Some((writers, bits)) = writers(mode) {
        let what = format!("{writers} may write to it (mode {mode:04o}), so that it may say anything");
        return refused(what, format!("look at what it says, then chmod {bits} {name}"));
    }
    let (owner, me) = (found.uid(), rustix::process::geteuid().as_raw());
    if owner != me && owner != 0 {
        let what = format!("belongs to user {owner}, who may change it");
        return refused(what, format!("a file of yours (user {me}) or of root"));
    }
    Ok(())
}

/// Users beside the owner that a mode lets write, and what keeps them from it.
const fn writers(mode: u32) -> Option<(&'static str, &'static str)> {
    match (mode & 0o020 != 0, mode & 0o002 != 0) {
        (_, true) => Some(("all users", "go-w")),
        (true, false) => Some(("users of its group", "g-w")),
        (false, false) => None,
    }
}

fn missing(path: &Path, kept: Kept) -> Error {
    let help = match kept {
        Kept::Secret => "`hopline key new FILE` makes a private key",
        Kept::Unchanged => "in each line a name and a public key, as `hopline key show` prints it",
    };
    Error::of(path, ErrorKind::NotFound, "there is no such file", help)
}
