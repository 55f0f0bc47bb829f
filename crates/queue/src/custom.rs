//! User-defined queueing disciplines. The discipline decides which packets enter, their service order, and which are
//! dropped. The queue keeps the packets, and enforces its own bounds.
//!
//! A packet enters with a rank, and the lowest rank is served first; equal ranks are served in order of arrival. A
//! discipline with a constant rank is a FIFO. One with ranks by class is a priority queue, one with ranks by virtual finish
//! times a fair queue.

use crate::drop_tail::{Class, EnqueueResult};
use crate::packet_access::{EcnCapability, PacketAccess, SignalAction};
use core::fmt::Debug;
use core::num::NonZeroU16;
use hopline_core::custom_algorithm::CustomAlgorithmError;
use hopline_core::{Duration, Instant};
use std::collections::VecDeque;

/// Index of a user-defined discipline among those of the creator of the queues, from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CustomDisciplineId(pub u16);

/// User-defined discipline of one queue.
///
/// Equal calls must return equal results: no clock, no randomness except a seeded one, no state shared with other instances.
/// Retransmissions of a proxy go before all other packets and bypass the discipline; routing messages do not.
///
/// # Errors
/// Each method returns the reason for which it failed, as a text of any length. The queue is a drop-tail queue from then on,
/// and keeps the reason ([`CustomQueue::take_failure`]).
pub trait CustomDiscipline: Debug + Send {
    /// Decides whether an arriving packet enters, and with which rank. In a full queue, a packet that enters displaces the
    /// last packet if that has a higher rank, and is lost otherwise.
    fn enqueue(&mut self, packet: &PacketInfo, queue: &QueueInfo) -> Result<EnqueueDecision, String>;

    /// Decides whether the packet at the head is served, as the interface is free. `queue`: without that packet.
    fn dequeue(&mut self, head: &HeadOfQueue, queue: &QueueInfo) -> Result<DequeueDecision, String>;

    /// Handles the loss of a packet that had entered or was to enter, if the discipline did not cause it. Does nothing by
    /// default.
    fn on_drop(&mut self, packet: &PacketInfo, loss: DropCause, queue: &QueueInfo) -> Result<(), String> {
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
    pub capability: EcnCapability,
}

/// The packet that would be served next.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HeadOfQueue {
    /// The packet.
    pub packet: PacketInfo,
    /// Time in the queue.
    pub queueing_delay: Duration,
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
pub enum EnqueueDecision {
    /// Enter. Lower ranks are served first; not NaN.
    Enqueue {
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
pub enum DequeueDecision {
    /// Serve.
    Serve,
    /// Serve, marked if the transport is ECN-capable; otherwise drop.
    Mark,
    /// Drop, and decide about the next packet.
    Drop,
}

/// Reason for the loss of a packet that the discipline did not drop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DropCause {
    /// The queue was full when it arrived.
    Full,
    /// It was the last of a full queue and was displaced.
    Displaced,
    /// Its next hop is lost, and the routing agent removed it.
    Removed,
}

/// Queue with a user-defined discipline.
#[derive(Debug)]
pub struct CustomQueue<T> {
    id: CustomDisciplineId,
    /// `None` after a failure.
    discipline: Option<Box<dyn CustomDiscipline>>,
    failure: Option<CustomAlgorithmError>,
    capacity: NonZeroU16,
    /// Sorted by rank, then by arrival. Urgent packets rank below all others.
    entries: VecDeque<Entry<T>>,
    bytes: u64,
}

#[derive(Clone, Copy, Debug)]
struct Entry<T> {
    packet: T,
    info: PacketInfo,
    enqueued_at: Instant,
    rank: f64,
}

/// Rank of urgent packets.
const URGENT_RANK: f64 = f64::NEG_INFINITY;

impl<T: Copy> CustomQueue<T> {
    /// An empty queue for at most `capacity` packets.
    #[must_use]
    pub fn new(id: CustomDisciplineId, discipline: Box<dyn CustomDiscipline>, capacity: NonZeroU16) -> Self {
        Self { id, discipline: Some(discipline), failure: None, capacity, entries: VecDeque::new(), bytes: 0 }
    }

    /// Returns the id of its discipline.
    #[must_use]
    pub fn id(&self) -> CustomDisciplineId {
        self.id
    }

    /// Returns the discipline's failure, once. `None`: no failure.
    pub fn take_failure(&mut self) -> Option<CustomAlgorithmError> {
        self.failure.take()
    }

    /// Offers a packet. The result contains the packet that was lost, if any.
    pub fn enqueue(
        &mut self,
        now: Instant,
        mut packet: T,
        contents: &mut impl PacketAccess<T>,
    ) -> EnqueueResult<T> {
        let info = PacketInfo {
            len_bytes: contents.len_bytes(&packet),
            flow: contents.flow(&packet),
            class: contents.class(&packet),
            capability: contents.capability(&packet),
        };
        let admission = match info.class {
            Class::Urgent => EnqueueDecision::Enqueue { rank: URGENT_RANK },
            Class::Routing | Class::Data => self.decide_enqueue(now, &info),
        };
        let rank = match admission {
            EnqueueDecision::Enqueue { rank } => rank,
            EnqueueDecision::Mark { rank } if SignalAction::Mark.marks(info.capability) => {
                contents.mark(&mut packet);
                rank
            }
            EnqueueDecision::Mark { .. } | EnqueueDecision::Drop => return EnqueueResult::EarlyDrop(packet),
        };
        self.insert(Entry { packet, info, enqueued_at: now, rank })
    }

