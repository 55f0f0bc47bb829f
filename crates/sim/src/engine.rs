//! The engine of a [world](crate::World): all parts of a run, and the loop that drives them.
//!
//! The parts (air, wires, nodes, flows) know the [kernel](crate::kernel) and not each other. What one of them
//! has for another goes through the engine: `stack.rs` is the path of a packet through a node.

use crate::air::{Air, LandingProgress};
use crate::custom::Failure;
use crate::ethernet::Taps;
use crate::event::{AirEvent, Event};
use crate::external::Egress;
use crate::flow::{Flows, InFlight};
use crate::forwarding::Forwarding;
use crate::ids::Interface;
use crate::kernel::Kernel;
use crate::middlebox_slot::MiddleboxSlot;
use crate::neighborhood::{NoticeDelivery, OBSERVATION_INTERVAL};
use crate::node::{self, Node};
use crate::notice_flood::NoticeFlood;
use crate::outcome::{Handoffs, MiddleboxCounts, NodeOutcome, NoticeCounts, Outcome};
use crate::packet::PacketAccount;
use crate::proxy::middleboxes;
use crate::route_notification::RouteNotifier;
use crate::spec::{PowerDraw, RoutingSpec, Spec};
use crate::trace::Tracer;
use crate::wired::Wires;
use hopline_core::{Duration, Instant, NodeId};
use hopline_radio::mac::Airtime;
use hopline_radio::mac::config::Tap;
use std::collections::VecDeque;

/// Time between two samples of a flow's state.
const SAMPLE_INTERVAL: Duration = Duration::from_secs(1);

/// A network in the middle of a run. A tracer that is not [enabled](Tracer::ENABLED) costs nothing: its calls
/// vanish when the engine is compiled.
#[derive(Debug)]
pub(crate) struct Engine<T> {
    pub(crate) kernel: Kernel<T>,
    pub(crate) air: Option<Air>,
    pub(crate) wires: Wires,
    pub(crate) nodes: Vec<Node>,
    pub(crate) forwarding: Forwarding,
    pub(crate) flows: Flows,
    /// Notifier of route failures, if endpoints are notified at all.
    pub(crate) notifier: Option<Box<RouteNotifier>>,
    pub(crate) floods: Vec<NoticeFlood>,
    /// Deliveries of the notices of each node, by node.
    pub(crate) deliveries: Vec<NoticeDelivery>,
    /// Packets from outside that have come to where they were to go.
    pub(crate) egress: VecDeque<Egress>,
    /// Nodes at which Ethernet frames come in and leave.
    pub(crate) taps: Taps,
    warmup: Duration,
    /// Power that radios draw.
    power_draw: PowerDraw,
}

impl<T: Tracer> Engine<T> {
    /// Builds the network of `spec` for run number `run`, at time zero.
    pub(crate) fn new(spec: &Spec, run: u64, tracer: T) -> Self {
        let key = (spec.seed, run);
        let forwarding = Forwarding::new(spec);
        let mut world = Self {
            kernel: Kernel::new(spec.nodes.len(), spec.extra_header_bytes, tracer),
            air: Air::new(spec, |node| mac_tap(spec, node), key),
            wires: Wires::new(spec, key),
            nodes: node::nodes(spec, run, |node| middleboxes(spec, node, key)),
            flows: Flows::new(spec, key),
            notifier: RouteNotifier::new(spec, &forwarding),
            forwarding,
            floods: spec.notice_flood_attackers.iter().copied().map(NoticeFlood::new).collect(),
            deliveries: spec.nodes.iter().map(|_| NoticeDelivery::default()).collect(),
            egress: VecDeque::new(),
            taps: Taps::new(&spec.ethernet_taps),
            warmup: spec.warmup,
            power_draw: spec.radio.as_ref().map_or_else(PowerDraw::default, |radio| radio.power_draw),
        };
        world.kernel.drop_watchers = drop_watchers(spec, &world.nodes);
        world.schedule_initial_events(spec);
        for node in (0..spec.nodes.len() as u32).map(NodeId) {
            world.process_agent_outputs(node);
            world.process_middleboxes(node);
            world.process_role_outputs(node);
        }
        world
    }

    /// Returns the current virtual time.
    pub(crate) const fn now(&self) -> Instant {
        self.kernel.now
    }

    /// Events processed so far.
    pub(crate) const fn events(&self) -> u64 {
        self.kernel.events
    }

    /// Returns the number of packets that exist now: queued, in service, in the air, on a wire, or waiting
    /// for a route. Copies of one packet count once.
    pub(crate) fn packets(&self) -> usize {
        self.kernel.packets.live()
    }

    /// Returns the failure of a user-defined algorithm, at which the run has ended.
    pub(crate) fn failure(&self) -> Option<&Failure> {
        self.kernel.failure.as_deref()
    }

