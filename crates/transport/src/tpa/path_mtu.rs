//! Packetization layer path MTU discovery (RFC 8899), for the driver of an endpoint.
//!
//! Messages of routers are neither needed nor trusted. The search sends padded datagrams with [a
//! challenge](hopline_wire::tpa::Control::Challenge) that must not be fragmented. An echo shows that datagrams of this
//! length pass. Lengths are those of UDP payloads, in bytes.

use super::config::LEAST_MSS;
use hopline_core::{Duration, Instant};
use hopline_wire::tpa::{OPENING_LEN, RECEIPT_LEN, TAG_LEN, UDP_HEADER_LEN};

/// Length of the header and the tag of a data segment, bytes.
const HEADERS: u16 = (UDP_HEADER_LEN + TAG_LEN + RECEIPT_LEN) as u16;
/// BASE_PLPMTU (RFC 8899 §5.1.2), bytes: assumed to pass until it fails.
const BASE: u16 = 1200;
/// MIN_PLPMTU, bytes: passes, in fragments if necessary.
const LEAST: u16 = LEAST_MSS + HEADERS + OPENING_LEN as u16;
/// MAX_PROBES (§5.1.2): number of lost probes of one length that show that it does not pass.
const MOST_PROBES: u8 = 3;
/// Difference of lengths at which the search ends, bytes.
const NEAR: u16 = 20;
/// PMTU_RAISE_TIMER (§5.1.1): time until longer datagrams are tried again.
const RAISE: Duration = Duration::from_secs(600);
/// CONFIRMATION_TIMER (§5.1.1): interval between checks of the current length.
const CONFIRM: Duration = Duration::from_secs(60);
/// Least PROBE_TIMER (§5.1.1).
const LEAST_WAIT: Duration = Duration::from_secs(1);

/// Search for the longest datagram that passes a path.
///
/// # Example
///
/// ```
/// use hopline_core::{Duration, Instant};
/// use hopline_transport::tpa::PathMtu;
///
/// let mut search = PathMtu::new(1452);
/// let before = search.mss();
/// let mut now = Instant::ZERO;
/// while let Some(length) = search.poll_probe(now, Duration::from_millis(100), now) {
///     search.passed(now, length); // The peer has echoed a padded datagram of this length.
///     now += Duration::from_millis(10);
/// }
/// assert!(before < search.mss() && search.mss() <= 1452);
/// ```
#[derive(Clone, Debug)]
pub struct PathMtu {
    /// Largest length of interest.
    most: u16,
    /// Largest length that has passed.
    passes: u16,
    /// Smallest length that has failed; one more than `most` if there is none.
    fails: u16,
    state: State,
    /// Earliest time of the next search.
    raise_at: Instant,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// A probe of this length has to be sent.
    Due { length: u16, lost: u8 },
    /// The probe was sent; the answer is awaited until this time.
    Awaited { length: u16, lost: u8, sent: Instant, until: Instant },
    /// The search is complete until this time.
    Complete { until: Instant },
}

impl PathMtu {
    /// Creates a search for segments of at most `mss` bytes of data.
    #[must_use]
    pub fn new(mss: u16) -> Self {
        let most = mss.saturating_add(HEADERS).max(LEAST);
        let mut search = Self {
            most,
            passes: LEAST,
            fails: 0,
            state: State::Due { length: most, lost: 0 },
            raise_at: Instant::FAR_FUTURE,
        };
        search.begin();
        search
    }

    /// Returns the data bytes of a segment that passes, with room for opening parameters if they may be in the header.
    #[must_use]
    pub fn mss(&self) -> u16 {
        // Opening parameters are repeated until the peer is heard; an echo is heard.
        let headers = if self.passes > LEAST { HEADERS } else { HEADERS + OPENING_LEN as u16 };
        self.length() - headers
    }

    /// Returns the longest datagram that is assumed to pass.
    #[must_use]
    pub fn length(&self) -> u16 {
        let base = self.base();
        if self.fails > base { self.passes.max(base) } else { self.passes }
    }

