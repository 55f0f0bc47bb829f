//! A thread that carries the connections dealt to it.

use super::Shared;
use super::connector::Connector;
use super::pair::{CLIENT, Pair, Parts, RelayResult, SERVER};
use super::slots::{Key, Slots};
use hopline_linux::transparent::AcceptedConnection;
use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::event::{EventfdFlags, eventfd};
use rustix::io::Errno;
use rustix::time::Timespec;
use std::collections::VecDeque;
use std::io::{self, ErrorKind};
use std::net::{IpAddr, TcpStream};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::mpsc::Sender;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Queue of messages from other threads to a worker.
#[derive(Debug)]
pub(super) struct Inbox {
    messages: Mutex<Messages>,
    wake: OwnedFd,
}

#[derive(Debug, Default)]
struct Messages {
    accepted: Vec<Accepted>,
    /// Connections that begin here in the midst of their lives.
    moved: Vec<Pair>,
    departing: Vec<DepartingHost>,
    /// The worker has ended: there is nothing to say to it.
    is_closed: bool,
    /// Time at which the worker resets the connections that are left, and ends.
    deadline: Option<Instant>,
}

/// A call that was accepted.
#[derive(Debug)]
pub(super) struct Accepted {
    pub(super) call: AcceptedConnection,
    /// The connection to the server, if the server was called first.
    pub(super) onward: Option<TcpStream>,
}

/// A mobile host that is at another station. Its connections are handed over to the thread that moves them.
#[derive(Debug)]
pub(super) struct DepartingHost {
    pub(super) host: IpAddr,
    pub(super) to: Sender<Parts>,
}

#[derive(Debug)]
pub(super) struct Worker<'a> {
    shared: &'a Shared,
    inbox: &'a Inbox,
    epoll: OwnedFd,
    connector: Connector<'a>,
    links: Slots<Link>,
    /// Connections that have had a turn and need another one.
    ready: VecDeque<Key>,
    /// Connections that wait for their server, in the order in which they are given up.
    connecting: VecDeque<(Instant, Key)>,
    /// Of all connections: what goes through is in it for the time of a call.
    buffer: Box<[u8]>,
}

#[derive(Debug)]
struct Link {
    pair: Pair,
    stage: Stage,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// The server has not answered.
    Connecting,
    Open,
    /// The same, and it is in `again`.
    Queued,
}

/// The number that the inbox has among events: no key's, as places are fewer.
const INBOX_EVENT: u64 = u64::MAX;
/// Most events that are taken at once.
const MAX_EVENTS: usize = 256;
const ALL_EVENTS: EventFlags = EventFlags::IN
    .union(EventFlags::PRI)
    .union(EventFlags::RDHUP)
    .union(EventFlags::OUT)
    .union(EventFlags::ET);

impl Inbox {
    pub(super) fn open() -> io::Result<Self> {
        let wake = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Self { messages: Mutex::default(), wake })
    }

    pub(super) fn push_accepted(&self, call: Accepted) {
        self.push(|letters| letters.accepted.push(call));
    }

    /// Has a connection go on. It is given back if the worker has ended.
    pub(super) fn adopt(&self, pair: Pair) -> Result<(), Pair> {
        let mut pair = Some(pair);
        self.push(|letters| {
            if !letters.is_closed {
                letters.moved.extend(pair.take());
            }
        });
        pair.map_or(Ok(()), Err)
    }

    /// Asks for the connections of a host. The sender is dropped when all have been handed over.
    pub(super) fn push_departing(&self, leaver: DepartingHost) {
        self.push(|letters| {
            if !letters.is_closed {
                letters.departing.push(leaver);
            }
        });
    }

    /// Ends the worker when it has no connections any more, or at this time.
    pub(super) fn set_deadline(&self, deadline: Instant) {
        self.push(|letters| letters.deadline = Some(deadline));
    }

    fn push(&self, letter: impl FnOnce(&mut Messages)) {
        letter(&mut self.messages.lock().unwrap_or_else(PoisonError::into_inner));
        // It fails when it has been woken 2^64 - 1 times and not looked: then it will look.
        let _ = rustix::io::write(&self.wake, &1u64.to_ne_bytes());
    }

    /// Takes all letters. The time of the end stays.
    fn take(&self) -> Messages {
        let _ = rustix::io::read(&self.wake, &mut [0; 8]);
        let mut letters = self.messages.lock().unwrap_or_else(PoisonError::into_inner);
        let (end, is_closed) = (letters.deadline, letters.is_closed);
        std::mem::replace(&mut letters, Messages { deadline: end, is_closed, ..Messages::default() })
    }

    /// Takes the last letters.
    fn close(&self) -> Messages {
        self.push(|letters| letters.is_closed = true);
        self.take()
    }
}

