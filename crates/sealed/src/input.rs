//! Input of datagrams: the choice of the connection, and the handling.

use crate::conn::{Conn, Owner, PendingDatagram};
use crate::encryption::{Confirmation, Encryption, KeyUpdate, Open};
use crate::event::{ConnectionKey, HostEvent, OpenFailure, Path};
use crate::host::{Host, Listener};
use crate::stats::Dropped;
use bytes::Bytes;
use hopline_core::Instant;
use hopline_secure::{Accepted, Established, InitiatorEvent, Order, Paths, PublicKey, ResponderEvent};
use hopline_transport::wide::Endpoint;
use hopline_wire::ipv4::Ecn;
use hopline_wire::secure::{ConnectionId, DatagramKind, HandshakeMessage, Recipient, STATELESS_RESET_LEN};
use hopline_wire::wide::HandshakeParameters;

/// Maximum number of stateless resets in a second. Each costs the computation of a hash.
const RESETS_PER_SECOND: u32 = 1000;

/// Maximum number of queued events about initiators with keys that are not trusted.
const MAX_UNTRUSTED_EVENTS: usize = 16;

impl Host {
    /// Handles a datagram that arrived on `path` with the ECN codepoint `ecn`. Afterwards the content of `datagram` is undefined.
    pub fn handle_datagram(&mut self, now: Instant, path: Path, ecn: Ecn, datagram: &mut [u8]) {
        self.now = now;
        self.stats.datagrams_received += 1;
        self.stats.bytes_received += datagram.len() as u64;
        let done = match DatagramKind::of(datagram) {
            None => Err(Dropped::Malformed),
            Some(DatagramKind::Sealed(id)) => self.handle_sealed(now, path, ecn, id, datagram),
            Some(DatagramKind::Handshake) => match Recipient::of(datagram) {
                None => Err(Dropped::Malformed),
                Some(Recipient::Responder) => self.handle_initiation(now, path, ecn, datagram),
                Some(Recipient::Initiator(id)) => self.handle_response(now, id, datagram),
                Some(Recipient::Connection(id)) => self.handle_reset(now, id, datagram),
            },
        };
        if let Err(dropped) = done {
            self.stats.drops.add(dropped);
        }
    }

    fn handle_sealed(
        &mut self,
        now: Instant,
        path: Path,
        ecn: Ecn,
        id: ConnectionId,
        datagram: &mut [u8],
    ) -> Result<(), Dropped> {
        if let Some(&key) = self.ids.get(&id) {
            let allowance = self.memory.share(self.conns.len());
            let conn = self.conns.get_mut(&key).expect("ids are of existing connections");
            conn.endpoint.set_receive_memory_limit(allowance);
            let done = conn.handle_sealed(now, path, ecn, datagram);
            // A datagram that could not be decrypted changes no state.
            if !matches!(done, Err(Dropped::Unopened | Dropped::Early)) {
                self.update_queues(key);
            }
            return done;
        }
        if self.listener.as_ref().is_some_and(|listener| listener.responder.has_handshake(id)) {
            return self.handle_initiation(now, path, ecn, datagram);
        }
        self.send_stateless_reset(now, path, id, datagram.len());
        Err(Dropped::Unknown)
    }

    /// Sends a stateless reset for a connection that is unknown here. It is not longer than the datagram that it answers.
    fn send_stateless_reset(&mut self, now: Instant, path: Path, id: ConnectionId, len: usize) {
        let Some(key) = self.config.reset_key.as_ref().filter(|_| len >= STATELESS_RESET_LEN) else { return };
        let second = now.as_nanos() / 1_000_000_000;
        if self.resets_sent.0 != second {
            self.resets_sent = (second, 0);
        }
        if self.resets_sent.1 < RESETS_PER_SECOND {
            self.resets_sent.1 += 1;
            self.stats.resets_sent += 1;
            let message = HandshakeMessage::StatelessReset { id, token: key.token(id) }.to_bytes();
            self.push_unattributed(path, message);
        }
    }