    /// Removes and returns the next packet to serve. Reports drops by the discipline to `contents`.
    pub fn dequeue(&mut self, now: Instant, contents: &mut impl PacketAccess<T>) -> Option<T> {
        loop {
            let mut head = self.entries.pop_front()?;
            self.bytes -= u64::from(head.info.len_bytes);
            let marks = SignalAction::Mark.marks(head.info.capability);
            match self.decide_dequeue(now, &head) {
                DequeueDecision::Serve => return Some(head.packet),
                DequeueDecision::Mark if marks => {
                    contents.mark(&mut head.packet);
                    return Some(head.packet);
                }
                DequeueDecision::Mark | DequeueDecision::Drop => contents.dropped(head.packet),
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
        self.entries.retain(|entry| {
            let take = matches(&entry.packet);
            if take {
                gone.push(entry.info);
                sink(entry.packet);
            }
            !take
        });
        self.bytes -= gone.iter().map(|info| u64::from(info.len_bytes)).sum::<u64>();
        for info in gone {
            self.report_drop(now, &info, DropCause::Removed);
        }
    }

    /// The packets in the queue, head first.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.entries.iter().map(|entry| &entry.packet)
    }

    /// Number of packets in the queue.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns whether the queue is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    fn insert(&mut self, entry: Entry<T>) -> EnqueueResult<T> {
        let full = self.entries.len() >= usize::from(self.capacity.get());
        let last = self.entries.back().filter(|last| full && last.rank > entry.rank).copied();
        if full && last.is_none() {
            self.report_drop(entry.enqueued_at, &entry.info, DropCause::Full);
            return EnqueueResult::Refused(entry.packet);
        }
        if let Some(last) = last {
            self.entries.pop_back();
            self.bytes -= u64::from(last.info.len_bytes);
        }
        // Most join at the end.
        let behind = self.entries.iter().rev().take_while(|other| other.rank > entry.rank).count();
        self.entries.insert(self.entries.len() - behind, entry);
        self.bytes += u64::from(entry.info.len_bytes);
        match last {
            Some(last) => {
                self.report_drop(entry.enqueued_at, &last.info, DropCause::Displaced);
                EnqueueResult::Displaced(last.packet)
            }
            None => EnqueueResult::Accepted,
        }
    }

    fn decide_enqueue(&mut self, now: Instant, info: &PacketInfo) -> EnqueueDecision {
        let queue = self.queue_info(now);
        let admission = self.call("enqueue", |discipline| {
            let admission = discipline.enqueue(info, &queue)?;
            match admission {
                EnqueueDecision::Enqueue { rank } | EnqueueDecision::Mark { rank } if rank.is_nan() => {
                    Err("a rank that is not a number".to_owned())
                }
                EnqueueDecision::Enqueue { .. } | EnqueueDecision::Mark { .. } | EnqueueDecision::Drop => {
                    Ok(admission)
                }
            }
        });
        admission.unwrap_or(EnqueueDecision::Enqueue { rank: 0.0 })
    }

    fn decide_dequeue(&mut self, now: Instant, head: &Entry<T>) -> DequeueDecision {
        if head.info.class == Class::Urgent {
            return DequeueDecision::Serve;
        }
        let queue = self.queue_info(now);
        let about =
            HeadOfQueue { packet: head.info, queueing_delay: now.since(head.enqueued_at), rank: head.rank };
        self.call("dequeue", |discipline| discipline.dequeue(&about, &queue))
            .unwrap_or(DequeueDecision::Serve)
    }

    fn report_drop(&mut self, now: Instant, info: &PacketInfo, loss: DropCause) {
        if info.class != Class::Urgent {
            let queue = self.queue_info(now);
            let _ = self.call("on_lost", |discipline| discipline.on_drop(info, loss, &queue));
        }
    }

    fn queue_info(&self, now: Instant) -> QueueInfo {
        QueueInfo { now, packets: self.entries.len(), bytes: self.bytes, capacity: self.capacity }
    }

    /// Returns the discipline's decision; `None` once it has failed.
    fn call<R>(
        &mut self,
        method: &'static str,
        question: impl FnOnce(&mut dyn CustomDiscipline) -> Result<R, String>,
    ) -> Option<R> {
        match question(&mut **self.discipline.as_mut()?) {
            Ok(answer) => Some(answer),
            Err(why) => {
                self.discipline = None;
                self.failure = Some(CustomAlgorithmError::new(method, why));
                None
            }
        }
    }
}

#[cfg(test)]
mod tests;
