//! The connections of a host, found by their tags.

use super::backlog::Backlog;
use super::route::Route;
use super::stats::HostStats;
use super::trust::Trust;
use crate::streams::{Company, Fragments, News, Path, Transmit};
use bytes::Bytes;
use hopline_core::flood::{Allowance, Calls};
use hopline_core::{Instant, Machine};
use hopline_transport::tpa::Endpoint;
use hopline_wire::ipv4::Ecn;
use hopline_wire::tpa::{Segment, Tag};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Strays that are told in a second that nobody knows them: a host that was started anew tells all its peers soon, and a
/// flood is not answered.
const STRAYS_TOLD: u32 = 200;

/// TPA, as all connections of a UDP socket.
#[derive(Debug)]
pub struct Tpa {
    pub(super) connections: BTreeMap<Tag, Box<Connection>>,
    /// Which connection a tag of a peer belongs to.
    pub(super) by_peer: BTreeMap<Tag, Tag>,
    /// What to look after when.
    pub(super) due: BTreeSet<(Instant, Tag)>,
    /// Who was accepted and is not told of yet.
    pub(super) accepted: VecDeque<Tag>,
    /// Who may have something to tell.
    heard: VecDeque<Tag>,
    /// Who may have something to send, one after the other.
    ready: VecDeque<Tag>,
    /// Whose timers and tags may be others than the table knows.
    changed: Vec<Tag>,
    /// Answers to strangers, which are not kept while there is no room for them.
    replies: VecDeque<(Path, Segment<Bytes>)>,
    pub(super) backlog: Option<Backlog>,
    /// But for what the streams count.
    pub(super) stats: HostStats,
    pub(super) trust: Trust,
    /// How often strays are told that nobody knows them.
    pub(super) telling: Allowance,
    pub(super) calls: Calls,
}

/// One connection in the table of its host.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) endpoint: Endpoint<Bytes>,
    pub(super) route: Route,
    /// By which tag of its peer the table knows it.
    pub(super) known_as: Option<Tag>,
    origin: Origin,
    /// When the table looks after it next.
    pub(super) armed: Option<Instant>,
    turn: Turn,
}

/// Who began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Origin {
    Connected,
    Accepted,
}

/// Whether it stands in line to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Turn {
    Comes,
    IsOver,
}

impl Connection {
    pub(super) fn new(endpoint: Endpoint<Bytes>, path: Path, origin: Origin) -> Self {
        let mut connection = Self {
            route: Route::new(path, endpoint.config().mss),
            known_as: None,
            endpoint,
            origin,
            armed: None,
            turn: Turn::IsOver,
        };
        connection.fit_path();
        connection
    }

    /// Segments are as long as datagrams may be.
    pub(super) fn fit_path(&mut self) {
        self.endpoint.set_path_mss(self.route.mss());
    }

    /// When the endpoint must be told that it is time, or the path be looked at.
    fn due(&self) -> Option<Instant> {
        let timer = self.endpoint.poll_timeout().map(|(at, _)| at);
        [timer, self.route.due(&self.endpoint)].into_iter().flatten().min()
    }
}

impl Tpa {
    pub(super) fn with(trust: Trust) -> Self {
        Self {
            connections: BTreeMap::new(),
            by_peer: BTreeMap::new(),
            due: BTreeSet::new(),
            accepted: VecDeque::new(),
            heard: VecDeque::new(),
            ready: VecDeque::new(),
            changed: Vec::new(),
            replies: VecDeque::new(),
            backlog: None,
            stats: HostStats::default(),
            trust,
            telling: Allowance::new(STRAYS_TOLD, Instant::ZERO),
            calls: Calls::new(),
        }
    }

    // ---- connections ----

    pub(super) fn insert(&mut self, connection: Connection) -> Tag {
        let tag = connection.endpoint.tag().expect("every connection of a host has a tag");
        self.connections.insert(tag, Box::new(connection));
        self.look_at(tag);
        tag
    }

    /// A connection that is there.
    pub(super) fn connection(&mut self, tag: Tag) -> &mut Connection {
        self.connections.get_mut(&tag).expect("a connection stays as long as its stream")
    }

