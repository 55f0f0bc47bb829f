//! Queue in front of an interface, with a choice of disciplines.

use crate::codel::{Backlog, CoDel, Queued};
use crate::custom::{CustomDiscipline, CustomDisciplineId, CustomQueue};
use crate::drop_tail::{Class, DropTail, EnqueueResult};
use crate::dual_pi2::DualPi2;
use crate::fq_codel::FqCoDel;
use crate::packet_access::PacketAccess;
use crate::pie::{Pie, PieQueue};
use crate::red::{Red, RedDecision};
use core::num::NonZeroU16;
use hopline_core::Instant;
use hopline_core::custom_algorithm::CustomAlgorithmError;

/// A bounded queue of packet handles.
#[derive(Debug)]
pub enum InterfaceQueue<T> {
    /// Drop-tail.
    DropTail(DropTail<T>),
    /// Drop-tail with RED (early drops or marks).
    Red(Box<RedQueue<T>>),
    /// CoDel (drops or marks by queueing delay).
    CoDel(Box<CoDelQueue<T>>),
    /// FQ-CoDel (CoDel for each flow).
    FqCoDel(Box<FqCoDel<T>>),
    /// PIE (drops or marks by queueing delay at arrival).
    Pie(Box<PieQueue<T>>),
    /// DualPI2 (a queue for L4S and one for Classic traffic).
    DualPi2(Box<DualPi2<T>>),
    /// User-defined discipline.
    Custom(Box<CustomQueue<T>>),
}

/// Drop-tail queue with RED.
#[derive(Clone, Debug)]
pub struct RedQueue<T> {
    red: Red,
    packets: DropTail<T>,
    /// Bytes in the queue.
    bytes: u64,
}

/// Drop-tail queue with CoDel.
#[derive(Clone, Debug)]
pub struct CoDelQueue<T> {
    codel: CoDel,
    backlog: Backlogged<T>,
}

#[derive(Clone, Debug)]
struct Backlogged<T> {
    packets: DropTail<Queued<T>>,
    /// Bytes in the queue.
    bytes: u64,
}

impl<T: Copy> Backlog<T> for Backlogged<T> {
    fn pop(&mut self, len_bytes: impl Fn(&T) -> u32) -> Option<Queued<T>> {
        let head = self.packets.dequeue()?;
        self.bytes -= u64::from(len_bytes(&head.packet));
        Some(head)
    }

    fn bytes(&self) -> u64 {
        self.bytes
    }
}

impl<T: Copy> InterfaceQueue<T> {
    /// Returns a queue with RED.
    #[must_use]
    pub fn red(packets: DropTail<T>, red: Red) -> Self {
        Self::Red(Box::new(RedQueue { red, packets, bytes: 0 }))
    }

    /// Returns a queue with CoDel.
    #[must_use]
    pub fn codel(packets: DropTail<Queued<T>>, codel: CoDel) -> Self {
        Self::CoDel(Box::new(CoDelQueue { codel, backlog: Backlogged { packets, bytes: 0 } }))
    }

    /// Returns a queue with PIE.
    #[must_use]
    pub fn pie(packets: DropTail<Queued<T>>, pie: Pie) -> Self {
        Self::Pie(Box::new(PieQueue::new(packets, pie)))
    }

    /// Returns a queue for at most `capacity` packets with a user-defined discipline.
    #[must_use]
    pub fn custom(
        id: CustomDisciplineId,
        discipline: Box<dyn CustomDiscipline>,
        capacity: NonZeroU16,
    ) -> Self {
        Self::Custom(Box::new(CustomQueue::new(id, discipline, capacity)))
    }

