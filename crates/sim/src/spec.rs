//! Specification of a simulation: fully resolved and validated. The lab parses scenario files into it.

mod cells;
pub mod links;
mod proxies;
mod rate_trace;

pub use crate::custom::CustomAlgorithms;
pub use crate::distribution::RandomVariable;
pub use cells::{
    AcceptedStations, CellsSpec, HandoffRule, Key, MobileSpec, Scheme, StartState, fast_retransmit,
};
pub use hopline_transport::any::Transport;
pub use hopline_wire::ncn::NormalizedPb;
pub use proxies::{
    MobileSide, PairKind, PairSpec, ProxyKind, ProxySpec, ack_pacing, arq, dproxy, hop_window, mtcp, nack,
    snoop, split,
};

use core::num::{NonZeroU16, NonZeroU32, NonZeroU64};
use hopline_core::{Duration, Instant, NodeId};
use hopline_queue::drop_tail::Service;
use hopline_queue::neighborhood_red;
use hopline_queue::{CoDelConfig, CustomDisciplineId, DualPi2Config, FqCoDelConfig, PieConfig, RedConfig};
use hopline_radio::mobility::Trajectory;
use hopline_radio::phy::errors::ErrorModel;
use hopline_radio::phy::obstacles::Obstacle;
use hopline_radio::{mac, phy};
use hopline_routing::{aodv, dsr, olsr};
use hopline_wire::dot11::MacAddr;
use std::collections::BTreeSet;
use std::net::Ipv4Addr;
use std::sync::Arc;

/// One network, its protocols and its traffic. Everything but the run number, which is given to the world.
#[derive(Clone, Debug)]
pub struct Spec {
    /// Virtual time to simulate.
    pub duration: Duration,
    /// Warm-up time. Events before it do not count in the outcome; only the per-second series show them.
    /// Below `duration`. Default 0.
    pub warmup: Duration,
    /// Seed of the experiment. Runs of one seed are numbered; equal (seed, run) give equal results.
    pub seed: u64,
    /// The nodes; a node's index is its [`NodeId`].
    pub nodes: Vec<NodeSpec>,
    /// The radio that all wireless nodes share; `None` in a wired network.
    pub radio: Option<RadioSpec>,
    /// Wired links.
    pub links: Vec<LinkSpec>,
    /// Outages: pairs of nodes, and the times in which one does not hear the other. In any order.
    pub outages: Vec<OutageSpec>,
    /// Hostile nodes.
    pub notice_flood_attackers: Vec<NoticeFloodSpec>,
    /// Machines in the path of TCP, in the order in which a packet from a neighbour meets those of one node. Default none.
    pub proxies: Vec<ProxySpec>,
    /// Machines at both ends of links, nearer to the link than all others of a node. Default none.
    pub pairs: Vec<PairSpec>,
    /// Base stations and the hosts that move between them. Default none.
    pub cells: Option<CellsSpec>,
    /// Nodes at which packets from outside come in and leave ([`World::inject`](crate::World::inject)). Default none.
    pub taps: BTreeSet<NodeId>,
    /// Nodes at which Ethernet frames come in and leave ([`World::inject_frame`](crate::World::inject_frame)). They have no
    /// routing agent: programs outside do the routing. Default none.
    pub ethernet_taps: BTreeSet<NodeId>,
    /// Routing of packets.
    pub routing: RoutingSpec,
    /// Notifications to transport endpoints of routes that fail and return.
    pub failure_notification: FailureNotification,
    /// Series of the state of flows to keep, with a sample a second. Default all.
    pub series: SeriesRetention,
    /// Bytes that every network-layer packet carries beyond its own headers. Default 0; ns-2's routing agents count
    /// the IP header a second time, 20.
    pub extra_header_bytes: u32,
    /// The traffic; a flow's index is its [`FlowId`](hopline_core::FlowId).
    pub flows: Vec<FlowSpec>,
    /// User-defined algorithms, which transports of flows and queues refer to by number. Middleboxes that
    /// split connections know none.
    pub custom_algorithms: CustomAlgorithms,
}

impl Spec {
    /// Returns whether `node` has a routing agent.
    pub(crate) fn has_agent(&self, node: NodeId) -> bool {
        self.routing.has_agents()
            && self.nodes[node.index()].is_wireless()
            && !self.ethernet_taps.contains(&node)
    }
}

