//! The tables of a stack, and calls of the application.

use crate::config::{InitialSequence, StackConfig, StackConfigError};
use crate::connection::{Connection, ConnectionId, EndReason, FourTuple, Owner, Status};
use crate::stats::StackStats;
use bytes::Bytes;
use hopline_core::{Instant, PreAuthLimit, StateMachine};
use hopline_transport::connection::Event as TcpEvent;
use hopline_transport::tcp::{Endpoint, Ports, State};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::{IpAddr, SocketAddr};

/// A TCP host: connections behind IP packets.
#[derive(Debug)]
pub struct Stack {
    pub(crate) config: StackConfig,
    pub(crate) connections: BTreeMap<ConnectionId, Box<Connection>>,
    pub(crate) by_tuple: BTreeMap<FourTuple, ConnectionId>,
    pub(crate) listening: BTreeSet<u16>,
    /// Connections that a peer has begun to open.
    pub(crate) half_open: PreAuthLimit,
    pub(crate) by_half_open_number: BTreeMap<u64, ConnectionId>,
    /// Connections in TIME-WAIT of which the application has let go, the oldest first: they give way.
    pub(crate) time_wait: BTreeSet<ConnectionId>,
    pub(crate) timers: BTreeSet<(Instant, ConnectionId)>,
    /// Connections that may have a packet to send.
    pub(crate) transmit_queue: VecDeque<ConnectionId>,
    /// Packets that belong to no connection.
    pub(crate) replies: VecDeque<Vec<u8>>,
    pub(crate) events: VecDeque<Event>,
    /// Number of the next connection.
    pub(crate) next_id: u64,
    /// Bytes that are set aside for all connections.
    pub(crate) reserved_memory: u64,
    pub(crate) stats: StackStats,
}

/// News for the application.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A peer has opened a connection to a listening port. The application owns it from now on.
    Accepted(ConnectionId),
    /// The [status](Stack::status) of a connection may be another one.
    Changed(ConnectionId),
}

/// Reason for which a connection is not begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConnectError {
    /// The stack has no address of this version of IP.
    #[error("this stack has no address of that version of IP")]
    NoAddress,
    /// The address is no host's beyond this stack: port 0, an address of its own, loopback, multicast.
    #[error("no host beyond this stack has that address")]
    InvalidRemote,
    /// As many connections as there may be, or every port towards this peer in use.
    #[error("there are as many connections as there may be")]
    TooManyConnections,
    /// The connections hold as much memory as they may.
    #[error("the connections hold as much memory as they may")]
    OutOfMemory,
}

impl Stack {
    /// Returns a stack without connections.
    ///
    /// # Errors
    /// A parameter out of its range.
    pub fn new(config: StackConfig) -> Result<Self, StackConfigError> {
        config.validate()?;
        Ok(Self {
            half_open: PreAuthLimit::new(config.max_half_open),
            config,
            connections: BTreeMap::new(),
            by_tuple: BTreeMap::new(),
            listening: BTreeSet::new(),
            by_half_open_number: BTreeMap::new(),
            time_wait: BTreeSet::new(),
            timers: BTreeSet::new(),
            transmit_queue: VecDeque::new(),
            replies: VecDeque::new(),
            events: VecDeque::new(),
            next_id: 0,
            reserved_memory: 0,
            stats: StackStats::default(),
        })
    }

    /// Accepts connections to `port`, at every address of the stack.
    pub fn listen(&mut self, port: u16) {
        self.listening.insert(port);
    }

    /// Begins to open a connection to `remote`.
    ///
    /// # Errors
    /// No address or port to connect from, or no room.
    pub fn connect(&mut self, now: Instant, remote: SocketAddr) -> Result<ConnectionId, ConnectError> {
        let remote = SocketAddr::new(remote.ip().to_canonical(), remote.port());
        let mut of_version = self.config.addresses.iter().filter(|ip| ip.is_ipv4() == remote.is_ipv4());
        let local = *of_version.next().ok_or(ConnectError::NoAddress)?;
        if remote.port() == 0 || !self.is_valid_peer(remote.ip()) {
            return Err(ConnectError::InvalidRemote);
        }
        self.make_room()?;
        let ends = self.free_tuple(local, remote).ok_or(ConnectError::TooManyConnections)?;
        let id = self.insert(now, ends, Owner::Application);
        self.stats.connected += 1;
        let connection = self.connections.get_mut(&id).expect("it was just inserted");
        connection.endpoint.connect(now).expect("it is new, and its remote port is not 0");
        self.process_outputs(now, id);
        Ok(id)
    }

    /// Takes data to send, as far as there is room. Returns the number of bytes taken: 0 if the connection is not open for sending.
    pub fn send(&mut self, now: Instant, id: ConnectionId, data: &[u8]) -> usize {
        let Some(connection) = self.connections.get(&id) else { return 0 };
        let room = usize::try_from(self.send_capacity(connection)).unwrap_or(usize::MAX);
        let taken = data.len().min(room);
        let connection = self.connections.get_mut(&id).expect("nothing was removed");
        if taken == 0 || connection.endpoint.send(now, Bytes::copy_from_slice(&data[..taken])).is_err() {
            return 0;
        }
        self.process_outputs(now, id);
        taken
    }

