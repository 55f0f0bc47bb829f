//! The air and what is around it: frames in flight, and the radios of all nodes with their MACs and interface queues.
//!
//! A frame has one event for all its beginnings and one for all its ends, however many radios sense it. The event visits
//! the receivers in the order of their delay and sets the clock to the instant of each. It puts itself back into the queue
//! if another event is due before the next receiver. The order of events is that of one event for each receiver.
//!
//! The network layer hands packets down with [`Air::send`], and drains a station with [`Air::drain`] after
//! everything that may have moved it: what comes up is an [`StationEvent`].

mod arp;
mod collisions;
mod frame_losses;
mod losses;
mod medium;
mod recent_signals;
mod resolution;
mod station;
mod upward;

use crate::event::{AirEvent, Event};
use crate::fingerprint::ObservedEvent;
use crate::ids::StationId;
use crate::kernel::Kernel;
use crate::outage::OutageSchedule;
use crate::packet::Handle;
use crate::queue_access::{QueuedPacket, QueuedPackets};
use crate::spec::{self, OutageEffect, RadioInterface, RadioSpec, Spec};
use crate::trace::{DropLocation, DropReason, FrameLossReason, TraceEvent, Tracer};
use hopline_core::{Duration, Instant, LinkId, NodeId, StateMachine};
use hopline_radio::mac::config::Tap;
use hopline_radio::mac::{Airtime, Msdu, Reception, Signal, Transmission};
use hopline_radio::phy::reception::{Arrival, ReceptionResult, Thresholds};
use hopline_wire::dot11::{Frame, MacAddr};
use losses::LossProcesses;
use medium::{LinkState, Medium, Receiver};
use recent_signals::RecentSignals;
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
    first_station: Vec<u32>,
    /// Stations by number in their MAC addresses.
    by_address: Vec<Option<StationId>>,
    /// Losses between pairs of nodes.
    losses: LossProcesses,
    /// Schedule of the node pairs between which packets are not received, though their frames arrive.
    filters: OutageSchedule,
    /// Signals on the air; empty where no tracer is enabled.
    signals: RecentSignals,
}

/// Event that a station reports to the network layer.
#[derive(Clone, Copy, Debug)]
pub(crate) enum StationEvent {
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
pub(crate) enum HandDownResult {
    /// It waits for an address, for the link layer or for the MAC: nothing more happens now.
    Waiting,
    /// The MAC has time for it: the station is to be drained.
    Queued,
    /// Its next hop does not answer, and so for the packet that waited: both have failed.
    Failed { packet: QueuedPacket, held: Option<QueuedPacket> },
}

/// Progress of the end of a transmission.
#[derive(Clone, Copy, Debug)]
#[must_use]
pub(crate) enum LandingProgress {
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
        let outages = OutageSchedule::new(&spec.outages, |blocks| blocks == OutageEffect::Frames);
        Some(Self {
            medium: Medium::new(radio, &spec.nodes, &interfaces, outages, key),
            thresholds: Thresholds::by_rate(radio.phy.reception, &radio.phy.radio, radio.phy.sensitivity),
            link_layer_delay: radio.link_layer_delay,
            stations: interfaces
                .iter()
                .map(|at| Station::new(radio, at, tap(at.node), &spec.custom_algorithms, key))
                .collect(),
            interfaces,
            first_station: first,
            by_address,
            losses: LossProcesses::new(&radio.losses, key),
            filters: OutageSchedule::new(&spec.outages, |blocks| blocks == OutageEffect::Packets),
            signals: RecentSignals::default(),
        })
    }

