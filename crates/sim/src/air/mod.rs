//! The air and what is around it: frames in flight, and the radios of all nodes with their MACs and interface queues.
//!
//! A frame has one event for all its beginnings and one for all its ends, however many radios sense it. The event visits
//! the receivers in the order of their delay and sets the clock to the instant of each. It puts itself back into the queue
//! if another event is due before the next receiver. The order of events is that of one event for each receiver.
//!
//! The network layer hands packets down with [`Air::send`], and drains a station with [`Air::drain`] after
//! everything that may have moved it: what comes up is an [`Upcall`].

mod arp;
mod collisions;
mod frame_losses;
mod losses;
mod medium;
mod resolution;
mod signals;
mod station;

use crate::event::{AirEvent, Event};
use crate::fingerprint::Observed;
use crate::ids::StationId;
use crate::kernel::Kernel;
use crate::outage::Schedule;
use crate::packet::Handle;
use crate::queueing::{Owner, Queued};
use crate::spec::{self, Blocks, RadioInterface, RadioSpec, Spec};
use crate::trace::{DropReason, FrameLoss, Place, TraceEvent, Tracer};
use hopline_core::{Duration, Instant, LinkId, Machine, NodeId};
use hopline_radio::mac::config::Tap;
use hopline_radio::mac::{self, Airtime, Msdu, Reception, Signal, Transmission};
use hopline_radio::phy::reception::{Arrival, Thresholds, Verdict};
use hopline_wire::dot11::{Frame, MacAddr};
use losses::Losses;
use medium::{Heard, Link, Medium};
use signals::Signals;
use station::Station;

/// The radios and the medium that they share.
#[derive(Debug)]
pub(crate) struct Air {
    medium: Medium,
    thresholds: Thresholds,
    link_layer_delay: Duration,
    stations: Vec<Station>,
    /// The radios of the network as they were asked for, by station.
    interfaces: Vec<RadioInterface>,
    /// First station of each node, by node, and one entry more.
    first: Vec<u32>,
    /// Stations by number in their MAC addresses.
    by_address: Vec<Option<StationId>>,
    /// Losses between pairs of nodes.
    losses: Losses,
    /// Schedule of the node pairs between which packets are not received, though their frames arrive.
    filters: Schedule,
    /// Signals on the air; empty where no tracer is enabled.
    signals: Signals,
}

/// Event that a station reports to the network layer.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Upcall {
    /// A packet for this node, or to be passed on, from a neighbour's station. The hold on it passes on.
    Arrived { handle: Handle, from: NodeId },
    /// A packet from one neighbour to another was decoded. There is no hold on it.
    Overheard { handle: Handle, from: NodeId, to: NodeId },
    /// The MAC gave up on a packet for a neighbour, or for a group. The hold on it passes on.
    Failed { handle: Handle, to: Option<NodeId> },
}

/// Progress of a packet that was handed down.
#[derive(Clone, Copy, Debug)]
#[must_use]
pub(crate) enum Sent {
    /// It waits for an address, for the link layer or for the MAC: nothing more happens now.
    Waits,
    /// The MAC has time for it: the station is to be drained.
    Queued,
    /// Its next hop does not answer, and so for the packet that waited: both have failed.
    Failed { packet: Queued, held: Option<Queued> },
}

/// Progress of the end of a transmission.
#[derive(Clone, Copy, Debug)]
#[must_use]
pub(crate) enum Landing {
    /// It has ended at a station, which is to be drained; then go on with the next.
    At(StationId),
    /// Something else happens before it ends at the next: it goes on by itself.
    Later,
    /// It has ended everywhere.
    Over,
}

