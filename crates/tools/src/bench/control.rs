//! The control connection.

use super::error::Error;
use super::now;
use super::parameters::Dialect;
use super::protocol::{Extra, MAX_FROM_CLIENT, MAX_FROM_SERVER, State};
use super::refusal::PeerError;
use super::stream::{Stream, is_timeout};
use crate::printable::printable;
use hopline_streams::wide::PublicKey;
use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
use rustix::io::Errno;
use rustix::time::Timespec;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io::{self, Read, Write};
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::task::Wake;
use std::time::Duration;

/// Timeout of sending a message, and of receiving the rest of one that has begun. It is longer than an outage of 10 s
/// plus the back-off of the timers of TCP and TPA.
const MESSAGE_TIMEOUT: Duration = Duration::from_secs(30);
/// Timeout of one call to the transport.
const CALL_TIMEOUT: Duration = Duration::from_millis(100);
/// Timeout of closing the connection.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(3);
/// Interval between checks for an interruption.
pub(super) const INTERRUPT_CHECK: Duration = Duration::from_millis(100);

/// Wakes the thread that waits at a control connection.
#[derive(Debug)]
pub(super) struct Notifier(OwnedFd);

impl Notifier {
    pub(super) fn new() -> io::Result<Self> {
        Ok(Self(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?))
    }

    pub(super) fn notify(&self) {
        // The write fails only if the counter is at its maximum; then it is above zero, which is enough.
        let _ = rustix::io::write(&self.0, &1u64.to_ne_bytes());
    }

    fn clear(&self) {
        // The read fails if the bell has not rung.
        let _ = rustix::io::read(&self.0, &mut [0; 8]);
    }
}

impl Wake for Notifier {
    fn wake(self: Arc<Self>) {
        self.notify();
    }
}

/// Side of a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Client,
    Server,
}

/// Control connection: states and JSON over a stream.
#[derive(Debug)]
pub(super) struct Control {
    side: Side,
    stream: Stream,
    /// Dialect of the peer, as far as it is known.
    pub(super) dialect: Dialect,
    /// UDP port at which a hopline server echoes datagrams.
    pub(super) echo_port: Option<u16>,
    /// Public key of the server for data over TPA-wide.
    pub(super) key: Option<PublicKey>,
}

impl Control {
    pub(super) fn new(side: Side, stream: Stream) -> Result<Self, Error> {
        stream.set_timeout(CALL_TIMEOUT).and_then(|()| stream.set_prompt()).map_err(Error::Control)?;
        Ok(Self { side, stream, dialect: Dialect::Iperf3, echo_port: None, key: None })
    }

    pub(super) fn send_state(&mut self, state: State) -> Result<(), Error> {
        self.send(&[state as i8 as u8])
    }

    /// Sends a value as JSON, with its length before it.
    pub(super) fn send_json(&mut self, value: &impl Serialize) -> Result<(), Error> {
        let text = serde_json::to_vec(value).expect("numbers and words");
        let len = u32::try_from(text.len()).expect("far below 4 GiB");
        self.send(&[&len.to_be_bytes()[..], &text].concat())
    }

    /// Returns the next state, if one arrives within `wait` and before `bell` rings. A state that ends the test is an
    /// error.
    pub(super) fn receive_state(&mut self, wait: Duration, bell: &Notifier) -> Result<Option<State>, Error> {
        let woken = wait_for(&self.stream, bell, wait)?;
        bell.clear();
        let mut byte = [0];
        if !woken {
            return Ok(None);
        }
        match (&self.stream).read(&mut byte) {
            Ok(0) => return Err(Error::Closed),
            Ok(_) => {}
            Err(e) if is_timeout(&e) => return Ok(None),
            Err(e) => return Err(Error::Control(e)),
        }
        let state = State::of(byte[0]);
        let state =
            state.ok_or_else(|| Error::Protocol(format!("{} is no state of a test", byte[0] as i8)))?;
        match (state, self.side) {
            (State::Hopline, Side::Client) => {
                let extra: Extra = self.receive_json()?;
                self.dialect = Dialect::Hopline;
                self.echo_port = extra.echo_port.or(self.echo_port);
                self.key = extra.key.map(PublicKey::new).or(self.key.take());
                match extra.refused {
                    Some(words) => Err(Error::Refused(printable(words.as_bytes()))),
                    None => Ok(None),
                }
            }
            (State::AccessDenied, Side::Client) => Err(Error::Busy),
            (State::ServerTerminate, Side::Client) | (State::ClientTerminate, Side::Server) => {
                Err(Error::Stopped)
            }
            (State::ServerError, Side::Client) => {
                let numbers = self.receive(8)?;
                let number = |at: usize| {
                    numbers
                        .get(at..)
                        .and_then(<[u8]>::first_chunk)
                        .map_or(0, |bytes| u32::from_be_bytes(*bytes))
                };
                Err(Error::Failed(PeerError { number: number(0), errno: number(4) }))
            }
            (state, _) => Ok(Some(state)),
        }
    }

