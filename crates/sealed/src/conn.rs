//! Connection: an endpoint of the transport, and its encryption.

use crate::encryption::{Confirmation, Encryption};
use crate::event::{ConnectionKey, HostEvent, OpenFailure, Path};
use crate::schedule::Membership;
use crate::stats::Dropped;
use bytes::Bytes;
use core::net::SocketAddr;
use hopline_core::{Duration, Instant, LinkId, StateMachine};
use hopline_secure::{
    Failure, Fingerprint, Initiator, InitiatorEvent, Order, PathEvent, PublicKey, Rejections,
};
use hopline_transport::Signal;
use hopline_transport::wide::{CloseError, CloseReason, Endpoint, Event, SendError, State, Stats};
use hopline_wire::ipv4::Ecn;
use hopline_wire::secure::{ConnectionId, StatelessResetToken};
use hopline_wire::wide::{self, DatagramContent, Packet};

/// Time for which this host keeps a connection that it has ended. Meanwhile it answers each datagram of the peer with a
/// notice of the end.
pub(crate) const CLOSE_NOTICE_TIME: Duration = Duration::from_secs(10);

/// A connection of a [`Host`](crate::Host).
#[derive(Debug)]
pub struct Conn {
    pub(crate) endpoint: Endpoint<Bytes>,
    pub(crate) encryption: Encryption,
    /// Connection ID at this end.
    pub(crate) id: ConnectionId,
    /// Address of the peer, and the local address that the peer knows.
    pub(crate) path: Path,
    pub(crate) owner: Owner,
    pub(crate) pending_datagram: PendingDatagram,
    pending_events: PendingEvents,
    /// State and number of unacknowledged bytes that the user has last learned. `None` during a call of the user, which may
    /// change them.
    reported: Option<(State, u64)>,
    closed: Option<CloseReason>,
    /// Choice of the local address from which datagrams are sent.
    source_policy: SourcePolicy,
    pub(crate) queue_positions: QueuePositions,
    /// Memory of received data, in bytes, that the host has counted for this connection.
    pub(crate) receive_memory: u64,
    /// Number of address changes of the peer that the host has not counted yet.
    pub(crate) uncounted_moves: u64,
    pub(crate) failures: u64,
}

/// Membership of the connection in the queues of the host.
#[derive(Debug, Default)]
pub(crate) struct QueuePositions {
    pub(crate) ready: Membership,
    pub(crate) noisy: Membership,
    pub(crate) timer: Option<Instant>,
    /// Number of datagrams sent in the current turn of this connection.
    pub(crate) turn_datagrams: u32,
}

/// Owner of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Owner {
    /// None yet: no user has accepted it from the backlog.
    Backlog,
    /// A user of the host.
    User,
    /// None any more: its user has released it. It may close gracefully until this time.
    Released { until: Instant },
}

/// Choice of the local address from which datagrams are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SourcePolicy {
    /// The address that the system chooses for each datagram. This end has opened the connection without a local address, and
    /// its addresses may change.
    Any,
    /// The address to which the peer sends.
    Fixed,
}

impl SourcePolicy {
    fn outgoing(self, path: Path) -> Path {
        match self {
            Self::Any => Path::to(path.peer),
            Self::Fixed => path,
        }
    }
}

/// Datagram that is due even if the transport has no packet to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PendingDatagram {
    Nothing,
    /// A datagram of any content, as confirmation for the initiator.
    Confirmation,
    /// Notice that the connection has ended, for a peer that does not know this.
    CloseNotice,
}

/// Events that have not been reported to the user yet. Each is reported once.
#[derive(Debug, Default)]
struct PendingEvents {
    accepted: bool,
    changed: bool,
    moved: Option<Path>,
    events: Vec<Event>,
    failed: Option<OpenFailure>,
}

/// The peer of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer {
    /// Its address.
    pub address: SocketAddr,
    /// Its public key, authenticated by the handshake. None with a pre-shared key, and before the end of the handshake.
    pub key: Option<PublicKey>,
    /// Fingerprint of that key, for comparison by users.
    pub fingerprint: Option<Fingerprint>,
}