impl Air {
    /// Returns the radios of `spec`, if it has any. `tap` selects the nodes at which the MAC reports frames
    /// for other stations.
    pub(crate) fn new(spec: &Spec, tap: impl Fn(NodeId) -> Tap, key: (u64, u64)) -> Option<Self> {
        let radio: &RadioSpec = spec.radio.as_ref()?;
        let interfaces = spec::radios(&spec.nodes);
        let mut first: Vec<u32> = (0..)
            .map(NodeId)
            .zip(&spec.nodes)
            .map(|(id, _)| interfaces.partition_point(|radio| radio.node < id) as u32)
            .collect();
        first.push(interfaces.len() as u32);
        let mut by_address = vec![None; spec.nodes.len() + interfaces.len()];
        for (station, radio) in (0..).map(StationId).zip(&interfaces) {
            if let Some(number) = radio.address.node() {
                by_address[number.index()] = Some(station);
            }
        }
        let outages = Schedule::new(&spec.outages, |blocks| blocks == Blocks::Frames);
        Some(Self {
            medium: Medium::new(radio, &spec.nodes, &interfaces, outages, key),
            thresholds: Thresholds::by_rate(radio.phy.reception, &radio.phy.radio, radio.phy.sensitivity),
            link_layer_delay: radio.link_layer_delay,
            stations: interfaces
                .iter()
                .map(|at| Station::new(radio, at, tap(at.node), &spec.machines, key))
                .collect(),
            interfaces,
            first,
            by_address,
            losses: Losses::new(&radio.losses, key),
            filters: Schedule::new(&spec.outages, |blocks| blocks == Blocks::Packets),
            signals: Signals::default(),
        })
    }

    /// Returns the stations of a node.
    pub(crate) fn stations(&self, node: NodeId) -> impl Iterator<Item = StationId> + use<> {
        (self.first[node.index()]..self.first[node.index() + 1]).map(StationId)
    }

    pub(crate) fn node(&self, station: StationId) -> NodeId {
        self.stations[station.index()].node
    }

    /// Returns the number of a station's interface at its node.
    pub(crate) fn link(&self, station: StationId) -> LinkId {
        LinkId(u32::from(self.interfaces[station.index()].number))
    }

    /// Returns the station of `node` that leads to `neighbour`, and the neighbour's address there: the first
    /// that share a channel.
    pub(crate) fn towards(&self, node: NodeId, neighbour: NodeId) -> Option<(StationId, MacAddr)> {
        let channel = |station: StationId| self.interfaces[station.index()].channel;
        self.stations(node).find_map(|own| {
            let other = self.stations(neighbour).find(|&other| channel(other) == channel(own))?;
            Some((own, self.interfaces[other.index()].address))
        })
    }

    /// Returns the node with the radio of this address.
    pub(crate) fn node_of(&self, address: MacAddr) -> Option<NodeId> {
        let station = *self.by_address.get(address.node()?.index())?;
        station.map(|station| self.node(station))
    }

    /// Hands a packet down to a station, as soon as the address that it is for is known.
    pub(crate) fn send<T: Tracer>(&mut self, kernel: &mut Kernel<T>, at: StationId, queued: Queued) -> Sent {
        match self.resolve(kernel, at, queued) {
            arp::Resolved::Known => self.descend(kernel, at, queued),
            arp::Resolved::Waits => Sent::Waits,
            arp::Resolved::Asks(request) => self.descend(kernel, at, request),
            arp::Resolved::Failed { held } => Sent::Failed { packet: queued, held },
        }
    }

    /// Hands a packet with a known link-layer address to the interface, through the link layer.
    pub(crate) fn descend<T: Tracer>(
        &mut self,
        kernel: &mut Kernel<T>,
        at: StationId,
        queued: Queued,
    ) -> Sent {
        if self.link_layer_delay.is_zero() {
            return self.enqueue(kernel, at, queued);
        }
        self.stations[at.index()].down.push_back(queued);
        kernel.schedule(kernel.now + self.link_layer_delay, Event::LinkLayerDown { station: at });
        Sent::Waits
    }

    /// Records that a packet has crossed the link layer downward.
    pub(crate) fn link_layer_down<T: Tracer>(&mut self, kernel: &mut Kernel<T>, at: StationId) -> Sent {
        match self.stations[at.index()].down.pop_front() {
            Some(queued) => self.enqueue(kernel, at, queued),
            None => Sent::Waits,
        }
    }

