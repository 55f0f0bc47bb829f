//! User-defined queueing disciplines. The discipline decides which packets enter, their service order, and which are
//! dropped. The queue keeps the packets, and enforces its own bounds.
//!
//! A packet enters with a rank, and the lowest rank is served first; equal ranks are served in order of arrival. A
//! discipline with a constant rank is a FIFO. One with ranks by class is a priority queue, one with ranks by virtual finish
//! times a fair queue.

use crate::contents::{Action, Capability, Contents};
use crate::drop_tail::{Class, Enqueued};
use core::fmt::Debug;
use core::num::NonZeroU16;
use hopline_core::own::OwnFailure;
use hopline_core::{Duration, Instant};
use std::collections::VecDeque;

/// Index of a user-defined discipline among those of the creator of the queues, from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OwnDisciplineId(pub u16);

/// User-defined discipline of one queue.
///
/// Equal calls must return equal results: no clock, no randomness except a seeded one, no state shared with other instances.
/// Retransmissions of a proxy go before all other packets and bypass the discipline; routing messages do not.
///
/// # Errors
/// Each method returns the reason for which it failed, as a text of any length. The queue is a drop-tail queue from then on,
/// and keeps the reason ([`OwnQueue::take_failure`]).
pub trait OwnDiscipline: Debug + Send {
    /// Decides whether an arriving packet enters, and with which rank. In a full queue, a packet that enters displaces the
    /// last packet if that has a higher rank, and is lost otherwise.
    fn enqueue(&mut self, packet: &PacketInfo, queue: &QueueInfo) -> Result<Admission, String>;

    /// Decides whether the packet at the head is served, as the interface is free. `queue`: without that packet.
    fn dequeue(&mut self, head: &HeadInfo, queue: &QueueInfo) -> Result<Service, String>;

    /// Handles the loss of a packet that had entered or was to enter, if the discipline did not cause it. Does nothing by
    /// default.
    fn on_lost(&mut self, packet: &PacketInfo, loss: Loss, queue: &QueueInfo) -> Result<(), String> {
        let _ = (packet, loss, queue);
        Ok(())
    }
}

/// Packet properties visible to a discipline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketInfo {
    /// Length in bytes.
    pub len_bytes: u32,
    /// Number that packets of one flow and direction share, and packets of other flows hardly ever.
    pub flow: u64,
    /// Class: routing message, data or urgent packet.
    pub class: Class,
    /// ECN capability.
    pub capability: Capability,
}

/// The packet that would be served next.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HeadInfo {
    /// The packet.
    pub packet: PacketInfo,
    /// Time in the queue.
    pub waited: Duration,
    /// Rank with which it entered.
    pub rank: f64,
}

/// Queue state visible to a discipline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueInfo {
    /// Virtual time.
    pub now: Instant,
    /// Packets in it.
    pub packets: usize,
    /// Bytes in it.
    pub bytes: u64,
    /// Most packets that fit.
    pub capacity: NonZeroU16,
}

/// Decision about an arriving packet.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Admission {
    /// Enter. Lower ranks are served first; not NaN.
    Enter {
        /// Rank.
        rank: f64,
    },
    /// Enter, marked if the transport is ECN-capable; otherwise drop (RFC 3168 §5).
    Mark {
        /// Rank.
        rank: f64,
    },
    /// Drop.
    Drop,
}

/// Decision about the packet at the head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Service {
    /// Serve.
    Serve,
    /// Serve, marked if the transport is ECN-capable; otherwise drop.
    Mark,
    /// Drop, and decide about the next packet.
    Drop,
}

/// Reason for the loss of a packet that the discipline did not drop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    /// The queue was full when it arrived.
    Full,
    /// It was the last of a full queue and was displaced.
    Displaced,
    /// Its next hop is lost, and the routing agent removed it.
    Removed,
}

/// Queue with a user-defined discipline.
#[derive(Debug)]
pub struct OwnQueue<T> {
    id: OwnDisciplineId,
    /// `None` after a failure.
    discipline: Option<Box<dyn OwnDiscipline>>,
    failure: Option<OwnFailure>,
    capacity: NonZeroU16,
    /// Sorted by rank, then by arrival. Urgent packets rank below all others.
    waiting: VecDeque<Entry<T>>,
    bytes: u64,
}

#[derive(Clone, Copy, Debug)]
struct Entry<T> {
    packet: T,
    info: PacketInfo,
    since: Instant,
    rank: f64,
}

/// Rank of urgent packets.
const URGENT: f64 = f64::NEG_INFINITY;

impl<T: Copy> OwnQueue<T> {
    /// An empty queue for at most `capacity` packets.
    #[must_use]
    pub fn new(id: OwnDisciplineId, discipline: Box<dyn OwnDiscipline>, capacity: NonZeroU16) -> Self {
        Self { id, discipline: Some(discipline), failure: None, capacity, waiting: VecDeque::new(), bytes: 0 }
    }

    /// Returns the id of its discipline.
    #[must_use]
    pub fn id(&self) -> OwnDisciplineId {
        self.id
    }

    /// Returns the discipline's failure, once. `None`: no failure.
    pub fn take_failure(&mut self) -> Option<OwnFailure> {
        self.failure.take()
    }

