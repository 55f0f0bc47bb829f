//! Requests of congestion control to the sender.

/// Actions for the sender after an acknowledgment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Response {
    /// Immediate retransmission.
    pub(crate) retransmission: ImmediateRetransmission,
    /// Action on the retransmission timer.
    pub(crate) timer: TimerAction,
    /// Action on the back-off of the timer, without a round-trip sample.
    pub(crate) back_off: BackoffAction,
    /// Event to report.
    pub(crate) event: ControlEvent,
}

/// Immediate retransmission.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum ImmediateRetransmission {
    /// None, except for those that loss recovery sends by itself.
    #[default]
    None,
    /// The first unacknowledged segment.
    FirstUnacked,
}

/// Action on the retransmission timer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum TimerAction {
    /// Leave it running.
    #[default]
    Keep,
    /// Restart it with the whole timeout (RFC 6298 §5.3).
    Restart,
}

/// Action on the back-off of the timer, without a round-trip sample.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum BackoffAction {
    /// Keep it until there is a sample.
    #[default]
    Keep,
    /// End it (ns-2).
    Reset,
}

/// Event in congestion control.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum ControlEvent {
    /// None.
    #[default]
    None,
    /// Recovery began: a round-trip measurement in progress is void (Karn's algorithm).
    RecoveryStarted,
    /// An ECN mark was processed, with this effect on the window.
    EcnReaction(EcnEffect),
}

/// Effect of an ECN mark on the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EcnEffect {
    /// The window was reduced.
    Reduced,
    /// The window is one segment and cannot be reduced: new data wait for one retransmission timeout.
    OneSegment,
}

impl Response {
    pub(super) const NOTHING: Self = Self {
        retransmission: ImmediateRetransmission::None,
        timer: TimerAction::Keep,
        back_off: BackoffAction::Keep,
        event: ControlEvent::None,
    };
    pub(super) const RESTART_TIMER: Self = Self { timer: TimerAction::Restart, ..Self::NOTHING };
    pub(super) const ENTER_RECOVERY: Self = Self {
        retransmission: ImmediateRetransmission::FirstUnacked,
        event: ControlEvent::RecoveryStarted,
        ..Self::RESTART_TIMER
    };
}
