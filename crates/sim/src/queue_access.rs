//! Queues in front of interfaces: what they know of packets, and what they say of them.

use crate::custom::{CustomAlgorithms, FailedInstance};
use crate::fingerprint::ObservedEvent;
use crate::kernel::Kernel;
use crate::packet::{Body, Handle, Mark, Packet, PacketAccount, PacketSlab};
use crate::spec::{Discipline, QueueSpec};
use crate::trace::{DropLocation, DropReason, Tracer};
use hopline_core::{NodeId, RandomStream};
use hopline_queue::{
    Class, CoDel, DropTail, DualPi2, EcnCapability, EnqueueResult, FqCoDel, InterfaceQueue, PacketAccess,
    Pie, Red,
};
use hopline_wire::dot11::MacAddr;
use hopline_wire::ipv4::Ecn;

/// The owner of the packets while one is put into a queue or taken out.
#[derive(Debug)]
pub(crate) struct QueuedPackets<'a> {
    packets: &'a PacketSlab,
    report: QueueReport,
}

/// Packets that a queue dropped or marked. It marks one at a time.
#[derive(Debug, Default)]
pub(crate) struct QueueReport {
    marked: Option<Handle>,
    dropped: Vec<Handle>,
}

/// A packet on its way to the MAC.
#[derive(Clone, Copy, Debug)]
pub(crate) struct QueuedPacket {
    pub(crate) handle: Handle,
    pub(crate) to: MacAddr,
    pub(crate) class: Class,
}

/// Entry of a queue.
pub(crate) trait QueueEntry: Copy {
    fn handle(&self) -> Handle;
    fn handle_mut(&mut self) -> &mut Handle;
    fn class(&self) -> Class;
}

impl QueueEntry for QueuedPacket {
    fn handle(&self) -> Handle {
        self.handle
    }

    fn handle_mut(&mut self) -> &mut Handle {
        &mut self.handle
    }

    fn class(&self) -> Class {
        self.class
    }
}

impl QueueEntry for (Handle, Class) {
    fn handle(&self) -> Handle {
        self.0
    }

    fn handle_mut(&mut self) -> &mut Handle {
        &mut self.0
    }

    fn class(&self) -> Class {
        self.1
    }
}

impl QueueReport {
    /// Creates the record of a marked packet.
    pub(crate) fn for_mark(handle: Handle) -> Self {
        Self { marked: Some(handle), dropped: Vec::new() }
    }
}

impl<'a> QueuedPackets<'a> {
    pub(crate) fn new(packets: &'a PacketSlab) -> Self {
        Self { packets, report: QueueReport::default() }
    }

    pub(crate) fn into_report(self) -> QueueReport {
        self.report
    }

    /// Returns the packet that determines the flow: the one within, if it carries one.
    fn flow_packet(&self, handle: Handle) -> &Packet {
        let packet = self.packets.get(handle);
        packet.inner().map_or(packet, |inner| self.packets.get(inner))
    }
}

impl<T: QueueEntry> PacketAccess<T> for QueuedPackets<'_> {
    fn class(&self, waiting: &T) -> Class {
        waiting.class()
    }

    fn len_bytes(&self, waiting: &T) -> u32 {
        self.packets.len(waiting.handle())
    }

    fn capability(&self, waiting: &T) -> EcnCapability {
        match self.packets.ecn(waiting.handle()) {
            Ecn::NotCapable => EcnCapability::NotCapable,
            Ecn::Capable0 => EcnCapability::Capable,
            Ecn::Capable1 | Ecn::CongestionExperienced => EcnCapability::L4s,
        }
    }

    fn flow(&self, waiting: &T) -> u64 {
        let packet = self.flow_packet(waiting.handle());
        let flow = match (packet.account, &packet.body) {
            (PacketAccount::Flow(flow), _) => u64::from(flow.0) + 1,
            (_, Body::External(opaque)) => {
                opaque.ports().map_or(0, |[src, dst]| u64::from(src) << 16 | u64::from(dst))
            }
            (_, Body::Ethernet(frame)) => u64::from(frame.ports[0]) << 16 | u64::from(frame.ports[1]),
            _ => 0,
        };
        // Of the two directions only one has the greater address in front.
        let ends = u64::from(packet.ip.src.to_bits()) << 32 | u64::from(packet.ip.dst.to_bits());
        ends ^ flow << 8
    }

    fn mark(&mut self, waiting: &mut T) {
        waiting.handle_mut().mark = Mark::Congestion;
        self.report.marked = Some(waiting.handle());
    }

    fn dropped(&mut self, waiting: T) {
        self.report.dropped.push(waiting.handle());
    }
}

/// Returns the queue that `spec` describes, with random numbers of its own if it needs any. `machines` has
/// the user-defined disciplines.
pub(crate) fn new_queue<T: Copy>(
    spec: &QueueSpec,
    machines: &CustomAlgorithms,
    random: impl FnOnce() -> RandomStream,
) -> InterfaceQueue<T> {
    let QueueSpec { capacity, service_order: service, discipline } = *spec;
    match discipline {
        Discipline::DropTail => InterfaceQueue::DropTail(DropTail::new(capacity, service)),
        Discipline::Red(config) => {
            InterfaceQueue::red(DropTail::new(capacity, service), Red::new(config, random()))
        }
        Discipline::CoDel(config) => {
            InterfaceQueue::codel(DropTail::new(capacity, service), CoDel::new(config))
        }
        Discipline::FqCoDel(config) => InterfaceQueue::FqCoDel(Box::new(FqCoDel::new(config, capacity))),
        Discipline::Pie(config) => {
            InterfaceQueue::pie(DropTail::new(capacity, service), Pie::new(config, random()))
        }
        Discipline::DualPi2(config) => InterfaceQueue::DualPi2(Box::new(DualPi2::new(config, capacity))),
        Discipline::Custom(id) => {
            InterfaceQueue::custom(id, machines.make_discipline(id, &mut random()), capacity)
        }
    }
}

impl<T: Tracer> Kernel<T> {
    /// Records that a queue of `node` was offered a packet.
    pub(crate) fn record_enqueue<Q: QueueEntry>(
        &mut self,
        (place, node): (DropLocation, NodeId),
        enqueued: EnqueueResult<Q>,
        told: QueueReport,
    ) {
        match enqueued {
            EnqueueResult::Accepted => {}
            EnqueueResult::Displaced(lost) | EnqueueResult::Refused(lost) => {
                self.drop_at(place, node, lost.handle(), DropReason::QueueFull);
            }
            EnqueueResult::EarlyDrop(lost) => self.drop_at(place, node, lost.handle(), DropReason::Early),
        }
        self.apply_queue_report((place, node), told);
    }

    /// Records the failure of a user-defined discipline in a queue of `node`, after the queue was used.
    pub(crate) fn check_custom_discipline<Q: Copy>(&mut self, node: NodeId, queue: &mut InterfaceQueue<Q>) {
        if let Some((id, reason)) = queue.take_custom_failure() {
            self.fail(FailedInstance::Discipline { id, node }, reason);
        }
    }

    /// Handles the early drops and the mark of a queue of `node`, if there are any.
    pub(crate) fn apply_queue_report(&mut self, (place, node): (DropLocation, NodeId), told: QueueReport) {
        for lost in told.dropped {
            self.drop_at(place, node, lost, DropReason::Early);
        }
        if let Some(marked) = told.marked {
            self.observe(ObservedEvent::Marked, node, self.packets.len(marked));
            self.counters[node.index()].marks += 1;
        }
    }
}
