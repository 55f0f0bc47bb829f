//! Who may read and write a file of keys: looked at as ssh does, before anything in it is believed.

use crate::problems::Failure;
use hopline_lab::Problem;
use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;
use zeroize::Zeroizing;

/// The largest file of keys: thousands of peers.
const LARGEST: u64 = 1 << 20;

/// What must hold for a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kept {
    /// Nobody else may read it.
    Secret,
    /// Nobody else may change it.
    Unchanged,
}

/// The text of a file for which `kept` holds.
pub(crate) fn read(path: &Path, kept: Kept) -> Result<Zeroizing<String>, Failure> {
    let name = path.display();
    // Without waiting for who might write to a pipe.
    let flags = rustix::fs::OFlags::NONBLOCK.bits();
    let opened = File::options().read(true).custom_flags(flags.cast_signed()).open(path);
    let file = opened.map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => missing(path, kept),
        _ => Problem::new(format!("{name}: {error}")),
    })?;
    // Of the file that is read, whatever its name means by then.
    let found = file.metadata().map_err(|error| Problem::new(format!("{name}: {error}")))?;
    check(path, &found, kept)?;
    check_folder(folder(path))?;
    let mut text = Zeroizing::new(String::with_capacity(found.len().min(LARGEST) as usize + 1));
    file.take(LARGEST + 1).read_to_string(&mut text).map_err(|error| match error.kind() {
        io::ErrorKind::InvalidData => {
            Problem::new(format!("{name}: not UTF-8 text")).help("files of keys are text")
        }
        _ => Problem::new(format!("{name}: {error}")),
    })?;
    if text.len() as u64 > LARGEST {
        return Err(Problem::new(format!("{name}: larger than 1 MiB")).help("name a file of keys").into());
    }
    Ok(text)
}

/// The folder that a file is in.
pub(crate) fn folder(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    }
}

/// Whoever may write to a folder may put another file in the place of one in it.
pub(crate) fn check_folder(folder: &Path) -> Result<(), Failure> {
    let name = folder.display();
    let found = folder.metadata().map_err(|error| Problem::new(format!("{name}: {error}")))?;
    if found.mode() & 0o002 != 0 {
        let what = format!("{name}: anybody may write to this folder, so that a key in it may be anybody's");
        return Err(Problem::new(what).help(format!("chmod o-w {name}, or another folder")).into());
    }
    Ok(())
}

fn check(path: &Path, found: &Metadata, kept: Kept) -> Result<(), Problem> {
    let name = path.display();
    if !found.is_file() {
        let kind = if found.is_dir() { "a directory" } else { "not a regular file" };
        return Err(Problem::new(format!("{name}: {kind}")).help("name a file of keys"));
    }
    let mode = found.mode() & 0o7777;
    if kept == Kept::Secret && mode & 0o077 != 0 {
        let what = format!("{name}: others may read or write it (mode {mode:04o}), so that it is no secret");
        return Err(
            Problem::new(what).help(format!("chmod 600 {name}; if others had access, make a new key"))
        );
    }
    if mode & 0o002 != 0 {
        let what = format!("{name}: anybody may write to it (mode {mode:04o}), so that it may say anything");
        return Err(Problem::new(what).help(format!("look at what it says, then chmod o-w {name}")));
    }
    let (owner, me) = (found.uid(), rustix::process::geteuid().as_raw());
    if owner != me && owner != 0 {
        let what = format!("{name}: belongs to user {owner}, who may change it");
        return Err(Problem::new(what).help(format!("a file of yours (user {me}) or of root")));
    }
    Ok(())
}

fn missing(path: &Path, kept: Kept) -> Problem {
    let help = match kept {
        Kept::Secret => "`hopline key new FILE` makes a private key",
        Kept::Unchanged => "in each line a name and a public key, as `hopline key show` prints it",
    };
    Problem::new(format!("{}: there is no such file", path.display())).help(help)
}
