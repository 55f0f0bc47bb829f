//! Responder of the handshake: answers every message at once, sends nothing by itself, and keeps little state
//! for initiators that have not proved anything.

use crate::admission::{Attempts, Failures, Proven, Rate};
use crate::config::{AnswererConfig, ConfigError, PARAMETERS_MAX};
use crate::cookie::{Baker, Digest};
use crate::credentials::Credentials;
use crate::entropy::{Entropy, Seed};
use crate::half_open::{Awaits, HalfOpen, Table};
use crate::keys::PublicKey;
use crate::noise::{BESIDE_THIRD, Handshake, Role, Setup, Unread};
use crate::opener::{Answer, draw_id, prologue};
use crate::reset::Announcement;
use crate::session::{Agreed, Established, Session};
use crate::stats::{Refusals, Refused};
use crate::waiting::{Deferred, Waiting};
use bytes::Bytes;
use core::net::SocketAddr;
use hopline_core::Instant;
use hopline_core::flood::{Call, Calls};
use hopline_wire::secure::{ConnectionId, Cookie, Kind, Message, Method, Reason, Suite, Versions};
use std::collections::VecDeque;
use std::sync::Arc;

/// Responder, which answers the initiators of connections. One input, then all outputs, as [the
/// contract](hopline_core::machine) says.
#[derive(Debug)]
pub struct Answerer {
    config: AnswererConfig,
    credentials: Arc<Credentials>,
    announcement: Announcement,
    entropy: Entropy,
    baker: Baker,
    table: Table,
    calls: Calls,
    rate: Rate,
    /// First messages from proven addresses that the rate defers.
    waiting: Waiting<First>,
    failures: Failures,
    transmits: VecDeque<(SocketAddr, Bytes)>,
    events: VecDeque<AnswererEvent>,
    refusals: Refusals,
}

/// Event of a responder.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "moved once, when a connection is made")]
pub enum AnswererEvent {
    /// A connection. It should soon send a sealed datagram, be it empty: that is how the initiator knows.
    Accepted(Accepted),
    /// The initiator of this connection does not know that it was accepted: send it a sealed datagram, be it empty.
    Unproven(ConnectionId),
    /// An initiator has a key that is not trusted.
    Stranger {
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
    /// Address of the initiator, which has received there.
    pub address: SocketAddr,
    /// Source address of the datagram that completed the handshake: nearly always the same address. If it is
    /// another, [`Paths`](crate::Paths) has to be notified.
    pub from: SocketAddr,
    /// The first sealed datagram, if it was that which completed the handshake.
    pub first: Option<Initial>,
}

/// A sealed datagram that completed a handshake.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Initial {
    /// Its number: not always zero, since earlier ones may be lost.
    pub number: u64,
    /// Decrypted payload.
    pub payload: Bytes,
}

impl From<Unread> for Refused {
    fn from(unread: Unread) -> Self {
        match unread {
            Unread::Unauthentic => Self::Unauthentic,
            Unread::OverBudget => Self::OverBudget,
        }
    }
}

/// A first message as it came.
#[derive(Debug)]
struct First {
    suite: Suite,
    versions: Versions,
    opener: ConnectionId,
    cookie: Option<Cookie>,
    noise: Bytes,
}

