//! The netlink socket of a queue.

use super::message::Setting;
use super::parse::{Malformed, Message, Queued, messages};
use hopline_linux::Error;
use hopline_linux::sys;
use rustix::net::netlink::{self, SocketAddrNetlink};
use rustix::net::{AddressFamily, SendFlags, SocketFlags, SocketType, connect, send, socket_with, sockopt};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// Maximum datagrams received by one system call.
const BATCH: usize = 64;
/// Maximum bytes of a datagram: the longest packet and its attributes.
const MAX_DATAGRAM: usize = 65_536 + 4096;

/// A netlink socket that receives messages of the kernel only.
#[derive(Debug)]
pub(super) struct QueueSocket {
    fd: OwnedFd,
    buffers: Vec<Box<[u8]>>,
    sequence: u32,
    /// Truncated datagrams and malformed messages.
    pub(super) malformed: u64,
    /// Verdicts that the kernel rejected, for instance because the packet was lost with its interface.
    pub(super) refused: u64,
}

impl QueueSocket {
    /// Opens a socket with this receive buffer, in bytes, in the calling thread's namespace.
    pub(super) fn open(receive_buffer: usize) -> Result<Self, Error> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let fd = socket_with(AddressFamily::NETLINK, SocketType::RAW, flags, Some(netlink::NETFILTER))
            .map_err(|e| Error::new("opening a netlink socket of netfilter", e))?;
        // Connected to the kernel, it receives nothing from other processes.
        connect(&fd, &SocketAddrNetlink::new(0, 0)).map_err(|e| Error::new("connecting to netfilter", e))?;
        sockopt::set_socket_recv_buffer_size_force(&fd, receive_buffer)
            .map_err(|e| Error::new("enlarging the receive buffer (SO_RCVBUFFORCE)", e))?;
        // The kernel counts packets lost to a full buffer; nothing else is wrong then.
        sys::set_option(&fd, libc::SOL_NETLINK, libc::NETLINK_NO_ENOBUFS, 1)
            .map_err(|e| Error::system("setting NETLINK_NO_ENOBUFS", e))?;
        let buffers = (0..BATCH).map(|_| vec![0; MAX_DATAGRAM].into_boxed_slice()).collect();
        Ok(Self { fd, buffers, sequence: 0, malformed: 0, refused: 0 })
    }

    /// Requests a setting and waits for the acknowledgement. Packets that arrive before it are passed to `take`.
    pub(super) fn request(
        &mut self,
        queue: u16,
        setting: Setting,
        mut take: impl FnMut(Queued<'_>),
    ) -> io::Result<()> {
        self.sequence += 1;
        let asked = self.sequence;
        self.send(&setting.request(queue, asked))?;
        // The kernel acknowledges before `send` returns.
        loop {
            let mut answer = None;
            let received = self.receive_all(|message| match message {
                Message::Packet(packet) => take(packet),
                Message::Answer { sequence, error } if sequence == asked => answer = Some(error),
                Message::Answer { .. } | Message::Other => {}
            })?;
            match (answer, received) {
                (Some(0), _) => return Ok(()),
                (Some(error), _) => return Err(io::Error::from_raw_os_error(error)),
                (None, 0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                (None, _) => {}
            }
        }
    }

    pub(super) fn send(&self, messages: &[u8]) -> io::Result<()> {
        send(&self.fd, messages, SendFlags::empty())?;
        Ok(())
    }

    /// Receives packets by one system call, and counts malformed messages.
    pub(super) fn receive(&mut self, mut take: impl FnMut(Queued<'_>)) -> io::Result<()> {
        let mut refused = 0;
        self.receive_all(|message| match message {
            Message::Packet(packet) => take(packet),
            Message::Answer { error, .. } => refused += u64::from(error != 0),
            Message::Other => {}
        })?;
        self.refused += refused;
        Ok(())
    }

    /// Returns the number of datagrams.
    fn receive_all(&mut self, mut take: impl FnMut(Message<'_>)) -> io::Result<usize> {
        let received = match sys::receive_many(&self.fd, &mut self.buffers) {
            Ok(received) => received,
            Err(error) if is_transient(&error) => return Ok(0),
            Err(error) => return Err(error),
        };
        for (datagram, buffer) in received.iter().zip(&self.buffers) {
            self.malformed += u64::from(datagram.truncated);
            for message in messages(&buffer[..datagram.len]) {
                match message {
                    Ok(message) => take(message),
                    // A truncated datagram has already been counted.
                    Err(Malformed::Length) if datagram.truncated => {}
                    Err(_) => self.malformed += 1,
                }
            }
        }
        Ok(received.len())
    }
}

impl AsFd for QueueSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Returns whether a later call may succeed.
fn is_transient(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
        || error.raw_os_error() == Some(libc::ENOBUFS)
}
