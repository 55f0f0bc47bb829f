//! Unnamed network namespaces: each is a host of its own that disappears with its last user.

use crate::error::Error;
use crate::interface::Interface;
use crate::sys;
use rustix::fs::{StatVfsMountFlags, statvfs};
use rustix::mount::{
    MountFlags, MountPropagationFlags, UnmountFlags, mount, mount_bind, mount_change, mount_remount, unmount,
};
use rustix::process::{getgid, getuid};
use rustix::thread::{CapabilitySet, LinkNameSpaceType, capabilities, move_into_link_name_space};
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::panic::resume_unwind;
use std::path::Path;
use std::process::{Child, Command};
use std::thread;

/// A network namespace. It exists until this value, all threads inside and all sockets and interfaces created inside are
/// gone; no clean-up is needed.
#[derive(Debug)]
pub struct Namespace(OwnedFd);

impl Namespace {
    /// Creates an empty namespace with its loopback interface up.
    ///
    /// # Errors
    /// [`Error::Unavailable`] without `CAP_SYS_ADMIN` or on a kernel without namespaces.
    pub fn new() -> Result<Self, Error> {
        // unshare(2) affects the calling thread only; a temporary thread calls it.
        run_in_thread(|| {
            sys::leave_network_namespace()
                .map_err(|e| Error::new("making a network namespace (unshare CLONE_NEWNET)", e))?;
            let path = "/proc/thread-self/ns/net";
            let file = File::open(path).map_err(|e| Error::new(format!("opening {path}"), e))?;
            Interface::named("lo")?.up()?;
            Ok(Self(file.into()))
        })?
    }

    /// Opens the namespace at a path such as `/proc/1/ns/net`.
    ///
    /// # Errors
    /// If the file cannot be opened. That it is a namespace shows when it is [entered](Self::enter).
    pub fn open(path: impl AsRef<Path>) -> Result<Self, Error> {
        let path = path.as_ref();
        let file = File::open(path).map_err(|e| Error::new(format!("opening {}", path.display()), e))?;
        Ok(Self(file.into()))
    }

    /// Runs `what` in a thread inside the namespace and waits for it. Sockets stay in the namespace in which they were
    /// created. Threads that `what` starts are inside too.
    ///
    /// # Errors
    /// If the system cannot start a thread, or does not let it enter the namespace.
    ///
    /// # Panics
    /// If `what` panics.
    pub fn run<T: Send>(&self, what: impl FnOnce() -> T + Send) -> Result<T, Error> {
        run_in_thread(|| self.enter().map(|()| what()))?
    }

    /// Starts `command` inside the namespace. It is terminated when the calling thread ends.
    ///
    /// # Errors
    /// Errors of starting it, or of entering the namespace.
    pub fn spawn(&self, mut command: Command) -> io::Result<Child> {
        sys::begin_in_namespace(&mut command, self.0.try_clone()?);
        command.spawn()
    }

    /// Moves the calling thread into the namespace permanently.
    ///
    /// # Errors
    /// [`Error::Unavailable`] without `CAP_SYS_ADMIN`.
    pub fn enter(&self) -> Result<(), Error> {
        move_into_link_name_space(self.0.as_fd(), Some(LinkNameSpaceType::Network))
            .map_err(|e| Error::new("entering a network namespace (setns)", e))
    }
}

