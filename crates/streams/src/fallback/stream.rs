//! A connection over either transport.

use crate::tpa::TpaStream;
use hopline_linux::sys;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::Duration;

/// Maximum interval between checks of a TCP connection for unacknowledged data: the kernel does not signal the end of
/// delivery.
const MAX_CHECK_INTERVAL: Duration = Duration::from_millis(20);

/// Connection over TPA or TCP: a byte stream in each direction.
#[derive(Debug)]
pub enum Stream {
    /// Over TPA.
    Tpa(TpaStream),
    /// Over TCP.
    Tcp(TcpStream),
}

impl Stream {
    /// Returns the address of the peer.
    ///
    /// # Errors
    /// `NotConnected` if the TCP connection has ended.
    pub fn peer_addr(&self) -> io::Result<SocketAddr> {
        match self {
            Self::Tpa(stream) => Ok(stream.peer_addr()),
            Self::Tcp(stream) => stream.peer_addr(),
        }
    }

    /// Ends writing, reading, or both.
    ///
    /// # Errors
    /// `NotConnected` if the connection has ended.
    pub fn shutdown(&self, how: Shutdown) -> io::Result<()> {
        match self {
            Self::Tpa(stream) => stream.shutdown(how),
            Self::Tcp(stream) => stream.shutdown(how),
        }
    }

    /// Ends writing and waits until the peer's host has everything, for at most `limit`.
    ///
    /// # Errors
    /// If the connection failed before, or `WouldBlock` if `limit` has expired: the peer may not have everything.
    pub fn close_within(&self, limit: Duration) -> io::Result<()> {
        match self {
            Self::Tpa(stream) => stream.close_within(limit),
            Self::Tcp(stream) => close_tcp_within(stream, limit),
        }
    }
}

/// Ends writing to a TCP connection and waits until the peer's host has everything, for at most `limit`.
///
/// # Errors
/// As [`Stream::close_within`].
pub fn close_tcp_within(stream: &TcpStream, limit: Duration) -> io::Result<()> {
    // TCP_CLOSE in the kernel: nothing is sent any more.
    const CLOSED: u8 = 7;
    match stream.shutdown(Shutdown::Write) {
        Err(error) if error.kind() != ErrorKind::NotConnected => return Err(error),
        _ => {}
    }
    #[expect(clippy::disallowed_methods, reason = "sockets are in real time")]
    let began = std::time::Instant::now();
    let mut look = Duration::from_millis(1);
    loop {
        if let Some(error) = stream.take_error()? {
            return Err(error);
        }
        // The FIN counts as a byte.
        if sys::unacknowledged(stream)? == 0 {
            return Ok(());
        }
        if sys::tcp_info(stream)?.tcpi_state == CLOSED {
            return Err(ErrorKind::ConnectionReset.into());
        }
        let left = limit.saturating_sub(began.elapsed());
        if left.is_zero() {
            return Err(ErrorKind::WouldBlock.into());
        }
        std::thread::sleep(look.min(left));
        look = (look * 2).min(MAX_CHECK_INTERVAL);
    }
}

impl Read for &Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Stream::Tpa(stream) => (&*stream).read(buffer),
            Stream::Tcp(stream) => (&*stream).read(buffer),
        }
    }
}

impl Write for &Stream {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        match self {
            Stream::Tpa(stream) => (&*stream).write(data),
            Stream::Tcp(stream) => (&*stream).write(data),
        }
    }

    /// Sends the written data at once. Does not wait for their arrival.
    fn flush(&mut self) -> io::Result<()> {
        match self {
            Stream::Tpa(stream) => (&*stream).flush(),
            Stream::Tcp(stream) => (&*stream).flush(),
        }
    }
}

impl Read for Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        (&*self).read(buffer)
    }
}

impl Write for Stream {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        (&*self).write(data)
    }

    fn flush(&mut self) -> io::Result<()> {
        (&*self).flush()
    }
}
