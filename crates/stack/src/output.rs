//! A packet leaves, and timers expire.

use crate::connection::Ends;
use crate::stack::Stack;
use bytes::Bytes;
use hopline_core::{Instant, Machine};
use hopline_wire::ip::{Header, Protocol};
use hopline_wire::tcp::Segment;

impl Stack {
    /// Writes the next packet into `packet`, in place of what it holds. Returns whether there is one. Connections take turns.
    pub fn poll_transmit(&mut self, now: Instant, packet: &mut Vec<u8>) -> bool {
        packet.clear();
        if let Some(answer) = self.answers.pop_front() {
            *packet = answer;
            self.stats.sent += 1;
            return true;
        }
        while let Some(id) = self.queued.pop_front() {
            self.limit(id);
            let Some(connection) = self.connections.get_mut(&id) else { continue };
            let segment = connection.endpoint.poll_transmit(now);
            connection.is_queued = segment.is_some();
            if let Some(segment) = &segment {
                write(connection.ends, segment, packet);
                self.queued.push_back(id);
                self.stats.sent += 1;
            }
            let is_over = segment.is_none() && connection.is_over();
            self.charge(id);
            self.arm(id);
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
        self.due.first().map(|&(due, _)| due)
    }

    /// Handles the timers that are due, each once.
    pub fn handle_timeout(&mut self, now: Instant) {
        let due: Vec<_> = self.due.iter().take_while(|&&(due, _)| due <= now).map(|&(_, id)| id).collect();
        for id in due {
            if let Some(connection) = self.connections.get_mut(&id) {
                connection.endpoint.handle_timeout(now);
                self.settle(now, id);
            }
        }
    }
}

/// Writes `segment`, from the local to the remote end, into `packet`.
pub(crate) fn write(ends: Ends, segment: &Segment<Bytes>, packet: &mut Vec<u8>) {
    let mut header = Header::between(ends.local.ip(), ends.remote.ip(), Protocol::Tcp);
    match &mut header {
        Header::V4(header) => header.ecn = segment.ecn,
        Header::V6(header) => header.ecn = segment.ecn,
    }
    header.emit(segment.wire_len(), packet);
    segment.emit(&header, packet);
}
