//! Presence of the other end: its last proof, and the time of the next greeting.
//!
//! While packets cross, this end requests proof when the last one is [`ACTIVE`] old. If none comes for
//! [`LOST`] and a round trip, the other end is absent: its death is detected after 2.5 s and a round trip. If
//! the round trip is longer than half a second, that would be too late. Then proof is requested continuously,
//! and the other end is absent if none has come for [`SILENT`]. On an idle link proof is requested every
//! [`IDLE`].

use super::challenges::Rtt;
use hopline_core::{Duration, Instant};
use hopline_wire::dproxy::tunnel::Speaks;

/// The other end of a link, as far as this end can tell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Peer {
    /// This end has just begun, and has not waited long enough.
    #[default]
    Sought,
    /// The other end has proved that it has the key, and answers.
    Present,
    /// No valid message comes from its address.
    Absent,
    /// Messages from its address have this version of the protocol.
    OtherVersion(u8),
    /// Messages from its address are authenticated with another key.
    OtherKey,
    /// The other end has the key, and sends another kind of messages.
    OtherKind(Speaks),
}

/// Interval of unanswered greetings: initial and maximum.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);
/// Age of the last proof at which another one is requested: while packets cross, and on an idle link.
const ACTIVE: Duration = Duration::from_secs(1);
const IDLE: Duration = Duration::from_secs(10);
/// Interval of greetings that request proof. On a link that loses a fifth in each direction all of them are
/// lost once in 30,000 times.
const PROBE: Duration = Duration::from_millis(150);
/// Time, beyond a round trip, without proof after a request until the other end counts as absent.
const LOST: Duration = Duration::from_millis(1500);
/// Round trip above which proof is requested continuously while packets cross.
const LONG: Duration = Duration::from_millis(500);
/// Time without proof, beyond the spread of round trips, until an end of which proof is requested
/// continuously counts as absent. On a link that loses a fifth in each direction this happens twice a day.
const SILENT: Duration = Duration::from_millis(1800);
/// Time for which a finding without proof is kept unchanged, so that a sender of forged datagrams cannot
/// change it at will.
const FOUND: Duration = Duration::from_secs(5);

/// State of the other end, and schedule of greetings.
#[derive(Debug)]
pub(super) struct Presence {
    peer: Peer,
    /// Time of the last proof; before the first one, of the start of this end.
    proved: Instant,
    /// Time since which proof is requested.
    probing: Option<Instant>,
    found: Option<Instant>,
    due: Instant,
    pause: Duration,
    rtt: Rtt,
    /// Traffic before the last request for proof, and since then.
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

    /// Returns whether proof is being requested.
    pub(super) const fn is_probing(&self) -> bool {
        self.probing.is_some()
    }

    /// Returns the time of the next call of [`Presence::is_due`].
    pub(super) const fn due(&self) -> Instant {
        self.due
    }

    /// Records a proof of presence.
    pub(super) fn prove(&mut self, now: Instant) {
        let goes_on = self.rtt.most > LONG && self.traffic.contains(&Traffic::Crosses);
        self.probing = self.probing.filter(|_| goes_on);
        (self.peer, self.proved, self.found) = (Peer::Present, now, None);
        self.due = if self.probing.is_some() { self.due.min(now + PROBE) } else { now + IDLE };
        self.pause = LONGEST_PAUSE;
    }

    /// Sets the measured round trip to the other end.
    pub(super) const fn measured(&mut self, rtt: Rtt) {
        self.rtt = rtt;
    }

    /// Records that a packet crosses the link.
    pub(super) fn note_traffic(&mut self) {
        self.traffic[1] = Traffic::Crosses;
        if self.is_present() && self.probing.is_none() {
            let age = if self.rtt.most > LONG { PROBE } else { ACTIVE };
            self.due = self.due.min(self.proved + age);
        }
    }

    /// Records a message from the other end's address that no end like this one can have sent.
    pub(super) fn find(&mut self, now: Instant, found: Peer) {
        if !self.is_present() && (self.found.is_none() || self.peer == found) {
            (self.peer, self.found) = (found, Some(now));
        }
    }

    /// Restarts frequent greetings after a new session has begun.
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
