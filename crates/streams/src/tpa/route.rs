//! Path of a connection: address of the peer, path MTU, and use of GSO.

use super::trust::Trust;
use crate::streams::Path;
use bytes::Bytes;
use hopline_core::{Duration, Instant};
use hopline_transport::tpa::{Endpoint, PathMtu, State, Stats};
use hopline_wire::tpa::{Control, Segment, Tag, Token};
use std::net::SocketAddr;

/// Timeout of a path challenge to a new address, after which it is repeated.
const ASK_AGAIN: Duration = Duration::from_millis(100);
/// Consecutive timeouts of segments after which the path MTU is checked.
const SUSPICIOUS: u64 = 3;
/// Consecutive losses of whole GSO groups after which segments leave one by one.
const LOST_TRAINS: u8 = 3;

/// Path state of one connection.
#[derive(Debug)]
pub(super) struct Route {
    /// Validated path to the peer.
    path: Path,
    /// Possible new address of the peer, and the time of the last challenge to it.
    elsewhere: Option<(SocketAddr, Instant)>,
    mtu: PathMtu,
    trains: Trains,
    /// State at the last acknowledgement.
    progress: Progress,
}

/// Use of GSO groups, which some address translators break: the kernel's own leaves them with wrong checksums.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Trains {
    /// GSO is used. `lost` whole groups were lost in a row; `under_way` is the state at the departure of the group in
    /// flight.
    Run { lost: u8, under_way: Option<Progress> },
    /// GSO is not used: groups never arrive.
    Stopped,
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

impl Route {
    pub(super) fn new(path: Path, mss: u16) -> Self {
        Self {
            path,
            elsewhere: None,
            mtu: PathMtu::new(mss),
            trains: Trains::Run { lost: 0, under_way: None },
            progress: Progress::default(),
        }
    }

    // ---- where to ----

    pub(super) fn path(&self) -> Path {
        self.path
    }

    /// Records a segment with the tag of this connection from `path`. Returns whether to challenge its address. Until an
    /// answer arrives, no other segment goes there: the tag authenticates the sender, but not its address.
    pub(super) fn heard_from(&mut self, now: Instant, path: Path) -> bool {
        if path.peer == self.path.peer {
            // Update the local address that the peer uses, if it is known.
            self.path.local = self.path.local.and(path.local);
            return false;
        }
        let lately = |&(peer, at): &(SocketAddr, Instant)| peer == path.peer && now < at + ASK_AGAIN;
        if self.elsewhere.as_ref().is_some_and(lately) {
            return false;
        }
        self.elsewhere = Some((path.peer, now));
        true
    }

    /// Records that the peer has proved its new address.
    pub(super) fn move_to(&mut self, path: Path) {
        self.path = Path { peer: path.peer, local: self.path.local.and(path.local) };
        self.elsewhere = None;
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
        trust: &Trust,
    ) -> Option<Segment<Bytes>> {
        let peer = endpoint.peer_tag().filter(|_| self.has_much_to_send(endpoint))?;
        let own = endpoint.tag()?;
        let length = self.mtu.poll_probe(now, endpoint.rto(), endpoint.heard())?;
        let question = challenge(peer, trust.token(now, own, self.path.peer, length));
        let padding = usize::from(length) - question.udp_len();
        Some(Segment { payload: Bytes::from(vec![0; padding]), ..question })
    }

    /// Records that a probe exceeds the MTU of the interface.
    pub(super) fn cannot_leave(&mut self, now: Instant, length: u16) {
        self.mtu.cannot_leave(now, length);
    }

    /// Returns whether `token` is the echo of a path MTU probe. If so, segments may become longer.
    pub(super) fn has_passed(&mut self, now: Instant, own: Tag, token: Token, trust: &Trust) -> bool {
        let passed = self.mtu.awaited().filter(|&length| trust.gave(now, own, self.path.peer, length, token));
        if let Some(length) = passed {
            self.mtu.passed(now, length);
        }
        passed.is_some()
    }

    /// Returns the time of the next path MTU probe.
    pub(super) fn due(&self, endpoint: &Endpoint<Bytes>) -> Option<Instant> {
        self.mtu.due().filter(|_| endpoint.peer_tag().is_some() && self.has_much_to_send(endpoint))
    }

    /// Returns whether longer segments would help: a sender of few data does not need them.
    fn has_much_to_send(&self, endpoint: &Endpoint<Bytes>) -> bool {
        endpoint.state() != State::Closed && endpoint.unacknowledged() >= self.mss().into()
    }

    // ---- how many at once ----

    /// Returns whether GSO groups may be used.
    pub(super) fn takes_trains(&self) -> bool {
        self.trains != Trains::Stopped
    }

    /// Records the departure of a GSO group.
    pub(super) fn train_leaves(&mut self, stats: &Stats) {
        if let Trains::Run { under_way: under_way @ None, .. } = &mut self.trains {
            *under_way = Some(Progress::of(stats));
        }
    }

    // ---- what came of it ----

    /// Evaluates acknowledgements and timeouts since the last call.
    pub(super) fn review(&mut self, stats: &Stats) {
        let now = Progress::of(stats);
        if now.acknowledged != self.progress.acknowledged {
            self.progress = now;
        } else if now.timeouts >= self.progress.timeouts + SUSPICIOUS {
            self.progress = now;
            self.mtu.suspect();
        }
        if let Trains::Run { lost, under_way: Some(then) } = self.trains {
            self.trains = match lost + 1 {
                _ if now.acknowledged != then.acknowledged => Trains::Run { lost: 0, under_way: None },
                _ if now.timeouts == then.timeouts => self.trains,
                LOST_TRAINS => Trains::Stopped,
                lost => Trains::Run { lost, under_way: None },
            };
        }
    }
}

/// Returns a path challenge: the receiver has to echo `token`.
pub(super) fn challenge(peer: Tag, token: Token) -> Segment<Bytes> {
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
    fn who_seems_to_be_elsewhere_is_asked_there_now_and_then_and_nothing_moves_before_the_answer() {
        let mut route = Route::new(path(1), 1448);
        let at = Instant::from_millis;
        assert!(!route.heard_from(at(0), path(1)));
        assert!(route.heard_from(at(0), path(2)));
        assert!(!route.heard_from(at(99), path(2)) && route.heard_from(at(100), path(2)));
        assert!(route.heard_from(at(101), path(3)), "and again elsewhere");
        assert_eq!(route.path(), path(1));
        route.move_to(path(3));
        assert_eq!(route.path(), path(3));
    }

    #[test]
    fn trains_that_are_lost_three_times_in_a_row_are_the_last() {
        let mut route = Route::new(path(1), 1448);
        let lose = |route: &mut Route, acknowledged, timeouts| {
            route.train_leaves(&stats(acknowledged, timeouts));
            route.review(&stats(acknowledged, timeouts));
            route.review(&stats(acknowledged, timeouts + 2));
        };
        lose(&mut route, 0, 0);
        lose(&mut route, 0, 2);
        route.train_leaves(&stats(0, 4));
        route.review(&stats(1000, 5));
        assert!(route.takes_trains(), "one has arrived");
        for timeouts in [5, 7] {
            lose(&mut route, 1000, timeouts);
            assert!(route.takes_trains());
        }
        lose(&mut route, 1000, 9);
        assert!(!route.takes_trains());
    }
}
