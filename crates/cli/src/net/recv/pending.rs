//! Connections that have not sent a hello yet. They need no thread, and silent ones are closed.

use super::AdmittedSender;
use super::admission::{Admission, AuthenticatesPeer};
use crate::console;
use crate::net::clock;
use crate::problems::Failure;
use hopline_core::PreAuthLimit;
use hopline_streams::{Listener, Protocol, Stream};
use hopline_tools::transfer::{self, ConversationPeer, Conversations, PendingPeer, Shared};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::net::{Shutdown, SocketAddr};
use std::time::{Duration, Instant};

/// Time limit of the hello: enough for a few attempts on a bad path.
const HELLO_TIMEOUT: Duration = Duration::from_secs(10);
/// Most waiting connections. Beyond, the oldest one of the prefix with most connections is closed.
const MAX_PENDING: usize = 128;
/// Interval between checks for Ctrl-C.
const POLL_INTERVAL: Timespec = Timespec { tv_sec: 0, tv_nsec: 200_000_000 };

pub(super) struct PendingConnections<'a, P: AuthenticatesPeer> {
    listener: Listener<P>,
    conversations: Conversations,
    admission: &'a Admission,
    /// Waiting connections by number: the oldest first.
    pending: BTreeMap<u64, Pending<P>>,
    limit: PreAuthLimit,
}

struct Pending<P: Protocol> {
    caller: PendingPeer<Shared<Stream<P>>>,
    peer: SocketAddr,
    deadline: Instant,
}

impl<P: Protocol> Pending<P> {
    fn stream(&self) -> &Stream<P> {
        self.caller.reader().get()
    }
}

impl<'a, P: AuthenticatesPeer> PendingConnections<'a, P> {
    pub(super) fn new(listener: Listener<P>, conversations: Conversations, admission: &'a Admission) -> Self {
        listener.set_nonblocking(true);
        let limit = PreAuthLimit::new(MAX_PENDING);
        Self { listener, conversations, admission, pending: BTreeMap::new(), limit }
    }

    /// Returns the next sender that has sent its hello and can be served; `None` after a signal to stop. Calls `meanwhile`
    /// from time to time.
    pub(super) fn next(&mut self, mut meanwhile: impl FnMut()) -> Result<Option<AdmittedSender<P>>, Failure> {
        loop {
            if console::interrupted() {
                return Ok(None);
            }
            self.accept()?;
            if let Some(guest) = self.read_hellos() {
                return Ok(Some(guest));
            }
            meanwhile();
            self.conversations.update_progress();
            self.wait();
        }
    }

    /// Waits for a new connection or for data.
    fn wait(&self) {
        let streams = self.pending.values().map(|waiting| PollFd::new(waiting.stream(), PollFlags::IN));
        let mut fds: Vec<_> = streams.chain([PollFd::new(&self.listener, PollFlags::IN)]).collect();
        // The caller checks again, whether this returned early or late.
        let _ = poll(&mut fds, Some(&POLL_INTERVAL));
    }

    fn accept(&mut self) -> Result<(), Failure> {
        loop {
            match self.listener.accept() {
                Ok((stream, peer)) => {
                    // An IPv6 socket reports IPv4 addresses as mapped ones.
                    let peer = SocketAddr::new(peer.ip().to_canonical(), peer.port());
                    stream.set_nonblocking(true);
                    let until = clock::now() + HELLO_TIMEOUT;
                    let (number, gone) = self.limit.admit(peer.ip());
                    if let Some(silent) = gone.and_then(|gone| self.pending.remove(&gone)) {
                        silent.stream().abort();
                    }
                    let caller = PendingPeer::new(Shared::new(stream));
                    self.pending.insert(number, Pending { caller, peer, deadline: until });
                }
                Err(e) if e.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(e) => return Err(Failure::Other(format!("cannot accept connections: {e}"))),
            }
        }
    }

    fn remove(&mut self, number: u64) -> Option<Pending<P>> {
        self.limit.remove(number);
        self.pending.remove(&number)
    }

    /// Reads the hellos of waiting connections.
    fn read_hellos(&mut self) -> Option<AdmittedSender<P>> {
        let now = clock::now();
        let numbers: Vec<u64> = self.pending.keys().rev().copied().collect();
        for number in numbers {
            let waiting = self.pending.get_mut(&number)?;
            match waiting.caller.read_hello() {
                Ok(false) if now < waiting.deadline => {}
                Ok(true) => {
                    let Pending { caller, peer, .. } = self.remove(number)?;
                    let key = P::key(&caller.reader().get().info());
                    let origin = self.admission.sender(peer, key).origin;
                    match self.conversations.enter(ConversationPeer { address: peer.ip(), key, origin }) {
                        Some(seat) => return Some(AdmittedSender { caller, peer, slot: seat }),
                        None => reject(caller.reader()),
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
pub(super) fn reject<P: Protocol>(stream: &Shared<Stream<P>>) {
    // Data that cannot be sent at once are dropped; the sender tries again anyway. Data after its hello must not cause a
    // reset before it has received the reply.
    let _ = transfer::reject(stream.get());
    let _ = stream.get().shutdown(Shutdown::Both);
}
