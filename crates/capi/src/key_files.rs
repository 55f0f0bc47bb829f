//! Files of keys. Who may read and write them is looked at as `hopline` does, before anything in them is believed.

use crate::error::{Error, Result};
use hopline_secure::keys::{FileKind, KnownPeers, Mistake, Name, PublicKey, private_key, shared_key};
use hopline_secure::{PreSharedKey, PrivateKey};
use rustix::fs::OFlags;
use std::fs::{self, File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use zeroize::Zeroizing;

/// The largest file of keys: thousands of peers.
const LARGEST: u64 = 1 << 20;

/// What must hold for a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kept {
    /// Nobody else may read it.
    Secret,
    /// Nobody else may change it.
    Unchanged,
}

/// Where the user's file called `name` is.
pub(crate) fn of_user(name: &str) -> Result<PathBuf> {
    let folder =
        |variable: &str| std::env::var_os(variable).map(PathBuf::from).filter(|path| path.is_absolute());
    let settings = folder("XDG_CONFIG_HOME").or_else(|| folder("HOME").map(|home| home.join(".config")));
    let settings = settings.ok_or_else(|| {
        Error::new(libc::ENOENT, "neither XDG_CONFIG_HOME nor HOME says where the user's keys are")
    })?;
    Ok(settings.join("hopline").join(name))
}

/// Reads a private key.
pub(crate) fn load_private(path: &Path) -> Result<PrivateKey> {
    let text = read(path, Kept::Secret)?;
    if FileKind::of(&text) == FileKind::Shared {
        return Err(
            Error::new(libc::EINVAL, "no private key, as `hopline key new` makes it").of(path.display())
        );
    }
    private_key(&text).map_err(|mistake| wrong(path, &text, &mistake))
}

/// Reads a shared key.
pub(crate) fn load_shared(path: &Path) -> Result<PreSharedKey> {
    let text = read(path, Kept::Secret)?;
    shared_key(&text).map_err(|mistake| wrong(path, &text, &mistake))
}

/// Reads a file of known peers.
pub(crate) fn load_peers(path: &Path) -> Result<KnownPeers> {
    let text = read(path, Kept::Unchanged)?;
    KnownPeers::parse(&text).map_err(|mistakes| match mistakes.first() {
        Some(first) => wrong(path, &text, first),
        None => Error::new(libc::EINVAL, "no file of known peers").of(path.display()),
    })
}

/// Adds a line to a file of known peers, which is made if it is not there.
pub(crate) fn add_peer(path: &Path, name: &Name, key: &PublicKey) -> Result<()> {
    let folder = folder(path);
    fs::DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(|e| failed(folder, e))?;
    check_folder(folder)?;
    let before = if path.exists() { read(path, Kept::Unchanged)?.to_string() } else { String::new() };
    let gap = if before.is_empty() || before.ends_with('\n') { "" } else { "\n" };
    let line = format!("{gap}{}", KnownPeers::line(name, key));
    let open = OpenOptions::new().append(true).create(true).mode(0o600).open(path);
    let written = open.and_then(|mut file| file.write_all(line.as_bytes()).and_then(|()| file.sync_all()));
    written.map_err(|e| failed(path, e))
}

/// The text of a file for which `kept` holds.
fn read(path: &Path, kept: Kept) -> Result<Zeroizing<String>> {
    // Without waiting for who might write to a pipe.
    let flags = OFlags::NONBLOCK.bits().cast_signed();
    let open = File::options().read(true).custom_flags(flags).open(path);
    let file = open.map_err(|e| failed(path, e))?;
    // Of the file that is read, whatever its name means by then.
    let found = file.metadata().map_err(|e| failed(path, e))?;
    check(&found, kept).map_err(|error| error.of(path.display()))?;
    check_folder(folder(path))?;
    let mut text = Zeroizing::new(String::with_capacity(found.len().min(LARGEST) as usize + 1));
    file.take(LARGEST + 1).read_to_string(&mut text).map_err(|e| failed(path, e))?;
    if text.len() as u64 > LARGEST {
        return Err(Error::new(libc::EFBIG, "no file of keys: larger than 1 MiB").of(path.display()));
    }
    Ok(text)
}

fn check(found: &fs::Metadata, kept: Kept) -> Result<()> {
    let refuse = |message: String| Err(Error::new(libc::EACCES, message));
    if !found.is_file() {
        return Err(Error::new(libc::EINVAL, "no regular file"));
    }
    let mode = found.mode() & 0o7777;
    if kept == Kept::Secret && mode & 0o077 != 0 {
        return refuse(format!(
            "others may read or write it (mode {mode:04o}), so that it is no secret; chmod 600, and if others had access, a new key"
        ));
    }
    if mode & 0o002 != 0 {
        return refuse(format!(
            "anybody may write to it (mode {mode:04o}), so that it may say anything; chmod o-w"
        ));
    }
    let (owner, me) = (found.uid(), rustix::process::geteuid().as_raw());
    if owner != me && owner != 0 {
        return refuse(format!("it belongs to user {owner}, who may change it, and not to {me} or root"));
    }
    Ok(())
}

/// Whoever may write to a folder may put another file in the place of one in it.
fn check_folder(folder: &Path) -> Result<()> {
    let found = folder.metadata().map_err(|e| failed(folder, e))?;
    if found.mode() & 0o002 != 0 {
        let what = "anybody may write to this folder, so that a key in it may be anybody's; chmod o-w";
        return Err(Error::new(libc::EACCES, what).of(folder.display()));
    }
    Ok(())
}

fn folder(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    }
}

fn failed(path: &Path, error: std::io::Error) -> Error {
    Error::from(error).of(path.display())
}

/// Where a mistake is; the line itself may hold a secret.
fn wrong(path: &Path, text: &str, mistake: &Mistake) -> Error {
    let (line, column) = mistake.line_column(text);
    Error::new(libc::EINVAL, format!("{}:{line}:{column}: {mistake}", path.display()))
}