    /// Returns the stations of a node.
    pub(crate) fn stations(&self, node: NodeId) -> impl Iterator<Item = StationId> + use<> {
        (self.first_station[node.index()]..self.first_station[node.index() + 1]).map(StationId)
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
    pub(crate) fn station_towards(&self, node: NodeId, neighbour: NodeId) -> Option<(StationId, MacAddr)> {
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
    pub(crate) fn send<T: Tracer>(
        &mut self,
        kernel: &mut Kernel<T>,
        at: StationId,
        queued: QueuedPacket,
    ) -> HandDownResult {
        match self.resolve(kernel, at, queued) {
            arp::Resolution::Known => self.send_through_link_layer(kernel, at, queued),
            arp::Resolution::Waiting => HandDownResult::Waiting,
            arp::Resolution::Requesting(request) => self.send_through_link_layer(kernel, at, request),
            arp::Resolution::Failed { waiting: held } => HandDownResult::Failed { packet: queued, held },
        }
    }

    /// Hands a packet with a known link-layer address to the interface, through the link layer.
    pub(crate) fn send_through_link_layer<T: Tracer>(
        &mut self,
        kernel: &mut Kernel<T>,
        at: StationId,
        queued: QueuedPacket,
    ) -> HandDownResult {
        if self.link_layer_delay.is_zero() {
            return self.enqueue(kernel, at, queued);
        }
        self.stations[at.index()].sending_delay.push_back(queued);
        kernel.schedule(kernel.now + self.link_layer_delay, Event::LinkLayerDown { station: at });
        HandDownResult::Waiting
    }

    /// Records that a packet has crossed the link layer downward.
    pub(crate) fn link_layer_down<T: Tracer>(
        &mut self,
        kernel: &mut Kernel<T>,
        at: StationId,
    ) -> HandDownResult {
        match self.stations[at.index()].sending_delay.pop_front() {
            Some(queued) => self.enqueue(kernel, at, queued),
            None => HandDownResult::Waiting,
        }
    }

    /// Records that a packet has crossed the link layer upward.
    pub(crate) fn link_layer_up<T: Tracer>(
        &mut self,
        kernel: &mut Kernel<T>,
        at: StationId,
    ) -> Option<StationEvent> {
        let (handle, from) = self.stations[at.index()].receiving_delay.pop_front()?;
        self.deliver_up(kernel, at, handle, from)
    }

    /// Returns the nodes that decode the frames of a station, were nothing else on the air now.
    pub(crate) fn in_range(&mut self, now: Instant, from: StationId) -> impl Iterator<Item = NodeId> {
        let heard = self.medium.in_range(now, from);
        heard.into_iter().map(|station| self.stations[station.index()].node)
    }

    /// Returns the power, in dBm, at which a node hears another one now, before anything is drawn for a
    /// frame: over the first radios that share a channel.
    pub(crate) fn signal_dbm(&mut self, now: Instant, from: NodeId, to: NodeId) -> Option<f64> {
        let (sender, address) = self.station_towards(from, to)?;
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
        kernel.record_queue_length(station.node, before, station.queue.len());
        purged
    }

    /// Returns the number of packets that stations and the air have.
    pub(crate) fn held_packets(&self) -> usize {
        self.medium.packets_in_air() + self.stations.iter().map(Station::held_packets).sum::<usize>()
    }

    /// Returns the number of packets in the interface queue of a station.
    pub(crate) fn queue_len(&self, at: StationId) -> usize {
        self.stations[at.index()].queue.len()
    }

    /// Returns the packets that wait at a station, each with its next hop.
    pub(crate) fn waiting_packets(&self, at: StationId) -> impl Iterator<Item = (Handle, Option<NodeId>)> {
        self.stations[at.index()].waiting_packets().map(|(handle, to)| (handle, self.node_of(to)))
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
    pub(crate) fn begin_transmission<T: Tracer>(
        &mut self,
        kernel: &mut Kernel<T>,
        flight: u32,
        mut next: u32,
    ) {
        let in_flight = self.medium.transmission(flight);
        while let Some(&heard) = in_flight.receivers.get(next as usize) {
            let at = in_flight.start + heard.delay;
            if at > kernel.now && !kernel.is_idle_until(at) {
                let event = Event::Air(AirEvent::TransmissionBegins { flight, next });
                return kernel.scheduler.schedule_as(in_flight.insertion_order, at, event);
            }
            let arrival = Arrival {
                id: flight,
                power_w: heard.power_w,
                end: in_flight.end + heard.delay,
                rate: in_flight.rate,
                bits: in_flight.bits,
            };
            let station = &mut self.stations[heard.station.index()];
            if let Some(until) = station.receiver.signal_begin(&self.thresholds, at, arrival) {
                station.mac.handle_signal(at, Signal::Captured { until });
            }
            station.report_carrier(at);
            kernel.now = at;
            kernel.events += 1;
            next += 1;
        }
    }

    /// Ends a transmission at its sender, which is to be drained before it goes on ending.
    pub(crate) fn end_at_sender(&mut self, now: Instant, sender: StationId) {
        let station = &mut self.stations[sender.index()];
        station.receiver.transmit_end();
        station.mac.handle_signal(now, Signal::TransmitEnd);
        station.report_carrier(now);
    }

    /// Handles a transmission that has ended at its sender, and begins to end at its receivers.
    pub(crate) fn begin_landing<T: Tracer>(&mut self, kernel: &mut Kernel<T>, flight: u32) {
        self.medium.set_end_order(flight, kernel.scheduler.reserve());
    }

    /// Ends a transmission at its receiver number `next`, if nothing else happens before.
    pub(crate) fn end_at_receivers<T: Tracer>(
        &mut self,
        kernel: &mut Kernel<T>,
        flight: u32,
        next: u32,
    ) -> LandingProgress {
        let in_flight = self.medium.transmission(flight);
        let Some(&heard) = in_flight.receivers.get(next as usize) else {
            self.medium.finish_transmission(flight);
            if let Some(&body) = self.medium.transmission(flight).frame.body() {
                // Without ACKs (IEEE Std 802.11-2020, 10.3.2.11) the sender has released it, and this was the
                // last copy.
                kernel.release(
                    DropLocation::Radio,
                    self.medium.transmission(flight).from,
                    body,
                    DropReason::LinkError,
                );
            }
            return LandingProgress::Over;
        };
        let at = in_flight.end + heard.delay;
        if at > kernel.now && !kernel.is_idle_until(at) {
            let event = Event::Air(AirEvent::TransmissionLands { flight, next });
            kernel.scheduler.schedule_as(in_flight.insertion_order, at, event);
            return LandingProgress::Later;
        }
        kernel.now = at;
        kernel.events += 1;
        self.end_at_receiver(kernel, flight, heard);
        LandingProgress::At(heard.station)
    }

    /// Handles the wake-up of a MAC. Returns whether there is something to drain.
    pub(crate) fn handle_timeout(&mut self, now: Instant, at: StationId) -> bool {
        let station = &mut self.stations[at.index()];
        let rings = station.alarm.is_due(now);
        if rings {
            station.mac.handle_timeout(now);
        }
        rings
    }

    /// Drains a station until it has something for the network layer: frames go into the air, the next packet comes from
    /// the queue. In the end its wake-up is armed.
    #[inline]
    pub(crate) fn drain<T: Tracer>(&mut self, kernel: &mut Kernel<T>, at: StationId) -> Option<StationEvent> {
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
    fn drain_mac<T: Tracer>(&mut self, kernel: &mut Kernel<T>, at: StationId) -> Option<StationEvent> {
        loop {
            let station = &mut self.stations[at.index()];
            if let Some(transmission) = station.mac.poll_transmit(kernel.now) {
                self.transmit(kernel, at, transmission);
            } else if let Some(event) = station.mac.poll_event() {
                let upcall = self.handle_mac_event(kernel, at, event);
                if upcall.is_some() {
                    return upcall;
                }
            } else if !(station.mac.is_ready() && self.feed_mac(kernel, at)) {
                return None;
            }
        }
    }

    fn end_at_receiver<T: Tracer>(&mut self, kernel: &mut Kernel<T>, flight: u32, heard: Receiver) {
        let Receiver { station: at, link, power_w, .. } = heard;
        let now = kernel.now;
        let in_flight = self.medium.transmission(flight);
        let station = &mut self.stations[at.index()];
        // Why the frame did not come through, as far as the air decides that.
        let (reception, lost) = match station.receiver.signal_end(&self.thresholds, now, flight) {
            verdict @ (ReceptionResult::NotLocked | ReceptionResult::Damaged) => {
                let decodable = power_w >= self.thresholds.min_power_w(in_flight.rate);
                if decodable && in_flight.frame.ra() == station.address {
                    collisions::count_collided(kernel, in_flight.from, &in_flight.frame);
                }
                let why =
                    if decodable { FrameLossReason::Collision } else { FrameLossReason::BelowSensitivity };
                ((verdict == ReceptionResult::Damaged).then_some(Reception::Errored), Some(why))
            }
            ReceptionResult::Decodable { probability } => {
                let (airtime, bits) = (in_flight.end - in_flight.start, u64::from(in_flight.bits));
                let stream = &mut station.error_stream;
                let lost = if !(probability >= 1.0 || stream.bernoulli(probability)) {
                    Some(FrameLossReason::Collision)
                } else if station.errors.corrupts(now, bits, airtime, stream)
                    || self.losses.corrupts(now, (in_flight.from, station.node), bits, airtime)
                {
                    Some(FrameLossReason::Errors)
                } else {
                    // The outage last: errors are drawn as without it.
                    (link == LinkState::Down).then_some(FrameLossReason::Outage)
                };
                let intact =
                    if lost.is_none() { Reception::Frame(in_flight.frame) } else { Reception::Errored };
                (Some(intact), lost)
            }
        };
        if let Some(reception) = reception {
            let what = match reception {
                Reception::Frame(_) => ObservedEvent::Decoded,
                Reception::Errored => ObservedEvent::Damaged,
            };
            kernel.observe(what, station.node, in_flight.bits);
            if T::ENABLED && what == ObservedEvent::Decoded {
                let frame = &in_flight.frame.map(|body| kernel.packets.view(body));
                let link = LinkId(u32::from(self.interfaces[at.index()].number));
                kernel.tracer.trace(now, station.node, TraceEvent::FrameReceived { link, frame });
            }
            station.mac.handle_packet(now, LinkId::ONLY, reception);
        }
        station.report_carrier(now);
        if T::ENABLED
            && let Some(why) = lost
        {
            self.trace_lost_frame(kernel, flight, heard, why);
        }
    }

    fn feed_mac<T: Tracer>(&mut self, kernel: &mut Kernel<T>, at: StationId) -> bool {
        let station = &mut self.stations[at.index()];
        let before = station.queue.len();
        let mut owner = QueuedPackets::new(&kernel.packets);
        let queued = station.queue.dequeue(kernel.now, &mut owner);
        let told = owner.into_report();
        kernel.record_queue_length(station.node, before, station.queue.len());
        kernel.check_custom_discipline(station.node, &mut station.queue);
        kernel.apply_queue_report((DropLocation::Radio, station.node), told);
        let Some(queued) = queued else { return false };
        let len_bytes = kernel.packets.len(queued.handle);
        station.mac.send(kernel.now, Msdu { body: queued.handle, len_bytes, to: queued.to });
        true
    }

    fn enqueue<T: Tracer>(
        &mut self,
        kernel: &mut Kernel<T>,
        at: StationId,
        queued: QueuedPacket,
    ) -> HandDownResult {
        let station = &mut self.stations[at.index()];
        let before = station.queue.len();
        let mut owner = QueuedPackets::new(&kernel.packets);
        let enqueued = station.queue.enqueue(kernel.now, queued, &mut owner);
        let told = owner.into_report();
        kernel.record_queue_length(station.node, before, station.queue.len());
        kernel.check_custom_discipline(station.node, &mut station.queue);
        kernel.record_enqueue((DropLocation::Radio, station.node), enqueued, told);
        if station.mac.is_ready() { HandDownResult::Queued } else { HandDownResult::Waiting }
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
        let frames = &mut kernel.counters[station.node.index()].frames;
        let (what, count) = match frame {
            Frame::Rts { .. } => (ObservedEvent::TransmitRts, &mut frames.rts),
            Frame::Cts { .. } => (ObservedEvent::TransmitCts, &mut frames.cts),
            Frame::Ack { .. } => (ObservedEvent::TransmitAck, &mut frames.ack),
            Frame::Data { body, .. } | Frame::QosData { body, .. } => {
                kernel.packets.retain(body);
                (ObservedEvent::TransmitData, &mut frames.data)
            }
            Frame::BlockAckReq { .. } => (ObservedEvent::TransmitBlockAckReq, &mut frames.block_ack_req),
            Frame::BlockAck { .. } => (ObservedEvent::TransmitBlockAck, &mut frames.block_ack),
            Frame::Action { .. } => (ObservedEvent::TransmitAction, &mut frames.action),
        };
        *count += 1;
        collisions::count_sent(kernel, station.node, &frame);
        kernel.observe(what, station.node, len_bytes);
        if T::ENABLED {
            let frame = &frame.map(|body| kernel.packets.view(body));
            let link = LinkId(u32::from(self.interfaces[at.index()].number));
            kernel.tracer.trace(now, station.node, TraceEvent::FrameSent { link, frame, airtime });
        }
        station.receiver.transmit_begin();
        station.report_carrier(now);
        let order = kernel.scheduler.reserve();
        let flight = self.medium.start_transmission(now, at, frame, (rate, 8 * len_bytes), airtime, order);
        if T::ENABLED {
            self.signals.on_transmission(now, at, self.medium.transmission(flight));
        }
        if let Some(first) = self.medium.transmission(flight).receivers.first() {
            let event = Event::Air(AirEvent::TransmissionBegins { flight, next: 0 });
            kernel.scheduler.schedule_as(order, now + first.delay, event);
        }
        kernel.schedule(now + airtime, Event::Air(AirEvent::TransmissionEnds { flight, sender: at }));
    }
}
