//! Frames that enter an engine from outside, and those that leave it.

use super::address_table::Place;
use super::taps::Destination;
use super::{EgressFrame, FrameError, MAX_FRAME_LEN, Medium, TapCounts};
use crate::engine::Engine;
use crate::fingerprint::ObservedEvent;
use crate::ids::{Interface, Port};
use crate::packet::{ArrivalState, Body, Handle, PacketAccount, TapFrame, header};
use crate::queue_access::QueuedPacket;
use crate::trace::{DropReason, TraceEvent, Tracer};
use bytes::Bytes;
use hopline_core::{LinkId, NodeId};
use hopline_queue::drop_tail::Class;
use hopline_wire::dot11::MacAddr;
use hopline_wire::ethernet::{Frame, IpFields};
use hopline_wire::ip::Ecn;
use hopline_wire::ipv4::{Header, Protocol};
use std::net::Ipv4Addr;

impl Medium {
    /// Returns the medium of an interface, if neighbours are beyond it.
    fn of(interface: Interface) -> Option<Self> {
        match interface {
            Interface::Radio(_) => Some(Self::Radio),
            Interface::Wire { neighbour, .. } => Some(Self::Wire(neighbour)),
            Interface::Tap | Interface::Tunnel => None,
        }
    }
}

/// Protocol of the header that traces show for a frame: reserved (RFC 5237).
const NO_PROTOCOL: Protocol = Protocol::Other(255);

impl<T: Tracer> Engine<T> {
    /// `over`: the only medium that it may use, if there is one.
    pub(crate) fn inject_frame(
        &mut self,
        node: NodeId,
        over: Option<Medium>,
        bytes: &Bytes,
    ) -> Result<(), FrameError> {
        let now = self.kernel.now;
        let [source, destination] = [6, 0].map(|at| address(bytes, at));
        let (from, owner) = (self.owner_of(source), self.owner_of(destination));
        let tap = self.taps.get_mut(node).ok_or(FrameError::NoTap(node))?;
        if bytes.len() > MAX_FRAME_LEN {
            tap.counts.too_long += 1;
            return Err(FrameError::TooLong { len: bytes.len() });
        }
        let frame = match Frame::parse(bytes) {
            Ok(frame) => frame,
            Err(error) => {
                tap.counts.malformed += 1;
                return Err(FrameError::Malformed(error));
            }
        };
        tap.learn(now, source, from, Place::Local);
        let to = tap.destination(now, node, destination, owner);
        match to {
            Destination::Local => tap.counts.filtered += 1,
            Destination::Unknown => tap.counts.flooded += 1,
            Destination::Group | Destination::Node(_) => {}
        }
        if to != Destination::Local {
            tap.counts.accepted += 1;
            self.send_frame(node, over, frame, to);
        }
        Ok(())
    }

    pub(crate) fn poll_frame(&mut self) -> Option<EgressFrame> {
        self.taps.poll_frame()
    }

    pub(crate) fn tap_counts(&self, node: NodeId) -> TapCounts {
        let Some(tap) = self.taps.get(node) else { return TapCounts::default() };
        let came_in_here = |body: &Body| matches!(body, Body::Ethernet(TapFrame { tap, .. }) if *tap == node);
        let held = self.kernel.packets.in_flight().filter(|packet| came_in_here(&packet.body)).count();
        TapCounts { dropped: self.kernel.packets.lost_frames(node), held: held as u64, ..tap.counts }
    }

    /// Handles a frame that has come to a node from a neighbour. The caller's hold on it ends.
    pub(crate) fn receive_frame(&mut self, node: NodeId, port: Port, handle: Handle, from: NodeId) {
        let Some(medium) = Medium::of(port.interface) else { return };
        let packet = self.kernel.packets.get(handle);
        let Body::Ethernet(tap_frame) = &packet.body else { return };
        let (source, is_group) = (tap_frame.frame.source(), tap_frame.frame.destination().is_group());
        let (origin, bytes) = (tap_frame.tap, tap_frame.emit(self.kernel.packets.ecn(handle)));
        let (now, owner, is_full) = (self.kernel.now, self.owner_of(source), self.taps.is_full());
        match self.taps.get_mut(node) {
            // Not every neighbour has to want it.
            None if is_group => return self.release(node, handle, DropReason::NoRoute),
            None => return self.drop_packet(node, handle, DropReason::NoRoute),
            Some(_) if is_full => return self.drop_packet(node, handle, DropReason::QueueFull),
            Some(tap) => tap.learn(now, source, owner, Place::Behind(from)),
        }
        self.kernel.trace(node, |packets| TraceEvent::Delivered(packets.view(handle)));
        self.kernel.observe(ObservedEvent::Delivered, node, self.kernel.packets.len(handle));
        let arrival = self.kernel.packets.record_arrival(handle);
        if let (ArrivalState::First, Some(tap)) = (arrival, self.taps.get_mut(origin)) {
            tap.counts.delivered += 1;
        }
        self.taps.emit(EgressFrame { at: now, node, medium, frame: bytes });
        self.kernel.packets.release(handle);
    }

