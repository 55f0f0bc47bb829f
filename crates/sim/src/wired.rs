//! Wired point-to-point links.

mod shaper;
mod token_bucket;

use self::shaper::{Release, ShaperState};
use self::token_bucket::TokenBucket;
use crate::event::Event;
use crate::fingerprint::ObservedEvent;
use crate::ids::WireEnd;
use crate::kernel::Kernel;
use crate::outage::OutageSchedule;
use crate::packet::Handle;
use crate::queue_access::{QueuedPackets, new_queue};
use crate::spec::links::{RateTrace, Reordering};
use crate::spec::{CustomAlgorithms, LinkSpec, Spec};
use crate::trace::{DropLocation, DropReason, TraceEvent, Tracer};
use hopline_core::{Duration, Instant, NodeId, Purpose, RandomStream};
use hopline_queue::InterfaceQueue;
use hopline_queue::drop_tail::Class;
use hopline_radio::phy::errors::ErrorProcess;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// All wired links.
#[derive(Debug)]
pub(crate) struct Wires {
    links: Vec<WiredLink>,
    /// Schedule of the pairs of nodes between which nothing is received.
    outages: OutageSchedule,
}

/// A full-duplex link.
#[derive(Debug)]
struct WiredLink {
    rate_bps: u64,
    /// Other rates, the latest first.
    rates: Vec<(Instant, u64)>,
    delay: Duration,
    /// Other delays, the earliest first.
    delays: Vec<(Instant, Duration)>,
    directions: [LinkDirection; 2],
}

/// One direction of a link, named after the side that sends.
#[derive(Debug)]
struct LinkDirection {
    from: NodeId,
    queue: InterfaceQueue<(Handle, Class)>,
    in_transmission: Option<TransmittingPacket>,
    /// Packets in flight that take the constant delay of the link, oldest first.
    in_flight: VecDeque<Handle>,
    /// The same of those that take longer, and of all if the delay changes, by when they arrive, and in the order in which
    /// they left.
    delayed: BTreeMap<(Instant, u64), Handle>,
    /// Number of packets that have been in `delayed` so far.
    delayed_count: u64,
    slot: Duration,
    jitter: Option<JitterProcess>,
    reordering: Option<(Reordering, RandomStream)>,
    policer: Option<TokenBucket>,
    shaper: Option<ShaperState>,
    rate_trace: Option<Arc<RateTrace>>,
    errors: ErrorProcess,
    stream: RandomStream,
}

/// A packet that leaves.
#[derive(Clone, Copy, Debug)]
struct TransmittingPacket {
    handle: Handle,
    /// Additional delay that it will have.
    extra: Duration,
}

