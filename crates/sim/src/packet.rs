//! Packets: in a slab, handed around by index, shared by counting.
//!
//! Once the slab, the flights and the queues have grown, the hot path allocates no memory for a packet. DSR allocates one
//! header a hop, as its headers change at every hop.

mod handover;
mod tap_frame;

pub(crate) use self::handover::{StateTransfer, TransferredState};
pub use self::tap_frame::TapFrame;
use crate::drops::{DropCounts, DropReason};
use hopline_core::{FlowId, Instant, Length, NodeId};
use hopline_proxy::arq;
use hopline_proxy::dproxy::opaque;
use hopline_routing::router::Message;
use hopline_transport::any::Segment;
use hopline_wire::ipv4::{Ecn, Header, Protocol, RawPacket};
use hopline_wire::{arp, dproxy, handoff, icmp, ncn, udp};
use std::collections::BTreeMap;
use std::net::Ipv4Addr;

/// A packet on its way: which one, how many hops it may still take, and whether it was marked. The packet itself never
/// changes, so that all copies in queues and in the air share it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Handle {
    pub(crate) id: u32,
    pub(crate) ttl: u8,
    pub(crate) mark: Mark,
}

/// Congestion mark set by a queue on the path (RFC 3168).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mark {
    /// Its ECN field is the one it started with.
    None,
    /// Congestion experienced.
    Congestion,
}

/// A packet.
#[derive(Clone, Debug)]
pub struct Packet {
    /// IP header; its TTL is the one the packet started with.
    pub ip: Header,
    /// Content of the packet.
    pub body: Body,
    /// Length in bytes, IP header included.
    pub len_bytes: u32,
    /// Whom it is counted for.
    pub account: PacketAccount,
    /// Time at which its source created it.
    pub made: Instant,
    /// The packet of its direction of a flow that it is, or of which it is a copy.
    pub(crate) original: FlowPacketId,
    /// Its role among those.
    pub(crate) role: PacketRole,
    /// Serial number of the packet in the run, from 0, in order of creation.
    pub serial: u64,
}

/// A packet of one direction of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FlowPacketId {
    /// Its number in that direction, from 0.
    pub(crate) number: u64,
    /// Time at which it was handed to the IP layer.
    pub(crate) made: Instant,
}

/// Role of a packet among those of one direction of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PacketRole {
    /// The end of the flow has sent it.
    Original,
    /// Packet made by a middlebox, in the name of the end.
    MiddleboxMade,
    /// Copy of an earlier packet, sent again by a middlebox.
    Copy,
}

/// Whom a packet is counted for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacketAccount {
    /// A flow of the scenario.
    Flow(FlowId),
    /// The network itself: routing, address resolution, reports, notices; and what carries another packet.
    Control,
    /// No known owner: it came from outside ([`World::inject`](crate::World::inject),
    /// [`World::inject_frame`](crate::World::inject_frame)).
    External,
}

impl PacketAccount {
    /// Returns the flow, if it is one's.
    #[must_use]
    pub const fn flow(self) -> Option<FlowId> {
        match self {
            Self::Flow(flow) => Some(flow),
            Self::Control | Self::External => None,
        }
    }
}

/// Content of a packet.
#[derive(Clone, Debug)]
pub enum Body {
    /// A segment of a connection.
    Segment(Segment<Length>),
    /// A datagram of a flow.
    Udp {
        /// The datagram.
        datagram: udp::Datagram<Length>,
        /// Its number within the flow, from 0.
        number: u32,
    },
    /// A routing message, alone or in front of the content of another packet.
    Routing {
        /// The message.
        message: Message,
        /// The other packet.
        payload: Option<InnerPacket>,
    },
    /// A report that another packet could not be passed on.
    Icmp(icmp::Unreachable),
    /// A notice of Neighborhood RED.
    Ncn(ncn::Notice),
    /// A question about a link-layer address, or the answer. There is no IP header.
    Arp(arp::Message),
    /// A message between base stations, home agents and mobile hosts.
    Handoff(handoff::TaggedMessage),
    /// Connections that follow a mobile host to another station.
    Handover(StateTransfer),
    /// A frame of a link that repairs its own losses, with the packets in it.
    Link(Box<LinkFrame>),
    /// A message between both ends of a link about its losses.
    DProxy(dproxy::Sealed),
    /// Another packet, on its way through a tunnel (RFC 2003).
    Tunnel(InnerPacket),
    /// A packet from outside: it is its bytes.
    External(RawPacket),
    /// An Ethernet frame from outside.
    Ethernet(TapFrame),
}

