//! Decision between TPA and TCP: a state machine without sockets and clock.

use hopline_core::{Duration, Instant, settings};

settings! {
    /// Timeouts of TPA. Start from the default and use the setters.
    ///
    /// Once TCP is open, TPA has as much time again as TCP's handshake has taken, within two bounds.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Timeouts {
        /// Minimum time after TCP is open. Default 60 ms: TPA repeats its first segment after 50 ms, so that one loss does
        /// not decide.
        min_wait, with_min_wait: Duration as into,
        /// Maximum time after TCP is open. Default 150 ms. The kernel withholds the last ACK of TCP's handshake for 200 ms:
        /// with more, servers would accept connections that end without data.
        max_wait, with_max_wait: Duration as into,
        /// Time after TCP has failed. Default 3 s.
        tpa_only, with_tpa_only: Duration as into,
    }
}

impl Default for Timeouts {
    fn default() -> Self {
        let millis = Duration::from_millis;
        Self { min_wait: millis(60), max_wait: millis(150), tpa_only: millis(3000) }
    }
}

/// Progress of one attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// TCP's handshake has reached its last ACK.
    TcpOpened,
    /// TCP was refused, has timed out, or was reset before the decision.
    TcpFailed,
    /// The peer has answered over TPA.
    TpaOpened,
    /// TPA was refused, or has timed out.
    TpaFailed,
}

/// Result of a race.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// TPA carries the connection.
    Tpa,
    /// TCP carries the connection.
    Tcp,
    /// There is no connection.
    Neither,
}

/// State of one attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Attempt {
    NotStarted,
    Connecting,
    Open(Instant),
    Failed(Instant),
}

/// Race of two attempts to connect to a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Race {
    start: Instant,
    timeouts: Timeouts,
    tcp: Attempt,
    tpa: Attempt,
    decision: Option<Decision>,
}

impl Race {
    /// Starts with both attempts.
    #[must_use]
    pub fn new(now: Instant, patience: Timeouts) -> Self {
        Self {
            start: now,
            timeouts: patience,
            tcp: Attempt::Connecting,
            tpa: Attempt::Connecting,
            decision: None,
        }
    }

    /// Starts with TCP only: the peer is known not to answer over TPA.
    #[must_use]
    pub fn tcp_only(now: Instant) -> Self {
        Self { tpa: Attempt::NotStarted, ..Self::new(now, Timeouts::default()) }
    }

    /// Handles the progress of an attempt. Returns the decision once there is one; it never changes.
    pub fn handle_event(&mut self, now: Instant, event: Event) -> Option<Decision> {
        let (attempt, state) = match event {
            Event::TcpOpened => (&mut self.tcp, Attempt::Open(now)),
            Event::TcpFailed => (&mut self.tcp, Attempt::Failed(now)),
            Event::TpaOpened => (&mut self.tpa, Attempt::Open(now)),
            Event::TpaFailed => (&mut self.tpa, Attempt::Failed(now)),
        };
        match (*attempt, state) {
            (Attempt::Connecting, _) | (Attempt::Open(_), Attempt::Failed(_)) => *attempt = state,
            _ => {}
        }
        self.handle_timeout(now)
    }

    /// Handles expired timers. Returns the decision once there is one.
    pub fn handle_timeout(&mut self, now: Instant) -> Option<Decision> {
        if self.decision.is_none() {
            self.decision = self.decide(now);
        }
        self.decision
    }

