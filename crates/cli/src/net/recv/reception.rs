//! Connections that have not sent a hello yet. They need no thread, and silent ones are closed.

use super::Guest;
use super::admission::{Admission, Proves};
use crate::console;
use crate::net::clock;
use crate::problems::Failure;
use hopline_core::PreAuthLimit;
use hopline_streams::streams::{Listener, Protocol, Stream};
use hopline_tools::transfer::{self, Caller, Conversations, Party, Shared};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::net::{Shutdown, SocketAddr};
use std::time::{Duration, Instant};

/// Time limit of the hello: enough for a few attempts on a bad path.
const HELLO_WITHIN: Duration = Duration::from_secs(10);
/// Most waiting connections. Beyond, the oldest one of the prefix with most connections is closed.
const MOST_WAITING: usize = 128;
/// Interval between checks for Ctrl-C.
const LOOK_UP: Timespec = Timespec { tv_sec: 0, tv_nsec: 200_000_000 };

pub(super) struct Reception<'a, P: Proves> {
    listener: Listener<P>,
    conversations: Conversations,
    admission: &'a Admission,
    /// Waiting connections by number: the oldest first.
    waiting: BTreeMap<u64, Waiting<P>>,
    limit: PreAuthLimit,
}

struct Waiting<P: Protocol> {
    caller: Caller<Shared<Stream<P>>>,
    peer: SocketAddr,
    until: Instant,
}

impl<P: Protocol> Waiting<P> {
    fn stream(&self) -> &Stream<P> {
        self.caller.reader().get()
    }
}

impl<'a, P: Proves> Reception<'a, P> {
    pub(super) fn new(listener: Listener<P>, conversations: Conversations, admission: &'a Admission) -> Self {
        listener.set_nonblocking(true);
        let limit = PreAuthLimit::new(MOST_WAITING);
        Self { listener, conversations, admission, waiting: BTreeMap::new(), limit }
    }

    /// Returns the next sender that has sent its hello and can be served; `None` after a signal to stop. Calls `meanwhile`
    /// from time to time.
    pub(super) fn next(&mut self, mut meanwhile: impl FnMut()) -> Result<Option<Guest<P>>, Failure> {
        loop {
            if console::interrupted() {
                return Ok(None);
            }
            self.let_in()?;
            if let Some(guest) = self.greet() {
                return Ok(Some(guest));
            }
            meanwhile();
            self.conversations.look();
            self.wait();
        }
    }

    /// Waits for a new connection or for data.
    fn wait(&self) {
        let streams = self.waiting.values().map(|waiting| PollFd::new(waiting.stream(), PollFlags::IN));
        let mut fds: Vec<_> = streams.chain([PollFd::new(&self.listener, PollFlags::IN)]).collect();
        // The caller checks again, whether this returned early or late.
        let _ = poll(&mut fds, Some(&LOOK_UP));
    }

    fn let_in(&mut self) -> Result<(), Failure> {
        loop {
            match self.listener.accept() {
                Ok((stream, peer)) => {
                    // An IPv6 socket reports IPv4 addresses as mapped ones.
                    let peer = SocketAddr::new(peer.ip().to_canonical(), peer.port());
                    stream.set_nonblocking(true);
                    let until = clock::now() + HELLO_WITHIN;
                    let (number, gone) = self.limit.admit(peer.ip());
                    if let Some(silent) = gone.and_then(|gone| self.waiting.remove(&gone)) {
                        silent.stream().abort();
                    }
                    let caller = Caller::new(Shared::new(stream));
                    self.waiting.insert(number, Waiting { caller, peer, until });
                }
                Err(e) if e.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(e) => return Err(Failure::Other(format!("cannot accept connections: {e}"))),
            }
        }
    }

    fn remove(&mut self, number: u64) -> Option<Waiting<P>> {
        self.limit.remove(number);
        self.waiting.remove(&number)
    }

    /// Reads the hellos of waiting connections.
    fn greet(&mut self) -> Option<Guest<P>> {
        let now = clock::now();
        let numbers: Vec<u64> = self.waiting.keys().rev().copied().collect();
        for number in numbers {
            let waiting = self.waiting.get_mut(&number)?;
            match waiting.caller.poll() {
                Ok(false) if now < waiting.until => {}
                Ok(true) => {
                    let Waiting { caller, peer, .. } = self.remove(number)?;
                    let key = P::key(&caller.reader().get().info());
                    let origin = self.admission.sender(peer, key).origin;
                    match self.conversations.enter(Party { address: peer.ip(), key, origin }) {
                        Some(seat) => return Some(Guest { caller, peer, seat }),
                        None => turn_away(caller.reader()),
                    }
                }
                // Silent for too long, closed, or of another protocol.
                Ok(false) | Err(_) => {
                    if let Some(waiting) = self.remove(number) {
                        waiting.stream().abort();
                    }
                }
            }
        }
        None
    }
}

/// Rejects a connection for which there is no room. An honest sender tries again.
pub(super) fn turn_away<P: Protocol>(stream: &Shared<Stream<P>>) {
    // Data that cannot be sent at once are dropped; the sender tries again anyway. Data after its hello must not cause a
    // reset before it has received the reply.
    let _ = transfer::turn_away(stream.get());
    let _ = stream.get().shutdown(Shutdown::Both);
}
