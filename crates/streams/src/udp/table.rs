//! State of a host behind one lock: its protocol and the users of its connections.

use super::egress::{Egress, Failure};
use super::notice::{PendingWakeups, Wakeup};
use super::protocol::{Endpoint, Protocol, ProtocolEvent};
use super::queue::Queue;
use super::socket::{Path, Socket};
use super::traffic::Traffic;
use super::user::{MayTransmit, User};
use hopline_core::Instant;
use hopline_wire::ipv4::Ecn;
use rustix::event::PollFlags;
use std::collections::{BTreeMap, BTreeSet};
use std::io::ErrorKind;
use std::net::IpAddr;

#[derive(Debug)]
pub(super) struct Table<P: Protocol> {
    pub(super) protocol: P,
    /// Users of connections, including connections left to end by themselves.
    users: BTreeMap<P::Key, Box<User>>,
    /// Times at which to give up connections left to end by themselves.
    abandon_deadlines: BTreeSet<(Instant, P::Key)>,
    /// Connections with possible events for their users.
    touched: Vec<P::Key>,
    /// Connections that are removed once everything is sent.
    finished: BTreeSet<P::Key>,
    pub(super) queue: Option<Queue<P::Key>>,
    egress: Egress<P::Key>,
    traffic: Traffic,
    pub(super) driver: Driver,
    pub(super) holders: HandleState,
    pub(super) sleepers: PendingWakeups,
}

/// State of the driver thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Driver {
    /// It will check everything before it sleeps.
    #[default]
    Awake,
    /// It sleeps until that time, or until the socket is ready for this; `None`: without a timeout.
    Asleep { until: Option<Instant>, awaits: PollFlags },
}

/// Tracks the existence of handles: streams, listeners or hosts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum HandleState {
    #[default]
    Some,
    None,
}

/// Socket and time, which a call needs in addition to the table.
#[derive(Clone, Copy, Debug)]
pub(super) struct Io<'a> {
    pub(super) socket: &'a Socket,
    pub(super) now: Instant,
}

impl<P: Protocol> Table<P> {
    pub(super) fn new(protocol: P) -> Self {
        Self {
            protocol,
            users: BTreeMap::new(),
            abandon_deadlines: BTreeSet::new(),
            touched: Vec::new(),
            finished: BTreeSet::new(),
            queue: None,
            egress: Egress::default(),
            traffic: Traffic::default(),
            driver: Driver::default(),
            holders: HandleState::default(),
            sleepers: PendingWakeups::default(),
        }
    }

    // ---- connections ----

    /// Adds the user of a connection, and notifies it.
    pub(super) fn insert(&mut self, key: P::Key, user: User) {
        self.users.insert(key, Box::new(user));
        self.touched.push(key);
    }

    /// Returns the user of a stream.
    pub(super) fn user(&mut self, key: P::Key) -> &mut User {
        self.users.get_mut(&key).expect("a connection stays as long as its stream")
    }

