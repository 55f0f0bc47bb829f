//! Those who have called and not yet said what they want: they cost no thread, and who is silent does not stay.

use super::Guest;
use super::admission::{Admission, Proves};
use crate::console;
use crate::net::clock;
use crate::problems::Failure;
use hopline_core::PreAuthLimit;
use hopline_net::streams::{Listener, Protocol, Stream};
use hopline_net::transfer::{self, Caller, Conversations, Party, Shared};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::net::{Shutdown, SocketAddr};
use std::time::{Duration, Instant};

/// How long who has called may take to say hello: a few times over, on a bad path.
const HELLO_WITHIN: Duration = Duration::from_secs(10);
/// Most callers that wait; one more, and the one of the heaviest prefix that has waited longest goes.
const MOST_WAITING: usize = 128;
/// How often Ctrl-C is looked for.
const LOOK_UP: Timespec = Timespec { tv_sec: 0, tv_nsec: 200_000_000 };

pub(super) struct Reception<'a, P: Proves> {
    listener: Listener<P>,
    conversations: Conversations,
    admission: &'a Admission,
    /// By number: the one that has waited longest first.
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

    /// The next who has said hello, and for whom there is a seat; `None`: somebody wants us to stop. Does `meanwhile` now and
    /// then.
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

    /// Until somebody comes or says something.
    fn wait(&self) {
        let streams = self.waiting.values().map(|waiting| PollFd::new(waiting.stream(), PollFlags::IN));
        let mut fds: Vec<_> = streams.chain([PollFd::new(&self.listener, PollFlags::IN)]).collect();
        // Woken early or late, the caller looks again.
        let _ = poll(&mut fds, Some(&LOOK_UP));
    }

    fn let_in(&mut self) -> Result<(), Failure> {
        loop {
            match self.listener.accept() {
                Ok((stream, peer)) => {
                    // A socket of IPv6 shows addresses of IPv4 as those of IPv6.
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

    /// Hears what those who wait have to say.
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
                // Silent for too long, gone, or somebody who wants something else.
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

/// There is no room: who is honest tries again.
pub(super) fn turn_away<P: Protocol>(stream: &Shared<Stream<P>>) {
    // What does not leave now is as good as lost, and the sender tries again all the same. What it says after its hello
    // must not reset the connection before it has heard.
    let _ = transfer::turn_away(stream.get());
    let _ = stream.get().shutdown(Shutdown::Both);
}