    /// Records that a packet has crossed the link layer upward.
    pub(crate) fn link_layer_up<T: Tracer>(
        &mut self,
        kernel: &mut Kernel<T>,
        at: StationId,
    ) -> Option<Upcall> {
        let (handle, from) = self.stations[at.index()].up.pop_front()?;
        self.arrive(kernel, at, handle, from)
    }

    /// Returns the nodes that decode the frames of a station, were nothing else on the air now.
    pub(crate) fn in_range(&mut self, now: Instant, from: StationId) -> impl Iterator<Item = NodeId> {
        let heard = self.medium.in_range(now, from);
        heard.into_iter().map(|station| self.stations[station.index()].node)
    }

    /// Returns the power, in dBm, at which a node hears another one now, before anything is drawn for a
    /// frame: over the first radios that share a channel.
    pub(crate) fn signal_dbm(&mut self, now: Instant, from: NodeId, to: NodeId) -> Option<f64> {
        let (sender, address) = self.towards(from, to)?;
        let receiver = self.by_address[address.node()?.index()]?;
        let power_w = self.medium.power_w(now, sender, receiver)?;
        Some(10.0 * libm::log10(power_w) + 30.0)
    }

    /// Takes the packets for `next_hop` out of the queue of a station.
    pub(crate) fn purge_queue<T: Tracer>(
        &mut self,
        kernel: &mut Kernel<T>,
        at: StationId,
        next_hop: MacAddr,
    ) -> Vec<Handle> {
        let mut purged = Vec::new();
        let station = &mut self.stations[at.index()];
        let before = station.queue.len();
        station.queue.remove_matching(
            kernel.now,
            |q| q.to == next_hop,
            |q| purged.push(q.handle),
            |q| kernel.packets.len(q.handle),
        );
        kernel.note_waiting(station.node, before, station.queue.len());
        purged
    }

    /// Returns the number of packets that stations and the air have.
    pub(crate) fn held(&self) -> usize {
        self.medium.held() + self.stations.iter().map(Station::held).sum::<usize>()
    }

    /// Returns the number of packets in the interface queue of a station.
    pub(crate) fn queue_len(&self, at: StationId) -> usize {
        self.stations[at.index()].queue.len()
    }

    /// Returns the packets that wait at a station, each with its next hop.
    pub(crate) fn waiting(&self, at: StationId) -> impl Iterator<Item = (Handle, Option<NodeId>)> {
        self.stations[at.index()].waiting().map(|(handle, to)| (handle, self.node_of(to)))
    }

    /// Returns the time that a radio has spent in each state so far.
    pub(crate) fn airtime(&self, now: Instant, at: StationId) -> Airtime {
        self.stations[at.index()].mac.airtime(now)
    }

    /// Counts radio time anew.
    pub(crate) fn restart_airtime(&mut self, now: Instant) {
        for station in &mut self.stations {
            station.mac.restart_airtime(now);
        }
    }

    /// Begins a transmission at its receivers from number `next` on, one after the other as long as nothing
    /// else happens in between.
    pub(crate) fn flight_begins<T: Tracer>(&mut self, kernel: &mut Kernel<T>, flight: u32, mut next: u32) {
        let in_flight = self.medium.flight(flight);
        while let Some(&heard) = in_flight.heard.get(next as usize) {
            let at = in_flight.start + heard.delay;
            if at > kernel.now && !kernel.nothing_until(at) {
                let event = Event::Air(AirEvent::FlightBegins { flight, next });
                return kernel.scheduler.schedule_as(in_flight.order, at, event);
            }
            let arrival = Arrival {
                id: flight,
                power_w: heard.power_w,
                end: in_flight.end + heard.delay,
                rate: in_flight.rate,
                bits: in_flight.bits,
            };
            let station = &mut self.stations[heard.station.index()];
            if let Some(until) = station.receiver.begin(&self.thresholds, at, arrival) {
                station.mac.handle_signal(at, Signal::Masked { until });
            }
            station.report_carrier(at);
            kernel.now = at;
            kernel.events += 1;
            next += 1;
        }
    }

    /// Ends a transmission at its sender, which is to be drained before it goes on ending.
    pub(crate) fn flight_ends(&mut self, now: Instant, sender: StationId) {
        let station = &mut self.stations[sender.index()];
        station.receiver.transmit_end();
        station.mac.handle_signal(now, Signal::TransmitEnd);
        station.report_carrier(now);
    }

