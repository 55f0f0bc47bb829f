//! Congestion window: normal, congested, frozen (TPA §3.3, §3.5).

use super::config::{CongestedBackoff, CountReset, FailureConfig, FreezeExit, MergedExit, Notification};

/// State of the path, as the sender estimates it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum PathState {
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
pub(super) struct CongestionWindow {
    config: FailureConfig,
    cwnd_max: u8,
    path: PathState,
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
pub(super) enum AckedTransmission {
    /// The latest transmission.
    Latest,
    /// An earlier one.
    Earlier,
}

/// Actions after a change of the path state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PathChange {
    None,
    Congested,
    Frozen,
    /// Back to normal, over the same route.
    CongestionOver,
    /// Back to normal, over a route that may be new (§3.4 (i)).
    RouteChanged,
}

impl CongestionWindow {
    pub(super) fn new(config: FailureConfig, cwnd_max: u8) -> Self {
        Self {
            config,
            cwnd_max,
            path: PathState::Normal,
            frozen_by: FrozenBy::Timeouts,
            timeouts: 0,
            acks: 0,
        }
    }

    pub(super) fn set_cwnd_max(&mut self, cwnd_max: u8) {
        self.cwnd_max = cwnd_max;
    }

    /// Returns the number of segments that may be in flight.
    pub(super) fn cwnd(&self) -> u8 {
        match self.path {
            PathState::Normal => self.cwnd_max,
            PathState::Congested | PathState::CongestedOrFrozen => 1,
            PathState::Frozen if self.awaits_recovery_notification() => 0,
            PathState::Frozen => 1,
        }
    }

    fn awaits_recovery_notification(&self) -> bool {
        self.config.notification == Notification::ElfnAndRecovery && self.frozen_by == FrozenBy::Notification
    }

    pub(super) fn path(&self) -> PathState {
        self.path
    }

    /// Returns whether the timer doubles with an expiry now.
    pub(super) fn backs_off(&self) -> bool {
        match self.path {
            PathState::Normal => false,
            PathState::Frozen => true,
            PathState::Congested => self.config.congested_backoff == CongestedBackoff::Always,
            PathState::CongestedOrFrozen => self.config.congested_backoff != CongestedBackoff::Never,
        }
    }

    /// Processes a timeout of a segment.
    pub(super) fn on_timeout(&mut self) -> PathChange {
        self.timeouts = self.timeouts.saturating_add(1);
        self.acks = 0;
        let freezes = self.config.th_route.is_some_and(|th| self.timeouts >= th);
        match self.path {
            PathState::Normal | PathState::Congested if freezes => {
                self.frozen_by = FrozenBy::Timeouts;
                self.enter(PathState::Frozen)
            }
            PathState::Normal if self.timeouts >= self.config.th_cong => self.enter(self.congested_state()),
            _ => PathChange::None,
        }
    }

    /// Processes an ACK of new data.
    pub(super) fn on_ack(&mut self, answers: AckedTransmission) -> PathChange {
        if self.config.count_reset == CountReset::AnyNewAck || answers == AckedTransmission::Latest {
            self.timeouts = 0;
        }
        match self.path {
            PathState::Normal => PathChange::None,
            PathState::Congested | PathState::CongestedOrFrozen => {
                self.acks = self.acks.saturating_add(1);
                if self.acks < self.config.th_ack { PathChange::None } else { self.leave() }
            }
            PathState::Frozen => match (self.config.freeze_exit, answers) {
                (FreezeExit::LatestTransmission, AckedTransmission::Earlier) => PathChange::None,
                _ => self.leave(),
            },
        }
    }

    /// Processes a notification of a route failure.
    pub(super) fn on_route_lost(&mut self) -> PathChange {
        if self.config.notification == Notification::None {
            return PathChange::None;
        }
        self.frozen_by = FrozenBy::Notification;
        if self.path == PathState::Frozen { PathChange::None } else { self.enter(PathState::Frozen) }
    }

    /// Processes a notification of the recovery of the route.
    pub(super) fn on_route_found(&mut self) -> PathChange {
        if self.config.notification == Notification::ElfnAndRecovery && self.path == PathState::Frozen {
            return self.leave();
        }
        PathChange::None
    }

    fn congested_state(&self) -> PathState {
        match self.config.notification {
            Notification::None => PathState::CongestedOrFrozen,
            Notification::Elfn | Notification::ElfnAndRecovery => PathState::Congested,
        }
    }

    fn enter(&mut self, path: PathState) -> PathChange {
        self.path = path;
        self.acks = 0;
        if path == PathState::Frozen { PathChange::Frozen } else { PathChange::Congested }
    }

