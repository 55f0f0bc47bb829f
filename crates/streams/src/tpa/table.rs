//! Connections of a host by tag.

use super::backlog::Backlog;
use super::path_state::PathState;
use super::stats::HostStats;
use super::tokens::TokenKey;
use crate::udp::{Fragments, GsoGrouping, Path, ProtocolEvent, Transmit};
use bytes::Bytes;
use hopline_core::request_admission::{RequestAdmission, TokenBucket};
use hopline_core::{Instant, StateMachine};
use hopline_transport::tpa::Endpoint;
use hopline_wire::ipv4::Ecn;
use hopline_wire::tpa::{Segment, Tag};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Maximum number of resets per second for segments of unknown connections. A restarted host informs its peers soon, and
/// a flood is not answered.
const MAX_RESETS_PER_SECOND: u32 = 200;

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
    with_events: VecDeque<Tag>,
    /// Connections with possible data to send, in turn.
    ready: VecDeque<Tag>,
    /// Connections with timers or tags that the table may have to update.
    changed: Vec<Tag>,
    /// Answers to unknown peers; they are discarded while the socket has no room.
    replies: VecDeque<(Path, Segment<Bytes>)>,
    pub(super) backlog: Option<Backlog>,
    /// Statistics, without the parts that the streams count.
    pub(super) stats: HostStats,
    pub(super) token_key: TokenKey,
    /// Rate limit of resets for segments of unknown connections.
    pub(super) reset_allowance: TokenBucket,
    pub(super) calls: RequestAdmission,
}

/// One connection in the table of its host.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) endpoint: Endpoint<Bytes>,
    pub(super) path_state: PathState,
    /// Tag of the peer under which the table has the connection.
    pub(super) peer_tag: Option<Tag>,
    origin: Origin,
    /// Time at which the table will check it next.
    pub(super) deadline: Option<Instant>,
    sender_queue: SenderQueue,
}

/// Side that opened the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Origin {
    Connected,
    Accepted,
}

/// Membership in the queue of senders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SenderQueue {
    Queued,
    NotQueued,
}

impl Connection {
    pub(super) fn new(endpoint: Endpoint<Bytes>, path: Path, origin: Origin) -> Self {
        let mut connection = Self {
            path_state: PathState::new(path, endpoint.config().mss()),
            peer_tag: None,
            endpoint,
            origin,
            deadline: None,
            sender_queue: SenderQueue::NotQueued,
        };
        connection.fit_path();
        connection
    }

    /// Sets the segment size to the path MTU.
    pub(super) fn fit_path(&mut self) {
        self.endpoint.set_path_mss(self.path_state.mss());
    }

    /// Returns the time of the next timer of the endpoint or of the path.
    fn due(&self) -> Option<Instant> {
        let timer = self.endpoint.poll_timeout().map(|(at, _)| at);
        [timer, self.path_state.due(&self.endpoint)].into_iter().flatten().min()
    }
}

impl Tpa {
    pub(super) fn with(trust: TokenKey) -> Self {
        Self {
            connections: BTreeMap::new(),
            by_peer: BTreeMap::new(),
            due: BTreeSet::new(),
            accepted: VecDeque::new(),
            with_events: VecDeque::new(),
            ready: VecDeque::new(),
            changed: Vec::new(),
            replies: VecDeque::new(),
            backlog: None,
            stats: HostStats::default(),
            token_key: trust,
            reset_allowance: TokenBucket::new(MAX_RESETS_PER_SECOND, Instant::ZERO),
            calls: RequestAdmission::new(),
        }
    }

    // ---- connections ----

    pub(super) fn insert(&mut self, connection: Connection) -> Tag {
        let tag = connection.endpoint.tag().expect("every connection of a host has a tag");
        self.connections.insert(tag, Box::new(connection));
        self.enqueue(tag);
        tag
    }

    /// Returns an existing connection.
    pub(super) fn connection(&mut self, tag: Tag) -> &mut Connection {
        self.connections.get_mut(&tag).expect("a connection stays as long as its stream")
    }

