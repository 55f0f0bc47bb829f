//! The end that opens a connection: sends messages until they are answered.

use crate::config::{ConfigError, InitiatorConfig, PARAMETERS_MAX};
use crate::credentials::Credentials;
use crate::entropy::{Entropy, Seed};
use crate::keys::PublicKey;
use crate::noise::{Handshake, Role, Setup};
use crate::reset::Announcement;
use crate::session::{Established, NegotiatedKeys, Session};
use crate::stats::{Refusals, Refused};
use bytes::{Buf, Bytes};
use hopline_core::{Duration, Instant};
use hopline_wire::secure::{ConnectionId, Cookie, HandshakeMessage, Method, RefusalReason, Suite, Versions};
use std::collections::VecDeque;
use std::sync::Arc;
use thiserror::Error;

/// Number of times that a message is sent at once because cookies came, before its timer must run out.
const COOKIES_PER_WAIT: u8 = 3;

/// Number of tries for which a handshake goes on after an unauthenticated hint, such as a refusal or a
/// stranger's answer. An attacker that listens to the radio can forge such hints, and the right answer may
/// yet come.
const TRIES_AFTER_HINT: u8 = 2;

/// Opens a connection. One input, then all outputs, as [the contract](hopline_core::state_machine) says.
#[derive(Debug)]
pub struct Initiator {
    config: InitiatorConfig,
    credentials: Arc<Credentials>,
    parameters: Bytes,
    local: ConnectionId,
    suite: Suite,
    handshake: Handshake,
    first: Bytes,
    cookie: Option<Cookie>,
    state: State,
    /// Time at which the message is sent again.
    retransmit_at: Instant,
    wait: Duration,
    tries_left: u8,
    cookies_left: u8,
    /// Time at which the first message was sent, if it was sent once (Karn's rule).
    sent_once_at: Option<Instant>,
    /// The time until a cookie came. A responder under load gives it at once, and may defer its second message.
    cookie_round_trip: Option<Duration>,
    hint: Option<Failure>,
    transmits: VecDeque<Bytes>,
    events: VecDeque<InitiatorEvent>,
    refusals: Refusals,
}

#[derive(Debug)]
enum State {
    /// The first message is sent until the second one comes.
    AwaitingSecond,
    /// This third message is sent until a sealed datagram shows that it has come.
    AwaitingProof(Bytes),
    /// Nothing more is sent.
    Finished,
}

/// Event of an initiator.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "moved once, when a connection is made")]
pub enum InitiatorEvent {
    /// Datagrams can be sealed and opened. Send one at once, be it empty, and again until one comes back:
    /// with a shared key it is what makes the responder accept. The state machine must live on, and be
    /// notified by [`Initiator::confirm`] of the first datagram that was opened.
    Completed(Established),
    /// The connection has failed; if it was completed, the responder does not know of it.
    Failed(Failure),
}

/// Reason that a connection was not opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Failure {
    /// No peer answers: there is none, or its shared key is another.
    #[error("no answer: nobody is there, or the shared keys differ")]
    NoAnswer,
    /// A refusal arrived. It is not authenticated, so it need not be from the responder.
    #[error("refused: {}; it speaks versions {} to {}", match reason {
        RefusalReason::Version => "there is no common version",
        RefusalReason::Method => "one end has a shared key, the other a key of its own",
    }, versions.oldest, versions.newest)]
    Refused {
        /// Reason for the refusal.
        reason: RefusalReason,
        /// Versions that the responder speaks.
        versions: Versions,
    },
    /// A peer with another key answered.
    #[error("somebody else answered, whose fingerprint is {}", .0.fingerprint())]
    WrongPeer(PublicKey),
    /// The last message was sent, and nothing shows that it came.
    #[error(
        "the responder fell silent before the handshake was over: perhaps our key is none of those that it trusts"
    )]
    Unconfirmed,
}