    fn base(&self) -> u16 {
        BASE.min(self.most)
    }

    /// Returns the length of a probe to send now, if one is due. `timeout`: time allowed for an answer; `heard`: time of
    /// the last segment from the peer.
    pub fn poll_probe(&mut self, now: Instant, timeout: Duration, heard: Instant) -> Option<u16> {
        if let Some(at) = self.due()
            && at <= now
        {
            self.on_time(now, heard);
        }
        let State::Due { length, lost } = self.state else { return None };
        self.state = State::Awaited { length, lost, sent: now, until: now + timeout.max(LEAST_WAIT) };
        Some(length)
    }

    /// Returns the length of the outstanding probe.
    #[must_use]
    pub fn awaited(&self) -> Option<u16> {
        match self.state {
            State::Awaited { length, .. } => Some(length),
            _ => None,
        }
    }

    /// Returns the time at which [`poll_probe`](Self::poll_probe) has to be called.
    #[must_use]
    pub fn due(&self) -> Option<Instant> {
        match self.state {
            State::Due { .. } => Some(Instant::ZERO),
            State::Awaited { until, .. } | State::Complete { until } => Some(until),
        }
    }

    /// Records that a datagram of this length has passed.
    pub fn passed(&mut self, now: Instant, length: u16) {
        if self.awaited() != Some(length) {
            return;
        }
        self.passes = self.passes.max(length);
        self.fails = self.fails.max(length + 1);
        self.go_on(now);
    }

    /// Records that a datagram of this length cannot be sent by this host.
    pub fn cannot_leave(&mut self, now: Instant, length: u16) {
        if self.awaited() == Some(length) {
            self.failed(now, length);
        }
    }

    /// Starts a check of the current length after consecutive losses of full segments (§4.3).
    pub fn suspect(&mut self) {
        if let State::Complete { .. } = self.state
            && self.passes > LEAST
        {
            self.state = State::Due { length: self.passes, lost: 0 };
        }
    }

    fn begin(&mut self) {
        (self.fails, self.raise_at) = (self.most + 1, Instant::FAR_FUTURE);
        self.state = State::Due { length: self.most, lost: 0 };
    }

    fn on_time(&mut self, now: Instant, heard: Instant) {
        match self.state {
            State::Due { .. } => {}
            State::Complete { .. } if now >= self.raise_at => self.begin(),
            State::Complete { .. } => self.state = State::Due { length: self.passes, lost: 0 },
            // Of a peer that was not heard since, nothing can be said.
            State::Awaited { length, lost, sent, .. } if heard <= sent => {
                self.state = State::Due { length, lost };
            }
            State::Awaited { length, lost, .. } if lost + 1 < MOST_PROBES => {
                self.state = State::Due { length, lost: lost + 1 };
            }
            State::Awaited { length, .. } => self.failed(now, length),
        }
    }

    fn failed(&mut self, now: Instant, length: u16) {
        if length <= self.passes {
            // What passed does not any more: a black hole (§4.3). The path is another one.
            self.passes = LEAST;
        }
        self.fails = self.fails.min(length);
        self.go_on(now);
    }

