//! What makes up a node.

use crate::alarm::Alarm;
use crate::arp::Addresses;
use crate::neighborhood::Neighborhood;
use crate::outcome::{Drops, Frames};
use crate::packet::Handle;
use crate::spec::{AddressResolution, Discipline, QueueSpec, RadioSpec};
use hopline_core::{Instant, Machine, NodeId, Purpose, Stream};
use hopline_queue::drop_tail::Class;
use hopline_queue::{CoDel, DropTail, FqCoDel, InterfaceQueue, Red};
use hopline_radio::mac::config::Tap;
use hopline_radio::mac::{self, Activity, Mac};
use hopline_radio::phy::errors::ErrorProcess;
use hopline_radio::phy::reception::Receiver;
use hopline_routing::aodv::Aodv;
use hopline_routing::dsr::Dsr;
use hopline_routing::olsr::Olsr;
use hopline_wire::dot11::MacAddr;
use std::collections::VecDeque;
use std::net::Ipv4Addr;

/// A node: its interfaces and its routing agent. Transport endpoints belong to the flows.
#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) radio: Option<Radio>,
    /// Neighbours over wired links, and which end of which link leads there.
    pub(crate) wires: Vec<(NodeId, WireEnd)>,
    /// Boxed: most events of a node do not touch it.
    pub(crate) agent: Option<Box<Agent>>,
    /// Of nodes with Neighborhood RED; boxed for the same reason.
    pub(crate) neighborhood: Option<Box<Neighborhood>>,
    pub(crate) drops: Drops,
    /// Packets marked by its queues.
    pub(crate) marks: u64,
    pub(crate) frames: Frames,
    /// Routing packets sent, those passed on included.
    pub(crate) routing_packets: u64,
    /// Their bytes, IP headers included.
    pub(crate) routing_bytes: u64,
}

/// One end of a wired link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WireEnd {
    pub(crate) link: u32,
    /// 0 or 1.
    pub(crate) side: u8,
}

/// A routing agent and when it will be woken.
#[derive(Debug)]
pub(crate) struct Agent {
    pub(crate) machine: Routing,
    pub(crate) alarm: Alarm,
}

/// The machine of a routing agent.
#[derive(Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "boxed as an agent, and all agents of a network are of one kind"
)]
pub(crate) enum Routing {
    Aodv(Aodv<Handle>),
    Olsr(Olsr),
    Dsr(Dsr<Handle>),
}

impl Routing {
    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        match self {
            Self::Aodv(aodv) => aodv.handle_timeout(now),
            Self::Olsr(olsr) => olsr.handle_timeout(now),
            Self::Dsr(dsr) => dsr.handle_timeout(now),
        }
    }

    /// Whether there is a route to `peer`.
    pub(crate) fn has_route(&self, now: Instant, peer: Ipv4Addr) -> bool {
        match self {
            Self::Aodv(aodv) => aodv.has_route(now, peer),
            Self::Olsr(olsr) => olsr.route(peer).is_some(),
            Self::Dsr(dsr) => dsr.has_route(now, peer),
        }
    }

    /// When the machine is to be woken.
    pub(crate) fn next_wake(&self) -> Option<Instant> {
        match self {
            Self::Aodv(aodv) => aodv.poll_timeout().map(|(at, _)| at),
            Self::Olsr(olsr) => olsr.poll_timeout().map(|(at, _)| at),
            Self::Dsr(dsr) => dsr.poll_timeout().map(|(at, _)| at),
        }
    }
}

/// Radio, MAC and interface queue of a node. Laid out as written: what every signal touches comes first.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Radio {
    pub(crate) receiver: Receiver,
    /// The carrier as last reported to the MAC.
    pub(crate) carrier: Activity,
    /// The MAC's.
    pub(crate) alarm: Alarm,
    pub(crate) mac: Mac<Handle>,
    pub(crate) queue: InterfaceQueue<Queued>,
    /// Between the network layer and the queue.
    pub(crate) down: VecDeque<Queued>,
    /// Between the MAC and the network layer.
    pub(crate) up: VecDeque<(Handle, MacAddr)>,
    /// `None`: all addresses are known.
    pub(crate) addresses: Option<Box<Addresses>>,
    pub(crate) errors: ErrorProcess,
    pub(crate) error_stream: Stream,
}

/// A packet on its way to the MAC.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Queued {
    pub(crate) handle: Handle,
    pub(crate) to: MacAddr,
    pub(crate) class: Class,
}

impl Node {
    /// Counts anew from `now` on.
    pub(crate) fn restart(&mut self, now: Instant) {
        (self.drops, self.frames, self.marks) = Default::default();
        (self.routing_packets, self.routing_bytes) = (0, 0);
        if let Some(radio) = &mut self.radio {
            radio.mac.restart_airtime(now);
        }
        if let Some(series) = self.neighborhood.as_mut().and_then(|neighborhood| neighborhood.series.as_mut())
        {
            series.counted_from = series.samples.len();
        }
    }
}

/// The queue that `spec` describes, with random numbers of its own if it needs any.
pub(crate) fn queue<T: Copy>(spec: &QueueSpec, random: impl FnOnce() -> Stream) -> InterfaceQueue<T> {
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
    }
}

impl Radio {
    pub(crate) fn new(spec: &RadioSpec, tap: Tap, node: NodeId, (seed, run): (u64, u64)) -> Self {
        let backoff = Stream::new(seed, run, node, Purpose::Backoff);
        let mac = mac::Config { tap, ..spec.mac.clone() };
        Self {
            mac: Mac::new(mac, MacAddr::of_node(node), backoff),
            receiver: Receiver::default(),
            carrier: Activity::Quiet,
            alarm: Alarm::OFF,
            queue: queue(&spec.queue, || Stream::new(seed, run, node, Purpose::Queue)),
            down: VecDeque::new(),
            up: VecDeque::new(),
            addresses: match spec.address_resolution {
                AddressResolution::Known => None,
                AddressResolution::Arp => Some(Box::default()),
            },
            errors: ErrorProcess::new(spec.errors),
            error_stream: Stream::new(seed, run, node, Purpose::Errors),
        }
    }
}
