//! Calls for a host stack that drives endpoints with real packets: path MTU, and bounds that lengths alone do not give.

use super::config::MIN_MSS;
use super::endpoint::Endpoint;
use super::input::TIMESTAMPS_LEN;
use hopline_core::{Payload, Seq32};

impl<P: Payload> Endpoint<P> {
    /// Returns whether `seq` was sent and is not acknowledged. A report of a router that quotes another number is stale or forged
    /// (RFC 5927 §4.1).
    #[must_use]
    pub fn is_outstanding(&self, seq: Seq32) -> bool {
        let from_una = i64::from(seq.distance_from(self.snd.seq(self.snd.una)));
        (0..(self.snd.max - self.snd.una) as i64).contains(&from_una)
    }

    /// Lowers the largest segment to `mss` bytes, options included as in [`Config::mss`](super::Config::mss), and sends the first
    /// outstanding one again: a router has dropped what was larger (RFC 1191 §6.4, RFC 8201). A larger `mss` than the present one changes
    /// nothing.
    pub fn limit_mss(&mut self, mss: u32) {
        let door = self.door.as_deref().map_or(0, super::door::Door::fixed_len);
        let options = if self.options.timestamps { TIMESTAMPS_LEN } else { 0 } + door;
        let limit = mss.max(MIN_MSS).saturating_sub(options);
        if limit < self.snd.mss && limit > 0 && self.state.is_synchronized() {
            self.snd.mss = limit;
            self.snd.resend_first = self.snd.outstanding() && self.state.may_transmit();
        }
    }

    /// Returns the number of pieces in which received data wait for [`recv`](Self::recv). Each takes memory of its own, however short
    /// it is.
    #[must_use]
    pub fn unread_pieces(&self) -> usize {
        self.rcv.ready.len()
    }
}
