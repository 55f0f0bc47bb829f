//! Response of the sender to out-of-order delivery.

use super::{Again, Door, Held, HeldTimer, Reach, Resends};
use crate::tcp::congestion::hold::Hold;
use crate::tcp::congestion::undo::{Resume, Which};
use crate::tcp::endpoint::Endpoint;
use crate::tcp::stance::{Resent, Stance, Timeout};
use hopline_core::{Duration, Instant, Payload};

impl<P: Payload> Endpoint<P> {
    /// Responds to an event: instant recovery (R2) first; then temporary disabling (R1) holds the restored state.
    pub(super) fn on_out_of_order(&mut self, now: Instant) {
        let Some(door) = &self.door else { return };
        let config = door.config;
        let rto = self.rto.without_back_off();
        if let Some(t2) = config.response.t2() {
            self.recover_instantly(now, times(rto, t2), config.reach);
        }
        if let Some(t1) = config.response.t1() {
            self.disable_until(now, now + times(rto, t1), config.again);
        }
    }

    fn recover_instantly(&mut self, now: Instant, t2: Duration, reach: Reach) {
        let earliest = now - t2;
        let which = match reach {
            Reach::First => Which::OldestSince(earliest),
            Reach::Latest => Which::LatestSince(earliest),
        };
        // What is not acknowledged may be lost with the route.
        if self.undo(now, which, Resume::Resending).is_some() {
            self.stats.door.recoveries += 1;
        }
    }

    fn disable_until(&mut self, now: Instant, end: Instant, again: Again) {
        let Some(door) = &mut self.door else { return };
        if !door.is_disabling(now) {
            self.stats.door.disablings += 1;
        } else if again == Again::Continue {
            return;
        }
        door.disabled_until = end;
    }

    /// Updates the hold of the window in congestion control.
    pub(in crate::tcp) fn note_hold(&mut self, now: Instant) {
        let hold = self.stance(now).hold;
        self.control.set_hold(now, hold);
    }

    /// Counts a reduction that the hold prevented.
    pub(in crate::tcp) fn count_spared(&mut self, now: Instant, spared: Spared) {
        if self.door.as_deref().is_some_and(|door| door.is_disabling(now)) {
            match spared {
                Spared::Timeout => self.stats.door.spared_timeouts += 1,
                Spared::FastRetransmit => self.stats.door.spared_fast_retransmits += 1,
            }
        } else if self.stance_for_route().hold != Hold::Free {
            self.stats.feedback.spared += 1;
        }
    }
}

/// Cause of a reduction that the hold prevented.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::tcp) enum Spared {
    Timeout,
    FastRetransmit,
}

impl Door {
    fn is_disabling(&self, now: Instant) -> bool {
        now < self.disabled_until
    }

    /// Returns the recovery policy at `now`: plain TCP outside of T1.
    pub(in crate::tcp) fn stance(&self, now: Instant) -> Stance {
        if !self.is_disabling(now) {
            return Stance::PLAIN;
        }
        Stance {
            hold: match self.config.held {
                Held::Everything => Hold::Everything,
                Held::Reductions => Hold::Reductions,
            },
            timeout: match self.config.held_timer {
                HeldTimer::Constant => Timeout::Stays,
                HeldTimer::BacksOff => Timeout::Doubles,
            },
            resends: match self.config.resends {
                Resends::First => Resent::FirstAlone,
                Resends::AsUsual => Resent::AsRecovered,
            },
            ..Stance::PLAIN
        }
    }
}

fn times(rto: Duration, multiple: f64) -> Duration {
    Duration::from_nanos((rto.as_nanos() as f64 * multiple) as u64)
}
