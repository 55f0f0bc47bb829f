//! What congestion control has the sender do.

/// What the sender has to do after an acknowledgment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Response {
    /// What is sent again at once.
    pub(crate) resends: ResendNow,
    /// What becomes of the retransmission timer.
    pub(crate) timer: TimerAfter,
    /// What becomes of its back-off, without a sample.
    pub(crate) back_off: BackOffAfter,
    /// What has happened.
    pub(crate) news: News,
}

/// What is sent again at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum ResendNow {
    /// Nothing that loss recovery would not send by itself.
    #[default]
    Nothing,
    /// The first unacknowledged segment.
    First,
}

/// What becomes of the retransmission timer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum TimerAfter {
    /// It runs on.
    #[default]
    RunsOn,
    /// It starts again with the whole timeout (RFC 6298 §5.3).
    Restarts,
}

/// What becomes of the back-off of the timer without a sample.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum BackOffAfter {
    /// It stays until there is a sample.
    #[default]
    Stays,
    /// It ends (ns-2).
    Ends,
}

/// What has happened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum News {
    /// Nothing of note.
    #[default]
    None,
    /// Recovery began: a round-trip measurement under way is void (Karn).
    RecoveryBegan,
    /// A mark was heeded, which found such a window.
    MarkHeeded(MarkedWindow),
}

/// The window that a mark found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MarkedWindow {
    /// It was reduced.
    Reduced,
    /// It cannot be: new data wait for a timeout's time.
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