    /// Processes everything up to and including `until`, or up to the [failure](Self::failure) of a machine.
    #[inline(never)] // As `Scheduler::pop`.
    pub(crate) fn run_until(&mut self, until: Instant) {
        if self.kernel.failure.is_some() {
            return;
        }
        self.kernel.processed_until = until;
        // A failure takes the horizon back.
        while self.kernel.scheduler.next_at() <= self.kernel.processed_until {
            if let Some((at, event)) = self.kernel.scheduler.pop() {
                self.kernel.now = at;
                // A transmission counts at each receiver, in however many steps it gets to them.
                if !matches!(
                    event,
                    Event::Air(AirEvent::TransmissionBegins { .. } | AirEvent::TransmissionLands { .. })
                ) {
                    self.kernel.events += 1;
                }
                self.process(event);
            }
        }
        if self.kernel.failure.is_none() {
            self.kernel.now = until.max(self.kernel.now);
        }
    }

    /// Ends the run, and returns the outcome and the tracer.
    pub(crate) fn finish(mut self) -> (Outcome, T) {
        self.check_packet_conservation();
        let now = self.kernel.now;
        let held = self.packets_in_flight();
        let nodes = (0..self.nodes.len() as u32).map(|node| self.node_outcome(NodeId(node))).collect();
        let outcome = Outcome {
            fingerprint: self.kernel.fingerprint.value(),
            sim_time: now.since(Instant::ZERO),
            warmup: self.warmup,
            events: self.kernel.events,
            flows: self.flows.outcomes(now, &held),
            nodes,
        };
        (outcome, self.kernel.tracer)
    }

    fn schedule_initial_events(&mut self, spec: &Spec) {
        let kernel = &mut self.kernel;
        // First of all that happens at its moment: a flow that starts then counts whole.
        if !spec.warmup.is_zero() {
            kernel.schedule(Instant::ZERO + spec.warmup, Event::WarmupEnd);
        }
        for (flow, spec) in (0..).zip(&spec.flows) {
            kernel.schedule(spec.start, Event::FlowStart { flow });
            if spec.stop != Instant::FAR_FUTURE {
                kernel.schedule(spec.stop, Event::FlowStop { flow });
            }
        }
        for (flood, spec) in (0..).zip(&spec.notice_flood_attackers) {
            kernel.schedule(spec.start, Event::NoticeFlood { flood });
        }
        kernel.schedule(Instant::ZERO + SAMPLE_INTERVAL, Event::Sample);
        if self.nodes.iter().any(Node::is_observed) {
            kernel.scheduler.schedule_last(Instant::ZERO + OBSERVATION_INTERVAL, Event::Observe);
        }
    }

    fn node_outcome(&mut self, node: NodeId) -> NodeOutcome {
        let now = self.kernel.now;
        let mut airtime = Airtime::default();
        if let Some(air) = &self.air {
            airtime = air.stations(node).fold(airtime, |sum, station| sum + air.airtime(now, station));
        }
        let ledger = self.kernel.counters[node.index()];
        let pairs = self.deliveries[node.index()].pairs();
        let state = &mut self.nodes[node.index()];
        NodeOutcome {
            energy_j: self.power_draw.energy_j(&airtime),
            airtime,
            drops: ledger.drops,
            proxies: state
                .middleboxes
                .iter_mut()
                .map(MiddleboxSlot::counts)
                .fold(MiddleboxCounts::default(), |sum, of| sum + of),
            handoffs: state.handoff_log().map_or(Handoffs::default(), |log| log.handoffs()),
            queues: ledger.queues.lengths(now),
            marks: ledger.marks,
            frames: ledger.frames,
            data_frames: ledger.data_frames,
            ack_frames: ledger.ack_frames,
            routing_packets: ledger.routing_packets,
            routing_bytes: ledger.routing_bytes,
            notices: state.neighborhood().map_or(NoticeCounts::default(), |machine| machine.notices(pairs)),
            neighborhood: state.neighborhood_mut().and_then(|machine| machine.series.take()),
        }
    }

    /// Returns, per flow, the packets of the source and of the sink that are in flight.
    fn packets_in_flight(&self) -> Vec<[InFlight; 2]> {
        let mut held = vec![Default::default(); self.flows.len()];
        for packet in self.kernel.packets.in_flight() {
            if let PacketAccount::Flow(flow) = packet.account {
                self.flows.add_in_flight(&mut held, flow, packet);
            }
        }
        held
    }

    /// Ends the warm-up: all counters restart.
    fn end_warmup(&mut self) {
        let now = self.kernel.now;
        self.flows.restart(now, &self.packets_in_flight());
        self.kernel.counters.iter_mut().for_each(|ledger| ledger.restart(now));
        if let Some(air) = &mut self.air {
            air.restart_airtime(now);
        }
        for node in &mut self.nodes {
            if let Some(series) = node.neighborhood_mut().and_then(|machine| machine.series.as_mut()) {
                series.counted_from = series.samples.len();
            }
            node.middleboxes.iter_mut().for_each(MiddleboxSlot::restart);
            if let Some(log) = node.handoff_log() {
                log.restart();
            }
        }
    }

    fn process(&mut self, event: Event) {
        match event {
            Event::Air(event) => self.process_air_event(event),
            other => self.process_node_event(other),
        }
        while !self.kernel.unreported_drops.is_empty() {
            self.report_queue_drops();
        }
    }