    /// Waits at most `limit` for the state `wanted`. `doing`: the step that the peer has to take for it, for the error
    /// message.
    pub(super) fn await_state(
        &mut self,
        wanted: State,
        limit: Duration,
        doing: &'static str,
        interrupted: &dyn Fn() -> bool,
    ) -> Result<(), Error> {
        let bell = Notifier::new().map_err(Error::Control)?;
        let until = now() + limit;
        while now() < until {
            if interrupted() {
                return Err(Error::Interrupted);
            }
            match self.receive_state(INTERRUPT_CHECK, &bell)? {
                Some(state) if state == wanted => return Ok(()),
                Some(state) => return Err(unexpected_state(state)),
                None => {}
            }
        }
        Err(Error::Late(doing))
    }

    /// Receives a JSON message.
    pub(super) fn receive_json<T: DeserializeOwned>(&mut self) -> Result<T, Error> {
        let header = self.receive(4)?;
        let len = header.first_chunk().map_or(0, |bytes| u32::from_be_bytes(*bytes)) as usize;
        let most = match self.side {
            Side::Client => MAX_FROM_SERVER,
            Side::Server => MAX_FROM_CLIENT,
        };
        if len > most {
            return Err(Error::Protocol(format!("a message of {len} bytes")));
        }
        let text = self.receive(len)?;
        serde_json::from_slice(&text).map_err(|e| Error::Protocol(format!("a message that is none: {e}")))
    }

    /// Receives exactly `len` bytes. Nothing behind them is read, since it may be the data of a stream.
    pub(super) fn receive(&mut self, len: usize) -> Result<Vec<u8>, Error> {
        let until = now() + MESSAGE_TIMEOUT;
        let mut bytes = Vec::new();
        while bytes.len() < len {
            let mut buffer = [0; 4096];
            let wanted = (len - bytes.len()).min(buffer.len());
            match (&self.stream).read(&mut buffer[..wanted]) {
                Ok(0) => return Err(Error::Closed),
                Ok(n) => bytes.extend(&buffer[..n]),
                Err(e) if is_timeout(&e) && now() < until => {}
                Err(e) if is_timeout(&e) => return Err(Error::Silent(MESSAGE_TIMEOUT.as_secs())),
                Err(e) => return Err(Error::Control(e)),
            }
        }
        Ok(bytes)
    }

    /// Tells the peer that this side cannot go on, if the connection still works.
    pub(super) fn fail(mut self, error: &Error) {
        if !error.is_reported_to_peer() {
            return self.stream.abort();
        }
        if self.send_error(error).is_ok() {
            self.close();
        }
    }

    fn send_error(&mut self, error: &Error) -> Result<(), Error> {
        if self.side == Side::Client {
            return self.send_state(State::ClientTerminate);
        }
        if let Error::Interrupted = error {
            return self.send_state(State::ServerTerminate);
        }
        if self.dialect == Dialect::Hopline {
            self.send_state(State::Hopline)?;
            return self.send_json(&Extra { refused: Some(error.to_string()), ..Extra::default() });
        }
        self.send_state(State::ServerError)?;
        self.send(&[error.code() as u32, error.errno()].map(u32::to_be_bytes).concat())
    }

    /// Closes the connection once the peer has everything. The client closes first: it need not wait for the server's
    /// answer.
    pub(super) fn close(self) {
        match self.side {
            Side::Client => self.stream.close(CLOSE_TIMEOUT),
            Side::Server => {
                let until = now() + CLOSE_TIMEOUT;
                let heard = |read| match read {
                    Ok(0) => false,
                    Ok(_) => true,
                    Err(e) => is_timeout(&e),
                };
                while now() < until && heard((&self.stream).read(&mut [0; 64])) {}
                self.stream.abort();
            }
        }
    }

    pub(super) const fn side(&self) -> Side {
        self.side
    }

    pub(super) const fn stream(&self) -> &Stream {
        &self.stream
    }

    /// Returns the stream. No byte behind the messages has been read.
    pub(super) fn into_stream(self) -> Stream {
        self.stream
    }

    pub(super) fn peer_addr(&self) -> Result<SocketAddr, Error> {
        self.stream.peer_addr().map_err(Error::Control)
    }

    pub(super) fn send(&mut self, bytes: &[u8]) -> Result<(), Error> {
        let until = now() + MESSAGE_TIMEOUT;
        let mut rest = bytes;
        while !rest.is_empty() {
            match (&self.stream).write(rest) {
                Ok(0) => return Err(Error::Closed),
                Ok(n) => rest = &rest[n..],
                Err(e) if is_timeout(&e) && now() < until => {}
                Err(e) if is_timeout(&e) => return Err(Error::Silent(MESSAGE_TIMEOUT.as_secs())),
                Err(e) => return Err(Error::Control(e)),
            }
        }
        (&self.stream).flush().map_err(Error::Control)
    }
}

/// Returns whether `stream` became readable within `wait` and before `bell` rang.
pub(super) fn wait_for(stream: &Stream, bell: &Notifier, wait: Duration) -> Result<bool, Error> {
    let timeout = Timespec { tv_sec: wait.as_secs() as i64, tv_nsec: wait.subsec_nanos().into() };
    let mut both = [PollFd::new(stream, PollFlags::IN), PollFd::new(&bell.0, PollFlags::IN)];
    match poll(&mut both, Some(&timeout)) {
        Ok(_) | Err(Errno::INTR) => Ok(!both[0].revents().is_empty()),
        Err(e) => Err(Error::Control(e.into())),
    }
}

/// Returns the error for a state that is not allowed here.
pub(super) fn unexpected_state(state: State) -> Error {
    Error::Protocol(format!("{state:?} came out of turn"))
}