    /// Handles a transmission that has ended at its sender, and begins to end at its receivers.
    pub(crate) fn flight_leaves<T: Tracer>(&mut self, kernel: &mut Kernel<T>, flight: u32) {
        self.medium.end(flight, kernel.scheduler.reserve());
    }

    /// Ends a transmission at its receiver number `next`, if nothing else happens before.
    pub(crate) fn land<T: Tracer>(&mut self, kernel: &mut Kernel<T>, flight: u32, next: u32) -> Landing {
        let in_flight = self.medium.flight(flight);
        let Some(&heard) = in_flight.heard.get(next as usize) else {
            self.medium.land(flight);
            if let Some(&body) = self.medium.flight(flight).frame.body() {
                // Without ACKs (IEEE Std 802.11-2020, 10.3.2.11) the sender has released it, and this was the
                // last copy.
                kernel.let_go(Place::Radio, self.medium.flight(flight).from, body, DropReason::LinkError);
            }
            return Landing::Over;
        };
        let at = in_flight.end + heard.delay;
        if at > kernel.now && !kernel.nothing_until(at) {
            let event = Event::Air(AirEvent::FlightLands { flight, next });
            kernel.scheduler.schedule_as(in_flight.order, at, event);
            return Landing::Later;
        }
        kernel.now = at;
        kernel.events += 1;
        self.land_at(kernel, flight, heard);
        Landing::At(heard.station)
    }

    /// Handles the wake-up of a MAC. Returns whether there is something to drain.
    pub(crate) fn wake(&mut self, now: Instant, at: StationId) -> bool {
        let station = &mut self.stations[at.index()];
        let rings = station.alarm.rings(now);
        if rings {
            station.mac.handle_timeout(now);
        }
        rings
    }

    /// Drains a station until it has something for the network layer: frames go into the air, the next packet comes from
    /// the queue. In the end its wake-up is armed.
    #[inline]
    pub(crate) fn drain<T: Tracer>(&mut self, kernel: &mut Kernel<T>, at: StationId) -> Option<Upcall> {
        let station = &mut self.stations[at.index()];
        // Most stations only overhear, and have nothing to say.
        if !station.mac.is_drained() || (station.mac.is_ready() && !station.queue.is_empty()) {
            let upcall = self.drain_mac(kernel, at);
            if upcall.is_some() {
                return upcall;
            }
        }
        let station = &mut self.stations[at.index()];
        let wanted = station.mac.poll_timeout().map(|(at, _)| at);
        station.alarm.set(
            kernel.now,
            wanted,
            &mut kernel.scheduler,
            Event::Air(AirEvent::Mac { station: at }),
        );
        None
    }

    #[inline(never)] // Keeps its large frame off the path that most receptions take.
    fn drain_mac<T: Tracer>(&mut self, kernel: &mut Kernel<T>, at: StationId) -> Option<Upcall> {
        loop {
            let station = &mut self.stations[at.index()];
            if let Some(transmission) = station.mac.poll_transmit(kernel.now) {
                self.transmit(kernel, at, transmission);
            } else if let Some(event) = station.mac.poll_event() {
                let upcall = self.take_event(kernel, at, event);
                if upcall.is_some() {
                    return upcall;
                }
            } else if !(station.mac.is_ready() && self.feed_mac(kernel, at)) {
                return None;
            }
        }
    }

