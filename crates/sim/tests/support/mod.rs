//! Specifications in a few words, and a tracer that takes notes.

#![allow(dead_code, reason = "each test target uses its own part")]

pub(crate) mod bottleneck;
pub(crate) mod cells;
pub(crate) mod last_hop;
pub(crate) mod recorder;

use core::num::{NonZeroU16, NonZeroU64};
use hopline_core::{Duration, Instant, NodeId};
use hopline_queue::drop_tail::Service;
use hopline_radio::mobility::{Position, Trajectory};
use hopline_radio::phy::errors::ErrorModel;
use hopline_radio::phy::propagation::{Propagation, RangeDisk};
use hopline_radio::{mac, phy};
use hopline_routing::{aodv, dsr, olsr};
use hopline_sim::spec::{
    AddressResolution, Channel, Discipline, ExchangeSpec, FailureNotification, FlowSpec, LinkSpec, NodeSpec,
    QueueSpec, RadioSpec, RandomVariable, RoutingSpec, Traffic, Transport,
};
use hopline_sim::trace::{DropLocation, DropReason, TraceEvent};
use hopline_sim::{Outcome, Spec, Tracer, World};
use hopline_transport::{Signal, tcp};

/// Seconds as an instant.
pub(crate) fn at(secs: f64) -> Instant {
    Instant::ZERO + Duration::from_secs_f64(secs)
}

/// ns-2.35's TCP with a plain sink and a window clamp in segments.
pub(crate) fn ns2_tcp(window: u32) -> tcp::Config {
    tcp::Config::ns2_235().with_window_clamp(Some(window))
}

/// The radio of ns-2's wireless scripts.
pub(crate) fn wavelan() -> RadioSpec {
    RadioSpec {
        phy: phy::Config::ns2_wavelan(),
        mac: mac::Config::ns2_wavelan(),
        queue: queue(49, Service::RoutingPriority),
        link_layer_delay: Duration::from_micros(25),
        address_resolution: AddressResolution::Known,
        arp_jitter: Duration::ZERO,
        errors: ErrorModel::None,
        losses: Vec::new(),
        obstacles: Vec::new(),
        neighborhood: None,
        power_draw: hopline_sim::spec::PowerDraw::default(),
    }
}

/// 802.11b as in the standard over sharp circles: `range_m` to decode and to sense alike.
pub(crate) fn disk(range_m: f64) -> RadioSpec {
    let circles = RangeDisk { transmission_m: range_m, interference_m: range_m, carrier_sense_m: range_m };
    RadioSpec {
        phy: phy::Config { propagation: Propagation::RangeDisk(circles), ..phy::Config::wavelan() },
        mac: mac::Config::dot11b(),
        queue: queue(50, Service::Fifo),
        link_layer_delay: Duration::ZERO,
        address_resolution: AddressResolution::Known,
        arp_jitter: Duration::from_millis(10),
        errors: ErrorModel::None,
        losses: Vec::new(),
        obstacles: Vec::new(),
        neighborhood: None,
        power_draw: hopline_sim::spec::PowerDraw::default(),
    }
}

pub(crate) fn queue(capacity: u16, service: Service) -> QueueSpec {
    QueueSpec {
        capacity: NonZeroU16::new(capacity).expect("not zero"),
        service_order: service,
        discipline: Discipline::DropTail,
    }
}

fn node(index: usize, trajectory: Trajectory, radios: &[Channel]) -> NodeSpec {
    NodeSpec::new(format!("n{index}"), trajectory, radios)
}

/// A network without traffic, links or radio.
fn empty() -> Spec {
    Spec {
        duration: Duration::from_secs(10),
        warmup: Duration::ZERO,
        seed: 1,
        nodes: Vec::new(),
        radio: None,
        links: Vec::new(),
        outages: Vec::new(),
        notice_flood_attackers: Vec::new(),
        proxies: Vec::new(),
        pairs: Vec::new(),
        cells: None,
        taps: Default::default(),
        ethernet_taps: Default::default(),
        routing: RoutingSpec::Static,
        failure_notification: FailureNotification::None,
        extra_header_bytes: 0,
        series: Default::default(),
        custom_algorithms: Default::default(),
        flows: Vec::new(),
    }
}

/// Wireless nodes that stand still, with ns-2's radio.
pub(crate) fn standing(positions: &[(f64, f64)]) -> Spec {
    let fixed = |&(x, y): &(f64, f64)| Trajectory::fixed(Position::new(x, y));
    moving(positions.iter().map(fixed))
}

