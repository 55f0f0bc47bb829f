//! What all machines that see packets pass, and change ACKs, have in common.

use crate::packet::{BareAck, Connection, Nack, Packet, Verdict};
use hopline_core::{Instant, Payload, Seq32};
use std::net::IpAddr;

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

    /// What becomes of data that have passed to a mobile host, from `seq` on, before they are on the last hop. Who drives the machine and
    /// cannot know says nothing.
    fn note(&mut self, now: Instant, connection: Connection, seq: Seq32, way: OnTheWay);

    /// A mobile host has gone elsewhere: what it acknowledges is not seen here any more, so what is kept for it goes.
    fn forget_mobile(&mut self, mobile: IpAddr);

    /// Does what is due.
    fn handle_timeout(&mut self, now: Instant);

    /// The next packet to send.
    fn poll_transmit(&mut self) -> Option<Transmit<K>>;

    /// When to call [`Filter::handle_timeout`].
    fn poll_timeout(&self) -> Option<Instant>;

    /// What it has done.
    fn stats(&self) -> Self::Stats;

    /// Connections that it knows of.
    fn connections(&self) -> usize;
}

/// What becomes of a packet between a machine and the last hop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnTheWay {
    /// It waits, and it will be said when it leaves.
    Waits,
    /// It leaves now.
    Leaves,
    /// The queue of the last hop has refused it, or dropped it later: that is congestion.
    Refused,
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
        /// What its sender's clock is to show (TSval, RFC 7323 §3) in place of what it shows; `None`: that stays.
        clock: Option<u32>,
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
