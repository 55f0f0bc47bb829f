//! The world: everything there is in a run, and the loop that drives it.

use crate::alarm::Alarm;
use crate::fingerprint::Fingerprint;
use crate::flood::NoticeFlood;
use crate::flow::{Flow, Side};
use crate::medium::Medium;
use crate::neighborhood::{Neighborhood, OBSERVATION_INTERVAL};
use crate::node::{Agent, Node, Radio, Routing, WireEnd};
use crate::notify::Notifier;
use crate::outage::Schedule;
use crate::outcome::{NodeOutcome, Notices, Outcome};
use crate::outside::Egress;
use crate::packet::{Account, Slab};
use crate::routes;
use crate::scheduler::Scheduler;
use crate::spec::{Blocks, Interface, RoutingSpec, Spec};
use crate::trace::Tracer;
use crate::wired::Wire;
use hopline_core::{Duration, Instant, NodeId, Purpose, Stream};
use hopline_radio::mac::Airtime;
use hopline_radio::mac::config::Tap;
use hopline_radio::phy::reception::Thresholds;
use hopline_routing::aodv::Aodv;
use hopline_routing::dsr::Dsr;
use hopline_routing::olsr::Olsr;
use hopline_routing::static_routes::StaticRoutes;
use std::collections::{BTreeSet, VecDeque};

/// Time between two samples of a flow's state.
const SAMPLE_INTERVAL: Duration = Duration::from_secs(1);

/// What can happen.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Event {
    /// A transmission begins at its receivers, from number `next` of its list on.
    FlightBegins { flight: u32, next: u32 },
    /// A transmission ends: at its sender, and then at its receivers.
    FlightEnds { flight: u32, sender: u32 },
    /// A transmission goes on ending at its receivers, from number `next` of its list on.
    FlightLands { flight: u32, next: u32 },
    /// A MAC wants to be woken.
    Mac { node: u32 },
    /// A routing agent wants to be woken.
    Routing { node: u32 },
    /// Neighborhood RED of a node wants to be woken.
    Neighborhood { node: u32 },
    /// A TCP endpoint wants to be woken.
    Endpoint { flow: u32, side: Side },
    /// A packet has crossed the link layer downward.
    LinkLayerDown { node: u32 },
    /// A packet has crossed the link layer upward.
    LinkLayerUp { node: u32 },
    /// A packet has left one end of a wired link.
    WireSent { end: WireEnd },
    /// A packet has arrived from one end of a wired link at the other.
    WireArrived { end: WireEnd },
    /// A flow starts.
    FlowStart { flow: u32 },
    /// A flow stops.
    FlowStop { flow: u32 },
    /// An application wants to be woken: it sends a datagram or a request.
    Application { flow: u32 },
    /// A hostile node sends its next notice.
    NoticeFlood { flood: u32 },
    /// The state of all flows is sampled.
    Sample,
    /// Neighbourhoods are looked at.
    Observe,
    /// The warm-up is over.
    WarmedUp,
}

/// A network in the middle of a run.
#[derive(Debug)]
pub struct World<T> {
    pub(crate) now: Instant,
    /// Nothing later than this is processed yet.
    pub(crate) horizon: Instant,
    pub(crate) scheduler: Scheduler<Event>,
    pub(crate) nodes: Vec<Node>,
    pub(crate) air: Option<Air>,
    pub(crate) wires: Vec<Wire>,
    /// If endpoints are told of failures at all.
    pub(crate) notifier: Option<Box<Notifier>>,
    /// Who does not get whose packets, though their frames arrive.
    pub(crate) filters: Schedule,
    /// Who gets nothing over a wire.
    pub(crate) cuts: Schedule,
    pub(crate) routes: Option<StaticRoutes>,
    pub(crate) flows: Vec<Flow>,
    pub(crate) floods: Vec<NoticeFlood>,
    pub(crate) packets: Slab,
    /// Where packets come in from outside and leave.
    pub(crate) taps: BTreeSet<NodeId>,
    /// Packets from outside that have come to where they were to go.
    pub(crate) egress: VecDeque<Egress>,
    pub(crate) extra_header_bytes: u32,
    warmup: Duration,
    pub(crate) fingerprint: Fingerprint,
    pub(crate) events: u64,
    pub(crate) tracer: T,
}

/// What the wireless nodes share.
#[derive(Debug)]
pub(crate) struct Air {
    pub(crate) medium: Medium,
    pub(crate) thresholds: Thresholds,
    pub(crate) link_layer_delay: Duration,
}