impl Conn {
    pub(crate) fn new(
        endpoint: Endpoint<Bytes>,
        link: Encryption,
        id: ConnectionId,
        path: Path,
        owner: Owner,
    ) -> Self {
        let news = PendingEvents { accepted: owner == Owner::Backlog, ..PendingEvents::default() };
        let leaves_from = match (owner, path.local) {
            (Owner::User, None) => SourcePolicy::Any,
            _ => SourcePolicy::Fixed,
        };
        Self {
            reported: None,
            source_policy: leaves_from,
            endpoint,
            encryption: link,
            id,
            path,
            owner,
            pending_datagram: PendingDatagram::Nothing,
            pending_events: news,
            closed: None,
            queue_positions: QueuePositions::default(),
            receive_memory: 0,
            uncounted_moves: 0,
            failures: 0,
        }
    }

    /// Accepts data to send, either all of `data` or none. It may be called while the connection is being opened.
    ///
    /// # Errors
    /// The connection is not open for sending, or the send buffer has no room for `data`.
    pub fn send(&mut self, now: Instant, data: Bytes) -> Result<(), SendError> {
        self.endpoint.send(now, data)
    }

    /// Returns the next piece of received data, in order.
    pub fn recv(&mut self) -> Option<Bytes> {
        self.endpoint.recv()
    }

    /// Closes the sending direction after all accepted data is sent. Data of the peer is still received.
    ///
    /// # Errors
    /// The connection is not open, or the user has closed it already.
    pub fn close(&mut self, now: Instant) -> Result<(), CloseError> {
        self.endpoint.close(now)
    }

    /// Ends the connection at once; the peer is notified.
    pub fn abort(&mut self, now: Instant) {
        self.endpoint.abort(now);
    }

    /// Returns the state of the transport. It is `SynSent` during the handshake.
    #[must_use]
    pub fn state(&self) -> State {
        self.endpoint.state()
    }

    /// Returns the counters of the transport.
    #[must_use]
    pub fn stats(&self) -> Stats {
        self.endpoint.stats()
    }

    /// Returns the number of bytes that [`send`](Self::send) would accept now.
    #[must_use]
    pub fn send_capacity(&self) -> u64 {
        self.endpoint.send_capacity()
    }

    /// Returns the number of bytes accepted from the user and not yet acknowledged by the peer.
    #[must_use]
    pub fn unacknowledged(&self) -> u64 {
        self.endpoint.unacknowledged()
    }

    /// Returns the number of bytes received and not read by the user, in order or not.
    #[must_use]
    pub fn received_unread(&self) -> u64 {
        self.endpoint.received_unread()
    }

    /// Returns the endpoint of the transport, which has more state: round-trip times, rate, bytes in flight.
    #[must_use]
    pub const fn endpoint(&self) -> &Endpoint<Bytes> {
        &self.endpoint
    }

    /// Returns the path on which datagrams are sent.
    #[must_use]
    pub const fn path(&self) -> Path {
        self.path
    }

    /// Returns the peer.
    #[must_use]
    pub fn peer(&self) -> Peer {
        let key = match &self.encryption {
            Encryption::Open(open) => open.peer,
            Encryption::Handshaking(_) | Encryption::Closed => None,
        };
        Peer { address: self.path.peer, key, fingerprint: key.map(|key| key.fingerprint()) }
    }

    /// Returns the numbers of encrypted datagrams that could not be opened, by reason.
    #[must_use]
    pub fn rejections(&self) -> Rejections {
        match &self.encryption {
            Encryption::Open(open) => *open.session.unsealer.rejections(),
            Encryption::Handshaking(_) | Encryption::Closed => Rejections::default(),
        }
    }

    // ---- for the host ----

    /// Handles an encrypted datagram.
    pub(crate) fn handle_sealed(
        &mut self,
        now: Instant,
        path: Path,
        ecn: Ecn,
        datagram: &mut [u8],
    ) -> Result<(), Dropped> {
        let len = datagram.len();
        let open = self.encryption.open().ok_or(Dropped::Early)?;
        let opened = open.session.unsealer.open(datagram).map_err(|_| Dropped::Unopened)?;
        let (number, order) = (opened.number, opened.order);
        let payload = Bytes::copy_from_slice(opened.payload);
        self.handle_opened(now, path, (number, order, payload), ecn, len)
    }

