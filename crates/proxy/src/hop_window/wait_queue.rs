//! Queue of a mobile host: FQ-CoDel (RFC 8290) with a queue for each connection.

use super::{Config, StoredPacket};
use crate::packet::Connection;
use hopline_core::Instant;
use hopline_queue::drop_tail::{Class, EnqueueResult};
use hopline_queue::fq_codel::FqCoDel;
use hopline_queue::packet_access::{EcnCapability, PacketAccess};
use std::net::IpAddr;

/// Waiting packets.
#[derive(Debug)]
pub(super) struct WaitQueue<K> {
    queue: FqCoDel<u32>,
    packets: PacketStore<K>,
}

/// Storage of the packets that the queue holds by number.
#[derive(Debug)]
struct PacketStore<K> {
    slots: Vec<Option<StoredPacket<K>>>,
    free: Vec<u32>,
    bytes: u64,
    dropped: Vec<u32>,
}

impl<K> WaitQueue<K> {
    pub(super) fn new(config: &Config) -> Self {
        let packets = PacketStore { slots: Vec::new(), free: Vec::new(), bytes: 0, dropped: Vec::new() };
        Self { queue: FqCoDel::new(config.queue, config.max_waiting_packets), packets }
    }

    pub(super) const fn bytes(&self) -> u64 {
        self.packets.bytes
    }

    pub(super) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// Queues a packet. If the queue is full, returns the packet that is dropped: another one, or this one.
    pub(super) fn push(&mut self, now: Instant, packet: StoredPacket<K>) -> Option<StoredPacket<K>> {
        let number = self.packets.insert(packet);
        match self.queue.enqueue(now, number, &self.packets) {
            EnqueueResult::Accepted => None,
            EnqueueResult::Displaced(number)
            | EnqueueResult::Refused(number)
            | EnqueueResult::EarlyDrop(number) => Some(self.packets.remove(number)),
        }
    }

    /// Returns the next packet, and appends those that CoDel dropped before it.
    pub(super) fn pop(
        &mut self,
        now: Instant,
        dropped: &mut Vec<StoredPacket<K>>,
    ) -> Option<StoredPacket<K>> {
        let next = self.queue.dequeue(now, &mut self.packets);
        while let Some(number) = self.packets.dropped.pop() {
            dropped.push(self.packets.remove(number));
        }
        next.map(|number| self.packets.remove(number))
    }

    /// Removes all packets of a connection.
    pub(super) fn remove_connection(&mut self, connection: Connection) {
        let Self { queue, packets } = self;
        let mut gone = Vec::new();
        let is_of = |number: &u32| packets.get(*number).info.connection == connection;
        queue.remove_matching(
            is_of,
            |number| gone.push(number),
            |number| packets.get(*number).info.len_bytes,
        );
        gone.into_iter().for_each(|number| drop(packets.remove(number)));
    }
}

impl<K> PacketStore<K> {
    fn insert(&mut self, packet: StoredPacket<K>) -> u32 {
        self.bytes += u64::from(packet.info.len_bytes);
        match self.free.pop() {
            Some(number) => {
                self.slots[number as usize] = Some(packet);
                number
            }
            None => {
                self.slots.push(Some(packet));
                (self.slots.len() - 1) as u32
            }
        }
    }

    fn remove(&mut self, number: u32) -> StoredPacket<K> {
        let packet = self.slots[number as usize].take().expect("a number in the queue is that of a packet");
        self.bytes -= u64::from(packet.info.len_bytes);
        self.free.push(number);
        packet
    }

    fn get(&self, number: u32) -> &StoredPacket<K> {
        self.slots[number as usize].as_ref().expect("a number in the queue is that of a packet")
    }
}

impl<K> PacketAccess<u32> for PacketStore<K> {
    fn class(&self, _: &u32) -> Class {
        Class::Data
    }

    fn len_bytes(&self, number: &u32) -> u32 {
        self.get(*number).info.len_bytes
    }

    fn capability(&self, _: &u32) -> EcnCapability {
        EcnCapability::NotCapable
    }

    fn flow(&self, number: &u32) -> u64 {
        let Connection { fixed, mobile } = self.get(*number).info.connection;
        let host = match fixed.0 {
            IpAddr::V4(address) => address.to_bits(),
            // Folded to 32 bits: connections with the same number share a queue.
            IpAddr::V6(address) => {
                let bits = address.to_bits();
                (bits ^ bits >> 32 ^ bits >> 64 ^ bits >> 96) as u32
            }
        };
        u64::from(host) << 32 | u64::from(fixed.1) << 16 | u64::from(mobile.1)
    }

    fn mark(&mut self, _: &mut u32) {}

    fn dropped(&mut self, number: u32) {
        self.dropped.push(number);
    }
}