impl<T: Tracer> World<T> {
    /// Builds the network of `spec` for run number `run`, at time zero.
    #[must_use]
    pub fn new(spec: &Spec, run: u64, tracer: T) -> Self {
        let key = (spec.seed, run);
        let mut world = Self {
            now: Instant::ZERO,
            horizon: Instant::ZERO,
            scheduler: Scheduler::new(),
            nodes: nodes(spec, key),
            air: air(spec, key),
            wires: spec.links.iter().zip(0..).map(|(link, n)| Wire::new(link, n, key)).collect(),
            notifier: Notifier::new(spec),
            filters: Schedule::new(&spec.outages, |blocks| blocks == Blocks::Packets),
            cuts: Schedule::new(&spec.outages, |_any| true),
            routes: matches!(spec.routing, RoutingSpec::Static).then(|| routes::shortest(spec)),
            flows: (0..).zip(&spec.flows).map(|(id, flow)| Flow::new(flow, id, key)).collect(),
            floods: spec.notice_floods.iter().copied().map(NoticeFlood::new).collect(),
            packets: Slab::default(),
            taps: spec.taps.clone(),
            egress: VecDeque::new(),
            extra_header_bytes: spec.extra_header_bytes,
            warmup: spec.warmup,
            fingerprint: Fingerprint::new(),
            events: 0,
            tracer,
        };
        // First of all that happens at its moment: a flow that starts then counts whole.
        if !spec.warmup.is_zero() {
            world.scheduler.schedule(Instant::ZERO + spec.warmup, Event::WarmedUp);
        }
        for (flow, spec) in (0..).zip(&spec.flows) {
            world.scheduler.schedule(spec.start, Event::FlowStart { flow });
            if spec.stop != Instant::FAR_FUTURE {
                world.scheduler.schedule(spec.stop, Event::FlowStop { flow });
            }
        }
        for (flood, spec) in (0..).zip(&spec.notice_floods) {
            world.scheduler.schedule(spec.start, Event::NoticeFlood { flood });
        }
        world.scheduler.schedule(Instant::ZERO + SAMPLE_INTERVAL, Event::Sample);
        if world.nodes.iter().any(Node::is_observed) {
            world.scheduler.schedule_last(Instant::ZERO + OBSERVATION_INTERVAL, Event::Observe);
        }
        for node in 0..world.nodes.len() as u32 {
            world.drive_agent(node);
            world.drive_neighborhood(node);
        }
        world
    }

    /// The current virtual time.
    #[must_use]
    pub const fn now(&self) -> Instant {
        self.now
    }

    /// Events processed so far.
    #[must_use]
    pub const fn events(&self) -> u64 {
        self.events
    }

    /// Packets that exist now: queued, in service, in the air, on a wire, or waiting for a route. Copies of one packet
    /// count once.
    #[must_use]
    pub fn packets(&self) -> usize {
        self.packets.live()
    }

    /// Processes everything up to and including `until`.
    pub fn run_until(&mut self, until: Instant) {
        self.horizon = until;
        while self.scheduler.next_at() <= until {
            if let Some((at, event)) = self.scheduler.pop() {
                self.now = at;
                // A transmission counts at each receiver, in however many steps it gets to them.
                if !matches!(event, Event::FlightBegins { .. } | Event::FlightLands { .. }) {
                    self.events += 1;
                }
                self.process(event);
            }
        }
        self.now = until.max(self.now);
    }

    /// Ends the run, and returns the outcome and the tracer.
    #[must_use]
    pub fn finish(mut self) -> (Outcome, T) {
        let now = self.now;
        let held = self.held();
        for (flow, held) in self.flows.iter_mut().zip(held) {
            flow.settle(held);
        }
        let flows = core::mem::take(&mut self.flows);
        let outcome = Outcome {
            fingerprint: self.fingerprint.value(),
            sim_time: now.since(Instant::ZERO),
            warmup: self.warmup,
            events: self.events,
            flows: flows.into_iter().map(|flow| flow.outcome(now)).collect(),
            nodes: self
                .nodes
                .iter_mut()
                .map(|node| NodeOutcome {
                    airtime: node.radio.as_ref().map_or(Airtime::default(), |r| r.mac.airtime(now)),
                    drops: node.drops,
                    marks: node.marks,
                    frames: node.frames,
                    routing_packets: node.routing_packets,
                    routing_bytes: node.routing_bytes,
                    notices: node.neighborhood.as_ref().map_or(Notices::default(), |n| n.notices()),
                    neighborhood: node.neighborhood.as_mut().and_then(|n| n.series.take()),
                })
                .collect(),
        };
        (outcome, self.tracer)
    }

    /// Per flow, packets and bytes that the source and the sink sent and that are under way.
    fn held(&self) -> Vec<[(u64, u64); 2]> {
        let mut held = vec![[(0, 0); 2]; self.flows.len()];
        for packet in self.packets.under_way() {
            if let Account::Flow(flow) = packet.account {
                let side = self.flows[flow.index()].side_of(packet.ip.src);
                let (packets, bytes) = &mut held[flow.index()][side as usize];
                *packets += 1;
                *bytes += u64::from(packet.len_bytes);
            }
        }
        held
    }

