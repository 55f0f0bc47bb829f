//! Response of the sender to out-of-order delivery.

use super::{DisabledRetransmissions, DoorState, HeldTimerBackoff, HeldVariables, RepeatedEvent, UndoReach};
use crate::tcp::congestion::undo::{AfterUndo, UndoSelection};
use crate::tcp::congestion::window_hold::WindowHold;
use crate::tcp::endpoint::Endpoint;
use crate::tcp::recovery_policy::{BackoffPolicy, RecoveryPolicy, RetransmissionPolicy};
use hopline_core::{Duration, Instant, Payload};

impl<P: Payload> Endpoint<P> {
    /// Responds to an event: instant recovery (R2) first; then temporary disabling (R1) holds the restored state.
    pub(super) fn on_out_of_order(&mut self, now: Instant) {
        let Some(door) = &self.door else { return };
        let config = door.config;
        let rto = self.rto.without_back_off();
        if let Some(t2) = config.response.t2() {
            self.instant_recovery(now, multiple_of(rto, t2), config.reach);
        }
        if let Some(t1) = config.response.t1() {
            self.disable_temporarily(now, now + multiple_of(rto, t1), config.repeated_event);
        }
    }

    fn instant_recovery(&mut self, now: Instant, t2: Duration, reach: UndoReach) {
        let earliest = now - t2;
        let which = match reach {
            UndoReach::All => UndoSelection::OldestSince(earliest),
            UndoReach::Latest => UndoSelection::LatestSince(earliest),
        };
        // What is not acknowledged may be lost with the route.
        if self.undo_reductions(now, which, AfterUndo::Retransmissions).is_some() {
            self.stats.door.instant_recoveries += 1;
        }
    }

    fn disable_temporarily(&mut self, now: Instant, end: Instant, again: RepeatedEvent) {
        let Some(door) = &mut self.door else { return };
        if !door.is_disabled(now) {
            self.stats.door.disable_periods += 1;
        } else if again == RepeatedEvent::Continue {
            return;
        }
        door.disabled_until = end;
    }

    /// Updates the hold of the window in congestion control.
    pub(in crate::tcp) fn update_hold(&mut self, now: Instant) {
        let hold = self.recovery_policy(now).hold;
        self.control.set_hold(now, hold);
    }

    /// Counts a reduction that the hold prevented.
    pub(in crate::tcp) fn count_held_reduction(&mut self, now: Instant, spared: HeldReduction) {
        if self.door.as_deref().is_some_and(|door| door.is_disabled(now)) {
            match spared {
                HeldReduction::Timeout => self.stats.door.held_timeouts += 1,
                HeldReduction::FastRetransmit => self.stats.door.held_fast_retransmits += 1,
            }
        } else if self.route_recovery_policy().hold != WindowHold::None {
            self.stats.feedback.unreduced_losses += 1;
        }
    }
}

/// Cause of a reduction that the hold prevented.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::tcp) enum HeldReduction {
    Timeout,
    FastRetransmit,
}

impl DoorState {
    fn is_disabled(&self, now: Instant) -> bool {
        now < self.disabled_until
    }

    /// Returns the recovery policy at `now`: plain TCP outside of T1.
    pub(in crate::tcp) fn recovery_policy(&self, now: Instant) -> RecoveryPolicy {
        if !self.is_disabled(now) {
            return RecoveryPolicy::TCP;
        }
        RecoveryPolicy {
            hold: match self.config.held {
                HeldVariables::Everything => WindowHold::Everything,
                HeldVariables::Reductions => WindowHold::Reductions,
            },
            backoff: match self.config.held_timer {
                HeldTimerBackoff::Constant => BackoffPolicy::Constant,
                HeldTimerBackoff::Exponential => BackoffPolicy::Exponential,
            },
            retransmissions: match self.config.retransmissions {
                DisabledRetransmissions::FirstSegment => RetransmissionPolicy::FirstSegmentOnly,
                DisabledRetransmissions::Normal => RetransmissionPolicy::Normal,
            },
            ..RecoveryPolicy::TCP
        }
    }
}

fn multiple_of(rto: Duration, multiple: f64) -> Duration {
    Duration::from_nanos((rto.as_nanos() as f64 * multiple) as u64)
}