impl WiredLink {
    fn new(spec: &LinkSpec, number: u64, machines: &CustomAlgorithms, (seed, run): (u64, u64)) -> Self {
        let stream =
            |side: u64, purpose| RandomStream::keyed(seed, run, 1 << 32 | number << 1 | side, purpose);
        let direction = |from: NodeId, side: u64| LinkDirection {
            from,
            queue: new_queue(&spec.queue, machines, || stream(side, Purpose::Queue)),
            in_transmission: None,
            in_flight: VecDeque::new(),
            delayed: BTreeMap::new(),
            delayed_count: 0,
            slot: spec.impairments.slots[side as usize],
            jitter: JitterProcess::new(spec.impairments.jitter[side as usize], || {
                stream(side, Purpose::Jitter)
            }),
            reordering: spec.impairments.reordering[side as usize]
                .map(|late| (late, stream(side, Purpose::Reordering))),
            policer: spec.impairments.policer[side as usize].map(TokenBucket::new),
            shaper: spec.impairments.shaper[side as usize].map(ShaperState::new),
            rate_trace: spec.impairments.rate_traces[side as usize].clone(),
            errors: ErrorProcess::new(spec.errors[side as usize]),
            stream: stream(side, Purpose::Errors),
        };
        Self {
            rate_bps: spec.rate_bps,
            rates: spec.impairments.rates.iter().rev().copied().collect(),
            delay: spec.delay,
            delays: spec.impairments.delays.clone(),
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

    /// Returns the propagation delay of a packet that leaves at `sent`.
    fn delay_at(&self, sent: Instant) -> Duration {
        let changes = self.delays.partition_point(|(from, _)| *from <= sent);
        changes.checked_sub(1).map_or(self.delay, |last| self.delays[last].1)
    }
}

impl Wires {
    pub(crate) fn new(spec: &Spec, key: (u64, u64)) -> Self {
        let wire = |(link, n)| WiredLink::new(link, n, &spec.custom_algorithms, key);
        let links = spec.links.iter().zip(0..).map(wire).collect();
        Self { links, outages: OutageSchedule::new(&spec.outages, |_any| true) }
    }

    /// Returns the number of packets waiting to be sent from an end.
    pub(crate) fn queue_len(&self, end: WireEnd) -> usize {
        self.links[end.link as usize].directions[usize::from(end.side)].queue.len()
    }

    /// Returns the number of packets that links have.
    pub(crate) fn held_packets(&self) -> usize {
        self.links.iter().flat_map(|link| &link.directions).map(LinkDirection::held_packets).sum()
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
            kernel.drop_at(DropLocation::Wire, direction.from, handle, DropReason::Policed);
            return;
        }
        let before = direction.queue.len();
        let mut owner = QueuedPackets::new(&kernel.packets);
        let enqueued = direction.queue.enqueue(kernel.now, (handle, class), &mut owner);
        let told = owner.into_report();
        kernel.record_queue_length(direction.from, before, direction.queue.len());
        kernel.check_custom_discipline(direction.from, &mut direction.queue);
        kernel.record_enqueue((DropLocation::Wire, direction.from), enqueued, told);
        self.start(kernel, end);
    }

    /// Handles the departure of the packet being sent.
    pub(crate) fn on_sent<T: Tracer>(&mut self, kernel: &mut Kernel<T>, end: WireEnd) {
        let link = &self.links[end.link as usize];
        let arrival = kernel.now + link.delay_at(kernel.now);
        let has_constant_delay = link.delays.is_empty();
        let direction = self.direction(end);
        if let Some(TransmittingPacket { handle, extra }) = direction.in_transmission.take() {
            let arrival = arrival + extra;
            if extra.is_zero() && has_constant_delay {
                direction.in_flight.push_back(handle);
            } else {
                direction.delayed.insert((arrival, direction.delayed_count), handle);
                direction.delayed_count += 1;
            }
            kernel.schedule(arrival, Event::WireArrived { end });
        }
        self.start(kernel, end);
    }

    /// Handles the arrival of a packet at the other end. Returns its sender and its place, unless it is lost.
    pub(crate) fn on_arrived<T: Tracer>(
        &mut self,
        kernel: &mut Kernel<T>,
        end: WireEnd,
    ) -> Option<WireArrival> {
        let now = kernel.now;
        let WiredLink { rate_bps, ref mut directions, .. } = self.links[end.link as usize];
        let to = directions[usize::from(1 - end.side)].from;
        let direction = &mut directions[usize::from(end.side)];
        let (handle, from) = (direction.next_arrival(now)?, direction.from);
        let len_bytes = kernel.packets.len(handle);
        let bits = 8 * u64::from(len_bytes);
        let rate_bps = direction.rate_trace.as_ref().map_or(rate_bps, |trace| trace.mean_bps());
        let lost =
            if direction.errors.corrupts(now, bits, Duration::of_bits(bits, rate_bps), &mut direction.stream)
            {
                Some(DropReason::LinkError)
            } else if !self.outages.is_empty() && self.outages.covers(now, from, to) {
                Some(DropReason::Outage)
            } else {
                None
            };
        if let Some(reason) = lost {
            kernel.drop_at(DropLocation::Wire, to, handle, reason);
            return None;
        }
        kernel.observe(ObservedEvent::WiredArrived, to, len_bytes);
        kernel.trace(to, |packets| TraceEvent::PacketReceived(packets.view(handle)));
        Some(WireArrival { handle, from, to, at: WireEnd { side: 1 - end.side, ..end } })
    }

    /// Handles the time at which a shaper releases the next packet.
    pub(crate) fn on_released<T: Tracer>(&mut self, kernel: &mut Kernel<T>, end: WireEnd) {
        if let Some(shaper) = &mut self.direction(end).shaper {
            shaper.on_release();
        }
        self.start(kernel, end);
    }

    /// Sends the next packet if the link is free and the shaper releases it.
    fn start<T: Tracer>(&mut self, kernel: &mut Kernel<T>, end: WireEnd) {
        let link = &mut self.links[end.link as usize];
        let rate_bps = link.rate_at(kernel.now);
        let to = link.directions[usize::from(1 - end.side)].from;
        let direction = &mut link.directions[usize::from(end.side)];
        if direction.in_transmission.is_some() {
            return;
        }
        match direction.release(kernel.now) {
            Release::Now => {}
            Release::At(release) => {
                kernel.schedule(release, Event::WireReleased { end });
                return;
            }
            Release::Scheduled => return,
        }
        let from = direction.from;
        let before = direction.queue.len();
        let mut owner = QueuedPackets::new(&kernel.packets);
        let next = direction.queue.dequeue(kernel.now, &mut owner);
        let told = owner.into_report();
        kernel.record_queue_length(from, before, direction.queue.len());
        kernel.check_custom_discipline(from, &mut direction.queue);
        kernel.apply_queue_report((DropLocation::Wire, from), told);
        let Some((handle, _)) = next else { return };
        let len_bytes = kernel.packets.len(handle);
        direction.charge_shaper(len_bytes);
        let bits = 8 * u64::from(len_bytes);
        let sent = match &direction.rate_trace {
            Some(trace) => trace.sent_at(kernel.now, bits),
            None => kernel.now + Duration::of_bits(bits, rate_bps),
        };
        let slot = direction.until_slot(sent);
        let extra = slot + direction.draw_jitter(sent + slot) + direction.draw_reordering_delay();
        direction.in_transmission = Some(TransmittingPacket { handle, extra });
        let delay = link.delay_at(sent);
        kernel.observe(ObservedEvent::WiredSent, from, len_bytes);
        kernel.trace(from, |packets| {
            let packet = packets.view(handle);
            TraceEvent::PacketSent { packet, to, arrives: sent + delay + extra }
        });
        kernel.schedule(sent, Event::WireSent { end });
    }

    fn direction(&mut self, end: WireEnd) -> &mut LinkDirection {
        &mut self.links[end.link as usize].directions[usize::from(end.side)]
    }
}

impl LinkDirection {
    /// Returns the number of packets that wait or are in flight.
    fn held_packets(&self) -> usize {
        let sending = usize::from(self.in_transmission.is_some());
        self.queue.len() + sending + self.in_flight.len() + self.delayed.len()
    }