    /// Everything that is counted is counted anew.
    fn warmed_up(&mut self) {
        let now = self.now;
        for (flow, held) in self.held().into_iter().enumerate() {
            self.flows[flow].restart(now, held);
        }
        for node in &mut self.nodes {
            node.restart(now);
        }
    }

    fn process(&mut self, event: Event) {
        match event {
            Event::FlightBegins { flight, next } => self.flight_begins(flight, next),
            Event::FlightEnds { flight, sender } => self.flight_ends(flight, sender),
            Event::FlightLands { flight, next } => self.flight_lands(flight, next),
            Event::Mac { node } => self.wake_mac(node),
            Event::Routing { node } => self.wake_agent(node),
            Event::Neighborhood { node } => self.wake_neighborhood(node),
            Event::Endpoint { flow, side } => self.wake_endpoint(flow, side),
            Event::LinkLayerDown { node } => self.link_layer_down(node),
            Event::LinkLayerUp { node } => self.link_layer_up(node),
            Event::WireSent { end } => self.wire_sent(end),
            Event::WireArrived { end } => self.wire_arrived(end),
            Event::FlowStart { flow } => self.start_flow(flow),
            Event::FlowStop { flow } => self.stop_flow(flow),
            Event::Application { flow } => self.wake_application(flow),
            Event::NoticeFlood { flood } => self.flood_notice(flood),
            Event::Sample => self.sample(),
            Event::Observe => self.observe_neighborhoods(),
            Event::WarmedUp => self.warmed_up(),
        }
    }

    fn sample(&mut self) {
        for flow in &mut self.flows {
            let queue = self.nodes[flow.src.index()].queue_len(&self.wires);
            flow.sample(self.now, queue);
        }
        self.scheduler.schedule(self.now + SAMPLE_INTERVAL, Event::Sample);
    }
}

/// Whether the MAC of `node` reports what is for others: to who listens to it.
fn tap(spec: &Spec, node: NodeId) -> Tap {
    let neighborhood = spec.radio.as_ref().and_then(|radio| radio.neighborhood.as_ref());
    match &spec.routing {
        RoutingSpec::Dsr(config) if config.is_tapped() => Tap::Promiscuous,
        _ if neighborhood.is_some_and(|all| all.members.include(node)) => Tap::Promiscuous,
        _ => Tap::Off,
    }
}

fn nodes(spec: &Spec, key: (u64, u64)) -> Vec<Node> {
    let mut nodes: Vec<Node> = (0..)
        .map(NodeId)
        .zip(&spec.nodes)
        .map(|(id, node)| {
            let wireless = node.interface == Interface::Wireless;
            let radio = spec
                .radio
                .as_ref()
                .filter(|_| wireless)
                .map(|radio| Radio::new(radio, tap(spec, id), id, key));
            let jitter = || Stream::new(key.0, key.1, id, Purpose::Routing);
            let machine = match &spec.routing {
                RoutingSpec::Aodv(config) => Some(Routing::Aodv(Aodv::new(*config, id.ipv4(), jitter()))),
                RoutingSpec::Olsr(config) => Some(Routing::Olsr(Olsr::new(*config, id.ipv4(), jitter()))),
                RoutingSpec::Dsr(config) => Some(Routing::Dsr(Dsr::new(*config, id.ipv4(), jitter()))),
                RoutingSpec::Static => None,
            };
            let agent =
                machine.filter(|_| wireless).map(|machine| Box::new(Agent { machine, alarm: Alarm::OFF }));
            let neighborhood =
                spec.radio.as_ref().filter(|_| wireless).and_then(|radio| Neighborhood::of(radio, id, key));
            Node {
                radio,
                wires: Vec::new(),
                agent,
                neighborhood,
                drops: Default::default(),
                marks: 0,
                frames: Default::default(),
                routing_packets: 0,
                routing_bytes: 0,
            }
        })
        .collect();
    for (n, link) in (0..).zip(&spec.links) {
        nodes[link.a.index()].wires.push((link.b, WireEnd { link: n, side: 0 }));
        nodes[link.b.index()].wires.push((link.a, WireEnd { link: n, side: 1 }));
    }
    nodes
}

fn air(spec: &Spec, key: (u64, u64)) -> Option<Air> {
    let radio = spec.radio.as_ref()?;
    let wireless: Vec<NodeId> = (0..)
        .map(NodeId)
        .zip(&spec.nodes)
        .filter(|(_, node)| node.interface == Interface::Wireless)
        .map(|(id, _)| id)
        .collect();
    let trajectories = spec.nodes.iter().map(|node| node.trajectory.clone()).collect();
    let outages = Schedule::new(&spec.outages, |blocks| blocks == Blocks::Frames);
    Some(Air {
        medium: Medium::new(radio.phy, trajectories, &wireless, outages, key),
        thresholds: Thresholds::new(radio.phy.reception, &radio.phy.radio),
        link_layer_delay: radio.link_layer_delay,
    })
}
