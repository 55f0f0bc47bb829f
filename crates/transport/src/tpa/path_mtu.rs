//! Packetization layer path MTU discovery (RFC 8899), for the driver of an endpoint.
//!
//! Messages of routers are neither needed nor trusted. The search sends padded datagrams with [a
//! challenge](hopline_wire::tpa::Control::Challenge) that must not be fragmented. An echo shows that datagrams of this
//! length pass. Lengths are those of UDP payloads, in bytes.

use super::config::MIN_MSS;
use hopline_core::{Duration, Instant};
use hopline_wire::tpa::{OPENING_LEN, RECEIPT_LEN, TAG_LEN, UDP_HEADER_LEN};

/// Length of the header and the tag of a data segment, bytes.
const HEADERS: u16 = (UDP_HEADER_LEN + TAG_LEN + RECEIPT_LEN) as u16;
/// BASE_PLPMTU (RFC 8899 §5.1.2), bytes: assumed to pass until it fails.
const BASE_PLPMTU: u16 = 1200;
/// MIN_PLPMTU, bytes: passes, in fragments if necessary.
const MIN_PLPMTU: u16 = MIN_MSS + HEADERS + OPENING_LEN as u16;
/// MAX_PROBES (§5.1.2): number of lost probes of one length that show that it does not pass.
const MAX_PROBES: u8 = 3;
/// Difference of lengths at which the search ends, bytes.
const SEARCH_PRECISION: u16 = 20;
/// PMTU_RAISE_TIMER (§5.1.1): time until longer datagrams are tried again.
const PMTU_RAISE_TIMER: Duration = Duration::from_secs(600);
/// CONFIRMATION_TIMER (§5.1.1): interval between checks of the current length.
const CONFIRMATION_TIMER: Duration = Duration::from_secs(60);
/// Least PROBE_TIMER (§5.1.1).
const MIN_PROBE_TIMER: Duration = Duration::from_secs(1);

/// Search for the longest datagram that passes a path.
///
/// # Example
///
/// ```
/// use hopline_core::{Duration, Instant};
/// use hopline_transport::tpa::PathMtuSearch;
///
/// let mut search = PathMtuSearch::new(1452);
/// let before = search.mss();
/// let mut now = Instant::ZERO;
/// while let Some(length) = search.poll_probe(now, Duration::from_millis(100), now) {
///     search.on_probe_passed(now, length); // The peer has echoed a padded datagram of this length.
///     now += Duration::from_millis(10);
/// }
/// assert!(before < search.mss() && search.mss() <= 1452);
/// ```
#[derive(Clone, Debug)]
pub struct PathMtuSearch {
    /// Largest length of interest.
    max_length: u16,
    /// Largest length that has passed.
    largest_passed: u16,
    /// Smallest length that has failed; one more than `most` if there is none.
    smallest_failed: u16,
    state: State,
    /// Earliest time of the next search.
    raise_at: Instant,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// A probe of this length has to be sent.
    ProbeDue { length: u16, lost: u8 },
    /// The probe was sent; the answer is awaited until this time.
    ProbeSent { length: u16, lost: u8, sent: Instant, until: Instant },
    /// The search is complete until this time.
    Complete { until: Instant },
}

impl PathMtuSearch {
    /// Creates a search for segments of at most `mss` bytes of data.
    #[must_use]
    pub fn new(mss: u16) -> Self {
        let most = mss.saturating_add(HEADERS).max(MIN_PLPMTU);
        let mut search = Self {
            max_length: most,
            largest_passed: MIN_PLPMTU,
            smallest_failed: 0,
            state: State::ProbeDue { length: most, lost: 0 },
            raise_at: Instant::FAR_FUTURE,
        };
        search.start_search();
        search
    }

    /// Returns the data bytes of a segment that passes, with room for opening parameters if they may be in the header.
    #[must_use]
    pub fn mss(&self) -> u16 {
        // Opening parameters are repeated until the peer is heard; an echo is heard.
        let headers = if self.largest_passed > MIN_PLPMTU { HEADERS } else { HEADERS + OPENING_LEN as u16 };
        self.length() - headers
    }

    /// Returns the longest datagram that is assumed to pass.
    #[must_use]
    pub fn length(&self) -> u16 {
        let base = self.base();
        if self.smallest_failed > base { self.largest_passed.max(base) } else { self.largest_passed }
    }

