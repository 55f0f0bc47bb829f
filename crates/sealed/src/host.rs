//! The state machine of a host: calls of the application, outputs, and the connections with something to do.

use crate::config::{ConfigError, ConnectError, HostConfig, ListenError};
use crate::conn::{Conn, Owner, TELLS_END};
use crate::event::{ConnectionKey, HostEvent, Path, Transmit};
use crate::link::Link;
use crate::memory::Memory;
use crate::schedule::{Alarms, Line};
use crate::stats::{Dropped, HostStats};
use bytes::Bytes;
use core::net::{IpAddr, SocketAddr};
use hopline_core::Instant;
use hopline_secure::{Announcement, Answerer, Credentials, Opener, ResetKey, Seed};
use hopline_transport::wide::{self, Endpoint};
use hopline_wire::ipv4::Ecn;
use hopline_wire::secure::ConnectionId;
use hopline_wire::wide::Parameters;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Most answers of no connection that wait to be fetched.
const LOOSE_MAX: usize = 1024;

/// All connections of one UDP port.
///
/// After each call, drain [`poll_transmit`](Self::poll_transmit) and [`poll_event`](Self::poll_event), then ask
/// [`poll_timeout`](Self::poll_timeout): [the contract](hopline_core::machine) of all machines here.
#[derive(Debug)]
pub struct Host {
    pub(crate) config: HostConfig,
    seed: Seed,
    seeds: u64,
    pub(crate) listener: Option<Listener>,
    pub(crate) conns: BTreeMap<ConnectionKey, Conn>,
    /// Connections by local connection id, which is unique.
    pub(crate) ids: BTreeMap<ConnectionId, ConnectionKey>,
    /// Connections by the connection id of the peer: peers may choose the same ones.
    pub(crate) remotes: BTreeSet<(ConnectionId, ConnectionKey)>,
    next_key: u64,
    ready: Line,
    noisy: Line,
    alarms: Alarms,
    /// Closed connections that their users have released: they make room for others.
    closed: BTreeSet<ConnectionKey>,
    /// Datagrams that leave and belong to no connection.
    loose: VecDeque<(Path, Bytes)>,
    /// Calls of strangers.
    pub(crate) strangers: VecDeque<HostEvent>,
    pub(crate) memory: Memory,
    /// Latest time that was given.
    pub(crate) now: Instant,
    pub(crate) stats: HostStats,
    /// Second, and number of peers notified in it that their connection is not known.
    pub(crate) told_gone: (u64, u32),
}

/// Responder to the initiators of connections.
#[derive(Debug)]
pub(crate) struct Listener {
    pub(crate) answerer: Answerer,
    pub(crate) transport: wide::Config,
    pub(crate) backlog: usize,
    /// Our addresses at which the messages came that the responder defers, by their senders.
    pub(crate) deferred: BTreeMap<SocketAddr, IpAddr>,
}

impl Host {
    /// Creates a host without connections. `seed` is for this host alone: equal seeds give equal keys.
    ///
    /// # Errors
    /// A setting out of its range.
    pub fn new(config: HostConfig, seed: Seed) -> Result<Self, ConfigError> {
        config.validate()?;
        Ok(Self {
            memory: Memory::new(config.receive_memory),
            config,
            seed,
            seeds: 0,
            listener: None,
            conns: BTreeMap::new(),
            ids: BTreeMap::new(),
            remotes: BTreeSet::new(),
            next_key: 0,
            ready: Line::default(),
            noisy: Line::default(),
            alarms: Alarms::default(),
            closed: BTreeSet::new(),
            loose: VecDeque::new(),
            strangers: VecDeque::new(),
            now: Instant::ZERO,
            stats: HostStats::default(),
            told_gone: (0, 0),
        })
    }

