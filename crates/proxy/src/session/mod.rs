//! Authentication and liveness of the other end: the greeting, and the tags of later frames.
//!
//! Each end chooses a random identifier of its incarnation (`life`) at start. The keys of a session are
//! derived from the shared key and both identifiers, so that frames of one session are invalid in another. An
//! end accepts a session with an incarnation only once that has answered its challenge. A challenge can be
//! answered once, so recorded greetings are useless. Each further answer proves that the other end is still
//! present ([`presence`]). No clock is involved.

mod challenges;
mod presence;

use crate::dproxy::{Key, Seen};
use bytes::Bytes;
use challenges::Challenges;
use hopline_core::Instant;
use hopline_wire::dproxy::tunnel::{
    Datagram, FRAME_TAG_LEN, GREETING_TAG_LEN, Greeting, HEADER_LEN, NUMBERS, Sealed, Speaks, Wants,
};
pub use presence::Peer;
use presence::Presence;

/// One end, with or without a session.
#[derive(Debug)]
pub(crate) struct Session {
    key: Key,
    speaks: Speaks,
    life: u64,
    challenges: Challenges,
    /// Last challenge received from the other end.
    heard: u64,
    met: Option<Met>,
    presence: Presence,
}

/// The other end after it has answered a challenge.
#[derive(Debug)]
struct Met {
    life: u64,
    /// Keys of outgoing and of incoming frames.
    seals: [u8; 32],
    opens: [u8; 32],
    next: u64,
    seen: Seen,
    /// `true` if the other end is known to have the session too.
    is_confirmed: bool,
}

/// Result of a greeting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub(crate) enum Heard {
    /// Its tag is invalid.
    Forged,
    /// It is this end's own.
    Own,
    /// Nothing changes. With the reply, if one is requested.
    Nothing(Option<Reply>),
    /// A session with a new incarnation has begun.
    Began(Reply),
}

/// Reason of a greeting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reason {
    /// It is scheduled.
    Due,
    /// The other end has requested it.
    Asked,
}

/// Greeting to send.
pub(crate) type Reply = (Greeting, [u8; GREETING_TAG_LEN]);

/// Result of a frame.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub(crate) enum Opened {
    /// The frame is authentic and new.
    Frame(Bytes),
    /// Its tag is invalid in this session.
    Forged,
    /// Its number has been seen before, or is below the replay window.
    Replayed,
}

impl Session {
    /// Creates an end without a session. `life`: chosen at random.
    pub(crate) const fn new(key: Key, speaks: Speaks, life: u64) -> Self {
        // 0 means none.
        let life = if life == 0 { 1 } else { life };
        Self {
            key,
            speaks,
            life,
            challenges: Challenges::new(),
            heard: 0,
            met: None,
            presence: Presence::new(),
        }
    }

    /// Returns whether the other end can verify frames sent now, if it is present.
    pub(crate) fn is_ready(&self) -> bool {
        self.met.as_ref().is_some_and(|peer| peer.is_confirmed)
    }

    /// Returns the state of the other end, as far as known.
    pub(crate) const fn peer(&self) -> Peer {
        self.presence.peer()
    }

    /// Returns the incarnation of the other end, while it is present and has the session.
    pub(crate) fn present(&self) -> Option<u64> {
        let met = self.met.as_ref().filter(|met| met.is_confirmed && self.presence.is_present())?;
        Some(met.life)
    }

    /// Returns the incarnation of this end.
    pub(crate) const fn life(&self) -> u64 {
        self.life
    }

    /// Returns the time of the next call of [`Session::greet`].
    pub(crate) const fn due(&self) -> Instant {
        self.presence.due()
    }

    /// Returns the greeting that is due.
    pub(crate) fn greet(&mut self, now: Instant) -> Option<Reply> {
        self.presence.is_due(now).then(|| self.greeting(now, Reason::Due))
    }

    /// Records that a packet crosses the link, in either direction and in any form.
    pub(crate) fn note_traffic(&mut self) {
        self.presence.note_traffic();
    }

    /// Records a message of another protocol version from the other end's address.
    pub(crate) fn hear_other_version(&mut self, now: Instant, version: u8) {
        self.presence.find(now, Peer::OtherVersion(version));
    }

    pub(crate) fn hear(&mut self, now: Instant, greeting: &Greeting, tag: &[u8; GREETING_TAG_LEN]) -> Heard {
        if !is_same(&self.key.derive(&greeting.to_bytes()), tag) {
            self.presence.find(now, Peer::OtherKey);
            return Heard::Forged;
        }
        if greeting.life == self.life || greeting.life == 0 {
            return Heard::Own;
        }
        if greeting.speaks != self.speaks {
            self.presence.find(now, Peer::OtherKind(greeting.speaks));
            return Heard::Nothing(None);
        }
        self.heard = greeting.challenge;
        let is_fresh = self.challenges.meet(now, greeting.met);
        if is_fresh {
            self.presence.measured(self.challenges.rtt());
        }
        let is_known = |met: &Option<Met>| met.as_ref().is_some_and(|met| met.life == greeting.life);
        let begins = is_fresh && !is_known(&self.met);
        if begins {
            self.begin(now, greeting.life);
        }
        if is_known(&self.met) {
            if greeting.knows == self.life {
                self.confirm(now);
            }
            if is_fresh && self.is_ready() {
                self.presence.prove(now);
            }
        }
        match (begins, greeting.wants) {
            (true, _) => Heard::Began(self.greeting(now, Reason::Asked)),
            (false, Wants::Answer) => Heard::Nothing(Some(self.greeting(now, Reason::Asked))),
            (false, Wants::Nothing) => Heard::Nothing(None),
        }
    }