    fn land_at<T: Tracer>(&mut self, kernel: &mut Kernel<T>, flight: u32, heard: Heard) {
        let Heard { station: at, link, power_w, .. } = heard;
        let now = kernel.now;
        let in_flight = self.medium.flight(flight);
        let station = &mut self.stations[at.index()];
        // Why the frame did not come through, as far as the air decides that.
        let (reception, lost) = match station.receiver.end(&self.thresholds, now, flight) {
            verdict @ (Verdict::Missed | Verdict::Damaged) => {
                let decodable = power_w >= self.thresholds.weakest_w(in_flight.rate);
                if decodable && in_flight.frame.ra() == station.address {
                    collisions::note_collided(kernel, in_flight.from, &in_flight.frame);
                }
                let why = if decodable { FrameLoss::Collision } else { FrameLoss::Weak };
                ((verdict == Verdict::Damaged).then_some(Reception::Undecodable), Some(why))
            }
            Verdict::Decodable { probability } => {
                let (airtime, bits) = (in_flight.end - in_flight.start, u64::from(in_flight.bits));
                let stream = &mut station.error_stream;
                let lost = if !(probability >= 1.0 || stream.bernoulli(probability)) {
                    Some(FrameLoss::Collision)
                } else if station.errors.corrupts(now, bits, airtime, stream)
                    || self.losses.corrupts(now, (in_flight.from, station.node), bits, airtime)
                {
                    Some(FrameLoss::Errors)
                } else {
                    // The outage last: errors are drawn as without it.
                    (link == Link::Down).then_some(FrameLoss::Outage)
                };
                let intact =
                    if lost.is_none() { Reception::Frame(in_flight.frame) } else { Reception::Undecodable };
                (Some(intact), lost)
            }
        };
        if let Some(reception) = reception {
            let what = match reception {
                Reception::Frame(_) => Observed::Decoded,
                Reception::Undecodable => Observed::Damaged,
            };
            kernel.observe(what, station.node, in_flight.bits);
            if T::ENABLED && what == Observed::Decoded {
                let frame = &in_flight.frame.map(|body| kernel.packets.view(body));
                let link = LinkId(u32::from(self.interfaces[at.index()].number));
                kernel.tracer.note(now, station.node, TraceEvent::FrameReceived { link, frame });
            }
            station.mac.handle_packet(now, LinkId::ONLY, reception);
        }
        station.report_carrier(now);
        if T::ENABLED
            && let Some(why) = lost
        {
            self.tell_lost(kernel, flight, heard, why);
        }
    }

    fn feed_mac<T: Tracer>(&mut self, kernel: &mut Kernel<T>, at: StationId) -> bool {
        let station = &mut self.stations[at.index()];
        let before = station.queue.len();
        let mut owner = Owner::new(&kernel.packets);
        let queued = station.queue.dequeue(kernel.now, &mut owner);
        let told = owner.told();
        kernel.note_waiting(station.node, before, station.queue.len());
        kernel.note_own(station.node, &mut station.queue);
        kernel.note_told((Place::Radio, station.node), told);
        let Some(queued) = queued else { return false };
        let len_bytes = kernel.packets.len(queued.handle);
        station.mac.send(kernel.now, Msdu { body: queued.handle, len_bytes, to: queued.to });
        true
    }

    fn enqueue<T: Tracer>(&mut self, kernel: &mut Kernel<T>, at: StationId, queued: Queued) -> Sent {
        let station = &mut self.stations[at.index()];
        let before = station.queue.len();
        let mut owner = Owner::new(&kernel.packets);
        let enqueued = station.queue.enqueue(kernel.now, queued, &mut owner);
        let told = owner.told();
        kernel.note_waiting(station.node, before, station.queue.len());
        kernel.note_own(station.node, &mut station.queue);
        kernel.note_enqueued((Place::Radio, station.node), enqueued, told);
        if station.mac.is_ready() { Sent::Queued } else { Sent::Waits }
    }