    fn handle_reset(&mut self, now: Instant, id: ConnectionId, datagram: &[u8]) -> Result<(), Dropped> {
        let message =
            HandshakeMessage::parse(&Bytes::copy_from_slice(datagram)).map_err(|_| Dropped::Malformed)?;
        let HandshakeMessage::StatelessReset { token, .. } = message else { return Err(Dropped::Malformed) };
        let mut dropped = Dropped::Late;
        let is_meant = |key: &ConnectionKey| self.conns.get(key).is_some_and(|conn| conn.is_reset_by(&token));
        let named = self.remotes_of(id).inspect(|_| dropped = Dropped::Unproven).find(is_meant);
        let key = named.ok_or(dropped)?;
        self.conns.get_mut(&key).expect("it was just seen").handle_reset(now);
        self.update_queues(key);
        Ok(())
    }

    // ---- connections that this host opens ----

    fn handle_response(&mut self, now: Instant, id: ConnectionId, datagram: &[u8]) -> Result<(), Dropped> {
        let key = *self.ids.get(&id).ok_or(Dropped::Late)?;
        let conn = self.conns.get_mut(&key).expect("ids are of existing connections");
        let done = conn.handle_handshake(now, &Bytes::copy_from_slice(datagram));
        self.handle_initiator_events(now, key);
        self.update_queues(key);
        done
    }

    /// Handles the events of the initiator of a connection.
    pub(crate) fn handle_initiator_events(&mut self, now: Instant, key: ConnectionKey) {
        while let Some(event) = self.conns.get_mut(&key).and_then(Conn::poll_initiator) {
            match event {
                InitiatorEvent::Completed(established) => self.complete(now, key, established),
                InitiatorEvent::Failed(failure) => self.fail(now, key, failure.into()),
            }
        }
    }

    fn fail(&mut self, now: Instant, key: ConnectionKey, failure: OpenFailure) {
        if let Some(conn) = self.conns.get_mut(&key) {
            conn.fail(now, failure);
        }
    }

    fn complete(&mut self, now: Instant, key: ConnectionKey, established: Established) {
        let Ok(parameters) = HandshakeParameters::parse(&established.parameters) else {
            return self.fail(now, key, OpenFailure::Transport);
        };
        let seed = self.next_seed();
        let until = now + self.config.confirmation_timeout;
        let conn = self.conns.get_mut(&key).expect("the caller has found it");
        let round_trip = established.round_trip;
        if conn.endpoint.on_lower_handshake_done(now, parameters.opening, round_trip).is_err() {
            // The user has aborted the connection during the handshake.
            conn.encryption = Encryption::Closed;
            return;
        }
        let Encryption::Handshaking(initiator) = core::mem::replace(&mut conn.encryption, Encryption::Closed)
        else {
            unreachable!("a handshake is completed once, by its initiator");
        };
        self.remotes.insert((established.session.sealer.remote_id(), key));
        self.stats.opened += 1;
        let proof = Confirmation::Awaited { initiator, until };
        conn.encryption = Encryption::Open(Box::new(Open {
            paths: Paths::new(self.config.paths, conn.path.peer, &seed)
                .expect("checked with the configuration"),
            locals: vec![(conn.path.peer, conn.path.local)],
            session: established.session,
            peer: established.peer,
            reset: parameters.reset,
            key_update: KeyUpdate::new(now, self.config.session.rekey_after_time()),
            confirmation: proof,
        }));
    }

    // ---- connections that peers open ----

    /// Handles a datagram for the responder.
    fn handle_initiation(
        &mut self,
        now: Instant,
        path: Path,
        ecn: Ecn,
        datagram: &mut [u8],
    ) -> Result<(), Dropped> {
        let room = self.has_room();
        let Some(listener) = &mut self.listener else { return Err(Dropped::NotListening) };
        if self.stats.backlog >= listener.backlog {
            return Err(Dropped::Backlog);
        }
        if !room {
            return Err(Dropped::Connections);
        }
        let len = datagram.len();
        let refused = listener.responder.handle_datagram(now, path.peer, datagram);
        listener.record_deferred(path);
        self.send_answers(Some(path));
        let mut done = refused.map_or(Ok(()), |_| Err(Dropped::Refused));
        while let Some(event) = self.listener.as_mut().and_then(|one| one.responder.poll_event()) {
            match event {
                ResponderEvent::Accepted(accepted) => done = self.accept(now, path, ecn, accepted, len),
                ResponderEvent::Unconfirmed(id) => self.confirm(id),
                ResponderEvent::UntrustedKey { address, key } => self.report_untrusted(address, key),
            }
        }
        done
    }

