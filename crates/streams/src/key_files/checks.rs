//! Checks before the content of a key file is trusted: type, owner and permissions of the file and of its folder.

use super::error::Error;
use super::reader::{Access, Reader, shell_word};
use std::fs::{self, File, FileType, Metadata};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::Path;
use zeroize::{Zeroize, Zeroizing};

/// Maximum bytes of a key file: room for thousands of peers.
const MAX_FILE: u64 = 1 << 20;

/// Required protection of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Protection {
    /// No other user may read it.
    Secret,
    /// No other user may change it.
    Integrity,
}

/// A file that is to be read.
#[derive(Clone, Copy, Debug)]
pub(super) struct FileRequest<'a> {
    pub(super) path: &'a Path,
    pub(super) protection: Protection,
    /// Instruction for making a file of this kind.
    pub(super) instruction: &'a str,
}

/// Returns the text of a file, if its type, owner and permissions are right.
pub(super) fn read(wanted: FileRequest<'_>) -> Result<Zeroizing<String>, Error> {
    let FileRequest { path, protection: kept, instruction: made } = wanted;
    let reader = Reader::current();
    // Do not wait for the writer of a FIFO, and do not make a terminal the controlling one.
    let flags = libc::O_NONBLOCK | libc::O_NOCTTY;
    let opened = File::options().read(true).custom_flags(flags).open(path);
    let file = opened.map_err(|error| open_error(wanted, &reader, error))?;
    // The metadata are those of the opened file, even if its name is reused meanwhile.
    let found = file.metadata().map_err(|error| Error::reading(path, error))?;
    if !found.is_file() {
        return Err(missing_error(wanted, kind(found.file_type())));
    }
    check(path, &found, kept, &reader)?;
    check_folders(path)?;
    let mut bytes = Zeroizing::new(Vec::with_capacity(found.len().min(MAX_FILE) as usize + 1));
    file.take(MAX_FILE + 1).read_to_end(&mut bytes).map_err(|error| Error::reading(path, error))?;
    if bytes.len() as u64 > MAX_FILE {
        return Err(Error::of(path, ErrorKind::FileTooLarge, "larger than 1 MiB", made));
    }
    text(path, std::mem::take(&mut *bytes))
        .map_err(|what| Error::of(path, ErrorKind::InvalidInput, what, made))
}

/// Returns the folder of a file.
pub(super) fn folder(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    }
}

/// Checks the permissions of a folder: a user that may write to it may replace the files in it.
pub(super) fn check_folder(folder: &Path) -> Result<(), Error> {
    let found = folder.metadata().map_err(|error| Error::reading(folder, error))?;
    if let Some((writers, bits)) = writers(found.mode()) {
        let what = format!("{writers} may write to this folder, so that a key in it may be of any of them");
        let help = format!("chmod {bits} {}, or another folder", shell_word(folder));
        return Err(Error::of(folder, ErrorKind::PermissionDenied, what, help));
    }
    Ok(())
}

/// Checks the folder of a file, and, where the file is a link, that of its target.
fn check_folders(path: &Path) -> Result<(), Error> {
    check_folder(folder(path))?;
    match fs::canonicalize(path) {
        Ok(target) => check_folder(folder(&target)),
        Err(error) => Err(Error::reading(path, error)),
    }
}

fn check(path: &Path, found: &Metadata, kept: Protection, reader: &Reader) -> Result<(), Error> {
    let refused = |what: String, help: String| Err(Error::of(path, ErrorKind::PermissionDenied, what, help));
    let access = Access::of(found);
    let Access { owner, mode, .. } = access;
    if !reader.trusts(owner) {
        let what = format!("belongs to user {owner}, which may change it");
        return refused(what, format!("if it says what it should: {}", reader.chown_command(path)));
    }
    // For credentials, systemd gives the unit's user read access by an access control list, and the mode shows the list's
    // mask as that of the group.
    if kept == Protection::Secret && !is_credential(path) && reader.excess_permissions(access) != 0 {
        let what = format!("other users may read or write it (mode {mode:04o}), so that it is no secret");
        let help = reader.chmod_command(path, access);
        return refused(what, format!("{help}; if other users had access, make a new key"));
    }
    if let Some((writers, bits)) = writers(mode) {
        let what = format!("{writers} may write to it (mode {mode:04o}), so that it may say anything");
        return refused(what, format!("look at what it says, then chmod {bits} {}", shell_word(path)));
    }
    Ok(())
}

