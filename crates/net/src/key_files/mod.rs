//! Files of keys of [TPA-wide](crate::wide): where they are, who may read and write them, what is in them.
//!
//! Before anything in a file is believed it is looked at as ssh does: whose it is, and whether others may read a secret or change anything.
//!
//! | file | idea |
//! |---|---|
//! | `guard` | type, owner and permissions of a file |
//! | `reader` | the user that reads, and commands that make a file fit |
//! | `error` | what is wrong with one |

mod error;
mod guard;
mod reader;

pub use self::error::{Error, Problem};

use self::guard::{Kept, Wanted};
use self::reader::word;
use hopline_secure::keys::{
    Check, FileKind, KnownPeers, Mistake, Name, private_key, private_key_file, secret, shared_key,
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
/// Fault of the file, or in it.
pub fn load_key(path: &Path) -> Result<KeyInFile, Error> {
    let made = "`hopline key new FILE` makes a private key";
    let text = guard::read(Wanted { path, kept: Kept::Secret, made })?;
    let key = match FileKind::of(&text) {
        FileKind::Private => private_key(&text).map(KeyInFile::Private),
        FileKind::Shared => shared_key(&text).map(KeyInFile::Shared),
    };
    key.map_err(|mistake| Error::mistakes(path, text, vec![mistake]))
}

/// Reads a file of a secret of `N` bytes, as hexadecimal digits, which no other user may read. `made`: the command that makes such a file; the
/// errors repeat it.
///
/// # Errors
/// Fault of the file, or in it.
pub fn load_secret<const N: usize>(path: &Path, made: &str) -> Result<Zeroizing<[u8; N]>, Error> {
    let digits = 2 * N;
    let help = format!("a key is {digits} hexadecimal digits; make a key: {made}");
    let text = guard::read(Wanted { path, kept: Kept::Secret, made: &help })?;
    secret(&text).map_err(|mistake| Error::mistakes(path, text, vec![Mistake { help, ..mistake }]))
}

/// Returns the command that writes a new secret of `bytes` bytes to the file `path`, which its owner alone may read.
#[must_use]
pub fn new_secret(path: &Path, bytes: usize) -> String {
    let path = word(path);
    format!("(umask 077; head -c {bytes} /dev/urandom | od -An -v -tx1 | tr -d ' \\n' > {path})")
}

/// Returns `command`, with its output in the file `path`, which its owner alone may read.
#[must_use]
pub fn into_secret(command: &str, path: &Path) -> String {
    format!("(umask 077; {command} > {})", word(path))
}

/// Reads the text of a file that no other user may read. `made`: what would be right; the errors repeat it.
///
/// # Errors
/// Fault of the file.
pub fn load_text(path: &Path, made: &str) -> Result<Zeroizing<String>, Error> {
    guard::read(Wanted { path, kept: Kept::Secret, made })
}

/// Reads a file of known peers, which nobody else may write.
///
/// # Errors
/// Fault of the file, or in it.
pub fn load_peers(path: &Path) -> Result<KnownPeers, Error> {
    let text = read_peers(path)?;
    KnownPeers::parse(&text).map_err(|mistakes| Error::mistakes(path, text, mistakes))
}

fn read_peers(path: &Path) -> Result<Zeroizing<String>, Error> {
    let made = "in each line a name and a public key, as `hopline key show` prints it";
    guard::read(Wanted { path, kept: Kept::Unchanged, made })
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
    // The umask may have taken more than it should.
    let written = file
        .set_permissions(fs::Permissions::from_mode(0o600))
        .and_then(|()| file.write_all(private_key_file(key).as_bytes()))
        .and_then(|()| file.sync_all());
    written.map_err(|error| {
        // Half a key is none, and the next try must not find it there.
        let _ = fs::remove_file(path);
        Error::writing(path, error)
    })
}

/// Makes `name` known by `key` in a file of known peers, which is made, with the folders on the way, if it is not there. Several
/// processes may do so at the same time: each sees what the others have written, and readers see the file before or after.
///
/// # Errors
/// `name` is known by another key; what is wrong with the file, or in it; a file or folder that other users may write to; what the
/// system says.
pub fn add_peer(path: &Path, name: &Name, key: &PublicKey) -> Result<(), Error> {
    make_folder(path)?;
    // A link stays one.
    let path = &fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let folder = guard::folder(path);
    // As long as it is open, no other process is at it.
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

/// Writes a file anew and puts it in the place of the one that is there, with the same permissions.
fn replace(path: &Path, text: &str) -> io::Result<()> {
    let mode = fs::metadata(path).map_or(0o600, |found| found.mode() & 0o777);
    let mut name = OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    name.push(".new");
    let new = path.with_file_name(name);
    // What a process left that was killed here.
    let _ = fs::remove_file(&new);
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&new)?;
    let written = file
        .write_all(text.as_bytes())
        .and_then(|()| file.set_permissions(fs::Permissions::from_mode(mode)))
        .and_then(|()| file.sync_all())
        .and_then(|()| fs::rename(&new, path));
    written.inspect_err(|_| {
        // The next try removes it otherwise.
        let _ = fs::remove_file(&new);
    })
}

fn make_folder(path: &Path) -> Result<(), Error> {
    let folder = guard::folder(path);
    let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(folder);
    made.map_err(|error| Error::writing(path, error))?;
    guard::check_folder(folder)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    fn key(byte: u8) -> PublicKey {
        PrivateKey::new([byte; 32]).public()
    }

    #[test]
    fn peers_that_are_added_at_the_same_time_are_all_there_and_each_once() {
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
    fn a_peer_that_was_added_meanwhile_by_another_key_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("known_peers");
        let name: Name = "drone".parse().unwrap();
        add_peer(&path, &name, &key(1)).unwrap();
        let error = add_peer(&path, &name, &key(2)).unwrap_err().to_string();
        assert!(error.contains("`drone` is known by another key since, in line 1"), "{error}");
        assert_eq!(load_peers(&path).unwrap().get(&name).unwrap().key, key(1));
    }

    #[test]
    fn a_link_to_known_peers_stays_one() {
        let folder = tempfile::tempdir().unwrap();
        let [real, link] = ["real", "link"].map(|name| folder.path().join(name));
        fs::write(&real, "").unwrap();
        std::os::unix::fs::symlink(&real, &link).unwrap();
        add_peer(&link, &"drone".parse().unwrap(), &key(1)).unwrap();
        assert!(link.is_symlink());
        assert_eq!(load_peers(&real).unwrap().peers().len(), 1);
    }
}
