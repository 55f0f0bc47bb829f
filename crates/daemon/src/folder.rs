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
const OPEN: u32 = 0o755;
/// Mode of files. A user that may open the lock could hold it, and keep the daemon from starting; the rules in the journal
/// are removed.
const PRIVATE: u32 = 0o600;
/// Most clients that wait for `accept`.
const BACKLOG: i32 = 128;
/// Flags for every file: no link is followed, and no FIFO waited for.
const GUARDED: OFlags = OFlags::NOFOLLOW.union(OFlags::NONBLOCK).union(OFlags::CLOEXEC);

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
pub(crate) enum Unusable {
    /// The system does not open it.
    System(io::Error),
    /// Other users may write to it, by this mode.
    Writable(u32),
}

impl From<Unusable> for io::Error {
    fn from(why: Unusable) -> Self {
        match why {
            Unusable::System(error) => error,
            Unusable::Writable(mode) => Self::new(
                ErrorKind::PermissionDenied,
                format!("other users may write to this folder (mode {mode:04o})"),
            ),
        }
    }
}

/// Object in the place of a daemon's file.
#[derive(Debug, thiserror::Error)]
#[error("it is {0}, which no daemon made: look at it, then remove it")]
struct Foreign(String);

impl Folder {
    /// Opens the folder, which is created if it does not exist.
    pub(crate) fn make(path: &Path) -> Result<Self, Unusable> {
        match Self::open(path) {
            Err(Unusable::System(error)) if error.kind() == ErrorKind::NotFound => {}
            opened => return opened,
        }
        if let Some(parent) = path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
            DirBuilder::new().recursive(true).mode(OPEN).create(parent).map_err(Unusable::System)?;
        }
        let is_made = match mkdirat(CWD, path, Mode::from_raw_mode(OPEN)) {
            Ok(()) => true,
            Err(Errno::EXIST) => false,
            Err(error) => return Err(Unusable::System(error.into())),
        };
        let opened = Self::opened(path)?;
        if is_made && opened.is_ours().map_err(Unusable::System)? {
            fchmod(&opened.handle, Mode::from_raw_mode(OPEN)).map_err(|e| Unusable::System(e.into()))?;
        }
        opened.checked()
    }

    /// Opens the folder, which must exist.
    pub(crate) fn open(path: &Path) -> Result<Self, Unusable> {
        Self::opened(path)?.checked()
    }

    fn opened(path: &Path) -> Result<Self, Unusable> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let handle = openat(CWD, path, flags, Mode::empty()).map_err(|error| {
            // The kernel reports ENOTDIR for a link (open(2)).
            let is_link = std::fs::symlink_metadata(path).is_ok_and(|found| found.is_symlink());
            Unusable::System(if is_link {
                let why = "it is a symbolic link: state_dir must be the folder itself";
                io::Error::new(ErrorKind::InvalidInput, why)
            } else {
                error.into()
            })
        })?;
        Ok(Self { path: path.to_owned(), handle })
    }

    fn checked(self) -> Result<Self, Unusable> {
        let mode = fstat(&self.handle).map_err(|e| Unusable::System(e.into()))?.st_mode & 0o7777;
        if mode & 0o022 == 0 { Ok(self) } else { Err(Unusable::Writable(mode)) }
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

    fn is_ours(&self) -> io::Result<bool> {
        Ok(self.owner()?.user == geteuid().as_raw())
    }

    /// Opens a file for reading, if it exists.
    pub(crate) fn read(&self, name: &str) -> io::Result<Option<File>> {
        match openat(&self.handle, name, OFlags::RDONLY | GUARDED, Mode::empty()) {
            Ok(file) => self.examined(file).map(Some),
            Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(named(error)),
        }
    }

    /// Opens a file, which is created if it does not exist. Its content is not changed.
    pub(crate) fn open_or_make(&self, name: &str, access: Access) -> io::Result<File> {
        let append = if access == Access::Append { OFlags::APPEND } else { OFlags::empty() };
        let flags = OFlags::RDWR | append | GUARDED;
        match openat(&self.handle, name, flags, Mode::empty()) {
            Ok(file) => self.examined(file),
            Err(Errno::NOENT) => self.make_file(name, append),
            Err(error) => Err(named(error)),
        }
    }

    /// Creates a file, which replaces an existing one.
    pub(crate) fn make_anew(&self, name: &str) -> io::Result<File> {
        self.remove(name)?;
        self.make_file(name, OFlags::empty())
    }

    /// Creates a file of the folder's owner: the daemon of that user could not open one of root.
    fn make_file(&self, name: &str, more: OFlags) -> io::Result<File> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | more | GUARDED;
        let file = openat(&self.handle, name, flags, Mode::from_raw_mode(PRIVATE))?;
        // A user other than root creates none in a folder of another user.
        if !self.is_ours()? {
            give(&file, self.owner()?)?;
        }
        self.examined(file)
    }

    /// Renames a file.
    pub(crate) fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        Ok(renameat(&self.handle, from, &self.handle, to)?)
    }

    /// Removes a name; a missing name is no error.
    pub(crate) fn remove(&self, name: &str) -> io::Result<()> {
        match unlinkat(&self.handle, name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(error) => Err(named(error)),
        }
    }

    /// Gives the folder, and the existing files of `names`, to a user. The folder last: until then no other user can change
    /// what the names are.
    pub(crate) fn give_to(&self, account: Account, names: &[String]) -> io::Result<()> {
        for name in names {
            if let Some(file) = self.read(name)? {
                give(&file.into(), account)?;
            }
        }
        give(&self.handle, account)
    }

    /// Listens at a socket in the folder, with this mode and group from the first client on. The socket of a killed daemon
    /// is removed first.
    pub(crate) fn listen(&self, name: &str, mode: u32, group: Option<u32>) -> io::Result<UnixListener> {
        self.remove(name)?;
        let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
        // The name gets the mode of the socket, without the bits of the umask: no client connects before the group is set.
        fchmod(&socket, Mode::from_raw_mode(PRIVATE))?;
        bind(&socket, &SocketAddrUnix::new(through(&self.handle).join(name))?)?;
        listen(&socket, BACKLOG)?;
        let bound = openat(&self.handle, name, OFlags::PATH | GUARDED, Mode::empty())?;
        let found = fstat(&bound)?;
        let is_ours =
            FileType::from_raw_mode(found.st_mode) == FileType::Socket && found.st_uid == geteuid().as_raw();
        if !is_ours {
            return Err(io::Error::new(ErrorKind::InvalidInput, Foreign(kind(&found).to_owned())));
        }
        if let Some(group) = group {
            chownat(&bound, "", None, Some(Gid::from_raw(group)), AtFlags::EMPTY_PATH)?;
        }
        // An `O_PATH` handle is changed through its name in /proc (open(2)).
        chmodat(CWD, through(&bound), Mode::from_raw_mode(mode), AtFlags::empty())?;
        Ok(UnixListener::from(socket))
    }

    /// Accepts a regular file with one name that the folder's owner owns. No other user can have put it into a folder of
    /// root.
    fn examined(&self, file: OwnedFd) -> io::Result<File> {
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
        Err(io::Error::new(ErrorKind::InvalidInput, Foreign(foreign)))
    }
}

fn give(file: &OwnedFd, Account { user, group }: Account) -> io::Result<()> {
    Ok(fchown(file, Some(Uid::from_raw(user)), Some(Gid::from_raw(group)))?)
}

/// Returns a path to the open file, whatever has its name now.
fn through(handle: &OwnedFd) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", handle.as_raw_fd()))
}

/// Returns the error of opening a name; the kernel has special numbers for objects that are not files.
fn named(error: Errno) -> io::Error {
    let what = match error {
        Errno::LOOP => "a symbolic link",
        Errno::ISDIR => "a folder",
        Errno::NXIO => "a socket",
        _ => return error.into(),
    };
    io::Error::new(ErrorKind::InvalidInput, Foreign(what.to_owned()))
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
