//! Input of a datagram: the choice of its connection, and its handling.

use crate::conn::{Conn, Owed, Owner};
use crate::event::{ConnectionKey, HostEvent, OpenFailure, Path};
use crate::host::{Host, Listener};
use crate::link::{Link, Open, Proof, Rekeying};
use crate::stats::Dropped;
use bytes::Bytes;
use hopline_core::Instant;
use hopline_secure::{Accepted, AnswererEvent, Established, OpenerEvent, Order, Paths, PublicKey};
use hopline_transport::wide::Endpoint;
use hopline_wire::ipv4::Ecn;
use hopline_wire::secure::{Addressee, ConnectionId, GONE_LEN, Kind, Message};
use hopline_wire::wide::Parameters;

/// Largest number of peers notified in a second that their connection is not known here. Each costs a hash.
const GONE_A_SECOND: u32 = 1000;

/// Largest number of calls of strangers that have not been reported yet.
const STRANGERS: usize = 16;

impl Host {
    /// Takes a datagram that came on `path`, marked as `ecn` says. What then stands in `datagram` is undefined.
    pub fn handle_datagram(&mut self, now: Instant, path: Path, ecn: Ecn, datagram: &mut [u8]) {
        self.now = now;
        self.stats.datagrams_received += 1;
        self.stats.bytes_received += datagram.len() as u64;
        let done = match Kind::of(datagram) {
            None => Err(Dropped::Malformed),
            Some(Kind::Sealed(id)) => self.on_sealed(now, path, ecn, id, datagram),
            Some(Kind::Handshake) => match Addressee::of(datagram) {
                None => Err(Dropped::Malformed),
                Some(Addressee::Answerer) => self.on_call(now, path, ecn, datagram),
                Some(Addressee::Opener(id)) => self.on_answer(now, id, datagram),
                Some(Addressee::Sender(id)) => self.on_gone(now, id, datagram),
            },
        };
        if let Err(dropped) = done {
            self.stats.drops.add(dropped);
        }
    }

    fn on_sealed(
        &mut self,
        now: Instant,
        path: Path,
        ecn: Ecn,
        id: ConnectionId,
        datagram: &mut [u8],
    ) -> Result<(), Dropped> {
        if let Some(&key) = self.ids.get(&id) {
            let allowance = self.memory.allowance(self.conns.len());
            let conn = self.conns.get_mut(&key).expect("ids are of connections that are there");
            conn.endpoint.allow(allowance);
            let done = conn.on_sealed(now, path, ecn, datagram);
            // What was not opened changes nothing.
            if !matches!(done, Err(Dropped::Unopened | Dropped::Early)) {
                self.settle(key);
            }
            return done;
        }
        if self.listener.as_ref().is_some_and(|listener| listener.answerer.awaits(id)) {
            return self.on_call(now, path, ecn, datagram);
        }
        self.say_gone(now, path, id, datagram.len());
        Err(Dropped::Unknown)
    }

    /// Tells a peer that its connection is not known any more, in no more bytes than it has sent.
    fn say_gone(&mut self, now: Instant, path: Path, id: ConnectionId, len: usize) {
        let Some(key) = self.config.resets.as_ref().filter(|_| len >= GONE_LEN) else { return };
        let second = now.as_nanos() / 1_000_000_000;
        if self.told_gone.0 != second {
            self.told_gone = (second, 0);
        }
        if self.told_gone.1 < GONE_A_SECOND {
            self.told_gone.1 += 1;
            self.stats.gone += 1;
            let message = Message::Gone { id, token: key.token(id) }.to_bytes();
            self.push_loose(path, message);
        }
    }

    fn on_gone(&mut self, now: Instant, id: ConnectionId, datagram: &[u8]) -> Result<(), Dropped> {
        let message = Message::parse(&Bytes::copy_from_slice(datagram)).map_err(|_| Dropped::Malformed)?;
        let Message::Gone { token, .. } = message else { return Err(Dropped::Malformed) };
        let mut dropped = Dropped::Late;
        let is_meant = |key: &ConnectionKey| self.conns.get(key).is_some_and(|conn| conn.is_reset_by(&token));
        let named = self.remotes_of(id).inspect(|_| dropped = Dropped::Unproven).find(is_meant);
        let key = named.ok_or(dropped)?;
        self.conns.get_mut(&key).expect("it was just seen").on_gone(now);
        self.settle(key);
        Ok(())
    }

    // ---- connections that we open ----

    fn on_answer(&mut self, now: Instant, id: ConnectionId, datagram: &[u8]) -> Result<(), Dropped> {
        let key = *self.ids.get(&id).ok_or(Dropped::Late)?;
        let conn = self.conns.get_mut(&key).expect("ids are of connections that are there");
        let done = conn.on_message(now, &Bytes::copy_from_slice(datagram));
        self.hear_opener(now, key);
        self.settle(key);
        done
    }

    /// Does what the initiator of a connection says.
    pub(crate) fn hear_opener(&mut self, now: Instant, key: ConnectionKey) {
        while let Some(event) = self.conns.get_mut(&key).and_then(Conn::poll_opener) {
            match event {
                OpenerEvent::Completed(established) => self.complete(now, key, established),
                OpenerEvent::Failed(failure) => self.fail(now, key, failure.into()),
            }
        }
    }

    fn fail(&mut self, now: Instant, key: ConnectionKey, failure: OpenFailure) {
        if let Some(conn) = self.conns.get_mut(&key) {
            conn.fail(now, failure);
        }
    }

