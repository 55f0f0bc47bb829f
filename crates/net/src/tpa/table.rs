//! The connections of a host, found by their tags.

use super::connection::{Connection, Origin};
use super::egress::Egress;
use super::flood::{Allowance, Calls};
use super::notice::{Notice, Sleepers};
use super::queue::Queue;
use super::route::challenge;
use super::socket::{Path, Socket};
use super::stats::HostStats;
use super::trust::{ADDRESS, Trust};
use bytes::Bytes;
use hopline_core::{Instant, LinkId, Machine};
use hopline_transport::connection::State;
use hopline_transport::tpa::{Endpoint, Listener, Verdict};
use hopline_wire::tpa::{Control, Segment, Tag, Token};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::IpAddr;

/// Strays that are told in a second that nobody knows them: a host that was started anew tells all its peers soon, and a
/// flood is not answered.
const STRAYS_TOLD: u32 = 200;

/// Everything that a host knows, behind one lock.
#[derive(Debug)]
pub(super) struct Table {
    connections: BTreeMap<Tag, Box<Connection>>,
    /// Which connection a tag of a peer belongs to.
    by_peer: BTreeMap<Tag, Tag>,
    /// What to look after when.
    due: BTreeSet<(Instant, Tag)>,
    /// Who has something to answer.
    heard: Vec<Tag>,
    pub(super) queue: Option<Queue>,
    pub(super) egress: Egress,
    pub(super) stats: HostStats,
    pub(super) driver: Driver,
    pub(super) holders: Holders,
    pub(super) sleepers: Sleepers,
    pub(super) trust: Trust,
    /// How often strays are told that nobody knows them.
    telling: Allowance,
    calls: Calls,
}

/// What the driver does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Driver {
    /// It will look at everything before it sleeps.
    #[default]
    Awake,
    /// It sleeps until then if nothing comes; `None`: for ever.
    Asleep(Option<Instant>),
}

/// Whether streams, listeners or hosts are held.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Holders {
    #[default]
    Some,
    None,
}

/// What a call needs besides the table.
#[derive(Clone, Copy, Debug)]
pub(super) struct Io<'a> {
    pub(super) socket: &'a Socket,
    pub(super) now: Instant,
}

impl Table {
    pub(super) fn new(trust: Trust) -> Self {
        Self {
            connections: BTreeMap::new(),
            by_peer: BTreeMap::new(),
            due: BTreeSet::new(),
            heard: Vec::new(),
            queue: None,
            egress: Egress::default(),
            stats: HostStats::default(),
            driver: Driver::default(),
            holders: Holders::default(),
            sleepers: Sleepers::default(),
            trust,
            telling: Allowance::of(STRAYS_TOLD),
            calls: Calls::new(),
        }
    }

    // ---- connections ----

    pub(super) fn insert(&mut self, connection: Connection) -> Tag {
        let tag = connection.endpoint.tag().expect("every connection of a host has a tag");
        self.connections.insert(tag, Box::new(connection));
        tag
    }

    /// The connection of a stream.
    pub(super) fn connection(&mut self, tag: Tag) -> &mut Connection {
        self.connections.get_mut(&tag).expect("a connection stays as long as its stream")
    }

    /// Does to a connection what `call` does, and then what follows from it.
    ///
    /// # Errors
    /// The first failure to send.
    pub(super) fn call<T>(
        &mut self,
        io: Io<'_>,
        tag: Tag,
        call: impl FnOnce(&mut Connection) -> T,
    ) -> (T, io::Result<()>) {
        let result = call(self.connection(tag));
        (result, self.service(io, tag))
    }

    /// Sends what a connection wants to send, tells its user, and notes when to look after it again.
    fn service(&mut self, io: Io<'_>, tag: Tag) -> io::Result<()> {
        let Some(connection) = self.connections.get_mut(&tag) else { return Ok(()) };
        connection.settle(io.now, &mut self.sleepers);
        let sent = self.egress.drain(io, tag, connection, &mut self.stats);
        while let Some((length, probe)) = connection.route.probe(io.now, &connection.endpoint, &self.trust) {
            if self.egress.send_whole(io, connection.route.path(), &probe, &mut self.stats).is_err() {
                connection.route.cannot_leave(io.now, length);
            }
        }
        let peer = connection.endpoint.peer_tag();
        if connection.known_as != peer {
            self.by_peer.extend(peer.map(|peer| (peer, tag)));
            if let Some(before) = std::mem::replace(&mut connection.known_as, peer) {
                self.by_peer.remove(&before);
            }
        }
        let due = connection.due();
        if connection.armed != due {
            if let Some(at) = connection.armed {
                self.due.remove(&(at, tag));
            }
            self.due.extend(due.map(|at| (at, tag)));
            connection.armed = due;
        }
        if connection.is_over() && !self.egress.owes(tag) {
            self.remove(io.now, tag);
        }
        sent
    }