    /// Returns a frame with its tag, as a datagram. `None` if no peer can verify it.
    pub(crate) fn seal(&mut self, emit: impl FnOnce(&mut Vec<u8>)) -> Option<Vec<u8>> {
        let peer = self.met.as_mut().filter(|peer| peer.is_confirmed && peer.next < NUMBERS)?;
        let header = Sealed::header(peer.next);
        peer.next += 1;
        let mut datagram = Vec::from(header);
        datagram.extend_from_slice(&[0; FRAME_TAG_LEN]);
        emit(&mut datagram);
        let tag = tag_of(&peer.seals, &header, &datagram[HEADER_LEN..]);
        datagram[header.len()..HEADER_LEN].copy_from_slice(&tag);
        Some(datagram)
    }

    pub(crate) fn open(&mut self, now: Instant, sealed: Sealed) -> Opened {
        let Some(peer) = &mut self.met else { return Opened::Forged };
        let tag = tag_of(&peer.opens, &Sealed::header(sealed.number), &sealed.frame);
        if !is_same(&tag, &sealed.tag) {
            return Opened::Forged;
        }
        if !peer.seen.is_new(sealed.number) {
            return Opened::Replayed;
        }
        // An end that seals frames for this session has it.
        self.confirm(now);
        self.presence.prove(now);
        Opened::Frame(sealed.frame)
    }

    /// Records a message that was authenticated with the key of this session, for the first time.
    pub(crate) fn heard_message(&mut self, now: Instant) {
        self.presence.prove(now);
    }

    /// Returns the keys of outgoing and of incoming messages of the session.
    pub(crate) fn keys(&self) -> Option<[Key; 2]> {
        self.met.as_ref().map(|met| [met.seals, met.opens].map(Key::new))
    }

    fn begin(&mut self, now: Instant, life: u64) {
        let key_of = |from: u64, to: u64| {
            let mut bytes = *b"frames................";
            bytes[6..14].copy_from_slice(&from.to_be_bytes());
            bytes[14..].copy_from_slice(&to.to_be_bytes());
            self.key.derive(&bytes)
        };
        let (seals, opens) = (key_of(self.life, life), key_of(life, self.life));
        self.challenges.forget();
        self.met = Some(Met { life, seals, opens, next: 0, seen: Seen::default(), is_confirmed: false });
        self.presence.hurry(now);
    }

    /// Records that the other end has this session too. This proves its presence once: it has answered a
    /// challenge to begin.
    fn confirm(&mut self, now: Instant) {
        if let Some(met) = self.met.as_mut().filter(|met| !met.is_confirmed) {
            met.is_confirmed = true;
            self.presence.prove(now);
        }
    }

    fn greeting(&mut self, now: Instant, reason: Reason) -> Reply {
        // While both ends probe, a reply requests no further reply; otherwise they would answer each other
        // for ever.
        let asks = reason == Reason::Due && self.presence.is_probing();
        let wants = if self.present().is_some() && !asks { Wants::Nothing } else { Wants::Answer };
        let asked = (wants == Wants::Answer).then_some(now);
        let challenge = match reason {
            Reason::Due => self.challenges.make(&self.key, self.life, asked),
            Reason::Asked => self.challenges.latest(&self.key, self.life, asked),
        };
        let greeting = Greeting {
            life: self.life,
            challenge,
            met: self.heard,
            knows: self.met.as_ref().map_or(0, |peer| peer.life),
            wants,
            speaks: self.speaks,
        };
        let tag = self.key.derive(&greeting.to_bytes());
        (greeting, tag[..GREETING_TAG_LEN].try_into().expect("16 of 32 bytes"))
    }
}

/// Returns the greeting as a datagram.
pub(crate) fn datagram((greeting, tag): Reply) -> Vec<u8> {
    let mut out = Vec::new();
    Datagram::Greeting(greeting, tag).emit(&mut out);
    out
}

fn tag_of(key: &[u8; 32], header: &[u8], frame: &[u8]) -> [u8; FRAME_TAG_LEN] {
    let hash = blake3::Hasher::new_keyed(key).update(header).update(frame).finalize();
    hash.as_bytes()[..FRAME_TAG_LEN].try_into().expect("8 of 32 bytes")
}

/// Returns whether the tag is a prefix of the expected one, in constant time.
fn is_same(must_be: &[u8], tag: &[u8]) -> bool {
    must_be.iter().zip(tag).fold(0, |all, (a, b)| all | (a ^ b)) == 0
}
