//! Congestion control once there is a route again.

use super::{CongestionState, RecoveryPhase};
use crate::tcp::config::Config;
use crate::tcp::feedback::CwndAfterFreeze;

impl CongestionState {
    /// The window on the new route.
    pub(crate) fn restart_on_new_route(&mut self, config: &Config, after: CwndAfterFreeze) {
        match after {
            CwndAfterFreeze::Restored => {}
            CwndAfterFreeze::Initial => {
                self.window.cwnd = self.window.cwnd.min(config.initial_window.bytes(self.window.mss));
            }
            CwndAfterFreeze::OneSegment => self.window.collapse(),
        }
    }

    /// Everything up to `max` is resent that the peer has not reported, and not because of congestion: no recovery is under
    /// way. Duplicates that the resending brings about start none (RFC 6582 §3.2 (4)).
    pub(crate) fn retransmit_all(&mut self, max: u64) {
        self.phase = RecoveryPhase::Open;
        self.window.inflation = 0;
        self.recover = max;
        self.dup_acks = 0;
        self.partial_acks = 0;
        self.limited_transmit_bytes = 0;
    }
}