    /// Returns the result of `look`, which changes nothing.
    pub(super) fn inspect<T>(
        &mut self,
        key: P::Key,
        look: impl FnOnce(&User, &Option<P::Endpoint<'_>>) -> T,
    ) -> T {
        let user = self.users.get(&key).expect("a connection stays as long as its stream");
        look(user, &self.protocol.endpoint(key))
    }

    /// Runs `call` on a connection, and then handles its consequences.
    pub(super) fn call<T>(
        &mut self,
        io: Io<'_>,
        key: P::Key,
        call: impl FnOnce(&mut User, &mut Option<P::Endpoint<'_>>) -> T,
    ) -> T {
        let user = self.users.get_mut(&key).expect("a connection stays as long as its stream");
        let result = call(user, &mut self.protocol.endpoint(key));
        self.protocol.handle_user_call(key);
        self.touched.push(key);
        // A failure to send does not make the call fail: the datagram counts as lost on the path.
        let _ = self.process(io);
        result
    }

    /// Returns the statistics.
    pub(super) fn stats(&self) -> P::HostStats {
        self.protocol.stats(&Traffic { connections: self.users.len(), ..self.traffic })
    }

    /// Returns whether there is neither work left nor a handle that could request more.
    pub(super) fn is_over(&self) -> bool {
        self.holders == HandleState::None && self.users.is_empty()
    }

    // ---- after any input ----

    /// Notifies users, sends datagrams, and removes finished connections. Returns the first failure to send.
    pub(super) fn process(&mut self, io: Io<'_>) -> Option<Failure<P::Key>> {
        let mut failure = None;
        loop {
            while let Some(news) = self.protocol.poll_event(io.now) {
                self.handle_event(news);
            }
            let mut touched = std::mem::take(&mut self.touched);
            for key in touched.drain(..) {
                self.update_user(io.now, key);
            }
            self.touched = touched;
            let failed = self.egress.drain(io, &mut self.protocol, &mut self.traffic);
            failure = failure.or(failed);
            match self.protocol.poll_event(io.now) {
                Some(news) => self.handle_event(news),
                None => break,
            }
        }
        self.protocol.handle_drained(io.now);
        if !self.egress.is_blocked() {
            while let Some(key) = self.finished.pop_first() {
                self.remove(io.now, key);
            }
        }
        failure
    }

    fn handle_event(&mut self, news: ProtocolEvent<P::Key>) {
        let key = match news {
            ProtocolEvent::Accepted(key) => return self.accept(key),
            ProtocolEvent::Event(key, event) => {
                self.users.get_mut(&key).into_iter().for_each(|user| user.handle_event(event));
                key
            }
            ProtocolEvent::Failed(key, why) => {
                if let Some(user) = self.users.get_mut(&key) {
                    user.fail(why);
                }
                key
            }
            ProtocolEvent::Touched(key) => key,
        };
        if self.touched.last() != Some(&key) {
            self.touched.push(key);
        }
    }

    fn accept(&mut self, key: P::Key) {
        let (Some(queue), Ok(notice)) = (&mut self.queue, Wakeup::new()) else {
            // Without a descriptor, the peer has to retry; there may be one by then.
            return self.protocol.reject(key);
        };
        queue.push(key, &mut self.sleepers);
        self.traffic.accepted += 1;
        self.insert(key, User::new(notice));
    }

    /// Notifies the user of a connection, or acts for a user that has dropped it.
    fn update_user(&mut self, now: Instant, key: P::Key) {
        let Some(user) = self.users.get_mut(&key) else { return };
        let mut endpoint = self.protocol.endpoint(key);
        let called = user.process(now, &mut endpoint, &mut self.sleepers);
        let due = user.abort_deadline(&endpoint);
        if user.deadline != due {
            if let Some(at) = user.deadline {
                self.abandon_deadlines.remove(&(at, key));
            }
            self.abandon_deadlines.extend(due.map(|at| (at, key)));
            user.deadline = due;
        }
        if user.is_over(&endpoint) {
            self.finished.insert(key);
        }
        drop(endpoint);
        if called == MayTransmit::Yes {
            self.protocol.handle_user_call(key);
        }
    }

    fn remove(&mut self, now: Instant, key: P::Key) {
        if let Some(at) = self.users.remove(&key).and_then(|user| user.deadline) {
            self.abandon_deadlines.remove(&(at, key));
        }
        self.protocol.remove(now, key);
    }

    // ---- time ----

    pub(super) fn next_deadline(&self) -> Option<Instant> {
        let patience = self.abandon_deadlines.first().map(|&(at, _)| at);
        [self.protocol.poll_timeout(), patience].into_iter().flatten().min()
    }

    /// Returns whether the driver would sleep too long.
    pub(super) fn must_wake(&self) -> bool {
        let Driver::Asleep { until, awaits } = self.driver else { return false };
        let too_long = match (until, self.next_deadline()) {
            (Some(until), Some(due)) => due < until,
            (until, due) => until.is_none() && due.is_some(),
        };
        too_long || self.is_over() || (self.is_blocked() && !awaits.contains(PollFlags::OUT))
    }

    /// Returns whether a thread or task has to be woken once the table is unlocked.
    pub(super) fn has_wakeups(&self) -> bool {
        self.must_wake() || !self.sleepers.is_empty()
    }

    pub(super) fn handle_timeouts(&mut self, io: Io<'_>) {
        if self.next_deadline().is_none_or(|at| at > io.now) {
            return;
        }
        self.protocol.handle_timeout(io.now);
        while let Some(&(at, key)) = self.abandon_deadlines.first()
            && at <= io.now
        {
            self.abandon_deadlines.pop_first();
            self.user(key).deadline = None;
            self.protocol.endpoint(key).abort(io.now);
            self.protocol.handle_user_call(key);
            self.touched.push(key);
        }
        // A datagram that cannot be sent counts as lost.
        let _ = self.process(io);
    }

    // ---- the socket ----

    /// Returns whether to wait for room in the socket.
    pub(super) fn is_blocked(&self) -> bool {
        self.egress.is_blocked()
    }

    /// Continues to send, as the socket may have room again.
    pub(super) fn resume(&mut self, io: Io<'_>) {
        self.egress.resume(io, &mut self.traffic);
        if !self.is_blocked() {
            let _ = self.process(io);
        }
    }

    /// Processes a datagram. Call [`send_replies`](Self::send_replies) after the whole batch.
    pub(super) fn handle_datagram(&mut self, io: Io<'_>, path: Path, ecn: Ecn, datagram: &mut [u8]) {
        self.traffic.received += 1;
        self.protocol.handle_datagram(io.now, path, ecn, datagram);
    }

    /// Sends the answers to a batch of datagrams, which share one acknowledgement.
    pub(super) fn send_replies(&mut self, io: Io<'_>) {
        let _ = self.process(io);
    }

    /// Handles an ICMP port-unreachable message of the host at `address`.
    pub(super) fn handle_unreachable(&mut self, io: Io<'_>, address: IpAddr) {
        let Some(key) = self.protocol.unreachable_connection(address) else { return };
        if let Some(user) = self.users.get_mut(&key) {
            user.fail(ErrorKind::ConnectionRefused);
            self.call(io, key, |_, endpoint| endpoint.abort(io.now));
        }
    }
}