    /// Offers a packet. The result contains the packet that was lost, if any.
    pub fn enqueue(&mut self, now: Instant, mut packet: T, contents: &mut impl Contents<T>) -> Enqueued<T> {
        let info = PacketInfo {
            len_bytes: contents.len_bytes(&packet),
            flow: contents.flow(&packet),
            class: contents.class(&packet),
            capability: contents.capability(&packet),
        };
        let admission = match info.class {
            Class::Urgent => Admission::Enter { rank: URGENT },
            Class::Routing | Class::Data => self.admit(now, &info),
        };
        let rank = match admission {
            Admission::Enter { rank } => rank,
            Admission::Mark { rank } if Action::Mark.marks(info.capability) => {
                contents.mark(&mut packet);
                rank
            }
            Admission::Mark { .. } | Admission::Drop => return Enqueued::Early(packet),
        };
        self.insert(Entry { packet, info, since: now, rank })
    }

    /// Removes and returns the next packet to serve. Reports drops by the discipline to `contents`.
    pub fn dequeue(&mut self, now: Instant, contents: &mut impl Contents<T>) -> Option<T> {
        loop {
            let mut head = self.waiting.pop_front()?;
            self.bytes -= u64::from(head.info.len_bytes);
            let marks = Action::Mark.marks(head.info.capability);
            match self.judge(now, &head) {
                Service::Serve => return Some(head.packet),
                Service::Mark if marks => {
                    contents.mark(&mut head.packet);
                    return Some(head.packet);
                }
                Service::Mark | Service::Drop => contents.dropped(head.packet),
            }
        }
    }

    /// Removes packets as [`DropTail::remove_matching`](crate::DropTail::remove_matching) does.
    pub fn remove_matching(
        &mut self,
        now: Instant,
        mut matches: impl FnMut(&T) -> bool,
        mut sink: impl FnMut(T),
    ) {
        let mut gone = Vec::new();
        self.waiting.retain(|entry| {
            let take = matches(&entry.packet);
            if take {
                gone.push(entry.info);
                sink(entry.packet);
            }
            !take
        });
        self.bytes -= gone.iter().map(|info| u64::from(info.len_bytes)).sum::<u64>();
        for info in gone {
            self.tell_of_loss(now, &info, Loss::Removed);
        }
    }

    /// The packets in the queue, head first.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.waiting.iter().map(|entry| &entry.packet)
    }

    /// Number of packets in the queue.
    #[must_use]
    pub fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Returns whether the queue is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    fn insert(&mut self, entry: Entry<T>) -> Enqueued<T> {
        let full = self.waiting.len() >= usize::from(self.capacity.get());
        let last = self.waiting.back().filter(|last| full && last.rank > entry.rank).copied();
        if full && last.is_none() {
            self.tell_of_loss(entry.since, &entry.info, Loss::Full);
            return Enqueued::Refused(entry.packet);
        }
        if let Some(last) = last {
            self.waiting.pop_back();
            self.bytes -= u64::from(last.info.len_bytes);
        }
        // Most join at the end.
        let behind = self.waiting.iter().rev().take_while(|other| other.rank > entry.rank).count();
        self.waiting.insert(self.waiting.len() - behind, entry);
        self.bytes += u64::from(entry.info.len_bytes);
        match last {
            Some(last) => {
                self.tell_of_loss(entry.since, &last.info, Loss::Displaced);
                Enqueued::Displaced(last.packet)
            }
            None => Enqueued::Accepted,
        }
    }

    fn admit(&mut self, now: Instant, info: &PacketInfo) -> Admission {
        let queue = self.info(now);
        let admission = self.ask("enqueue", |discipline| {
            let admission = discipline.enqueue(info, &queue)?;
            match admission {
                Admission::Enter { rank } | Admission::Mark { rank } if rank.is_nan() => {
                    Err("a rank that is not a number".to_owned())
                }
                Admission::Enter { .. } | Admission::Mark { .. } | Admission::Drop => Ok(admission),
            }
        });
        admission.unwrap_or(Admission::Enter { rank: 0.0 })
    }

    fn judge(&mut self, now: Instant, head: &Entry<T>) -> Service {
        if head.info.class == Class::Urgent {
            return Service::Serve;
        }
        let queue = self.info(now);
        let about = HeadInfo { packet: head.info, waited: now.since(head.since), rank: head.rank };
        self.ask("dequeue", |discipline| discipline.dequeue(&about, &queue)).unwrap_or(Service::Serve)
    }

    fn tell_of_loss(&mut self, now: Instant, info: &PacketInfo, loss: Loss) {
        if info.class != Class::Urgent {
            let queue = self.info(now);
            let _ = self.ask("on_lost", |discipline| discipline.on_lost(info, loss, &queue));
        }
    }

    fn info(&self, now: Instant) -> QueueInfo {
        QueueInfo { now, packets: self.waiting.len(), bytes: self.bytes, capacity: self.capacity }
    }

    /// Returns the discipline's decision; `None` once it has failed.
    fn ask<R>(
        &mut self,
        method: &'static str,
        question: impl FnOnce(&mut dyn OwnDiscipline) -> Result<R, String>,
    ) -> Option<R> {
        match question(&mut **self.discipline.as_mut()?) {
            Ok(answer) => Some(answer),
            Err(why) => {
                self.discipline = None;
                self.failure = Some(OwnFailure::new(method, why));
                None
            }
        }
    }
}

#[cfg(test)]
mod tests;
