//! Congestion window: normal, congested, frozen (TPA §3.3, §3.5).

use super::config::{CongestedBackoff, FailureConfig, FreezeExit, MergedExit, Notification, RowEnds};

/// State of the path, as the sender estimates it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Path {
    /// Normal: the window is cwndmax.
    Normal,
    /// Congestion: ACKs cannot get back, and the window is 1 (§3.5).
    Congested,
    /// Route failure: the window is 1 and the timer doubles (§3.3).
    Frozen,
    /// Congestion or route failure, without information to tell them apart (§3.5).
    CongestedOrFrozen,
}

/// State of the congestion window.
#[derive(Clone, Debug)]
pub(super) struct Window {
    config: FailureConfig,
    cwnd_max: u8,
    path: Path,
    /// Cause of the freeze, while frozen.
    frozen_by: FrozenBy,
    /// Number of consecutive timeouts.
    timeouts: u8,
    /// Number of consecutive ACKs while congested.
    acks: u8,
}

/// Cause of a freeze.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FrozenBy {
    /// A notification of the network layer, which may report the recovery as well.
    Notification,
    /// Timeouts: the network layer may not know of the failure, and may never report a recovery.
    Timeouts,
}

/// Transmission that an ACK of new data answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answers {
    /// The latest transmission.
    Latest,
    /// An earlier one.
    Earlier,
}

/// Actions after a change of the path state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    None,
    Congested,
    Frozen,
    /// Back to normal, over the same route.
    Relieved,
    /// Back to normal, over a route that may be new (§3.4 (i)).
    NewRoute,
}

impl Window {
    pub(super) fn new(config: FailureConfig, cwnd_max: u8) -> Self {
        Self { config, cwnd_max, path: Path::Normal, frozen_by: FrozenBy::Timeouts, timeouts: 0, acks: 0 }
    }

    pub(super) fn set_cwnd_max(&mut self, cwnd_max: u8) {
        self.cwnd_max = cwnd_max;
    }

    /// Returns the number of segments that may be in flight.
    pub(super) fn cwnd(&self) -> u8 {
        match self.path {
            Path::Normal => self.cwnd_max,
            Path::Congested | Path::CongestedOrFrozen => 1,
            Path::Frozen if self.waits_for_recovery() => 0,
            Path::Frozen => 1,
        }
    }

    fn waits_for_recovery(&self) -> bool {
        self.config.notification == Notification::ElfnAndRecovery && self.frozen_by == FrozenBy::Notification
    }

    pub(super) fn path(&self) -> Path {
        self.path
    }

    /// Returns whether the timer doubles with an expiry now.
    pub(super) fn backs_off(&self) -> bool {
        match self.path {
            Path::Normal => false,
            Path::Frozen => true,
            Path::Congested => self.config.congested_backoff == CongestedBackoff::Always,
            Path::CongestedOrFrozen => self.config.congested_backoff != CongestedBackoff::Never,
        }
    }

    /// Processes a timeout of a segment.
    pub(super) fn timed_out(&mut self) -> Change {
        self.timeouts = self.timeouts.saturating_add(1);
        self.acks = 0;
        let freezes = self.config.th_route.is_some_and(|th| self.timeouts >= th);
        match self.path {
            Path::Normal | Path::Congested if freezes => {
                self.frozen_by = FrozenBy::Timeouts;
                self.enter(Path::Frozen)
            }
            Path::Normal if self.timeouts >= self.config.th_cong => self.enter(self.congestion()),
            _ => Change::None,
        }
    }

    /// Processes an ACK of new data.
    pub(super) fn acknowledged(&mut self, answers: Answers) -> Change {
        if self.config.row_ends == RowEnds::AnyNews || answers == Answers::Latest {
            self.timeouts = 0;
        }
        match self.path {
            Path::Normal => Change::None,
            Path::Congested | Path::CongestedOrFrozen => {
                self.acks = self.acks.saturating_add(1);
                if self.acks < self.config.th_ack { Change::None } else { self.leave() }
            }
            Path::Frozen => match (self.config.freeze_exit, answers) {
                (FreezeExit::LatestTransmission, Answers::Earlier) => Change::None,
                _ => self.leave(),
            },
        }
    }

    /// Processes a notification of a route failure.
    pub(super) fn route_lost(&mut self) -> Change {
        if self.config.notification == Notification::None {
            return Change::None;
        }
        self.frozen_by = FrozenBy::Notification;
        if self.path == Path::Frozen { Change::None } else { self.enter(Path::Frozen) }
    }

    /// Processes a notification of the recovery of the route.
    pub(super) fn route_found(&mut self) -> Change {
        if self.config.notification == Notification::ElfnAndRecovery && self.path == Path::Frozen {
            return self.leave();
        }
        Change::None
    }

