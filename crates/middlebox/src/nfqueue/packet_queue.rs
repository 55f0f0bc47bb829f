//! Queue that reports the interfaces of each packet, for callers that decide by these.

use super::parse::{Completeness, Queued};
use super::socket::QueueSocket;
use super::verdicts::{ReplaceResult, Verdicts};
use super::{Config, open_socket};
use hopline_linux::Error;
use hopline_proxy::PacketVerdict;
use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};

/// A queue bound by this process. When it is dropped, the kernel drops the packets that wait in it.
#[derive(Debug)]
pub(crate) struct PacketQueue {
    socket: QueueSocket,
    waiting: VecDeque<QueuedPacket>,
    verdicts: Verdicts,
    number: u16,
}

/// A packet that waits for a verdict.
#[derive(Debug)]
pub(crate) struct QueuedPacket {
    id: u32,
    /// Index of the interface by which it came.
    pub(crate) in_interface: Option<u32>,
    /// Index of the interface by which it will leave.
    pub(crate) out_interface: Option<u32>,
    /// Firewall mark; 0: none.
    pub(crate) mark: u32,
    /// The packet from its IP header on; `None` if it is truncated or not as it will be on the wire.
    pub(crate) packet: Option<Vec<u8>>,
}

impl PacketQueue {
    /// Binds the queue, in the calling thread's namespace. The configuration's interface and mark are not used.
    pub(crate) fn open(config: &Config) -> Result<Self, Error> {
        let mut waiting = VecDeque::new();
        let socket = open_socket(config, |queued| enqueue(&mut waiting, config.number, queued))?;
        Ok(Self { socket, waiting, verdicts: Verdicts::new(config.number), number: config.number })
    }

    /// Returns the waiting packets that one system call receives; empty if there are none.
    pub(crate) fn receive(&mut self) -> io::Result<VecDeque<QueuedPacket>> {
        let (waiting, number) = (&mut self.waiting, self.number);
        self.socket.receive(|queued| enqueue(waiting, number, queued))?;
        Ok(std::mem::take(&mut self.waiting))
    }

    /// Sets the verdict on a packet. Verdicts follow the order of the packets, apart from postponed ones.
    pub(crate) fn set_verdict(&mut self, passing: &QueuedPacket, fate: &PacketVerdict) {
        match fate {
            PacketVerdict::Forward => self.verdicts.pass(passing.id),
            PacketVerdict::Drop => self.verdicts.drop(passing.id),
            PacketVerdict::Replace(packet) => match self.verdicts.replace(passing.id, packet) {
                ReplaceResult::Replaced | ReplaceResult::TooLong => {}
            },
        }
    }

    /// Postpones the verdict on a packet.
    pub(crate) fn postpone(&mut self, passing: &QueuedPacket) {
        self.verdicts.postpone(passing.id);
    }

    /// Sends the buffered verdicts to the kernel.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        let socket = &self.socket;
        self.verdicts.flush(|messages| socket.send(messages))
    }

    /// Returns the malformed messages of the kernel, and the verdicts that it rejected.
    pub(crate) const fn error_counts(&self) -> [u64; 2] {
        [self.socket.malformed, self.socket.refused]
    }
}

impl AsFd for PacketQueue {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

fn enqueue(waiting: &mut VecDeque<QueuedPacket>, number: u16, queued: Queued<'_>) {
    if queued.queue == number {
        let Queued {
            id,
            in_interface: came_by,
            out_interface: leaves_by,
            mark,
            packet,
            completeness: shape,
            ..
        } = queued;
        let packet = (shape == Completeness::Whole).then(|| packet.to_vec());
        waiting.push_back(QueuedPacket { id, in_interface: came_by, out_interface: leaves_by, mark, packet });
    }
}
