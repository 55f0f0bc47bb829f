//! The path of packets through a node, and what stands in it.
//!
//! A node has a list of machines in the path, from its interfaces inward. A packet that comes in passes them in this order, one that
//! goes out in the other. Each lets it pass, marks it, keeps it or drops it, and may send packets of its own; after each input it is
//! drained like any other machine. A new one is a variant of [`Seat`], and says what it does in an `impl` of [`InPath`].

use crate::alarm::Alarm;
use crate::neighborhood::Neighborhood;
use crate::node::Port;
use crate::packet::{Body, Packet};
use crate::spec::Spec;
use crate::trace::{DropReason, PacketView};
use hopline_core::{Instant, NodeId};
use hopline_queue::Class;
use hopline_queue::neighborhood_red::ChannelTime;
use hopline_wire::ipv4::Header;
use std::net::Ipv4Addr;

/// A machine in the path of packets. What it does not care for passes.
pub(crate) trait InPath {
    /// A radio of this node decoded a packet of a neighbour, whoever it was for. It may come in afterwards.
    fn hear(&mut self, _now: Instant, _packet: Passing<'_>, _from: NodeId) {}

    /// A packet comes in.
    fn ingress(&mut self, _now: Instant, _packet: Passing<'_>) -> Passage {
        Passage::Pass
    }

    /// A packet goes out, to this neighbour or to all.
    fn egress(&mut self, _now: Instant, _packet: Passing<'_>, _next_hop: Ipv4Addr) -> Passage {
        Passage::Pass
    }

    /// Does what is due.
    fn wake(&mut self, now: Instant);

    /// When to be woken.
    fn next_wake(&self) -> Option<Instant>;

    /// The next thing that it wants of its node.
    fn poll(&mut self, now: Instant) -> Option<Wish>;

    /// What the radio did so far, as it wished to know.
    fn take_channel_time(&mut self, _now: Instant, _time: ChannelTime) {}
}

/// A packet as it passes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Passing<'a> {
    pub(crate) at: Port,
    pub(crate) class: Class,
    pub(crate) view: PacketView<'a>,
}

impl Passing<'_> {
    /// Whether it is somebody's data: neither routing nor a notice.
    pub(crate) const fn is_traffic(&self) -> bool {
        self.view.packet.is_traffic()
    }

    pub(crate) const fn packet(&self) -> &Packet {
        self.view.packet
    }
}

/// What becomes of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub(crate) enum Passage {
    Pass,
    /// It passes with a mark (RFC 3168).
    Marked,
    Dropped(DropReason),
}

/// What a machine in the path wants.
#[derive(Debug)]
pub(crate) enum Wish {
    /// A packet of its own sent to a neighbour, or to all.
    Send(Sending),
    /// To be told what the radio did so far.
    ChannelTime,
}

/// A packet to send to a neighbour, or to all. Its length is that of its own headers and data.
#[derive(Debug)]
pub(crate) struct Sending {
    pub(crate) ip: Header,
    pub(crate) body: Body,
    pub(crate) len_bytes: u32,
    pub(crate) next_hop: Ipv4Addr,
}

/// What stands in the path of packets at `node`, from its interfaces inward.
pub(crate) fn seats(spec: &Spec, node: NodeId, key: (u64, u64)) -> Vec<Seat> {
    let radio = spec.radio.as_ref().filter(|_| spec.nodes[node.index()].is_wireless());
    let neighborhood = radio.and_then(|radio| Neighborhood::of(radio, node, key));
    neighborhood.map(Sitter::NeighborhoodRed).map(Seat::new).into_iter().collect()
}

/// A machine in the path, and when it will be woken.
#[derive(Debug)]
pub(crate) struct Seat {
    pub(crate) machine: Sitter,
    pub(crate) alarm: Alarm,
}

/// The machine in a seat.
#[derive(Debug)]
pub(crate) enum Sitter {
    NeighborhoodRed(Box<Neighborhood>),
}

impl Seat {
    const fn new(machine: Sitter) -> Self {
        Self { machine, alarm: Alarm::OFF }
    }
}

impl Sitter {
    pub(crate) fn in_path(&mut self) -> &mut dyn InPath {
        match self {
            Self::NeighborhoodRed(machine) => machine.as_mut(),
        }
    }
}