    /// Sends a frame of the tap of `node` to a neighbour, or to all.
    fn send_frame(&mut self, node: NodeId, over: Option<Medium>, frame: Frame, to: Destination) {
        let len_bytes = frame.payload().len() as u32;
        let group = frame.destination();
        let (src, dst) = (Ipv4Addr::UNSPECIFIED, Ipv4Addr::UNSPECIFIED);
        let fields = frame.ip_fields().unwrap_or(IpFields { src, dst, ports: [0; 2], ecn: Ecn::NotCapable });
        let ip = Header { ecn: fields.ecn, ..header(fields.src, fields.dst, NO_PROTOCOL) };
        let body = Body::Ethernet(TapFrame { frame, ports: fields.ports, tap: node });
        let packet = self.kernel.new_packet(ip, body, len_bytes, PacketAccount::External);
        let handle = self.kernel.packets.insert(packet);
        self.kernel.trace(node, |packets| TraceEvent::Originated(packets.view(handle)));
        match to {
            Destination::Node(neighbour) => self.send_frame_to(node, over, handle, neighbour),
            Destination::Group => self.send_frame_to_all(node, over, handle, group),
            Destination::Unknown => self.send_frame_to_all(node, over, handle, MacAddr::BROADCAST),
            Destination::Local => unreachable!("it is not sent"),
        }
    }

    fn send_frame_to(&mut self, node: NodeId, over: Option<Medium>, handle: Handle, neighbour: NodeId) {
        let towards = match over {
            None => self.interface_towards(node, neighbour),
            Some(Medium::Radio) => self.radio_towards(node, neighbour),
            Some(Medium::Wire(end)) if end == neighbour => self.interface_towards(node, neighbour),
            Some(Medium::Wire(_)) => None,
        };
        match towards {
            // A tunnel is for packets of mobile hosts.
            Some((port, to)) if port != Port::TUNNEL => {
                let seats = self.nodes[node.index()].middleboxes.len();
                let queued = QueuedPacket { handle, to, class: Class::Data };
                self.egress(node, seats, port, queued, neighbour.ipv4());
            }
            _ => self.drop_packet(node, handle, DropReason::NoNeighbour),
        }
    }

    /// Sends a frame over all interfaces of `node`, or over those of one medium.
    fn send_frame_to_all(&mut self, node: NodeId, over: Option<Medium>, handle: Handle, to: MacAddr) {
        let seats = self.nodes[node.index()].middleboxes.len();
        for at in 0..self.nodes[node.index()].interfaces.len() {
            let interface = self.nodes[node.index()].interfaces[at];
            if Medium::of(interface).is_some_and(|medium| over.is_none_or(|over| over == medium)) {
                self.kernel.packets.retain(handle);
                let port = Port { link: LinkId(at as u32), interface };
                let queued = QueuedPacket { handle, to, class: Class::Data };
                self.egress(node, seats, port, queued, Ipv4Addr::BROADCAST);
            }
        }
        self.release(node, handle, DropReason::NoNeighbour);
    }

    /// Returns the node with the interface of this address.
    fn owner_of(&self, address: MacAddr) -> Option<NodeId> {
        let of_radio = self.air.as_ref().and_then(|air| air.node_of(address));
        of_radio.or_else(|| address.node().filter(|node| node.index() < self.nodes.len()))
    }
}

/// Returns the address at an offset; zeros if the bytes end before it does.
fn address(bytes: &[u8], at: usize) -> MacAddr {
    MacAddr(bytes.get(at..).and_then(|rest| rest.first_chunk()).copied().unwrap_or_default())
}