    fn complete(&mut self, now: Instant, key: ConnectionKey, established: Established) {
        let Ok(parameters) = Parameters::parse(&established.parameters) else {
            return self.fail(now, key, OpenFailure::Transport);
        };
        let seed = self.next_seed();
        let until = now + self.config.proof;
        let conn = self.conns.get_mut(&key).expect("whoever asks has it");
        let round_trip = established.round_trip;
        if conn.endpoint.handshake_done(now, parameters.opening, round_trip).is_err() {
            // Its user has ended it before it began.
            conn.link = Link::Over;
            return;
        }
        let Link::Opening(opener) = core::mem::replace(&mut conn.link, Link::Over) else {
            unreachable!("a handshake is completed once, by its opener");
        };
        self.remotes.insert((established.session.sealer.remote_id(), key));
        self.stats.opened += 1;
        let proof = Proof::Awaited { opener, until };
        conn.link = Link::Open(Box::new(Open {
            paths: Paths::new(self.config.paths, conn.path.peer, &seed)
                .expect("checked with the configuration"),
            locals: vec![(conn.path.peer, conn.path.local)],
            session: established.session,
            peer: established.peer,
            reset: parameters.reset,
            rekeying: Rekeying::new(now, self.config.session.rekey_after_time),
            proof,
        }));
    }

    // ---- connections that others open ----

    /// Handles a datagram for the responder.
    fn on_call(&mut self, now: Instant, path: Path, ecn: Ecn, datagram: &mut [u8]) -> Result<(), Dropped> {
        let room = self.has_room();
        let Some(listener) = &mut self.listener else { return Err(Dropped::NotListening) };
        if self.stats.waiting >= listener.backlog {
            return Err(Dropped::Backlog);
        }
        if !room {
            return Err(Dropped::Connections);
        }
        let len = datagram.len();
        let refused = listener.answerer.handle(now, path.peer, datagram);
        listener.note_deferred(path);
        self.send_answers(Some(path));
        let mut done = refused.map_or(Ok(()), |_| Err(Dropped::Refused));
        while let Some(event) = self.listener.as_mut().and_then(|one| one.answerer.poll_event()) {
            match event {
                AnswererEvent::Accepted(accepted) => done = self.accept(now, path, ecn, accepted, len),
                AnswererEvent::Unproven(id) => self.prove(id),
                AnswererEvent::Stranger { address, key } => self.note_stranger(address, key),
            }
        }
        done
    }

    /// Sends what the responder says: to the sender of the message at hand on the path by which it came, to
    /// others on theirs.
    pub(crate) fn send_answers(&mut self, at_hand: Option<Path>) {
        while let Some((peer, message)) = self.listener.as_mut().and_then(|one| one.answerer.poll_transmit())
        {
            let of_deferred = self.listener.as_mut().and_then(|one| one.deferred.remove(&peer));
            let path = at_hand.filter(|path| path.peer == peer).unwrap_or(Path { peer, local: of_deferred });
            self.push_loose(path, message);
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
        let Accepted { established, address, from, first } = accepted;
        let parameters = Parameters::parse(&established.parameters).map_err(|_| Dropped::Senseless)?;
        let id = established.session.unsealer.local_id();
        let transport = self.listener.as_ref().expect("somebody has accepted").transport;
        let mut endpoint = Endpoint::new(transport).expect("checked when listening began");
        endpoint
            .handshake_done(now, parameters.opening, established.round_trip)
            .expect("an endpoint that is new can be opened");
        let seed = self.next_seed();
        let mut open = Open {
            paths: Paths::new(self.config.paths, address, &seed).expect("checked with the configuration"),
            locals: vec![(address, path.local)],
            session: established.session,
            peer: established.peer,
            reset: parameters.reset,
            rekeying: Rekeying::new(now, self.config.session.rekey_after_time),
            proof: Proof::Given,
        };
        let came = Path { peer: from, local: path.local };
        if first.is_none() {
            open.heard(now, came, len, Order::Newest);
        }
        let at = Path { peer: address, local: path.local };
        let mut conn = Conn::new(endpoint, Link::Open(Box::new(open)), id, at, Owner::Backlog);
        conn.owed = Owed::Proof;
        let done = first.map_or(Ok(()), |first| {
            conn.on_opened(now, came, (first.number, Order::Newest, first.payload), ecn, len)
        });
        self.stats.accepted += 1;
        self.add(conn);
        done
    }

    /// Records that the initiator of this connection does not know that it was accepted.
    fn prove(&mut self, id: ConnectionId) {
        let Some(&key) = self.ids.get(&id) else { return };
        let conn = self.conns.get_mut(&key).expect("ids are of connections that are there");
        if conn.owed == Owed::Nothing {
            conn.owed = Owed::Proof;
        }
        self.settle(key);
    }

    fn note_stranger(&mut self, address: core::net::SocketAddr, key: PublicKey) {
        if self.strangers.len() == STRANGERS {
            self.strangers.pop_front();
        }
        self.strangers.push_back(HostEvent::Stranger(address, key));
    }
}

impl Listener {
    /// Notes the address at which a message came, if its answer is deferred.
    fn note_deferred(&mut self, Path { peer, local }: Path) {
        if let Some(local) = local
            && self.answerer.defers(peer)
        {
            self.deferred.retain(|peer, _| self.answerer.defers(*peer));
            self.deferred.insert(peer, local);
        }
    }
}