    /// Returns the next piece of received data, in order, of at most `most` bytes.
    pub fn receive(&mut self, now: Instant, id: ConnectionId, most: usize) -> Option<Bytes> {
        // The window to announce may have grown by what was read before.
        self.apply_memory_limits(id);
        let connection = self.connections.get_mut(&id)?;
        let mut data = match connection.partial_read.take() {
            Some(rest) => rest,
            None => connection.endpoint.recv()?,
        };
        if data.len() > most {
            connection.partial_read = Some(data.split_off(most));
        }
        self.process_outputs(now, id);
        Some(data)
    }

    /// Closes our direction once all data taken are sent.
    pub fn close(&mut self, now: Instant, id: ConnectionId) {
        if let Some(connection) = self.connections.get_mut(&id) {
            // A connection that is not open has nothing to close.
            let _ = connection.endpoint.close(now);
            self.process_outputs(now, id);
        }
    }

    /// Ends the connection at once, by a reset, and lets go of it.
    pub fn abort(&mut self, now: Instant, id: ConnectionId) {
        if let Some(connection) = self.connections.get_mut(&id) {
            connection.endpoint.abort(now);
            self.orphan(now, id);
        }
    }

    /// Lets go of the connection. It goes on until TCP has closed it, and the application hears no more of it.
    pub fn orphan(&mut self, now: Instant, id: ConnectionId) {
        if let Some(connection) = self.connections.get_mut(&id) {
            connection.owner = Owner::Orphaned;
            self.process_outputs(now, id);
        }
    }

    /// Aborts every connection, and accepts no more.
    pub fn abort_all(&mut self, now: Instant) {
        self.listening.clear();
        let all: Vec<_> = self.connections.keys().copied().collect();
        all.into_iter().for_each(|id| self.abort(now, id));
    }

    /// Returns the state of a connection; `None` if it is over and was let go of.
    #[must_use]
    pub fn status(&self, id: ConnectionId) -> Option<Status> {
        let connection = self.connections.get(&id)?;
        let waits =
            connection.partial_read.is_some() || connection.endpoint.receive_memory().unread_pieces > 0;
        Some(Status {
            state: connection.endpoint.state(),
            end: connection.end,
            readable: waits || connection.peer_closed,
            capacity: self.send_capacity(connection),
            unacknowledged: connection.endpoint.unacknowledged(),
        })
    }

    /// Returns the address of the stack, and that of the peer, of a connection.
    #[must_use]
    pub fn addresses(&self, id: ConnectionId) -> Option<(SocketAddr, SocketAddr)> {
        let ends = self.connections.get(&id)?.tuple;
        Some((ends.local, ends.remote))
    }

    /// Returns the endpoint of a connection, for its counters.
    #[must_use]
    pub fn endpoint(&self, id: ConnectionId) -> Option<&Endpoint<Bytes>> {
        self.connections.get(&id).map(|connection| &connection.endpoint)
    }

    /// Returns the next piece of news. A connection that changes often is told of once.
    pub fn poll_event(&mut self) -> Option<Event> {
        let event = self.events.pop_front()?;
        if let Event::Changed(id) = event
            && let Some(connection) = self.connections.get_mut(&id)
        {
            connection.is_changed = false;
        }
        Some(event)
    }

    /// Returns the counters.
    #[must_use]
    pub fn stats(&self) -> &StackStats {
        &self.stats
    }

    /// Returns the configuration.
    #[must_use]
    pub fn config(&self) -> &StackConfig {
        &self.config
    }

    /// Returns the number of connections, those in TIME-WAIT and half-open ones included.
    #[must_use]
    pub fn len(&self) -> usize {
        self.connections.len()
    }

