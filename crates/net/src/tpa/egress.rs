//! Sending, and what happens while the socket has no room.

use super::connection::Connection;
use super::socket::{Path, Sent};
use super::stats::HostStats;
use super::table::Io;
use bytes::Bytes;
use hopline_core::Machine;
use hopline_wire::tpa::{Segment, Tag};
use std::collections::BTreeSet;
use std::io;

#[derive(Debug, Default)]
pub(super) struct Egress {
    /// The datagram that the socket had no room for.
    stuck: Option<(Path, Vec<u8>)>,
    /// Who may have more to send when it is gone.
    waiting: BTreeSet<Tag>,
}

impl Egress {
    /// Sends all that a connection wants to send.
    ///
    /// # Errors
    /// The first failure. What failed to be sent counts as lost on the way.
    pub(super) fn drain(
        &mut self,
        io: Io<'_>,
        tag: Tag,
        connection: &mut Connection,
        stats: &mut HostStats,
    ) -> io::Result<()> {
        let mut result = Ok(());
        while self.stuck.is_none() {
            let Some(segment) = connection.endpoint.poll_transmit(io.now) else { return result };
            result = result.and(self.send(io, connection.path, bytes_of(&segment), stats));
        }
        self.waiting.insert(tag);
        result
    }

    /// Answers a stray segment; or does not, if there is no room.
    pub(super) fn reply(&mut self, io: Io<'_>, path: Path, segment: &Segment<Bytes>, stats: &mut HostStats) {
        if self.stuck.is_none() {
            // Counted.
            let _ = self.send(io, path, bytes_of(segment), stats);
        }
    }

    /// Whether to wait for room in the socket.
    pub(super) fn is_stuck(&self) -> bool {
        self.stuck.is_some()
    }

    /// Whether a connection may have more to send.
    pub(super) fn owes(&self, tag: Tag) -> bool {
        self.waiting.contains(&tag)
    }

    /// Tries again. Returns who waited, if there is room.
    pub(super) fn resume(&mut self, io: Io<'_>, stats: &mut HostStats) -> BTreeSet<Tag> {
        if let Some((path, datagram)) = self.stuck.take() {
            let _ = self.send(io, path, datagram, stats);
        }
        if self.is_stuck() { BTreeSet::new() } else { std::mem::take(&mut self.waiting) }
    }

    fn send(&mut self, io: Io<'_>, path: Path, datagram: Vec<u8>, stats: &mut HostStats) -> io::Result<()> {
        match io.socket.send(path, &datagram) {
            Sent::Yes => stats.sent += 1,
            Sent::Blocked => self.stuck = Some((path, datagram)),
            Sent::Failed(error) => {
                stats.send_failures += 1;
                return Err(error);
            }
        }
        Ok(())
    }
}

fn bytes_of(segment: &Segment<Bytes>) -> Vec<u8> {
    let mut datagram = Vec::with_capacity(segment.udp_len());
    segment.emit_udp(&mut datagram);
    datagram
}
