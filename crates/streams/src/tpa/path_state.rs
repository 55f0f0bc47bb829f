//! Path of a connection: address of the peer, path MTU, and use of GSO.

use super::tokens::TokenKey;
use crate::udp::Path;
use bytes::Bytes;
use hopline_core::{Duration, Instant};
use hopline_transport::tpa::{Endpoint, PathMtuSearch, State, Stats};
use hopline_wire::tpa::{ChallengeToken, Control, Segment, Tag};
use std::net::SocketAddr;

/// Timeout of a path challenge to a new address, after which it is repeated.
const CHALLENGE_RETRY: Duration = Duration::from_millis(100);
/// Consecutive timeouts of segments after which the path MTU is checked.
const MTU_CHECK_TIMEOUTS: u64 = 3;
/// Consecutive losses of whole GSO groups after which segments leave one by one.
const MAX_LOST_BURSTS: u8 = 3;

/// Path state of one connection.
#[derive(Debug)]
pub(super) struct PathState {
    /// Validated path to the peer.
    path: Path,
    /// Possible new address of the peer, and the time of the last challenge to it.
    candidate: Option<(SocketAddr, Instant)>,
    mtu: PathMtuSearch,
    gso: GsoState,
    /// State at the last acknowledgement.
    progress: Progress,
}

/// Use of GSO groups, which some address translators break: the kernel's own leaves them with wrong checksums.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum GsoState {
    /// GSO is used. `lost` whole groups were lost in a row; `under_way` is the state at the departure of the group in
    /// flight.
    Enabled { lost: u8, under_way: Option<Progress> },
    /// GSO is not used: groups never arrive.
    Disabled,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Progress {
    acknowledged: u64,
    timeouts: u64,
}

impl Progress {
    fn of(stats: &Stats) -> Self {
        Self { acknowledged: stats.bytes_acked, timeouts: stats.timeouts }
    }
}

impl PathState {
    pub(super) fn new(path: Path, mss: u16) -> Self {
        Self {
            path,
            candidate: None,
            mtu: PathMtuSearch::new(mss),
            gso: GsoState::Enabled { lost: 0, under_way: None },
            progress: Progress::default(),
        }
    }

    // ---- where to ----

    pub(super) fn path(&self) -> Path {
        self.path
    }

    /// Records a segment with the tag of this connection from `path`. Returns whether to challenge its address. Until an
    /// answer arrives, no other segment goes there: the tag authenticates the sender, but not its address.
    pub(super) fn record_source(&mut self, now: Instant, path: Path) -> bool {
        if path.peer == self.path.peer {
            // Update the local address that the peer uses, if it is known.
            self.path.local = self.path.local.and(path.local);
            return false;
        }
        let lately = |&(peer, at): &(SocketAddr, Instant)| peer == path.peer && now < at + CHALLENGE_RETRY;
        if self.candidate.as_ref().is_some_and(lately) {
            return false;
        }
        self.candidate = Some((path.peer, now));
        true
    }

    /// Records that the peer has proved its new address.
    pub(super) fn set_path(&mut self, path: Path) {
        self.path = Path { peer: path.peer, local: self.path.local.and(path.local) };
        self.candidate = None;
    }

    // ---- how long ----

    /// Returns the maximum data of a segment, in bytes.
    pub(super) fn mss(&self) -> u16 {
        self.mtu.mss()
    }

    /// Returns a path MTU probe, if one is due.
    pub(super) fn probe(
        &mut self,
        now: Instant,
        endpoint: &Endpoint<Bytes>,
        trust: &TokenKey,
    ) -> Option<Segment<Bytes>> {
        let peer = endpoint.peer_tag().filter(|_| self.has_much_to_send(endpoint))?;
        let own = endpoint.tag()?;
        let length = self.mtu.poll_probe(now, endpoint.rto(), endpoint.last_heard())?;
        let question = challenge(peer, trust.token(now, own, self.path.peer, length));
        let padding = usize::from(length) - question.udp_len();
        Some(Segment { payload: Bytes::from(vec![0; padding]), ..question })
    }

    /// Records that a probe exceeds the MTU of the interface.
    pub(super) fn handle_send_failure(&mut self, now: Instant, length: u16) {
        self.mtu.on_send_too_long(now, length);
    }