/// A frame of a link that repairs its own losses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LinkFrame {
    /// Frame of a link that acknowledges each frame.
    Arq(arq::Frame<InnerPacket>),
    /// Frame of a link that requests missing frames.
    Opaque(opaque::Frame<InnerPacket>),
}

impl LinkFrame {
    /// Returns the packets in it.
    pub fn packets(&self) -> impl Iterator<Item = &InnerPacket> {
        let (arq, opaque) = match self {
            Self::Arq(frame) => (Some(frame.packets()), None),
            Self::Opaque(frame) => (None, Some(frame.packets())),
        };
        arq.into_iter().flatten().chain(opaque.into_iter().flatten())
    }
}

/// A packet within another, which holds it. [`PacketView::inner`] shows what it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InnerPacket(pub(crate) Handle);

/// A packet as it passes: its contents, which never change, and what the way has made of its IP header.
#[derive(Clone, Copy, Debug)]
pub struct PacketView<'a> {
    /// The packet.
    pub packet: &'a Packet,
    /// Time to live as the IP header would have it here.
    pub ttl: u8,
    /// Packet that it carries, if it carries one.
    pub inner: Option<&'a Packet>,
    /// ECN field as the IP header would have it here: queues on the way may have marked the packet.
    pub ecn: Ecn,
}

impl Packet {
    /// Returns whether it is traffic or carries a packet that is: neither routing nor a notice.
    pub(crate) fn is_traffic(&self) -> bool {
        !matches!(self.account, PacketAccount::Control) || self.inner().is_some()
    }

    /// Returns the packet within.
    pub(crate) fn inner(&self) -> Option<Handle> {
        match self.body {
            Body::Routing { payload: Some(InnerPacket(inner)), .. } | Body::Tunnel(InnerPacket(inner)) => {
                Some(inner)
            }
            Body::Link(ref frame) => frame.packets().next().map(|&InnerPacket(inner)| inner),
            _ => None,
        }
    }

    /// Returns all packets that it holds: [`Packet::carried`], or those of a frame.
    pub(crate) fn inner_packets(&self) -> Vec<Handle> {
        match &self.body {
            Body::Link(frame) => frame.packets().map(|&InnerPacket(inner)| inner).collect(),
            _ => self.inner().into_iter().collect(),
        }
    }
}

/// Hops a packet may take (RFC 1700: 64).
const DEFAULT_TTL: u8 = 64;

/// Creates a header with the default hop limit.
pub(crate) fn header(src: Ipv4Addr, dst: Ipv4Addr, protocol: Protocol) -> Header {
    Header { src, dst, ttl: DEFAULT_TTL, protocol, ecn: Ecn::NotCapable, id: 0 }
}

/// All packets in existence.
#[derive(Clone, Debug, Default)]
pub(crate) struct PacketSlab {
    slots: Vec<PacketSlot>,
    free: Vec<u32>,
    /// Packets ever stored.
    stored: u64,
    /// Packets of flows and frames of taps that were freed without a [`DropState`].
    unaccounted: u64,
    /// Frames of each tap that were freed without having arrived, by the last reason for which a copy was dropped.
    lost_frames: BTreeMap<NodeId, DropCounts>,
}

#[derive(Clone, Debug)]
struct PacketSlot {
    packet: Packet,
    /// Holders: queues, MACs, buffers, frames in the air.
    holders: u32,
    arrival: ArrivalState,
    fate: DropState,
}

/// Fate of a packet: a reason was counted for which it, or a copy of it, was dropped, or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DropState {
    NotDropped,
    /// The last reason.
    Dropped(DropReason),
}

/// Arrival state of a packet at its destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ArrivalState {
    /// The packet has not arrived, or this is the first copy to arrive.
    First,
    /// It has; this is another copy.
    Duplicate,
}

impl PacketSlot {
    /// Returns whether the packet is a flow's or a tap's, has not arrived, and was not dropped for a reason that is counted.
    fn is_unaccounted(&self) -> bool {
        (self.packet.account.flow().is_some() || matches!(self.packet.body, Body::Ethernet(_)))
            && self.arrival == ArrivalState::First
            && self.fate == DropState::NotDropped
    }
}

impl PacketSlab {
    /// Stores `packet` with one holder, the caller, and numbers it.
    pub(crate) fn insert(&mut self, packet: Packet) -> Handle {
        let packet = Packet { serial: self.stored, ..packet };
        self.stored += 1;
        self.store(packet)
    }

