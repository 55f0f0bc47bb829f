//! Responder of the handshake: answers every message at once, sends nothing by itself, and keeps little state
//! for initiators that have not proved anything.

use crate::admission::{AddressProof, Attempts, FailureBudgets, HandshakeRate};
use crate::config::{ConfigError, PARAMETERS_MAX, ResponderConfig};
use crate::cookie::{CookieKey, Digest};
use crate::credentials::Credentials;
use crate::deferred::{DeferredMessage, DeferredMessages};
use crate::entropy::{Entropy, Seed};
use crate::half_open::{CompletingMessage, HalfOpen, Table};
use crate::initiator::{SecondPayload, draw_id, prologue};
use crate::keys::PublicKey;
use crate::noise::{Handshake, ReadFailure, Role, Setup, THIRD_MESSAGE_OVERHEAD};
use crate::reset::Announcement;
use crate::session::{Established, NegotiatedKeys, Session};
use crate::stats::{Refusals, Refused};
use bytes::Bytes;
use core::net::SocketAddr;
use hopline_core::Instant;
use hopline_core::request_admission::{RequestAdmission, RequestId};
use hopline_wire::secure::{
    ConnectionId, Cookie, DatagramKind, HandshakeMessage, Method, RefusalReason, Suite, Versions,
};
use std::collections::VecDeque;
use std::sync::Arc;

/// Responder, which answers the initiators of connections. One input, then all outputs, as [the
/// contract](hopline_core::state_machine) says.
#[derive(Debug)]
pub struct Responder {
    config: ResponderConfig,
    credentials: Arc<Credentials>,
    announcement: Announcement,
    entropy: Entropy,
    cookies: CookieKey,
    table: Table,
    admission: RequestAdmission,
    rate: HandshakeRate,
    /// First messages from proven addresses that the rate defers.
    deferred: DeferredMessages<FirstMessage>,
    failures: FailureBudgets,
    transmits: VecDeque<(SocketAddr, Bytes)>,
    events: VecDeque<ResponderEvent>,
    refusals: Refusals,
}

/// Event of a responder.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "moved once, when a connection is made")]
pub enum ResponderEvent {
    /// A connection. Send a sealed datagram on it soon, even an empty one: only that tells the initiator that it was
    /// accepted.
    Accepted(Accepted),
    /// The initiator of this connection does not know that it was accepted: send it a sealed datagram, be it empty.
    Unconfirmed(ConnectionId),
    /// An initiator has a key that is not trusted.
    UntrustedKey {
        /// Address of the initiator.
        address: SocketAddr,
        /// Public key of the initiator.
        key: PublicKey,
    },
}

/// A connection that an initiator has opened.
#[derive(Debug)]
pub struct Accepted {
    /// Result of the handshake.
    pub established: Established,
    /// Address at which the initiator has proved to receive.
    pub address: SocketAddr,
    /// Source address of the datagram that completed the handshake: nearly always the same address. If it is
    /// another, [`Paths`](crate::Paths) has to be notified.
    pub from: SocketAddr,
    /// The first sealed datagram, if it was that which completed the handshake.
    pub initial: Option<Initial>,
}

/// A sealed datagram that completed a handshake.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Initial {
    /// Its number: not always zero, since earlier ones may be lost.
    pub number: u64,
    /// Decrypted payload.
    pub payload: Bytes,
}

impl From<ReadFailure> for Refused {
    fn from(unread: ReadFailure) -> Self {
        match unread {
            ReadFailure::Unauthentic => Self::Unauthentic,
            ReadFailure::OverBudget => Self::OverBudget,
        }
    }
}

/// A first message as it came.
#[derive(Debug)]
struct FirstMessage {
    suite: Suite,
    versions: Versions,
    initiator: ConnectionId,
    cookie: Option<Cookie>,
    noise: Bytes,
}

impl Responder {
    /// Creates a responder. `parameters`: transport parameters announced to initiators.
    ///
    /// # Errors
    /// A setting out of its range, or more than 256 bytes of parameters.
    pub fn new(
        config: ResponderConfig,
        credentials: Credentials,
        parameters: impl Into<Announcement>,
        seed: &Seed,
    ) -> Result<Self, ConfigError> {
        config.validate()?;
        let announcement = parameters.into();
        announcement.validate()?;
        let mut entropy = Entropy::new(seed);
        let cookies = CookieKey::new(entropy.bytes());
        Ok(Self {
            config,
            credentials: Arc::new(credentials),
            announcement,
            entropy,
            cookies,
            table: Table::new(config.max_half_open.into(), config.handshake_timeout),
            admission: RequestAdmission::new(),
            rate: HandshakeRate::new(config.handshakes_per_second.into()),
            deferred: DeferredMessages::new(),
            failures: FailureBudgets::default(),
            transmits: VecDeque::new(),
            events: VecDeque::new(),
            refusals: Refusals::default(),
        })
    }

