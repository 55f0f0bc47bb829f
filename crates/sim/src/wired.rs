//! Wired point-to-point links.

mod bucket;

use self::bucket::Bucket;
use crate::event::Event;
use crate::fingerprint::Observed;
use crate::ids::WireEnd;
use crate::kernel::Kernel;
use crate::outage::Schedule;
use crate::packet::Handle;
use crate::queueing::{Owner, queue};
use crate::spec::links::Late;
use crate::spec::{LinkSpec, Machines, Spec};
use crate::trace::{DropReason, Place, TraceEvent, Tracer};
use hopline_core::{Duration, Instant, NodeId, Purpose, Stream};
use hopline_queue::InterfaceQueue;
use hopline_queue::drop_tail::Class;
use hopline_radio::phy::errors::ErrorProcess;
use std::collections::{BTreeMap, VecDeque};

/// All wired links.
#[derive(Debug)]
pub(crate) struct Wires {
    links: Vec<Wire>,
    /// Schedule of the pairs of nodes between which nothing is received.
    cuts: Schedule,
}

/// A full-duplex link.
#[derive(Debug)]
struct Wire {
    rate_bps: u64,
    /// Other rates, the latest first.
    rates: Vec<(Instant, u64)>,
    delay: Duration,
    directions: [Direction; 2],
}

/// One direction of a link, named after the side that sends.
#[derive(Debug)]
struct Direction {
    from: NodeId,
    queue: InterfaceQueue<(Handle, Class)>,
    sending: Option<Sending>,
    /// Packets in flight, oldest first; the delay is constant.
    travelling: VecDeque<Handle>,
    /// The same of those that take longer, by when they arrive, and in the order in which they left.
    delayed: BTreeMap<(Instant, u64), Handle>,
    /// Packets that took longer so far.
    delayed_so_far: u64,
    slot: Duration,
    jitter: Option<Jitter>,
    late: Option<(Late, Stream)>,
    policer: Option<Bucket>,
    errors: ErrorProcess,
    stream: Stream,
}

/// A packet that leaves.
#[derive(Clone, Copy, Debug)]
struct Sending {
    handle: Handle,
    /// Additional delay that it will have.
    extra: Duration,
}

impl Wire {
    fn new(spec: &LinkSpec, number: u64, machines: &Machines, (seed, run): (u64, u64)) -> Self {
        let stream = |side: u64, purpose| Stream::keyed(seed, run, 1 << 32 | number << 1 | side, purpose);
        let direction = |from: NodeId, side: u64| Direction {
            from,
            queue: queue(&spec.queue, machines, || stream(side, Purpose::Queue)),
            sending: None,
            travelling: VecDeque::new(),
            delayed: BTreeMap::new(),
            delayed_so_far: 0,
            slot: spec.quirks.slots[side as usize],
            jitter: Jitter::new(spec.quirks.jitter[side as usize], || stream(side, Purpose::Jitter)),
            late: spec.quirks.late[side as usize].map(|late| (late, stream(side, Purpose::Lateness))),
            policer: spec.quirks.policer[side as usize].map(Bucket::new),
            errors: ErrorProcess::new(spec.errors[side as usize]),
            stream: stream(side, Purpose::Errors),
        };
        Self {
            rate_bps: spec.rate_bps,
            rates: spec.quirks.rates.iter().rev().copied().collect(),
            delay: spec.delay,
            directions: [direction(spec.a, 0), direction(spec.b, 1)],
        }
    }

    /// Returns the rate from now on.
    fn rate_at(&mut self, now: Instant) -> u64 {
        while let Some((_, rate_bps)) = self.rates.pop_if(|(at, _)| *at <= now) {
            self.rate_bps = rate_bps;
        }
        self.rate_bps
    }
}

impl Wires {
    pub(crate) fn new(spec: &Spec, key: (u64, u64)) -> Self {
        let wire = |(link, n)| Wire::new(link, n, &spec.machines, key);
        let links = spec.links.iter().zip(0..).map(wire).collect();
        Self { links, cuts: Schedule::new(&spec.outages, |_any| true) }
    }

    /// Returns the number of packets waiting to be sent from an end.
    pub(crate) fn queue_len(&self, end: WireEnd) -> usize {
        self.links[end.link as usize].directions[usize::from(end.side)].queue.len()
    }

    /// Returns the number of packets that links have.
    pub(crate) fn held(&self) -> usize {
        self.links.iter().flat_map(|link| &link.directions).map(Direction::held).sum()
    }

    /// Hands a packet to one end of a link.
    pub(crate) fn send<T: Tracer>(
        &mut self,
        kernel: &mut Kernel<T>,
        end: WireEnd,
        handle: Handle,
        class: Class,
    ) {
        let (now, len_bytes) = (kernel.now, kernel.packets.len(handle));
        let direction = self.direction(end);
        if direction.policer.as_mut().is_some_and(|policer| !policer.admits(now, len_bytes)) {
            kernel.drop_at(Place::Wire, direction.from, handle, DropReason::Policed);
            return;
        }
        let before = direction.queue.len();
        let mut owner = Owner::new(&kernel.packets);
        let enqueued = direction.queue.enqueue(kernel.now, (handle, class), &mut owner);
        let told = owner.told();
        kernel.note_waiting(direction.from, before, direction.queue.len());
        kernel.note_own(direction.from, &mut direction.queue);
        kernel.note_enqueued((Place::Wire, direction.from), enqueued, told);
        self.start(kernel, end);
    }

