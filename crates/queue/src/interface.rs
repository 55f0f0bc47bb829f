//! Queue in front of an interface, with a choice of disciplines.

use crate::codel::{Backlog, CoDel, Held};
use crate::contents::Contents;
use crate::drop_tail::{Class, DropTail, Enqueued};
use crate::fq_codel::FqCoDel;
use crate::own::{OwnDiscipline, OwnDisciplineId, OwnQueue};
use crate::red::{Red, Verdict};
use core::num::NonZeroU16;
use hopline_core::Instant;
use hopline_core::own::OwnFailure;

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
    /// User-defined discipline.
    Own(Box<OwnQueue<T>>),
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
    waiting: Waiting<T>,
}

#[derive(Clone, Debug)]
struct Waiting<T> {
    packets: DropTail<Held<T>>,
    /// Bytes in the queue.
    bytes: u64,
}

impl<T: Copy> Backlog<T> for Waiting<T> {
    fn pop(&mut self, len_bytes: impl Fn(&T) -> u32) -> Option<Held<T>> {
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
    pub fn codel(packets: DropTail<Held<T>>, codel: CoDel) -> Self {
        Self::CoDel(Box::new(CoDelQueue { codel, waiting: Waiting { packets, bytes: 0 } }))
    }

    /// Returns a queue for at most `capacity` packets with a user-defined discipline.
    #[must_use]
    pub fn own(id: OwnDisciplineId, discipline: Box<dyn OwnDiscipline>, capacity: NonZeroU16) -> Self {
        Self::Own(Box::new(OwnQueue::new(id, discipline, capacity)))
    }

    /// Returns the failure of a user-defined discipline as [`OwnQueue::take_failure`] does, with its id.
    #[inline]
    pub fn take_own_failure(&mut self) -> Option<(OwnDisciplineId, OwnFailure)> {
        match self {
            Self::Own(queue) => queue.take_failure().map(|failure| (queue.id(), failure)),
            Self::DropTail(_) | Self::Red(_) | Self::CoDel(_) | Self::FqCoDel(_) => None,
        }
    }

    /// Offers a packet. The result contains the packet that was lost, if any.
    pub fn enqueue(&mut self, now: Instant, packet: T, contents: &mut impl Contents<T>) -> Enqueued<T> {
        match self {
            Self::DropTail(queue) => queue.enqueue(packet, contents.class(&packet)),
            Self::Red(queue) => queue.enqueue(now, packet, contents),
            Self::CoDel(queue) => queue.enqueue(now, packet, contents),
            Self::FqCoDel(queue) => queue.enqueue(now, packet, contents),
            Self::Own(queue) => queue.enqueue(now, packet, contents),
        }
    }

    /// Removes and returns the next packet to serve. Reports early drops to `contents`.
    pub fn dequeue(&mut self, now: Instant, contents: &mut impl Contents<T>) -> Option<T> {
        match self {
            Self::DropTail(queue) => queue.dequeue(),
            Self::Red(queue) => queue.dequeue(now, contents),
            Self::CoDel(queue) => queue.dequeue(now, contents),
            Self::FqCoDel(queue) => queue.dequeue(now, contents),
            Self::Own(queue) => queue.dequeue(now, contents),
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
                    queue.leave(now, gone);
                }
            }
            Self::CoDel(queue) => {
                let Waiting { packets, bytes } = &mut queue.waiting;
                packets.remove_matching(
                    |held| matches(&held.packet),
                    |held| {
                        *bytes -= u64::from(len_bytes(&held.packet));
                        sink(held.packet);
                    },
                );
            }
            Self::FqCoDel(queue) => queue.remove_matching(matches, sink, len_bytes),
            Self::Own(queue) => queue.remove_matching(now, matches, sink),
        }
    }

    /// The packets in the queue.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        let (mut plain, mut held, mut fair, mut own) = (None, None, None, None);
        match self {
            Self::DropTail(queue) => plain = Some(queue.iter()),
            Self::Red(queue) => plain = Some(queue.packets.iter()),
            Self::CoDel(queue) => held = Some(queue.waiting.packets.iter().map(|held| &held.packet)),
            Self::FqCoDel(queue) => fair = Some(queue.iter()),
            Self::Own(queue) => own = Some(queue.iter()),
        }
        let plain = plain.into_iter().flatten().chain(held.into_iter().flatten());
        plain.chain(fair.into_iter().flatten()).chain(own.into_iter().flatten())
    }

    /// Number of packets in the queue.
    #[must_use]
    pub fn len(&self) -> usize {
        match self {
            Self::DropTail(queue) => queue.len(),
            Self::Red(queue) => queue.packets.len(),
            Self::CoDel(queue) => queue.waiting.packets.len(),
            Self::FqCoDel(queue) => queue.len(),
            Self::Own(queue) => queue.len(),
        }
    }

    /// Returns whether the queue is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl<T: Copy> RedQueue<T> {
    fn enqueue(&mut self, now: Instant, mut packet: T, contents: &mut impl Contents<T>) -> Enqueued<T> {
        let (class, len_bytes) = (contents.class(&packet), contents.len_bytes(&packet));
        if class == Class::Data {
            let marks = self.red.config().action.marks(contents.capability(&packet));
            match self.red.arrive(now, len_bytes, self.packets.len(), self.bytes) {
                Verdict::Enter => {}
                Verdict::Notify if marks => contents.mark(&mut packet),
                Verdict::Notify | Verdict::Drop => return Enqueued::Early(packet),
            }
        }
        let enqueued = self.packets.enqueue(packet, class);
        self.bytes = bytes_after(self.bytes, &enqueued, len_bytes, |packet| contents.len_bytes(packet));
        enqueued
    }

    fn dequeue(&mut self, now: Instant, contents: &impl Contents<T>) -> Option<T> {
        let packet = self.packets.dequeue()?;
        self.leave(now, contents.len_bytes(&packet));
        Some(packet)
    }

    /// Records that `len_bytes` bytes have left.
    fn leave(&mut self, now: Instant, len_bytes: u32) {
        self.bytes -= u64::from(len_bytes);
        if self.packets.is_empty() {
            self.red.emptied(now);
        }
    }
}