/// Part of a series that is kept, with a sample a second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SeriesRetention {
    /// All of it, from the start of the run on.
    #[default]
    Whole,
    /// The latest samples, at most so many: of a world that is stepped for days.
    Latest(NonZeroU32),
}

/// One node.
#[derive(Clone, Debug)]
pub struct NodeSpec {
    /// Name in results and traces.
    pub name: String,
    /// Position of the node at each moment of the run.
    pub trajectory: Trajectory,
    /// Its radios, at most 255, each by the channel that it listens to; none: the node has wired links only.
    pub radio_channels: Vec<Channel>,
    /// Addresses that the node answers to besides its [default one](NodeId::ipv4). No two nodes have one in common.
    pub addresses: Vec<Ipv4Addr>,
    /// Host routes: next hops that override the other routes of the node.
    pub routes: Vec<HostRoute>,
    /// Gateway through which its packets leave and enter the network of nodes with routing agents, if it has
    /// an agent. `None`: the gateway that is nearest at the start of the run, in hops; of several the first.
    /// Each node on the way out goes by its own, except with DSR: where neighbours disagree a packet can go
    /// in circles until its hop limit ends it.
    pub gateway: Option<NodeId>,
}

impl NodeSpec {
    /// Creates a node with this trajectory and these radios, and defaults for the rest.
    #[must_use]
    pub fn new(name: impl Into<String>, trajectory: Trajectory, radios: impl Into<Vec<Channel>>) -> Self {
        let (addresses, routes, gateway) = (Vec::new(), Vec::new(), None);
        Self { name: name.into(), trajectory, radio_channels: radios.into(), addresses, routes, gateway }
    }

    /// Returns its interface.
    #[must_use]
    pub const fn attachment(&self) -> Attachment {
        if self.radio_channels.is_empty() { Attachment::Wired } else { Attachment::Wireless }
    }

    pub(crate) const fn is_wireless(&self) -> bool {
        !self.radio_channels.is_empty()
    }
}

/// Attachment of a node: with a radio or without.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attachment {
    /// One or several, and wired links if any name the node.
    Wireless,
    /// Wired links only.
    Wired,
}

/// A radio channel. What is sent on one is not sensed on another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Channel(pub u16);

/// Next hop from a node to one other node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostRoute {
    /// Destination of the packets.
    pub destination: NodeId,
    /// Neighbour to which they go, over a wire or, if there is none, a radio.
    pub next_hop: NodeId,
}

/// A radio of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RadioInterface {
    /// Node with the radio.
    pub node: NodeId,
    /// Number of the radio at its node, from 0. It is the number of its interface as well, since radios come
    /// first.
    pub number: u8,
    /// Channel that it listens to.
    pub channel: Channel,
    /// Its address: the node's default one for the first radio; further radios are numbered on from the last
    /// node.
    pub address: MacAddr,
}

impl RadioInterface {
    /// Returns the key of its random numbers: for a first radio, that of the node.
    pub(crate) fn key(&self) -> u64 {
        u64::from(self.number) << 48 | u64::from(self.node.0)
    }
}

/// Returns all radios, in the order of nodes.
#[must_use]
pub fn radios(nodes: &[NodeSpec]) -> Vec<RadioInterface> {
    let mut others = nodes.len() as u32;
    let mut address = |node: NodeId, number: u8| {
        if number == 0 {
            return MacAddr::of_node(node);
        }
        others += 1;
        MacAddr::of_node(NodeId(others - 1))
    };
    let mut radios = Vec::new();
    for (node, spec) in (0..).map(NodeId).zip(nodes) {
        for (number, &channel) in (0..=u8::MAX).zip(&spec.radio_channels) {
            radios.push(RadioInterface { node, number, channel, address: address(node, number) });
        }
    }
    radios
}