    /// Returns the time of the next decision without any progress.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        if self.decision.is_some() || self.tpa != Attempt::Connecting {
            return None;
        }
        match self.tcp {
            Attempt::Open(at) => {
                let handshake = at.since(self.start);
                Some(at + handshake.max(self.timeouts.min_wait).min(self.timeouts.max_wait))
            }
            Attempt::Failed(at) => Some(at + self.timeouts.tpa_only),
            Attempt::Connecting | Attempt::NotStarted => None,
        }
    }

    /// Returns whether the peer is known to answer over TCP but not over TPA.
    #[must_use]
    pub fn is_tpa_silent(&self) -> bool {
        self.decision == Some(Decision::Tcp) && self.tpa != Attempt::NotStarted
    }

    fn decide(&self, now: Instant) -> Option<Decision> {
        let is_over = self.poll_timeout().is_some_and(|limit| now >= limit);
        match (self.tcp, self.tpa) {
            (_, Attempt::Open(_)) => Some(Decision::Tpa),
            (Attempt::Open(_), Attempt::Failed(_) | Attempt::NotStarted) => Some(Decision::Tcp),
            (Attempt::Failed(_), Attempt::Failed(_) | Attempt::NotStarted) => Some(Decision::Neither),
            (Attempt::Open(_), Attempt::Connecting) => is_over.then_some(Decision::Tcp),
            (Attempt::Failed(_), Attempt::Connecting) => is_over.then_some(Decision::Neither),
            (Attempt::Connecting | Attempt::NotStarted, _) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Decision::*;
    use super::Event::*;
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::from_millis(ms)
    }

    fn race() -> Race {
        Race::new(at(0), Timeouts::default())
    }

    #[test]
    fn tpa_that_answers_first_wins_at_once() {
        let mut race = race();
        assert_eq!(race.handle_event(at(100), TpaOpened), Some(Tpa));
        assert_eq!((race.poll_timeout(), race.is_tpa_silent()), (None, false));
    }

    #[test]
    fn tpa_that_answers_within_a_round_trip_after_tcp_wins() {
        let mut race = race();
        assert_eq!(race.handle_event(at(100), TcpOpened), None);
        assert_eq!(race.poll_timeout(), Some(at(200)));
        assert_eq!(race.handle_event(at(199), TpaOpened), Some(Tpa));
    }

    #[test]
    fn tcp_wins_a_round_trip_after_it_is_open_if_tpa_is_silent() {
        let mut race = race();
        race.handle_event(at(100), TcpOpened);
        assert_eq!(race.handle_timeout(at(199)), None);
        assert_eq!(race.handle_timeout(at(200)), Some(Tcp));
        assert!(race.is_tpa_silent());
        assert_eq!(race.handle_event(at(201), TpaOpened), Some(Tcp), "a decision is final");
    }

    #[test]
    fn the_wait_for_tpa_is_bounded() {
        for (handshake, limit) in [(0, 60), (1, 61), (60, 120), (149, 298), (600, 750), (3000, 3150)] {
            let mut race = race();
            race.handle_event(at(handshake), TcpOpened);
            assert_eq!(race.poll_timeout(), Some(at(limit)), "{handshake} ms");
        }
    }

    #[test]
    fn tcp_wins_at_once_if_tpa_is_refused() {
        let mut race = race();
        assert_eq!(race.handle_event(at(99), TpaFailed), None);
        assert_eq!(race.poll_timeout(), None, "TCP has limits of its own");
        assert_eq!(race.handle_event(at(100), TcpOpened), Some(Tcp));
        assert!(race.is_tpa_silent());
    }

    #[test]
    fn tcp_that_waits_for_tpa_wins_when_tpa_is_refused() {
        let mut race = race();
        race.handle_event(at(100), TcpOpened);
        assert_eq!(race.handle_event(at(130), TpaFailed), Some(Tcp));
    }

    #[test]
    fn tpa_wins_late_if_tcp_is_refused() {
        let mut race = race();
        assert_eq!(race.handle_event(at(100), TcpFailed), None);
        assert_eq!(race.handle_event(at(3099), TpaOpened), Some(Tpa));
    }

    #[test]
    fn a_peer_that_refuses_tcp_and_is_silent_over_udp_fails() {
        let mut race = race();
        race.handle_event(at(100), TcpFailed);
        assert_eq!(race.poll_timeout(), Some(at(3100)));
        assert_eq!(race.handle_timeout(at(3100)), Some(Neither));
        assert!(!race.is_tpa_silent(), "nothing is known of it");
    }

    #[test]
    fn refusals_over_both_transports_fail_in_either_order() {
        for events in [[TcpFailed, TpaFailed], [TpaFailed, TcpFailed]] {
            let mut race = race();
            assert_eq!(race.handle_event(at(100), events[0]), None);
            assert_eq!(race.handle_event(at(101), events[1]), Some(Neither));
        }
    }

    #[test]
    fn a_known_silent_peer_is_connected_without_delay() {
        let mut race = Race::tcp_only(at(0));
        assert_eq!(race.handle_event(at(100), TcpOpened), Some(Tcp));
        assert!(!race.is_tpa_silent(), "it was not tried");
        let mut race = Race::tcp_only(at(0));
        assert_eq!(race.handle_event(at(100), TcpFailed), Some(Neither));
    }

    #[test]
    fn tcp_that_is_reset_while_it_waits_has_failed() {
        let mut race = race();
        race.handle_event(at(100), TcpOpened);
        assert_eq!(race.handle_event(at(150), TcpFailed), None);
        assert_eq!(race.poll_timeout(), Some(at(3150)));
        assert_eq!(race.handle_event(at(200), TpaOpened), Some(Tpa));
    }

    #[test]
    fn a_failed_attempt_is_not_restarted() {
        let mut race = race();
        race.handle_event(at(100), TcpFailed);
        assert_eq!(race.handle_event(at(110), TcpOpened), None);
        assert_eq!(race.handle_event(at(120), TpaFailed), Some(Neither));
    }
}
