//! Holding the window: congestion control goes through its motions, and `cwnd` and `ssthresh` stay (TCP-DOOR's temporary
//! disabling; losses that a feedback scheme takes for the route's or for bit errors).
//!
//! Recovery and go-back-N go on as always, so that what is lost is resent. The strategies know nothing of it.

use super::{Ack, Control, Phase, Response};
use crate::tcp::config::Config;
use crate::tcp::scoreboard::Scoreboard;
use hopline_core::Instant;

/// What reactions may do to the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hold {
    /// Anything.
    Free,
    /// Open it.
    Reductions,
    /// Nothing.
    Everything,
}

impl Control {
    /// From `now` on. Time during which the window was constant does not count for its growth, as where it is not in use
    /// (RFC 9438 §5.8).
    pub(crate) fn set_hold(&mut self, now: Instant, hold: Hold) {
        if self.hold == Hold::Everything {
            self.window.rest(now);
        }
        self.hold = hold;
    }

    pub(super) fn is_free(&self) -> bool {
        self.hold == Hold::Free
    }

    /// Lets an acknowledgment be reacted to. A recovery that began while the window was held ends without a reduction, though
    /// it may end later.
    pub(super) fn react<R>(&mut self, reaction: impl FnOnce(&mut Self) -> R) -> R {
        let spared = self.spared && self.phase == Phase::Recovery;
        let hold = if self.is_free() && spared { Hold::Reductions } else { self.hold };
        self.hold_while(hold, reaction)
    }

    /// Recovery is over, and the window at `ssthresh`; unless nothing was reduced when it began.
    pub(super) fn settle(&mut self) {
        if !self.spared {
            self.window.cwnd = self.window.ssthresh;
        }
    }

    /// Takes a duplicate while losses begin no recovery: the third has the first segment resent. A recovery under way goes on.
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

    /// Lets a time-out be reacted to.
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
