//! One connection: the transport's endpoint, and the encryption around it.

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

/// Time for which a peer is notified, in answer to whatever it sends, that this host has ended its
/// connection.
pub(crate) const CLOSE_NOTICE_TIME: Duration = Duration::from_secs(10);

/// A connection of a [`Host`](crate::Host).
#[derive(Debug)]
pub struct Conn {
    pub(crate) endpoint: Endpoint<Bytes>,
    pub(crate) encryption: Encryption,
    /// Our name for it.
    pub(crate) id: ConnectionId,
    /// Address of the peer, and the local address that it knows.
    pub(crate) path: Path,
    pub(crate) owner: Owner,
    pub(crate) pending_datagram: PendingDatagram,
    pending_events: PendingEvents,
    /// State and unacknowledged bytes, as the user knows them. `None`: the user is changing them.
    reported: Option<(State, u64)>,
    closed: Option<CloseReason>,
    /// Local address from which datagrams leave.
    source_policy: SourcePolicy,
    pub(crate) queue_positions: QueuePositions,
    /// Memory of received data, as the host has noted it.
    pub(crate) receive_memory: u64,
    /// Number of moves of the peer that the host has not counted yet.
    pub(crate) uncounted_moves: u64,
    pub(crate) failures: u64,
}

/// Places in the host's queues where the connection is listed.
#[derive(Debug, Default)]
pub(crate) struct QueuePositions {
    pub(crate) ready: Membership,
    pub(crate) noisy: Membership,
    pub(crate) timer: Option<Instant>,
    /// Datagrams that have left in this turn.
    pub(crate) turn_datagrams: u32,
}

/// Owner of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Owner {
    /// It has not been picked yet.
    Backlog,
    /// It has a user.
    User,
    /// Its user has released it; it may end until this time.
    Released { until: Instant },
}

/// Choice of the local address from which datagrams leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SourcePolicy {
    /// Whichever the system chooses: we opened it without saying which, and may have others tomorrow.
    Any,
    /// The one to which the peer sends.
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

/// Datagram to be sealed beside the transport's packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PendingDatagram {
    Nothing,
    /// A datagram of any content: the initiator waits for one.
    Confirmation,
    /// Notice that the connection is over: the peer does not know.
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
    /// Its public key, which it has proved to have; none with a shared key, and before the handshake is over.
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

    /// Takes data to send, all of it or none. They may be handed over while the connection is being opened.
    ///
    /// # Errors
    /// Not open for sending, or no room.
    pub fn send(&mut self, now: Instant, data: Bytes) -> Result<(), SendError> {
        self.endpoint.send(now, data)
    }

    /// Returns the next piece of received data, in order.
    pub fn recv(&mut self) -> Option<Bytes> {
        self.endpoint.recv()
    }

    /// Closes our direction once all data handed over is sent; data of the peer is still received.
    ///
    /// # Errors
    /// Not open, or already closed by the user.
    pub fn close(&mut self, now: Instant) -> Result<(), CloseError> {
        self.endpoint.close(now)
    }

    /// Ends the connection at once; the peer is notified.
    pub fn abort(&mut self, now: Instant) {
        self.endpoint.abort(now);
    }

    /// Returns the state of the transport. `SynSent` while the handshake lasts.
    #[must_use]
    pub fn state(&self) -> State {
        self.endpoint.state()
    }

    /// Counters of the transport.
    #[must_use]
    pub fn stats(&self) -> Stats {
        self.endpoint.stats()
    }

    /// Returns the number of bytes that [`send`](Self::send) would take now.
    #[must_use]
    pub fn send_capacity(&self) -> u64 {
        self.endpoint.send_capacity()
    }

    /// Returns the number of bytes taken from the user and not yet acknowledged.
    #[must_use]
    pub fn unacknowledged(&self) -> u64 {
        self.endpoint.unacknowledged()
    }

    /// Returns the bytes received and kept, read or not in order.
    #[must_use]
    pub fn received_unread(&self) -> u64 {
        self.endpoint.received_unread()
    }

    /// Returns the transport itself, for its further state: round trips, rate, bytes in flight.
    #[must_use]
    pub const fn endpoint(&self) -> &Endpoint<Bytes> {
        &self.endpoint
    }

    /// Returns the path of the datagrams.
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

    /// Returns the numbers of sealed datagrams that were not opened, by reason.
    #[must_use]
    pub fn rejections(&self) -> Rejections {
        match &self.encryption {
            Encryption::Open(open) => *open.session.unsealer.rejections(),
            Encryption::Handshaking(_) | Encryption::Closed => Rejections::default(),
        }
    }

    // ---- for the host ----

    /// Takes a sealed datagram.
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

    /// Takes what was sealed.
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

    /// Takes a message of the handshake; then the initiator may have something to say.
    pub(crate) fn handle_handshake(&mut self, now: Instant, datagram: &Bytes) -> Result<(), Dropped> {
        let initiator = self.encryption.initiator().ok_or(Dropped::Late)?;
        let before = initiator.refusals().total();
        initiator.handle_datagram(now, datagram);
        if initiator.refusals().total() > before { Err(Dropped::Late) } else { Ok(()) }
    }

    /// Records that the peer has shown that it does not know the connection any more.
    pub(crate) fn handle_reset(&mut self, now: Instant) {
        if let Encryption::Open(open) = &self.encryption
            && matches!(open.confirmation, Confirmation::Awaited { .. })
        {
            return self.fail(now, OpenFailure::NotAccepted);
        }
        // A peer that has received everything may forget the connection.
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

    /// Takes the passing of time.
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

    /// Gives up the connection. The peer is notified, if that is possible.
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

    /// Returns whether it has a user, or may get one.
    pub(crate) const fn has_user(&self) -> bool {
        !matches!(self.owner, Owner::Released { .. })
    }

    fn reportable_state(&self) -> (State, u64) {
        (self.endpoint.state(), self.endpoint.unacknowledged())
    }

    /// Records that the user is changing it, so that its state counts as known to the user.
    pub(crate) fn record_use(&mut self) {
        self.reported = None;
    }

    /// Notes what the endpoint has to tell.
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
        // A user that is notified of anything reads everything.
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

    /// Returns the next thing that the user has to know.
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

    /// Returns whether nothing more can come of it, for the user or the peer.
    pub(crate) fn is_finished(&self) -> bool {
        matches!(self.owner, Owner::Released { .. })
            && (matches!(self.encryption, Encryption::Closed) || self.has_ended_cleanly())
    }

    /// Returns whether the peer knows that it is over.
    fn has_ended_cleanly(&self) -> bool {
        matches!(self.closed, Some(CloseReason::Finished | CloseReason::Reset | CloseReason::Refused))
    }

    /// Returns whether this end has ended it, and the peer may not know.
    fn is_dead(&self) -> bool {
        self.state() == State::Closed && !self.has_ended_cleanly()
    }

    /// Returns whether it is over, one way or another.
    pub(crate) const fn is_closed(&self) -> bool {
        self.closed.is_some()
    }

    /// Returns the path back, for what leaves.
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
                // Another port is another mood of an address translator, on the same path (RFC 9000 §9.4).
                if from.ip() == to.ip() {
                    self.endpoint.handle_signal(now, Signal::RouteFound);
                } else {
                    self.endpoint.handle_path_change(now);
                }
            }
        }
    }
}