    fn base(&self) -> u16 {
        BASE_PLPMTU.min(self.max_length)
    }

    /// Returns the length of a probe to send now, if one is due. `timeout`: time allowed for an answer; `heard`: time of
    /// the last segment from the peer.
    pub fn poll_probe(&mut self, now: Instant, timeout: Duration, heard: Instant) -> Option<u16> {
        if let Some(at) = self.poll_timeout()
            && at <= now
        {
            self.handle_timeout(now, heard);
        }
        let State::ProbeDue { length, lost } = self.state else { return None };
        self.state = State::ProbeSent { length, lost, sent: now, until: now + timeout.max(MIN_PROBE_TIMER) };
        Some(length)
    }

    /// Returns the length of the outstanding probe.
    #[must_use]
    pub fn outstanding_probe(&self) -> Option<u16> {
        match self.state {
            State::ProbeSent { length, .. } => Some(length),
            _ => None,
        }
    }

    /// Returns the time at which [`poll_probe`](Self::poll_probe) has to be called.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        match self.state {
            State::ProbeDue { .. } => Some(Instant::ZERO),
            State::ProbeSent { until, .. } | State::Complete { until } => Some(until),
        }
    }

    /// Records that a datagram of this length has passed.
    pub fn on_probe_passed(&mut self, now: Instant, length: u16) {
        if self.outstanding_probe() != Some(length) {
            return;
        }
        self.largest_passed = self.largest_passed.max(length);
        self.smallest_failed = self.smallest_failed.max(length + 1);
        self.continue_search(now);
    }

    /// Records that a datagram of this length cannot be sent by this host.
    pub fn on_send_too_long(&mut self, now: Instant, length: u16) {
        if self.outstanding_probe() == Some(length) {
            self.on_probe_lost(now, length);
        }
    }

    /// Starts a check of the current length after consecutive losses of full segments (§4.3).
    pub fn check_current_length(&mut self) {
        if let State::Complete { .. } = self.state
            && self.largest_passed > MIN_PLPMTU
        {
            self.state = State::ProbeDue { length: self.largest_passed, lost: 0 };
        }
    }

    fn start_search(&mut self) {
        (self.smallest_failed, self.raise_at) = (self.max_length + 1, Instant::FAR_FUTURE);
        self.state = State::ProbeDue { length: self.max_length, lost: 0 };
    }

    fn handle_timeout(&mut self, now: Instant, heard: Instant) {
        match self.state {
            State::ProbeDue { .. } => {}
            State::Complete { .. } if now >= self.raise_at => self.start_search(),
            State::Complete { .. } => self.state = State::ProbeDue { length: self.largest_passed, lost: 0 },
            // Of a peer that was not heard since, nothing can be said.
            State::ProbeSent { length, lost, sent, .. } if heard <= sent => {
                self.state = State::ProbeDue { length, lost };
            }
            State::ProbeSent { length, lost, .. } if lost + 1 < MAX_PROBES => {
                self.state = State::ProbeDue { length, lost: lost + 1 };
            }
            State::ProbeSent { length, .. } => self.on_probe_lost(now, length),
        }
    }

    fn on_probe_lost(&mut self, now: Instant, length: u16) {
        if length <= self.largest_passed {
            // What passed does not any more: a black hole (§4.3). The path is another one.
            self.largest_passed = MIN_PLPMTU;
        }
        self.smallest_failed = self.smallest_failed.min(length);
        self.continue_search(now);
    }

    /// Continues with half of the remaining interval, but first with the base length, which passes most paths.
    fn continue_search(&mut self, now: Instant) {
        let base = self.base();
        let length = if self.largest_passed < base && self.smallest_failed > base {
            base
        } else {
            self.largest_passed + (self.smallest_failed - self.largest_passed) / 2
        };
        self.state = if self.smallest_failed - self.largest_passed <= SEARCH_PRECISION {
            if self.raise_at == Instant::FAR_FUTURE {
                self.raise_at = now + PMTU_RAISE_TIMER;
            }
            State::Complete { until: self.raise_at.min(now + CONFIRMATION_TIMER) }
        } else {
            State::ProbeDue { length, lost: 0 }
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
    fn run_search(search: &mut PathMtuSearch, room: u16, mut now: Instant) -> (Vec<u16>, Instant) {
        let mut probes = Vec::new();
        loop {
            if let Some(length) = search.poll_probe(now, TIMEOUT, now) {
                probes.push(length);
                if length <= room {
                    search.on_probe_passed(now, length);
                }
                continue;
            }
            match search.state {
                State::Complete { .. } => return (probes, now),
                _ => now = search.poll_timeout().unwrap(),
            }
        }
    }

    #[test]
    fn the_largest_length_is_probed_first_and_ends_the_search_if_it_passes() {
        let mut search = PathMtuSearch::new(1448);
        assert_eq!((search.length(), search.mss()), (1200, 1160));
        assert_eq!(run_search(&mut search, 1472, at(0)), (vec![1472], at(0)));
        assert_eq!((search.length(), search.mss()), (1472, 1448));
    }

    #[test]
    fn a_smaller_mtu_is_found_by_binary_search_with_three_probes_per_length() {
        // A router with an MTU of 1400 that says nothing: 1372 bytes over IPv4.
        let mut search = PathMtuSearch::new(1448);
        let (probes, end) = run_search(&mut search, 1372, at(0));
        assert_eq!(probes, [1472, 1472, 1472, 1200, 1336, 1404, 1404, 1404, 1370, 1387, 1387, 1387]);
        assert_eq!((search.length(), end), (1370, at(9000)));
    }

    #[test]
    fn if_the_base_length_fails_the_search_starts_at_the_minimum() {
        let mut search = PathMtuSearch::new(1448);
        let (probes, _) = run_search(&mut search, 600, at(0));
        assert_eq!(probes.iter().filter(|&&length| length == 1200).count(), 3);
        assert!((584..=600).contains(&search.length()), "{}", search.length());
    }

    #[test]
    fn losses_while_the_peer_is_silent_do_not_count() {
        let mut search = PathMtuSearch::new(1448);
        for second in 0..100 {
            assert_eq!(search.poll_probe(at(second * 1000), TIMEOUT, at(0)), Some(1472));
        }
        search.on_probe_passed(at(100_000), 1472);
        assert_eq!(search.length(), 1472);
    }

    #[test]
    fn a_length_that_the_host_cannot_send_is_not_probed_again() {
        let mut search = PathMtuSearch::new(1448);
        assert_eq!(search.poll_probe(at(0), TIMEOUT, at(0)), Some(1472));
        search.on_send_too_long(at(0), 1472);
        assert_eq!(search.poll_probe(at(0), TIMEOUT, at(0)), Some(1200));
    }

    #[test]
    fn the_length_is_confirmed_every_minute_and_raised_after_ten() {
        let mut search = PathMtuSearch::new(1448);
        let (_, now) = run_search(&mut search, 1372, at(0));
        assert_eq!(search.poll_timeout(), Some(now + CONFIRMATION_TIMER));
        let (probes, _) = run_search(&mut search, 1372, now + CONFIRMATION_TIMER);
        assert_eq!(probes, [1370]);
        let (probes, _) = run_search(&mut search, 1472, now + PMTU_RAISE_TIMER);
        assert_eq!((probes, search.length()), (vec![1472], 1472));
    }

    #[test]
    fn a_black_hole_restarts_the_search() {
        let mut search = PathMtuSearch::new(1448);
        let (_, now) = run_search(&mut search, 1472, at(0));
        search.check_current_length();
        let (probes, _) = run_search(&mut search, 1300, now);
        assert_eq!(probes[..4], [1472, 1472, 1472, 1200]);
        assert!((1284..=1300).contains(&search.length()), "{}", search.length());
    }

    #[test]
    fn an_echo_of_an_unsent_probe_is_ignored() {
        let mut search = PathMtuSearch::new(1448);
        search.on_probe_passed(at(0), 1472);
        search.poll_probe(at(0), TIMEOUT, at(0));
        search.on_probe_passed(at(0), 1473);
        search.on_probe_passed(at(0), 1000);
        assert_eq!(search.length(), 1200);
    }

    #[test]
    fn the_search_does_not_exceed_the_segment_size() {
        let mut search = PathMtuSearch::new(700);
        assert_eq!((search.length(), search.mss()), (724, 684));
        assert_eq!(run_search(&mut search, 1472, at(0)).0, [724]);
        assert_eq!(search.mss(), 700);
    }
}
