//! Growth of the receive window of a connection.

use hopline_transport::tcp::Config;

/// Receive window with which a connection begins, bytes: as much as a SYN can announce (RFC 7323 §2.2).
const INITIAL_WINDOW: u64 = 0xffff;

/// Growth of a receive window, by what the application reads.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReceiveWindow {
    /// Bytes that may be unread or announced.
    pub(crate) size: u64,
    /// Bytes that the application had read when the window grew last.
    read_at_last_growth: u64,
}

impl ReceiveWindow {
    pub(crate) fn new(config: &Config) -> Self {
        Self { size: INITIAL_WINDOW.min(config.receive_buffer().into()), read_at_last_growth: 0 }
    }

    /// Doubles the window each time half of it was read. So it is always larger than what a sender in slow start has sent by then.
    pub(crate) fn grow(&mut self, read: u64, most: u64) {
        while self.size < most && read - self.read_at_last_growth >= self.size / 2 {
            self.read_at_last_growth += self.size / 2;
            self.size = (2 * self.size).min(most);
        }
    }
}