impl Initiator {
    /// Opens a connection; drain the outputs. `parameters` is for the peer's transport and is encrypted. With
    /// a shared key, however, an attacker that learns that key later can read it.
    ///
    /// # Errors
    /// A setting out of its range, or more than 256 bytes of parameters.
    pub fn open(
        now: Instant,
        config: InitiatorConfig,
        credentials: Credentials,
        parameters: impl Into<Announcement>,
        seed: &Seed,
    ) -> Result<Self, ConfigError> {
        config.validate()?;
        let announcement = parameters.into();
        announcement.validate()?;
        let mut entropy = Entropy::new(seed);
        let credentials = Arc::new(credentials);
        let local = draw_id(&mut entropy);
        let parameters = announcement.encode_for(local);
        let suite = Suite { method: credentials.method(), cipher: config.cipher };
        let prologue = prologue(suite, config.versions, local, config.session.rekey_after);
        let setup = Setup {
            role: Role::Initiator,
            suite,
            credentials: credentials.clone(),
            prologue,
            seed: entropy.seed(),
        };
        let mut handshake = Handshake::new(setup);
        let payload = match suite.method {
            Method::SharedKey => parameters.clone(),
            Method::PublicKeys => Bytes::new(),
        };
        let first = handshake.write(payload).expect("a first message needs nothing of the peer");
        let mut initiator = Self {
            config,
            credentials,
            parameters,
            local,
            suite,
            handshake,
            first,
            cookie: None,
            state: State::AwaitingSecond,
            retransmit_at: now + config.initial_wait,
            wait: config.initial_wait,
            tries_left: config.max_tries - 1,
            cookies_left: COOKIES_PER_WAIT,
            sent_once_at: Some(now),
            cookie_round_trip: None,
            hint: None,
            transmits: VecDeque::new(),
            events: VecDeque::new(),
            refusals: Refusals::default(),
        };
        initiator.send();
        Ok(initiator)
    }

    /// Returns the id by which datagrams for this connection are known.
    #[must_use]
    pub const fn local_id(&self) -> ConnectionId {
        self.local
    }

    /// Returns the numbers of refused datagrams, by reason.
    #[must_use]
    pub const fn refusals(&self) -> &Refusals {
        &self.refusals
    }

    /// Takes a datagram of a handshake.
    pub fn handle_datagram(&mut self, now: Instant, datagram: &Bytes) {
        if let Err(refused) = self.try_handle(now, datagram) {
            self.refusals.add(refused);
        }
    }

    /// Records that a sealed datagram of this connection was opened: the responder has all it needs.
    pub fn confirm(&mut self) {
        if matches!(self.state, State::AwaitingProof(_)) {
            self.state = State::Finished;
        }
    }

    /// Takes the passing of time.
    pub fn handle_timeout(&mut self, now: Instant) {
        if matches!(self.state, State::Finished) || now < self.retransmit_at {
            return;
        }
        if self.tries_left == 0 {
            let failure = match self.state {
                State::AwaitingProof(_) => Failure::Unconfirmed,
                State::AwaitingSecond | State::Finished => self.hint.unwrap_or(Failure::NoAnswer),
            };
            self.state = State::Finished;
            self.events.push_back(InitiatorEvent::Failed(failure));
            return;
        }
        self.tries_left -= 1;
        self.wait = self.wait.saturating_mul(2).min(self.config.max_wait);
        self.retransmit_at = now + self.wait;
        self.cookies_left = COOKIES_PER_WAIT;
        self.sent_once_at = None;
        self.send();
    }

    /// Returns the next datagram to send to the responder.
    #[must_use]
    pub fn poll_transmit(&mut self) -> Option<Bytes> {
        self.transmits.pop_front()
    }

    /// Returns the next event.
    #[must_use]
    pub fn poll_event(&mut self) -> Option<InitiatorEvent> {
        self.events.pop_front()
    }