    /// Returns the number of handshakes in progress.
    #[must_use]
    pub fn half_open(&self) -> usize {
        self.table.len()
    }

    /// Returns whether a first message from `address` waits for the rate limit. A later call of
    /// [`handle_timeout`](Self::handle_timeout) or of another input answers it.
    #[must_use]
    pub fn defers(&self, address: SocketAddr) -> bool {
        self.deferred.contains(address)
    }

    /// Returns whether a handshake is in progress with an initiator that sends to this id.
    #[must_use]
    pub fn has_handshake(&self, id: ConnectionId) -> bool {
        self.table.contains(id)
    }

    /// Returns the numbers of refused datagrams, by reason.
    #[must_use]
    pub const fn refusals(&self) -> &Refusals {
        &self.refusals
    }

    /// Takes a datagram that belongs to a handshake, or to no connection that is known. What then stands in
    /// `datagram` is undefined. Returns why nothing was made of it, which is also counted.
    pub fn handle_datagram(
        &mut self,
        now: Instant,
        from: SocketAddr,
        datagram: &mut [u8],
    ) -> Option<Refused> {
        self.handle_timeout(now);
        let done = match DatagramKind::of(datagram) {
            None => Err(Refused::Malformed),
            Some(DatagramKind::Sealed(id)) => self.handle_sealed(now, from, id, datagram),
            Some(DatagramKind::Handshake) => match HandshakeMessage::parse(&Bytes::copy_from_slice(datagram))
            {
                Ok(HandshakeMessage::Handshake1 {
                    suite,
                    versions,
                    initiator_id: initiator,
                    cookie,
                    noise,
                }) => {
                    self.handle_first(now, from, FirstMessage { suite, versions, initiator, cookie, noise })
                }
                Ok(HandshakeMessage::Handshake3 { responder_id: responder, noise }) => {
                    self.handle_third(now, from, responder, &noise)
                }
                _ => Err(Refused::Malformed),
            },
        };
        let refused = done.err();
        if let Some(refused) = refused {
            self.refusals.add(refused);
        }
        refused
    }

    /// Takes the passing of time.
    pub fn handle_timeout(&mut self, now: Instant) {
        for _ in 0..self.table.expire(now) {
            self.refusals.add(Refused::Expired);
        }
        self.answer_deferred(now);
        for _ in 0..self.deferred.expire(now) {
            self.refusals.add(Refused::Full);
        }
    }

    /// Returns the next datagram to send, and where to.
    #[must_use]
    pub fn poll_transmit(&mut self) -> Option<(SocketAddr, Bytes)> {
        self.transmits.pop_front()
    }

    /// Returns the next event.
    #[must_use]
    pub fn poll_event(&mut self) -> Option<ResponderEvent> {
        self.events.pop_front()
    }

