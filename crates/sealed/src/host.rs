//! State machine of a host: calls of the user, outputs, and the connections with output or events.

use crate::config::{ConfigError, ConnectError, HostConfig, ListenError};
use crate::conn::{CLOSE_NOTICE_TIME, Conn, Owner};
use crate::encryption::Encryption;
use crate::event::{ConnectionKey, HostEvent, Path, Transmit};
use crate::memory::ReceiveMemory;
use crate::schedule::{RoundRobin, Timers};
use crate::stats::{Dropped, HostStats};
use bytes::Bytes;
use core::net::{IpAddr, SocketAddr};
use hopline_core::Instant;
use hopline_secure::{Announcement, Credentials, Initiator, ResetKey, Responder, Seed};
use hopline_transport::wide::{self, Endpoint};
use hopline_wire::ipv4::Ecn;
use hopline_wire::secure::ConnectionId;
use hopline_wire::wide::HandshakeParameters;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Maximum number of queued datagrams that belong to no connection.
const MAX_UNATTRIBUTED: usize = 1024;

/// All connections of one UDP port.
///
/// After each call, drain [`poll_transmit`](Self::poll_transmit) and [`poll_event`](Self::poll_event), then call
/// [`poll_timeout`](Self::poll_timeout), as the [contract](hopline_core::state_machine) of sans-I/O state machines says.
#[derive(Debug)]
pub struct Host {
    pub(crate) config: HostConfig,
    seed: Seed,
    seeds: u64,
    pub(crate) listener: Option<Listener>,
    pub(crate) conns: BTreeMap<ConnectionKey, Conn>,
    /// Connections by local connection ID, which is unique.
    pub(crate) ids: BTreeMap<ConnectionId, ConnectionKey>,
    /// Connections by the connection ID at the peer. Several peers may choose the same ID.
    pub(crate) remotes: BTreeSet<(ConnectionId, ConnectionKey)>,
    next_key: u64,
    ready: RoundRobin,
    noisy: RoundRobin,
    timers: Timers,
    /// Closed connections that their users have released. They are deleted early if a new connection needs room.
    closed: BTreeSet<ConnectionKey>,
    /// Datagrams to send that belong to no connection.
    unattributed: VecDeque<(Path, Bytes)>,
    /// Events about initiators with keys that are not trusted.
    pub(crate) untrusted_keys: VecDeque<HostEvent>,
    pub(crate) memory: ReceiveMemory,
    /// Latest time that the caller has passed.
    pub(crate) now: Instant,
    pub(crate) stats: HostStats,
    /// A second (of `now`), and the number of stateless resets sent in it.
    pub(crate) resets_sent: (u64, u32),
}

/// Listener: the responder of handshakes, and the configuration of accepted connections.
#[derive(Debug)]
pub(crate) struct Listener {
    pub(crate) responder: Responder,
    pub(crate) transport: wide::Config,
    pub(crate) backlog: usize,
    /// Local addresses at which messages arrived that the responder has deferred, by the address of the sender.
    pub(crate) deferred: BTreeMap<SocketAddr, IpAddr>,
}

impl Host {
    /// Creates a host without connections. Each host needs its own `seed`: equal seeds yield equal keys.
    ///
    /// # Errors
    /// A value that is out of its range.
    pub fn new(config: HostConfig, seed: Seed) -> Result<Self, ConfigError> {
        config.validate()?;
        Ok(Self {
            memory: ReceiveMemory::new(config.receive_memory),
            config,
            seed,
            seeds: 0,
            listener: None,
            conns: BTreeMap::new(),
            ids: BTreeMap::new(),
            remotes: BTreeSet::new(),
            next_key: 0,
            ready: RoundRobin::default(),
            noisy: RoundRobin::default(),
            timers: Timers::default(),
            closed: BTreeSet::new(),
            unattributed: VecDeque::new(),
            untrusted_keys: VecDeque::new(),
            now: Instant::ZERO,
            stats: HostStats::default(),
            resets_sent: (0, 0),
        })
    }

