//! Recovery policy: current reaction of the sender to silence and loss. TCP-DOOR and the route failure schemes combine
//! their decisions in one value, which is computed once per input.

use super::congestion::hold::Hold;
use super::endpoint::Endpoint;
use hopline_core::{Instant, Payload};

/// Recovery policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stance {
    /// Restriction of window changes.
    pub(super) hold: Hold,
    /// Effect of a time-out on the retransmission timeout.
    pub(super) timeout: Timeout,
    /// Retransmissions after a loss.
    pub(super) resends: Resent,
    /// Limit after which the connection is given up.
    pub(super) patience: Patience,
}

/// Effect of a time-out on the retransmission timeout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Timeout {
    /// The timeout doubles (RFC 6298 §5.5).
    Doubles,
    /// The timeout stays constant.
    Stays,
}

/// Retransmissions after a loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Resent {
    /// Retransmissions by the loss recovery algorithm.
    AsRecovered,
    /// Only the first segment.
    FirstAlone,
}

/// Limit after which the connection is given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Patience {
    /// The configured number of time-outs.
    Timeouts,
    /// The time that the configured number of time-outs would take with doubling, since they do not double.
    Time,
}

impl Stance {
    /// Policy of plain TCP.
    pub(super) const PLAIN: Self = Self {
        hold: Hold::Free,
        timeout: Timeout::Doubles,
        resends: Resent::AsRecovered,
        patience: Patience::Timeouts,
    };

    /// Returns whether window and timeout are constant.
    pub(super) fn holds_everything(self) -> bool {
        self.hold == Hold::Everything
    }
}

impl<P: Payload> Endpoint<P> {
    /// Returns the recovery policy at `now`. TCP-DOOR and feedback schemes are never configured together.
    pub(super) fn stance(&self, now: Instant) -> Stance {
        match &self.door {
            Some(door) => door.stance(now),
            None => self.stance_for_route(),
        }
    }
}