    /// Returns whether `token` is the echo of a path MTU probe. If so, segments may become longer.
    pub(super) fn handle_mtu_echo(
        &mut self,
        now: Instant,
        own: Tag,
        token: ChallengeToken,
        trust: &TokenKey,
    ) -> bool {
        let passed = self
            .mtu
            .outstanding_probe()
            .filter(|&length| trust.is_valid(now, own, self.path.peer, length, token));
        if let Some(length) = passed {
            self.mtu.on_probe_passed(now, length);
        }
        passed.is_some()
    }

    /// Returns the time of the next path MTU probe.
    pub(super) fn due(&self, endpoint: &Endpoint<Bytes>) -> Option<Instant> {
        self.mtu.poll_timeout().filter(|_| endpoint.peer_tag().is_some() && self.has_much_to_send(endpoint))
    }

    /// Returns whether longer segments would help: a sender of few data does not need them.
    fn has_much_to_send(&self, endpoint: &Endpoint<Bytes>) -> bool {
        endpoint.state() != State::Closed && endpoint.unacknowledged() >= self.mss().into()
    }

    // ---- how many at once ----

    /// Returns whether GSO groups may be used.
    pub(super) fn may_use_gso(&self) -> bool {
        self.gso != GsoState::Disabled
    }

    /// Records the departure of a GSO group.
    pub(super) fn record_burst(&mut self, stats: &Stats) {
        if let GsoState::Enabled { under_way: under_way @ None, .. } = &mut self.gso {
            *under_way = Some(Progress::of(stats));
        }
    }

    // ---- what came of it ----

    /// Evaluates acknowledgements and timeouts since the last call.
    pub(super) fn update(&mut self, stats: &Stats) {
        let now = Progress::of(stats);
        if now.acknowledged != self.progress.acknowledged {
            self.progress = now;
        } else if now.timeouts >= self.progress.timeouts + MTU_CHECK_TIMEOUTS {
            self.progress = now;
            self.mtu.check_current_length();
        }
        if let GsoState::Enabled { lost, under_way: Some(then) } = self.gso {
            self.gso = match lost + 1 {
                _ if now.acknowledged != then.acknowledged => GsoState::Enabled { lost: 0, under_way: None },
                _ if now.timeouts == then.timeouts => self.gso,
                MAX_LOST_BURSTS => GsoState::Disabled,
                lost => GsoState::Enabled { lost, under_way: None },
            };
        }
    }
}

/// Returns a path challenge: the receiver has to echo `token`.
pub(super) fn challenge(peer: Tag, token: ChallengeToken) -> Segment<Bytes> {
    Segment { control: Control::Challenge(token), tag: Some(peer), ..Segment::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(port: u16) -> Path {
        Path { peer: ([127, 0, 0, 1], port).into(), local: None }
    }

    fn stats(acknowledged: u64, timeouts: u64) -> Stats {
        let mut stats = Stats::default();
        (stats.bytes_acked, stats.timeouts) = (acknowledged, timeouts);
        stats
    }

    #[test]
    fn a_possible_new_address_is_challenged_and_used_only_after_the_answer() {
        let mut route = PathState::new(path(1), 1448);
        let at = Instant::from_millis;
        assert!(!route.record_source(at(0), path(1)));
        assert!(route.record_source(at(0), path(2)));
        assert!(!route.record_source(at(99), path(2)) && route.record_source(at(100), path(2)));
        assert!(route.record_source(at(101), path(3)), "and again elsewhere");
        assert_eq!(route.path(), path(1));
        route.set_path(path(3));
        assert_eq!(route.path(), path(3));
    }

    #[test]
    fn gso_is_disabled_after_three_lost_bursts_in_a_row() {
        let mut route = PathState::new(path(1), 1448);
        let lose = |route: &mut PathState, acknowledged, timeouts| {
            route.record_burst(&stats(acknowledged, timeouts));
            route.update(&stats(acknowledged, timeouts));
            route.update(&stats(acknowledged, timeouts + 2));
        };
        lose(&mut route, 0, 0);
        lose(&mut route, 0, 2);
        route.record_burst(&stats(0, 4));
        route.update(&stats(1000, 5));
        assert!(route.may_use_gso(), "one has arrived");
        for timeouts in [5, 7] {
            lose(&mut route, 1000, timeouts);
            assert!(route.may_use_gso());
        }
        lose(&mut route, 1000, 9);
        assert!(!route.may_use_gso());
    }
}
