//! Authentication and liveness of the other end: the greeting, and the tags of later frames.
//!
//! Each end chooses a random identifier of its incarnation (`life`) at start. The keys of a session are
//! derived from the shared key and both identifiers, so that frames of one session are invalid in another. An
//! end accepts a session with an incarnation only once that has answered its challenge. A challenge can be
//! answered once, so recorded greetings are useless. Each further answer proves that the other end is still
//! present ([`presence`]). No clock is involved.

mod challenges;
mod presence;

use crate::dproxy::{Key, ReplayWindow};
use bytes::Bytes;
use challenges::Challenges;
use hopline_core::Instant;
use hopline_wire::dproxy::tunnel::{
    Datagram, FRAME_TAG_LEN, HANDSHAKE_TAG_LEN, HEADER_LEN, Handshake, MessageFormat, NUMBER_LIMIT,
    ResponseRequest, Sealed,
};
use presence::PeerPresence;
pub use presence::PeerStatus;

/// One end, with or without a session.
#[derive(Debug)]
pub(crate) struct Session {
    key: Key,
    format: MessageFormat,
    epoch: u64,
    challenges: Challenges,
    /// Last challenge received from the other end.
    peer_challenge: u64,
    peer_session: Option<PeerSession>,
    presence: PeerPresence,
}

/// The other end after it has answered a challenge.
#[derive(Debug)]
struct PeerSession {
    epoch: u64,
    /// Keys of outgoing and of incoming frames.
    send_key: [u8; 32],
    receive_key: [u8; 32],
    next_number: u64,
    replay_window: ReplayWindow,
    /// `true` if the other end is known to have the session too.
    is_confirmed: bool,
}

/// Result of a greeting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub(crate) enum HandshakeResult {
    /// Its tag is invalid.
    Forged,
    /// It is this end's own.
    Reflected,
    /// Nothing changes. With the reply, if one is requested.
    Unchanged(Option<Reply>),
    /// A session with a new incarnation has begun.
    Established(Reply),
}

/// Reason of a greeting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum HandshakeReason {
    /// It is scheduled.
    Scheduled,
    /// The other end has requested it.
    Requested,
}

/// Greeting to send.
pub(crate) type Reply = (Handshake, [u8; HANDSHAKE_TAG_LEN]);

/// Result of a frame.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub(crate) enum OpenResult {
    /// The frame is authentic and new.
    Frame(Bytes),
    /// Its tag is invalid in this session.
    Forged,
    /// Its number has been seen before, or is below the replay window.
    Replayed,
}

impl Session {
    /// Creates an end without a session. `life`: chosen at random.
    pub(crate) const fn new(key: Key, speaks: MessageFormat, life: u64) -> Self {
        // 0 means none.
        let life = if life == 0 { 1 } else { life };
        Self {
            key,
            format: speaks,
            epoch: life,
            challenges: Challenges::new(),
            peer_challenge: 0,
            peer_session: None,
            presence: PeerPresence::new(),
        }
    }

    /// Returns whether the other end can verify frames sent now, if it is present.
    pub(crate) fn is_ready(&self) -> bool {
        self.peer_session.as_ref().is_some_and(|peer| peer.is_confirmed)
    }

    /// Returns the state of the other end, as far as known.
    pub(crate) const fn peer(&self) -> PeerStatus {
        self.presence.peer()
    }

    /// Returns the incarnation of the other end, while it is present and has the session.
    pub(crate) fn present_epoch(&self) -> Option<u64> {
        let met = self.peer_session.as_ref().filter(|met| met.is_confirmed && self.presence.is_present())?;
        Some(met.epoch)
    }

    /// Returns the incarnation of this end.
    pub(crate) const fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Returns the time of the next call of [`Session::poll_handshake`].
    pub(crate) const fn poll_timeout(&self) -> Instant {
        self.presence.next_handshake()
    }

    /// Returns the greeting that is due.
    pub(crate) fn poll_handshake(&mut self, now: Instant) -> Option<Reply> {
        self.presence.poll_handshake(now).then(|| self.build_handshake(now, HandshakeReason::Scheduled))
    }

    /// Records that a packet crosses the link, in either direction and in any form.
    pub(crate) fn record_traffic(&mut self) {
        self.presence.record_traffic();
    }

    /// Records a message of another protocol version from the other end's address.
    pub(crate) fn handle_other_version(&mut self, now: Instant, version: u8) {
        self.presence.record_finding(now, PeerStatus::OtherVersion(version));
    }

    pub(crate) fn handle_handshake(
        &mut self,
        now: Instant,
        greeting: &Handshake,
        tag: &[u8; HANDSHAKE_TAG_LEN],
    ) -> HandshakeResult {
        if !tags_match(&self.key.derive(&greeting.to_bytes()), tag) {
            self.presence.record_finding(now, PeerStatus::OtherKey);
            return HandshakeResult::Forged;
        }
        if greeting.epoch == self.epoch || greeting.epoch == 0 {
            return HandshakeResult::Reflected;
        }
        if greeting.format != self.format {
            self.presence.record_finding(now, PeerStatus::OtherFormat(greeting.format));
            return HandshakeResult::Unchanged(None);
        }
        self.peer_challenge = greeting.challenge;
        let is_fresh = self.challenges.verify(now, greeting.challenge_response);
        if is_fresh {
            self.presence.set_rtt(self.challenges.rtt());
        }
        let is_known =
            |met: &Option<PeerSession>| met.as_ref().is_some_and(|met| met.epoch == greeting.epoch);
        let begins = is_fresh && !is_known(&self.peer_session);
        if begins {
            self.start_session(now, greeting.epoch);
        }
        if is_known(&self.peer_session) {
            if greeting.peer_epoch == self.epoch {
                self.confirm(now);
            }
            if is_fresh && self.is_ready() {
                self.presence.record_proof(now);
            }
        }
        match (begins, greeting.response) {
            (true, _) => HandshakeResult::Established(self.build_handshake(now, HandshakeReason::Requested)),
            (false, ResponseRequest::Requested) => {
                HandshakeResult::Unchanged(Some(self.build_handshake(now, HandshakeReason::Requested)))
            }
            (false, ResponseRequest::None) => HandshakeResult::Unchanged(None),
        }
    }

