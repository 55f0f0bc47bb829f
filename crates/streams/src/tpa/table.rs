//! Connections of a host by tag.

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

/// Maximum number of resets per second for segments of unknown connections. A restarted host informs its peers soon, and
/// a flood is not answered.
const STRAYS_TOLD: u32 = 200;

/// TPA state machine with all connections of a UDP socket.
#[derive(Debug)]
pub struct Tpa {
    pub(super) connections: BTreeMap<Tag, Box<Connection>>,
    /// Connections by the tag of the peer.
    pub(super) by_peer: BTreeMap<Tag, Tag>,
    /// Times at which connections have to be checked.
    pub(super) due: BTreeSet<(Instant, Tag)>,
    /// Accepted connections that have not been reported yet.
    pub(super) accepted: VecDeque<Tag>,
    /// Connections with possible events.
    heard: VecDeque<Tag>,
    /// Connections with possible data to send, in turn.
    ready: VecDeque<Tag>,
    /// Connections with timers or tags that the table may have to update.
    changed: Vec<Tag>,
    /// Answers to unknown peers; they are discarded while the socket has no room.
    replies: VecDeque<(Path, Segment<Bytes>)>,
    pub(super) backlog: Option<Backlog>,
    /// Statistics, without the parts that the streams count.
    pub(super) stats: HostStats,
    pub(super) trust: Trust,
    /// Rate limit of resets for segments of unknown connections.
    pub(super) telling: Allowance,
    pub(super) calls: Calls,
}

/// One connection in the table of its host.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) endpoint: Endpoint<Bytes>,
    pub(super) route: Route,
    /// Tag of the peer under which the table has the connection.
    pub(super) known_as: Option<Tag>,
    origin: Origin,
    /// Time at which the table will check it next.
    pub(super) armed: Option<Instant>,
    turn: Turn,
}

/// Side that opened the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Origin {
    Connected,
    Accepted,
}

/// Membership in the queue of senders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Turn {
    Comes,
    IsOver,
}

impl Connection {
    pub(super) fn new(endpoint: Endpoint<Bytes>, path: Path, origin: Origin) -> Self {
        let mut connection = Self {
            route: Route::new(path, endpoint.config().mss()),
            known_as: None,
            endpoint,
            origin,
            armed: None,
            turn: Turn::IsOver,
        };
        connection.fit_path();
        connection
    }

    /// Sets the segment size to the path MTU.
    pub(super) fn fit_path(&mut self) {
        self.endpoint.set_path_mss(self.route.mss());
    }

    /// Returns the time of the next timer of the endpoint or of the path.
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

    /// Returns an existing connection.
    pub(super) fn connection(&mut self, tag: Tag) -> &mut Connection {
        self.connections.get_mut(&tag).expect("a connection stays as long as its stream")
    }

    /// Queues a connection that may have events or data to send.
    pub(super) fn look_at(&mut self, tag: Tag) {
        if self.heard.back() != Some(&tag) {
            self.heard.push_back(tag);
        }
    }

    /// Removes a connection. Returns the side that opened it.
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

    /// Queues an answer to an unknown peer.
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

    /// Updates the timers and the peers' tags in the table.
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

/// Appends a datagram that is sent alone.
fn append(buffer: &mut Vec<u8>, segment: &Segment<Bytes>, path: Path, key: Option<Tag>) -> Transmit<Tag> {
    let before = buffer.len();
    segment.emit_udp(buffer);
    let (company, fragments) = (Company::Nobody, Fragments::Allowed);
    Transmit { path, len: buffer.len() - before, ecn: Ecn::NotCapable, key, company, fragments }
}