    /// Handles the departure of the packet being sent.
    pub(crate) fn sent<T: Tracer>(&mut self, kernel: &mut Kernel<T>, end: WireEnd) {
        let arrival = kernel.now + self.links[end.link as usize].delay;
        let direction = self.direction(end);
        if let Some(Sending { handle, extra }) = direction.sending.take() {
            let arrival = arrival + extra;
            if extra.is_zero() {
                direction.travelling.push_back(handle);
            } else {
                direction.delayed.insert((arrival, direction.delayed_so_far), handle);
                direction.delayed_so_far += 1;
            }
            kernel.schedule(arrival, Event::WireArrived { end });
        }
        self.start(kernel, end);
    }

    /// Handles the arrival of a packet at the other end. Returns its sender and its place, unless it is lost.
    pub(crate) fn arrived<T: Tracer>(&mut self, kernel: &mut Kernel<T>, end: WireEnd) -> Option<WireArrival> {
        let now = kernel.now;
        let Wire { rate_bps, ref mut directions, .. } = self.links[end.link as usize];
        let to = directions[usize::from(1 - end.side)].from;
        let direction = &mut directions[usize::from(end.side)];
        let (handle, from) = (direction.next_arrival(now)?, direction.from);
        let len_bytes = kernel.packets.len(handle);
        let bits = 8 * u64::from(len_bytes);
        let lost =
            if direction.errors.corrupts(now, bits, Duration::of_bits(bits, rate_bps), &mut direction.stream)
            {
                Some(DropReason::LinkError)
            } else if !self.cuts.is_empty() && self.cuts.covers(now, from, to) {
                Some(DropReason::Outage)
            } else {
                None
            };
        if let Some(reason) = lost {
            kernel.drop_at(Place::Wire, to, handle, reason);
            return None;
        }
        kernel.observe(Observed::WiredArrived, to, len_bytes);
        kernel.note(to, |packets| TraceEvent::PacketReceived(packets.view(handle)));
        Some(WireArrival { handle, from, to, at: WireEnd { side: 1 - end.side, ..end } })
    }

    /// Sends the next packet if the link is free.
    fn start<T: Tracer>(&mut self, kernel: &mut Kernel<T>, end: WireEnd) {
        let link = &mut self.links[end.link as usize];
        let rate_bps = link.rate_at(kernel.now);
        let Wire { delay, ref directions, .. } = *link;
        let to = directions[usize::from(1 - end.side)].from;
        let direction = self.direction(end);
        if direction.sending.is_some() {
            return;
        }
        let from = direction.from;
        let before = direction.queue.len();
        let mut owner = Owner::new(&kernel.packets);
        let next = direction.queue.dequeue(kernel.now, &mut owner);
        let told = owner.told();
        kernel.note_waiting(from, before, direction.queue.len());
        kernel.note_own(from, &mut direction.queue);
        kernel.note_told((Place::Wire, from), told);
        let Some((handle, _)) = next else { return };
        let len_bytes = kernel.packets.len(handle);
        let sent = kernel.now + Duration::of_bits(8 * u64::from(len_bytes), rate_bps);
        let slot = direction.until_slot(sent);
        let extra = slot + direction.draw_jitter(sent + slot) + direction.draw_lateness();
        direction.sending = Some(Sending { handle, extra });
        kernel.observe(Observed::WiredSent, from, len_bytes);
        kernel.note(from, |packets| {
            let packet = packets.view(handle);
            TraceEvent::PacketSent { packet, to, arrives: sent + delay + extra }
        });
        kernel.schedule(sent, Event::WireSent { end });
    }

    fn direction(&mut self, end: WireEnd) -> &mut Direction {
        &mut self.links[end.link as usize].directions[usize::from(end.side)]
    }
}

impl Direction {
    /// Returns the number of packets that wait or are in flight.
    fn held(&self) -> usize {
        let sending = usize::from(self.sending.is_some());
        self.queue.len() + sending + self.travelling.len() + self.delayed.len()
    }

    /// Returns the packet that has arrived.
    fn next_arrival(&mut self, now: Instant) -> Option<Handle> {
        match self.delayed.first_entry() {
            Some(first) if first.key().0 <= now => Some(first.remove()),
            _ => self.travelling.pop_front(),
        }
    }

    /// Returns the wait of a packet for the next slot.
    const fn until_slot(&self, sent: Instant) -> Duration {
        match (sent.as_nanos(), self.slot.as_nanos()) {
            (_, 0) => Duration::ZERO,
            (sent, slot) => Duration::from_nanos(sent.next_multiple_of(slot) - sent),
        }
    }

    fn draw_jitter(&mut self, sent: Instant) -> Duration {
        self.jitter.as_mut().map_or(Duration::ZERO, |jitter| jitter.draw(sent))
    }

    fn draw_lateness(&mut self) -> Duration {
        let Some((late, stream)) = &mut self.late else { return Duration::ZERO };
        if stream.bernoulli(late.share) { late.by } else { Duration::ZERO }
    }
}

/// Packets take longer, each by itself, and keep their order.
#[derive(Debug)]
struct Jitter {
    up_to: Duration,
    stream: Stream,
    /// Time at which the last packet would have left had it taken no longer.
    latest: Instant,
}

impl Jitter {
    fn new(up_to: Duration, stream: impl FnOnce() -> Stream) -> Option<Self> {
        (!up_to.is_zero()).then(|| Self { up_to, stream: stream(), latest: Instant::ZERO })
    }

    /// Returns the additional delay of the packet that has left at `sent`.
    fn draw(&mut self, sent: Instant) -> Duration {
        self.latest = self.latest.max(sent + self.stream.duration_below(self.up_to));
        self.latest - sent
    }
}

/// A packet that has come over a link. The hold on it passes on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WireArrival {
    pub(crate) handle: Handle,
    pub(crate) from: NodeId,
    pub(crate) to: NodeId,
    /// The end at which it is now.
    pub(crate) at: WireEnd,
}