    /// Continues with half of the remaining interval, but first with the base length, which passes most paths.
    fn go_on(&mut self, now: Instant) {
        let base = self.base();
        let length = if self.passes < base && self.fails > base {
            base
        } else {
            self.passes + (self.fails - self.passes) / 2
        };
        self.state = if self.fails - self.passes <= NEAR {
            if self.raise_at == Instant::FAR_FUTURE {
                self.raise_at = now + RAISE;
            }
            State::Complete { until: self.raise_at.min(now + CONFIRM) }
        } else {
            State::Due { length, lost: 0 }
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMEOUT: Duration = Duration::from_millis(300);

    fn at(ms: u64) -> Instant {
        Instant::from_millis(ms)
    }

    /// Runs a search until it is complete, over a path that passes datagrams of at most `room` bytes at once, to a peer
    /// that always answers. Returns the lengths of the probes and the end time.
    fn searched(search: &mut PathMtu, room: u16, mut now: Instant) -> (Vec<u16>, Instant) {
        let mut probes = Vec::new();
        loop {
            if let Some(length) = search.poll_probe(now, TIMEOUT, now) {
                probes.push(length);
                if length <= room {
                    search.passed(now, length);
                }
                continue;
            }
            match search.state {
                State::Complete { .. } => return (probes, now),
                _ => now = search.due().unwrap(),
            }
        }
    }

    #[test]
    fn what_is_wanted_is_tried_first_and_that_is_all_if_it_passes() {
        let mut search = PathMtu::new(1448);
        assert_eq!((search.length(), search.mss()), (1200, 1160));
        assert_eq!(searched(&mut search, 1472, at(0)), (vec![1472], at(0)));
        assert_eq!((search.length(), search.mss()), (1472, 1448));
    }

    #[test]
    fn a_narrower_path_is_found_by_halves_and_each_length_is_tried_three_times() {
        // A router with an MTU of 1400 that says nothing: 1372 bytes over IPv4.
        let mut search = PathMtu::new(1448);
        let (probes, end) = searched(&mut search, 1372, at(0));
        assert_eq!(probes, [1472, 1472, 1472, 1200, 1336, 1404, 1404, 1404, 1370, 1387, 1387, 1387]);
        assert_eq!((search.length(), end), (1370, at(9000)));
    }

    #[test]
    fn below_what_most_paths_have_room_for_the_least_is_the_start() {
        let mut search = PathMtu::new(1448);
        let (probes, _) = searched(&mut search, 600, at(0));
        assert_eq!(probes.iter().filter(|&&length| length == 1200).count(), 3);
        assert!((584..=600).contains(&search.length()), "{}", search.length());
    }

    #[test]
    fn a_peer_that_is_not_heard_proves_nothing() {
        let mut search = PathMtu::new(1448);
        for second in 0..100 {
            assert_eq!(search.poll_probe(at(second * 1000), TIMEOUT, at(0)), Some(1472));
        }
        search.passed(at(100_000), 1472);
        assert_eq!(search.length(), 1472);
    }

    #[test]
    fn what_cannot_leave_is_not_tried_again() {
        let mut search = PathMtu::new(1448);
        assert_eq!(search.poll_probe(at(0), TIMEOUT, at(0)), Some(1472));
        search.cannot_leave(at(0), 1472);
        assert_eq!(search.poll_probe(at(0), TIMEOUT, at(0)), Some(1200));
    }

    #[test]
    fn it_is_confirmed_every_minute_and_tried_anew_after_ten() {
        let mut search = PathMtu::new(1448);
        let (_, now) = searched(&mut search, 1372, at(0));
        assert_eq!(search.due(), Some(now + CONFIRM));
        let (probes, _) = searched(&mut search, 1372, now + CONFIRM);
        assert_eq!(probes, [1370]);
        let (probes, _) = searched(&mut search, 1472, now + RAISE);
        assert_eq!((probes, search.length()), (vec![1472], 1472));
    }

    #[test]
    fn a_black_hole_is_left_by_searching_anew() {
        let mut search = PathMtu::new(1448);
        let (_, now) = searched(&mut search, 1472, at(0));
        search.suspect();
        let (probes, _) = searched(&mut search, 1300, now);
        assert_eq!(probes[..4], [1472, 1472, 1472, 1200]);
        assert!((1284..=1300).contains(&search.length()), "{}", search.length());
    }

    #[test]
    fn an_echo_of_what_was_not_asked_is_no_proof() {
        let mut search = PathMtu::new(1448);
        search.passed(at(0), 1472);
        search.poll_probe(at(0), TIMEOUT, at(0));
        search.passed(at(0), 1473);
        search.passed(at(0), 1000);
        assert_eq!(search.length(), 1200);
    }

    #[test]
    fn short_segments_are_not_searched_for_long_ones() {
        let mut search = PathMtu::new(700);
        assert_eq!((search.length(), search.mss()), (724, 684));
        assert_eq!(searched(&mut search, 1472, at(0)).0, [724]);
        assert_eq!(search.mss(), 700);
    }
}
