//! Wired point-to-point links.

use crate::fingerprint::Observed;
use crate::node::{WireEnd, queue};
use crate::packet::Handle;
use crate::queueing::Owner;
use crate::spec::LinkSpec;
use crate::trace::{DropReason, Place, TraceEvent, Tracer};
use crate::world::{Event, World};
use hopline_core::{Duration, NodeId, Purpose, Stream};
use hopline_queue::InterfaceQueue;
use hopline_queue::drop_tail::Class;
use hopline_radio::phy::errors::ErrorProcess;
use std::collections::VecDeque;

/// A full-duplex link.
#[derive(Debug)]
pub(crate) struct Wire {
    rate_bps: u64,
    delay: Duration,
    directions: [Direction; 2],
}

/// One direction of a link, named after the side that sends.
#[derive(Debug)]
struct Direction {
    from: NodeId,
    queue: InterfaceQueue<(Handle, Class)>,
    sending: Option<Handle>,
    /// On the way, oldest first; the delay is constant.
    travelling: VecDeque<Handle>,
    errors: ErrorProcess,
    stream: Stream,
}

impl Wire {
    pub(crate) fn new(spec: &LinkSpec, number: u64, (seed, run): (u64, u64)) -> Self {
        let stream = |side: u64, purpose| Stream::keyed(seed, run, 1 << 32 | number << 1 | side, purpose);
        let direction = |from: NodeId, side: u64| Direction {
            from,
            queue: queue(&spec.queue, || stream(side, Purpose::Queue)),
            sending: None,
            travelling: VecDeque::new(),
            errors: ErrorProcess::new(spec.errors[side as usize]),
            stream: stream(side, Purpose::Errors),
        };
        Self {
            rate_bps: spec.rate_bps,
            delay: spec.delay,
            directions: [direction(spec.a, 0), direction(spec.b, 1)],
        }
    }

    /// Packets waiting to be sent from `side`.
    pub(crate) fn queue_len(&self, side: u8) -> usize {
        self.directions[usize::from(side)].queue.len()
    }
}

impl<T: Tracer> World<T> {
    /// Hands a packet to one end of a link.
    pub(crate) fn send_over_wire(&mut self, end: WireEnd, handle: Handle, class: Class) {
        let mut owner = Owner::new(&self.packets);
        let direction = &mut self.wires[end.link as usize].directions[usize::from(end.side)];
        let node = direction.from.0;
        let enqueued = direction.queue.enqueue(self.now, (handle, class), &mut owner);
        let told = owner.told();
        self.note_enqueued((Place::Wire, node), enqueued, told);
        self.start_wire(end);
    }

    /// The packet being sent has left.
    pub(crate) fn wire_sent(&mut self, end: WireEnd) {
        let arrival = self.now + self.wires[end.link as usize].delay;
        let direction = self.direction(end);
        if let Some(handle) = direction.sending.take() {
            direction.travelling.push_back(handle);
            self.scheduler.schedule(arrival, Event::WireArrived { end });
        }
        self.start_wire(end);
    }

    /// A packet has arrived at the other end.
    pub(crate) fn wire_arrived(&mut self, end: WireEnd) {
        let now = self.now;
        let to = self.wires[end.link as usize].directions[usize::from(1 - end.side)].from;
        let airtime = |len: u32, rate| Duration::of_bits(8 * u64::from(len), rate);
        let rate_bps = self.wires[end.link as usize].rate_bps;
        let direction = &mut self.wires[end.link as usize].directions[usize::from(end.side)];
        let Some(handle) = direction.travelling.pop_front() else { return };
        let packet = self.packets.get(handle);
        let (bits, duration) = (8 * u64::from(packet.len_bytes), airtime(packet.len_bytes, rate_bps));
        if direction.errors.corrupts(now, bits, duration, &mut direction.stream) {
            self.drop_at(Place::Wire, to.0, handle, DropReason::LinkError);
            return;
        }
        let from = direction.from;
        if !self.cuts.is_empty() && self.cuts.covers(now, from, to) {
            self.drop_at(Place::Wire, to.0, handle, DropReason::Outage);
            return;
        }
        self.fingerprint.observe(now, Observed::WiredArrived, to.0, packet.len_bytes);
        if T::ENABLED {
            self.tracer.note(now, to, TraceEvent::PacketReceived(self.packets.view(handle)));
        }
        self.receive(to.0, handle, from);
    }

    /// Sends the next packet if the link is free.
    fn start_wire(&mut self, end: WireEnd) {
        let rate_bps = self.wires[end.link as usize].rate_bps;
        let direction = &mut self.wires[end.link as usize].directions[usize::from(end.side)];
        if direction.sending.is_some() {
            return;
        }
        let mut owner = Owner::new(&self.packets);
        let (node, next) = (direction.from.0, direction.queue.dequeue(self.now, &mut owner));
        let told = owner.told();
        self.note_told((Place::Wire, node), told);
        let Some((handle, _)) = next else { return };
        let direction = self.direction(end);
        direction.sending = Some(handle);
        let from = direction.from;
        let packet = self.packets.get(handle);
        let sent = self.now + Duration::of_bits(8 * u64::from(packet.len_bytes), rate_bps);
        self.fingerprint.observe(self.now, Observed::WiredSent, from.0, packet.len_bytes);
        if T::ENABLED {
            let packet = self.packets.view(handle);
            self.tracer.note(self.now, from, TraceEvent::PacketSent(packet));
        }
        self.scheduler.schedule(sent, Event::WireSent { end });
    }

    fn direction(&mut self, end: WireEnd) -> &mut Direction {
        &mut self.wires[end.link as usize].directions[usize::from(end.side)]
    }
}