/// Wireless nodes on trajectories, with ns-2's radio.
pub(crate) fn moving(trajectories: impl IntoIterator<Item = Trajectory>) -> Spec {
    let nodes = trajectories.into_iter().enumerate();
    let nodes = nodes.map(|(n, trajectory)| node(n, trajectory, &[Channel(0)])).collect();
    Spec { nodes, radio: Some(wavelan()), ..empty() }
}

/// The straight way through these points, each (seconds, x, y).
pub(crate) fn walk(points: &[(f64, f64, f64)]) -> Trajectory {
    let waypoints: Vec<_> = points.iter().map(|&(t, x, y)| (at(t), Position::new(x, y))).collect();
    Trajectory::through(&waypoints).expect("valid waypoints")
}

/// `hops` + 1 nodes in a row, 200 m apart.
pub(crate) fn chain(hops: u32) -> Spec {
    let positions: Vec<_> = (0..=hops).map(|n| (200.0 * f64::from(n), 0.0)).collect();
    standing(&positions)
}

/// `side` × `side` nodes, 200 m apart, row by row.
pub(crate) fn grid(side: u32) -> Spec {
    let at = |n: u32| (200.0 * f64::from(n % side), 200.0 * f64::from(n / side));
    let positions: Vec<_> = (0..side * side).map(at).collect();
    standing(&positions)
}

/// `count` nodes that have no radio.
pub(crate) fn wired(count: usize) -> Spec {
    let nodes = (0..count).map(|n| node(n, Trajectory::fixed(Position::new(0.0, 0.0)), &[]));
    Spec { nodes: nodes.collect(), ..empty() }
}

/// Returns a link without errors that has a queue of `capacity` packets.
pub(crate) fn link(a: u32, b: u32, rate_bps: u64, delay: Duration, capacity: u16) -> LinkSpec {
    LinkSpec {
        arq: None,
        impairments: hopline_sim::spec::links::LinkImpairments::default(),
        a: NodeId(a),
        b: NodeId(b),
        rate_bps,
        delay,
        queue: queue(capacity, Service::Fifo),
        errors: [ErrorModel::None; 2],
    }
}

/// Requests and responses of so many bytes. `transactions` of 0: as many as the time allows.
pub(crate) fn exchange(request: f64, response: f64, think_s: f64, transactions: u64) -> ExchangeSpec {
    ExchangeSpec {
        request_bytes: RandomVariable::Constant(request),
        response_bytes: RandomVariable::Constant(response),
        think_s: RandomVariable::Constant(think_s),
        transactions: NonZeroU64::new(transactions),
    }
}

/// Nodes 0, 1 and 2: a fast link, and one of 2 Mb/s with 20 ms behind a queue of `capacity` packets.
pub(crate) fn bottleneck(capacity: u16, discipline: Discipline) -> Spec {
    let mut slow = link(1, 2, 2_000_000, Duration::from_millis(20), capacity);
    slow.queue.discipline = discipline;
    wired(3).link(link(0, 1, 100_000_000, Duration::from_millis(1), 1000)).link(slow)
}

/// Changes to a specification, one after the other.
pub(crate) trait SpecBuilder: Sized {
    fn change(self, change: impl FnOnce(&mut Spec)) -> Self;

    fn seconds(self, secs: u64) -> Self {
        self.change(|spec| spec.duration = Duration::from_secs(secs))
    }

    fn warmup(self, secs: f64) -> Self {
        self.change(|spec| spec.warmup = Duration::from_secs_f64(secs))
    }

    fn aodv(self, config: aodv::Config) -> Self {
        self.change(|spec| spec.routing = RoutingSpec::Aodv(config))
    }

    fn olsr(self, config: olsr::Config) -> Self {
        self.change(|spec| spec.routing = RoutingSpec::Olsr(config))
    }

    fn dsr(self, config: dsr::Config) -> Self {
        self.change(|spec| spec.routing = RoutingSpec::Dsr(config))
    }

    /// Notifies endpoints of routes that fail.
    fn elfn(self) -> Self {
        self.change(|spec| spec.failure_notification = FailureNotification::Elfn)
    }

    fn radio(self, change: impl FnOnce(&mut RadioSpec)) -> Self {
        self.change(|spec| change(spec.radio.as_mut().expect("a wireless network")))
    }

    fn link(self, link: LinkSpec) -> Self {
        self.change(|spec| spec.links.push(link))
    }

    /// Packets come in from outside, and leave, at every node.
    fn with_taps(self) -> Self {
        self.change(|spec| spec.taps = (0..).map(NodeId).take(spec.nodes.len()).collect())
    }