    fn remove(&mut self, now: Instant, tag: Tag) {
        let Some(connection) = self.connections.remove(&tag) else { return };
        if let Some(at) = connection.armed {
            self.due.remove(&(at, tag));
        }
        if let Some(peer) = connection.known_as
            && self.by_peer.get(&peer) == Some(&tag)
        {
            self.by_peer.remove(&peer);
        }
        if connection.origin == Origin::Accepted
            && let Some(queue) = &mut self.queue
        {
            queue.spent.insert(now, tag);
        }
    }

    pub(super) fn len(&self) -> usize {
        self.connections.len()
    }

    /// Whether there is nothing left to do, and nobody who could ask for more.
    pub(super) fn is_over(&self) -> bool {
        self.holders == Holders::None && self.connections.is_empty()
    }

    // ---- time ----

    pub(super) fn next_due(&self) -> Option<Instant> {
        self.due.first().map(|&(at, _)| at)
    }

    /// Whether the driver sleeps too long.
    pub(super) fn must_wake(&self) -> bool {
        match (self.driver, self.next_due()) {
            (Driver::Awake, _) => false,
            (Driver::Asleep(_), _) if self.is_over() => true,
            (Driver::Asleep(Some(until)), Some(due)) => due < until,
            (Driver::Asleep(until), due) => until.is_none() && due.is_some(),
        }
    }

    /// Whether somebody is to be told something once the table is free.
    pub(super) fn must_tell(&self) -> bool {
        self.must_wake() || !self.sleepers.is_empty()
    }

    pub(super) fn fire(&mut self, io: Io<'_>) {
        while let Some(&(at, tag)) = self.due.first()
            && at <= io.now
        {
            self.due.remove(&(at, tag));
            let connection = self.connection(tag);
            connection.armed = None;
            connection.on_time(io.now);
            // What cannot be sent is as good as lost, and counted.
            let _ = self.service(io, tag);
        }
    }

    // ---- what comes from the network ----

    /// The socket may have room again.
    pub(super) fn resume(&mut self, io: Io<'_>) {
        for tag in self.egress.resume(io, &mut self.stats) {
            let _ = self.service(io, tag);
        }
    }

    /// Takes a datagram; [`answer`](Self::answer) follows once all that came with it are taken.
    pub(super) fn take(&mut self, io: Io<'_>, path: Path, datagram: &[u8]) {
        self.stats.received += 1;
        // A copy of its own: what waits to be read holds no more memory than it is long.
        let Ok(segment) = Segment::parse_udp(&Bytes::copy_from_slice(datagram)) else {
            self.stats.garbage += 1;
            return;
        };
        let shown = match segment.control {
            Control::Stray => segment.tag.and_then(|peer| self.by_peer.get(&peer).copied()),
            _ => segment.tag,
        };
        let Some(tag) = shown.filter(|tag| self.connections.contains_key(tag)) else {
            return self.take_stray(io, path, segment);
        };
        match segment.control {
            Control::Challenge(token) => return self.echo(io, path, tag, token),
            Control::Echo(token) if !self.believe(io.now, path, tag, token) => return,
            Control::Echo(_) | Control::Stray => {}
            _ => self.locate(io, path, tag),
        }
        self.connection(tag).endpoint.handle_packet(io.now, LinkId::ONLY, segment);
        if self.heard.last() != Some(&tag) {
            self.heard.push(tag);
        }
    }

    /// The peer asks whether we are here.
    fn echo(&mut self, io: Io<'_>, path: Path, tag: Tag, token: Token) {
        let Some(peer) = self.connection(tag).endpoint.peer_tag() else { return };
        let echo = Segment { control: Control::Echo(token), tag: Some(peer), ..Segment::default() };
        self.egress.reply(io, path, &echo, &mut self.stats);
    }

