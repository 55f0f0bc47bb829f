//! Recovery policy: current reaction of the sender to silence and loss. TCP-DOOR and the route failure schemes combine
//! their decisions in one value, which is computed once per input.

use super::congestion::window_hold::WindowHold;
use super::endpoint::Endpoint;
use hopline_core::{Instant, Payload};

/// Recovery policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RecoveryPolicy {
    /// Restriction of window changes.
    pub(super) hold: WindowHold,
    /// Effect of a time-out on the retransmission timeout.
    pub(super) backoff: BackoffPolicy,
    /// Retransmissions after a loss.
    pub(super) retransmissions: RetransmissionPolicy,
    /// Limit after which the connection is given up.
    pub(super) give_up: GiveUpRule,
}

/// Effect of a time-out on the retransmission timeout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BackoffPolicy {
    /// The timeout doubles (RFC 6298 §5.5).
    Exponential,
    /// The timeout stays constant.
    Constant,
}

/// Retransmissions after a loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RetransmissionPolicy {
    /// Retransmissions by the loss recovery algorithm.
    Normal,
    /// Only the first segment.
    FirstSegmentOnly,
}

/// Limit after which the connection is given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum GiveUpRule {
    /// The configured number of time-outs.
    ByCount,
    /// The time that the configured number of time-outs would take with doubling, since they do not double.
    ByTime,
}

impl RecoveryPolicy {
    /// Policy of plain TCP.
    pub(super) const TCP: Self = Self {
        hold: WindowHold::None,
        backoff: BackoffPolicy::Exponential,
        retransmissions: RetransmissionPolicy::Normal,
        give_up: GiveUpRule::ByCount,
    };

    /// Returns whether window and timeout are constant.
    pub(super) fn holds_everything(self) -> bool {
        self.hold == WindowHold::Everything
    }
}

impl<P: Payload> Endpoint<P> {
    /// Returns the recovery policy at `now`. TCP-DOOR and feedback schemes are never configured together.
    pub(super) fn recovery_policy(&self, now: Instant) -> RecoveryPolicy {
        match &self.door {
            Some(door) => door.recovery_policy(now),
            None => self.route_recovery_policy(),
        }
    }
}