/// Radio, medium access and interface queue of every wireless node.
#[derive(Clone, Debug)]
pub struct RadioSpec {
    /// Propagation and reception.
    pub phy: phy::Config,
    /// Medium access.
    pub mac: mac::Config,
    /// Interface queue in front of the MAC.
    pub queue: QueueSpec,
    /// Time between the network layer and the interface, each way. ns-2's link layer takes 25 µs. Default 0.
    pub link_layer_delay: Duration,
    /// Address resolution: the source of the link-layer addresses of neighbours. By default, nodes know them.
    pub address_resolution: AddressResolution,
    /// ARP requests wait a random time below this, so that those of neighbours that create packets at the
    /// same instant do not collide each time (RFC 5148 §5.2). RFC 826 says nothing; 10 ms as ns-3. ns-2:
    /// zero, as its MAC draws a back-off before each frame.
    pub arp_jitter: Duration,
    /// Errors on frames that were received otherwise intact.
    pub errors: ErrorModel,
    /// More of them, on what one node hears of another; at most one a pair and direction. Default none.
    pub losses: Vec<LossSpec>,
    /// Obstacles between the nodes, which weaken signals that pass through them. Default none.
    pub obstacles: Vec<Obstacle>,
    /// Neighborhood RED, if nodes have it.
    pub neighborhood: Option<NeighborhoodSpec>,
    /// Power that a radio draws from its battery. It affects results only.
    pub power_draw: PowerDraw,
}

/// Power that a radio takes, in watts. Default: a WaveLAN card at 2 Mb/s as Feeney and Nilsson measured it (INFOCOM 2001).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PowerDraw {
    /// While it sends.
    pub transmit_w: f64,
    /// While it receives, or senses a carrier.
    pub receive_w: f64,
    /// While it does neither.
    pub idle_w: f64,
}

impl Default for PowerDraw {
    fn default() -> Self {
        Self { transmit_w: 1.327, receive_w: 0.967, idle_w: 0.843 }
    }
}

impl PowerDraw {
    /// Returns the energy of `airtime`, in joules.
    #[must_use]
    pub fn energy_j(&self, airtime: &mac::Airtime) -> f64 {
        self.transmit_w * airtime.transmitting.as_secs_f64()
            + self.receive_w * (airtime.receiving + airtime.sensing).as_secs_f64()
            + self.idle_w * (airtime.nav + airtime.idle).as_secs_f64()
    }
}

/// Frame loss from one node to another: frames of every kind and over every channel, including those for
/// other nodes that the receiver would overhear. The reverse direction is not affected. A lost frame is
/// sensed and cannot be decoded, so that the MAC does not answer it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LossSpec {
    /// Sender of the frames.
    pub from: NodeId,
    /// Receiver that loses them.
    pub to: NodeId,
    /// Selection of the lost frames, among those that were received otherwise intact.
    pub errors: ErrorModel,
}

/// Address resolution: the source of the link-layer addresses of neighbours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AddressResolution {
    /// Known from the start.
    #[default]
    Known,
    /// ARP (RFC 826) at the first packet to a neighbour, as in ns-2: one packet waits for the answer, and the
    /// next one displaces it.
    Arp,
}

/// Neighborhood RED at some or all wireless nodes.
#[derive(Clone, Debug)]
pub struct NeighborhoodSpec {
    /// Parameters of its nodes.
    pub config: neighborhood_red::Config,
    /// Nodes with Neighborhood RED.
    pub members: NodeSet,
    /// Members with a record of the real neighbourhood queue beside its estimate, ten times a second. Default
    /// none. It costs time and changes nothing.
    pub observed: BTreeSet<NodeId>,
    /// Weight of the latest sample in the average of the real queue, as RED averages a queue. Above 0, at most
    /// 1; by default the `weight` of the estimate, so that both averages follow as fast (NRED Figs. 6 and 7,
    /// "Real avg queue size").
    pub observed_weight: f64,
}

/// Set of nodes that take part in something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NodeSet {
    /// All.
    All,
    /// These.
    Some(BTreeSet<NodeId>),
}

impl NodeSet {
    /// Returns whether `node` takes part.
    #[must_use]
    pub fn contains(&self, node: NodeId) -> bool {
        match self {
            Self::All => true,
            Self::Some(nodes) => nodes.contains(&node),
        }
    }
}

/// The queue of an interface.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct QueueSpec {
    /// Most packets it holds.
    pub capacity: NonZeroU16,
    /// Service order of the packets.
    pub service_order: Service,
    /// Queue discipline: the choice of accepted packets.
    pub discipline: Discipline,
}