    /// Queues the messages of the responder. `at_hand` is the path of the datagram that is being handled, and its sender is
    /// answered on it. Senders of deferred messages are answered on the paths of those messages.
    pub(crate) fn send_answers(&mut self, at_hand: Option<Path>) {
        while let Some((peer, message)) = self.listener.as_mut().and_then(|one| one.responder.poll_transmit())
        {
            let of_deferred = self.listener.as_mut().and_then(|one| one.deferred.remove(&peer));
            let path = at_hand.filter(|path| path.peer == peer).unwrap_or(Path { peer, local: of_deferred });
            self.push_unattributed(path, message);
        }
    }

    fn accept(
        &mut self,
        now: Instant,
        path: Path,
        ecn: Ecn,
        accepted: Accepted,
        len: usize,
    ) -> Result<(), Dropped> {
        let Accepted { established, address, from, initial: first } = accepted;
        let parameters =
            HandshakeParameters::parse(&established.parameters).map_err(|_| Dropped::Senseless)?;
        let id = established.session.unsealer.local_id();
        let transport = self.listener.as_ref().expect("the responder of the listener has accepted").transport;
        let mut endpoint = Endpoint::new(transport).expect("checked when listening began");
        endpoint
            .on_lower_handshake_done(now, parameters.opening, established.round_trip)
            .expect("an endpoint that is new can be opened");
        let seed = self.next_seed();
        let mut open = Open {
            paths: Paths::new(self.config.paths, address, &seed).expect("checked with the configuration"),
            locals: vec![(address, path.local)],
            session: established.session,
            peer: established.peer,
            reset: parameters.reset,
            key_update: KeyUpdate::new(now, self.config.session.rekey_after_time()),
            confirmation: Confirmation::Confirmed,
        };
        let came = Path { peer: from, local: path.local };
        if first.is_none() {
            open.record_received(now, came, len, Order::Newest);
        }
        let at = Path { peer: address, local: path.local };
        let mut conn = Conn::new(endpoint, Encryption::Open(Box::new(open)), id, at, Owner::Backlog);
        conn.pending_datagram = PendingDatagram::Confirmation;
        let done = first.map_or(Ok(()), |first| {
            conn.handle_opened(now, came, (first.number, Order::Newest, first.payload), ecn, len)
        });
        self.stats.accepted += 1;
        self.add(conn);
        done
    }

    /// Sends a confirmation to the initiator of this connection, which does not know yet that it was accepted.
    fn confirm(&mut self, id: ConnectionId) {
        let Some(&key) = self.ids.get(&id) else { return };
        let conn = self.conns.get_mut(&key).expect("ids are of existing connections");
        if conn.pending_datagram == PendingDatagram::Nothing {
            conn.pending_datagram = PendingDatagram::Confirmation;
        }
        self.update_queues(key);
    }

    fn report_untrusted(&mut self, address: core::net::SocketAddr, key: PublicKey) {
        if self.untrusted_keys.len() == MAX_UNTRUSTED_EVENTS {
            self.untrusted_keys.pop_front();
        }
        self.untrusted_keys.push_back(HostEvent::UntrustedKey(address, key));
    }
}

impl Listener {
    /// Records the local address at which a message arrived, if its answer is deferred.
    fn record_deferred(&mut self, Path { peer, local }: Path) {
        if let Some(local) = local
            && self.responder.defers(peer)
        {
            self.deferred.retain(|peer, _| self.responder.defers(*peer));
            self.deferred.insert(peer, local);
        }
    }
}