    /// Handles the decrypted payload of a datagram of `len` bytes.
    pub(crate) fn handle_opened(
        &mut self,
        now: Instant,
        path: Path,
        (number, order, payload): (u64, Order, Bytes),
        ecn: Ecn,
        len: usize,
    ) -> Result<(), Dropped> {
        let open = self.encryption.open().ok_or(Dropped::Early)?;
        open.record_received(now, path, len, order);
        if order == Order::Newest && path.peer == self.path.peer {
            self.path = self.source_policy.outgoing(path);
        }
        let content = DatagramContent::parse(number, &payload).map_err(|_| Dropped::Senseless)?;
        let packet = match content {
            DatagramContent::Packet(packet) => Packet { ecn, ..packet },
            DatagramContent::Path(frame) => {
                open.paths.handle_control(now, path.peer, frame);
                Packet { number, ecn, ..Packet::default() }
            }
            DatagramContent::Empty => Packet { number, ecn, ..Packet::default() },
        };
        self.update_path(now);
        let ends = packet.control == wide::Control::Reset;
        if self.is_dead() && !ends {
            self.pending_datagram = PendingDatagram::CloseNotice;
        }
        self.endpoint.handle_packet(now, LinkId::ONLY, packet);
        Ok(())
    }

    /// Handles a message of the handshake. Afterwards poll the events and the output of the initiator.
    pub(crate) fn handle_handshake(&mut self, now: Instant, datagram: &Bytes) -> Result<(), Dropped> {
        let initiator = self.encryption.initiator().ok_or(Dropped::Late)?;
        let before = initiator.refusals().total();
        initiator.handle_datagram(now, datagram);
        if initiator.refusals().total() > before { Err(Dropped::Late) } else { Ok(()) }
    }

    /// Handles the proof, by a stateless reset, that the peer has lost the connection.
    pub(crate) fn handle_reset(&mut self, now: Instant) {
        if let Encryption::Open(open) = &self.encryption
            && matches!(open.confirmation, Confirmation::Awaited { .. })
        {
            return self.fail(now, OpenFailure::NotAccepted);
        }
        // In these states the peer has received everything, and may have deleted the connection after a graceful close.
        if !matches!(self.state(), State::TimeWait | State::Closed) {
            let packet = Packet { control: wide::Control::Reset, ..Packet::default() };
            self.endpoint.handle_packet(now, LinkId::ONLY, packet);
        }
    }

    /// Returns whether `token` is the peer's reset token.
    pub(crate) fn is_reset_by(&self, token: &StatelessResetToken) -> bool {
        let Encryption::Open(open) = &self.encryption else { return false };
        open.reset.as_ref().is_some_and(|reset| hopline_secure::ResetKey::constant_time_eq(reset, token))
    }