    fn store(&mut self, packet: Packet) -> Handle {
        let ttl = packet.ip.ttl;
        let slot =
            PacketSlot { packet, holders: 1, arrival: ArrivalState::First, fate: DropState::NotDropped };
        let id = match self.free.pop() {
            Some(id) => {
                self.slots[id as usize] = slot;
                id
            }
            None => {
                self.slots.push(slot);
                (self.slots.len() - 1) as u32
            }
        };
        Handle { id, ttl, mark: Mark::None }
    }

    /// Returns the same packet, with its number, and another body of the same length. The caller's hold is on
    /// the new one; any other holder of the old one, such as a MAC that waits for an acknowledgment, sees no
    /// change.
    pub(crate) fn rewrite(&mut self, handle: Handle, body: Body) -> Handle {
        let packet = Packet { body, ..self.get(handle).clone() };
        let arrival = self.record_arrival(handle);
        let rewritten = self.store(packet);
        self.slots[rewritten.id as usize].arrival = arrival;
        self.release(handle);
        Handle { ttl: handle.ttl, mark: handle.mark, ..rewritten }
    }

    pub(crate) fn get(&self, handle: Handle) -> &Packet {
        &self.slots[handle.id as usize].packet
    }

    /// Its length in bytes, IP header included.
    pub(crate) fn len(&self, handle: Handle) -> u32 {
        self.get(handle).len_bytes
    }

