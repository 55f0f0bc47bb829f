//! What all machines that see packets pass, and change ACKs, have in common.

use crate::packet::{BareAck, Connection, Nack, Packet, Verdict};
use hopline_core::{Instant, Payload};
use std::net::Ipv4Addr;

/// A machine that packets pass in both directions. It ends no connection; ACKs may be absorbed or changed on the way. `K`: a packet as
/// whoever drives the machine keeps it, to send it again.
pub trait Filter<K> {
    /// What it counts.
    type Stats;

    /// A packet goes to a mobile host. `keep` makes of it what can be sent again.
    fn pass_to_mobile<P: Payload>(
        &mut self,
        now: Instant,
        packet: Packet<'_, P>,
        keep: impl FnOnce() -> K,
    ) -> Verdict;

    /// A packet comes from a mobile host.
    fn pass_from_mobile<P: Payload>(&mut self, now: Instant, packet: Packet<'_, P>) -> Verdict;

    /// The queue of the last hop has refused this packet, or dropped it later: that is congestion. Who drives the machine and cannot
    /// know says nothing.
    fn refused<P: Payload>(&mut self, packet: Packet<'_, P>);

    /// A mobile host has gone elsewhere: what it acknowledges is not seen here any more, so what is kept for it goes.
    fn forget_mobile(&mut self, mobile: Ipv4Addr);

    /// Does what is due.
    fn handle_timeout(&mut self, now: Instant);

    /// The next packet to send.
    fn poll_transmit(&mut self) -> Option<Transmit<K>>;

    /// When to call [`Filter::handle_timeout`].
    fn poll_timeout(&self) -> Option<Instant>;

    /// What it has done.
    fn stats(&self) -> &Self::Stats;

    /// Connections that it knows of.
    fn connections(&self) -> usize;
}

/// What a [`Filter`] sends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Transmit<K> {
    /// A packet to the mobile host again.
    Again {
        /// When it has its turn.
        turn: Turn,
        /// Whose it is.
        connection: Connection,
        /// The packet.
        kept: K,
    },
    /// An ACK to the fixed host.
    Ack(BareAck),
    /// A question to the mobile host.
    Nack(Nack),
}

/// When a packet that is sent again has its turn at the last hop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// Ahead of all that wait, after what was sent again before (Snoop, §3.1.2).
    First,
    /// Behind all that wait.
    Last,
}
