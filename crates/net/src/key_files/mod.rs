//! Files of keys of [TPA-wide](crate::wide): where they are, who may read and write them, what is in them.
//!
//! Before anything in a file is believed it is looked at as ssh does: whose it is, and whether others may read a secret or change anything.
//!
//! | file | idea |
//! |---|---|
//! | `guard` | who may read and write a file |
//! | `error` | what is wrong with one |

mod error;
mod guard;

pub use self::error::{Error, Problem};

use self::guard::Kept;
use hopline_secure::keys::{FileKind, KnownPeers, Name, private_key, private_key_file, shared_key};
use hopline_secure::{PreSharedKey, PrivateKey, PublicKey};
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// A file of one key.
#[derive(Debug)]
pub enum KeyInFile {
    /// A private key.
    Private(PrivateKey),
    /// A secret that both ends have.
    Shared(PreSharedKey),
}

/// Where the user's file called `name` is, there or not: in `hopline` below `XDG_CONFIG_HOME`, else below `.config` of `HOME`. `None` if neither
/// says where that is.
#[must_use]
pub fn of_user(name: &str) -> Option<PathBuf> {
    let folder =
        |variable: &str| std::env::var_os(variable).map(PathBuf::from).filter(|path| path.is_absolute());
    let settings = folder("XDG_CONFIG_HOME").or_else(|| folder("HOME").map(|home| home.join(".config")))?;
    Some(settings.join("hopline").join(name))
}

/// Reads a file of a private or of a shared key, which nobody else may read.
///
/// # Errors
/// What is wrong with the file, or in it.
pub fn load_key(path: &Path) -> Result<KeyInFile, Error> {
    let text = guard::read(path, Kept::Secret)?;
    let key = match FileKind::of(&text) {
        FileKind::Private => private_key(&text).map(KeyInFile::Private),
        FileKind::Shared => shared_key(&text).map(KeyInFile::Shared),
    };
    key.map_err(|mistake| Error::mistakes(path, text, vec![mistake]))
}

/// Reads a file of known peers, which nobody else may write.
///
/// # Errors
/// What is wrong with the file, or in it.
pub fn load_peers(path: &Path) -> Result<KnownPeers, Error> {
    let text = guard::read(path, Kept::Unchanged)?;
    KnownPeers::parse(&text).map_err(|mistakes| Error::mistakes(path, text, mistakes))
}

/// Writes a new private key, and makes the folders on the way. A file that is there is left as it is.
///
/// # Errors
/// A file that is there; a folder that anybody may write to; what the system says.
pub fn store_key(path: &Path, key: &PrivateKey) -> Result<(), Error> {
    make_folder(path)?;
    let mut file = match OpenOptions::new().write(true).create_new(true).mode(0o600).open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            let help = "name another one, or move it away; who knows its public key would not know a new one";
            return Err(Error::of(path, error.kind(), "there is a file already", help));
        }
        Err(error) => return Err(Error::writing(path, error)),
    };
    let written = file.write_all(private_key_file(key).as_bytes()).and_then(|()| file.sync_all());
    written.map_err(|error| {
        // Half a key is none, and the next try must not find it there.
        let _ = fs::remove_file(path);
        Error::writing(path, error)
    })
}

/// Adds a line to a file of known peers, which is made, with the folders on the way, if it is not there.
///
/// # Errors
/// A file or folder that others may write to; what the system says.
pub fn add_peer(path: &Path, name: &Name, key: &PublicKey) -> Result<(), Error> {
    make_folder(path)?;
    let before = if path.exists() { guard::read(path, Kept::Unchanged)?.to_string() } else { String::new() };
    let gap = if before.is_empty() || before.ends_with('\n') { "" } else { "\n" };
    let line = format!("{gap}{}", KnownPeers::line(name, key));
    let file = OpenOptions::new().append(true).create(true).mode(0o600).open(path);
    let written = file.and_then(|mut file| file.write_all(line.as_bytes()).and_then(|()| file.sync_all()));
    written.map_err(|error| Error::writing(path, error))
}

fn make_folder(path: &Path) -> Result<(), Error> {
    let folder = guard::folder(path);
    let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(folder);
    made.map_err(|error| Error::writing(path, error))?;
    guard::check_folder(folder)
}
