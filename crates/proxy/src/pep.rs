//! Interface of middleboxes that see passing packets, and change ACKs.

use crate::packet::{BareAck, Connection, Nack, Packet, Verdict};
use hopline_core::{Instant, Payload, Seq32};
use std::net::IpAddr;

/// Middlebox that packets pass in both directions. It terminates no connection; ACKs may be absorbed or
/// changed. `K`: a packet as the caller stores it, to retransmit it.
pub trait Pep<K> {
    /// Type of the counters.
    type Stats;

    /// Handles a packet to a mobile host. `keep` stores the packet so that it can be retransmitted.
    fn handle_packet_to_mobile<P: Payload>(
        &mut self,
        now: Instant,
        packet: Packet<'_, P>,
        keep: impl FnOnce() -> K,
    ) -> Verdict;

    /// Handles a packet from a mobile host.
    fn handle_packet_from_mobile<P: Payload>(&mut self, now: Instant, packet: Packet<'_, P>) -> Verdict;

    /// Notifies of the progress of data to a mobile host, from `seq` on, between the middlebox and the last
    /// hop. A caller that cannot know makes no call.
    fn handle_progress(&mut self, now: Instant, connection: Connection, seq: Seq32, way: LastHopProgress);

    /// Removes the state and packets of a mobile host that has left: its acknowledgments no longer pass here.
    fn handle_departure(&mut self, mobile: IpAddr);

    /// Does what is due at `now`.
    fn handle_timeout(&mut self, now: Instant);

    /// Returns the next packet to send.
    fn poll_transmit(&mut self) -> Option<Transmit<K>>;

    /// Returns the time of the next call of [`Pep::handle_timeout`].
    fn poll_timeout(&self) -> Option<Instant>;

    /// Returns the counters.
    fn stats(&self) -> Self::Stats;

    /// Returns the number of known connections.
    fn connections(&self) -> usize;
}

/// Progress of a packet between a middlebox and the last hop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LastHopProgress {
    /// It waits; another notification follows when it leaves.
    Queued,
    /// It leaves now.
    Sent,
    /// The queue of the last hop has refused it, or dropped it later: congestion.
    Dropped,
}

/// Packet that a [`Pep`] sends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Transmit<K> {
    /// A retransmission to the mobile host.
    Retransmission {
        /// Turn at the last hop.
        queue_position: QueuePosition,
        /// Connection of the packet.
        connection: Connection,
        /// The packet.
        packet: K,
        /// New value of the sender's TSval (RFC 7323 §3); `None`: unchanged.
        tsval: Option<u32>,
    },
    /// An ACK to the fixed host.
    Ack(BareAck),
    /// A negative acknowledgment to the mobile host.
    Nack(Nack),
}

/// Turn of a retransmission at the last hop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueuePosition {
    /// Ahead of all waiting packets, behind earlier retransmissions (Snoop, §3.1.2).
    Front,
    /// Behind all waiting packets.
    Back,
}
