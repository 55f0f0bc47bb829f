//! Key files of [TPA-wide](crate::wide): their location, permissions and content.
//!
//! Before the content of a file is trusted, its owner and permissions are checked, as ssh does: no other user may read a
//! secret or change any file.
//!
//! ```
//! use hopline_streams::key_files::{KeyInFile, add_peer, load_key, load_peers, store_key};
//! use hopline_streams::wide::{Credentials, PrivateKey, Trust};
//!
//! # let folder = tempfile::tempdir()?;
//! # let [key, peers] = ["own.key", "known.peers"].map(|name| folder.path().join(name));
//! store_key(&key, &PrivateKey::new([1; 32]))?; // From the system's generator, not like this.
//! add_peer(&peers, &"server".parse()?, &PrivateKey::new([2; 32]).public())?;
//!
//! let KeyInFile::Private(private) = load_key(&key)? else { panic!("it has a shared key") };
//! let trusted = load_peers(&peers)?.peers().iter().map(|peer| peer.key).collect();
//! let credentials = Credentials::Keys { private, trust: Trust::Only(trusted) };
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! | file | idea |
//! |---|---|
//! | `checks` | type, owner and permissions of a file |
//! | `reader` | the user that reads, and commands that make a file fit |
//! | `error` | faults of a file |

mod checks;
mod error;
mod reader;

pub use self::error::{Error, Problem};

use self::checks::{FileRequest, Protection};
use self::reader::shell_word;
use hopline_secure::keys::{
    Check, FileKind, KeyFileError, KnownPeers, Name, private_key, private_key_file, secret, shared_key,
};
use hopline_secure::{PreSharedKey, PrivateKey, PublicKey};
use rustix::fs::FlockOperation;
use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use zeroize::Zeroizing;

/// A file of one key.
#[derive(Debug)]
pub enum KeyInFile {
    /// A private key.
    Private(PrivateKey),
    /// A secret that both peers share.
    Shared(PreSharedKey),
}

/// Returns the path of the user's file called `name`, existing or not: in `hopline` below `XDG_CONFIG_HOME`, else below
/// `.config` of `HOME`. `None` if neither variable is set.
#[must_use]
pub fn of_user(name: &str) -> Option<PathBuf> {
    let folder =
        |variable: &str| std::env::var_os(variable).map(PathBuf::from).filter(|path| path.is_absolute());
    let settings = folder("XDG_CONFIG_HOME").or_else(|| folder("HOME").map(|home| home.join(".config")))?;
    Some(settings.join("hopline").join(name))
}

/// Reads the file of a private or a shared key, which no other user may read.
///
/// # Errors
/// A fault of the file or of its content.
pub fn load_key(path: &Path) -> Result<KeyInFile, Error> {
    let made = "`hopline key new FILE` makes a private key";
    let text = checks::read(FileRequest { path, protection: Protection::Secret, instruction: made })?;
    let key = match FileKind::of(&text) {
        FileKind::Private => private_key(&text).map(KeyInFile::Private),
        FileKind::Shared => shared_key(&text).map(KeyInFile::Shared),
    };
    key.map_err(|mistake| Error::mistakes(path, text, vec![mistake]))
}

/// Reads a file with a secret of `N` bytes in hexadecimal digits, which no other user may read. `made`: the command that
/// makes such a file, repeated in error messages.
///
/// # Errors
/// A fault of the file or of its content.
pub fn load_secret<const N: usize>(path: &Path, made: &str) -> Result<Zeroizing<[u8; N]>, Error> {
    let digits = 2 * N;
    let help = format!("a key is {digits} hexadecimal digits; make a key: {made}");
    let text = checks::read(FileRequest { path, protection: Protection::Secret, instruction: &help })?;
    secret(&text).map_err(|mistake| Error::mistakes(path, text, vec![KeyFileError { help, ..mistake }]))
}

/// Returns the command that writes a new secret of `bytes` bytes to the file `path`, which its owner alone may read.
#[must_use]
pub fn new_secret(path: &Path, bytes: usize) -> String {
    let path = shell_word(path);
    format!("(umask 077; head -c {bytes} /dev/urandom | od -An -v -tx1 | tr -d ' \\n' > {path})")
}

/// Returns `command` with its output redirected to the file `path`, which only its owner may read.
#[must_use]
pub fn into_secret(command: &str, path: &Path) -> String {
    format!("(umask 077; {command} > {})", shell_word(path))
}

/// Reads the text of a file that no other user may read. `made`: instruction for making the file, repeated in error
/// messages.
///
/// # Errors
/// A fault of the file.
pub fn load_text(path: &Path, made: &str) -> Result<Zeroizing<String>, Error> {
    checks::read(FileRequest { path, protection: Protection::Secret, instruction: made })
}

/// Reads a file of known peers, which no other user may write.
///
/// # Errors
/// A fault of the file or of its content.
pub fn load_peers(path: &Path) -> Result<KnownPeers, Error> {
    let text = read_peers(path)?;
    KnownPeers::parse(&text).map_err(|mistakes| Error::mistakes(path, text, mistakes))
}

