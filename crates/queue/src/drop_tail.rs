//! Drop-tail queue with optional priority for routing packets.

use core::num::NonZeroU16;
use std::collections::VecDeque;

#[cfg(test)]
mod tests;

/// Class of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Served before all other packets, in order of arrival: retransmissions of a proxy.
    Urgent,
    /// A message of the routing agent.
    Routing,
    /// Everything else.
    Data,
}

/// Service order of packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Service {
    /// First come, first served, whatever the class. A full queue refuses the new packet.
    #[default]
    Fifo,
    /// A routing packet goes to the very head, ahead of earlier routing packets; in a full queue the last packet
    /// gives way to it. Data are as in [`Service::Fifo`]. Source: ns-2.35 `Queue/DropTail/PriQueue`.
    RoutingPriority,
}

/// Result of offering a packet, with the packet that was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "a refused or displaced packet is lost unless the caller accounts for it"]
pub enum EnqueueResult<T> {
    /// The packet is in the queue; no packet was lost.
    Accepted,
    /// The packet is in the queue; this one, the last, was displaced by it.
    Displaced(T),
    /// The queue was full; the packet itself comes back.
    Refused(T),
    /// The packet itself comes back before the queue was full, as a congestion signal ([`red`](crate::red)).
    EarlyDrop(T),
}

impl<T> EnqueueResult<T> {
    /// Applies `of` to the packet, if any.
    pub fn map<U>(self, of: impl FnOnce(T) -> U) -> EnqueueResult<U> {
        match self {
            Self::Accepted => EnqueueResult::Accepted,
            Self::Displaced(packet) => EnqueueResult::Displaced(of(packet)),
            Self::Refused(packet) => EnqueueResult::Refused(of(packet)),
            Self::EarlyDrop(packet) => EnqueueResult::EarlyDrop(of(packet)),
        }
    }
}

/// Counters of a queue, in packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct DropTailStats {
    /// Packets that entered the queue.
    pub accepted: u64,
    /// Packets refused by a full queue.
    pub refused: u64,
    /// Packets displaced by a routing or an urgent packet.
    pub displaced: u64,
    /// Packets removed by [`DropTail::remove_matching`].
    pub removed: u64,
    /// Packets served by [`DropTail::dequeue`].
    pub served: u64,
    /// Largest queue length so far.
    pub peak: u16,
}

/// A bounded queue of packet handles. Allocates once, when it is made.
#[derive(Clone, Debug)]
pub struct DropTail<T> {
    urgent: VecDeque<T>,
    packets: VecDeque<T>,
    capacity: NonZeroU16,
    service: Service,
    stats: DropTailStats,
}

impl<T: Copy> Default for DropTail<T> {
    fn default() -> Self {
        Self::new(Self::DEFAULT_CAPACITY, Service::default())
    }
}

impl<T: Copy> DropTail<T> {
    /// 50 packets, the interface queue of ns-2's wireless scripts.
    pub const DEFAULT_CAPACITY: NonZeroU16 = NonZeroU16::new(50).expect("not zero");
    /// 49 packets: the real capacity of ns-2.35 under `ifqlen` 50, because its test for a full queue counts one too many
    /// (`drop-tail.cc`, `priqueue.cc`).
    pub const NS2_CAPACITY: NonZeroU16 = NonZeroU16::new(49).expect("not zero");

    /// An empty queue for at most `capacity` packets, 1 to 65,535.
    #[must_use]
    pub fn new(capacity: NonZeroU16, service: Service) -> Self {
        let packets = VecDeque::with_capacity(usize::from(capacity.get()));
        Self { urgent: VecDeque::new(), packets, capacity, service, stats: DropTailStats::default() }
    }

    /// Offers a packet. The result contains the packet that was lost, if any.
    pub fn enqueue(&mut self, packet: T, class: Class) -> EnqueueResult<T> {
        let first = self.service == Service::RoutingPriority && class == Class::Routing;
        let full = self.len() >= usize::from(self.capacity.get());
        let gives_way = (first || class == Class::Urgent) && !self.packets.is_empty();
        if full && !gives_way {
            self.stats.refused += 1;
            return EnqueueResult::Refused(packet);
        }
        let displaced = if full { self.packets.pop_back() } else { None };
        if class == Class::Urgent {
            self.urgent.push_back(packet);
        } else if first {
            self.packets.push_front(packet);
        } else {
            self.packets.push_back(packet);
        }
        self.stats.accepted += 1;
        self.stats.peak = self.stats.peak.max(self.len() as u16);
        match displaced {
            Some(last) => {
                self.stats.displaced += 1;
                EnqueueResult::Displaced(last)
            }
            None => EnqueueResult::Accepted,
        }
    }

    /// Removes and returns the next packet to serve.
    pub fn dequeue(&mut self) -> Option<T> {
        let packet = self.urgent.pop_front().or_else(|| self.packets.pop_front());
        self.stats.served += u64::from(packet.is_some());
        packet
    }

    /// Removes every packet for which `matches` holds and hands it to `sink`, head first; the other packets keep their
    /// order. A routing agent uses this to remove packets for a lost next hop.
    pub fn remove_matching(&mut self, mut matches: impl FnMut(&T) -> bool, mut sink: impl FnMut(T)) {
        let before = self.len();
        let mut stays = |packet: &T| {
            let take = matches(packet);
            if take {
                sink(*packet);
            }
            !take
        };
        self.urgent.retain(&mut stays);
        self.packets.retain(stays);
        self.stats.removed += (before - self.len()) as u64;
    }

    /// Packets in the queue, head first.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.urgent.iter().chain(&self.packets)
    }

    /// Number of packets in the queue.
    #[must_use]
    pub fn len(&self) -> usize {
        self.urgent.len() + self.packets.len()
    }

    /// Returns whether the queue is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the capacity in packets.
    #[must_use]
    pub fn capacity(&self) -> NonZeroU16 {
        self.capacity
    }

    /// Returns the counters.
    #[must_use]
    pub fn stats(&self) -> DropTailStats {
        self.stats
    }
}