    /// The peer may be elsewhere than it was: it is asked there. Until it answers, what goes there is no longer than what
    /// came from there.
    fn locate(&mut self, io: Io<'_>, path: Path, tag: Tag) {
        let trust = self.trust;
        let connection = self.connection(tag);
        if let Some(peer) = connection.endpoint.peer_tag()
            && connection.route.heard_from(io.now, path)
        {
            let question = challenge(peer, trust.token(io.now, tag, path.peer, ADDRESS));
            self.egress.reply(io, path, &question, &mut self.stats);
        }
    }

    /// Whether an echo is one that we asked for; then we know more of the path.
    fn believe(&mut self, now: Instant, path: Path, tag: Tag, token: Token) -> bool {
        let trust = self.trust;
        let connection = self.connection(tag);
        let moved = trust.gave(now, tag, path.peer, ADDRESS, token);
        if moved {
            connection.route.move_to(path);
        }
        let passed = connection.route.has_passed(now, tag, token, &trust);
        if passed {
            connection.fit_path();
        }
        if !moved && !passed {
            self.stats.strays += 1;
        }
        moved || passed
    }

    /// Answers what was taken: segments that were read together have one answer.
    pub(super) fn answer(&mut self, io: Io<'_>) {
        for tag in std::mem::take(&mut self.heard) {
            let _ = self.service(io, tag);
        }
    }

    /// A segment of no connection.
    fn take_stray(&mut self, io: Io<'_>, path: Path, segment: Segment<Bytes>) {
        let (tag, control) = (segment.tag, segment.control);
        if control == Control::Syn && !self.answers(io.now, path, &segment) {
            self.stats.unanswered += 1;
            return;
        }
        let verdict = match &self.queue {
            Some(queue) if !queue.is_full() => queue.judge(io.now, path, segment),
            full => {
                if segment.control != Control::Syn {
                    // Who completes a handshake while the queue is full asks again.
                    let may_come_again = full.is_some() && segment.opening.is_some();
                    self.turn_away(io, path, segment.tag.filter(|_| !may_come_again), segment.control);
                } else if let Some(reset) = Listener::refuse(&segment) {
                    self.stats.refused += 1;
                    self.egress.reply(io, path, &reset, &mut self.stats);
                }
                return;
            }
        };
        match verdict {
            Verdict::Reply(answer) => {
                self.stats.answered += 1;
                self.egress.reply(io, path, &answer, &mut self.stats);
            }
            Verdict::Accepted(endpoint) => self.accept(io, path, endpoint),
            Verdict::Refused(_) => self.turn_away(io, path, tag, control),
        }
    }

    /// Whether to answer a call.
    fn answers(&mut self, now: Instant, path: Path, call: &Segment<Bytes>) -> bool {
        let Some(caller) = call.opening.and_then(|opening| opening.tag) else { return false };
        let trust = self.trust;
        self.calls.answers(now, || trust.number(path.peer, caller))
    }

    /// A segment of a connection that nobody here knows: its sender, if it knows the tag, need not wait for us any longer.
    fn turn_away(&mut self, io: Io<'_>, path: Path, tag: Option<Tag>, control: Control) {
        self.stats.strays += 1;
        if matches!(control, Control::None | Control::Fin) && tag.is_some() && self.telling.take(io.now) {
            let told = Segment { control: Control::Stray, tag, ..Segment::default() };
            self.egress.reply(io, path, &told, &mut self.stats);
        }
    }

    fn accept(&mut self, io: Io<'_>, path: Path, endpoint: Endpoint<Bytes>) {
        // Without a descriptor for it the peer asks again, and again there may be one.
        let Ok(notice) = Notice::new() else { return };
        self.stats.accepted += 1;
        let tag = self.insert(Connection::new(endpoint, path, Origin::Accepted, notice));
        let _ = self.service(io, tag);
        if let Some(queue) = &mut self.queue {
            queue.push(tag, &mut self.sleepers);
        }
    }

    /// The host at `address` says that nobody is behind a port which we sent to. It does not say which: believed only
    /// if there can be no mistake.
    pub(super) fn on_refusal(&mut self, io: Io<'_>, address: IpAddr) {
        let mut to_it = self.connections.iter_mut().filter(|(_, connection)| {
            connection.route.path().peer.ip().to_canonical() == address.to_canonical()
        });
        if let (Some((&tag, connection)), None) = (to_it.next(), to_it.next())
            && connection.endpoint.state() == State::SynSent
        {
            connection.nobody_there(io.now);
            let _ = self.service(io, tag);
        }
    }
}
