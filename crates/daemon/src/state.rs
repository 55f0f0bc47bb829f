//! The folder where a daemon keeps what others must find: its lock, its socket, its list of rules.

use hopline_net::accounts::Account;
use rustix::fs::{FlockOperation, flock};
use rustix::io::{FdFlags, fcntl_setfd};
use std::fs::{self, DirBuilder, File, Permissions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt, lchown};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

/// The folder, and the right to be the daemon of its name. The right goes with the process, however it ends.
#[derive(Debug)]
pub(crate) struct State {
    folder: PathBuf,
    name: String,
    lock: File,
}

/// How often it is seen whether who cleans up is done, and how often that is done.
const INTERVAL: Duration = Duration::from_millis(20);
const LOOKS: u32 = 150;

/// Why there is no right.
#[derive(Debug, thiserror::Error)]
pub enum StateError {
    /// Another process has it.
    #[error(
        "a daemon called \"{name}\" is running already, as process {process}; give this one another name = \"…\""
    )]
    Taken {
        /// What both are called.
        name: String,
        /// The other one.
        process: String,
    },
    /// The folder cannot be used.
    #[error("{0}: {1}")]
    Folder(String, io::Error),
    /// This user may not use the folder.
    #[error(
        "{0}: permission denied for user {1}: `run`, `setup` and `undo` need root (sudo hopline proxy …), or a state_dir of this user"
    )]
    Denied(String, u32),
    /// The folder belongs to another user.
    #[error(
        "{0} belongs to user {1}, to whose folders the daemon could not write: `user` in the file names that user, or state_dir another folder"
    )]
    Foreign(String, u32),
    /// Other users may change the files of the folder.
    #[error(
        "{0}: other users may write to this folder (mode {1:04o}), so that rules could be undone that no daemon made: chmod go-w {0}, or another state_dir"
    )]
    Writable(String, u32),
}

impl State {
    /// Takes the right. If the daemon that had it has gone and is being cleaned up after, waits for that.
    pub(crate) fn take(folder: &Path, name: &str) -> Result<Self, StateError> {
        make(folder)?;
        let mut state = Self::await_cleaner(folder, name)?;
        let written = state.lock.set_len(0).and_then(|()| writeln!(state.lock, "{}", std::process::id()));
        written.map_err(|e| failed(&state.path_of_lock(), e))?;
        Ok(state)
    }

    fn await_cleaner(folder: &Path, name: &str) -> Result<Self, StateError> {
        for _ in 0..LOOKS {
            match Self::hold(folder, name) {
                Err(StateError::Taken { process, .. }) if !is_alive(&process) => thread::sleep(INTERVAL),
                done => return done,
            }
        }
        Self::hold(folder, name)
    }

    /// Takes the right for a moment, to clean up: the file goes on to name the daemon that had it.
    pub(crate) fn hold(folder: &Path, name: &str) -> Result<Self, StateError> {
        let path = folder.join(format!("{name}.lock"));
        // Not cut short: until the lock is ours the file says whose it is.
        // A user that may open it may hold the lock, and keep the daemon from starting.
        let mut options = File::options();
        options.create(true).truncate(false).read(true).write(true).mode(0o600);
        let mut lock = options.open(&path).map_err(|e| failed(&path, e))?;
        if flock(&lock, FlockOperation::NonBlockingLockExclusive).is_err() {
            let mut process = String::new();
            let _ = lock.read_to_string(&mut process);
            let process = process.trim();
            let process = if process.is_empty() { "?" } else { process };
            return Err(StateError::Taken { name: name.to_owned(), process: process.to_owned() });
        }
        Ok(Self { folder: folder.to_owned(), name: name.to_owned(), lock })
    }

    /// Has programs that are started from now on share the right until they end: whoever cleans up after us waits for one that was making
    /// a rule when we were killed.
    pub(crate) fn share(&self) -> io::Result<()> {
        Ok(fcntl_setfd(&self.lock, FdFlags::empty())?)
    }

    /// Gives the folder, and what is in it of this daemon, to a user.
    pub(crate) fn give_to(&self, account: Account) -> Result<(), StateError> {
        lchown(&self.folder, Some(account.user), Some(account.group)).map_err(|e| failed(&self.folder, e))?;
        self.give_files_to(account)
    }

