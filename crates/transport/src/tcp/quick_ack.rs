//! Immediate acknowledgments at the start of a stream, as Linux sends them ("quickack mode"), so that the sender's window
//! grows with every segment.
//!
//! The first segments, and those after a pause, are acknowledged at once. A host that answers soon after it receives is
//! interactive: its acknowledgments travel with its data, and the mode ends until a delayed acknowledgment times out.

use hopline_core::{Duration, Instant};

/// Time after data within which an answer makes the connection interactive (Linux, `TCP_ATO_MIN`).
const INTERACTIVE_DELAY: Duration = Duration::from_millis(40);

/// State of immediate acknowledgments.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct QuickAck {
    /// Acknowledgments that are still sent at once.
    left: u8,
    last_data: Option<Instant>,
    is_interactive: bool,
}

impl QuickAck {
    /// Records in-order data. `most`: acknowledgments sent at once; 0: none. `pause`: time without data after which they
    /// are again.
    pub(super) fn on_data(&mut self, now: Instant, most: u8, pause: Duration) {
        if self.last_data.is_none_or(|last| now.since(last) > pause) {
            self.left = self.left.max(most);
        }
        self.last_data = Some(now);
    }

    /// Returns whether data are acknowledged at once.
    pub(super) fn is_active(&self) -> bool {
        self.left > 0 && !self.is_interactive
    }

    /// Returns whether data have arrived.
    pub(super) fn has_seen_data(&self) -> bool {
        self.last_data.is_some()
    }

    /// Records an acknowledgment of data.
    pub(super) fn on_ack_sent(&mut self) {
        self.left = self.left.saturating_sub(1);
    }

    /// Records new data of this host.
    pub(super) fn on_data_sent(&mut self, now: Instant) {
        self.is_interactive |= self.last_data.is_some_and(|last| now.since(last) < INTERACTIVE_DELAY);
    }

    /// Records that a delayed acknowledgment timed out: no answer of this host came.
    pub(super) fn on_delay_over(&mut self) {
        self.is_interactive = false;
    }
}
