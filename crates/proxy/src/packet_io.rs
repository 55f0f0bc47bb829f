//! Packet I/O of a middlebox: receives whole packets, and carries out the verdicts on them.

use crate::packet::Side;
use crate::pep::QueuePosition;
use bytes::Bytes;

/// A place in the path of IP packets: a queue of the kernel, a pair of interfaces, a node of the simulator.
///
/// Packets are received one at a time. Each is concluded before the next one is received, so that conclusions
/// are in order. Injected packets leave after those concluded before.
pub trait PacketIo {
    /// Error after which it can no longer be used. A failure that affects a single packet is none.
    type Error;

    /// Returns the next waiting packet; `None` if there is none now.
    ///
    /// # Errors
    /// If no packet will ever arrive again.
    fn receive(&mut self) -> Result<Option<Arrival>, Self::Error>;

    /// Sets the fate of a packet. This may take effect only with [`PacketIo::flush`].
    ///
    /// # Errors
    /// If no fate can be set any more.
    fn set_verdict(&mut self, arrival: Arrival, fate: PacketVerdict) -> Result<(), Self::Error>;

    /// Sends a packet of the middlebox towards a side. It must not be received here again.
    ///
    /// # Errors
    /// If no packet can be sent any more.
    fn inject(&mut self, to: Side, turn: QueuePosition, packet: &[u8]) -> Result<InjectResult, Self::Error>;

    /// Makes all calls so far take effect.
    ///
    /// # Errors
    /// If no fate can be set any more.
    fn flush(&mut self) -> Result<(), Self::Error>;

    /// Returns the next packet that was forwarded to the mobile side and that its full queue dropped. `None`
    /// if there is none, or this is not known.
    fn next_dropped(&mut self) -> Option<Bytes> {
        None
    }
}

/// A [`PacketIo`] in which a packet can wait while later ones are concluded.
pub trait Postpone: PacketIo {
    /// Postpones the fate of this packet, which was received last, until after later packets.
    ///
    /// # Errors
    /// If no fate can be set any more.
    fn postpone(&mut self, arrival: &Arrival) -> Result<(), Self::Error>;
}

/// A packet that waits for its fate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// Identifier given by the [`PacketIo`].
    pub id: u64,
    /// Side from which the packet comes; it goes to the other side.
    pub from: Side,
    /// The packet, from its IP header on, with all its checksums.
    pub packet: Bytes,
}

/// Fate of a packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PacketVerdict {
    /// The packet is forwarded unchanged.
    Forward,
    /// This packet is forwarded in its place.
    Replace(Vec<u8>),
    /// The packet is dropped.
    Drop,
}

/// Result of [`PacketIo::inject`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum InjectResult {
    /// The packet was sent.
    Sent,
    /// The queue of the last hop was full; the packet is lost to congestion.
    QueueFull,
    /// There was no route; the packet is lost.
    NoRoute,
}
