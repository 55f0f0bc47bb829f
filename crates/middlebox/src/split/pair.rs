//! The two halves of a connection, and what goes from one to the other.
//!
//! A half is read from as long as the other one takes what was read. What it does not take at once, a buffer at most, waits here, and then
//! no more is read: the window of the host that sends closes. Nothing is kept for a connection over which nothing goes.

use hopline_linux::transparent;
use rustix::event::epoll::EventFlags;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};

/// Indices of the half towards the client and of the half towards the server.
pub(super) const CLIENT: usize = 0;
pub(super) const SERVER: usize = 1;

/// Buffers carried for one connection before other connections have their turn.
const BUFFERS_PER_TURN: usize = 16;

#[derive(Debug)]
pub(super) struct Pair {
    halves: [Half; 2],
}

#[derive(Debug)]
struct Half {
    stream: TcpStream,
    /// `true` if the socket may have data to read (`readable`) or room for data (`writable`), as of the last event.
    readable: bool,
    writable: bool,
    /// `true` if a short read may leave data in the socket: at urgent data (tcp(7)), and before the end.
    may_have_more: bool,
    incoming: ReceiveState,
    pending: PendingBytes,
}

/// State of the direction in which the host of this half sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ReceiveState {
    Open,
    /// Its end has been read.
    Ended,
    /// The other host has been told, after the last byte before it.
    Forwarded,
}

/// Bytes read for a half that its socket has not taken yet.
#[derive(Debug, Default)]
struct PendingBytes {
    bytes: Vec<u8>,
    written: usize,
}

/// Parts of a pair before its sockets are registered.
#[derive(Debug)]
pub(super) struct Parts {
    /// Those to the client and to the server.
    pub(super) streams: [TcpStream; 2],
    /// Bytes that wait for each of them.
    pub(super) pending: [Vec<u8>; 2],
}

/// Outcome of a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RelayResult {
    /// An event will say when it goes on.
    Blocked,
    /// There is more to do now; others first.
    MoreWork,
    /// Both hosts have ended, and all has been handed on.
    Finished,
}

impl Pair {
    /// Halves of which nothing is known yet.
    pub(super) fn new(client: TcpStream, server: TcpStream) -> Self {
        Self { halves: [Half::new(client), Half::new(server)] }
    }

    /// Halves with bytes that wait for them.
    pub(super) fn from_parts(Parts { streams: [client, server], pending: waiting }: Parts) -> Self {
        let mut pair = Self::new(client, server);
        for (half, bytes) in pair.halves.iter_mut().zip(waiting) {
            half.pending = PendingBytes { bytes, written: 0 };
        }
        pair
    }

    /// Returns whether neither host has ended its direction, as far as was read.
    pub(super) fn is_open(&self) -> bool {
        self.halves.iter().all(|half| half.incoming == ReceiveState::Open)
    }

    /// Takes a pair apart that [is open](Self::is_open).
    pub(super) fn into_parts(self) -> Parts {
        let parts = self.halves.map(|half| {
            let mut bytes = half.pending.bytes;
            bytes.drain(..half.pending.written);
            (half.stream, bytes)
        });
        let [(client, to_client), (server, to_server)] = parts;
        Parts { streams: [client, server], pending: [to_client, to_server] }
    }

    /// Notes what an event says of a half.
    ///
    /// # Errors
    /// Why the half is gone.
    pub(super) fn handle_event(&mut self, half: usize, flags: EventFlags) -> io::Result<()> {
        let half = &mut self.halves[half];
        if flags.contains(EventFlags::ERR) {
            return Err(half.stream.take_error()?.unwrap_or_else(|| ErrorKind::ConnectionReset.into()));
        }
        half.readable |=
            flags.intersects(EventFlags::IN | EventFlags::PRI | EventFlags::RDHUP | EventFlags::HUP);
        half.may_have_more |= flags.intersects(EventFlags::PRI | EventFlags::RDHUP | EventFlags::HUP);
        half.writable |= flags.contains(EventFlags::OUT);
        Ok(())
    }

