//! Identifiers of radios, ends of wires, ends of flows and interfaces. They depend on no other part of a world.

use hopline_core::{LinkId, NodeId};

/// A radio, counted from 0 in the order of nodes, and at a node in that of its interfaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct StationId(pub(crate) u32);

impl StationId {
    pub(crate) const fn index(self) -> usize {
        self.0 as usize
    }
}

/// One end of a wired link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WireEnd {
    pub(crate) link: u32,
    /// 0 or 1.
    pub(crate) side: u8,
}

/// Interface over which a node sends and receives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Interface {
    Radio(StationId),
    Wire {
        neighbour: NodeId,
        end: WireEnd,
    },
    /// Port where packets from outside enter and leave.
    Tap,
    /// To mobile hosts that are at home here, wherever they are now.
    Tunnel,
}

/// An interface as a packet passes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Port {
    pub(crate) link: LinkId,
    pub(crate) interface: Interface,
}

impl Port {
    /// Tunnel of a home agent. It is in no list: nothing comes by it.
    pub(crate) const TUNNEL: Self = Self { link: LinkId(u32::MAX), interface: Interface::Tunnel };
}

/// End of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The end that sends the data.
    Source,
    /// The end that receives the data.
    Sink,
}

impl Side {
    pub(crate) const fn other(self) -> Self {
        match self {
            Self::Source => Self::Sink,
            Self::Sink => Self::Source,
        }
    }
}