    /// Returns the time at which to call [`handle_timeout`](Self::handle_timeout).
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        let deferred = (!self.deferred.is_empty()).then(|| self.rate.next_release()).flatten();
        [self.table.next_expiry(), deferred, self.deferred.next_expiry()].into_iter().flatten().min()
    }

    fn handle_first(&mut self, now: Instant, from: SocketAddr, first: FirstMessage) -> Result<(), Refused> {
        let prologue =
            prologue(first.suite, first.versions, first.initiator, self.config.session.rekey_after);
        let digest = self.cookies.message_digest(from, &prologue, &first.noise);
        if self.table.was_started_by(digest) {
            return Err(Refused::Late);
        }
        let known = self.table.by_first_message(digest).map(|known| known.second.clone());
        let proven = match first.cookie {
            Some(cookie) if self.cookies.is_valid(now, digest, &cookie) => self.table.proof_of(from),
            _ => AddressProof::None,
        };
        // A valid cookie exempts only the first answer from admission: the message can be replayed at will.
        let request_id = || RequestId {
            source_hash: digest as u64,
            content_hash: self.cookies.content_digest(&prologue, &first.noise),
        };
        if (known.is_some() || proven == AddressProof::None) && !self.admission.admit(now, request_id) {
            return Err(Refused::Unanswered);
        }
        if let Some(second) = known {
            self.transmits.push_back((from, second));
            return Ok(());
        }
        let refuse = |reason| HandshakeMessage::Refusal {
            initiator: first.initiator,
            reason,
            versions: self.config.versions,
        };
        if first.suite.method != self.credentials.method() {
            self.transmits.push_back((from, refuse(RefusalReason::Method).to_bytes()));
            return Err(Refused::Method);
        }
        let Some(version) = self.config.versions.common(first.versions) else {
            self.transmits.push_back((from, refuse(RefusalReason::Version).to_bytes()));
            return Err(Refused::Version);
        };
        if self.admit(now, from, &first, (digest, proven))? {
            self.answer(now, from, &first, version, (digest, proven))
        } else {
            let evicted_another = self.deferred.add(now, from, digest, first);
            if evicted_another {
                self.refusals.add(Refused::Full);
            }
            Ok(())
        }
    }

    /// Answers deferred first messages as far as the rate allows now.
    fn answer_deferred(&mut self, now: Instant) {
        if self.deferred.is_empty() || self.rate.next_release().is_some_and(|release| release > now) {
            return;
        }
        // For trusted hosts and all others: a release that stays in the past would wake the host again and again.
        self.rate.expire(now);
        loop {
            let Self { deferred: waiting, rate, table, .. } = self;
            let next = waiting.pop(|waits| rate.admits(now, waits.from.ip(), table.proof_of(waits.from)));
            let Some(DeferredMessage { message, from, digest, .. }) = next else { return };
            let Some(version) = self.config.versions.common(message.versions) else { continue };
            self.make_room();
            let proven = self.table.proof_of(from);
            if let Err(refused) = self.answer(now, from, &message, version, (digest, proven)) {
                self.refusals.add(refused);
            }
        }
    }

    /// Returns whether one more handshake may begin now, or has to wait. Under load, a first message without
    /// a cookie costs two hashes and no memory.
    fn admit(
        &mut self,
        now: Instant,
        from: SocketAddr,
        first: &FirstMessage,
        (digest, proven): (Digest, AddressProof),
    ) -> Result<bool, Refused> {
        let many = self.table.len() >= usize::from(self.config.cookie_threshold);
        if !many && !self.rate.is_half_used(now) {
            return Ok(true);
        }
        if proven == AddressProof::None {
            let cookie = self.cookies.cookie(now, digest);
            self.transmits
                .push_back((from, HandshakeMessage::Retry { initiator: first.initiator, cookie }.to_bytes()));
            return Err(Refused::Cookie);
        }
        let admitted = self.rate.admits(now, from.ip(), proven);
        if admitted {
            self.make_room();
        }
        Ok(admitted)
    }

    fn make_room(&mut self) {
        if self.table.make_room() {
            self.refusals.add(Refused::Evicted);
        }
    }

    fn answer(
        &mut self,
        now: Instant,
        from: SocketAddr,
        first: &FirstMessage,
        version: u8,
        (digest, proven): (Digest, AddressProof),
    ) -> Result<(), Refused> {
        let prologue =
            prologue(first.suite, first.versions, first.initiator, self.config.session.rekey_after);
        let setup = Setup {
            role: Role::Responder,
            suite: first.suite,
            credentials: self.credentials.clone(),
            prologue,
            seed: self.entropy.seed(),
        };
        let mut handshake = Handshake::new(setup);
        // With a shared key this proves that the initiator has it, without a Diffie-Hellman exchange.
        let parameters = handshake.read(now, &first.noise, None)?;
        if parameters.len() > PARAMETERS_MAX {
            return Err(Refused::Improper);
        }
        let id = self.unused_id();
        let answer = SecondPayload { version, id, parameters: self.announcement.encode_for(id) };
        let noise = handshake.write(answer.emit()).map_err(|_| Refused::Unauthentic)?;
        let second = HandshakeMessage::Handshake2 { initiator_id: first.initiator, noise }.to_bytes();
        let awaits = match first.suite.method {
            Method::PublicKeys => CompletingMessage::Third {
                handshake,
                version,
                initiator: first.initiator,
                suite: first.suite,
            },
            Method::SharedKey => {
                let agreed = (first.suite, id, first.initiator);
                CompletingMessage::Sealed(self.establish(agreed, version, parameters, &mut handshake))
            }
        };
        self.transmits.push_back((from, second.clone()));
        self.deferred.pop(|waits| waits.digest == digest);
        self.rate.record(now, from.ip(), proven);
        let attempts = Attempts::None;
        self.table.insert(
            id,
            HalfOpen {
                address: from,
                address_proof: proven,
                digest,
                second,
                completes_with: awaits,
                attempts,
                started_at: now,
            },
        );
        Ok(())
    }

    fn handle_third(
        &mut self,
        now: Instant,
        from: SocketAddr,
        id: ConnectionId,
        noise: &Bytes,
    ) -> Result<(), Refused> {
        let Some(half_open) = self.table.get_mut(id) else {
            if self.table.was_accepted_id(id) {
                self.events.push_back(ResponderEvent::Unconfirmed(id));
                return Err(Refused::Late);
            }
            return Err(Refused::Unknown);
        };
        let source = half_open.source(from);
        let CompletingMessage::Third { handshake, .. } = &mut half_open.completes_with else {
            return Err(Refused::Malformed);
        };
        if !(THIRD_MESSAGE_OVERHEAD..=THIRD_MESSAGE_OVERHEAD + PARAMETERS_MAX).contains(&noise.len()) {
            return Err(Refused::Malformed);
        }
        if !self.failures.allow(now, source, half_open.attempts) {
            return Err(Refused::OverBudget);
        }
        let parameters = handshake
            .read(now, noise, Some(&mut self.failures.remakes))
            .inspect_err(|_| half_open.attempts = Attempts::Failed)?;
        let peer = handshake.peer();
        if !self.credentials.trusts(peer) {
            let address = half_open.address;
            self.table.remove(id);
            self.events.extend(peer.map(|key| ResponderEvent::UntrustedKey { address, key }));
            return Err(Refused::Stranger);
        }
        let Some(HalfOpen {
            address,
            completes_with: CompletingMessage::Third { mut handshake, version, initiator, suite },
            ..
        }) = self.table.accept(id)
        else {
            unreachable!("it was there, and awaited a third message");
        };
        let established = self.establish((suite, id, initiator), version, parameters, &mut handshake);
        self.accept(Accepted { established, address, from, initial: None });
        Ok(())
    }

    fn handle_sealed(
        &mut self,
        now: Instant,
        from: SocketAddr,
        id: ConnectionId,
        datagram: &mut [u8],
    ) -> Result<(), Refused> {
        let half_open = self.table.get_mut(id).ok_or(Refused::Unknown)?;
        let source = half_open.source(from);
        let CompletingMessage::Sealed(established) = &mut half_open.completes_with else {
            return Err(Refused::Early);
        };
        if !self.failures.allow(now, source, half_open.attempts) {
            return Err(Refused::OverBudget);
        }
        let Ok(opened) = established.session.unsealer.open(datagram) else {
            half_open.attempts = Attempts::Failed;
            return Err(Refused::Unauthentic);
        };
        let payload = Bytes::copy_from_slice(opened.payload);
        let first = Some(Initial { number: opened.number, payload });
        let Some(HalfOpen { address, completes_with: CompletingMessage::Sealed(established), .. }) =
            self.table.accept(id)
        else {
            unreachable!("it was there, and awaited a sealed datagram");
        };
        self.accept(Accepted { established, address, from, initial: first });
        Ok(())
    }

    fn accept(&mut self, accepted: Accepted) {
        if self.credentials.selects_peers() {
            self.table.remember_host(accepted.address);
        }
        self.events.push_back(ResponderEvent::Accepted(accepted));
    }

    fn establish(
        &self,
        (suite, local, remote): (Suite, ConnectionId, ConnectionId),
        version: u8,
        parameters: Bytes,
        handshake: &mut Handshake,
    ) -> Established {
        let peer = handshake.peer();
        let split = handshake.split();
        let session = Session::new(&NegotiatedKeys {
            cipher: suite.cipher,
            config: self.config.session,
            local,
            remote,
            sending: split.responder,
            receiving: split.initiator,
        });
        Established { session, version, parameters, peer, binding: split.binding, round_trip: None }
    }

    fn unused_id(&mut self) -> ConnectionId {
        loop {
            let id = draw_id(&mut self.entropy);
            if !self.table.contains(id) {
                return id;
            }
        }
    }
}
