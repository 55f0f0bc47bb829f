//! What brings whole packets to a machine in the path, and does with them what it says.

use crate::filter::Turn;
use crate::packet::Side;
use bytes::Bytes;

/// A place in the path of IP packets: a queue of the kernel, a pair of interfaces, a node of the simulator.
///
/// Packets come one at a time. Each is concluded before the next one is asked for, so that what is concluded is in order. What is
/// injected leaves behind what was concluded before.
pub trait PacketIo {
    /// Why it can no longer be used. What a single packet suffers is none.
    type Error;

    /// The next packet that waits; `None` if there is none now.
    ///
    /// # Errors
    /// If no packet will ever come again.
    fn receive(&mut self) -> Result<Option<Arrival>, Self::Error>;

    /// Says what becomes of a packet. It may be held back until [`PacketIo::flush`].
    ///
    /// # Errors
    /// If nothing can be said any more.
    fn conclude(&mut self, arrival: Arrival, fate: Fate) -> Result<(), Self::Error>;

    /// Sends a packet of the machine's own towards a side. It must not be received here again.
    ///
    /// # Errors
    /// If nothing can be sent any more.
    fn inject(&mut self, to: Side, turn: Turn, packet: &[u8]) -> Result<Injected, Self::Error>;

    /// Has everything take effect that was said so far.
    ///
    /// # Errors
    /// If nothing can be said any more.
    fn flush(&mut self) -> Result<(), Self::Error>;

    /// The next packet that has passed to the mobile side and found the queue there full. `None` if there is none, or nobody knows.
    fn next_dropped(&mut self) -> Option<Bytes> {
        None
    }
}

/// A [`PacketIo`] where a packet can wait while others are concluded.
pub trait Postpones: PacketIo {
    /// What becomes of this packet, which was received last, is said later, after packets that came behind it.
    ///
    /// # Errors
    /// If nothing can be said any more.
    fn postpone(&mut self, arrival: &Arrival) -> Result<(), Self::Error>;
}

/// A packet that waits for what becomes of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// What whoever brought it knows it by.
    pub id: u64,
    /// Where it comes from; it goes to the other side.
    pub from: Side,
    /// The packet, from its IP header on, with all its checksums.
    pub packet: Bytes,
}

/// What becomes of a packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It goes on as it is.
    Pass,
    /// This goes on in its place.
    Replace(Vec<u8>),
    /// It goes no further.
    Drop,
}

/// What became of a packet of the machine's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Injected {
    /// It is on its way.
    Sent,
    /// The queue of the last hop had no room for it: it is lost, and that is congestion.
    NoRoom,
    /// There was no way: it is lost.
    Refused,
}
