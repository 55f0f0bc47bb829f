//! Presence of the other end: its last proof, and the time of the next greeting.
//!
//! While packets cross, this end requests proof when the last one is [`ACTIVE_PROOF_INTERVAL`] old. If none comes for
//! [`PROBE_TIMEOUT`] and a round trip, the other end is absent: its death is detected after 2.5 s and a round trip. If
//! the round trip is longer than half a second, that would be too late. Then proof is requested continuously,
//! and the other end is absent if none has come for [`SILENCE_TIMEOUT`]. On an idle link proof is requested every
//! [`IDLE_PROOF_INTERVAL`].

use super::challenges::RttRange;
use hopline_core::{Duration, Instant};
use hopline_wire::dproxy::tunnel::MessageFormat;

/// The other end of a link, as far as this end can tell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PeerStatus {
    /// This end has just begun, and has not waited long enough.
    #[default]
    Unknown,
    /// The other end has proved that it has the key, and answers.
    Present,
    /// No valid message comes from its address.
    Absent,
    /// Messages from its address have this version of the protocol.
    OtherVersion(u8),
    /// Messages from its address are authenticated with another key.
    OtherKey,
    /// The other end has the key, and sends another kind of messages.
    OtherFormat(MessageFormat),
}

/// Interval of unanswered greetings: initial and maximum.
const INITIAL_HANDSHAKE_INTERVAL: Duration = Duration::from_millis(50);
const MAX_HANDSHAKE_INTERVAL: Duration = Duration::from_secs(1);
/// Age of the last proof at which another one is requested: while packets cross, and on an idle link.
const ACTIVE_PROOF_INTERVAL: Duration = Duration::from_secs(1);
const IDLE_PROOF_INTERVAL: Duration = Duration::from_secs(10);
/// Interval of greetings that request proof. On a link that loses a fifth in each direction all of them are
/// lost once in 30,000 times.
const PROBE_INTERVAL: Duration = Duration::from_millis(150);
/// Time, beyond a round trip, without proof after a request until the other end counts as absent.
const PROBE_TIMEOUT: Duration = Duration::from_millis(1500);
/// Round trip above which proof is requested continuously while packets cross.
const LONG_RTT: Duration = Duration::from_millis(500);
/// Time without proof, beyond the spread of round trips, until an end of which proof is requested
/// continuously counts as absent. On a link that loses a fifth in each direction this happens twice a day.
const SILENCE_TIMEOUT: Duration = Duration::from_millis(1800);
/// Time for which a finding without proof is kept unchanged, so that a sender of forged datagrams cannot
/// change it at will.
const FINDING_LIFETIME: Duration = Duration::from_secs(5);

/// State of the other end, and schedule of greetings.
#[derive(Debug)]
pub(super) struct PeerPresence {
    peer: PeerStatus,
    /// Time of the last proof; before the first one, of the start of this end.
    last_proof: Instant,
    /// Time since which proof is requested.
    probing: Option<Instant>,
    last_finding: Option<Instant>,
    next_handshake: Instant,
    handshake_interval: Duration,
    rtt: RttRange,
    /// Traffic before the last request for proof, and since then.
    traffic: [Traffic; 2],
}

/// Traffic between two requests for proof.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Traffic {
    None,
    Crosses,
}

impl PeerPresence {
    pub(super) const fn new() -> Self {
        let (proved, due) = (Instant::ZERO, Instant::ZERO);
        let rtt = RttRange { max: Duration::ZERO, spread: Duration::ZERO };
        let (pause, traffic) = (INITIAL_HANDSHAKE_INTERVAL, [Traffic::None; 2]);
        Self {
            peer: PeerStatus::Unknown,
            last_proof: proved,
            probing: None,
            last_finding: None,
            next_handshake: due,
            handshake_interval: pause,
            rtt,
            traffic,
        }
    }

    pub(super) const fn peer(&self) -> PeerStatus {
        self.peer
    }

    pub(super) fn is_present(&self) -> bool {
        self.peer == PeerStatus::Present
    }

    /// Returns whether proof is being requested.
    pub(super) const fn is_probing(&self) -> bool {
        self.probing.is_some()
    }

    /// Returns the time of the next call of [`PeerPresence::poll_handshake`].
    pub(super) const fn next_handshake(&self) -> Instant {
        self.next_handshake
    }

    /// Records a proof of presence.
    pub(super) fn record_proof(&mut self, now: Instant) {
        let goes_on = self.rtt.max > LONG_RTT && self.traffic.contains(&Traffic::Crosses);
        self.probing = self.probing.filter(|_| goes_on);
        (self.peer, self.last_proof, self.last_finding) = (PeerStatus::Present, now, None);
        self.next_handshake = if self.probing.is_some() {
            self.next_handshake.min(now + PROBE_INTERVAL)
        } else {
            now + IDLE_PROOF_INTERVAL
        };
        self.handshake_interval = MAX_HANDSHAKE_INTERVAL;
    }

    /// Sets the measured round trip to the other end.
    pub(super) const fn set_rtt(&mut self, rtt: RttRange) {
        self.rtt = rtt;
    }

    /// Records that a packet crosses the link.
    pub(super) fn record_traffic(&mut self) {
        self.traffic[1] = Traffic::Crosses;
        if self.is_present() && self.probing.is_none() {
            let age = if self.rtt.max > LONG_RTT { PROBE_INTERVAL } else { ACTIVE_PROOF_INTERVAL };
            self.next_handshake = self.next_handshake.min(self.last_proof + age);
        }
    }

    /// Records a message from the other end's address that no end like this one can have sent.
    pub(super) fn record_finding(&mut self, now: Instant, found: PeerStatus) {
        if !self.is_present() && (self.last_finding.is_none() || self.peer == found) {
            (self.peer, self.last_finding) = (found, Some(now));
        }
    }

    /// Restarts frequent greetings after a new session has begun.
    pub(super) fn restart_handshakes(&mut self, now: Instant) {
        (self.next_handshake, self.handshake_interval) =
            (now + INITIAL_HANDSHAKE_INTERVAL, INITIAL_HANDSHAKE_INTERVAL);
    }

    /// Returns whether a greeting is due, which then counts as sent.
    pub(super) fn poll_handshake(&mut self, now: Instant) -> bool {
        if self.next_handshake > now {
            return false;
        }
        if self.last_proof == Instant::ZERO {
            self.last_proof = now;
        }
        if self.is_present() {
            let since = *self.probing.get_or_insert(now);
            let lost = (since + self.rtt.max + PROBE_TIMEOUT)
                .max(self.last_proof + self.rtt.spread + SILENCE_TIMEOUT);
            if now < lost {
                self.traffic = [self.traffic[1], Traffic::None];
                self.next_handshake = (now + PROBE_INTERVAL).min(lost);
                return true;
            }
            (self.peer, self.probing, self.handshake_interval) =
                (PeerStatus::Absent, None, MAX_HANDSHAKE_INTERVAL);
        }
        let is_over = self.last_finding.is_none_or(|found| now.since(found) >= FINDING_LIFETIME);
        if is_over && (self.peer != PeerStatus::Unknown || now.since(self.last_proof) >= PROBE_TIMEOUT) {
            (self.peer, self.last_finding) = (PeerStatus::Absent, None);
        }
        self.next_handshake = now + self.handshake_interval;
        self.handshake_interval = self.handshake_interval.saturating_mul(2).min(MAX_HANDSHAKE_INTERVAL);
        true
    }
}
