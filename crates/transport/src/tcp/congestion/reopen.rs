//! Congestion control once there is a route again.

use super::{Control, Phase};
use crate::tcp::config::Config;
use crate::tcp::feedback::WindowAfter;

impl Control {
    /// The window on the new route.
    pub(crate) fn reopen_window(&mut self, config: &Config, after: WindowAfter) {
        match after {
            WindowAfter::Restored => {}
            WindowAfter::Initial => {
                self.window.cwnd = self.window.cwnd.min(config.initial_window.bytes(self.window.mss));
            }
            WindowAfter::OneSegment => self.window.collapse(),
        }
    }

    /// Everything up to `max` is resent that the peer has not reported, and not because of congestion: no recovery is under
    /// way. Duplicates that the resending brings about start none (RFC 6582 §3.2 (4)).
    pub(crate) fn resend_all(&mut self, max: u64) {
        self.phase = Phase::Open;
        self.window.inflation = 0;
        self.recover = max;
        self.dup_acks = 0;
        self.partial_acks = 0;
        self.limited = 0;
    }
}