    fn congestion(&self) -> Path {
        match self.config.notification {
            Notification::None => Path::CongestedOrFrozen,
            Notification::Elfn | Notification::ElfnAndRecovery => Path::Congested,
        }
    }

    fn enter(&mut self, path: Path) -> Change {
        self.path = path;
        self.acks = 0;
        if path == Path::Frozen { Change::Frozen } else { Change::Congested }
    }

    fn leave(&mut self) -> Change {
        let change = match self.path {
            Path::Frozen => Change::NewRoute,
            Path::CongestedOrFrozen if self.config.merged_exit == MergedExit::RouteChange => Change::NewRoute,
            _ => Change::Relieved,
        };
        (self.path, self.timeouts, self.acks) = (Path::Normal, 0, 0);
        change
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tpa::Config;

    fn window(change: impl FnOnce(&mut FailureConfig)) -> Window {
        let mut config = Config::tpa(3).failures;
        change(&mut config);
        Window::new(config, 3)
    }

    #[test]
    fn without_elfn_one_timeout_is_one_state_and_one_ack_ends_it_as_a_new_route() {
        let mut w = window(|_| {});
        assert_eq!((w.cwnd(), w.timed_out()), (3, Change::Congested));
        assert_eq!((w.cwnd(), w.path(), w.backs_off()), (1, Path::CongestedOrFrozen, true));
        assert_eq!(w.timed_out(), Change::None);
        assert_eq!(w.route_lost(), Change::None, "nobody tells");
        assert_eq!((w.acknowledged(Answers::Earlier), w.cwnd()), (Change::NewRoute, 3));
        let mut plain = window(|c| c.merged_exit = MergedExit::Plain);
        plain.timed_out();
        assert_eq!(plain.acknowledged(Answers::Latest), Change::Relieved);
    }

    #[test]
    fn with_elfn_timeouts_are_congestion_and_losing_the_route_freezes() {
        let mut w = window(|c| c.notification = Notification::Elfn);
        assert_eq!((w.timed_out(), w.path()), (Change::Congested, Path::Congested));
        assert!(!w.backs_off());
        assert_eq!((w.route_lost(), w.path(), w.cwnd()), (Change::Frozen, Path::Frozen, 1));
        assert!(w.backs_off());
        assert_eq!(w.route_lost(), Change::None, "told twice");
        assert_eq!(w.route_found(), Change::None, "not what was agreed");
        assert_eq!(w.acknowledged(Answers::Earlier), Change::None);
        assert_eq!((w.acknowledged(Answers::Latest), w.path()), (Change::NewRoute, Path::Normal));
    }

    #[test]
    fn with_recovery_messages_the_sender_is_silent_until_told() {
        let mut w = window(|c| c.notification = Notification::ElfnAndRecovery);
        w.route_lost();
        assert_eq!(w.cwnd(), 0);
        assert_eq!((w.route_found(), w.cwnd()), (Change::NewRoute, 3));
        assert_eq!(w.route_found(), Change::None);
    }

    #[test]
    fn thresholds_count_in_a_row() {
        let mut w = window(|c| {
            c.notification = Notification::Elfn;
            (c.th_cong, c.th_route, c.th_ack) = (2, Some(4), 2);
        });
        assert_eq!(w.timed_out(), Change::None);
        w.acknowledged(Answers::Earlier);
        assert_eq!((w.timed_out(), w.timed_out()), (Change::None, Change::Congested));
        assert_eq!(w.acknowledged(Answers::Latest), Change::None);
        assert_eq!(w.timed_out(), Change::None);
        assert_eq!(w.acknowledged(Answers::Latest), Change::None, "the row was broken");
        assert_eq!(w.acknowledged(Answers::Latest), Change::Relieved);
        let changes: Vec<_> = (0..4).map(|_| w.timed_out()).collect();
        assert_eq!(changes, [Change::None, Change::Congested, Change::None, Change::Frozen]);
    }

    #[test]
    fn a_row_may_end_only_with_the_latest_transmission() {
        let mut w = window(|c| (c.th_cong, c.row_ends) = (2, RowEnds::LatestTransmission));
        w.timed_out();
        w.acknowledged(Answers::Earlier);
        assert_eq!(w.timed_out(), Change::Congested);
    }

    #[test]
    fn doubling_in_the_congested_state_is_a_choice() {
        for (choice, congested, merged) in [
            (CongestedBackoff::WhenMerged, false, true),
            (CongestedBackoff::Always, true, true),
            (CongestedBackoff::Never, false, false),
        ] {
            let mut with = window(|c| (c.notification, c.congested_backoff) = (Notification::Elfn, choice));
            let mut without = window(|c| c.congested_backoff = choice);
            with.timed_out();
            without.timed_out();
            assert_eq!((with.backs_off(), without.backs_off()), (congested, merged), "{choice:?}");
        }
    }
}