impl Answerer {
    /// Creates a responder. `parameters` is what the initiators' transports are to know.
    ///
    /// # Errors
    /// A setting out of its range, or more than 256 bytes of parameters.
    pub fn new(
        config: AnswererConfig,
        credentials: Credentials,
        parameters: impl Into<Announcement>,
        seed: &Seed,
    ) -> Result<Self, ConfigError> {
        config.validate()?;
        let announcement = parameters.into();
        announcement.validate()?;
        let mut entropy = Entropy::new(seed);
        let baker = Baker::new(entropy.bytes());
        Ok(Self {
            config,
            credentials: Arc::new(credentials),
            announcement,
            entropy,
            baker,
            table: Table::new(config.half_open.into(), config.patience),
            calls: Calls::new(),
            rate: Rate::new(config.a_second.into()),
            waiting: Waiting::new(),
            failures: Failures::default(),
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

    /// Returns whether a first message from `address` waits for the rate limit. Its answer comes after a
    /// time-out, or with any other input.
    #[must_use]
    pub fn defers(&self, address: SocketAddr) -> bool {
        self.waiting.contains(address)
    }

    /// Returns whether a handshake is in progress with an initiator that sends to this id.
    #[must_use]
    pub fn awaits(&self, id: ConnectionId) -> bool {
        self.table.contains(id)
    }

    /// Returns the numbers of refused datagrams, by reason.
    #[must_use]
    pub const fn refusals(&self) -> &Refusals {
        &self.refusals
    }

    /// Takes a datagram that belongs to a handshake, or to no connection that is known. What then stands in
    /// `datagram` is undefined. Returns why nothing was made of it, which is also counted.
    pub fn handle(&mut self, now: Instant, from: SocketAddr, datagram: &mut [u8]) -> Option<Refused> {
        self.handle_timeout(now);
        let done = match Kind::of(datagram) {
            None => Err(Refused::Malformed),
            Some(Kind::Sealed(id)) => self.on_sealed(now, from, id, datagram),
            Some(Kind::Handshake) => match Message::parse(&Bytes::copy_from_slice(datagram)) {
                Ok(Message::First { suite, versions, opener, cookie, noise }) => {
                    self.on_first(now, from, First { suite, versions, opener, cookie, noise })
                }
                Ok(Message::Third { answerer, noise }) => self.on_third(now, from, answerer, &noise),
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
        for _ in 0..self.waiting.expire(now) {
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
    pub fn poll_event(&mut self) -> Option<AnswererEvent> {
        self.events.pop_front()
    }

    /// Returns the time at which to call [`handle_timeout`](Self::handle_timeout).
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        let deferred = (!self.waiting.is_empty()).then(|| self.rate.next_release()).flatten();
        [self.table.next_expiry(), deferred, self.waiting.next_expiry()].into_iter().flatten().min()
    }

    fn on_first(&mut self, now: Instant, from: SocketAddr, first: First) -> Result<(), Refused> {
        let bound = prologue(first.suite, first.versions, first.opener, self.config.session.rekey_after);
        let digest = self.baker.digest(from, &bound, &first.noise);
        if self.table.was_begun_by(digest) {
            return Err(Refused::Late);
        }
        let known = self.table.of_digest(digest).map(|known| known.second.clone());
        let proven = match first.cookie {
            Some(cookie) if self.baker.gave(now, digest, &cookie) => self.table.proven(from),
            _ => Proven::No,
        };
        // A cookie is good for one answer: it may be repeated as often as one likes.
        let call = || Call { whose: digest as u64, said: self.baker.said(&bound, &first.noise) };
        if (known.is_some() || proven == Proven::No) && !self.calls.answers(now, call) {
            return Err(Refused::Unanswered);
        }
        if let Some(second) = known {
            self.transmits.push_back((from, second));
            return Ok(());
        }
        let refuse =
            |reason| Message::Refusal { opener: first.opener, reason, versions: self.config.versions };
        if first.suite.method != self.credentials.method() {
            self.transmits.push_back((from, refuse(Reason::Method).to_bytes()));
            return Err(Refused::Method);
        }
        let Some(version) = self.config.versions.common(first.versions) else {
            self.transmits.push_back((from, refuse(Reason::Version).to_bytes()));
            return Err(Refused::Version);
        };
        if self.admit(now, from, &first, (digest, proven))? {
            self.answer(now, from, &first, version, (digest, proven))
        } else {
            if self.waiting.add(now, from, digest, first) {
                self.refusals.add(Refused::Full);
            }
            Ok(())
        }
    }

    /// Answers deferred first messages as far as the rate allows now.
    fn answer_deferred(&mut self, now: Instant) {
        if self.waiting.is_empty() || self.rate.next_release().is_some_and(|release| release > now) {
            return;
        }
        // Both kinds: a release that stays in the past would wake the host again and again.
        self.rate.expire(now);
        loop {
            let Self { waiting, rate, table, .. } = self;
            let next = waiting.take(|waits| rate.admits(now, waits.from.ip(), table.proven(waits.from)));
            let Some(Deferred { message, from, digest, .. }) = next else { return };
            let Some(version) = self.config.versions.common(message.versions) else { continue };
            self.make_room();
            let proven = self.table.proven(from);
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
        first: &First,
        (digest, proven): (Digest, Proven),
    ) -> Result<bool, Refused> {
        let many = self.table.len() >= usize::from(self.config.cookies_from);
        if !many && !self.rate.is_half_used(now) {
            return Ok(true);
        }
        if proven == Proven::No {
            let cookie = self.baker.cookie(now, digest);
            self.transmits.push_back((from, Message::Retry { opener: first.opener, cookie }.to_bytes()));
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
        first: &First,
        version: u8,
        (digest, proven): (Digest, Proven),
    ) -> Result<(), Refused> {
        let prologue = prologue(first.suite, first.versions, first.opener, self.config.session.rekey_after);
        let setup = Setup {
            role: Role::Answerer,
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
        let answer = Answer { version, id, parameters: self.announcement.of(id) };
        let noise = handshake.write(answer.emit()).map_err(|_| Refused::Unauthentic)?;
        let second = Message::Second { opener: first.opener, noise }.to_bytes();
        let awaits = match first.suite.method {
            Method::PublicKeys => {
                Awaits::Third { handshake, version, opener: first.opener, suite: first.suite }
            }
            Method::SharedKey => {
                let agreed = (first.suite, id, first.opener);
                Awaits::Sealed(self.establish(agreed, version, parameters, &mut handshake))
            }
        };
        self.transmits.push_back((from, second.clone()));
        self.waiting.take(|waits| waits.digest == digest);
        self.rate.note(now, from.ip(), proven);
        let attempts = Attempts::None;
        self.table
            .insert(id, HalfOpen { address: from, proven, digest, second, awaits, attempts, begun: now });
        Ok(())
    }

    fn on_third(
        &mut self,
        now: Instant,
        from: SocketAddr,
        id: ConnectionId,
        noise: &Bytes,
    ) -> Result<(), Refused> {
        let Some(half_open) = self.table.get_mut(id) else {
            if self.table.was_accepted(id) {
                self.events.push_back(AnswererEvent::Unproven(id));
                return Err(Refused::Late);
            }
            return Err(Refused::Unknown);
        };
        let source = half_open.source(from);
        let Awaits::Third { handshake, .. } = &mut half_open.awaits else { return Err(Refused::Malformed) };
        if !(BESIDE_THIRD..=BESIDE_THIRD + PARAMETERS_MAX).contains(&noise.len()) {
            return Err(Refused::Malformed);
        }
        if !self.failures.allow(now, source, half_open.attempts) {
            return Err(Refused::OverBudget);
        }
        let parameters = handshake
            .read(now, noise, Some(&mut self.failures.remakes))
            .inspect_err(|_| half_open.attempts = Attempts::Failed)?;
        let peer = handshake.peer();
        if !self.credentials.believes(peer) {
            let address = half_open.address;
            self.table.remove(id);
            self.events.extend(peer.map(|key| AnswererEvent::Stranger { address, key }));
            return Err(Refused::Stranger);
        }
        let Some(HalfOpen {
            address, awaits: Awaits::Third { mut handshake, version, opener, suite }, ..
        }) = self.table.accept(id)
        else {
            unreachable!("it was there, and awaited a third message");
        };
        let established = self.establish((suite, id, opener), version, parameters, &mut handshake);
        self.accept(Accepted { established, address, from, first: None });
        Ok(())
    }

    fn on_sealed(
        &mut self,
        now: Instant,
        from: SocketAddr,
        id: ConnectionId,
        datagram: &mut [u8],
    ) -> Result<(), Refused> {
        let half_open = self.table.get_mut(id).ok_or(Refused::Unknown)?;
        let source = half_open.source(from);
        let Awaits::Sealed(established) = &mut half_open.awaits else { return Err(Refused::Early) };
        if !self.failures.allow(now, source, half_open.attempts) {
            return Err(Refused::OverBudget);
        }
        let Ok(opened) = established.session.unsealer.open(datagram) else {
            half_open.attempts = Attempts::Failed;
            return Err(Refused::Unauthentic);
        };
        let payload = Bytes::copy_from_slice(opened.payload);
        let first = Some(Initial { number: opened.number, payload });
        let Some(HalfOpen { address, awaits: Awaits::Sealed(established), .. }) = self.table.accept(id)
        else {
            unreachable!("it was there, and awaited a sealed datagram");
        };
        self.accept(Accepted { established, address, from, first });
        Ok(())
    }

    fn accept(&mut self, accepted: Accepted) {
        if self.credentials.choose() {
            self.table.remember_host(accepted.address);
        }
        self.events.push_back(AnswererEvent::Accepted(accepted));
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
        let session = Session::new(&Agreed {
            cipher: suite.cipher,
            config: self.config.session,
            local,
            remote,
            sending: split.of_answerer,
            receiving: split.of_opener,
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