    fn process_air_event(&mut self, event: AirEvent) {
        let (air, kernel) = self.air();
        match event {
            AirEvent::TransmissionBegins { flight, next } => air.begin_transmission(kernel, flight, next),
            AirEvent::TransmissionEnds { flight, sender } => {
                air.end_at_sender(kernel.now, sender);
                self.process_station(sender);
                let (air, kernel) = self.air();
                air.begin_landing(kernel, flight);
                self.continue_landing(flight, 0);
            }
            AirEvent::TransmissionLands { flight, next } => self.continue_landing(flight, next),
            AirEvent::Mac { station } => {
                if air.handle_timeout(kernel.now, station) {
                    self.process_station(station);
                }
            }
        }
    }

    /// Processes an event above the air.
    #[inline(never)] // Nine of ten events are of the air: their code stays together.
    fn process_node_event(&mut self, event: Event) {
        match event {
            Event::Routing { node } => self.wake_agent(NodeId(node)),
            Event::Middlebox { node, seat } => self.wake_middlebox(NodeId(node), seat),
            Event::Cells { node } => self.wake_cells(NodeId(node)),
            Event::Endpoint { flow, side } => {
                if self.flows.handle_timeout(self.kernel.now, flow, side) {
                    self.process_endpoint(flow, side);
                }
            }
            Event::LinkLayerDown { station } => {
                let (air, kernel) = self.air();
                let sent = air.link_layer_down(kernel, station);
                self.handle_send_result(station, sent);
            }
            Event::LinkLayerUp { station } => {
                let (air, kernel) = self.air();
                if let Some(upcall) = air.link_layer_up(kernel, station) {
                    self.handle_station_event(station, upcall);
                }
            }
            Event::ArpRequest { station, of } => {
                let (air, kernel) = self.air();
                let sent = air.on_arp_request_timer(kernel, station, of);
                self.handle_send_result(station, sent);
            }
            Event::WireReleased { end } => self.wires.on_released(&mut self.kernel, end),
            Event::WireSent { end } => self.wires.on_sent(&mut self.kernel, end),
            Event::WireArrived { end } => {
                if let Some(arrival) = self.wires.on_arrived(&mut self.kernel, end) {
                    self.receive_from_wire(arrival);
                }
            }
            Event::FlowStart { flow } => self.start_flow(flow),
            Event::FlowStop { flow } => {
                if let Some(side) = self.flows.abort(self.kernel.now, flow) {
                    self.process_endpoint(flow, side);
                }
            }
            Event::Application { flow } => self.wake_application(flow),
            Event::NoticeFlood { flood } => self.send_flood_notice(flood),
            Event::Sample => self.sample(),
            Event::Observe => self.sample_neighborhoods(),
            Event::WarmupEnd => self.end_warmup(),
            Event::Air(event) => self.process_air_event(event),
        }
    }

    /// Ends a transmission at its receivers from number `next` on, one after the other as long as nothing
    /// else happens in between.
    fn continue_landing(&mut self, flight: u32, mut next: u32) {
        loop {
            let (air, kernel) = self.air();
            let LandingProgress::At(station) = air.end_at_receivers(kernel, flight, next) else { return };
            self.process_station(station);
            next += 1;
        }
    }

    fn sample(&mut self) {
        let queue_len = |node: NodeId| {
            let queues = self.nodes[node.index()].interfaces.iter().map(|interface| match *interface {
                Interface::Radio(station) => self.air.as_ref().map_or(0, |air| air.queue_len(station)),
                Interface::Wire { end, .. } => self.wires.queue_len(end),
                Interface::Tap | Interface::Tunnel => 0,
            });
            queues.max().unwrap_or(0) as u32
        };
        self.flows.sample(self.kernel.now, queue_len);
        self.kernel.schedule(self.kernel.now + SAMPLE_INTERVAL, Event::Sample);
    }

    /// Returns the medium and the kernel, which its calls need.
    pub(crate) fn air(&mut self) -> (&mut Air, &mut Kernel<T>) {
        (
            self.air.as_mut().expect("only radios ask for air, and a world with radios has it"),
            &mut self.kernel,
        )
    }
}

/// Returns whether the MAC of `node` reports frames for other nodes to its listener.
fn mac_tap(spec: &Spec, node: NodeId) -> Tap {
    let neighborhood = spec.radio.as_ref().and_then(|radio| radio.neighborhood.as_ref());
    match &spec.routing {
        RoutingSpec::Dsr(config) if config.is_tapped() => Tap::Promiscuous,
        _ if neighborhood.is_some_and(|all| all.members.contains(node)) => Tap::Promiscuous,
        _ => Tap::Off,
    }
}

/// Returns, by node, whether something there wants to know the drops of its queues. Empty: nowhere.
fn drop_watchers(spec: &Spec, nodes: &[Node]) -> Vec<bool> {
    let of_links = spec.links.iter().any(|link| link.arq.is_some());
    if spec.proxies.is_empty() && spec.pairs.is_empty() && !of_links {
        return Vec::new();
    }
    nodes.iter().map(|node| !node.middleboxes.is_empty()).collect()
}