    fn transmit<T: Tracer>(
        &mut self,
        kernel: &mut Kernel<T>,
        at: StationId,
        transmission: Transmission<Handle>,
    ) {
        let Transmission { frame, rate, len_bytes, airtime } = transmission;
        let now = kernel.now;
        let station = &mut self.stations[at.index()];
        let frames = &mut kernel.ledger[station.node.index()].frames;
        let (what, count) = match frame {
            Frame::Rts { .. } => (Observed::TransmitRts, &mut frames.rts),
            Frame::Cts { .. } => (Observed::TransmitCts, &mut frames.cts),
            Frame::Ack { .. } => (Observed::TransmitAck, &mut frames.ack),
            Frame::Data { body, .. } | Frame::QosData { body, .. } => {
                kernel.packets.retain(body);
                (Observed::TransmitData, &mut frames.data)
            }
            Frame::BlockAckReq { .. } => (Observed::TransmitBlockAckReq, &mut frames.block_ack_req),
            Frame::BlockAck { .. } => (Observed::TransmitBlockAck, &mut frames.block_ack),
            Frame::Action { .. } => (Observed::TransmitAction, &mut frames.action),
        };
        *count += 1;
        collisions::note_sent(kernel, station.node, &frame);
        kernel.observe(what, station.node, len_bytes);
        if T::ENABLED {
            let frame = &frame.map(|body| kernel.packets.view(body));
            let link = LinkId(u32::from(self.interfaces[at.index()].number));
            kernel.tracer.note(now, station.node, TraceEvent::FrameSent { link, frame, airtime });
        }
        station.receiver.transmit_begin();
        station.report_carrier(now);
        let order = kernel.scheduler.reserve();
        let flight = self.medium.launch(now, at, frame, (rate, 8 * len_bytes), airtime, order);
        if T::ENABLED {
            self.signals.launched(now, at, self.medium.flight(flight));
        }
        if let Some(first) = self.medium.flight(flight).heard.first() {
            let event = Event::Air(AirEvent::FlightBegins { flight, next: 0 });
            kernel.scheduler.schedule_as(order, now + first.delay, event);
        }
        kernel.schedule(now + airtime, Event::Air(AirEvent::FlightEnds { flight, sender: at }));
    }

    fn take_event<T: Tracer>(
        &mut self,
        kernel: &mut Kernel<T>,
        at: StationId,
        event: mac::Event<Handle>,
    ) -> Option<Upcall> {
        match event {
            mac::Event::Deliver { body, from, .. } => {
                kernel.packets.retain(body);
                self.ascend(kernel, at, body, from)
            }
            mac::Event::Held { body } => {
                kernel.packets.retain(body);
                None
            }
            mac::Event::DeliverHeld { body, from } => self.ascend(kernel, at, body, from),
            mac::Event::Sent(msdu) => {
                kernel.packets.release(msdu.body);
                None
            }
            mac::Event::Failed(msdu) => Some(Upcall::Failed { handle: msdu.body, to: self.node_of(msdu.to) }),
            mac::Event::Overheard { body, from, to } => self.overhear(kernel.now, at, body, (from, to)),
        }
    }

    /// Hands a packet upward, through the link layer, and with it the share that was taken in it.
    fn ascend<T: Tracer>(
        &mut self,
        kernel: &mut Kernel<T>,
        at: StationId,
        handle: Handle,
        from: MacAddr,
    ) -> Option<Upcall> {
        if self.link_layer_delay.is_zero() {
            return self.arrive(kernel, at, handle, from);
        }
        self.stations[at.index()].up.push_back((handle, from));
        kernel.schedule(kernel.now + self.link_layer_delay, Event::LinkLayerUp { station: at });
        None
    }

    /// Hands a packet from the link layer of a station to the network layer.
    fn arrive<T: Tracer>(
        &mut self,
        kernel: &mut Kernel<T>,
        at: StationId,
        handle: Handle,
        from: MacAddr,
    ) -> Option<Upcall> {
        let node = self.node(at);
        let Some(from) = self.node_of(from) else {
            kernel.packets.release(handle);
            return None;
        };
        if self.is_filtered(kernel.now, from, node) {
            kernel.drop_at(Place::Radio, node, handle, DropReason::Outage);
            return None;
        }
        Some(Upcall::Arrived { handle, from })
    }

    fn overhear(
        &self,
        now: Instant,
        at: StationId,
        handle: Handle,
        (from, to): (MacAddr, MacAddr),
    ) -> Option<Upcall> {
        let (from, to) = (self.node_of(from)?, self.node_of(to)?);
        let heard = !self.is_filtered(now, from, self.node(at));
        heard.then_some(Upcall::Overheard { handle, from, to })
    }

    fn is_filtered(&self, now: Instant, from: NodeId, to: NodeId) -> bool {
        !self.filters.is_empty() && self.filters.covers(now, from, to)
    }
}
