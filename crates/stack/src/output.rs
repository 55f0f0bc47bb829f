//! A packet leaves, and timers expire.

use crate::connection::FourTuple;
use crate::stack::Stack;
use bytes::Bytes;
use hopline_core::{Instant, StateMachine};
use hopline_wire::ip::{Header, Protocol};
use hopline_wire::tcp::Segment;

impl Stack {
    /// Writes the next packet into `packet`, in place of what it holds. Returns whether there is one. Connections take turns.
    pub fn poll_transmit(&mut self, now: Instant, packet: &mut Vec<u8>) -> bool {
        packet.clear();
        if let Some(answer) = self.replies.pop_front() {
            *packet = answer;
            self.stats.sent += 1;
            return true;
        }
        while let Some(id) = self.transmit_queue.pop_front() {
            self.apply_memory_limits(id);
            let Some(connection) = self.connections.get_mut(&id) else { continue };
            let segment = connection.endpoint.poll_transmit(now);
            connection.is_queued = segment.is_some();
            if let Some(segment) = &segment {
                write(connection.tuple, segment, packet);
                self.transmit_queue.push_back(id);
                self.stats.sent += 1;
            }
            let is_over = segment.is_none() && connection.is_over();
            self.account_memory(id);
            self.update_timer(id);
            if is_over {
                self.remove(id);
            }
            if segment.is_some() {
                return true;
            }
        }
        false
    }

    /// Returns the instant at which time matters next.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.timers.first().map(|&(due, _)| due)
    }

    /// Handles the timers that are due, each once.
    pub fn handle_timeout(&mut self, now: Instant) {
        let due: Vec<_> = self.timers.iter().take_while(|&&(due, _)| due <= now).map(|&(_, id)| id).collect();
        for id in due {
            if let Some(connection) = self.connections.get_mut(&id) {
                connection.endpoint.handle_timeout(now);
                self.process_outputs(now, id);
            }
        }
    }
}

/// Writes `segment`, from the local to the remote end, into `packet`.
pub(crate) fn write(ends: FourTuple, segment: &Segment<Bytes>, packet: &mut Vec<u8>) {
    let mut header = Header::new(ends.local.ip(), ends.remote.ip(), Protocol::Tcp);
    match &mut header {
        Header::V4(header) => header.ecn = segment.ecn,
        Header::V6(header) => header.ecn = segment.ecn,
    }
    header.emit(segment.wire_len(), packet);
    segment.emit(&header, packet);
}
