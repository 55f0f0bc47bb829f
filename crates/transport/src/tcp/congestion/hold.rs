//! Hold of the window: congestion control runs, but `cwnd` and `ssthresh` stay. Used by TCP-DOOR's temporary disabling,
//! and for losses that a feedback scheme attributes to a route failure or to bit errors.
//!
//! Recovery and go-back-N continue, so that lost data are resent. The recovery strategies do not depend on the hold.

use super::{Ack, Control, Phase, Response};
use crate::tcp::config::Config;
use crate::tcp::scoreboard::Scoreboard;
use hopline_core::Instant;

/// Restriction of window changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hold {
    /// No restriction.
    Free,
    /// Reductions are held; the window may grow.
    Reductions,
    /// All changes are held.
    Everything,
}

impl Control {
    /// Sets the hold from `now` on. Time during which the window was constant does not count for its growth, as for a
    /// window that is not in use (RFC 9438 §5.8).
    pub(crate) fn set_hold(&mut self, now: Instant, hold: Hold) {
        if self.hold == Hold::Everything {
            self.window.rest(now);
        }
        self.hold = hold;
    }

    pub(super) fn is_free(&self) -> bool {
        self.hold == Hold::Free
    }

    /// Runs a reaction to an acknowledgment under the current hold. A recovery that began while the window was held ends
    /// without a reduction, even if it ends after the hold.
    pub(super) fn react<R>(&mut self, reaction: impl FnOnce(&mut Self) -> R) -> R {
        let spared = self.spared && self.phase == Phase::Recovery;
        let hold = if self.is_free() && spared { Hold::Reductions } else { self.hold };
        self.hold_while(hold, reaction)
    }

    /// Sets the window to `ssthresh` at the end of recovery, unless the recovery began without a reduction.
    pub(super) fn settle(&mut self) {
        if !self.spared {
            self.window.cwnd = self.window.ssthresh;
        }
    }

    /// Processes a duplicate acknowledgment while losses do not start a recovery. The third one requests a retransmission
    /// of the first segment. A recovery in progress goes on.
    pub(crate) fn on_duplicate_alone(
        &mut self,
        config: &Config,
        ack: &Ack,
        board: &mut Scoreboard,
    ) -> Response {
        if self.phase == Phase::Recovery {
            return self.on_duplicate(config, ack, board);
        }
        self.dup_acks = self.dup_acks.saturating_add(1);
        let third = self.dup_acks == config.dup_ack_threshold && self.past_recover(ack.una);
        if third { Response::ENTER } else { Response::NOTHING }
    }

    /// Runs the reaction to a time-out under the current hold.
    pub(super) fn react_to_timeout(&mut self, reaction: impl FnOnce(&mut Self)) {
        self.hold_while(self.hold, reaction);
    }

    fn hold_while<R>(&mut self, hold: Hold, reaction: impl FnOnce(&mut Self) -> R) -> R {
        if hold == Hold::Free {
            return reaction(self);
        }
        let before = self.window.clone();
        if let Some(own) = &mut self.own {
            own.reduced = None;
        }
        let result = reaction(self);
        match hold {
            Hold::Free => {}
            Hold::Reductions => self.window.keep_at_least(&before),
            Hold::Everything => self.window.keep(&before),
        }
        self.tell_own_of_hold();
        result
    }
}