    /// Accepts connections that peers open. At most `backlog` wait until they are [picked](Self::picked); an
    /// initiator that calls while so many wait is not answered, and tries again by itself.
    ///
    /// # Errors
    /// Listening already, a backlog of none, a setting out of its range.
    pub fn listen(
        &mut self,
        credentials: Credentials,
        transport: wide::Config,
        backlog: usize,
    ) -> Result<(), ListenError> {
        if self.listener.is_some() {
            return Err(ListenError::AlreadyListening);
        }
        if backlog == 0 {
            return Err(ListenError::Backlog);
        }
        let announcement = self.announcement(&Endpoint::new(transport)?);
        let seed = self.next_seed();
        let answerer = Answerer::new(self.config.of_answerers(), credentials, announcement, &seed)?;
        self.listener = Some(Listener { answerer, transport, backlog, deferred: BTreeMap::new() });
        Ok(())
    }

    /// Stops listening, and forgets the handshakes in progress. Connections stay, also those that were not
    /// [picked](Self::picked) yet. Returns whether it listened.
    pub fn unlisten(&mut self) -> bool {
        let Some(listener) = self.listener.take() else { return false };
        self.stats.refusals.merge(listener.answerer.refusals());
        true
    }

    /// Sets the key of stateless resets for peers of new connections: after a restart, or if the key follows
    /// from what is known only once the host [listens](Self::listen).
    pub fn set_resets(&mut self, resets: Option<ResetKey>) {
        self.config.resets = resets;
    }

    /// Opens a connection. Data may be handed over at once; they leave with the first sealed datagram, after one round trip.
    ///
    /// # Errors
    /// No room for more connections, a setting out of its range.
    pub fn connect(
        &mut self,
        now: Instant,
        path: Path,
        credentials: Credentials,
        transport: wide::Config,
    ) -> Result<ConnectionKey, ConnectError> {
        self.now = now;
        if !self.has_room() {
            return Err(ConnectError::Full(self.conns.len()));
        }
        let mut endpoint = Endpoint::new(transport)?;
        endpoint.await_handshake().expect("it is new");
        let announcement = self.announcement(&endpoint);
        let seed = self.next_seed();
        let opener = Opener::open(now, self.config.of_openers(), credentials, announcement, &seed)?;
        let id = opener.local_id();
        let link = Link::Opening(Box::new(opener));
        Ok(self.add(Conn::new(endpoint, link, id, path, Owner::User)))
    }

