//! Folder of a daemon's files, opened once. Root also works in folders of other users. So nothing in a folder is trusted
//! before it is checked, and the check is of the opened file itself.

use hopline_linux::accounts::Account;
use rustix::fs::{
    AtFlags, CWD, FileType, Mode, OFlags, Stat, chmodat, chownat, fchmod, fchown, fstat, mkdirat, openat,
    renameat, unlinkat,
};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, listen, socket_with};
use rustix::process::{Gid, Uid, geteuid};
use std::fs::{DirBuilder, File};
use std::io::{self, ErrorKind};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

/// Mode of the folder, with any umask: all users may find the socket in it, and only the owner may write.
const FOLDER_MODE: u32 = 0o755;
/// Mode of files. A user that may open the lock could hold it, and keep the daemon from starting; the rules in the journal
/// are removed.
const FILE_MODE: u32 = 0o600;
/// Most clients that wait for `accept`.
const BACKLOG: i32 = 128;
/// Flags for every file: no link is followed, and no FIFO waited for.
const SAFE_FLAGS: OFlags = OFlags::NOFOLLOW.union(OFlags::NONBLOCK).union(OFlags::CLOEXEC);

/// Open folder. It stays the same, whatever becomes of its path.
#[derive(Debug)]
pub(crate) struct Folder {
    path: PathBuf,
    handle: OwnedFd,
}

/// Purpose of opening a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    /// Reading and writing.
    Write,
    /// Reading, and appending.
    Append,
}

/// Reason why a folder is not used.
#[derive(Debug)]
pub(crate) enum FolderError {
    /// The system does not open it.
    System(io::Error),
    /// Other users may write to it, by this mode.
    Writable(u32),
}

impl From<FolderError> for io::Error {
    fn from(why: FolderError) -> Self {
        match why {
            FolderError::System(error) => error,
            FolderError::Writable(mode) => Self::new(
                ErrorKind::PermissionDenied,
                format!("other users may write to this folder (mode {mode:04o})"),
            ),
        }
    }
}

/// Object in the place of a daemon's file.
#[derive(Debug, thiserror::Error)]
#[error("it is {0}, which no daemon made: look at it, then remove it")]
struct ForeignObject(String);