    /// Queues a connection that may have events or data to send.
    pub(super) fn enqueue(&mut self, tag: Tag) {
        if self.with_events.back() != Some(&tag) {
            self.with_events.push_back(tag);
        }
    }

    /// Removes a connection. Returns the side that opened it.
    pub(super) fn remove_connection(&mut self, tag: Tag) -> Option<Origin> {
        let connection = self.connections.remove(&tag)?;
        if let Some(at) = connection.deadline {
            self.due.remove(&(at, tag));
        }
        if let Some(peer) = connection.peer_tag
            && self.by_peer.get(&peer) == Some(&tag)
        {
            self.by_peer.remove(&peer);
        }
        Some(connection.origin)
    }

    // ---- time ----

    pub(super) fn handle_timeouts(&mut self, now: Instant) {
        while let Some(&(at, tag)) = self.due.first()
            && at <= now
        {
            self.due.remove(&(at, tag));
            let connection = self.connection(tag);
            connection.deadline = None;
            connection.endpoint.handle_timeout(now);
            self.enqueue(tag);
        }
    }

    // ---- outputs ----

    pub(super) fn next_event(&mut self) -> Option<ProtocolEvent<Tag>> {
        if let Some(tag) = self.accepted.pop_front() {
            return Some(ProtocolEvent::Accepted(tag));
        }
        while let Some(&tag) = self.with_events.front() {
            let Some(connection) = self.connections.get_mut(&tag) else {
                self.with_events.pop_front();
                continue;
            };
            if let Some(event) = connection.endpoint.poll_event() {
                return Some(ProtocolEvent::Event(tag, event));
            }
            connection.path_state.update(connection.endpoint.stats());
            if std::mem::replace(&mut connection.sender_queue, SenderQueue::Queued) == SenderQueue::NotQueued
            {
                self.ready.push_back(tag);
            }
            self.has_changed(tag);
            self.with_events.pop_front();
            return Some(ProtocolEvent::Touched(tag));
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
                let path = connection.path_state.path();
                if let Some(segment) = connection.endpoint.poll_transmit(now) {
                    let trains = connection.path_state.may_use_gso();
                    let company = if trains { GsoGrouping::SameConnection } else { GsoGrouping::Alone };
                    self.has_changed(tag);
                    return Some(Transmit {
                        gso_grouping: company,
                        ..append(buffer, &segment, path, Some(tag))
                    });
                }
                if let Some(probe) = connection.path_state.probe(now, &connection.endpoint, &self.token_key) {
                    self.has_changed(tag);
                    let fragments = Fragments::Forbidden;
                    return Some(Transmit { fragments, ..append(buffer, &probe, path, Some(tag)) });
                }
                connection.sender_queue = SenderQueue::NotQueued;
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
    pub(super) fn update_index(&mut self) {
        self.replies.clear();
        let mut changed = std::mem::take(&mut self.changed);
        for tag in changed.drain(..) {
            self.update_index_of(tag);
        }
        self.changed = changed;
    }

    fn update_index_of(&mut self, tag: Tag) {
        let Some(connection) = self.connections.get_mut(&tag) else { return };
        let peer = connection.endpoint.peer_tag();
        if connection.peer_tag != peer {
            self.by_peer.extend(peer.map(|peer| (peer, tag)));
            if let Some(before) = std::mem::replace(&mut connection.peer_tag, peer) {
                self.by_peer.remove(&before);
            }
        }
        let due = connection.due();
        if connection.deadline != due {
            if let Some(at) = connection.deadline {
                self.due.remove(&(at, tag));
            }
            self.due.extend(due.map(|at| (at, tag)));
            connection.deadline = due;
        }
    }
}

/// Appends a datagram that is sent alone.
fn append(buffer: &mut Vec<u8>, segment: &Segment<Bytes>, path: Path, key: Option<Tag>) -> Transmit<Tag> {
    let before = buffer.len();
    segment.emit_udp(buffer);
    let (company, fragments) = (GsoGrouping::Alone, Fragments::Allowed);
    Transmit { path, len: buffer.len() - before, ecn: Ecn::NotCapable, key, gso_grouping: company, fragments }
}
