//! Folder of a daemon's shared files: its lock, its socket, its journal of rules.

use crate::config::User;
use crate::folder::{Access, Folder, FolderError};
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
const CHECK_INTERVAL: Duration = Duration::from_millis(20);
const MAX_CHECKS: u32 = 150;
/// Most bytes that are read of a lock file: a process ID.
const MAX_PID_LEN: u64 = 32;

/// Reason why the lock was not acquired.
#[derive(Debug, thiserror::Error)]
pub enum StateError {
    /// Another process holds it.
    #[error(
        "a daemon called \"{name}\" is running already, as process {process}; give this one another name = \"…\""
    )]
    AlreadyRunning {
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
    pub(crate) fn acquire(folder: &Path, name: &str) -> Result<Self, StateError> {
        Self::acquire_in(make_folder(folder)?, name)
    }

    /// Acquires the lock for a daemon that will run as `user`, and gives that user the existing files.
    pub(crate) fn acquire_for(folder: &Path, name: &str, user: Option<&User>) -> Result<Self, StateError> {
        let folder = make_folder(folder)?;
        let ours = geteuid().as_raw();
        let owner = folder.owner().map_err(|e| io_error(folder.path(), e))?.user;
        let is_writable = owner == ours || user.is_some_and(|user| user.account.user == owner);
        // A user other than root gets errors for files that it may not write.
        if geteuid().is_root() && !is_writable {
            return Err(StateError::Foreign(folder.path().display().to_string(), owner));
        }
        let state = Self::acquire_in(folder, name)?;
        user.map(|user| state.set_owner(user.account)).transpose()?;
        Ok(state)
    }

    fn acquire_in(folder: Folder, name: &str) -> Result<Self, StateError> {
        let mut state = Self::await_cleaner(folder, name)?;
        let written = state.lock.set_len(0).and_then(|()| writeln!(state.lock, "{}", std::process::id()));
        written.map_err(|e| io_error(&state.path_of(&lock_name(name)), e))?;
        Ok(state)
    }

    fn await_cleaner(mut folder: Folder, name: &str) -> Result<Self, StateError> {
        let mut looks = 0..MAX_CHECKS;
        loop {
            folder = match Self::try_lock(folder, name)? {
                LockAttempt::Acquired(state) => return Ok(state),
                LockAttempt::HeldByOther(folder, process)
                    if !is_alive(&process) && looks.next().is_some() =>
                {
                    folder
                }
                LockAttempt::HeldByOther(_, process) => {
                    return Err(StateError::AlreadyRunning { name: name.to_owned(), process });
                }
            };
            thread::sleep(CHECK_INTERVAL);
        }
    }

    /// Acquires the lock for a moment, to clean up: the file still names the former daemon.
    pub(crate) fn acquire_for_cleanup(folder: &Path, name: &str) -> Result<Self, StateError> {
        let folder = Folder::open(folder).map_err(|e| folder_error(folder, e))?;
        match Self::try_lock(folder, name)? {
            LockAttempt::Acquired(state) => Ok(state),
            LockAttempt::HeldByOther(_, process) => {
                Err(StateError::AlreadyRunning { name: name.to_owned(), process })
            }
        }
    }

    fn try_lock(folder: Folder, name: &str) -> Result<LockAttempt, StateError> {
        let file = lock_name(name);
        // Not truncated: until this process holds the lock, the file names its owner.
        let opened = folder.open_or_make(&file, Access::Write);
        let mut lock = opened.map_err(|e| io_error(&folder.path().join(&file), e))?;
        if flock(&lock, FlockOperation::NonBlockingLockExclusive).is_err() {
            let mut process = String::new();
            let _ = Read::by_ref(&mut lock).take(MAX_PID_LEN).read_to_string(&mut process);
            let process = process.trim();
            let process = if process.is_empty() { "?" } else { process };
            return Ok(LockAttempt::HeldByOther(folder, process.to_owned()));
        }
        Ok(LockAttempt::Acquired(Self { folder, name: name.to_owned(), lock }))
    }

    /// Lets programs that are started from now on share the lock until they end, so that the keeper waits for a program that
    /// was making a rule when the daemon was killed.
    pub(crate) fn share_lock(&self) -> io::Result<()> {
        Ok(fcntl_setfd(&self.lock, FdFlags::empty())?)
    }

    /// Gives the folder, and the files of this daemon in it, to a user.
    fn set_owner(&self, account: Account) -> Result<(), StateError> {
        let files = [lock_name(&self.name), format!("{}.rules", self.name)];
        self.folder.set_owner(account, &files).map_err(|e| io_error(self.folder.path(), e))
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
enum LockAttempt {
    Acquired(State),
    /// A process holds it.
    HeldByOther(Folder, String),
}

/// Removes the socket with the lock: no daemon answers there any more. The lock file stays; otherwise two daemons could lock
/// two files.
impl Drop for State {
    fn drop(&mut self) {
        let _ = self.folder.remove(&socket_name(&self.name));
    }
}

/// Returns the path of the socket at which the daemon `name` reports its status.
pub(crate) fn socket_path(folder: &Path, name: &str) -> PathBuf {
    folder.join(socket_name(name))
}

/// Returns the name of the socket in the folder.
pub(crate) fn socket_name(name: &str) -> String {
    format!("{name}.sock")
}

fn lock_name(name: &str) -> String {
    format!("{name}.lock")
}

fn make_folder(folder: &Path) -> Result<Folder, StateError> {
    Folder::open_or_create(folder).map_err(|e| folder_error(folder, e))
}

fn folder_error(path: &Path, why: FolderError) -> StateError {
    match why {
        FolderError::System(error) => io_error(path, error),
        FolderError::Writable(mode) => StateError::Writable(path.display().to_string(), mode),
    }
}

fn is_alive(process: &str) -> bool {
    // A zombie has a folder in /proc, and no executable. A process that may not be examined counts as alive.
    fs::read_link(format!("/proc/{process}/exe"))
        .map_or_else(|error| error.kind() != io::ErrorKind::NotFound, |_| true)
}

fn io_error(path: &Path, error: io::Error) -> StateError {
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
    fn a_folder_writable_by_other_users_is_rejected_with_the_command_to_fix_it() {
        let folder = tempfile::tempdir().unwrap();
        for open in [0o777, 0o775, 0o1777] {
            fs::set_permissions(folder.path(), Permissions::from_mode(open)).unwrap();
            let said = State::acquire(folder.path(), "hopline").unwrap_err().to_string();
            assert!(said.contains(&format!("chmod go-w {}", folder.path().display())), "{said}");
        }
        fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).unwrap();
        assert!(State::acquire(folder.path(), "hopline").is_ok());
    }

    #[test]
    fn files_that_root_leaves_in_the_folder_of_a_user_belong_to_that_user() {
        let folder = tempfile::tempdir().unwrap();
        if rustix::process::geteuid().is_root() {
            lchown(folder.path(), Some(65534), Some(65534)).unwrap();
        }
        let owner = fs::metadata(folder.path()).unwrap().uid();
        let state = State::acquire(folder.path(), "hopline").unwrap();
        state.folder().open_or_make("hopline.rules", Access::Append).unwrap();
        drop(state);
        for name in ["hopline.lock", "hopline.rules"] {
            assert_eq!(fs::metadata(folder.path().join(name)).unwrap().uid(), owner, "{name}");
        }
    }

    /// Puts objects in the place of a file, as the owner of the folder can.
    fn replace_by_object(kind: &str, place: &Path, other: &Path) {
        match kind {
            "link" => std::os::unix::fs::symlink(other, place).unwrap(),
            "second name" => fs::hard_link(other, place).unwrap(),
            "fifo" => rustix::fs::mknodat(CWD, place, FileType::Fifo, Mode::from(0o600), 0).unwrap(),
            _ => fs::create_dir(place).unwrap(),
        }
    }

    #[test]
    fn foreign_objects_are_rejected_and_left_unchanged() {
        for kind in ["link", "second name", "fifo", "folder"] {
            for name in ["hopline.lock", "hopline.rules"] {
                let (folder, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
                fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).unwrap();
                let other = elsewhere.path().join("precious");
                fs::write(&other, "precious").unwrap();
                replace_by_object(kind, &folder.path().join(name), &other);
                let said = crate::remove_rules("hopline", folder.path(), crate::rules::Keep::TunInterfaces)
                    .unwrap_err();
                let said = said.to_string();
                assert!(said.contains(name) && said.contains("remove"), "{kind}: {said}");
                assert_eq!(fs::read_to_string(&other).unwrap(), "precious", "{kind} {name}");
            }
        }
    }

    #[test]
    fn a_dangling_link_creates_no_file() {
        let (folder, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).unwrap();
        let other = elsewhere.path().join("nologin");
        replace_by_object("link", &folder.path().join("hopline.lock"), &other);
        assert!(State::acquire(folder.path(), "hopline").is_err());
        assert!(!other.exists());
    }

    #[test]
    fn a_link_in_place_of_the_folder_is_rejected() {
        let elsewhere = tempfile::tempdir().unwrap();
        let target = elsewhere.path().join("target");
        fs::create_dir(&target).unwrap();
        replace_by_object("link", &elsewhere.path().join("state"), &target);
        let said = State::acquire(&elsewhere.path().join("state"), "hopline").unwrap_err().to_string();
        assert!(said.contains("symbolic link"), "{said}");
        assert_eq!(fs::read_dir(&target).unwrap().count(), 0);
    }

    #[test]
    fn the_folder_is_readable_by_all_and_the_lock_by_its_owner_only() {
        let folder = tempfile::tempdir().unwrap();
        let inner = folder.path().join("a/b");
        let _state = State::acquire(&inner, "hopline").unwrap();
        assert_eq!((mode(&inner), mode(&inner.join("hopline.lock"))), (0o755, 0o600));
    }
}