/// Queue discipline: the choice of packets that a queue accepts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Discipline {
    /// All that fit.
    DropTail,
    /// Fewer and fewer before that: random early detection, which drops or marks.
    Red(RedConfig),
    /// All that fit; what has waited too long is dropped or marked at the head.
    CoDel(CoDelConfig),
    /// The same for each flow, and the flows by turns. Its `service` is its own: routing messages first.
    FqCoDel(FqCoDelConfig),
    /// Packets that arrive while the queueing delay is above a target are dropped or marked at random.
    Pie(PieConfig),
    /// Two queues, for L4S and for Classic traffic, with coupled marks and drops. Its `service` is its own: routing
    /// messages first.
    DualPi2(DualPi2Config),
    /// Packets that a user-defined discipline accepts: that of this number in [`Spec::custom_algorithms`]. Its
    /// `service` is its own.
    Custom(CustomDisciplineId),
}

/// A full-duplex point-to-point link.
#[derive(Clone, Debug)]
pub struct LinkSpec {
    /// One end.
    pub a: NodeId,
    /// The other end.
    pub b: NodeId,
    /// Rate of each direction in bits per second, not 0.
    pub rate_bps: u64,
    /// Propagation delay.
    pub delay: Duration,
    /// Queue in front of each direction.
    pub queue: QueueSpec,
    /// Errors on what `a` sends, and on what `b` sends; drawn independently.
    pub errors: [ErrorModel; 2],
    /// Link-layer retransmission (ARQ). `None`: the link does not repair its losses.
    pub arq: Option<arq::Config>,
    /// Further properties of the link.
    pub impairments: links::LinkImpairments,
}

/// A time during which nothing gets through from one node to another, over the air or over a wire. The way back is not
/// affected: that would be another outage. What counts is the moment at which a frame has arrived whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutageSpec {
    /// Sender that is not heard.
    pub from: NodeId,
    /// Receiver that does not hear.
    pub to: NodeId,
    /// First moment.
    pub start: Instant,
    /// The moment at which it is over; after `start`. [`Instant::FAR_FUTURE`]: never.
    pub end: Instant,
    /// Blocked frames or packets.
    pub blocks: OutageEffect,
}

/// Traffic that an outage blocks. Over a wire there is no difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutageEffect {
    /// Frames, as on a link that is too weak in one direction: they occupy the medium, are sensed and interfere, and
    /// cannot be decoded. So the MAC answers none, and its own answers do not get through in an outage of the way back.
    Frames,
    /// Packets, as a filter by MAC address between MAC and network layer does (`iptables -m mac`; the test bed of the
    /// TPA paper, §4.1): frames are received, answered and heeded, and the packets in them are dropped.
    Packets,
}

/// A wireless node that broadcasts notices of Neighborhood RED which no congestion asked for, whether it has
/// Neighborhood RED itself or not.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NoticeFloodSpec {
    /// Node that sends the notices.
    pub node: NodeId,
    /// Time of the first notice.
    pub start: Instant,
    /// Time from which no notice is sent. [`Instant::FAR_FUTURE`]: never.
    pub stop: Instant,
    /// Time from one to the next, not zero.
    pub interval: Duration,
    /// Normalised drop probability (`normalized_pb`) in the notices.
    pub normalized_pb: NormalizedPb,
    /// Lifetime; the notice has room for whole milliseconds up to 65.535 s.
    pub lifetime: Duration,
    /// Forged content beyond that.
    pub forge: ForgedField,
}

/// Forged content of a hostile node's notices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ForgedField {
    /// Nothing: it says that it suffers itself.
    Nothing,
    /// The sender: each notice has another source address, which no node has.
    Senders,
    /// The sufferer: each notice is passed on for another node, which does not exist.
    StarvedNodes,
}

/// Routing of packets. Where agents route, nodes without a radio know the shortest routes over wires, and a
/// node with both is a gateway between the two.
#[derive(Clone, Debug)]
pub enum RoutingSpec {
    /// Shortest paths over the positions at the start of the run, never changed.
    Static,
    /// AODV on every node with a radio.
    Aodv(aodv::Config),
    /// OLSR on every node with a radio.
    Olsr(olsr::Config),
    /// DSR on every node with a radio.
    Dsr(dsr::Config),
}

impl RoutingSpec {
    /// Returns whether a routing protocol runs on the nodes.
    #[must_use]
    pub const fn has_agents(&self) -> bool {
        !matches!(self, Self::Static)
    }
}