    /// Ethernet frames come in from outside, and leave, at these nodes.
    fn ethernet_taps(self, nodes: impl IntoIterator<Item = u32>) -> Self {
        self.change(|spec| spec.ethernet_taps = nodes.into_iter().map(NodeId).collect())
    }

    /// One more node without a radio.
    fn wired_node(self) -> Self {
        self.change(|spec| {
            let trajectory = Trajectory::fixed(Position::new(0.0, 0.0));
            spec.nodes.push(node(spec.nodes.len(), trajectory, &[]));
        })
    }

    /// One more node with a radio.
    fn wireless_node(self, trajectory: Trajectory) -> Self {
        self.change(|spec| spec.nodes.push(node(spec.nodes.len(), trajectory, &[Channel(0)])))
    }

    /// A bulk transfer without end.
    fn bulk(self, src: u32, dst: u32, over: impl Into<Transport>) -> Self {
        self.flow(src, dst, Traffic::Bulk { over: over.into(), bytes: None })
    }

    /// A bulk transfer of `bytes`.
    fn transfer(self, src: u32, dst: u32, over: impl Into<Transport>, bytes: u64) -> Self {
        self.flow(src, dst, Traffic::Bulk { over: over.into(), bytes: Some(bytes) })
    }

    fn cbr(self, src: u32, dst: u32, packet_bytes: u32, interval: Duration) -> Self {
        self.flow(src, dst, Traffic::Cbr { packet_bytes, interval })
    }

    /// Bursts with exponential on and off times, means in seconds.
    fn on_off(
        self,
        src: u32,
        dst: u32,
        packet_bytes: u32,
        interval: Duration,
        on_s: f64,
        off_s: f64,
    ) -> Self {
        let [on, off] = [on_s, off_s].map(|mean| RandomVariable::Exponential { mean });
        self.flow(src, dst, Traffic::OnOff { packet_bytes, interval, on, off })
    }

    /// `dst` asks, `src` answers.
    fn exchange(self, src: u32, dst: u32, over: impl Into<Transport>, exchange: ExchangeSpec) -> Self {
        self.flow(src, dst, Traffic::Exchange { over: over.into(), exchange })
    }

    fn flow(self, src: u32, dst: u32, traffic: Traffic) -> Self {
        self.change(|spec| {
            spec.flows.push(FlowSpec {
                end_transports: [None, None],
                name: format!("f{}", spec.flows.len()),
                src: NodeId(src),
                dst: NodeId(dst),
                start: Instant::ZERO,
                stop: Instant::FAR_FUTURE,
                traffic,
                labels: hopline_sim::spec::FlowLabels::default(),
            });
        })
    }

    /// Sets the start time of the flow added last, in seconds.
    fn from(self, secs: f64) -> Self {
        self.change(|spec| spec.flows.last_mut().expect("a flow").start = at(secs))
    }

    /// Sets the stop time of the flow added last, in seconds.
    fn until(self, secs: f64) -> Self {
        self.change(|spec| spec.flows.last_mut().expect("a flow").stop = at(secs))
    }
}

impl SpecBuilder for Spec {
    fn change(mut self, change: impl FnOnce(&mut Spec)) -> Self {
        change(&mut self);
        self
    }
}

/// Notifications to the ends of flows.
#[derive(Default)]
pub(crate) struct NotificationRecorder(pub(crate) Vec<(u32, Signal)>);

impl Tracer for NotificationRecorder {
    fn trace(&mut self, _now: Instant, node: NodeId, event: TraceEvent<'_>) {
        if let TraceEvent::Signalled { signal, .. } = event {
            self.0.push((node.0, signal));
        }
    }
}

/// Drops: node, reason, and place in the node.
#[derive(Default)]
struct DropRecorder(Vec<(NodeId, DropReason, DropLocation)>);

impl Tracer for DropRecorder {
    fn trace(&mut self, _now: Instant, node: NodeId, event: TraceEvent<'_>) {
        if let TraceEvent::Dropped { reason, location: place, .. } = event {
            self.0.push((node, reason, place));
        }
    }
}

/// Runs `spec` to its end: the outcome, and every drop.
pub(crate) fn drops(spec: &Spec, run: u64) -> (Outcome, Vec<(NodeId, DropReason, DropLocation)>) {
    let mut world = World::new(spec, run, DropRecorder::default());
    world.run_until(Instant::ZERO + spec.duration);
    let (outcome, DropRecorder(drops)) = world.finish();
    (outcome, drops)
}
