//! State that every part of a world is handed: the clock, the scheduled events, the packets and the counters.

use crate::custom::{FailedInstance, Failure};
use crate::event::Event;
use crate::fingerprint::{Fingerprint, ObservedEvent};
use crate::outcome::{DropCounts, FrameCounts, QueueLengthTracker, UnicastFrames};
use crate::packet::{Body, FlowPacketId, Handle, Packet, PacketAccount, PacketRole, PacketSlab};
use crate::scheduler::Scheduler;
use crate::trace::{DropLocation, DropReason, TraceEvent, Tracer};
use hopline_core::custom_algorithm::CustomAlgorithmError;
use hopline_core::{Instant, NodeId};
use hopline_wire::ipv4::Header;

/// The kernel of a world. It knows no part of it.
#[derive(Debug)]
pub(crate) struct Kernel<T> {
    pub(crate) now: Instant,
    /// Nothing later than this is processed yet.
    pub(crate) processed_until: Instant,
    pub(crate) scheduler: Scheduler<Event>,
    pub(crate) packets: PacketSlab,
    /// Counters, by node.
    pub(crate) counters: Vec<NodeCounters>,
    pub(crate) fingerprint: Fingerprint,
    pub(crate) events: u64,
    /// Bytes that every network-layer packet carries beyond its own headers.
    pub(crate) extra_header_bytes: u32,
    pub(crate) tracer: T,
    /// Nodes that want to know what their queues drop.
    pub(crate) drop_watchers: Vec<bool>,
    /// Packets dropped by such queues and not reported yet.
    pub(crate) unreported_drops: Vec<(NodeId, Packet)>,
    /// Failure of a user-defined algorithm. Once set, nothing more is processed.
    pub(crate) failure: Option<Box<Failure>>,
}

/// Counters of a node.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct NodeCounters {
    pub(crate) drops: DropCounts,
    /// Packets marked by its queues.
    pub(crate) marks: u64,
    pub(crate) queues: QueueLengthTracker,
    pub(crate) frames: FrameCounts,
    pub(crate) data_frames: UnicastFrames,
    pub(crate) ack_frames: UnicastFrames,
    /// Routing packets sent, those passed on included.
    pub(crate) routing_packets: u64,
    /// Their bytes, IP headers included.
    pub(crate) routing_bytes: u64,
}

impl<T: Tracer> Kernel<T> {
    pub(crate) fn new(nodes: usize, extra_header_bytes: u32, tracer: T) -> Self {
        Self {
            now: Instant::ZERO,
            processed_until: Instant::ZERO,
            scheduler: Scheduler::new(),
            packets: PacketSlab::default(),
            counters: vec![NodeCounters::default(); nodes],
            fingerprint: Fingerprint::new(),
            events: 0,
            extra_header_bytes,
            tracer,
            drop_watchers: Vec::new(),
            unreported_drops: Vec::new(),
            failure: None,
        }
    }

    /// Records that a user-defined algorithm has failed. The first failure counts, and nothing is processed
    /// after it.
    #[cold]
    pub(crate) fn fail(&mut self, culprit: FailedInstance, reason: CustomAlgorithmError) {
        let at = self.now;
        self.processed_until = Instant::ZERO;
        self.failure.get_or_insert_with(|| Box::new(Failure { instance: culprit, at, reason }));
    }

    /// Schedules `event` for `at`.
    pub(crate) fn schedule(&mut self, at: Instant, event: Event) {
        self.scheduler.schedule(at, event);
    }

    /// Returns whether no event is due before or at `at`, which is within the horizon.
    pub(crate) fn is_idle_until(&self, at: Instant) -> bool {
        at <= self.processed_until && at < self.scheduler.next_at()
    }

    /// Mixes into the fingerprint what happens now at `node`.
    pub(crate) fn observe(&mut self, what: ObservedEvent, node: NodeId, detail: u32) {
        self.fingerprint.observe(self.now, what, node.0, detail);
    }

    /// Tells the tracer, if there is one, what happens at `node`.
    #[inline]
    pub(crate) fn trace(&mut self, node: NodeId, event: impl FnOnce(&PacketSlab) -> TraceEvent<'_>) {
        if T::ENABLED {
            self.tracer.trace(self.now, node, event(&self.packets));
        }
    }

    /// Creates a packet that is made now, of which `len_bytes` are its own headers and data.
    pub(crate) fn new_packet(
        &self,
        ip: Header,
        body: Body,
        len_bytes: u32,
        account: PacketAccount,
    ) -> Packet {
        let len_bytes = len_bytes + self.extra_header_bytes;
        let (made, role) = (self.now, PacketRole::Original);
        Packet {
            ip,
            body,
            len_bytes,
            account,
            made,
            original: FlowPacketId { number: 0, made },
            role,
            serial: 0,
        }
    }

    /// Drops a packet at `place` of `node`. The caller's hold on it ends.
    pub(crate) fn drop_at(&mut self, place: DropLocation, node: NodeId, handle: Handle, reason: DropReason) {
        self.observe(ObservedEvent::Dropped, node, self.packets.len(handle));
        if T::ENABLED {
            let packet = self.packets.view(handle);
            self.tracer.trace(self.now, node, TraceEvent::Dropped { packet, reason, location: place });
        }
        self.counters[node.index()].drops.count(reason);
        if let DropReason::QueueFull | DropReason::Early = reason {
            self.report_queue_drop(node, handle);
        }
        self.packets.record_dropped(handle, reason);
        self.packets.release(handle);
    }

    /// Releases the caller's hold on a packet. If that was the last copy and it has not arrived, it is
    /// dropped at `place` of `node`. The fingerprint has observed the cause already.
    pub(crate) fn release(&mut self, place: DropLocation, node: NodeId, handle: Handle, reason: DropReason) {
        if self.packets.is_lost_without(handle) {
            self.trace(node, |packets| TraceEvent::Dropped {
                packet: packets.view(handle),
                reason,
                location: place,
            });
            self.counters[node.index()].drops.count(reason);
            self.packets.record_dropped(handle, reason);
        }
        self.packets.release(handle);
    }

    /// Records that a queue of `node` had `before` packets, and has `after`.
    pub(crate) fn record_queue_length(&mut self, node: NodeId, before: usize, after: usize) {
        self.counters[node.index()].queues.change(self.now, before, after);
        if before != after {
            self.trace(node, |_packets| TraceEvent::Queued { before, after });
        }
    }

    /// Reports a packet lost to a queue to the middleboxes of a node, if it has any.
    pub(crate) fn report_queue_drop(&mut self, node: NodeId, handle: Handle) {
        if self.drop_watchers.get(node.index()) == Some(&true) {
            self.unreported_drops.push((node, self.packets.get(handle).clone()));
        }
    }
}

impl NodeCounters {
    /// Counts anew from `now` on.
    pub(crate) fn restart(&mut self, now: Instant) {
        *self = Self { queues: self.queues.restarted(now), ..Self::default() };
    }
}
