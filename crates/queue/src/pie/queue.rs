//! Drop-tail queue with PIE.

use super::{Pie, PieDecision};
use crate::codel::Queued;
use crate::drop_tail::{Class, DropTail, EnqueueResult};
use crate::packet_access::PacketAccess;
use hopline_core::{Duration, Instant};

/// Drop-tail queue with PIE. Routing messages and urgent packets count towards the queue, but are never dropped early or
/// marked, and their delay is not measured.
#[derive(Clone, Debug)]
pub struct PieQueue<T> {
    pub(super) pie: Pie,
    packets: DropTail<Queued<T>>,
    /// Bytes in the queue.
    bytes: u64,
    /// Queueing delay of the last packet of data that left.
    last_sojourn: Duration,
}

impl<T: Copy> PieQueue<T> {
    /// Creates a queue with `packets`, which is empty, and `pie`.
    #[must_use]
    pub fn new(packets: DropTail<Queued<T>>, pie: Pie) -> Self {
        Self { pie, packets, bytes: 0, last_sojourn: Duration::ZERO }
    }

    /// The controller.
    #[must_use]
    pub fn pie(&self) -> &Pie {
        &self.pie
    }

    /// Offers a packet. The result contains the packet that was lost, if any.
    pub fn enqueue(
        &mut self,
        now: Instant,
        mut packet: T,
        contents: &mut impl PacketAccess<T>,
    ) -> EnqueueResult<T> {
        let (class, len_bytes) = (contents.class(&packet), contents.len_bytes(&packet));
        if class == Class::Data {
            let occupancy = self.packets.len() as f64 / f64::from(self.packets.capacity().get());
            let marks = self.pie.config().action.marks(contents.capability(&packet));
            match self.pie.on_arrival(now, self.bytes, occupancy) {
                PieDecision::Enqueue => {}
                PieDecision::Signal if marks => contents.mark(&mut packet),
                PieDecision::Signal | PieDecision::Drop => return EnqueueResult::EarlyDrop(packet),
            }
        } else {
            self.pie.advance(now, self.bytes);
        }
        let enqueued =
            self.packets.enqueue(Queued { packet, enqueued_at: now }, class).map(|held| held.packet);
        match &enqueued {
            EnqueueResult::Accepted => self.bytes += u64::from(len_bytes),
            EnqueueResult::Displaced(last) => {
                self.bytes += u64::from(len_bytes);
                self.bytes -= u64::from(contents.len_bytes(last));
            }
            EnqueueResult::Refused(_) | EnqueueResult::EarlyDrop(_) => self.pie.on_tail_drop(),
        }
        enqueued
    }

    /// Removes and returns the next packet to serve.
    pub fn dequeue(&mut self, now: Instant, contents: &impl PacketAccess<T>) -> Option<T> {
        let head = self.packets.dequeue()?;
        let len_bytes = contents.len_bytes(&head.packet);
        self.bytes -= u64::from(len_bytes);
        if contents.class(&head.packet) == Class::Data {
            self.last_sojourn = now.since(head.enqueued_at);
        }
        self.pie.on_departure(now, len_bytes, self.last_sojourn, self.bytes);
        Some(head.packet)
    }

    /// Removes packets as [`DropTail::remove_matching`] does. `len_bytes` returns the length of a packet.
    pub fn remove_matching(
        &mut self,
        now: Instant,
        mut matches: impl FnMut(&T) -> bool,
        mut sink: impl FnMut(T),
        len_bytes: impl Fn(&T) -> u32,
    ) {
        let before = self.bytes;
        let left = &mut self.bytes;
        self.packets.remove_matching(
            |held| matches(&held.packet),
            |held| {
                *left -= u64::from(len_bytes(&held.packet));
                sink(held.packet);
            },
        );
        self.pie.on_removal(now, before, self.bytes);
    }

    /// The packets in the queue.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.packets.iter().map(|held| &held.packet)
    }

    /// Number of packets in the queue.
    #[must_use]
    pub fn len(&self) -> usize {
        self.packets.len()
    }

    /// Returns whether the queue is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.packets.is_empty()
    }

    /// Bytes in the queue.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }
}