    fn give_files_to(&self, account: Account) -> Result<(), StateError> {
        let files = ["lock", "rules"].map(|kind| self.folder.join(format!("{}.{kind}", self.name)));
        for path in files {
            match lchown(&path, Some(account.user), Some(account.group)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(&path, error)),
                _ => {}
            }
        }
        Ok(())
    }

    /// Leaves to the owner of the folder what root has made in it, as by `undo`: the daemon of that user could not open it.
    fn leave_to_owner(&self) {
        let Ok(found) = fs::metadata(&self.folder) else { return };
        let account = Account { user: found.uid(), group: found.gid() };
        // A daemon has given up the right to do so, and makes files of the owner anyway.
        if rustix::process::geteuid().is_root() && account.user != 0 {
            let _ = self.give_files_to(account);
        }
    }

    /// Checks that a daemon could write to the folder: as root, too, it gives up the right to write to that of another user.
    pub(crate) fn is_writable(&self) -> Result<(), StateError> {
        let owner = fs::metadata(&self.folder).map_err(|e| failed(&self.folder, e))?.uid();
        if owner == rustix::process::geteuid().as_raw() {
            return Ok(());
        }
        Err(StateError::Foreign(self.folder.display().to_string(), owner))
    }

    /// The folder.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Where the daemon says how it is.
    pub(crate) fn socket(&self) -> PathBuf {
        socket(&self.folder, &self.name)
    }

    fn path_of_lock(&self) -> PathBuf {
        self.folder.join(format!("{}.lock", self.name))
    }
}

/// The socket goes with the right: nobody answers there any more. The lock's file stays, or two could have the right to two files.
impl Drop for State {
    fn drop(&mut self) {
        let _ = fs::remove_file(self.socket());
        self.leave_to_owner();
    }
}

/// Where the daemon `name` says how it is.
pub(crate) fn socket(folder: &Path, name: &str) -> PathBuf {
    folder.join(format!("{name}.sock"))
}

/// Makes the folder, if it is not there: all users may look for the socket in it, and the owner alone may write, whatever the umask.
fn make(folder: &Path) -> Result<(), StateError> {
    if !folder.is_dir() {
        let made = DirBuilder::new().recursive(true).mode(0o755).create(folder);
        made.and_then(|()| fs::set_permissions(folder, Permissions::from_mode(0o755)))
            .map_err(|e| failed(folder, e))?;
    }
    let mode = fs::metadata(folder).map_err(|e| failed(folder, e))?.mode() & 0o7777;
    if mode & 0o022 != 0 {
        return Err(StateError::Writable(folder.display().to_string(), mode));
    }
    Ok(())
}

fn is_alive(process: &str) -> bool {
    // What has ended and is not yet buried has a folder, and nothing that it runs. What may not be looked at is alive.
    fs::read_link(format!("/proc/{process}/exe"))
        .map_or_else(|error| error.kind() != io::ErrorKind::NotFound, |_| true)
}

fn failed(path: &Path, error: io::Error) -> StateError {
    let path = path.display().to_string();
    match error.kind() {
        io::ErrorKind::PermissionDenied => StateError::Denied(path, rustix::process::geteuid().as_raw()),
        _ => StateError::Folder(path, error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().mode() & 0o7777
    }

    #[test]
    fn a_folder_that_other_users_may_write_to_is_refused_with_the_command_that_mends_it() {
        let folder = tempfile::tempdir().unwrap();
        for open in [0o777, 0o775, 0o1777] {
            fs::set_permissions(folder.path(), Permissions::from_mode(open)).unwrap();
            let said = State::take(folder.path(), "hopline").unwrap_err().to_string();
            assert!(said.contains(&format!("chmod go-w {}", folder.path().display())), "{said}");
        }
        fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).unwrap();
        assert!(State::take(folder.path(), "hopline").is_ok());
    }

    #[test]
    fn what_root_leaves_in_the_folder_of_a_user_belongs_to_that_user() {
        let folder = tempfile::tempdir().unwrap();
        if rustix::process::geteuid().is_root() {
            lchown(folder.path(), Some(65534), Some(65534)).unwrap();
        }
        let owner = fs::metadata(folder.path()).unwrap().uid();
        fs::write(folder.path().join("hopline.rules"), "").unwrap();
        drop(State::take(folder.path(), "hopline").unwrap());
        for name in ["hopline.lock", "hopline.rules"] {
            assert_eq!(fs::metadata(folder.path().join(name)).unwrap().uid(), owner, "{name}");
        }
    }

    #[test]
    fn the_folder_is_open_to_look_into_and_the_lock_is_its_owners() {
        let folder = tempfile::tempdir().unwrap();
        let inner = folder.path().join("a/b");
        let _state = State::take(&inner, "hopline").unwrap();
        assert_eq!((mode(&inner), mode(&inner.join("hopline.lock"))), (0o755, 0o600));
    }
}
