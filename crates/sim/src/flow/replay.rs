//! Traffic as it was recorded: so many bytes at such a time.

use crate::spec::RecordedPacket;
use hopline_core::Instant;
use std::sync::Arc;

/// A recording, and how far it has been played.
#[derive(Debug)]
pub(super) struct Replay {
    packets: Arc<[RecordedPacket]>,
    start: Instant,
    next_index: usize,
}

impl Replay {
    /// Creates the recording of a flow that starts at `start`.
    pub(super) fn new(packets: Arc<[RecordedPacket]>, start: Instant) -> Self {
        Self { packets, start, next_index: 0 }
    }

    /// Returns the time at which the next packet is due, if there is one.
    pub(super) fn due(&self) -> Option<Instant> {
        self.packets.get(self.next_index).map(|packet| self.start + packet.at)
    }

    /// Returns the bytes of the next packet, which is due by `now`.
    pub(super) fn next_packet(&mut self, now: Instant) -> Option<u64> {
        let bytes = self.due().filter(|due| *due <= now).map(|_| self.packets[self.next_index].bytes);
        self.next_index += usize::from(bytes.is_some());
        bytes
    }

    /// Returns the number of bytes of all packets.
    pub(super) fn total(&self) -> u64 {
        self.packets.iter().map(|packet| packet.bytes).sum()
    }
}