    /// Accepts connections that peers open. At most `backlog` connections wait until a user [accepts](Self::mark_accepted)
    /// them. While the backlog is full, initiators are not answered; they retransmit.
    ///
    /// # Errors
    /// The host listens already, the backlog is 0, or a value is out of its range.
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
        let responder = Responder::new(self.config.responder_config(), credentials, announcement, &seed)?;
        self.listener = Some(Listener { responder, transport, backlog, deferred: BTreeMap::new() });
        Ok(())
    }

    /// Stops listening, and deletes the handshakes in progress. Connections stay, also those in the backlog. Returns whether
    /// the host listened.
    pub fn unlisten(&mut self) -> bool {
        let Some(listener) = self.listener.take() else { return false };
        self.stats.refusals.merge(listener.responder.refusals());
        true
    }

    /// Sets the key of stateless resets for new connections, if it was not known yet when the host was created.
    pub fn set_resets(&mut self, resets: Option<ResetKey>) {
        self.config.reset_key = resets;
    }

    /// Opens a connection. [`Conn::send`] may be called at once; the data is sent with the first encrypted datagram, after one
    /// round trip.
    ///
    /// # Errors
    /// The number of connections is at its limit, or a value is out of its range.
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
        endpoint.start_lower_handshake().expect("it is new");
        let announcement = self.announcement(&endpoint);
        let seed = self.next_seed();
        let initiator =
            Initiator::open(now, self.config.initiator_config(), credentials, announcement, &seed)?;
        let id = initiator.local_id();
        let link = Encryption::Handshaking(Box::new(initiator));
        Ok(self.add(Conn::new(endpoint, link, id, path, Owner::User)))
    }

    /// Handles the timers that are due at `now`.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.now = now;
        if let Some(listener) = &mut self.listener {
            listener.responder.handle_timeout(now);
            self.send_answers(None);
        }
        for key in self.timers.expired(now) {
            let conn = self.conns.get_mut(&key).expect("a timer is of an existing connection");
            conn.handle_timeout(now);
            let (owner, is_closed) = (conn.owner, conn.is_closed());
            self.handle_initiator_events(now, key);
            match owner {
                Owner::Released { until } if until <= now && is_closed => self.discard(key),
                Owner::Released { until } if until <= now => self.release(key),
                _ => self.update_queues(key),
            }
        }
    }

    /// Returns the time at which to call [`handle_timeout`](Self::handle_timeout).
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        let responder = self.listener.as_ref().and_then(|listener| listener.responder.poll_timeout());
        [responder, self.timers.next()].into_iter().flatten().min()
    }

    /// Appends the next datagram to `buffer`, where it is encrypted in place. Connections take turns of at most
    /// [`burst`](HostConfig::burst) datagrams.
    #[must_use]
    pub fn poll_transmit(&mut self, now: Instant, buffer: &mut Vec<u8>) -> Option<Transmit> {
        self.now = now;
        if let Some((path, message)) = self.unattributed.pop_front() {
            buffer.extend_from_slice(&message);
            return Some(self.count_sent(Transmit {
                path,
                len: message.len(),
                ecn: Ecn::NotCapable,
                key: None,
            }));
        }
        while let Some(key) = self.ready.first() {
            let Some(conn) = self.conns.get_mut(&key) else {
                self.ready.pop();
                continue;
            };
            if let Some(appended) = conn.next_datagram(now, buffer) {
                conn.queue_positions.turn_datagrams += 1;
                if conn.queue_positions.turn_datagrams >= self.config.burst {
                    conn.queue_positions.turn_datagrams = 0;
                    self.ready.rotate();
                }
                let key = Some(key);
                return Some(self.count_sent(Transmit {
                    path: appended.path,
                    len: appended.len,
                    ecn: appended.ecn,
                    key,
                }));
            }
            conn.queue_positions.turn_datagrams = 0;
            conn.queue_positions.ready = Default::default();
            self.ready.pop();
            self.handle_idle(key);
        }
        None
    }

    /// Returns the next event.
    #[must_use]
    pub fn poll_event(&mut self) -> Option<HostEvent> {
        while let Some(key) = self.noisy.first() {
            if let Some(conn) = self.conns.get_mut(&key) {
                conn.collect_events();
                if let Some(event) = conn.poll_event(key) {
                    return Some(event);
                }
                conn.queue_positions.noisy = Default::default();
                self.noisy.pop();
                self.handle_idle(key);
            } else {
                self.noisy.pop();
            }
        }
        self.untrusted_keys.pop_front()
    }

    /// Returns a connection.
    #[must_use]
    pub fn connection(&self, key: ConnectionKey) -> Option<&Conn> {
        self.conns.get(&key)
    }

    /// Returns all connections that have a user or wait in the backlog, in the order of their creation.
    pub fn connections(&self) -> impl Iterator<Item = (ConnectionKey, &Conn)> {
        let has_user = |conn: &Conn| !matches!(conn.owner, Owner::Released { .. });
        self.conns.iter().filter(move |(_, conn)| has_user(conn)).map(|(key, conn)| (*key, conn))
    }

    /// Returns a connection for calls of its user, and takes it from the backlog. It combines [`endpoint`](Self::endpoint),
    /// [`mark_accepted`](Self::mark_accepted) and [`handle_user_call`](Self::handle_user_call). Drain the outputs afterwards.
    pub fn connection_mut(&mut self, key: ConnectionKey) -> Option<&mut Conn> {
        self.mark_accepted(key);
        let conn = self.conns.get_mut(&key).filter(|conn| conn.has_user())?;
        conn.record_use();
        self.ready.push(key, &mut conn.queue_positions.ready);
        self.noisy.push(key, &mut conn.queue_positions.noisy);
        Some(conn)
    }

    /// Returns a connection without side effects: it stays in the backlog. After calls that change it, call
    /// [`handle_user_call`](Self::handle_user_call), which produces its output and events.
    pub fn endpoint(&mut self, key: ConnectionKey) -> Option<&mut Conn> {
        self.conns.get_mut(&key).filter(|conn| conn.has_user())
    }

    /// Handles the consequences of a user's calls of [`endpoint`](Self::endpoint): the connection may have output and events.
    /// Drain the outputs afterwards.
    pub fn handle_user_call(&mut self, key: ConnectionKey) {
        if let Some(conn) = self.conns.get_mut(&key).filter(|conn| conn.has_user()) {
            self.memory.update(&mut conn.receive_memory, conn.endpoint.receive_memory());
            conn.record_use();
            self.ready.push(key, &mut conn.queue_positions.ready);
            self.noisy.push(key, &mut conn.queue_positions.noisy);
        }
    }

    /// Records that a user has accepted the connection. It leaves the backlog, which has room for another one.
    pub fn mark_accepted(&mut self, key: ConnectionKey) {
        if let Some(conn) = self.conns.get_mut(&key).filter(|conn| conn.owner == Owner::Backlog) {
            conn.owner = Owner::User;
            self.stats.backlog -= 1;
        }
    }

    /// Releases a connection; no further event of it is reported. If its user has closed it, it continues until it is closed
    /// gracefully, for at most [`linger`](HostConfig::linger). Otherwise it is aborted, and its peer is notified. Returns whether
    /// the connection existed.
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
            conn.owner = Owner::Released { until };
            self.update_queues(key);
        } else {
            self.release(key);
        }
        true
    }

    /// Returns the counters and the current state.
    #[must_use]
    pub fn stats(&self) -> HostStats {
        let (connections, held) = (self.conns.len(), self.memory.used());
        let mut stats = HostStats { connections, receive_memory: held, ..self.stats };
        if let Some(Listener { responder, .. }) = &self.listener {
            stats.half_open = responder.half_open();
            stats.refusals.merge(responder.refusals());
        }
        stats
    }

    // ---- shared with the other files ----

    /// Returns whether there is room for another connection. If necessary, closed connections without users are deleted.
    pub(crate) fn has_room(&mut self) -> bool {
        while self.conns.len() >= self.config.connections {
            let Some(key) = self.closed.pop_first() else { return false };
            self.discard(key);
        }
        true
    }

    pub(crate) fn add(&mut self, conn: Conn) -> ConnectionKey {
        let key = ConnectionKey(self.next_key);
        self.next_key += 1;
        self.ids.insert(conn.id, key);
        self.remotes.extend(conn.encryption.remote_id().map(|remote| (remote, key)));
        self.stats.backlog += usize::from(conn.owner == Owner::Backlog);
        self.conns.insert(key, conn);
        self.update_queues(key);
        key
    }

    /// Updates queues, timers and counters after a change of the connection, which may have output and events.
    pub(crate) fn update_queues(&mut self, key: ConnectionKey) {
        let Some(conn) = self.conns.get_mut(&key) else { return };
        conn.collect_events();
        self.memory.update(&mut conn.receive_memory, conn.endpoint.receive_memory());
        self.stats.moved += core::mem::take(&mut conn.uncounted_moves);
        self.stats.failed += core::mem::take(&mut conn.failures);
        self.ready.push(key, &mut conn.queue_positions.ready);
        self.noisy.push(key, &mut conn.queue_positions.noisy);
        let deadline = conn.deadline();
        self.timers.set(key, &mut conn.queue_positions.timer, deadline);
    }

    /// Updates a connection that has no more output or events now, and deletes it if it is finished.
    fn handle_idle(&mut self, key: ConnectionKey) {
        let Some(conn) = self.conns.get_mut(&key) else { return };
        conn.collect_events();
        self.memory.update(&mut conn.receive_memory, conn.endpoint.receive_memory());
        if conn.has_events() {
            self.noisy.push(key, &mut conn.queue_positions.noisy);
        }
        if conn.is_finished() {
            return self.discard(key);
        }
        if let Owner::Released { until } = conn.owner
            && conn.is_closed()
            && until > self.now + CLOSE_NOTICE_TIME
        {
            conn.owner = Owner::Released { until: self.now + CLOSE_NOTICE_TIME };
            self.closed.insert(key);
        }
        let deadline = conn.deadline();
        self.timers.set(key, &mut conn.queue_positions.timer, deadline);
    }

    /// Aborts a connection, and keeps it for the time in which its peer may have to be notified.
    fn release(&mut self, key: ConnectionKey) {
        let conn = self.conns.get_mut(&key).expect("the caller has found it");
        conn.endpoint.abort(self.now);
        conn.owner = Owner::Released { until: self.now + CLOSE_NOTICE_TIME };
        self.closed.insert(key);
        self.update_queues(key);
    }

    fn discard(&mut self, key: ConnectionKey) {
        let Some(mut conn) = self.conns.remove(&key) else { return };
        self.timers.set(key, &mut conn.queue_positions.timer, None);
        self.memory.update(&mut conn.receive_memory, 0);
        self.ids.remove(&conn.id);
        if let Some(remote) = conn.encryption.remote_id() {
            self.remotes.remove(&(remote, key));
        }
        self.closed.remove(&key);
    }

    /// Returns the connections with this connection ID at their peers.
    pub(crate) fn remotes_of(&self, id: ConnectionId) -> impl Iterator<Item = ConnectionKey> {
        let range = (id, ConnectionKey(0))..=(id, ConnectionKey(u64::MAX));
        self.remotes.range(range).map(|(_, key)| *key)
    }

    pub(crate) fn next_seed(&mut self) -> Seed {
        self.seeds += 1;
        self.seed.child(self.seeds)
    }

    /// Queues a datagram that belongs to no connection.
    pub(crate) fn push_unattributed(&mut self, path: Path, message: Bytes) {
        if self.unattributed.len() < MAX_UNATTRIBUTED {
            self.unattributed.push_back((path, message));
        } else {
            self.stats.drops.add(Dropped::Unfetched);
        }
    }

    fn announcement(&self, endpoint: &Endpoint<Bytes>) -> Announcement {
        let parameters =
            HandshakeParameters { opening: endpoint.opening_parameters(), reset: None }.to_bytes();
        Announcement { parameters, reset_key: self.config.reset_key.clone() }
    }

    fn count_sent(&mut self, transmit: Transmit) -> Transmit {
        self.stats.datagrams_sent += 1;
        self.stats.bytes_sent += transmit.len as u64;
        transmit
    }
}
