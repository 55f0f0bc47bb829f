//! Queues in front of interfaces: what they know of packets, and what they say of them.

use crate::fingerprint::Observed;
use crate::kernel::Kernel;
use crate::own::{Culprit, Machines};
use crate::packet::{Account, Body, Handle, Mark, Packet, Slab};
use crate::spec::{Discipline, QueueSpec};
use crate::trace::{DropReason, Place, Tracer};
use hopline_core::{NodeId, Stream};
use hopline_queue::{Capability, Class, CoDel, Contents, DropTail, Enqueued, FqCoDel, InterfaceQueue, Red};
use hopline_wire::dot11::MacAddr;
use hopline_wire::ipv4::Ecn;

/// The owner of the packets while one is put into a queue or taken out.
#[derive(Debug)]
pub(crate) struct Owner<'a> {
    packets: &'a Slab,
    told: Told,
}

/// Packets that a queue dropped or marked. It marks one at a time.
#[derive(Debug, Default)]
pub(crate) struct Told {
    marked: Option<Handle>,
    dropped: Vec<Handle>,
}

/// A packet on its way to the MAC.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Queued {
    pub(crate) handle: Handle,
    pub(crate) to: MacAddr,
    pub(crate) class: Class,
}

/// Entry of a queue.
pub(crate) trait Waiting: Copy {
    fn handle(&self) -> Handle;
    fn handle_mut(&mut self) -> &mut Handle;
    fn class(&self) -> Class;
}

impl Waiting for Queued {
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

impl Waiting for (Handle, Class) {
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

impl Told {
    /// Creates the record of a marked packet.
    pub(crate) fn of_mark(handle: Handle) -> Self {
        Self { marked: Some(handle), dropped: Vec::new() }
    }
}

impl<'a> Owner<'a> {
    pub(crate) fn new(packets: &'a Slab) -> Self {
        Self { packets, told: Told::default() }
    }

    pub(crate) fn told(self) -> Told {
        self.told
    }

    /// Returns the packet that determines the flow: the one within, if it carries one.
    fn of_flow(&self, handle: Handle) -> &Packet {
        let packet = self.packets.get(handle);
        packet.carried().map_or(packet, |inner| self.packets.get(inner))
    }
}

impl<T: Waiting> Contents<T> for Owner<'_> {
    fn class(&self, waiting: &T) -> Class {
        waiting.class()
    }

    fn len_bytes(&self, waiting: &T) -> u32 {
        self.packets.len(waiting.handle())
    }

    fn capability(&self, waiting: &T) -> Capability {
        match self.packets.ecn(waiting.handle()) {
            Ecn::NotCapable => Capability::NotCapable,
            Ecn::Capable0 | Ecn::Capable1 | Ecn::CongestionExperienced => Capability::Capable,
        }
    }

    fn flow(&self, waiting: &T) -> u64 {
        let packet = self.of_flow(waiting.handle());
        let flow = match (packet.account, &packet.body) {
            (Account::Flow(flow), _) => u64::from(flow.0) + 1,
            (_, Body::Foreign(opaque)) => {
                opaque.ports().map_or(0, |[src, dst]| u64::from(src) << 16 | u64::from(dst))
            }
            _ => 0,
        };
        // Of the two directions only one has the greater address in front.
        let ends = u64::from(packet.ip.src.to_bits()) << 32 | u64::from(packet.ip.dst.to_bits());
        ends ^ flow << 8
    }

    fn mark(&mut self, waiting: &mut T) {
        waiting.handle_mut().mark = Mark::Congestion;
        self.told.marked = Some(waiting.handle());
    }

    fn dropped(&mut self, waiting: T) {
        self.told.dropped.push(waiting.handle());
    }
}

/// Returns the queue that `spec` describes, with random numbers of its own if it needs any. `machines` has
/// the user-defined disciplines.
pub(crate) fn queue<T: Copy>(
    spec: &QueueSpec,
    machines: &Machines,
    random: impl FnOnce() -> Stream,
) -> InterfaceQueue<T> {
    let QueueSpec { capacity, service, discipline } = *spec;
    match discipline {
        Discipline::DropTail => InterfaceQueue::DropTail(DropTail::new(capacity, service)),
        Discipline::Red(config) => {
            InterfaceQueue::red(DropTail::new(capacity, service), Red::new(config, random()))
        }
        Discipline::CoDel(config) => {
            InterfaceQueue::codel(DropTail::new(capacity, service), CoDel::new(config))
        }
        Discipline::FqCoDel(config) => InterfaceQueue::FqCoDel(Box::new(FqCoDel::new(config, capacity))),
        Discipline::Own(id) => InterfaceQueue::own(id, machines.make_discipline(id, &mut random()), capacity),
    }
}

impl<T: Tracer> Kernel<T> {
    /// Records that a queue of `node` was offered a packet.
    pub(crate) fn note_enqueued<Q: Waiting>(
        &mut self,
        (place, node): (Place, NodeId),
        enqueued: Enqueued<Q>,
        told: Told,
    ) {
        match enqueued {
            Enqueued::Accepted => {}
            Enqueued::Displaced(lost) | Enqueued::Refused(lost) => {
                self.drop_at(place, node, lost.handle(), DropReason::QueueFull);
            }
            Enqueued::Early(lost) => self.drop_at(place, node, lost.handle(), DropReason::Early),
        }
        self.note_told((place, node), told);
    }

    /// Records the failure of a user-defined discipline in a queue of `node`, after the queue was used.
    pub(crate) fn note_own<Q: Copy>(&mut self, node: NodeId, queue: &mut InterfaceQueue<Q>) {
        if let Some((id, reason)) = queue.take_own_failure() {
            self.fail(Culprit::Discipline { id, node }, reason);
        }
    }

    /// Handles the early drops and the mark of a queue of `node`, if there are any.
    pub(crate) fn note_told(&mut self, (place, node): (Place, NodeId), told: Told) {
        for lost in told.dropped {
            self.drop_at(place, node, lost, DropReason::Early);
        }
        if let Some(marked) = told.marked {
            self.observe(Observed::Marked, node, self.packets.len(marked));
            self.ledger[node.index()].marks += 1;
        }
    }
}