impl<'a> Worker<'a> {
    pub(super) fn new(shared: &'a Shared, inbox: &'a Inbox) -> io::Result<Self> {
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        epoll::add(&epoll, &inbox.wake, EventData::new_u64(INBOX_EVENT), EventFlags::IN)?;
        Ok(Self {
            shared,
            inbox,
            epoll,
            connector: Connector::new(shared).map_err(io::Error::other)?,
            links: Slots::new(),
            ready: VecDeque::new(),
            connecting: VecDeque::new(),
            buffer: vec![0; shared.buffer_bytes].into(),
        })
    }

    /// Runs until it is told to end. What is left then is reset.
    pub(super) fn run(&mut self) -> io::Result<()> {
        let mut events = Vec::with_capacity(MAX_EVENTS);
        let mut end = None;
        while !end.is_some_and(|end| self.links.len() == 0 || now() >= end) {
            events.clear();
            let wait = Timespec::try_from(self.wait(end)).ok();
            match epoll::wait(&self.epoll, spare_capacity(&mut events), wait.as_ref()) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
            for &Event { data, flags } in &events {
                match data.u64() {
                    INBOX_EVENT => end = self.read_inbox(),
                    number => self.handle_event(Key::from_number(number), flags),
                }
            }
            for _ in 0..self.ready.len() {
                self.run_turn();
            }
            self.expire_connecting();
        }
        let Messages { accepted: calls, moved, .. } = self.inbox.close();
        let left = (self.links.drain().count() + calls.len() + moved.len()) as u64;
        self.shared.counts.stopped.add(left);
        self.shared.counts.open_connections.subtract(left);
        Ok(())
    }

    /// Returns the time until the worker has something to do without an event, 60 s at most.
    fn wait(&self, end: Option<Instant>) -> Duration {
        const LONGEST: Duration = Duration::from_secs(60);
        if !self.ready.is_empty() {
            return Duration::ZERO;
        }
        let due = self.connecting.front().map(|(due, _)| *due).into_iter().chain(end).min();
        due.map_or(LONGEST, |due| due.saturating_duration_since(now()).min(LONGEST))
    }

    fn read_inbox(&mut self) -> Option<Instant> {
        let Messages { accepted: calls, moved, departing: leavers, deadline: end, .. } = self.inbox.take();
        calls.into_iter().for_each(|call| self.handle_accepted(call));
        moved.into_iter().for_each(|pair| self.adopt(pair));
        leavers.iter().for_each(|leaver| self.hand_over(leaver));
        end
    }

    /// Goes on with a connection. Its first event says what there is to do.
    fn adopt(&mut self, pair: Pair) {
        let key = self.links.insert(Link { pair, stage: Stage::Open });
        if let Err(error) = self.watch(key) {
            self.fail(key, &error);
        }
    }

    /// Hands over the connections of a host. Connections that wait for a server, or of which the end was read, stay.
    fn hand_over(&mut self, leaver: &DepartingHost) {
        let is_at = |stream: &TcpStream| stream.peer_addr().is_ok_and(|peer| peer.ip() == leaver.host);
        let leaves = |link: &Link| {
            let ends = [CLIENT, SERVER].map(|half| link.pair.stream(half));
            link.stage != Stage::Connecting && link.pair.is_open() && ends.into_iter().any(is_at)
        };
        for key in self.links.keys(leaves) {
            let Some(link) = self.links.remove(key) else { continue };
            for half in [CLIENT, SERVER] {
                let _ = epoll::delete(&self.epoll, link.pair.stream(half));
            }
            // Nothing but the end of the thread that asked closes the channel: the connection is reset then.
            if leaver.to.send(link.pair.into_parts()).is_err() {
                self.shared.counts.reset.add(1);
                self.shared.counts.open_connections.subtract(1);
            }
        }
    }

