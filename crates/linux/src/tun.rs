//! TUN and TAP interfaces. The process reads the packets or Ethernet frames that the kernel sends through it, one at a
//! time; those written to it arrive in the kernel.

use crate::error::Error;
use crate::sys::{self, Layer};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt;

/// A TUN or TAP interface of the namespace in which it was opened. A TUN interface carries IP packets, a TAP interface Ethernet
/// frames. It is removed when this value is dropped, unless it [persists](Self::set_lifetime). It has no virtual-network header,
/// so that the kernel segments packets and completes checksums before the process reads them.
#[derive(Debug)]
pub struct Tun {
    file: File,
    name: String,
}

/// Lifetime of a TUN or TAP interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TunLifetime {
    /// Until it is removed (`ip tuntap del`). Addresses, routes and sockets are kept; packets are dropped while no
    /// process has it open.
    Persistent,
    /// As long as a process has it open.
    Process,
}

impl Tun {
    /// Sets the lifetime of the interface. By default, a new one is removed with this value, and an existing one is kept.
    ///
    /// # Errors
    /// Error of the system.
    pub fn set_lifetime(&self, lifetime: TunLifetime) -> io::Result<()> {
        sys::set_tun_lifetime(self.file.as_fd(), lifetime == TunLifetime::Persistent)
    }

    /// Creates a TUN interface in the calling thread's namespace, or attaches to a persistent one that no process has open.
    /// `name` has at most 15 bytes; a `%d` in it is replaced by the first free number. Reading and writing do not block.
    ///
    /// # Errors
    /// [`Error::Unavailable`] without `CAP_NET_ADMIN` or `/dev/net/tun`; [`Error::System`] if the name is in use.
    pub fn open(name: &str) -> Result<Self, Error> {
        open(name, Layer::Tun)
    }

    /// The same with a TAP interface.
    ///
    /// # Errors
    /// Those of [`open`](Self::open).
    pub fn open_tap(name: &str) -> Result<Self, Error> {
        open(name, Layer::Tap)
    }

    /// Returns another handle of the same interface.
    pub fn try_clone(&self) -> io::Result<Self> {
        Ok(Self { file: self.file.try_clone()?, name: self.name.clone() })
    }

    /// Returns the name of the interface.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Reads the next packet or frame from the kernel, truncated to the buffer's length; `None` if there is none.
    ///
    /// # Errors
    /// If the interface is down, or the system fails.
    pub fn receive(&self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        match (&self.file).read(buffer) {
            Ok(len) => Ok(Some(len)),
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => Ok(None),
            Err(e) => Err(e),
        }
    }

    /// Passes a packet or frame to the kernel.
    ///
    /// # Errors
    /// If the interface is down, the kernel has no room, or a packet is none of IP.
    pub fn send(&self, packet: &[u8]) -> io::Result<()> {
        (&self.file).write(packet).map(|_| ())
    }
}

impl AsFd for Tun {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

fn open(name: &str, layer: Layer) -> Result<Tun, Error> {
    let path = "/dev/net/tun";
    let file = File::options()
        .read(true)
        .write(true)
        .custom_flags(libc::O_NONBLOCK)
        .open(path)
        .map_err(|e| Error::new(format!("opening {path}"), e))?;
    let kind = match layer {
        Layer::Tun => "TUN",
        Layer::Tap => "TAP",
    };
    let name = sys::attach_tun(file.as_fd(), name, layer)
        .map_err(|e| Error::new(format!("making the {kind} interface {name}"), e))?;
    Ok(Tun { file, name })
}
