//! What makes up a node.

use crate::outcome::{Drops, Frames};
use crate::packet::Handle;
use crate::spec::RadioSpec;
use hopline_core::{Instant, NodeId, Purpose, Stream};
use hopline_queue::DropTail;
use hopline_queue::drop_tail::Class;
use hopline_radio::mac::{Activity, Mac};
use hopline_radio::phy::errors::ErrorProcess;
use hopline_radio::phy::reception::Receiver;
use hopline_routing::aodv::Aodv;
use hopline_wire::dot11::MacAddr;
use std::collections::VecDeque;

/// A node: its interfaces and its routing agent. Transport endpoints belong to the flows.
#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) radio: Option<Radio>,
    /// Neighbours over wired links, and which end of which link leads there.
    pub(crate) wires: Vec<(NodeId, WireEnd)>,
    /// Boxed: most events of a node do not touch it.
    pub(crate) aodv: Option<Box<Agent>>,
    pub(crate) drops: Drops,
    pub(crate) frames: Frames,
    /// Routing messages sent, those passed on included.
    pub(crate) routing_packets: u64,
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
    pub(crate) machine: Aodv<Handle>,
    pub(crate) armed: Instant,
}

/// Radio, MAC and interface queue of a node. Laid out as written: what every signal touches comes first.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Radio {
    pub(crate) receiver: Receiver,
    /// The carrier as last reported to the MAC.
    pub(crate) carrier: Activity,
    /// The earliest wake-up of the MAC that is scheduled.
    pub(crate) armed: Instant,
    pub(crate) mac: Mac<Handle>,
    pub(crate) queue: DropTail<Queued>,
    /// Between the network layer and the queue.
    pub(crate) down: VecDeque<Queued>,
    /// Between the MAC and the network layer.
    pub(crate) up: VecDeque<(Handle, MacAddr)>,
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
        (self.drops, self.frames, self.routing_packets) = Default::default();
        if let Some(radio) = &mut self.radio {
            radio.mac.restart_airtime(now);
        }
    }
}

impl Radio {
    pub(crate) fn new(spec: &RadioSpec, node: NodeId, (seed, run): (u64, u64)) -> Self {
        let backoff = Stream::new(seed, run, node, Purpose::Backoff);
        Self {
            mac: Mac::new(spec.mac.clone(), MacAddr::of_node(node), backoff),
            receiver: Receiver::default(),
            carrier: Activity::Quiet,
            armed: Instant::FAR_FUTURE,
            queue: DropTail::new(spec.queue.capacity, spec.queue.service),
            down: VecDeque::new(),
            up: VecDeque::new(),
            errors: ErrorProcess::new(spec.errors),
            error_stream: Stream::new(seed, run, node, Purpose::Errors),
        }
    }
}
