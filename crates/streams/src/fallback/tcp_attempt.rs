//! TCP connection attempt that stays half open at the server until it is taken.
//!
//! Linux delays the last ACK of a handshake by 200 ms (`TCP_DELACK_MAX`) if the socket does not acknowledge at once
//! (`TCP_QUICKACK` of 0, tcp(7)), since data of the client may carry it. A reset before that removes the request from the
//! server's queue, so that its `accept` does not return.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::sockopt;
use socket2::{Domain, Protocol, Socket, Type};
use std::io;
use std::net::{SocketAddr, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::task::Poll;
use std::time::Duration;

/// Last ACK of the handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LastAck {
    /// It is sent when the connection is taken.
    Withheld,
    /// It is sent at once.
    AtOnce,
}

/// TCP connection attempt. Dropping it resets the connection, or sends nothing if the peer has not answered.
#[derive(Debug)]
pub(super) struct TcpAttempt(Socket);

impl TcpAttempt {
    /// Sends a SYN from a socket that may be bound.
    pub(super) fn connect(bound: Option<Socket>, peer: SocketAddr, ack: LastAck) -> io::Result<Self> {
        let socket = match bound {
            Some(socket) => socket,
            None => Socket::new(Domain::for_address(peer), Type::STREAM, Some(Protocol::TCP))?,
        };
        socket.set_nonblocking(true)?;
        socket.set_linger(Some(Duration::ZERO))?;
        if ack == LastAck::Withheld {
            sockopt::set_tcp_quickack(&socket, false)?;
        }
        match socket.connect(&peer.into()) {
            Err(error) if error.raw_os_error() != Some(libc::EINPROGRESS) => Err(error),
            _ => Ok(Self(socket)),
        }
    }

    /// Returns whether the peer has answered. Does not wait.
    pub(super) fn poll(&self) -> Poll<io::Result<()>> {
        let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
        match poll(&mut [PollFd::new(&self.0, PollFlags::OUT)], Some(&at_once)) {
            Ok(0) => Poll::Pending,
            Ok(_) => Poll::Ready(self.0.take_error().and_then(|error| error.map_or(Ok(()), Err))),
            Err(error) => Poll::Ready(Err(error.into())),
        }
    }

    /// Completes the handshake.
    pub(super) fn complete(self) -> io::Result<TcpStream> {
        self.0.set_linger(None)?;
        // The withheld ACK is sent.
        sockopt::set_tcp_quickack(&self.0, true)?;
        self.0.set_nonblocking(false)?;
        Ok(self.0.into())
    }
}

impl AsFd for TcpAttempt {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
