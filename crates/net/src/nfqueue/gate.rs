//! A queue whose packets come with the interfaces that they pass, for whoever decides by these.

use super::parse::{Queued, Shape};
use super::socket::QueueSocket;
use super::verdicts::{Replaced, Verdicts};
use super::{Config, open_socket};
use crate::error::Error;
use hopline_proxy::Fate;
use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};

/// A queue that this process has. Packets that wait in it when it goes are dropped.
#[derive(Debug)]
pub(crate) struct Gate {
    socket: QueueSocket,
    waiting: VecDeque<Passing>,
    verdicts: Verdicts,
    number: u16,
}

/// A packet that waits.
#[derive(Debug)]
pub(crate) struct Passing {
    id: u32,
    /// Number of the interface through which it came.
    pub(crate) came_by: Option<u32>,
    /// Number of the interface through which it will leave.
    pub(crate) leaves_by: Option<u32>,
    /// Its mark; 0: none.
    pub(crate) mark: u32,
    /// The packet from its IP header on; `None` if it is not here as it will be on the wire.
    pub(crate) packet: Option<Vec<u8>>,
}

impl Gate {
    /// Takes the queue, in the calling thread's namespace. The configuration's interface and mark do not matter.
    pub(crate) fn open(config: &Config) -> Result<Self, Error> {
        let mut waiting = VecDeque::new();
        let socket = open_socket(config, |queued| keep(&mut waiting, config.number, queued))?;
        Ok(Self { socket, waiting, verdicts: Verdicts::new(config.number), number: config.number })
    }

    /// Packets that wait, as one system call brings them. None: there is none now.
    pub(crate) fn receive(&mut self) -> io::Result<VecDeque<Passing>> {
        let (waiting, number) = (&mut self.waiting, self.number);
        self.socket.receive(|queued| keep(waiting, number, queued))?;
        Ok(std::mem::take(&mut self.waiting))
    }

    /// Says what becomes of a packet, in the order in which they came but for those that were postponed.
    pub(crate) fn conclude(&mut self, passing: &Passing, fate: &Fate) {
        match fate {
            Fate::Pass => self.verdicts.pass(passing.id),
            Fate::Drop => self.verdicts.drop(passing.id),
            Fate::Replace(packet) => match self.verdicts.replace(passing.id, packet) {
                Replaced::Yes | Replaced::TooLong => {}
            },
        }
    }

    /// Keeps a packet waiting until its verdict.
    pub(crate) fn postpone(&mut self, passing: &Passing) {
        self.verdicts.postpone(passing.id);
    }

    /// Has it take effect.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        let socket = &self.socket;
        self.verdicts.take(|messages| socket.send(messages))
    }

    /// Messages of the kernel that were none, and verdicts that it did not take.
    pub(crate) const fn troubles(&self) -> [u64; 2] {
        [self.socket.malformed, self.socket.refused]
    }
}

impl AsFd for Gate {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

fn keep(waiting: &mut VecDeque<Passing>, number: u16, queued: Queued<'_>) {
    if queued.queue == number {
        let Queued { id, came_by, leaves_by, mark, packet, shape, .. } = queued;
        let packet = (shape == Shape::Whole).then(|| packet.to_vec());
        waiting.push_back(Passing { id, came_by, leaves_by, mark, packet });
    }
}
