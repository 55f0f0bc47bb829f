//! Response to a spurious time-out (RFC 4015 §3.2), in addition to the undoing of the reduction.

use super::{CongestionState, SackRules, Variant};
use crate::tcp::config::Config;

impl CongestionState {
    /// Adjusts the window after a time-out was undone. `flight_before`: bytes in flight when it expired; `flight`: now;
    /// `acked`: by this ACK.
    pub(crate) fn on_spurious_timeout(
        &mut self,
        config: &Config,
        flight_before: u64,
        flight: u64,
        acked: u64,
    ) {
        if self.bbr.is_some() {
            return; // it paces: there is no burst
        }
        // Step 0: "pipe_prev" is what was in flight, if that is more than ssthresh.
        let pipe_prev = flight_before.min(u64::from(self.window.cwnd)) as u32;
        self.window.ssthresh = self.window.ssthresh.max(pipe_prev);
        // Step 5: no burst.
        let room = acked.min(u64::from(config.initial_window.bytes(self.window.mss)));
        let calm = (flight + room).min(1 << 30) as u32;
        self.window.cwnd = self.window.cwnd.min(calm.max(self.window.mss));
    }

    /// Limits the window to `segments` segments, unless BBR is in use.
    pub(crate) fn limit_cwnd(&mut self, segments: u32) {
        if self.bbr.is_some() {
            return;
        }
        self.window.cwnd = self.window.cwnd.min(segments * self.window.mss);
    }

    /// Returns whether SACK blocks are recorded in every phase.
    pub(crate) fn keeps_sack_blocks(&self) -> bool {
        matches!(self.variant, Variant::Sack(sack) if sack.rules == SackRules::Rfc6675)
    }
}