    /// Handles the timers that are due at `now`.
    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        self.endpoint.handle_timeout(now);
        if let Some(initiator) = self.encryption.initiator() {
            initiator.handle_timeout(now);
        }
        let Some(open) = self.encryption.open() else { return };
        open.paths.handle_timeout(now);
        if matches!(open.confirmation, Confirmation::Awaited { until, .. } if until <= now) {
            open.confirmation = Confirmation::Confirmed;
            self.fail(now, Failure::Unconfirmed.into());
        }
        self.update_path(now);
    }

    /// Returns the next event of the initiator of the handshake.
    pub(crate) fn poll_initiator(&mut self) -> Option<InitiatorEvent> {
        self.encryption.initiator().and_then(Initiator::poll_event)
    }

    /// Ends the connection because it could not be opened. The peer is notified if this end has keys.
    pub(crate) fn fail(&mut self, now: Instant, failure: OpenFailure) {
        if self.pending_events.failed.is_some() || self.closed.is_some() {
            return;
        }
        self.failures += 1;
        self.endpoint.abort(now);
        self.collect_events();
        self.pending_events = PendingEvents { failed: Some(failure), ..PendingEvents::default() };
        match &mut self.encryption {
            Encryption::Open(open) => open.confirmation = Confirmation::Confirmed,
            Encryption::Handshaking(_) | Encryption::Closed => self.encryption = Encryption::Closed,
        }
    }

    /// Returns whether the connection has a user, or waits in the backlog for one.
    pub(crate) const fn has_user(&self) -> bool {
        !matches!(self.owner, Owner::Released { .. })
    }

    fn reportable_state(&self) -> (State, u64) {
        (self.endpoint.state(), self.endpoint.unacknowledged())
    }

    /// Records a call of the user, so that the state after the call counts as known to the user.
    pub(crate) fn record_use(&mut self) {
        self.reported = None;
    }

    /// Collects the events of the endpoint for the user.
    pub(crate) fn collect_events(&mut self) {
        while let Some(event) = self.endpoint.poll_event() {
            if let Event::Closed(reason) = event {
                self.closed = Some(reason);
            }
            if !self.pending_events.events.contains(&event) {
                self.pending_events.events.push(event);
            }
        }
        if self.closed.is_some() && matches!(self.encryption, Encryption::Handshaking(_)) {
            self.encryption = Encryption::Closed;
        }
        let standing = self.reportable_state();
        let changed = self.reported.replace(standing).is_some_and(|known| known != standing);
        // Any other event makes the user read the whole state, so `changed` is not needed beside it.
        let told =
            self.closed.is_some() || !self.pending_events.events.is_empty() || self.pending_events.accepted;
        self.pending_events.changed |= changed && !told;
    }

    /// Returns whether there is something to report to the user.
    pub(crate) fn has_events(&self) -> bool {
        let news = &self.pending_events;
        let any = news.accepted
            || news.changed
            || news.moved.is_some()
            || !news.events.is_empty()
            || news.failed.is_some();
        any && !matches!(self.owner, Owner::Released { .. })
    }

    /// Returns the next event for the user.
    pub(crate) fn poll_event(&mut self, key: ConnectionKey) -> Option<HostEvent> {
        let news = &mut self.pending_events;
        if matches!(self.owner, Owner::Released { .. }) {
            *news = PendingEvents::default();
        }
        if core::mem::take(&mut news.accepted) {
            return Some(HostEvent::Accepted(key));
        }
        if core::mem::take(&mut news.changed) {
            return Some(HostEvent::Changed(key));
        }
        if let Some(path) = news.moved.take() {
            return Some(HostEvent::Moved(key, path));
        }
        if !news.events.is_empty() {
            return Some(HostEvent::Connection(key, news.events.remove(0)));
        }
        news.failed.take().map(|failure| HostEvent::Failed(key, failure))
    }

    pub(crate) fn deadline(&self) -> Option<Instant> {
        let until = match self.owner {
            Owner::Released { until } => Some(until),
            Owner::Backlog | Owner::User => None,
        };
        let endpoint = self.endpoint.poll_timeout().map(|(at, _)| at);
        [until, endpoint, self.encryption.deadline()].into_iter().flatten().min()
    }

    /// Returns whether neither the user nor the peer needs the connection any more, so that it can be deleted.
    pub(crate) fn is_finished(&self) -> bool {
        matches!(self.owner, Owner::Released { .. })
            && (matches!(self.encryption, Encryption::Closed) || self.has_ended_cleanly())
    }

    /// Returns whether the peer knows that the connection has ended.
    fn has_ended_cleanly(&self) -> bool {
        matches!(self.closed, Some(CloseReason::Finished | CloseReason::Reset | CloseReason::Refused))
    }

    /// Returns whether this end has ended the connection, and the peer may not know it.
    fn is_dead(&self) -> bool {
        self.state() == State::Closed && !self.has_ended_cleanly()
    }

    /// Returns whether the connection has ended for any reason.
    pub(crate) const fn is_closed(&self) -> bool {
        self.closed.is_some()
    }

    /// Returns the path for datagrams to send, given a path of the peer.
    pub(crate) fn outgoing_path(&self, path: Path) -> Path {
        self.source_policy.outgoing(path)
    }

    fn update_path(&mut self, now: Instant) {
        let Encryption::Open(open) = &mut self.encryption else { return };
        while let Some(event) = open.paths.poll_event() {
            if let PathEvent::Moved { from, to, .. } = event {
                self.path = self.source_policy.outgoing(open.path_to(to));
                self.uncounted_moves += 1;
                self.pending_events.moved = Some(self.path);
                // If only the port has changed, an address translator has rebound it, and the path is the same (RFC 9000 §9.4).
                if from.ip() == to.ip() {
                    self.endpoint.handle_signal(now, Signal::RouteFound);
                } else {
                    self.endpoint.handle_path_change(now);
                }
            }
        }
    }
}