    /// Returns the failure of a user-defined discipline as [`CustomQueue::take_failure`] does, with its id.
    #[inline]
    pub fn take_custom_failure(&mut self) -> Option<(CustomDisciplineId, CustomAlgorithmError)> {
        match self {
            Self::Custom(queue) => queue.take_failure().map(|failure| (queue.id(), failure)),
            Self::DropTail(_)
            | Self::Red(_)
            | Self::CoDel(_)
            | Self::FqCoDel(_)
            | Self::Pie(_)
            | Self::DualPi2(_) => None,
        }
    }

    /// Offers a packet. The result contains the packet that was lost, if any.
    pub fn enqueue(
        &mut self,
        now: Instant,
        packet: T,
        contents: &mut impl PacketAccess<T>,
    ) -> EnqueueResult<T> {
        match self {
            Self::DropTail(queue) => queue.enqueue(packet, contents.class(&packet)),
            Self::Red(queue) => queue.enqueue(now, packet, contents),
            Self::CoDel(queue) => queue.enqueue(now, packet, contents),
            Self::FqCoDel(queue) => queue.enqueue(now, packet, contents),
            Self::Pie(queue) => queue.enqueue(now, packet, contents),
            Self::DualPi2(queue) => queue.enqueue(now, packet, contents),
            Self::Custom(queue) => queue.enqueue(now, packet, contents),
        }
    }

    /// Removes and returns the next packet to serve. Reports early drops to `contents`.
    pub fn dequeue(&mut self, now: Instant, contents: &mut impl PacketAccess<T>) -> Option<T> {
        match self {
            Self::DropTail(queue) => queue.dequeue(),
            Self::Red(queue) => queue.dequeue(now, contents),
            Self::CoDel(queue) => queue.dequeue(now, contents),
            Self::FqCoDel(queue) => queue.dequeue(now, contents),
            Self::Pie(queue) => queue.dequeue(now, contents),
            Self::DualPi2(queue) => queue.dequeue(now, contents),
            Self::Custom(queue) => queue.dequeue(now, contents),
        }
    }

    /// Removes packets as [`DropTail::remove_matching`] does. `len_bytes` returns the length of a packet.
    pub fn remove_matching(
        &mut self,
        now: Instant,
        mut matches: impl FnMut(&T) -> bool,
        mut sink: impl FnMut(T),
        len_bytes: impl Fn(&T) -> u32,
    ) {
        match self {
            Self::DropTail(queue) => queue.remove_matching(matches, sink),
            Self::Red(queue) => {
                let mut gone = 0;
                queue.packets.remove_matching(matches, |packet| {
                    gone += len_bytes(&packet);
                    sink(packet);
                });
                if gone > 0 {
                    queue.on_departure(now, gone);
                }
            }
            Self::CoDel(queue) => {
                let Backlogged { packets, bytes } = &mut queue.backlog;
                packets.remove_matching(
                    |held| matches(&held.packet),
                    |held| {
                        *bytes -= u64::from(len_bytes(&held.packet));
                        sink(held.packet);
                    },
                );
            }
            Self::FqCoDel(queue) => queue.remove_matching(matches, sink, len_bytes),
            Self::Pie(queue) => queue.remove_matching(now, matches, sink, len_bytes),
            Self::DualPi2(queue) => queue.remove_matching(now, matches, sink),
            Self::Custom(queue) => queue.remove_matching(now, matches, sink),
        }
    }

