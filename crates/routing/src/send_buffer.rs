//! Data packets that wait for a route (RFC 3561 §6.3).

use core::num::NonZeroU16;
use hopline_core::{Duration, Instant};
use std::collections::VecDeque;
use std::net::Ipv4Addr;

/// First in, first out for each destination; bounded in packets and in time.
#[derive(Clone, Debug)]
pub(crate) struct SendBuffer<M> {
    packets: VecDeque<BufferedPacket<M>>,
    capacity: NonZeroU16,
    max_wait: Duration,
}

#[derive(Clone, Debug)]
struct BufferedPacket<M> {
    destination: Ipv4Addr,
    /// All packets have the same maximum waiting time, so the queue is sorted by this.
    expires: Instant,
    packet: M,
}

impl<M: Copy> SendBuffer<M> {
    pub(crate) fn new(capacity: NonZeroU16, patience: Duration) -> Self {
        Self { packets: VecDeque::new(), capacity, max_wait: patience }
    }

    /// Adds a packet. Returns the oldest one if the buffer was full.
    pub(crate) fn push(&mut self, now: Instant, destination: Ipv4Addr, packet: M) -> Option<M> {
        let full = self.packets.len() >= usize::from(self.capacity.get());
        let oldest = if full { self.packets.pop_front() } else { None };
        self.packets.push_back(BufferedPacket { destination, expires: now + self.max_wait, packet });
        oldest.map(|oldest| oldest.packet)
    }

    pub(crate) fn has_packets_for(&self, destination: Ipv4Addr) -> bool {
        self.packets.iter().any(|waiting| waiting.destination == destination)
    }

    /// Returns whether `is` holds for one of the packets for `destination`.
    pub(crate) fn any_for(&self, destination: Ipv4Addr, is: impl Fn(&M) -> bool) -> bool {
        self.packets.iter().any(|waiting| waiting.destination == destination && is(&waiting.packet))
    }

    /// Removes the packets for `destination`, oldest first.
    pub(crate) fn take_all(&mut self, destination: Ipv4Addr, mut sink: impl FnMut(M)) {
        self.packets.retain(|waiting| {
            let take = waiting.destination == destination;
            if take {
                sink(waiting.packet);
            }
            !take
        });
    }

    /// Removes the oldest packet for `destination`.
    pub(crate) fn take_first(&mut self, destination: Ipv4Addr) -> Option<M> {
        let at = self.packets.iter().position(|waiting| waiting.destination == destination)?;
        self.packets.remove(at).map(|waiting| waiting.packet)
    }

    /// Removes and returns the oldest packet, if it has waited too long.
    pub(crate) fn pop_expired(&mut self, now: Instant) -> Option<M> {
        let oldest = self.packets.front()?;
        if oldest.expires > now {
            return None;
        }
        self.packets.pop_front().map(|oldest| oldest.packet)
    }

    pub(crate) fn next_expiry(&self) -> Option<Instant> {
        self.packets.front().map(|oldest| oldest.expires)
    }

    pub(crate) fn len(&self) -> usize {
        self.packets.len()
    }
}