    /// It may have something to tell and something to send.
    pub(super) fn look_at(&mut self, tag: Tag) {
        if self.heard.back() != Some(&tag) {
            self.heard.push_back(tag);
        }
    }

    /// Takes a connection out. Returns who began it.
    pub(super) fn take_out(&mut self, tag: Tag) -> Option<Origin> {
        let connection = self.connections.remove(&tag)?;
        if let Some(at) = connection.armed {
            self.due.remove(&(at, tag));
        }
        if let Some(peer) = connection.known_as
            && self.by_peer.get(&peer) == Some(&tag)
        {
            self.by_peer.remove(&peer);
        }
        Some(connection.origin)
    }

    // ---- time ----

    pub(super) fn fire(&mut self, now: Instant) {
        while let Some(&(at, tag)) = self.due.first()
            && at <= now
        {
            self.due.remove(&(at, tag));
            let connection = self.connection(tag);
            connection.armed = None;
            connection.endpoint.handle_timeout(now);
            self.look_at(tag);
        }
    }

    // ---- outputs ----

    pub(super) fn next_news(&mut self) -> Option<News<Tag>> {
        if let Some(tag) = self.accepted.pop_front() {
            return Some(News::Accepted(tag));
        }
        while let Some(&tag) = self.heard.front() {
            let Some(connection) = self.connections.get_mut(&tag) else {
                self.heard.pop_front();
                continue;
            };
            if let Some(event) = connection.endpoint.poll_event() {
                return Some(News::Event(tag, event));
            }
            connection.route.review(connection.endpoint.stats());
            if std::mem::replace(&mut connection.turn, Turn::Comes) == Turn::IsOver {
                self.ready.push_back(tag);
            }
            self.has_changed(tag);
            self.heard.pop_front();
            return Some(News::Touched(tag));
        }
        None
    }

    /// Answers somebody, if there is room.
    pub(super) fn reply(&mut self, path: Path, segment: Segment<Bytes>) {
        self.replies.push_back((path, segment));
    }

    pub(super) fn next_datagram(&mut self, now: Instant, buffer: &mut Vec<u8>) -> Option<Transmit<Tag>> {
        if let Some((path, segment)) = self.replies.pop_front() {
            return Some(append(buffer, &segment, path, None));
        }
        while let Some(&tag) = self.ready.front() {
            if let Some(connection) = self.connections.get_mut(&tag) {
                let path = connection.route.path();
                if let Some(segment) = connection.endpoint.poll_transmit(now) {
                    let trains = connection.route.takes_trains();
                    let company = if trains { Company::SameConnection } else { Company::Nobody };
                    self.has_changed(tag);
                    return Some(Transmit { company, ..append(buffer, &segment, path, Some(tag)) });
                }
                if let Some(probe) = connection.route.probe(now, &connection.endpoint, &self.trust) {
                    self.has_changed(tag);
                    let fragments = Fragments::Forbidden;
                    return Some(Transmit { fragments, ..append(buffer, &probe, path, Some(tag)) });
                }
                connection.turn = Turn::IsOver;
            }
            self.ready.pop_front();
        }
        None
    }

    fn has_changed(&mut self, tag: Tag) {
        if self.changed.last() != Some(&tag) {
            self.changed.push(tag);
        }
    }

    /// Notes when to look after whom again, and by which tags peers are known.
    pub(super) fn tidy(&mut self) {
        self.replies.clear();
        let mut changed = std::mem::take(&mut self.changed);
        for tag in changed.drain(..) {
            self.tidy_one(tag);
        }
        self.changed = changed;
    }

    fn tidy_one(&mut self, tag: Tag) {
        let Some(connection) = self.connections.get_mut(&tag) else { return };
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
    }
}

/// A datagram that leaves alone.
fn append(buffer: &mut Vec<u8>, segment: &Segment<Bytes>, path: Path, key: Option<Tag>) -> Transmit<Tag> {
    let before = buffer.len();
    segment.emit_udp(buffer);
    let (company, fragments) = (Company::Nobody, Fragments::Allowed);
    Transmit { path, len: buffer.len() - before, ecn: Ecn::NotCapable, key, company, fragments }
}