    /// Returns whether the shaper lets the next packet leave the queue, if there is one.
    fn release(&mut self, now: Instant) -> Release {
        match &mut self.shaper {
            Some(shaper) if !self.queue.is_empty() => shaper.release(now),
            _ => Release::Now,
        }
    }

    fn charge_shaper(&mut self, len_bytes: u32) {
        if let Some(shaper) = &mut self.shaper {
            shaper.charge(len_bytes);
        }
    }

    /// Returns the packet that has arrived.
    fn next_arrival(&mut self, now: Instant) -> Option<Handle> {
        match self.delayed.first_entry() {
            Some(first) if first.key().0 <= now => Some(first.remove()),
            _ => self.in_flight.pop_front(),
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

    fn draw_reordering_delay(&mut self) -> Duration {
        let Some((late, stream)) = &mut self.reordering else { return Duration::ZERO };
        if stream.bernoulli(late.share) { late.extra_delay } else { Duration::ZERO }
    }
}

/// Packets take longer, each by itself, and keep their order.
#[derive(Debug)]
struct JitterProcess {
    up_to: Duration,
    stream: RandomStream,
    /// Time at which the last packet would have left had it taken no longer.
    latest: Instant,
}

impl JitterProcess {
    fn new(up_to: Duration, stream: impl FnOnce() -> RandomStream) -> Option<Self> {
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