    pub(crate) fn view(&self, handle: Handle) -> PacketView<'_> {
        let packet = self.get(handle);
        let carried = packet.inner().map(|inner| self.get(inner));
        PacketView { packet, ttl: handle.ttl, ecn: self.ecn(handle), inner: carried }
    }

    /// Returns the ECN field as the IP header would have it here.
    pub(crate) fn ecn(&self, handle: Handle) -> Ecn {
        match handle.mark {
            Mark::None => self.get(handle).ip.ecn,
            Mark::Congestion => Ecn::CongestionExperienced,
        }
    }

    /// Adds a holder.
    pub(crate) fn retain(&mut self, handle: Handle) {
        self.slots[handle.id as usize].holders += 1;
    }

    /// Removes a holder; the last one frees the slot, and releases the packets within.
    pub(crate) fn release(&mut self, handle: Handle) {
        let slot = &mut self.slots[handle.id as usize];
        debug_assert!(slot.holders > 0, "packet {} released too often", handle.id);
        slot.holders -= 1;
        if slot.holders == 0 {
            self.unaccounted += u64::from(slot.is_unaccounted());
            self.free.push(handle.id);
            match &slot.packet.body {
                Body::Ethernet(TapFrame { tap, .. }) => {
                    if let (ArrivalState::First, DropState::Dropped(reason)) = (slot.arrival, slot.fate) {
                        self.lost_frames.entry(*tap).or_default().count(reason);
                    }
                }
                Body::Link(_) => {
                    slot.packet.inner_packets().into_iter().for_each(|inner| self.release(inner))
                }
                _ => {
                    if let Some(carried) = slot.packet.inner() {
                        self.release(carried);
                    }
                }
            }
        }
    }

    /// Returns whether a packet of a flow or a frame of a tap is lost, and nothing has counted it, when this hold on it, or on
    /// what carries it, ends.
    pub(crate) fn is_lost_without(&self, handle: Handle) -> bool {
        let slot = &self.slots[handle.id as usize];
        let mut within = slot.packet.inner_packets().into_iter();
        slot.holders == 1 && (slot.is_unaccounted() || within.any(|inner| self.is_lost_without(inner)))
    }

    /// Records that a copy is dropped, for a reason that is counted, with the packets within.
    pub(crate) fn record_dropped(&mut self, handle: Handle, reason: DropReason) {
        let slot = &mut self.slots[handle.id as usize];
        slot.fate = DropState::Dropped(reason);
        for inner in slot.packet.inner_packets() {
            self.record_dropped(inner, reason);
        }
    }

    /// Records that a copy has reached the node it is for.
    pub(crate) fn record_arrival(&mut self, handle: Handle) -> ArrivalState {
        core::mem::replace(&mut self.slots[handle.id as usize].arrival, ArrivalState::Duplicate)
    }

    /// Returns the packets that have a holder and have not arrived.
    pub(crate) fn in_flight(&self) -> impl Iterator<Item = &Packet> {
        let held = |slot: &&PacketSlot| slot.holders > 0 && slot.arrival == ArrivalState::First;
        self.slots.iter().filter(held).map(|slot| &slot.packet)
    }

    /// Returns the number of holds on all packets.
    pub(crate) fn holders(&self) -> usize {
        self.slots.iter().map(|slot| slot.holders as usize).sum()
    }

    /// Returns the number of holds that packets have on packets within them.
    pub(crate) fn inner_holders(&self) -> usize {
        self.slots.iter().filter(|slot| slot.holders > 0).map(|slot| slot.packet.inner_packets().len()).sum()
    }

    /// Returns the frames that came in at a tap, are gone and have not arrived at another one, by reason.
    pub(crate) fn lost_frames(&self, tap: NodeId) -> DropCounts {
        self.lost_frames.get(&tap).copied().unwrap_or_default()
    }

    /// Returns the number of packets of flows and frames of taps that are gone and have neither arrived nor been dropped for a
    /// reason that is counted.
    pub(crate) fn unaccounted(&self) -> u64 {
        self.unaccounted
    }

    /// Returns the number of packets that have a holder.
    pub(crate) fn live(&self) -> usize {
        self.slots.len() - self.free.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hopline_core::NodeId;
    use hopline_wire::dsr;
    use std::sync::Arc;

    fn packet(len_bytes: u32) -> Packet {
        let ip = Header {
            src: NodeId(0).ipv4(),
            dst: NodeId(1).ipv4(),
            ttl: 64,
            protocol: Protocol::Udp,
            ecn: Ecn::NotCapable,
            id: 0,
        };
        let datagram = udp::Datagram { src_port: 1, dst_port: 2, payload: Length(10) };
        Packet {
            ip,
            body: Body::Udp { datagram, number: 0 },
            len_bytes,
            account: PacketAccount::Control,
            made: Instant::ZERO,
            original: FlowPacketId { number: 0, made: Instant::ZERO },
            role: PacketRole::Original,
            serial: 0,
        }
    }

    #[test]
    fn a_slot_is_freed_with_its_last_holder() {
        let mut slab = PacketSlab::default();
        let a = slab.insert(packet(1));
        slab.retain(a);
        slab.release(a);
        assert_eq!(slab.live(), 1);
        slab.release(a);
        assert_eq!(slab.live(), 0);
        let b = slab.insert(packet(2));
        assert_eq!((b.id, slab.get(b).len_bytes), (a.id, 2));
        assert_eq!(slab.get(b).serial, 1, "a slot is used again, a number is not");
    }

    #[test]
    fn a_packet_holds_its_inner_packets() {
        let mut slab = PacketSlab::default();
        let inner = slab.insert(packet(1));
        let header = Arc::new(dsr::Header { next: Some(Protocol::Udp), options: [].into_iter().collect() });
        let message = Message::Dsr { header, flow: hopline_routing::dsr::Flow::Announced };
        let body = Body::Routing { message, payload: Some(InnerPacket(inner)) };
        let outer = slab.insert(Packet { body, ..packet(2) });
        assert_eq!(slab.view(outer).inner.map(|packet| packet.len_bytes), Some(1));
        slab.retain(inner);
        slab.release(outer);
        assert_eq!(slab.live(), 1, "somebody else holds what it carried");
        slab.release(inner);
        assert_eq!(slab.live(), 0);
    }

    #[test]
    fn a_mark_belongs_to_the_marked_copy() {
        let mut slab = PacketSlab::default();
        let a = slab.insert(packet(1));
        let marked = Handle { mark: Mark::Congestion, ..a };
        assert_eq!((slab.ecn(a), slab.ecn(marked)), (Ecn::NotCapable, Ecn::CongestionExperienced));
        assert_eq!(slab.view(marked).ecn, Ecn::CongestionExperienced);
        assert_eq!(core::mem::size_of::<Handle>(), 8);
    }

    #[test]
    fn a_packet_arrives_once_and_is_in_flight_until_then() {
        let mut slab = PacketSlab::default();
        let (a, b) = (slab.insert(packet(1)), slab.insert(packet(2)));
        slab.retain(a);
        assert_eq!(
            (slab.record_arrival(a), slab.record_arrival(a)),
            (ArrivalState::First, ArrivalState::Duplicate)
        );
        assert_eq!(slab.in_flight().map(|p| p.len_bytes).collect::<Vec<_>>(), [2]);
        slab.release(b);
        assert_eq!(slab.in_flight().count(), 0);
    }
}