    fn leave(&mut self) -> PathChange {
        let change = match self.path {
            PathState::Frozen => PathChange::RouteChanged,
            PathState::CongestedOrFrozen if self.config.merged_exit == MergedExit::RouteChange => {
                PathChange::RouteChanged
            }
            _ => PathChange::CongestionOver,
        };
        (self.path, self.timeouts, self.acks) = (PathState::Normal, 0, 0);
        change
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tpa::Config;

    fn window(change: impl FnOnce(&mut FailureConfig)) -> CongestionWindow {
        let mut config = Config::tpa(3).failures;
        change(&mut config);
        CongestionWindow::new(config, 3)
    }

    #[test]
    fn without_elfn_a_timeout_enters_the_merged_state_and_an_ack_ends_it_as_a_route_change() {
        let mut w = window(|_| {});
        assert_eq!((w.cwnd(), w.on_timeout()), (3, PathChange::Congested));
        assert_eq!((w.cwnd(), w.path(), w.backs_off()), (1, PathState::CongestedOrFrozen, true));
        assert_eq!(w.on_timeout(), PathChange::None);
        assert_eq!(w.on_route_lost(), PathChange::None, "nobody tells");
        assert_eq!((w.on_ack(AckedTransmission::Earlier), w.cwnd()), (PathChange::RouteChanged, 3));
        let mut plain = window(|c| c.merged_exit = MergedExit::Plain);
        plain.on_timeout();
        assert_eq!(plain.on_ack(AckedTransmission::Latest), PathChange::CongestionOver);
    }

    #[test]
    fn with_elfn_timeouts_are_congestion_and_a_notification_freezes() {
        let mut w = window(|c| c.notification = Notification::Elfn);
        assert_eq!((w.on_timeout(), w.path()), (PathChange::Congested, PathState::Congested));
        assert!(!w.backs_off());
        assert_eq!((w.on_route_lost(), w.path(), w.cwnd()), (PathChange::Frozen, PathState::Frozen, 1));
        assert!(w.backs_off());
        assert_eq!(w.on_route_lost(), PathChange::None, "told twice");
        assert_eq!(w.on_route_found(), PathChange::None, "not what was agreed");
        assert_eq!(w.on_ack(AckedTransmission::Earlier), PathChange::None);
        assert_eq!(
            (w.on_ack(AckedTransmission::Latest), w.path()),
            (PathChange::RouteChanged, PathState::Normal)
        );
    }

    #[test]
    fn with_recovery_notifications_the_sender_is_silent_until_one_arrives() {
        let mut w = window(|c| c.notification = Notification::ElfnAndRecovery);
        w.on_route_lost();
        assert_eq!(w.cwnd(), 0);
        assert_eq!((w.on_route_found(), w.cwnd()), (PathChange::RouteChanged, 3));
        assert_eq!(w.on_route_found(), PathChange::None);
    }

    #[test]
    fn thresholds_count_consecutive_events() {
        let mut w = window(|c| {
            c.notification = Notification::Elfn;
            (c.th_cong, c.th_route, c.th_ack) = (2, Some(4), 2);
        });
        assert_eq!(w.on_timeout(), PathChange::None);
        w.on_ack(AckedTransmission::Earlier);
        assert_eq!((w.on_timeout(), w.on_timeout()), (PathChange::None, PathChange::Congested));
        assert_eq!(w.on_ack(AckedTransmission::Latest), PathChange::None);
        assert_eq!(w.on_timeout(), PathChange::None);
        assert_eq!(w.on_ack(AckedTransmission::Latest), PathChange::None, "the row was broken");
        assert_eq!(w.on_ack(AckedTransmission::Latest), PathChange::CongestionOver);
        let changes: Vec<_> = (0..4).map(|_| w.on_timeout()).collect();
        assert_eq!(changes, [PathChange::None, PathChange::Congested, PathChange::None, PathChange::Frozen]);
    }

    #[test]
    fn the_count_can_be_reset_by_the_latest_transmission_only() {
        let mut w = window(|c| (c.th_cong, c.count_reset) = (2, CountReset::LatestTransmission));
        w.on_timeout();
        w.on_ack(AckedTransmission::Earlier);
        assert_eq!(w.on_timeout(), PathChange::Congested);
    }

    #[test]
    fn backoff_in_the_congested_state_is_configurable() {
        for (choice, congested, merged) in [
            (CongestedBackoff::WhenMerged, false, true),
            (CongestedBackoff::Always, true, true),
            (CongestedBackoff::Never, false, false),
        ] {
            let mut with = window(|c| (c.notification, c.congested_backoff) = (Notification::Elfn, choice));
            let mut without = window(|c| c.congested_backoff = choice);
            with.on_timeout();
            without.on_timeout();
            assert_eq!((with.backs_off(), without.backs_off()), (congested, merged), "{choice:?}");
        }
    }
}