/// Notifications to transport endpoints of the state of the route to their peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum FailureNotification {
    /// Nothing.
    #[default]
    None,
    /// Explicit link failure notification: with AODV, DSR or OLSR an end is notified by the routing agent of
    /// its own node that the route to its peer is lost, and that there is one again. With static routes the
    /// node with the MAC that gave a packet up, or that has no route for it, sends ICMP Destination
    /// Unreachable (RFC 792) to the packet's source; a return is not reported. TCP takes no notice.
    Elfn,
}

/// One flow.
#[derive(Clone, Debug)]
pub struct FlowSpec {
    /// Name in results.
    pub name: String,
    /// Source of the data.
    pub src: NodeId,
    /// Destination of the data.
    pub dst: NodeId,
    /// Time at which the application starts.
    pub start: Instant,
    /// Time at which the application stops. A connection is aborted by the end that opened it, and later
    /// arrivals do not count. [`Instant::FAR_FUTURE`]: never.
    pub stop: Instant,
    /// Traffic of the application, and the transport that carries it.
    pub traffic: Traffic,
    /// Transports of the end at the source and the end at the sink in place of that: beyond a middlebox that
    /// splits the connection.
    pub end_transports: [Option<Transport>; 2],
    /// Labels given by the caller. Of no effect.
    pub labels: FlowLabels,
}

/// Labels of a flow in results, beside its name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FlowLabels {
    /// Transport: `tcp-newreno`.
    pub transport: String,
    /// Kind of traffic: `bulk`.
    pub kind: String,
    /// The class that it belongs to; empty: none.
    pub class: String,
}

/// The traffic of a flow.
#[derive(Clone, Debug, PartialEq)]
pub enum Traffic {
    /// A bulk transfer.
    Bulk {
        /// Transport and configuration of both endpoints.
        over: Transport,
        /// Bytes to transfer; `None`: as many as the time allows.
        bytes: Option<u64>,
    },
    /// Constant bit rate over UDP.
    Cbr {
        /// UDP payload of a packet in bytes, 1 to 65,507.
        packet_bytes: u32,
        /// Time from one packet to the next, not zero.
        interval: Duration,
    },
    /// Bursts over UDP: a constant rate while on, nothing while off. It begins on.
    OnOff {
        /// UDP payload of a packet in bytes, 1 to 65,507.
        packet_bytes: u32,
        /// Time from one packet to the next while on, not zero.
        interval: Duration,
        /// Lengths of on times in seconds. One too short for a second packet is one packet.
        on: RandomVariable,
        /// Lengths of off times in seconds.
        off: RandomVariable,
    },
    /// Requests and responses over one connection. The flow's `dst` is the client: it opens the connection and
    /// asks; its `src` is the server, where the data come from.
    Exchange {
        /// Transport and configuration of both endpoints.
        over: Transport,
        /// Messages of the client and the server, and their times.
        exchange: ExchangeSpec,
    },
    /// A recorded sequence of packets, from `src` to `dst`.
    Recorded {
        /// Transport and configuration of both endpoints; `None`: each packet is a datagram of UDP.
        over: Option<Transport>,
        /// The packets in the order of time; at least one. Datagrams have at most 65,507 bytes.
        packets: Arc<[RecordedPacket]>,
    },
}

/// A packet that was recorded, or whatever was handed over at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordedPacket {
    /// Time since the start of the flow.
    pub at: Duration,
    /// Number of bytes, above zero.
    pub bytes: u64,
}

/// Requests and responses, one transaction after the other.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ExchangeSpec {
    /// Bytes of a request; at least 1 is sent.
    pub request_bytes: RandomVariable,
    /// Bytes of a response; at least 1 is sent.
    pub response_bytes: RandomVariable,
    /// Time from the end of a response to the next request, in seconds.
    pub think_s: RandomVariable,
    /// Number of transactions, after which the client closes the connection. `None`: as many as the time
    /// allows.
    pub transactions: Option<NonZeroU64>,
}

impl Traffic {
    /// Returns the transport that carries it; `None` for datagrams.
    #[must_use]
    pub const fn transport(&self) -> Option<&Transport> {
        match self {
            Self::Bulk { over, .. } | Self::Exchange { over, .. } => Some(over),
            Self::Recorded { over, .. } => over.as_ref(),
            Self::Cbr { .. } | Self::OnOff { .. } => None,
        }
    }
}