    /// The packets in the queue.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        let (mut plain, mut held, mut fair, mut pie, mut dual, mut own) =
            (None, None, None, None, None, None);
        match self {
            Self::DropTail(queue) => plain = Some(queue.iter()),
            Self::Red(queue) => plain = Some(queue.packets.iter()),
            Self::CoDel(queue) => held = Some(queue.backlog.packets.iter().map(|held| &held.packet)),
            Self::FqCoDel(queue) => fair = Some(queue.iter()),
            Self::Pie(queue) => pie = Some(queue.iter()),
            Self::DualPi2(queue) => dual = Some(queue.iter()),
            Self::Custom(queue) => own = Some(queue.iter()),
        }
        let plain = plain.into_iter().flatten().chain(held.into_iter().flatten());
        let plain = plain.chain(fair.into_iter().flatten()).chain(pie.into_iter().flatten());
        plain.chain(dual.into_iter().flatten()).chain(own.into_iter().flatten())
    }

    /// Number of packets in the queue.
    #[must_use]
    pub fn len(&self) -> usize {
        match self {
            Self::DropTail(queue) => queue.len(),
            Self::Red(queue) => queue.packets.len(),
            Self::CoDel(queue) => queue.backlog.packets.len(),
            Self::FqCoDel(queue) => queue.len(),
            Self::Pie(queue) => queue.len(),
            Self::DualPi2(queue) => queue.len(),
            Self::Custom(queue) => queue.len(),
        }
    }

    /// Returns whether the queue is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl<T: Copy> RedQueue<T> {
    fn enqueue(
        &mut self,
        now: Instant,
        mut packet: T,
        contents: &mut impl PacketAccess<T>,
    ) -> EnqueueResult<T> {
        let (class, len_bytes) = (contents.class(&packet), contents.len_bytes(&packet));
        if class == Class::Data {
            let marks = self.red.config().action.marks(contents.capability(&packet));
            match self.red.on_arrival(now, len_bytes, self.packets.len(), self.bytes) {
                RedDecision::Enqueue => {}
                RedDecision::Signal if marks => contents.mark(&mut packet),
                RedDecision::Signal | RedDecision::Drop => return EnqueueResult::EarlyDrop(packet),
            }
        }
        let enqueued = self.packets.enqueue(packet, class);
        self.bytes = bytes_after(self.bytes, &enqueued, len_bytes, |packet| contents.len_bytes(packet));
        enqueued
    }

    fn dequeue(&mut self, now: Instant, contents: &impl PacketAccess<T>) -> Option<T> {
        let packet = self.packets.dequeue()?;
        self.on_departure(now, contents.len_bytes(&packet));
        Some(packet)
    }

    /// Records that `len_bytes` bytes have left.
    fn on_departure(&mut self, now: Instant, len_bytes: u32) {
        self.bytes -= u64::from(len_bytes);
        if self.packets.is_empty() {
            self.red.on_empty(now);
        }
    }
}

impl<T: Copy> CoDelQueue<T> {
    fn enqueue(&mut self, now: Instant, packet: T, contents: &impl PacketAccess<T>) -> EnqueueResult<T> {
        let (class, len_bytes) = (contents.class(&packet), contents.len_bytes(&packet));
        let Backlogged { packets, bytes } = &mut self.backlog;
        let enqueued = packets.enqueue(Queued { packet, enqueued_at: now }, class).map(|held| held.packet);
        *bytes = bytes_after(*bytes, &enqueued, len_bytes, |packet| contents.len_bytes(packet));
        enqueued
    }

    /// Routing messages and urgent packets are served unchanged.
    fn dequeue(&mut self, now: Instant, contents: &mut impl PacketAccess<T>) -> Option<T> {
        let head = self.backlog.packets.iter().next()?;
        if contents.class(&head.packet) != Class::Data {
            return self.backlog.pop(|packet| contents.len_bytes(packet)).map(|held| held.packet);
        }
        self.codel.dequeue(now, &mut self.backlog, contents)
    }
}

/// Returns the bytes in a queue of `bytes` after a packet of `len_bytes` was offered.
fn bytes_after<T>(bytes: u64, enqueued: &EnqueueResult<T>, len_bytes: u32, len: impl Fn(&T) -> u32) -> u64 {
    match enqueued {
        EnqueueResult::Accepted => bytes + u64::from(len_bytes),
        EnqueueResult::Displaced(last) => bytes + u64::from(len_bytes) - u64::from(len(last)),
        EnqueueResult::Refused(_) | EnqueueResult::EarlyDrop(_) => bytes,
    }
}

#[cfg(test)]
mod tests;