    /// Carries what there is, both ways. `buffer` is lent for the time of the call; `carried` is told of bytes handed to a half.
    ///
    /// # Errors
    /// Why a half is gone: the other is to be reset.
    pub(super) fn relay(
        &mut self,
        buffer: &mut [u8],
        mut carried: impl FnMut(usize, usize),
    ) -> io::Result<RelayResult> {
        let [client, server] = &mut self.halves;
        let forth = client.relay_to(server, buffer, &mut |len| carried(SERVER, len))?;
        let back = server.relay_to(client, buffer, &mut |len| carried(CLIENT, len))?;
        Ok(match (forth, back) {
            (RelayResult::Finished, RelayResult::Finished) => RelayResult::Finished,
            (RelayResult::MoreWork, _) | (_, RelayResult::MoreWork) => RelayResult::MoreWork,
            _ => RelayResult::Blocked,
        })
    }

    /// Ends both halves in order.
    pub(super) fn end(self) {
        for half in self.halves {
            // A half that cannot be ended is reset, which is all there is to be done.
            let _ = transparent::close_cleanly(half.stream);
        }
    }

    pub(super) const fn stream(&self, half: usize) -> &TcpStream {
        &self.halves[half].stream
    }
}

impl Half {
    fn new(stream: TcpStream) -> Self {
        Self {
            stream,
            readable: false,
            writable: false,
            may_have_more: false,
            incoming: ReceiveState::Open,
            pending: PendingBytes::default(),
        }
    }

    fn relay_to(
        &mut self,
        to: &mut Self,
        buffer: &mut [u8],
        carried: &mut impl FnMut(usize),
    ) -> io::Result<RelayResult> {
        for _ in 0..BUFFERS_PER_TURN {
            if !to.flush(carried)? {
                return Ok(RelayResult::Blocked);
            }
            match self.incoming {
                ReceiveState::Forwarded => return Ok(RelayResult::Finished),
                ReceiveState::Ended => {
                    to.stream.shutdown(Shutdown::Write)?;
                    self.incoming = ReceiveState::Forwarded;
                }
                ReceiveState::Open if self.readable => {
                    let len = self.read(buffer)?;
                    to.send(&buffer[..len], carried)?;
                }
                ReceiveState::Open => return Ok(RelayResult::Blocked),
            }
        }
        Ok(RelayResult::MoreWork)
    }

    /// Reads once. Nothing: there was nothing, or the end.
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.stream.read(buffer) {
            Ok(0) => {
                self.incoming = ReceiveState::Ended;
                Ok(0)
            }
            Ok(len) => {
                // epoll(7): a stream that gives less than was asked for has no more, and an event comes with what comes.
                self.readable = len == buffer.len() || self.may_have_more;
                Ok(len)
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                self.readable = false;
                self.may_have_more = false;
                Ok(0)
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => Ok(0),
            Err(error) => Err(error),
        }
    }

    /// Hands over what it takes, and keeps the rest.
    fn send(&mut self, bytes: &[u8], carried: &mut impl FnMut(usize)) -> io::Result<()> {
        let taken = if bytes.is_empty() { 0 } else { self.write(bytes)? };
        carried(taken);
        if taken < bytes.len() {
            self.pending = PendingBytes { bytes: bytes[taken..].to_vec(), written: 0 };
        }
        Ok(())
    }

    /// Hands over what waits; whether nothing does any more.
    fn flush(&mut self, carried: &mut impl FnMut(usize)) -> io::Result<bool> {
        while self.pending.written < self.pending.bytes.len() {
            if !self.writable {
                return Ok(false);
            }
            let waiting = std::mem::take(&mut self.pending);
            let written = self.write(&waiting.bytes[waiting.written..]);
            self.pending = waiting;
            let written = written?;
            self.pending.written += written;
            carried(written);
        }
        self.pending = PendingBytes::default();
        Ok(true)
    }

    /// Writes once. Less than all of it: there is no room for more.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self.stream.write(bytes) {
            Ok(len) => {
                self.writable = true;
                Ok(len)
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                self.writable = false;
                Ok(0)
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => Ok(0),
            Err(error) => Err(error),
        }
    }
}