    /// Returns a frame with its tag, as a datagram. `None` if no peer can verify it.
    pub(crate) fn seal(&mut self, emit: impl FnOnce(&mut Vec<u8>)) -> Option<Vec<u8>> {
        let peer =
            self.peer_session.as_mut().filter(|peer| peer.is_confirmed && peer.next_number < NUMBER_LIMIT)?;
        let header = Sealed::header(peer.next_number);
        peer.next_number += 1;
        let mut datagram = Vec::from(header);
        datagram.extend_from_slice(&[0; FRAME_TAG_LEN]);
        emit(&mut datagram);
        let tag = compute_tag(&peer.send_key, &header, &datagram[HEADER_LEN..]);
        datagram[header.len()..HEADER_LEN].copy_from_slice(&tag);
        Some(datagram)
    }

    pub(crate) fn open(&mut self, now: Instant, sealed: Sealed) -> OpenResult {
        let Some(peer) = &mut self.peer_session else { return OpenResult::Forged };
        let tag = compute_tag(&peer.receive_key, &Sealed::header(sealed.number), &sealed.frame);
        if !tags_match(&tag, &sealed.tag) {
            return OpenResult::Forged;
        }
        if !peer.replay_window.check_and_record(sealed.number) {
            return OpenResult::Replayed;
        }
        // An end that seals frames for this session has it.
        self.confirm(now);
        self.presence.record_proof(now);
        OpenResult::Frame(sealed.frame)
    }

    /// Records a message that was authenticated with the key of this session, for the first time.
    pub(crate) fn record_message(&mut self, now: Instant) {
        self.presence.record_proof(now);
    }

    /// Returns the keys of outgoing and of incoming messages of the session.
    pub(crate) fn keys(&self) -> Option<[Key; 2]> {
        self.peer_session.as_ref().map(|met| [met.send_key, met.receive_key].map(Key::new))
    }

    fn start_session(&mut self, now: Instant, life: u64) {
        let key_of = |from: u64, to: u64| {
            let mut bytes = *b"frames................";
            bytes[6..14].copy_from_slice(&from.to_be_bytes());
            bytes[14..].copy_from_slice(&to.to_be_bytes());
            self.key.derive(&bytes)
        };
        let (seals, opens) = (key_of(self.epoch, life), key_of(life, self.epoch));
        self.challenges.clear();
        self.peer_session = Some(PeerSession {
            epoch: life,
            send_key: seals,
            receive_key: opens,
            next_number: 0,
            replay_window: ReplayWindow::default(),
            is_confirmed: false,
        });
        self.presence.restart_handshakes(now);
    }

    /// Records that the other end has this session too. This proves its presence once: it has answered a
    /// challenge to begin.
    fn confirm(&mut self, now: Instant) {
        if let Some(met) = self.peer_session.as_mut().filter(|met| !met.is_confirmed) {
            met.is_confirmed = true;
            self.presence.record_proof(now);
        }
    }

    fn build_handshake(&mut self, now: Instant, reason: HandshakeReason) -> Reply {
        // While both ends probe, a reply requests no further reply; otherwise they would answer each other
        // for ever.
        let asks = reason == HandshakeReason::Scheduled && self.presence.is_probing();
        let wants = if self.present_epoch().is_some() && !asks {
            ResponseRequest::None
        } else {
            ResponseRequest::Requested
        };
        let asked = (wants == ResponseRequest::Requested).then_some(now);
        let challenge = match reason {
            HandshakeReason::Scheduled => self.challenges.create(&self.key, self.epoch, asked),
            HandshakeReason::Requested => self.challenges.latest(&self.key, self.epoch, asked),
        };
        let greeting = Handshake {
            epoch: self.epoch,
            challenge,
            challenge_response: self.peer_challenge,
            peer_epoch: self.peer_session.as_ref().map_or(0, |peer| peer.epoch),
            response: wants,
            format: self.format,
        };
        let tag = self.key.derive(&greeting.to_bytes());
        (greeting, tag[..HANDSHAKE_TAG_LEN].try_into().expect("16 of 32 bytes"))
    }
}

/// Returns the greeting as a datagram.
pub(crate) fn datagram((greeting, tag): Reply) -> Vec<u8> {
    let mut out = Vec::new();
    Datagram::Handshake(greeting, tag).emit(&mut out);
    out
}

fn compute_tag(key: &[u8; 32], header: &[u8], frame: &[u8]) -> [u8; FRAME_TAG_LEN] {
    let hash = blake3::Hasher::new_keyed(key).update(header).update(frame).finalize();
    hash.as_bytes()[..FRAME_TAG_LEN].try_into().expect("8 of 32 bytes")
}

/// Returns whether the tag is a prefix of the expected one, in constant time.
fn tags_match(must_be: &[u8], tag: &[u8]) -> bool {
    must_be.iter().zip(tag).fold(0, |all, (a, b)| all | (a ^ b)) == 0
}
