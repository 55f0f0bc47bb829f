//! The state machine of a host: calls of the application, outputs, and the connections with something to do.

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

/// Most answers of no connection that wait to be fetched.
const MAX_UNATTRIBUTED: usize = 1024;

/// All connections of one UDP port.
///
/// After each call, drain [`poll_transmit`](Self::poll_transmit) and [`poll_event`](Self::poll_event), then ask
/// [`poll_timeout`](Self::poll_timeout): [the contract](hopline_core::state_machine) of all machines here.
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
    ready: RoundRobin,
    noisy: RoundRobin,
    timers: Timers,
    /// Closed connections that their users have released: they make room for others.
    closed: BTreeSet<ConnectionKey>,
    /// Datagrams that leave and belong to no connection.
    unattributed: VecDeque<(Path, Bytes)>,
    /// Calls of strangers.
    pub(crate) untrusted_keys: VecDeque<HostEvent>,
    pub(crate) memory: ReceiveMemory,
    /// Latest time that was given.
    pub(crate) now: Instant,
    pub(crate) stats: HostStats,
    /// Second, and number of peers notified in it that their connection is not known.
    pub(crate) resets_sent: (u64, u32),
}

/// Responder to the initiators of connections.
#[derive(Debug)]
pub(crate) struct Listener {
    pub(crate) responder: Responder,
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

    /// Accepts connections that peers open. At most `backlog` wait until they are [picked](Self::mark_accepted); an
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
        let responder = Responder::new(self.config.responder_config(), credentials, announcement, &seed)?;
        self.listener = Some(Listener { responder, transport, backlog, deferred: BTreeMap::new() });
        Ok(())
    }

    /// Stops listening, and forgets the handshakes in progress. Connections stay, also those that were not
    /// [picked](Self::mark_accepted) yet. Returns whether it listened.
    pub fn unlisten(&mut self) -> bool {
        let Some(listener) = self.listener.take() else { return false };
        self.stats.refusals.merge(listener.responder.refusals());
        true
    }

    /// Sets the key of stateless resets for peers of new connections: after a restart, or if the key follows
    /// from what is known only once the host [listens](Self::listen).
    pub fn set_resets(&mut self, resets: Option<ResetKey>) {
        self.config.reset_key = resets;
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
        endpoint.start_lower_handshake().expect("it is new");
        let announcement = self.announcement(&endpoint);
        let seed = self.next_seed();
        let initiator =
            Initiator::open(now, self.config.initiator_config(), credentials, announcement, &seed)?;
        let id = initiator.local_id();
        let link = Encryption::Handshaking(Box::new(initiator));
        Ok(self.add(Conn::new(endpoint, link, id, path, Owner::User)))
    }

    /// Takes the passing of time.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.now = now;
        if let Some(listener) = &mut self.listener {
            listener.responder.handle_timeout(now);
            self.send_answers(None);
        }
        for key in self.timers.expired(now) {
            let conn = self.conns.get_mut(&key).expect("an alarm is of a connection that is there");
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

    /// Appends the next datagram to `buffer`, sealed where it stands. Connections take turns, each for
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

    /// Returns all connections that have a user, or wait for one, in the order in which they came into being.
    pub fn connections(&self) -> impl Iterator<Item = (ConnectionKey, &Conn)> {
        let has_user = |conn: &Conn| !matches!(conn.owner, Owner::Released { .. });
        self.conns.iter().filter(move |(_, conn)| has_user(conn)).map(|(key, conn)| (*key, conn))
    }

    /// Returns a connection, to be used by the caller that has [picked](Self::mark_accepted) it: does all that
    /// [`endpoint`](Self::endpoint), [`mark_accepted`](Self::mark_accepted) and [`handle_user_call`](Self::handle_user_call) do. Drain the
    /// outputs afterwards.
    pub fn connection_mut(&mut self, key: ConnectionKey) -> Option<&mut Conn> {
        self.mark_accepted(key);
        let conn = self.conns.get_mut(&key).filter(|conn| conn.has_user())?;
        conn.record_use();
        self.ready.push(key, &mut conn.queue_positions.ready);
        self.noisy.push(key, &mut conn.queue_positions.noisy);
        Some(conn)
    }

    /// Returns a connection, without consequences: it stays in its backlog, and changes to it are not acted
    /// on before [`handle_user_call`](Self::handle_user_call).
    pub fn endpoint(&mut self, key: ConnectionKey) -> Option<&mut Conn> {
        self.conns.get_mut(&key).filter(|conn| conn.has_user())
    }

    /// Its endpoint was called: it may have something to send or to tell. Drain the outputs afterwards.
    pub fn handle_user_call(&mut self, key: ConnectionKey) {
        if let Some(conn) = self.conns.get_mut(&key).filter(|conn| conn.has_user()) {
            self.memory.update(&mut conn.receive_memory, conn.endpoint.receive_memory());
            conn.record_use();
            self.ready.push(key, &mut conn.queue_positions.ready);
            self.noisy.push(key, &mut conn.queue_positions.noisy);
        }
    }

    /// Records that an accepted connection has a user now: it makes room in the backlog for another one.
    pub fn mark_accepted(&mut self, key: ConnectionKey) {
        if let Some(conn) = self.conns.get_mut(&key).filter(|conn| conn.owner == Owner::Backlog) {
            conn.owner = Owner::User;
            self.stats.backlog -= 1;
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
            conn.owner = Owner::Released { until };
            self.update_queues(key);
        } else {
            self.release(key);
        }
        true
    }

    /// Counters.
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

    /// Returns whether there may be one connection more. If need be, one is forgotten that is closed and has
    /// no user.
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

    /// Updates the queues after a change of the connection: it may have output and events, and other times.
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

    /// Reviews a connection that has nothing more to send or report just now.
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

    /// Ends it, and keeps it for as long as its peer may have to be notified.
    fn release(&mut self, key: ConnectionKey) {
        let conn = self.conns.get_mut(&key).expect("whoever asks has it");
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
