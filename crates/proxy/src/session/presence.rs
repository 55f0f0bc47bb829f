//! Presence of the other end: its last proof, and the time at which this end must greet to find out.
//!
//! While packets cross, proof is asked for when the last one is [`ACTIVE`] old. An end that gives none for [`LOST`] and a round trip is
//! absent, so that an end that dies is known to be gone 2.5 s and a round trip later. Where the round trip is longer than half a second
//! that is too late: there, proof is asked for without pause, and an end is absent when none has come for [`SILENT`]. A link over which
//! nothing crosses is asked every [`IDLE`].

use super::challenges::Rtt;
use hopline_core::{Duration, Instant};
use hopline_wire::dproxy::tunnel::Speaks;

/// The other end of a link, as far as this end can tell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Peer {
    /// This end has just begun, and has not waited long enough.
    #[default]
    Sought,
    /// It has proved that it has the key, and answers.
    Present,
    /// Nothing is heard from its address that it could have sent.
    Absent,
    /// Messages from its address have this version of the protocol.
    OtherVersion(u8),
    /// Messages from its address prove another key.
    OtherKey,
    /// It has the key, and says other things beside greetings.
    OtherKind(Speaks),
}

/// Between greetings that nobody answers: at first, and at most.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);
/// Age of the last proof at which another one is asked for: while packets cross, and while none does.
const ACTIVE: Duration = Duration::from_secs(1);
const IDLE: Duration = Duration::from_secs(10);
/// Between greetings that ask for proof. On a link that loses a fifth in each direction all of them are lost once in 30,000 times.
const PROBE: Duration = Duration::from_millis(150);
/// An end that was asked for proof and gives none for so long and a round trip is not there.
const LOST: Duration = Duration::from_millis(1500);
/// Round trip beyond which proof is asked for without pause while packets cross.
const LONG: Duration = Duration::from_millis(500);
/// An end that is asked for proof without pause, and gave it, is not there if it gives none for so long and as much as round trips differ.
/// On a link that loses a fifth in each direction this happens twice a day.
const SILENT: Duration = Duration::from_millis(1800);
/// What was found out about an end without proof counts for so long, and nothing else in its place: a sender of forged datagrams cannot have
/// it change at will.
const FOUND: Duration = Duration::from_secs(5);

/// When what was heard, and when to greet.
#[derive(Debug)]
pub(super) struct Presence {
    peer: Peer,
    /// The last proof; before the first one, when this end began.
    proved: Instant,
    /// Since when another one is asked for.
    probing: Option<Instant>,
    found: Option<Instant>,
    due: Instant,
    pause: Duration,
    rtt: Rtt,
    /// Before the last request for proof, and since then.
    traffic: [Traffic; 2],
}

/// Traffic between two requests for proof.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Traffic {
    None,
    Crosses,
}

impl Presence {
    pub(super) const fn new() -> Self {
        let (proved, due) = (Instant::ZERO, Instant::ZERO);
        let rtt = Rtt { most: Duration::ZERO, spread: Duration::ZERO };
        let (pause, traffic) = (FIRST_PAUSE, [Traffic::None; 2]);
        Self { peer: Peer::Sought, proved, probing: None, found: None, due, pause, rtt, traffic }
    }

    pub(super) const fn peer(&self) -> Peer {
        self.peer
    }

    pub(super) fn is_present(&self) -> bool {
        self.peer == Peer::Present
    }

    /// Returns whether proof is asked for.
    pub(super) const fn is_probing(&self) -> bool {
        self.probing.is_some()
    }

    /// When to call [`Presence::is_due`].
    pub(super) const fn due(&self) -> Instant {
        self.due
    }

    /// The other end has proved that it is there now.
    pub(super) fn prove(&mut self, now: Instant) {
        let goes_on = self.rtt.most > LONG && self.traffic.contains(&Traffic::Crosses);
        self.probing = self.probing.filter(|_| goes_on);
        (self.peer, self.proved, self.found) = (Peer::Present, now, None);
        self.due = if self.probing.is_some() { self.due.min(now + PROBE) } else { now + IDLE };
        self.pause = LONGEST_PAUSE;
    }

    /// The round trip to the other end, as far as it has been measured.
    pub(super) const fn measured(&mut self, rtt: Rtt) {
        self.rtt = rtt;
    }

    /// A packet crosses the link.
    pub(super) fn note_traffic(&mut self) {
        self.traffic[1] = Traffic::Crosses;
        if self.is_present() && self.probing.is_none() {
            let age = if self.rtt.most > LONG { PROBE } else { ACTIVE };
            self.due = self.due.min(self.proved + age);
        }
    }

    /// Something has come from the other end's address that cannot be of an end like this one.
    pub(super) fn find(&mut self, now: Instant, found: Peer) {
        if !self.is_present() && (self.found.is_none() || self.peer == found) {
            (self.peer, self.found) = (found, Some(now));
        }
    }

    /// Another session has begun: greetings come quickly again.
    pub(super) fn hurry(&mut self, now: Instant) {
        (self.due, self.pause) = (now + FIRST_PAUSE, FIRST_PAUSE);
    }

    /// Returns whether a greeting is due, which then counts as sent.
    pub(super) fn is_due(&mut self, now: Instant) -> bool {
        if self.due > now {
            return false;
        }
        if self.proved == Instant::ZERO {
            self.proved = now;
        }
        if self.is_present() {
            let since = *self.probing.get_or_insert(now);
            let lost = (since + self.rtt.most + LOST).max(self.proved + self.rtt.spread + SILENT);
            if now < lost {
                self.traffic = [self.traffic[1], Traffic::None];
                self.due = (now + PROBE).min(lost);
                return true;
            }
            (self.peer, self.probing, self.pause) = (Peer::Absent, None, LONGEST_PAUSE);
        }
        let is_over = self.found.is_none_or(|found| now.since(found) >= FOUND);
        if is_over && (self.peer != Peer::Sought || now.since(self.proved) >= LOST) {
            (self.peer, self.found) = (Peer::Absent, None);
        }
        self.due = now + self.pause;
        self.pause = self.pause.saturating_mul(2).min(LONGEST_PAUSE);
        true
    }
}