impl AsFd for Namespace {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Starts `command` in the namespaces of this process. It is terminated when the calling thread ends.
///
/// # Errors
/// Errors of starting it.
pub fn spawn_here(mut command: Command) -> io::Result<Child> {
    sys::end_with_this_thread(&mut command);
    command.spawn()
}

/// Moves this process into a user namespace of its own, where it is root, unless it may create network namespaces
/// already. There it may create network namespaces and interfaces in them; file access stays that of its user. The
/// process must have no other threads yet.
///
/// # Errors
/// [`Error::NoEmulation`], with remedies, if neither is permitted.
pub fn enter_user_namespace() -> Result<(), Error> {
    let needed = CapabilitySet::SYS_ADMIN | CapabilitySet::NET_ADMIN;
    if capabilities(None).is_ok_and(|sets| sets.effective.contains(needed)) {
        return Ok(());
    }
    let (user, group) = (getuid(), getgid());
    let refused = |doing: &str| {
        let doing = doing.to_owned();
        move |source| Error::NoEmulation { doing, source }
    };
    sys::leave_user_namespace().map_err(refused("making a user namespace (unshare CLONE_NEWUSER)"))?;
    // Otherwise only root may map groups (user_namespaces(7)).
    for (file, text) in [
        ("setgroups", "deny".into()),
        ("uid_map", format!("0 {} 1", user.as_raw())),
        ("gid_map", format!("0 {} 1", group.as_raw())),
    ] {
        let path = format!("/proc/self/{file}");
        fs::write(&path, text).map_err(refused(&format!("writing {path}")))?;
    }
    Ok(())
}

/// Returns whether a name is a word that `/etc/hosts` can have (RFC 1123 §2.1).
#[must_use]
pub fn is_host_name(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '.')
}

/// Replaces the contents of `/etc/hosts` for this process and those that it starts. The process must have no other threads.
/// It gets a mount namespace of its own; no file is changed.
///
/// # Errors
/// [`Error::Unavailable`] without `CAP_SYS_ADMIN`; [`Error::System`] if there is no `/etc/hosts`.
pub fn replace_hosts_file(contents: &[u8]) -> Result<(), Error> {
    const HOSTS: &str = "/etc/hosts";
    /// Covered for a moment, by a file system that holds the file.
    const FOLDER: &str = "/tmp";
    let failed = |doing: &'static str| move |e: io::Error| Error::new(doing, e);
    let draft = format!("{FOLDER}/hosts");
    own_mounts()?;
    mount("tmpfs", FOLDER, "tmpfs", MountFlags::empty(), None)
        .map_err(|e| Error::new("mounting a tmpfs", e))?;
    let bound = fs::write(&draft, contents)
        .map_err(failed("writing the names of hosts"))
        .and_then(|()| mount_bind(&draft, HOSTS).map_err(|e| Error::new(format!("replacing {HOSTS}"), e)));
    // The file stays, as it is mounted elsewhere.
    unmount(FOLDER, UnmountFlags::DETACH).map_err(|e| Error::new("unmounting a tmpfs", e))?;
    bound
}

/// Makes the kernel's settings below `/proc/sys` writable for this thread and the programs that it starts, where they are
/// read-only, as in containers. The thread gets a mount namespace of its own then.
///
/// # Errors
/// [`Error::Unavailable`] without `CAP_SYS_ADMIN`, or if the container forbids mounts.
pub fn make_settings_writable() -> Result<(), Error> {
    const SETTINGS: &str = "/proc/sys";
    if statvfs(SETTINGS).is_ok_and(|found| found.f_flag.contains(StatVfsMountFlags::RDONLY)) {
        own_mounts()?;
        mount_remount(SETTINGS, MountFlags::BIND, "")
            .map_err(|e| Error::new(format!("making {SETTINGS} writable"), e))?;
    }
    Ok(())
}

/// Gives this thread a mount namespace of its own, from which nothing spreads.
fn own_mounts() -> Result<(), Error> {
    sys::leave_mount_namespace()
        .map_err(|e| Error::new("making a mount namespace (unshare CLONE_NEWNS)", e))?;
    let private = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
    mount_change("/", private).map_err(|e| Error::new("making mounts private", e))
}

fn run_in_thread<T: Send>(what: impl FnOnce() -> T + Send) -> Result<T, Error> {
    thread::scope(|scope| {
        let thread = thread::Builder::new()
            .name("namespace".into())
            .spawn_scoped(scope, what)
            .map_err(|e| Error::new("starting a thread", e))?;
        Ok(thread.join().unwrap_or_else(|panic| resume_unwind(panic)))
    })
}
