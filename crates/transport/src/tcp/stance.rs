//! What the sender makes of silence and loss now: TCP-DOOR and the schemes for lost routes answer every question about it in one
//! value, which is asked for once an input.

use super::congestion::hold::Hold;
use super::endpoint::Endpoint;
use hopline_core::{Instant, Payload};

/// How the sender stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stance {
    /// What reactions may do to the window.
    pub(super) hold: Hold,
    /// What a time-out does to the retransmission timeout.
    pub(super) timeout: Timeout,
    /// What a loss has resent.
    pub(super) resends: Resent,
    /// How long it is before the connection is given up.
    pub(super) patience: Patience,
}

/// What a time-out does to the retransmission timeout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Timeout {
    /// It doubles (RFC 6298 §5.5).
    Doubles,
    /// It keeps its length.
    Stays,
}

/// What a loss has resent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Resent {
    /// What loss recovery says.
    AsRecovered,
    /// The first segment and nothing else.
    FirstAlone,
}

/// How long it is before the connection is given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Patience {
    /// So many time-outs as are configured.
    Timeouts,
    /// As long as so many time-outs would take if they doubled: they do not.
    Time,
}

impl Stance {
    /// Plain TCP's.
    pub(super) const PLAIN: Self = Self {
        hold: Hold::Free,
        timeout: Timeout::Doubles,
        resends: Resent::AsRecovered,
        patience: Patience::Timeouts,
    };

    /// Whether window and timeout are constant.
    pub(super) fn holds_everything(self) -> bool {
        self.hold == Hold::Everything
    }
}

impl<P: Payload> Endpoint<P> {
    /// How the sender stands at `now`. TCP-DOOR and feedback schemes are not configured together.
    pub(super) fn stance(&self, now: Instant) -> Stance {
        match &self.door {
            Some(door) => door.stance(now),
            None => self.stance_for_route(),
        }
    }
}