/// Returns whether the service manager made a file for this process alone (systemd.exec(5), `LoadCredential=`).
fn is_credential(path: &Path) -> bool {
    let folder = std::env::var_os("CREDENTIALS_DIRECTORY");
    folder.is_some_and(|folder| Path::new(&folder).is_absolute() && path.starts_with(folder))
}

/// Returns users other than the owner that may write by this mode, and the change of mode that forbids it.
const fn writers(mode: u32) -> Option<(&'static str, &'static str)> {
    match (mode & 0o020 != 0, mode & 0o002 != 0) {
        (_, true) => Some(("all users", "go-w")),
        (true, false) => Some(("users of its group", "g-w")),
        (false, false) => None,
    }
}

fn open_error(wanted: FileRequest<'_>, reader: &Reader, error: io::Error) -> Error {
    let FileRequest { path, instruction: made, .. } = wanted;
    let of = |what: &str, help: &str| Error::of(path, error.kind(), what, help);
    match (error.kind(), path.metadata()) {
        (ErrorKind::NotFound, _) => of("there is no such file", made),
        // A socket cannot be opened.
        (_, Ok(found)) if !found.is_file() && !found.is_dir() => {
            missing_error(wanted, kind(found.file_type()))
        }
        (ErrorKind::PermissionDenied, Ok(found)) => {
            let Access { owner, mode, .. } = Access::of(&found);
            let what = format!("user {} may not read it (owner {owner}, mode {mode:04o})", reader.user);
            of(&what, &reader.access_remedy(path, owner))
        }
        (ErrorKind::PermissionDenied, Err(_)) => {
            let what = format!("user {} may not enter a folder on the way to it", reader.user);
            of(&what, "`namei -l FILE` shows the owner and permissions of each folder")
        }
        _ => Error::reading(path, error),
    }
}

fn missing_error(wanted: FileRequest<'_>, kind: &str) -> Error {
    let what = format!("{kind}, and no regular file");
    // The instruction for making a file would overwrite the existing one.
    let help = "name the file itself, or one that is not there yet: then it is said how to make it";
    Error::of(wanted.path, ErrorKind::InvalidInput, what, help)
}

fn kind(found: FileType) -> &'static str {
    match found {
        found if found.is_dir() => "a directory",
        found if found.is_fifo() => "a FIFO",
        found if found.is_socket() => "a socket",
        _ => "a device",
    }
}

/// Maximum bytes of a file that may be a key in binary form, if it is not text.
const MAX_KEY: usize = 64;

/// Returns bytes as text, or a description of binary ones.
fn text(path: &Path, bytes: Vec<u8>) -> Result<Zeroizing<String>, String> {
    String::from_utf8(bytes).map(Zeroizing::new).map_err(|error| {
        let mut bytes = error.into_bytes();
        let what = match bytes.as_slice() {
            [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => "not UTF-8 text, but UTF-16".to_owned(),
            bytes if bytes.len() <= MAX_KEY => format!(
                "not UTF-8 text: {} bytes that are no text; `od -An -v -tx1 {} | tr -d ' \\n'` prints them as digits",
                bytes.len(),
                shell_word(path)
            ),
            bytes => format!("not UTF-8 text: {} bytes that are no text", bytes.len()),
        };
        bytes.zeroize();
        what
    })
}