fn read_peers(path: &Path) -> Result<Zeroizing<String>, Error> {
    let made = "in each line a name and a public key, as `hopline key show` prints it";
    checks::read(FileRequest { path, protection: Protection::Integrity, instruction: made })
}

/// Writes a new private key, and creates missing folders. An existing file is not changed.
///
/// # Errors
/// The file exists; other users may write to its folder; an error of the system.
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
    // The umask may have removed more permissions than intended.
    let written = file
        .set_permissions(fs::Permissions::from_mode(0o600))
        .and_then(|()| file.write_all(private_key_file(key).as_bytes()))
        .and_then(|()| file.sync_all());
    written.map_err(|error| {
        // Remove an incomplete file, so that the next attempt can succeed.
        let _ = fs::remove_file(path);
        Error::writing(path, error)
    })
}

/// Adds `name` with `key` to a file of known peers, which is created with its folders if it does not exist. Several
/// processes may do so at the same time: each sees the additions of the rest, and readers see the file before or after a
/// change.
///
/// # Errors
/// `name` has another key; a fault of the file or of its content; a file or folder that other users may write to; an
/// error of the system.
pub fn add_peer(path: &Path, name: &Name, key: &PublicKey) -> Result<(), Error> {
    make_folder(path)?;
    // A symbolic link is kept.
    let path = &fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let folder = checks::folder(path);
    // The lock excludes other processes while the descriptor is open.
    let lock = File::open(folder).map_err(|error| Error::reading(folder, error))?;
    rustix::fs::flock(&lock, FlockOperation::LockExclusive)
        .map_err(|error| Error::writing(folder, error.into()))?;
    let before = if path.exists() { read_peers(path)? } else { Zeroizing::default() };
    let known =
        KnownPeers::parse(&before).map_err(|mistakes| Error::mistakes(path, before.clone(), mistakes))?;
    match known.check(name, key) {
        Check::Known => return Ok(()),
        Check::Changed(peer) => {
            let what = format!("`{name}` is known by another key since, in line {}", peer.line);
            return Err(Error::of(
                path,
                io::ErrorKind::AlreadyExists,
                what,
                "compare the fingerprints of both",
            ));
        }
        Check::Unknown => {}
    }
    let gap = if before.is_empty() || before.ends_with('\n') { "" } else { "\n" };
    let text = format!("{}{gap}{}", *before, KnownPeers::line(name, key));
    replace(path, &text).and_then(|()| lock.sync_all()).map_err(|error| Error::writing(path, error))
}

/// Replaces a file atomically, with the same permissions.
fn replace(path: &Path, text: &str) -> io::Result<()> {
    let mode = fs::metadata(path).map_or(0o600, |found| found.mode() & 0o777);
    let mut name = OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    name.push(".new");
    let new = path.with_file_name(name);
    // A killed process may have left a temporary file.
    let _ = fs::remove_file(&new);
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&new)?;
    let written = file
        .write_all(text.as_bytes())
        .and_then(|()| file.set_permissions(fs::Permissions::from_mode(mode)))
        .and_then(|()| file.sync_all())
        .and_then(|()| fs::rename(&new, path));
    written.inspect_err(|_| {
        // If this fails, the next attempt removes it.
        let _ = fs::remove_file(&new);
    })
}

fn make_folder(path: &Path) -> Result<(), Error> {
    let folder = checks::folder(path);
    let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(folder);
    made.map_err(|error| Error::writing(path, error))?;
    checks::check_folder(folder)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    fn key(byte: u8) -> PublicKey {
        PrivateKey::new([byte; 32]).public()
    }

    #[test]
    fn peers_added_concurrently_are_each_present_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("known_peers");
        fs::write(&path, "# mine\n").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        thread::scope(|scope| {
            for number in 1..9 {
                let path = &path;
                scope.spawn(move || {
                    add_peer(path, &"drone".parse().unwrap(), &key(100)).unwrap();
                    add_peer(path, &format!("peer-{number}").parse().unwrap(), &key(number)).unwrap();
                    load_peers(path).unwrap();
                });
            }
        });
        assert_eq!(load_peers(&path).unwrap().peers().len(), 9);
        assert!(fs::read_to_string(&path).unwrap().starts_with("# mine\n"));
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o640);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "nothing else is left");
    }

    #[test]
    fn a_peer_added_meanwhile_with_another_key_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("known_peers");
        let name: Name = "drone".parse().unwrap();
        add_peer(&path, &name, &key(1)).unwrap();
        let error = add_peer(&path, &name, &key(2)).unwrap_err().to_string();
        assert!(error.contains("`drone` is known by another key since, in line 1"), "{error}");
        assert_eq!(load_peers(&path).unwrap().get(&name).unwrap().key, key(1));
    }

    #[test]
    fn a_symbolic_link_to_known_peers_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        let [real, link] = ["real", "link"].map(|name| folder.path().join(name));
        fs::write(&real, "").unwrap();
        std::os::unix::fs::symlink(&real, &link).unwrap();
        add_peer(&link, &"drone".parse().unwrap(), &key(1)).unwrap();
        assert!(link.is_symlink());
        assert_eq!(load_peers(&real).unwrap().peers().len(), 1);
    }
}
