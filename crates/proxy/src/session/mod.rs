//! Who is at the other end, and lives: the greeting, and proof of what is said after it.
//!
//! Each end chooses a life at random when it begins. The keys of a session follow from the key that both ends have and from both lives, so
//! that nothing that was said in another session counts in this one. An end takes up a session with a life only when that has met its
//! challenge, which has been met never before: what somebody has recorded meets none. Each further challenge that is met proves that the other
//! end is still there ([`presence`]). No clock plays a part in it.

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

/// One end of a session, or of none yet.
#[derive(Debug)]
pub(crate) struct Session {
    key: Key,
    speaks: Speaks,
    life: u64,
    challenges: Challenges,
    /// The challenge of the other end that was heard last.
    heard: u64,
    met: Option<Met>,
    presence: Presence,
}

/// The other end, which has met a challenge.
#[derive(Debug)]
struct Met {
    life: u64,
    /// Of what goes to it, and of what comes from it.
    seals: [u8; 32],
    opens: [u8; 32],
    next: u64,
    seen: Seen,
    /// Whether it is known to have the session too.
    is_confirmed: bool,
}

/// What came of a greeting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub(crate) enum Heard {
    /// It proves nothing.
    Forged,
    /// It is this end's own.
    Own,
    /// Everything stays as it was. With the answer, if one is wanted.
    Nothing(Option<Reply>),
    /// A session with a new life has begun.
    Began(Reply),
}

/// Reason of a greeting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reason {
    /// Its time has come.
    Due,
    /// The other end has asked for it.
    Asked,
}

/// A greeting to be sent.
pub(crate) type Reply = (Greeting, [u8; GREETING_TAG_LEN]);

/// What came of a frame.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub(crate) enum Opened {
    /// It is the other end's, and new.
    Frame(Bytes),
    /// It proves nothing in this session.
    Forged,
    /// It has come before, or is too old.
    Replayed,
}

impl Session {
    /// An end that knows nobody. `life`: chosen at random.
    pub(crate) const fn new(key: Key, speaks: Speaks, life: u64) -> Self {
        // 0 stands for none.
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

    /// Returns whether the other end would understand what is sent now, if it is there.
    pub(crate) fn is_ready(&self) -> bool {
        self.met.as_ref().is_some_and(|peer| peer.is_confirmed)
    }

    /// The other end, as far as this one can tell.
    pub(crate) const fn peer(&self) -> Peer {
        self.presence.peer()
    }

    /// The life of the other end, while that is there and understands what is sent.
    pub(crate) fn present(&self) -> Option<u64> {
        let met = self.met.as_ref().filter(|met| met.is_confirmed && self.presence.is_present())?;
        Some(met.life)
    }

    /// Its own life.
    pub(crate) const fn life(&self) -> u64 {
        self.life
    }

    /// When to call [`Session::greet`].
    pub(crate) const fn due(&self) -> Instant {
        self.presence.due()
    }

    /// The greeting that is due.
    pub(crate) fn greet(&mut self, now: Instant) -> Option<Reply> {
        self.presence.is_due(now).then(|| self.greeting(now, Reason::Due))
    }

    /// A packet crosses the link, in whichever direction and whichever way.
    pub(crate) fn note_traffic(&mut self) {
        self.presence.note_traffic();
    }

    /// Something has come from the other end's address that is of another version of the protocol.
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

    /// A frame with its proof, as a datagram. `None` where there is nobody who could open it.
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
        // An end that seals for this session has it.
        self.confirm(now);
        self.presence.prove(now);
        Opened::Frame(sealed.frame)
    }

    /// A message has come that proves the key of this session, for the first time.
    pub(crate) fn heard_message(&mut self, now: Instant) {
        self.presence.prove(now);
    }

    /// The keys of what this end says in the session, and of what it hears.
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

    /// The other end has this session too. That proves once that it is there: it has met a challenge to begin.
    fn confirm(&mut self, now: Instant) {
        if let Some(met) = self.met.as_mut().filter(|met| !met.is_confirmed) {
            met.is_confirmed = true;
            self.presence.prove(now);
        }
    }

    fn greeting(&mut self, now: Instant, reason: Reason) -> Reply {
        // An answer does not ask while both ends ask without pause, or they would answer each other for ever.
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

/// As a datagram.
pub(crate) fn datagram((greeting, tag): Reply) -> Vec<u8> {
    let mut out = Vec::new();
    Datagram::Greeting(greeting, tag).emit(&mut out);
    out
}

fn tag_of(key: &[u8; 32], header: &[u8], frame: &[u8]) -> [u8; FRAME_TAG_LEN] {
    let hash = blake3::Hasher::new_keyed(key).update(header).update(frame).finalize();
    hash.as_bytes()[..FRAME_TAG_LEN].try_into().expect("8 of 32 bytes")
}

/// Whether the tag is the beginning of what it must be; takes as long whichever byte differs.
fn is_same(must_be: &[u8], tag: &[u8]) -> bool {
    must_be.iter().zip(tag).fold(0, |all, (a, b)| all | (a ^ b)) == 0
}