    /// Returns whether there is no connection.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.connections.is_empty()
    }

    /// Returns the number of connections with an incomplete handshake that the peer has begun.
    #[must_use]
    pub fn half_open(&self) -> usize {
        self.half_open.len()
    }

    // ---- shared by the other files ----

    /// Returns whether a peer may have the address.
    pub(crate) fn is_valid_peer(&self, ip: IpAddr) -> bool {
        let is_unicast = match ip {
            IpAddr::V4(ip) => ip.octets()[0] != 0 && ip.octets()[0] < 224,
            IpAddr::V6(ip) => !ip.is_unspecified() && !ip.is_multicast(),
        };
        is_unicast && !ip.is_loopback() && !self.config.addresses.contains(&ip)
    }

    /// Finds room for another connection. Where there is none, one in TIME-WAIT or a half-open one makes it. Where memory is short,
    /// half-open ones do: connections in TIME-WAIT hold next to none.
    pub(crate) fn make_room(&mut self) -> Result<(), ConnectError> {
        if self.connections.len() >= self.config.max_connections {
            match self.time_wait.first().copied() {
                Some(oldest) => self.remove(oldest),
                None => drop(self.evict_half_open()),
            }
        }
        while !self.has_memory_for_connection() && self.evict_half_open() {}
        if self.connections.len() >= self.config.max_connections {
            Err(ConnectError::TooManyConnections)
        } else if !self.has_memory_for_connection() {
            self.stats.refused_for_memory += 1;
            Err(ConnectError::OutOfMemory)
        } else {
            Ok(())
        }
    }

    /// Removes the half-open connection that gives way first. Returns whether there was one.
    pub(crate) fn evict_half_open(&mut self) -> bool {
        let place = self.half_open.eviction_candidate();
        let oldest = place.and_then(|place| self.by_half_open_number.get(&place).copied());
        if let Some(oldest) = oldest {
            self.remove(oldest);
            self.stats.half_open_evicted += 1;
        }
        oldest.is_some()
    }

    fn free_tuple(&self, local: IpAddr, remote: SocketAddr) -> Option<FourTuple> {
        let ports = self.config.secret.ephemeral_ports(remote, self.next_id);
        let mut all = ports.map(|port| FourTuple { local: (local, port).into(), remote });
        all.find(|ends| !self.listening.contains(&ends.local.port()) && !self.by_tuple.contains_key(ends))
    }

    /// Adds a connection that is not open.
    pub(crate) fn insert(&mut self, now: Instant, ends: FourTuple, owner: Owner) -> ConnectionId {
        let sequence = match self.config.initial_sequence {
            InitialSequence::Keyed => self.config.secret.initial_sequence(now, ends.local, ends.remote),
            InitialSequence::Fixed(sequence) => sequence,
        };
        let ports = Ports { local: ends.local.port(), remote: ends.remote.port() };
        let mut endpoint = Endpoint::new(self.config.tcp_for(ends.local.ip()), ports, sequence)
            .expect("the configuration was validated, and an MTU of 576 has room for the least MSS");
        endpoint.set_keep_alive(now, self.config.keep_alive);
        let id = ConnectionId(self.next_id);
        self.next_id += 1;
        if let Owner::HalfOpen(place) = owner {
            self.by_half_open_number.insert(place, id);
        }
        self.by_tuple.insert(ends, id);
        self.connections.insert(id, Box::new(Connection::new(endpoint, ends, owner)));
        self.account_memory(id);
        self.apply_memory_limits(id);
        id
    }

    /// Draws the consequences of a call of an endpoint: events, timers, packets.
    pub(crate) fn process_outputs(&mut self, now: Instant, id: ConnectionId) {
        let Some(connection) = self.connections.get_mut(&id) else { return };
        let mut opened = false;
        while let Some(event) = connection.endpoint.poll_event() {
            match event {
                TcpEvent::Connected => opened = true,
                TcpEvent::PeerClosed => connection.peer_closed = true,
                TcpEvent::Closed(reason) => connection.end = connection.end.or(Some(EndReason::from(reason))),
                // The application looks at what is readable and writable.
                _ => {}
            }
        }
        if let Owner::HalfOpen(place) = connection.owner {
            let returned = connection.endpoint.state() == State::Listen;
            if opened {
                connection.owner = Owner::Application;
                connection.is_changed = true;
                self.events.extend([Event::Accepted(id), Event::Changed(id)]);
                self.stats.accepted += 1;
            } else if returned {
                connection.endpoint.abort(now);
                connection.owner = Owner::Orphaned;
            }
            if opened || returned {
                self.half_open.remove(place);
                self.by_half_open_number.remove(&place);
            }
        }
        let connection = self.connections.get_mut(&id).expect("nothing was removed");
        if connection.owner == Owner::Application && !connection.is_changed {
            connection.is_changed = true;
            self.events.push_back(Event::Changed(id));
        }
        if connection.owner == Owner::Orphaned && connection.endpoint.state() == State::TimeWait {
            self.time_wait.insert(id);
        }
        if !connection.is_queued {
            connection.is_queued = true;
            self.transmit_queue.push_back(id);
        }
        self.account_memory(id);
        self.update_timer(id);
    }

    /// Keeps the timer of a connection.
    pub(crate) fn update_timer(&mut self, id: ConnectionId) {
        let Some(connection) = self.connections.get_mut(&id) else { return };
        let due = connection.endpoint.poll_timeout().map(|(due, _)| due);
        if due == connection.timer {
            return;
        }
        if let Some(before) = connection.timer {
            self.timers.remove(&(before, id));
        }
        connection.timer = due;
        self.timers.extend(due.map(|due| (due, id)));
    }

    /// Forgets a connection.
    pub(crate) fn remove(&mut self, id: ConnectionId) {
        let Some(connection) = self.connections.remove(&id) else { return };
        self.by_tuple.remove(&connection.tuple);
        self.reserved_memory -= connection.reserved_memory;
        self.time_wait.remove(&id);
        if let Some(due) = connection.timer {
            self.timers.remove(&(due, id));
        }
        if let Owner::HalfOpen(place) = connection.owner {
            self.half_open.remove(place);
            self.by_half_open_number.remove(&place);
        }
        let stats = connection.endpoint.stats();
        self.stats.retransmissions += stats.retransmissions;
        self.stats.door_events += stats.door.ack_events + stats.door.reported_events;
    }
}
