//! The control connection.

use super::error::{Error, Refusal};
use super::message::{HEADER, Message, MessageProblem};
use super::now;
use super::stream::{Stream, is_timeout};
use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
use rustix::io::Errno;
use rustix::time::Timespec;
use std::io::{self, Read, Write};
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

/// How long a side may be silent before it is given up: longer than an outage of 10 s with what TCP's and TPA's timers add.
const SILENCE: Duration = Duration::from_secs(30);
/// How long a side is silent before it says that it is still there.
const ALIVE: Duration = Duration::from_secs(5);
/// How long one call to the transport may take.
const CALL: Duration = Duration::from_millis(100);
/// How long the last words may take.
const FAREWELL: Duration = Duration::from_secs(3);
/// How often an interruption is looked for.
pub(super) const LOOK: Duration = Duration::from_millis(100);

/// Wakes who waits at a control connection.
#[derive(Debug)]
pub(super) struct Bell(OwnedFd);

impl Bell {
    pub(super) fn new() -> io::Result<Self> {
        Ok(Self(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?))
    }

    pub(super) fn ring(&self) {
        // A counter that cannot be added to is above zero.
        let _ = rustix::io::write(&self.0, &1u64.to_ne_bytes());
    }

    fn silence(&self) {
        // It may not have rung.
        let _ = rustix::io::read(&self.0, &mut [0; 8]);
    }
}

/// Whose end it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Client,
    Server,
}

/// Messages over a stream.
#[derive(Debug)]
pub(super) struct Control {
    side: Side,
    stream: Stream,
    /// What has arrived of the next message.
    pending: Vec<u8>,
    heard: Instant,
    spoke: Instant,
}

impl Control {
    pub(super) fn new(side: Side, stream: Stream) -> Result<Self, Error> {
        stream.set_patience(CALL).and_then(|()| stream.set_prompt()).map_err(Error::Control)?;
        Ok(Self { side, stream, pending: Vec::new(), heard: now(), spoke: now() })
    }

    pub(super) fn send(&mut self, message: &Message) -> Result<(), Error> {
        let bytes = message.encode();
        let until = now() + SILENCE;
        let mut rest = &bytes[..];
        while !rest.is_empty() {
            match (&self.stream).write(rest) {
                Ok(0) => return Err(Error::Closed),
                Ok(n) => rest = &rest[n..],
                Err(e) if is_timeout(&e) && now() < until => {}
                Err(e) if is_timeout(&e) => return Err(Error::Silent(SILENCE.as_secs())),
                Err(e) => return Err(Error::Control(e)),
            }
        }
        self.spoke = now();
        (&self.stream).flush().map_err(Error::Control)
    }

    /// Waits for a message, but no longer than `wait`, and no longer than until `bell` rings. A FAIL is an error here,
    /// and what only says that the peer is there is kept from the caller.
    pub(super) fn receive(&mut self, wait: Duration, bell: &Bell) -> Result<Option<Message>, Error> {
        if now() - self.spoke >= ALIVE {
            self.send(&Message::Alive)?;
        }
        let woken = wait_for(&self.stream, bell, wait.min(ALIVE))?;
        bell.silence();
        if !woken {
            let silent = now() - self.heard >= SILENCE;
            return if silent { Err(Error::Silent(SILENCE.as_secs())) } else { Ok(None) };
        }
        match self.read()? {
            Some(Message::Fail(refusal)) => Err(Error::Refused(refusal)),
            Some(Message::Alive) | None => Ok(None),
            message => Ok(message),
        }
    }

    /// The next message, if it has arrived. Nothing behind it is read, as that may belong to somebody else.
    fn read(&mut self) -> Result<Option<Message>, Error> {
        loop {
            let missing = match self.pending.first_chunk::<HEADER>() {
                None => HEADER - self.pending.len(),
                Some(header) => {
                    let len = HEADER + Message::body_len(*header).map_err(foreign)?;
                    if self.pending.len() == len {
                        let message = Message::decode(header[0], &self.pending[HEADER..]).map_err(foreign)?;
                        self.pending.clear();
                        return Ok(Some(message));
                    }
                    len - self.pending.len()
                }
            };
            let mut buffer = [0; 512];
            let len = missing.min(buffer.len());
            match (&self.stream).read(&mut buffer[..len]) {
                Ok(0) => return Err(Error::Closed),
                Ok(n) => {
                    self.pending.extend(&buffer[..n]);
                    self.heard = now();
                }
                Err(e) if is_timeout(&e) => return Ok(None),
                Err(e) => return Err(Error::Control(e)),
            }
        }
    }

    /// The next message, which must come before `limit` is over. `doing`: what the peer has to do for it.
    pub(super) fn expect(
        &mut self,
        limit: Duration,
        doing: &'static str,
        interrupted: &dyn Fn() -> bool,
    ) -> Result<Message, Error> {
        let bell = Bell::new().map_err(Error::Control)?;
        let until = now() + limit;
        while now() < until {
            if interrupted() {
                return Err(Error::Interrupted);
            }
            if let Some(message) = self.receive(LOOK, &bell)? {
                return Ok(message);
            }
        }
        Err(Error::Late(doing))
    }

    /// Tells the peer why it cannot go on, if it can be told.
    pub(super) fn fail(mut self, refusal: Refusal) {
        if self.send(&Message::Fail(refusal)).is_ok() {
            self.close();
        }
    }

    /// Ends it once the peer has everything. The client hangs up first: it may leave then, and nobody waits for its answer.
    pub(super) fn close(self) {
        match self.side {
            Side::Client => self.stream.close(FAREWELL),
            Side::Server => {
                let until = now() + FAREWELL;
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

    /// The stream alone; nothing was read of what follows the messages.
    pub(super) fn into_stream(self) -> Stream {
        self.stream
    }

    pub(super) fn peer_addr(&self) -> Result<SocketAddr, Error> {
        self.stream.peer_addr().map_err(Error::Control)
    }
}

/// Whether `stream` became readable within `wait`, or before `bell` rang.
fn wait_for(stream: &Stream, bell: &Bell, wait: Duration) -> Result<bool, Error> {
    let timeout = Timespec { tv_sec: wait.as_secs() as i64, tv_nsec: wait.subsec_nanos().into() };
    let mut both = [PollFd::new(stream, PollFlags::IN), PollFd::new(&bell.0, PollFlags::IN)];
    match poll(&mut both, Some(&timeout)) {
        Ok(_) | Err(Errno::INTR) => Ok(!both[0].revents().is_empty()),
        Err(e) => Err(Error::Control(e.into())),
    }
}

fn foreign(problem: MessageProblem) -> Error {
    match problem {
        MessageProblem::Version(version) => Error::Version(version),
        problem => Error::Protocol(problem.to_string()),
    }
}

/// A message that has no place here.
pub(super) fn out_of_turn(message: &Message) -> Error {
    Error::Protocol(format!("{} came out of turn", message.name()))
}
