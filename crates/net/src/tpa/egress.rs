//! Sending, and what happens while the socket has no room.

use super::connection::Connection;
use super::socket::{Path, Sent};
use super::stats::HostStats;
use super::table::Io;
use super::train::Train;
use bytes::Bytes;
use hopline_core::Machine;
use hopline_wire::tpa::{Segment, Tag};
use std::collections::{BTreeSet, VecDeque};
use std::io;

#[derive(Debug, Default)]
pub(super) struct Egress {
    /// What the socket had no room for.
    stuck: VecDeque<Train>,
    /// Who may have more to send when it is gone.
    waiting: BTreeSet<Tag>,
    /// Empty; its memory is used again.
    spare: Train,
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
        let mut train = std::mem::take(&mut self.spare);
        while self.stuck.is_empty() {
            let Some(segment) = connection.endpoint.poll_transmit(io.now) else {
                train = self.send(io, train, stats, &mut result);
                break;
            };
            let longest = if connection.route.takes_trains() { io.socket.longest_train() } else { 1 };
            let path = connection.route.path();
            if !train.has_room_for(path, segment.udp_len(), longest) {
                train = self.send(io, train, stats, &mut result);
            }
            if !train.is_empty() {
                connection.route.train_leaves(connection.endpoint.stats());
            }
            train.couple(path, &segment);
        }
        if self.is_stuck() {
            self.stuck.extend((!train.is_empty()).then(|| std::mem::take(&mut train)));
            self.waiting.insert(tag);
        }
        self.spare = train;
        result
    }

    /// Answers a stray segment; or does not, if there is no room.
    pub(super) fn reply(&mut self, io: Io<'_>, path: Path, segment: &Segment<Bytes>, stats: &mut HostStats) {
        if self.stuck.is_empty() {
            let mut train = std::mem::take(&mut self.spare);
            train.couple(path, segment);
            // A failure is counted.
            self.spare = self.send(io, train, stats, &mut Ok(()));
        }
    }

    /// Sends a segment that must not be cut into fragments on its way; or does not, if there is no room.
    ///
    /// # Errors
    /// It is too long to leave.
    pub(super) fn send_whole(
        &mut self,
        io: Io<'_>,
        path: Path,
        segment: &Segment<Bytes>,
        stats: &mut HostStats,
    ) -> io::Result<()> {
        if !self.stuck.is_empty() {
            return Ok(());
        }
        let mut train = Train::default();
        train.couple(path, segment);
        let departure = train.departure().expect("a segment is no empty datagram");
        match io.socket.send_whole(departure) {
            Sent::Failed(error) if error.raw_os_error() == Some(libc::EMSGSIZE) => Err(error),
            Sent::Yes => {
                stats.sent += 1;
                Ok(())
            }
            // As good as lost.
            Sent::Blocked | Sent::Failed(_) => Ok(()),
        }
    }

    /// Whether to wait for room in the socket.
    pub(super) fn is_stuck(&self) -> bool {
        !self.stuck.is_empty()
    }

    /// Whether a connection may have more to send.
    pub(super) fn owes(&self, tag: Tag) -> bool {
        self.waiting.contains(&tag)
    }

    /// Tries again. Returns who waited, if there is room.
    pub(super) fn resume(&mut self, io: Io<'_>, stats: &mut HostStats) -> BTreeSet<Tag> {
        for train in std::mem::take(&mut self.stuck) {
            if self.is_stuck() {
                self.stuck.push_back(train);
            } else {
                self.send(io, train, stats, &mut Ok(()));
            }
        }
        if self.is_stuck() { BTreeSet::new() } else { std::mem::take(&mut self.waiting) }
    }

    /// Sends a train, or keeps what there is no room for. Returns an empty one.
    fn send(
        &mut self,
        io: Io<'_>,
        mut train: Train,
        stats: &mut HostStats,
        result: &mut io::Result<()>,
    ) -> Train {
        while let Some(departure) = train.departure() {
            let datagrams = departure.datagrams();
            match io.socket.send(departure) {
                Sent::Yes => {
                    stats.sent += datagrams as u64;
                    train.depart();
                }
                Sent::Blocked => self.stuck.push_back(std::mem::take(&mut train)),
                // Perhaps the path is not made for trains.
                Sent::Failed(_) if datagrams > 1 => train.uncouple(),
                Sent::Failed(error) => {
                    stats.send_failures += 1;
                    *result = std::mem::replace(result, Ok(())).and(Err(error));
                    train.depart();
                }
            }
        }
        train
    }
}
