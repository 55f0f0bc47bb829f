//! Options of a socket that act on data to send: corking, records, and the user timeout.

use hopline_core::{Duration, Instant};
use std::collections::VecDeque;

/// State of these options.
#[derive(Clone, Debug, Default)]
pub(super) struct SocketOptions {
    pub(super) cork: Cork,
    /// Ends of records that are not acknowledged, ascending.
    pub(super) records: VecDeque<u64>,
    pub(super) user_timeout: Option<Duration>,
    /// Time since which the first unacknowledged data have waited.
    pub(super) waits_since: Option<Instant>,
}

/// Treatment of a last segment that is not full.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Cork {
    /// As the treatment of small segments says.
    #[default]
    Off,
    /// It waits for more data, until the next acknowledgment.
    UntilAck,
    /// It waits for more data.
    On,
}

impl SocketOptions {
    /// Returns the end of the record that contains `position`; `None` if it has no end yet.
    pub(super) fn record_end(&self, position: u64) -> Option<u64> {
        self.records.get(self.records.partition_point(|&end| end <= position)).copied()
    }

    /// Processes an acknowledgment up to `una`.
    pub(super) fn on_ack(&mut self, una: u64) {
        if self.cork == Cork::UntilAck {
            self.cork = Cork::Off;
        }
        while self.records.front().is_some_and(|&end| end <= una) {
            self.records.pop_front();
        }
    }
}
