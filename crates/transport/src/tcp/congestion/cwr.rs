//! Proportional rate reduction after an ECN mark: the state CWR of Linux.
//!
//! The window falls by PRR until more than the data that were in flight at the mark is acknowledged, and is `ssthresh` then. It
//! does not grow meanwhile. A loss ends the state: fast recovery goes on towards the same `ssthresh`. Needs RACK, which knows
//! the bytes in flight.

use super::prr::{Cwr, MarkReduction, Prr, PrrBound, RecoveryAck};
use super::{AckInput, CongestionState, LossDetection, RecoveryPhase};
use crate::tcp::config::Config;

impl CongestionState {
    /// Returns whether PRR reduces the window for a mark.
    pub(crate) fn is_in_cwr(&self) -> bool {
        self.cwr == Cwr::Reducing && self.phase == RecoveryPhase::Open
    }

    /// Starts the reduction to `target` from the window before the mark. The window is `target` at once without PRR, and if
    /// `target` is below `ssthresh`.
    pub(super) fn start_mark_reduction(&mut self, config: &Config, ack: &AckInput, target: u32) {
        let is_gradual = config.mark_reduction == MarkReduction::Proportional
            && self.detection != LossDetection::DupAcks
            && self.phase == RecoveryPhase::Open
            && self.custom.is_none()
            && self.prr_bound().is_some()
            && target >= self.window.ssthresh;
        if is_gradual {
            self.cwr = Cwr::Reducing;
            self.sack_recovery.prr = Prr::start(PrrBound::SafeAck, ack.nxt - ack.una, 0, ack.delivered);
        } else {
            self.window.cwnd = target;
        }
    }

    /// Adapts the window to the data that an ACK delivers.
    pub(crate) fn on_ack_in_cwr(&mut self, ack: RecoveryAck) {
        self.react_under_hold(|c| c.update_prr_with(PrrBound::Conservative, ack));
    }

    /// Ends the reduction, if more than the data in flight at the mark is acknowledged: the peer has the CWR flag then.
    pub(super) fn end_mark_reduction_at(&mut self, una: u64) {
        if self.is_in_cwr() && una > self.marked_below {
            self.window.cwnd = self.window.ssthresh;
            self.abandon_mark_reduction();
        }
    }

    /// Ends the reduction, since another reaction sets the window.
    pub(super) fn abandon_mark_reduction(&mut self) {
        self.cwr = Cwr::Idle;
    }
}