impl Folder {
    /// Opens the folder, which is created if it does not exist.
    pub(crate) fn open_or_create(path: &Path) -> Result<Self, FolderError> {
        match Self::open(path) {
            Err(FolderError::System(error)) if error.kind() == ErrorKind::NotFound => {}
            opened => return opened,
        }
        if let Some(parent) = path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
            DirBuilder::new()
                .recursive(true)
                .mode(FOLDER_MODE)
                .create(parent)
                .map_err(FolderError::System)?;
        }
        let is_made = match mkdirat(CWD, path, Mode::from_raw_mode(FOLDER_MODE)) {
            Ok(()) => true,
            Err(Errno::EXIST) => false,
            Err(error) => return Err(FolderError::System(error.into())),
        };
        let opened = Self::open_unchecked(path)?;
        if is_made && opened.is_owned_by_us().map_err(FolderError::System)? {
            fchmod(&opened.handle, Mode::from_raw_mode(FOLDER_MODE))
                .map_err(|e| FolderError::System(e.into()))?;
        }
        opened.check()
    }

    /// Opens the folder, which must exist.
    pub(crate) fn open(path: &Path) -> Result<Self, FolderError> {
        Self::open_unchecked(path)?.check()
    }

    fn open_unchecked(path: &Path) -> Result<Self, FolderError> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let handle = openat(CWD, path, flags, Mode::empty()).map_err(|error| {
            // The kernel reports ENOTDIR for a link (open(2)).
            let is_link = std::fs::symlink_metadata(path).is_ok_and(|found| found.is_symlink());
            FolderError::System(if is_link {
                let why = "it is a symbolic link: state_dir must be the folder itself";
                io::Error::new(ErrorKind::InvalidInput, why)
            } else {
                error.into()
            })
        })?;
        Ok(Self { path: path.to_owned(), handle })
    }

    fn check(self) -> Result<Self, FolderError> {
        let mode = fstat(&self.handle).map_err(|e| FolderError::System(e.into()))?.st_mode & 0o7777;
        if mode & 0o022 == 0 { Ok(self) } else { Err(FolderError::Writable(mode)) }
    }

    /// Returns the path of the folder.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the folder itself, wherever its path leads now.
    pub(crate) const fn handle(&self) -> &OwnedFd {
        &self.handle
    }

    /// Returns the present owner: root may give it away.
    pub(crate) fn owner(&self) -> io::Result<Account> {
        let found = fstat(&self.handle)?;
        Ok(Account { user: found.st_uid, group: found.st_gid })
    }

    fn is_owned_by_us(&self) -> io::Result<bool> {
        Ok(self.owner()?.user == geteuid().as_raw())
    }

    /// Opens a file for reading, if it exists.
    pub(crate) fn read(&self, name: &str) -> io::Result<Option<File>> {
        match openat(&self.handle, name, OFlags::RDONLY | SAFE_FLAGS, Mode::empty()) {
            Ok(file) => self.check_file(file).map(Some),
            Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(open_error(error)),
        }
    }

    /// Opens a file, which is created if it does not exist. Its content is not changed.
    pub(crate) fn open_or_make(&self, name: &str, access: Access) -> io::Result<File> {
        let append = if access == Access::Append { OFlags::APPEND } else { OFlags::empty() };
        let flags = OFlags::RDWR | append | SAFE_FLAGS;
        match openat(&self.handle, name, flags, Mode::empty()) {
            Ok(file) => self.check_file(file),
            Err(Errno::NOENT) => self.make_file(name, append),
            Err(error) => Err(open_error(error)),
        }
    }

    /// Creates a file, which replaces an existing one.
    pub(crate) fn replace_file(&self, name: &str) -> io::Result<File> {
        self.remove(name)?;
        self.make_file(name, OFlags::empty())
    }

    /// Creates a file of the folder's owner: the daemon of that user could not open one of root.
    fn make_file(&self, name: &str, more: OFlags) -> io::Result<File> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | more | SAFE_FLAGS;
        let file = openat(&self.handle, name, flags, Mode::from_raw_mode(FILE_MODE))?;
        // A user other than root creates none in a folder of another user.
        if !self.is_owned_by_us()? {
            chown(&file, self.owner()?)?;
        }
        self.check_file(file)
    }

    /// Renames a file.
    pub(crate) fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        Ok(renameat(&self.handle, from, &self.handle, to)?)
    }

    /// Removes a name; a missing name is no error.
    pub(crate) fn remove(&self, name: &str) -> io::Result<()> {
        match unlinkat(&self.handle, name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(error) => Err(open_error(error)),
        }
    }

    /// Gives the folder, and the existing files of `names`, to a user. The folder last: until then no other user can change
    /// what the names are.
    pub(crate) fn set_owner(&self, account: Account, names: &[String]) -> io::Result<()> {
        for name in names {
            if let Some(file) = self.read(name)? {
                chown(&file.into(), account)?;
            }
        }
        chown(&self.handle, account)
    }

    /// Listens at a socket in the folder, with this mode and group from the first client on. The socket of a killed daemon
    /// is removed first.
    pub(crate) fn listen(&self, name: &str, mode: u32, group: Option<u32>) -> io::Result<UnixListener> {
        self.remove(name)?;
        let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
        // The name gets the mode of the socket, without the bits of the umask: no client connects before the group is set.
        fchmod(&socket, Mode::from_raw_mode(FILE_MODE))?;
        bind(&socket, &SocketAddrUnix::new(proc_path(&self.handle).join(name))?)?;
        listen(&socket, BACKLOG)?;
        let bound = openat(&self.handle, name, OFlags::PATH | SAFE_FLAGS, Mode::empty())?;
        let found = fstat(&bound)?;
        let is_ours =
            FileType::from_raw_mode(found.st_mode) == FileType::Socket && found.st_uid == geteuid().as_raw();
        if !is_ours {
            return Err(io::Error::new(ErrorKind::InvalidInput, ForeignObject(kind(&found).to_owned())));
        }
        if let Some(group) = group {
            chownat(&bound, "", None, Some(Gid::from_raw(group)), AtFlags::EMPTY_PATH)?;
        }
        // An `O_PATH` handle is changed through its name in /proc (open(2)).
        chmodat(CWD, proc_path(&bound), Mode::from_raw_mode(mode), AtFlags::empty())?;
        Ok(UnixListener::from(socket))
    }

    /// Accepts a regular file with one name that the folder's owner owns. No other user can have put it into a folder of
    /// root.
    fn check_file(&self, file: OwnedFd) -> io::Result<File> {
        let (found, owner) = (fstat(&file)?, self.owner()?.user);
        let is_theirs = found.st_uid != owner && owner != 0;
        let foreign = match FileType::from_raw_mode(found.st_mode) {
            FileType::RegularFile if found.st_nlink != 1 => "a file with several names".to_owned(),
            FileType::RegularFile if is_theirs => {
                format!("a file of user {} in a folder of user {}", found.st_uid, owner)
            }
            FileType::RegularFile => return Ok(File::from(file)),
            _ => kind(&found).to_owned(),
        };
        Err(io::Error::new(ErrorKind::InvalidInput, ForeignObject(foreign)))
    }
}

fn chown(file: &OwnedFd, Account { user, group }: Account) -> io::Result<()> {
    Ok(fchown(file, Some(Uid::from_raw(user)), Some(Gid::from_raw(group)))?)
}

/// Returns a path to the open file, whatever has its name now.
fn proc_path(handle: &OwnedFd) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", handle.as_raw_fd()))
}

/// Returns the error of opening a name; the kernel has special numbers for objects that are not files.
fn open_error(error: Errno) -> io::Error {
    let what = match error {
        Errno::LOOP => "a symbolic link",
        Errno::ISDIR => "a folder",
        Errno::NXIO => "a socket",
        _ => return error.into(),
    };
    io::Error::new(ErrorKind::InvalidInput, ForeignObject(what.to_owned()))
}

fn kind(found: &Stat) -> &'static str {
    match FileType::from_raw_mode(found.st_mode) {
        FileType::RegularFile => "a file",
        FileType::Directory => "a folder",
        FileType::Symlink => "a symbolic link",
        FileType::Fifo => "a fifo",
        FileType::Socket => "a socket",
        _ => "a device",
    }
}
