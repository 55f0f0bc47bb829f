//! Requests of congestion control to the sender.

/// Actions for the sender after an acknowledgment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Response {
    /// Immediate retransmission.
    pub(crate) resends: ResendNow,
    /// Action on the retransmission timer.
    pub(crate) timer: TimerAfter,
    /// Action on the back-off of the timer, without a round-trip sample.
    pub(crate) back_off: BackOffAfter,
    /// Event to report.
    pub(crate) news: News,
}

/// Immediate retransmission.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum ResendNow {
    /// None, except for those that loss recovery sends by itself.
    #[default]
    Nothing,
    /// The first unacknowledged segment.
    First,
}

/// Action on the retransmission timer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum TimerAfter {
    /// Leave it running.
    #[default]
    RunsOn,
    /// Restart it with the whole timeout (RFC 6298 §5.3).
    Restarts,
}

/// Action on the back-off of the timer, without a round-trip sample.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum BackOffAfter {
    /// Keep it until there is a sample.
    #[default]
    Stays,
    /// End it (ns-2).
    Ends,
}

/// Event in congestion control.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum News {
    /// None.
    #[default]
    None,
    /// Recovery began: a round-trip measurement in progress is void (Karn's algorithm).
    RecoveryBegan,
    /// An ECN mark was processed, with this effect on the window.
    MarkHeeded(MarkedWindow),
}

/// Effect of an ECN mark on the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MarkedWindow {
    /// The window was reduced.
    Reduced,
    /// The window is one segment and cannot be reduced: new data wait for one retransmission timeout.
    OneSegment,
}

impl Response {
    pub(super) const NOTHING: Self = Self {
        resends: ResendNow::Nothing,
        timer: TimerAfter::RunsOn,
        back_off: BackOffAfter::Stays,
        news: News::None,
    };
    pub(super) const RESTART_TIMER: Self = Self { timer: TimerAfter::Restarts, ..Self::NOTHING };
    pub(super) const ENTER: Self =
        Self { resends: ResendNow::First, news: News::RecoveryBegan, ..Self::RESTART_TIMER };
}
