//! Queue that reports the interfaces of each packet, for callers that decide by these.

use super::parse::{Queued, Shape};
use super::socket::QueueSocket;
use super::verdicts::{Replaced, Verdicts};
use super::{Config, open_socket};
use hopline_linux::Error;
use hopline_proxy::Fate;
use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};

/// A queue bound by this process. When it is dropped, the kernel drops the packets that wait in it.
#[derive(Debug)]
pub(crate) struct Gate {
    socket: QueueSocket,
    waiting: VecDeque<Passing>,
    verdicts: Verdicts,
    number: u16,
}

/// A packet that waits for a verdict.
#[derive(Debug)]
pub(crate) struct Passing {
    id: u32,
    /// Index of the interface by which it came.
    pub(crate) came_by: Option<u32>,
    /// Index of the interface by which it will leave.
    pub(crate) leaves_by: Option<u32>,
    /// Firewall mark; 0: none.
    pub(crate) mark: u32,
    /// The packet from its IP header on; `None` if it is truncated or not as it will be on the wire.
    pub(crate) packet: Option<Vec<u8>>,
}

impl Gate {
    /// Binds the queue, in the calling thread's namespace. The configuration's interface and mark are not used.
    pub(crate) fn open(config: &Config) -> Result<Self, Error> {
        let mut waiting = VecDeque::new();
        let socket = open_socket(config, |queued| keep(&mut waiting, config.number, queued))?;
        Ok(Self { socket, waiting, verdicts: Verdicts::new(config.number), number: config.number })
    }

    /// Returns the waiting packets that one system call receives; empty if there are none.
    pub(crate) fn receive(&mut self) -> io::Result<VecDeque<Passing>> {
        let (waiting, number) = (&mut self.waiting, self.number);
        self.socket.receive(|queued| keep(waiting, number, queued))?;
        Ok(std::mem::take(&mut self.waiting))
    }

    /// Sets the verdict on a packet. Verdicts follow the order of the packets, apart from postponed ones.
    pub(crate) fn conclude(&mut self, passing: &Passing, fate: &Fate) {
        match fate {
            Fate::Pass => self.verdicts.pass(passing.id),
            Fate::Drop => self.verdicts.drop(passing.id),
            Fate::Replace(packet) => match self.verdicts.replace(passing.id, packet) {
                Replaced::Yes | Replaced::TooLong => {}
            },
        }
    }

    /// Postpones the verdict on a packet.
    pub(crate) fn postpone(&mut self, passing: &Passing) {
        self.verdicts.postpone(passing.id);
    }

    /// Sends the buffered verdicts to the kernel.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        let socket = &self.socket;
        self.verdicts.take(|messages| socket.send(messages))
    }

    /// Returns the malformed messages of the kernel, and the verdicts that it rejected.
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
