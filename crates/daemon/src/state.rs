//! Folder of a daemon's shared files: its lock, its socket, its journal of rules.

use crate::config::User;
use crate::folder::{Access, Folder, Unusable};
use hopline_linux::accounts::Account;
use rustix::fs::{FlockOperation, flock};
use rustix::io::{FdFlags, fcntl_setfd};
use rustix::process::geteuid;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

/// Folder, and lock of the daemon's name. The lock is released with the process, however it ends.
#[derive(Debug)]
pub(crate) struct State {
    folder: Folder,
    name: String,
    lock: File,
}

/// Interval between checks of whether the keeper is done, and their number.
const INTERVAL: Duration = Duration::from_millis(20);
const LOOKS: u32 = 150;
/// Most bytes that are read of a lock file: a process ID.
const LONGEST: u64 = 32;

/// Reason why the lock was not acquired.
#[derive(Debug, thiserror::Error)]
pub enum StateError {
    /// Another process holds it.
    #[error(
        "a daemon called \"{name}\" is running already, as process {process}; give this one another name = \"…\""
    )]
    Taken {
        /// Name of both daemons.
        name: String,
        /// Process ID of the other daemon.
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
    /// Acquires the lock. If its daemon has ended and is being cleaned up after, waits for that.
    pub(crate) fn take(folder: &Path, name: &str) -> Result<Self, StateError> {
        Self::take_in(made(folder)?, name)
    }

    /// Acquires the lock for a daemon that will run as `user`, and gives that user the existing files.
    pub(crate) fn take_for(folder: &Path, name: &str, user: Option<&User>) -> Result<Self, StateError> {
        let folder = made(folder)?;
        let ours = geteuid().as_raw();
        let owner = folder.owner().map_err(|e| failed(folder.path(), e))?.user;
        let is_writable = owner == ours || user.is_some_and(|user| user.account.user == owner);
        // A user other than root gets errors for files that it may not write.
        if geteuid().is_root() && !is_writable {
            return Err(StateError::Foreign(folder.path().display().to_string(), owner));
        }
        let state = Self::take_in(folder, name)?;
        user.map(|user| state.give_to(user.account)).transpose()?;
        Ok(state)
    }

    fn take_in(folder: Folder, name: &str) -> Result<Self, StateError> {
        let mut state = Self::await_cleaner(folder, name)?;
        let written = state.lock.set_len(0).and_then(|()| writeln!(state.lock, "{}", std::process::id()));
        written.map_err(|e| failed(&state.path_of(&of_lock(name)), e))?;
        Ok(state)
    }

    fn await_cleaner(mut folder: Folder, name: &str) -> Result<Self, StateError> {
        let mut looks = 0..LOOKS;
        loop {
            folder = match Self::hold_in(folder, name)? {
                Held::Ours(state) => return Ok(state),
                Held::Taken(folder, process) if !is_alive(&process) && looks.next().is_some() => folder,
                Held::Taken(_, process) => return Err(StateError::Taken { name: name.to_owned(), process }),
            };
            thread::sleep(INTERVAL);
        }
    }

    /// Acquires the lock for a moment, to clean up: the file still names the former daemon.
    pub(crate) fn hold(folder: &Path, name: &str) -> Result<Self, StateError> {
        let folder = Folder::open(folder).map_err(|e| unusable(folder, e))?;
        match Self::hold_in(folder, name)? {
            Held::Ours(state) => Ok(state),
            Held::Taken(_, process) => Err(StateError::Taken { name: name.to_owned(), process }),
        }
    }

    fn hold_in(folder: Folder, name: &str) -> Result<Held, StateError> {
        let file = of_lock(name);
        // Not truncated: until this process holds the lock, the file names its owner.
        let opened = folder.open_or_make(&file, Access::Write);
        let mut lock = opened.map_err(|e| failed(&folder.path().join(&file), e))?;
        if flock(&lock, FlockOperation::NonBlockingLockExclusive).is_err() {
            let mut process = String::new();
            let _ = Read::by_ref(&mut lock).take(LONGEST).read_to_string(&mut process);
            let process = process.trim();
            let process = if process.is_empty() { "?" } else { process };
            return Ok(Held::Taken(folder, process.to_owned()));
        }
        Ok(Held::Ours(Self { folder, name: name.to_owned(), lock }))
    }

    /// Lets programs that are started from now on share the lock until they end, so that the keeper waits for a program that
    /// was making a rule when the daemon was killed.
    pub(crate) fn share(&self) -> io::Result<()> {
        Ok(fcntl_setfd(&self.lock, FdFlags::empty())?)
    }

    /// Gives the folder, and the files of this daemon in it, to a user.
    fn give_to(&self, account: Account) -> Result<(), StateError> {
        let files = [of_lock(&self.name), format!("{}.rules", self.name)];
        self.folder.give_to(account, &files).map_err(|e| failed(self.folder.path(), e))
    }

    /// Returns the folder.
    pub(crate) const fn folder(&self) -> &Folder {
        &self.folder
    }

    fn path_of(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
}

/// Result of trying the lock. The folder is opened once.
enum Held {
    Ours(State),
    /// A process holds it.
    Taken(Folder, String),
}

/// Removes the socket with the lock: no daemon answers there any more. The lock file stays; otherwise two daemons could lock
/// two files.
impl Drop for State {
    fn drop(&mut self) {
        let _ = self.folder.remove(&of_socket(&self.name));
    }
}

/// Returns the path of the socket at which the daemon `name` reports its status.
pub(crate) fn socket(folder: &Path, name: &str) -> PathBuf {
    folder.join(of_socket(name))
}

/// Returns the name of the socket in the folder.
pub(crate) fn of_socket(name: &str) -> String {
    format!("{name}.sock")
}

fn of_lock(name: &str) -> String {
    format!("{name}.lock")
}

fn made(folder: &Path) -> Result<Folder, StateError> {
    Folder::make(folder).map_err(|e| unusable(folder, e))
}

fn unusable(path: &Path, why: Unusable) -> StateError {
    match why {
        Unusable::System(error) => failed(path, error),
        Unusable::Writable(mode) => StateError::Writable(path.display().to_string(), mode),
    }
}

fn is_alive(process: &str) -> bool {
    // A zombie has a folder in /proc, and no executable. A process that may not be examined counts as alive.
    fs::read_link(format!("/proc/{process}/exe"))
        .map_or_else(|error| error.kind() != io::ErrorKind::NotFound, |_| true)
}

fn failed(path: &Path, error: io::Error) -> StateError {
    let path = path.display().to_string();
    match error.kind() {
        io::ErrorKind::PermissionDenied => StateError::Denied(path, geteuid().as_raw()),
        _ => StateError::Folder(path, error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{CWD, FileType, Mode};
    use std::fs::Permissions;
    use std::os::unix::fs::{MetadataExt, PermissionsExt, lchown};

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
        let state = State::take(folder.path(), "hopline").unwrap();
        state.folder().open_or_make("hopline.rules", Access::Append).unwrap();
        drop(state);
        for name in ["hopline.lock", "hopline.rules"] {
            assert_eq!(fs::metadata(folder.path().join(name)).unwrap().uid(), owner, "{name}");
        }
    }

    /// Puts objects in the place of a file, as the owner of the folder can.
    fn put_in_place(kind: &str, place: &Path, other: &Path) {
        match kind {
            "link" => std::os::unix::fs::symlink(other, place).unwrap(),
            "second name" => fs::hard_link(other, place).unwrap(),
            "fifo" => rustix::fs::mknodat(CWD, place, FileType::Fifo, Mode::from(0o600), 0).unwrap(),
            _ => fs::create_dir(place).unwrap(),
        }
    }

    #[test]
    fn what_is_no_file_of_a_daemon_is_refused_and_left_as_it_is() {
        for kind in ["link", "second name", "fifo", "folder"] {
            for name in ["hopline.lock", "hopline.rules"] {
                let (folder, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
                fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).unwrap();
                let other = elsewhere.path().join("precious");
                fs::write(&other, "precious").unwrap();
                put_in_place(kind, &folder.path().join(name), &other);
                let said = crate::undo("hopline", folder.path(), crate::rules::Leave::Tuns).unwrap_err();
                let said = said.to_string();
                assert!(said.contains(name) && said.contains("remove"), "{kind}: {said}");
                assert_eq!(fs::read_to_string(&other).unwrap(), "precious", "{kind} {name}");
            }
        }
    }

    #[test]
    fn a_link_to_nothing_makes_no_file() {
        let (folder, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).unwrap();
        let other = elsewhere.path().join("nologin");
        put_in_place("link", &folder.path().join("hopline.lock"), &other);
        assert!(State::take(folder.path(), "hopline").is_err());
        assert!(!other.exists());
    }

    #[test]
    fn a_link_in_the_place_of_the_folder_is_refused() {
        let elsewhere = tempfile::tempdir().unwrap();
        let target = elsewhere.path().join("target");
        fs::create_dir(&target).unwrap();
        put_in_place("link", &elsewhere.path().join("state"), &target);
        let said = State::take(&elsewhere.path().join("state"), "hopline").unwrap_err().to_string();
        assert!(said.contains("symbolic link"), "{said}");
        assert_eq!(fs::read_dir(&target).unwrap().count(), 0);
    }

    #[test]
    fn the_folder_is_open_to_look_into_and_the_lock_is_its_owners() {
        let folder = tempfile::tempdir().unwrap();
        let inner = folder.path().join("a/b");
        let _state = State::take(&inner, "hopline").unwrap();
        assert_eq!((mode(&inner), mode(&inner.join("hopline.lock"))), (0o755, 0o600));
    }
}
