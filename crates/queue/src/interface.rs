//! The queue in front of an interface: of one kind or the other.

use crate::drop_tail::{Class, DropTail, Enqueued};
use crate::red::{Action, Red, Verdict};
use hopline_core::Instant;

/// A bounded queue of packet handles.
#[derive(Clone, Debug)]
pub enum InterfaceQueue<T> {
    /// Drops what does not fit.
    DropTail(DropTail<T>),
    /// Drops or marks before that.
    Red(Box<RedQueue<T>>),
}

/// A drop-tail queue that RED stands in front of.
#[derive(Clone, Debug)]
pub struct RedQueue<T> {
    red: Red,
    packets: DropTail<T>,
    /// Bytes in the queue.
    bytes: u64,
}

/// What a queue has to know of a packet that arrives.
#[derive(Clone, Copy, Debug)]
pub struct Arriving {
    /// When.
    pub now: Instant,
    /// What it is to the queue. Routing messages are never dropped or marked early.
    pub class: Class,
    /// Its length, bytes.
    pub len_bytes: u32,
    /// Whether it may be marked.
    pub capability: Capability,
}

/// Whether a packet may be marked (RFC 3168 §5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Capability {
    /// Its transport understands marks, or it is marked already.
    Capable,
    /// It does not.
    NotCapable,
}

impl<T: Copy> InterfaceQueue<T> {
    /// A queue with RED in front.
    #[must_use]
    pub fn red(packets: DropTail<T>, red: Red) -> Self {
        Self::Red(Box::new(RedQueue { red, packets, bytes: 0 }))
    }

    /// Offers a packet, which `mark` marks. The result names the packet that was lost, if one was; `len` says how long any of
    /// them is.
    pub fn enqueue(
        &mut self,
        mut packet: T,
        arriving: Arriving,
        mark: impl FnOnce(&mut T),
        len: impl Fn(&T) -> u32,
    ) -> Enqueued<T> {
        let queue = match self {
            Self::DropTail(queue) => return queue.enqueue(packet, arriving.class),
            Self::Red(queue) => queue,
        };
        if arriving.class == Class::Data {
            let Arriving { now, len_bytes, capability, .. } = arriving;
            let capable = capability == Capability::Capable && queue.red.config().action == Action::Mark;
            match queue.red.arrive(now, len_bytes, queue.packets.len(), queue.bytes) {
                Verdict::Enter => {}
                Verdict::Notify if capable => mark(&mut packet),
                Verdict::Notify | Verdict::Drop => return Enqueued::Early(packet),
            }
        }
        let enqueued = queue.packets.enqueue(packet, arriving.class);
        match &enqueued {
            Enqueued::Accepted => queue.bytes += u64::from(arriving.len_bytes),
            Enqueued::Displaced(last) => {
                queue.bytes += u64::from(arriving.len_bytes);
                queue.bytes -= u64::from(len(last));
            }
            Enqueued::Refused(_) | Enqueued::Early(_) => {}
        }
        enqueued
    }

    /// The packet that is served next.
    pub fn dequeue(&mut self, now: Instant, len: impl Fn(&T) -> u32) -> Option<T> {
        match self {
            Self::DropTail(queue) => queue.dequeue(),
            Self::Red(queue) => {
                let packet = queue.packets.dequeue()?;
                queue.leave(now, len(&packet));
                Some(packet)
            }
        }
    }

    /// As [`DropTail::remove_matching`].
    pub fn remove_matching(
        &mut self,
        now: Instant,
        matches: impl FnMut(&T) -> bool,
        mut sink: impl FnMut(T),
        len: impl Fn(&T) -> u32,
    ) {
        match self {
            Self::DropTail(queue) => queue.remove_matching(matches, sink),
            Self::Red(queue) => {
                let mut gone = 0;
                queue.packets.remove_matching(matches, |packet| {
                    gone += len(&packet);
                    sink(packet);
                });
                if gone > 0 {
                    queue.leave(now, gone);
                }
            }
        }
    }

    /// Packets in the queue, head first.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.packets().iter()
    }

    /// Number of packets in the queue.
    #[must_use]
    pub fn len(&self) -> usize {
        self.packets().len()
    }

    /// Whether the queue is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.packets().is_empty()
    }

    /// What holds the packets.
    #[must_use]
    pub fn packets(&self) -> &DropTail<T> {
        match self {
            Self::DropTail(queue) => queue,
            Self::Red(queue) => &queue.packets,
        }
    }
}

impl<T: Copy> RedQueue<T> {
    /// So many bytes left.
    fn leave(&mut self, now: Instant, len_bytes: u32) {
        self.bytes -= u64::from(len_bytes);
        if self.packets.is_empty() {
            self.red.emptied(now);
        }
    }
}

#[cfg(test)]
mod tests;