    /// Returns the time at which to call [`handle_timeout`](Self::handle_timeout).
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        (!matches!(self.state, State::Finished)).then_some(self.retransmit_at)
    }

    fn send(&mut self) {
        let datagram = match &self.state {
            State::AwaitingSecond => HandshakeMessage::Handshake1 {
                suite: self.suite,
                versions: self.config.versions,
                initiator_id: self.local,
                cookie: self.cookie,
                noise: self.first.clone(),
            }
            .to_bytes(),
            State::AwaitingProof(third) => third.clone(),
            State::Finished => return,
        };
        self.transmits.push_back(datagram);
    }

    fn try_handle(&mut self, now: Instant, datagram: &Bytes) -> Result<(), Refused> {
        let message = HandshakeMessage::parse(datagram).map_err(|_| Refused::Malformed)?;
        let initiator = match message {
            HandshakeMessage::Retry { initiator, .. }
            | HandshakeMessage::Handshake2 { initiator_id: initiator, .. }
            | HandshakeMessage::Refusal { initiator, .. } => initiator,
            HandshakeMessage::Handshake1 { .. }
            | HandshakeMessage::Handshake3 { .. }
            | HandshakeMessage::StatelessReset { .. } => {
                return Err(Refused::Malformed);
            }
        };
        if initiator != self.local {
            return Err(Refused::Unknown);
        }
        if !matches!(self.state, State::AwaitingSecond) {
            return Err(Refused::Late);
        }
        match message {
            HandshakeMessage::Retry { cookie, .. } => self.handle_retry(now, cookie),
            HandshakeMessage::Handshake2 { noise, .. } => self.handle_second(now, &noise),
            HandshakeMessage::Refusal { reason, versions, .. } => {
                self.record_hint(Failure::Refused { reason, versions });
                Ok(())
            }
            HandshakeMessage::Handshake1 { .. }
            | HandshakeMessage::Handshake3 { .. }
            | HandshakeMessage::StatelessReset { .. } => {
                unreachable!("refused above")
            }
        }
    }

    fn handle_retry(&mut self, now: Instant, cookie: Cookie) -> Result<(), Refused> {
        if self.cookies_left == 0 || self.cookie == Some(cookie) {
            return Err(Refused::Late);
        }
        self.cookies_left -= 1;
        self.cookie = Some(cookie);
        self.retransmit_at = now + self.wait;
        let round_trip = self.sent_once_at.map(|sent| now.since(sent));
        self.cookie_round_trip = [self.cookie_round_trip, round_trip].into_iter().flatten().min();
        self.sent_once_at = self.sent_once_at.map(|_| now);
        self.send();
        Ok(())
    }

    fn handle_second(&mut self, now: Instant, noise: &Bytes) -> Result<(), Refused> {
        let payload = self.handshake.read(now, noise, None)?;
        let peer = self.handshake.peer();
        if !self.credentials.trusts(peer) {
            self.handshake.undo();
            if let Some(peer) = peer {
                self.record_hint(Failure::WrongPeer(peer));
            }
            return Err(Refused::Stranger);
        }
        let Some(answer) = SecondPayload::parse(payload).filter(|answer| self.is_allowed(answer)) else {
            self.handshake.undo();
            return Err(Refused::Improper);
        };
        let third = match self.suite.method {
            Method::SharedKey => None,
            Method::PublicKeys => {
                let Ok(noise) = self.handshake.write(self.parameters.clone()) else {
                    self.handshake.undo();
                    return Err(Refused::Unauthentic);
                };
                Some(HandshakeMessage::Handshake3 { responder_id: answer.id, noise }.to_bytes())
            }
        };
        self.complete(now, answer, peer, third);
        Ok(())
    }

    fn complete(
        &mut self,
        now: Instant,
        answer: SecondPayload,
        peer: Option<PublicKey>,
        third: Option<Bytes>,
    ) {
        let split = self.handshake.split();
        let round_trip = self.sent_once_at.map(|sent| now.since(sent));
        let round_trip = [self.cookie_round_trip, round_trip].into_iter().flatten().min();
        let session = Session::new(&NegotiatedKeys {
            cipher: self.suite.cipher,
            config: self.config.session,
            local: self.local,
            remote: answer.id,
            sending: split.initiator,
            receiving: split.responder,
        });
        self.state = third.map_or(State::Finished, State::AwaitingProof);
        self.wait = self.config.initial_wait;
        self.retransmit_at = now + self.wait;
        self.tries_left = self.config.max_tries - 1;
        self.send();
        self.events.push_back(InitiatorEvent::Completed(Established {
            session,
            version: answer.version,
            parameters: answer.parameters,
            peer,
            binding: split.binding,
            round_trip,
        }));
    }

    fn is_allowed(&self, answer: &SecondPayload) -> bool {
        let versions = self.config.versions;
        (versions.oldest..=versions.newest).contains(&answer.version)
            && answer.parameters.len() <= PARAMETERS_MAX
    }

    /// Records an unauthenticated hint of a failure. If nothing better comes, it is the reason that there is
    /// no connection.
    fn record_hint(&mut self, failure: Failure) {
        self.hint = Some(failure);
        self.tries_left = self.tries_left.min(TRIES_AFTER_HINT);
    }
}

/// The payload of a second message.
pub(crate) struct SecondPayload {
    pub(crate) version: u8,
    pub(crate) id: ConnectionId,
    pub(crate) parameters: Bytes,
}

impl SecondPayload {
    fn parse(mut payload: Bytes) -> Option<Self> {
        let head: [u8; 9] = *payload.first_chunk()?;
        payload.advance(head.len());
        let id = ConnectionId::new(*head.last_chunk()?)?;
        Some(Self { version: head[0], id, parameters: payload })
    }

    pub(crate) fn emit(&self) -> Bytes {
        [&[self.version][..], &self.id.bytes(), &self.parameters].concat().into()
    }
}

/// Returns the prologue that both ends hash before all messages, so that a change by an attacker to any part
/// of it is detected.
pub(crate) fn prologue(suite: Suite, versions: Versions, initiator: ConnectionId, rekey_after: u64) -> Bytes {
    let mut prologue = b"TPA-wide".to_vec();
    prologue.extend_from_slice(&[suite.byte(), versions.newest, versions.oldest]);
    prologue.extend_from_slice(&initiator.bytes());
    prologue.extend_from_slice(&rekey_after.to_be_bytes());
    prologue.into()
}

/// Draws an unpredictable connection id.
pub(crate) fn draw_id(entropy: &mut Entropy) -> ConnectionId {
    loop {
        if let Some(id) = ConnectionId::new(entropy.bytes()) {
            return id;
        }
    }
}