    /// Takes the passing of time.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.now = now;
        if let Some(listener) = &mut self.listener {
            listener.answerer.handle_timeout(now);
            self.send_answers(None);
        }
        for key in self.alarms.due(now) {
            let conn = self.conns.get_mut(&key).expect("an alarm is of a connection that is there");
            conn.on_time(now);
            let (owner, is_closed) = (conn.owner, conn.is_closed());
            self.hear_opener(now, key);
            match owner {
                Owner::Nobody { until } if until <= now && is_closed => self.forget(key),
                Owner::Nobody { until } if until <= now => self.let_go(key),
                _ => self.settle(key),
            }
        }
    }

    /// Returns the time at which to call [`handle_timeout`](Self::handle_timeout).
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        let answerer = self.listener.as_ref().and_then(|listener| listener.answerer.poll_timeout());
        [answerer, self.alarms.next()].into_iter().flatten().min()
    }

    /// Appends the next datagram to `buffer`, sealed where it stands. Connections take turns, each for
    /// [`burst`](HostConfig::burst) datagrams.
    #[must_use]
    pub fn poll_transmit(&mut self, now: Instant, buffer: &mut Vec<u8>) -> Option<Transmit> {
        self.now = now;
        if let Some((path, message)) = self.loose.pop_front() {
            buffer.extend_from_slice(&message);
            return Some(self.sent(Transmit { path, len: message.len(), ecn: Ecn::NotCapable, key: None }));
        }
        while let Some(key) = self.ready.first() {
            let Some(conn) = self.conns.get_mut(&key) else {
                self.ready.leave();
                continue;
            };
            if let Some(appended) = conn.next_datagram(now, buffer) {
                conn.places.turn += 1;
                if conn.places.turn >= self.config.burst {
                    conn.places.turn = 0;
                    self.ready.rotate();
                }
                let key = Some(key);
                return Some(self.sent(Transmit {
                    path: appended.path,
                    len: appended.len,
                    ecn: appended.ecn,
                    key,
                }));
            }
            conn.places.turn = 0;
            conn.places.ready = Default::default();
            self.ready.leave();
            self.review(key);
        }
        None
    }

    /// Returns the next event.
    #[must_use]
    pub fn poll_event(&mut self) -> Option<HostEvent> {
        while let Some(key) = self.noisy.first() {
            if let Some(conn) = self.conns.get_mut(&key) {
                conn.gather();
                if let Some(event) = conn.poll_event(key) {
                    return Some(event);
                }
                conn.places.noisy = Default::default();
                self.noisy.leave();
                self.review(key);
            } else {
                self.noisy.leave();
            }
        }
        self.strangers.pop_front()
    }

    /// Returns a connection.
    #[must_use]
    pub fn connection(&self, key: ConnectionKey) -> Option<&Conn> {
        self.conns.get(&key)
    }

    /// Returns all connections that have a user, or wait for one, in the order in which they came into being.
    pub fn connections(&self) -> impl Iterator<Item = (ConnectionKey, &Conn)> {
        let has_user = |conn: &Conn| !matches!(conn.owner, Owner::Nobody { .. });
        self.conns.iter().filter(move |(_, conn)| has_user(conn)).map(|(key, conn)| (*key, conn))
    }

    /// Returns a connection, to be used by the caller that has [picked](Self::picked) it: does all that
    /// [`endpoint`](Self::endpoint), [`picked`](Self::picked) and [`touch`](Self::touch) do. Drain the
    /// outputs afterwards.
    pub fn connection_mut(&mut self, key: ConnectionKey) -> Option<&mut Conn> {
        self.picked(key);
        let conn = self.conns.get_mut(&key).filter(|conn| conn.has_user())?;
        conn.note_use();
        self.ready.join(key, &mut conn.places.ready);
        self.noisy.join(key, &mut conn.places.noisy);
        Some(conn)
    }

    /// Returns a connection, without consequences: it stays in its backlog, and changes to it are not acted
    /// on before [`touch`](Self::touch).
    pub fn endpoint(&mut self, key: ConnectionKey) -> Option<&mut Conn> {
        self.conns.get_mut(&key).filter(|conn| conn.has_user())
    }

    /// Its endpoint was called: it may have something to send or to tell. Drain the outputs afterwards.
    pub fn touch(&mut self, key: ConnectionKey) {
        if let Some(conn) = self.conns.get_mut(&key).filter(|conn| conn.has_user()) {
            self.memory.note(&mut conn.held, conn.endpoint.held());
            conn.note_use();
            self.ready.join(key, &mut conn.places.ready);
            self.noisy.join(key, &mut conn.places.noisy);
        }
    }

    /// Records that an accepted connection has a user now: it makes room in the backlog for another one.
    pub fn picked(&mut self, key: ConnectionKey) {
        if let Some(conn) = self.conns.get_mut(&key).filter(|conn| conn.owner == Owner::Backlog) {
            conn.owner = Owner::User;
            self.stats.waiting -= 1;
        }
    }

    /// Releases a connection; nothing more is reported of it. One that its user has closed goes on until that
    /// is done, for [`linger`](HostConfig::linger) at most; any other is ended, and its peer notified.
    /// Returns whether there was one.
    pub fn remove(&mut self, key: ConnectionKey) -> bool {
        if self.connection_mut(key).is_none() {
            return false;
        }
        let closing = [
            wide::State::FinWait1,
            wide::State::FinWait2,
            wide::State::Closing,
            wide::State::LastAck,
            wide::State::TimeWait,
        ];
        let until = self.now + self.config.linger;
        let conn = self.conns.get_mut(&key).expect("just seen");
        if closing.contains(&conn.state()) {
            conn.owner = Owner::Nobody { until };
            self.settle(key);
        } else {
            self.let_go(key);
        }
        true
    }

    /// Counters.
    #[must_use]
    pub fn stats(&self) -> HostStats {
        let (connections, held) = (self.conns.len(), self.memory.held());
        let mut stats = HostStats { connections, held, ..self.stats };
        if let Some(Listener { answerer, .. }) = &self.listener {
            stats.half_open = answerer.half_open();
            stats.refusals.merge(answerer.refusals());
        }
        stats
    }

    // ---- shared with the other files ----

    /// Returns whether there may be one connection more. If need be, one is forgotten that is closed and has
    /// no user.
    pub(crate) fn has_room(&mut self) -> bool {
        while self.conns.len() >= self.config.connections {
            let Some(key) = self.closed.pop_first() else { return false };
            self.forget(key);
        }
        true
    }

    pub(crate) fn add(&mut self, conn: Conn) -> ConnectionKey {
        let key = ConnectionKey(self.next_key);
        self.next_key += 1;
        self.ids.insert(conn.id, key);
        self.remotes.extend(conn.link.remote_id().map(|remote| (remote, key)));
        self.stats.waiting += usize::from(conn.owner == Owner::Backlog);
        self.conns.insert(key, conn);
        self.settle(key);
        key
    }

    /// Updates the queues after a change of the connection: it may have output and events, and other times.
    pub(crate) fn settle(&mut self, key: ConnectionKey) {
        let Some(conn) = self.conns.get_mut(&key) else { return };
        conn.gather();
        self.memory.note(&mut conn.held, conn.endpoint.held());
        self.stats.moved += core::mem::take(&mut conn.moves);
        self.stats.failed += core::mem::take(&mut conn.failures);
        self.ready.join(key, &mut conn.places.ready);
        self.noisy.join(key, &mut conn.places.noisy);
        let deadline = conn.deadline();
        self.alarms.set(key, &mut conn.places.alarm, deadline);
    }

    /// Reviews a connection that has nothing more to send or report just now.
    fn review(&mut self, key: ConnectionKey) {
        let Some(conn) = self.conns.get_mut(&key) else { return };
        conn.gather();
        self.memory.note(&mut conn.held, conn.endpoint.held());
        if conn.has_news() {
            self.noisy.join(key, &mut conn.places.noisy);
        }
        if conn.is_spent() {
            return self.forget(key);
        }
        if let Owner::Nobody { until } = conn.owner
            && conn.is_closed()
            && until > self.now + TELLS_END
        {
            conn.owner = Owner::Nobody { until: self.now + TELLS_END };
            self.closed.insert(key);
        }
        let deadline = conn.deadline();
        self.alarms.set(key, &mut conn.places.alarm, deadline);
    }

    /// Ends it, and keeps it for as long as its peer may have to be notified.
    fn let_go(&mut self, key: ConnectionKey) {
        let conn = self.conns.get_mut(&key).expect("whoever asks has it");
        conn.endpoint.abort(self.now);
        conn.owner = Owner::Nobody { until: self.now + TELLS_END };
        self.closed.insert(key);
        self.settle(key);
    }

    fn forget(&mut self, key: ConnectionKey) {
        let Some(mut conn) = self.conns.remove(&key) else { return };
        self.alarms.set(key, &mut conn.places.alarm, None);
        self.memory.note(&mut conn.held, 0);
        self.ids.remove(&conn.id);
        if let Some(remote) = conn.link.remote_id() {
            self.remotes.remove(&(remote, key));
        }
        self.closed.remove(&key);
    }

    /// Returns the connections that have this id at their peers.
    pub(crate) fn remotes_of(&self, id: ConnectionId) -> impl Iterator<Item = ConnectionKey> {
        let range = (id, ConnectionKey(0))..=(id, ConnectionKey(u64::MAX));
        self.remotes.range(range).map(|(_, key)| *key)
    }

    pub(crate) fn next_seed(&mut self) -> Seed {
        self.seeds += 1;
        self.seed.child(self.seeds)
    }

    /// Notes an answer that belongs to no connection.
    pub(crate) fn push_loose(&mut self, path: Path, message: Bytes) {
        if self.loose.len() < LOOSE_MAX {
            self.loose.push_back((path, message));
        } else {
            self.stats.drops.add(Dropped::Unfetched);
        }
    }

    fn announcement(&self, endpoint: &Endpoint<Bytes>) -> Announcement {
        let parameters = Parameters { opening: endpoint.opening(), reset: None }.to_bytes();
        Announcement { parameters, resets: self.config.resets.clone() }
    }

    fn sent(&mut self, transmit: Transmit) -> Transmit {
        self.stats.datagrams_sent += 1;
        self.stats.bytes_sent += transmit.len as u64;
        transmit
    }
}
