//! The contract of middleboxes in the path of packets through a node.
//!
//! A node has a list of middleboxes, from its interfaces inward. A packet that comes in passes them in this
//! order, one that goes out in the other. Each lets it pass, marks it, takes it or drops it, and may send
//! packets of its own; after each input it is drained like any other state machine. A packet that it has
//! taken is sent on later, or absorbed: then the counters of the flow show that nothing was lost. A new one
//! implements [`Middlebox`], and is a variant of [`MiddleboxKind`](crate::seat::Sitter).

use crate::ids::Port;
use crate::outcome::MiddleboxCounts;
use crate::packet::{Body, FlowPacketId, Handle, Packet, PacketAccount, PacketView};
use crate::trace::DropReason;
use hopline_core::{Instant, Length, NodeId};
use hopline_queue::Class;
use hopline_queue::neighborhood_red::ChannelTime;
use hopline_transport::any::Segment;
use hopline_wire::dot11::MacAddr;
use hopline_wire::handoff::PriorReception;
use hopline_wire::ipv4::Header;
use std::net::Ipv4Addr;

/// A middlebox. Packets that do not concern it pass.
pub(crate) trait Middlebox: core::fmt::Debug {
    /// Handles a packet of a neighbour, for any destination, that a radio of this node decoded. It may come
    /// in afterwards.
    fn handle_overheard(&mut self, _now: Instant, _packet: PassingPacket<'_>, _from: NodeId) {}

    /// Handles a packet that comes in.
    fn handle_ingress(&mut self, _now: Instant, _packet: PassingPacket<'_>) -> PathVerdict {
        PathVerdict::Pass
    }

    /// Handles a packet that goes out, to this neighbour or to all.
    fn handle_egress(
        &mut self,
        _now: Instant,
        _packet: PassingPacket<'_>,
        _next_hop: Ipv4Addr,
    ) -> PathVerdict {
        PathVerdict::Pass
    }

    /// Handles a packet that a queue of this node has dropped: it came when there was no room, or has waited
    /// too long.
    fn handle_queue_drop(&mut self, _now: Instant, _packet: &Packet) {}

    /// Starts serving a mobile host from this node.
    fn handle_arrival(&mut self, _now: Instant, _mobile: Ipv4Addr, _past: PriorReception) {}

    /// Stops serving a mobile host from this node.
    fn handle_departure(&mut self, _now: Instant, _mobile: Ipv4Addr) {}

    /// Handles a handoff of this node, a mobile host, to another station.
    fn handle_handoff(&mut self) {}

    /// Does what is due.
    fn handle_timeout(&mut self, now: Instant);

    /// Returns the time at which it is to be woken.
    fn poll_timeout(&self) -> Option<Instant>;

    /// Returns the next action that it requests of its node.
    fn poll_action(&mut self, now: Instant) -> Option<Action>;

    /// Returns its counters so far, if it is a TCP middlebox.
    fn counts(&self) -> MiddleboxCounts {
        MiddleboxCounts::default()
    }

    /// Returns the number of packets that it has [taken](PathVerdict::Held) and not given back.
    fn held(&self) -> usize {
        0
    }

    /// Receives the time that the radio has spent in each state so far, as requested.
    fn handle_channel_time(&mut self, _now: Instant, _time: ChannelTime) {}
}

/// A packet as it passes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PassingPacket<'a> {
    /// To take it by.
    pub(crate) handle: Handle,
    pub(crate) onward: PacketDirection,
    pub(crate) view: PacketView<'a>,
}

/// Direction in which a packet goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PacketDirection {
    /// It came from a neighbour; at a tap, from this node itself.
    In { at: Port, from: NodeId },
    /// It goes to a neighbour, or to all.
    Out { at: Port, to: MacAddr, class: Class, next_hop: Ipv4Addr },
}

impl PassingPacket<'_> {
    /// Returns the interface that it came by, or goes by.
    pub(crate) const fn at(&self) -> Port {
        match self.onward {
            PacketDirection::In { at, .. } | PacketDirection::Out { at, .. } => at,
        }
    }

    pub(crate) const fn class(&self) -> Class {
        match self.onward {
            PacketDirection::In { .. } => Class::Data,
            PacketDirection::Out { class, .. } => class,
        }
    }

    /// Returns whether it is traffic: neither routing nor a notice.
    pub(crate) fn is_traffic(&self) -> bool {
        self.view.packet.is_traffic()
    }

    pub(crate) const fn packet(&self) -> &Packet {
        self.view.packet
    }
}

/// Verdict on a packet.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub(crate) enum PathVerdict {
    Pass,
    /// It passes with a mark (RFC 3168).
    Marked,
    /// The machine has it, with the hold on it, until it [lets it go on](Action::Resume) or [absorbs it](Action::Absorb).
    Held,
    /// It passes with this segment in place of its own. Its length stays: what is taken out is filled up.
    Rewritten(Segment<Length>),
    Dropped(DropReason),
}

/// Action that a middlebox requests.
#[derive(Debug)]
pub(crate) enum Action {
    /// A packet of its own sent to a neighbour, or to all, past the machines between this one and the interface.
    Send(MiddleboxPacket),
    /// Forward a packet of its own by the routes of this node.
    Route(MiddleboxPacket),
    /// A packet that it took goes on as it would have, past the machines that it has not passed.
    Resume(Handle, PacketDirection),
    /// Consume a packet that it took: its source is served, or notified, by this middlebox.
    Absorb(Handle),
    /// A packet that it took has others within, which are its own from now on.
    Decapsulate(Handle),
    /// It has no room for a packet that it took.
    Reject(Handle),
    /// The queue has dropped a packet that it took, within one of its own: the other machines are to know.
    ReportDrop(Handle),
    /// Release a packet that it took or that was within another: it has another holder, or it is lost.
    Release(Handle),
    /// Asks for the time that the radio has spent in each state so far.
    ChannelTime,
}

/// A packet to send to a neighbour, or to all. Its length is that of its own headers and data.
#[derive(Debug)]
pub(crate) struct MiddleboxPacket {
    /// Account of the packet: [`PacketAccount::Control`], or that of a flow, in the name of the end with its source
    /// address.
    pub(crate) account: PacketAccount,
    pub(crate) ip: Header,
    pub(crate) body: Body,
    pub(crate) len_bytes: u32,
    pub(crate) next_hop: Ipv4Addr,
    pub(crate) class: Class,
    /// The packet of the flow that it repeats; `None`: it is a new one.
    pub(crate) copy_of: Option<FlowPacketId>,
}
