//! Who is at the other end, and lives: the greeting, and proof of what is said after it.
//!
//! Each end chooses a life at random when it begins. The keys of a session follow from the key that both ends have and from both lives, so
//! that nothing that was said in another session counts in this one. An end takes up a session with a life only when that has met its
//! challenge, which has been met never before: what somebody has recorded meets none.

use crate::dproxy::{Key, Seen};
use bytes::Bytes;
use hopline_core::{Duration, Instant};
use hopline_wire::dproxy::tunnel::{
    Datagram, FRAME_TAG_LEN, GREETING_TAG_LEN, Greeting, HEADER_LEN, NUMBERS, Sealed, Wants,
};

/// Between greetings that nobody answers: at first, and at most.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// One end of a session, or of none yet.
#[derive(Debug)]
pub(super) struct Session {
    key: Key,
    life: u64,
    /// Challenges that were met.
    challenges: u64,
    /// The challenge of the other end that was heard last.
    heard: u64,
    peer: Option<Peer>,
    /// When to greet again, while the other end is not known to know this one.
    due: Option<Instant>,
    pause: Duration,
}

/// The other end.
#[derive(Debug)]
struct Peer {
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
pub(super) enum Heard {
    /// It proves nothing.
    Forged,
    /// It is this end's own.
    Own,
    /// Everything stays as it was. With the answer, if one is wanted.
    Nothing(Option<Reply>),
    /// A session with a new life has begun.
    Began(Reply),
}

/// A greeting to be sent.
pub(super) type Reply = (Greeting, [u8; GREETING_TAG_LEN]);

/// What came of a frame.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub(super) enum Opened {
    /// It is the other end's, and new.
    Frame(Bytes),
    /// It proves nothing in this session.
    Forged,
    /// It has come before, or is too old.
    Replayed,
}

impl Session {
    /// An end that knows nobody. `life`: chosen at random.
    pub(super) const fn new(key: Key, life: u64) -> Self {
        let due = Some(Instant::ZERO);
        // 0 stands for none.
        let life = if life == 0 { 1 } else { life };
        Self { key, life, challenges: 0, heard: 0, peer: None, due, pause: FIRST_PAUSE }
    }

    /// Whether the other end would understand what is sent now.
    pub(super) fn is_ready(&self) -> bool {
        self.peer.as_ref().is_some_and(|peer| peer.is_confirmed)
    }

    /// Its own life.
    pub(super) const fn life(&self) -> u64 {
        self.life
    }

    pub(super) const fn due(&self) -> Option<Instant> {
        self.due
    }

    /// The greeting that is due.
    pub(super) fn greet(&mut self, now: Instant) -> Option<Reply> {
        self.due.filter(|due| *due <= now)?;
        self.due = Some(now + self.pause);
        self.pause = self.pause.saturating_mul(2).min(LONGEST_PAUSE);
        Some(self.greeting())
    }

    pub(super) fn hear(&mut self, now: Instant, greeting: &Greeting, tag: &[u8; GREETING_TAG_LEN]) -> Heard {
        if !is_same(&self.key.derive(&greeting.to_bytes()), tag) {
            return Heard::Forged;
        }
        if greeting.life == self.life || greeting.life == 0 {
            return Heard::Own;
        }
        self.heard = greeting.challenge;
        let is_known = |peer: &Option<Peer>| peer.as_ref().is_some_and(|peer| peer.life == greeting.life);
        let begins = greeting.met == self.challenge() && !is_known(&self.peer);
        if begins {
            self.begin(now, greeting.life);
        }
        if greeting.knows == self.life && is_known(&self.peer) {
            self.confirm();
        }
        match (begins, greeting.wants) {
            (true, _) => Heard::Began(self.greeting()),
            (false, Wants::Answer) => Heard::Nothing(Some(self.greeting())),
            (false, Wants::Nothing) => Heard::Nothing(None),
        }
    }

    /// A frame with its proof, as a datagram. `None` where there is nobody who could open it.
    pub(super) fn seal(&mut self, emit: impl FnOnce(&mut Vec<u8>)) -> Option<Vec<u8>> {
        let peer = self.peer.as_mut().filter(|peer| peer.is_confirmed && peer.next < NUMBERS)?;
        let header = Sealed::header(peer.next);
        peer.next += 1;
        let mut datagram = Vec::from(header);
        datagram.extend_from_slice(&[0; FRAME_TAG_LEN]);
        emit(&mut datagram);
        let tag = tag_of(&peer.seals, &header, &datagram[HEADER_LEN..]);
        datagram[header.len()..HEADER_LEN].copy_from_slice(&tag);
        Some(datagram)
    }

    pub(super) fn open(&mut self, sealed: Sealed) -> Opened {
        let Some(peer) = &mut self.peer else { return Opened::Forged };
        let tag = tag_of(&peer.opens, &Sealed::header(sealed.number), &sealed.frame);
        if !is_same(&tag, &sealed.tag) {
            return Opened::Forged;
        }
        if !peer.seen.is_new(sealed.number) {
            return Opened::Replayed;
        }
        // Who seals for this session has it.
        self.confirm();
        Opened::Frame(sealed.frame)
    }

    fn begin(&mut self, now: Instant, life: u64) {
        self.challenges += 1;
        let key_of = |from: u64, to: u64| {
            let mut bytes = *b"frames................";
            bytes[6..14].copy_from_slice(&from.to_be_bytes());
            bytes[14..].copy_from_slice(&to.to_be_bytes());
            self.key.derive(&bytes)
        };
        let (seals, opens) = (key_of(self.life, life), key_of(life, self.life));
        self.peer = Some(Peer { life, seals, opens, next: 0, seen: Seen::default(), is_confirmed: false });
        (self.pause, self.due) = (FIRST_PAUSE, Some(now + FIRST_PAUSE));
    }

    fn confirm(&mut self) {
        if let Some(peer) = &mut self.peer {
            peer.is_confirmed = true;
            self.due = None;
        }
    }

    /// Nobody without the key can know it before it is said.
    fn challenge(&self) -> u64 {
        let mut bytes = *b"challenge................";
        bytes[9..17].copy_from_slice(&self.life.to_be_bytes());
        bytes[17..].copy_from_slice(&self.challenges.to_be_bytes());
        u64::from_be_bytes(self.key.derive(&bytes)[..8].try_into().expect("8 of 32 bytes")).max(1)
    }

    fn greeting(&self) -> Reply {
        let greeting = Greeting {
            life: self.life,
            challenge: self.challenge(),
            met: self.heard,
            knows: self.peer.as_ref().map_or(0, |peer| peer.life),
            wants: if self.is_ready() { Wants::Nothing } else { Wants::Answer },
        };
        let tag = self.key.derive(&greeting.to_bytes());
        (greeting, tag[..GREETING_TAG_LEN].try_into().expect("16 of 32 bytes"))
    }
}

/// As a datagram.
pub(super) fn datagram((greeting, tag): Reply) -> Vec<u8> {
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
