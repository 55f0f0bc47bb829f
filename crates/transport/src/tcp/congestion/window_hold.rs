//! Hold of the window: congestion control runs, but `cwnd` and `ssthresh` stay. Used by TCP-DOOR's temporary disabling,
//! and for losses that a feedback scheme attributes to a route failure or to bit errors.
//!
//! Recovery and go-back-N continue, so that lost data are resent. The recovery strategies do not depend on the hold.

use super::{AckInput, CongestionState, RecoveryPhase, Response};
use crate::tcp::config::Config;
use crate::tcp::scoreboard::Scoreboard;
use hopline_core::Instant;

/// Restriction of window changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WindowHold {
    /// No restriction.
    None,
    /// Reductions are held; the window may grow.
    Reductions,
    /// All changes are held.
    Everything,
}

impl CongestionState {
    /// Sets the hold from `now` on. Time during which the window was constant does not count for its growth, as for a
    /// window that is not in use (RFC 9438 §5.8).
    pub(crate) fn set_hold(&mut self, now: Instant, hold: WindowHold) {
        if self.hold == WindowHold::Everything {
            self.window.skip_idle(now);
        }
        self.hold = hold;
    }

    pub(super) fn is_not_held(&self) -> bool {
        self.hold == WindowHold::None
    }

    /// Runs a reaction to an acknowledgment under the current hold. A recovery that began while the window was held ends
    /// without a reduction, even if it ends after the hold.
    pub(super) fn react_under_hold<R>(&mut self, reaction: impl FnOnce(&mut Self) -> R) -> R {
        let spared = self.reduction_was_held && self.phase == RecoveryPhase::Recovery;
        let hold = if self.is_not_held() && spared { WindowHold::Reductions } else { self.hold };
        self.react_and_restore(hold, reaction)
    }

    /// Sets the window to `ssthresh` at the end of recovery, unless the recovery began without a reduction.
    pub(super) fn set_window_after_recovery(&mut self) {
        if !self.reduction_was_held {
            self.window.cwnd = self.window.ssthresh;
        }
    }

    /// Processes a duplicate acknowledgment while losses do not start a recovery. The third one requests a retransmission
    /// of the first segment. A recovery in progress goes on.
    pub(crate) fn on_duplicate_without_recovery(
        &mut self,
        config: &Config,
        ack: &AckInput,
        board: &mut Scoreboard,
    ) -> Response {
        if self.phase == RecoveryPhase::Recovery {
            return self.on_duplicate(config, ack, board);
        }
        self.dup_acks = self.dup_acks.saturating_add(1);
        let third = self.dup_acks == config.dup_ack_threshold && self.is_past_recover(ack.una);
        if third { Response::ENTER_RECOVERY } else { Response::NOTHING }
    }

    /// Runs the reaction to a time-out under the current hold.
    pub(super) fn react_to_timeout(&mut self, reaction: impl FnOnce(&mut Self)) {
        self.react_and_restore(self.hold, reaction);
    }

    fn react_and_restore<R>(&mut self, hold: WindowHold, reaction: impl FnOnce(&mut Self) -> R) -> R {
        if hold == WindowHold::None {
            return reaction(self);
        }
        let before = self.window.clone();
        if let Some(own) = &mut self.custom {
            own.last_reduction = None;
        }
        let result = reaction(self);
        match hold {
            WindowHold::None => {}
            WindowHold::Reductions => self.window.raise_to(&before),
            WindowHold::Everything => self.window.restore_cwnd(&before),
        }
        self.notify_custom_of_hold();
        result
    }
}