    /// Calls on: a call that cannot be passed on is reset.
    fn handle_accepted(&mut self, call: Accepted) {
        match self.connect(call) {
            Ok(Some(pair)) => {
                let key = self.links.insert(Link { pair, stage: Stage::Connecting });
                self.set_connect_deadline(now() + self.shared.connect_timeout, key);
                if let Err(error) = self.watch(key) {
                    self.fail(key, &error);
                }
            }
            Ok(None) => {
                self.shared.counts.refused_here.add(1);
                self.shared.counts.open_connections.subtract(1);
            }
            Err(error) => {
                self.shared.counts.failure_counter(&error).add(1);
                self.shared.counts.open_connections.subtract(1);
            }
        }
    }

    /// `None`: it is for this machine.
    fn connect(&mut self, Accepted { call, onward }: Accepted) -> io::Result<Option<Pair>> {
        let AcceptedConnection { stream, client, server } = call;
        self.connector.apply_options(&stream, client.ip())?;
        let onward = match onward {
            Some(onward) => Some(onward),
            None => self.connector.connect(client, server)?,
        };
        Ok(onward.map(|onward| Pair::new(stream, onward)))
    }

    fn watch(&mut self, key: Key) -> io::Result<()> {
        let Some(link) = self.links.get(key) else { return Ok(()) };
        for half in [CLIENT, SERVER] {
            let data = EventData::new_u64(key.with_bit(half));
            epoll::add(&self.epoll, link.pair.stream(half).as_fd(), data, ALL_EVENTS)?;
        }
        Ok(())
    }

    fn handle_event(&mut self, (key, half): (Key, usize), flags: EventFlags) {
        // It ended in the course of an event before this one.
        let Some(link) = self.links.get(key) else { return };
        if let Err(error) = link.pair.handle_event(half, flags) {
            return self.fail(key, &error);
        }
        match link.stage {
            Stage::Connecting if half == SERVER && flags.contains(EventFlags::OUT) => {
                link.stage = Stage::Open;
                self.relay(key);
            }
            Stage::Open => self.relay(key),
            Stage::Connecting | Stage::Queued => {}
        }
    }

    fn run_turn(&mut self) {
        let Some(key) = self.ready.pop_front() else { return };
        if let Some(link) = self.links.get(key) {
            link.stage = Stage::Open;
            self.relay(key);
        }
    }

    fn relay(&mut self, key: Key) {
        let Some(link) = self.links.get(key) else { return };
        let bytes = &self.shared.counts.bytes;
        let turn = link.pair.relay(&mut self.buffer, |half, len| bytes[1 - half].add(len as u64));
        match turn {
            Ok(RelayResult::Blocked) => {}
            Ok(RelayResult::MoreWork) => {
                link.stage = Stage::Queued;
                self.ready.push_back(key);
            }
            Ok(RelayResult::Finished) => {
                if let Some(link) = self.links.remove(key) {
                    link.pair.end();
                    self.shared.counts.ended.add(1);
                    self.shared.counts.open_connections.subtract(1);
                }
            }
            Err(error) => self.fail(key, &error),
        }
    }

    /// Resets both halves.
    fn fail(&mut self, key: Key, error: &io::Error) {
        let Some(link) = self.links.remove(key) else { return };
        let counts = &self.shared.counts;
        let count =
            if link.stage == Stage::Connecting { counts.failure_counter(error) } else { &counts.reset };
        count.add(1);
        counts.open_connections.subtract(1);
    }

    /// Notes when a call is given up. Of calls that were answered behind one that is not, no more are remembered than may be open.
    fn set_connect_deadline(&mut self, due: Instant, key: Key) {
        if self.connecting.len() >= 2 * self.shared.max_connections {
            let links = &mut self.links;
            self.connecting
                .retain(|&(_, key)| links.get(key).is_some_and(|link| link.stage == Stage::Connecting));
        }
        self.connecting.push_back((due, key));
    }

    fn expire_connecting(&mut self) {
        while let Some(&(due, key)) = self.connecting.front() {
            let waits = self.links.get(key).is_some_and(|link| link.stage == Stage::Connecting);
            if waits && due > now() {
                return;
            }
            self.connecting.pop_front();
            if waits {
                self.fail(key, &ErrorKind::TimedOut.into());
            }
        }
    }
}

/// Nothing waits for it in vain.
impl Drop for Worker<'_> {
    fn drop(&mut self) {
        self.inbox.close();
    }
}

pub(super) fn now() -> Instant {
    #[expect(clippy::disallowed_methods, reason = "connections of the kernel are in real time")]
    Instant::now()
}