impl<T: Copy> CoDelQueue<T> {
    fn enqueue(&mut self, now: Instant, packet: T, contents: &impl Contents<T>) -> Enqueued<T> {
        let (class, len_bytes) = (contents.class(&packet), contents.len_bytes(&packet));
        let Waiting { packets, bytes } = &mut self.waiting;
        let enqueued = packets.enqueue(Held { packet, since: now }, class).map(|held| held.packet);
        *bytes = bytes_after(*bytes, &enqueued, len_bytes, |packet| contents.len_bytes(packet));
        enqueued
    }

    /// Routing messages and urgent packets are served unchanged.
    fn dequeue(&mut self, now: Instant, contents: &mut impl Contents<T>) -> Option<T> {
        let head = self.waiting.packets.iter().next()?;
        if contents.class(&head.packet) != Class::Data {
            return self.waiting.pop(|packet| contents.len_bytes(packet)).map(|held| held.packet);
        }
        self.codel.serve(now, &mut self.waiting, contents)
    }
}

/// Returns the bytes in a queue of `bytes` after a packet of `len_bytes` was offered.
fn bytes_after<T>(bytes: u64, enqueued: &Enqueued<T>, len_bytes: u32, len: impl Fn(&T) -> u32) -> u64 {
    match enqueued {
        Enqueued::Accepted => bytes + u64::from(len_bytes),
        Enqueued::Displaced(last) => bytes + u64::from(len_bytes) - u64::from(len(last)),
        Enqueued::Refused(_) | Enqueued::Early(_) => bytes,
    }
}

#[cfg(test)]
mod tests;
