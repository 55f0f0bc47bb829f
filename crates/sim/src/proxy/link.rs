//! A link that repairs its own losses: one end of it, seated.

use super::border::class_of;
use crate::ids::{Interface, Port, WireEnd};
use crate::middlebox::{Action, Middlebox, MiddleboxPacket, PacketDirection, PassingPacket, PathVerdict};
use crate::outcome::MiddleboxCounts;
use crate::packet::{Body, Handle, InnerPacket, LinkFrame, Mark, Packet, PacketAccount, header};
use hopline_core::{Instant, NodeId};
use hopline_proxy::QueuePosition;
use hopline_proxy::arq::{self, Arq};
use hopline_proxy::dproxy::opaque::{self, Opaque};
use hopline_wire::ipv4::Protocol;
use std::collections::VecDeque;
use std::net::Ipv4Addr;

/// Frames have no IP header; in captures they stand behind one with a protocol number for experiments (RFC 3692 §2.1).
const PROTOCOL: Protocol = Protocol::Other(253);

/// One end of a link.
#[derive(Debug)]
pub(crate) struct LinkMiddlebox<M> {
    machine: M,
    crossed_link: CrossedLink,
    local: Ipv4Addr,
    peer: NodeId,
    wishes: VecDeque<Action>,
}

/// Link that is crossed.
#[derive(Clone, Copy, Debug)]
pub(super) enum CrossedLink {
    /// Packets that leave and arrive by this end of a wire.
    Wire(WireEnd),
    /// Packets to and from the node at the other end.
    Neighbour,
}

/// A packet that crosses the link. At the far end it goes on there.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CrossingPacket {
    handle: Handle,
    len_bytes: u32,
    onward: PacketDirection,
}

/// A machine that repairs a link's losses by frames of its own.
pub(crate) trait LinkRepair: core::fmt::Debug {
    /// Returns whether a frame belongs to such a middlebox.
    fn is_own_frame(frame: &LinkFrame) -> bool;
    /// Records that a packet is to cross.
    fn send(&mut self, now: Instant, packet: CrossingPacket);
    /// Records that a frame that it knows has come. `of`: the packets in it.
    fn handle_frame(&mut self, now: Instant, frame: &LinkFrame, of: impl Fn(&InnerPacket) -> CrossingPacket);
    /// Records that the queue has no room for a frame that it knows.
    fn on_frame_dropped(&mut self, frame: &LinkFrame);
    /// Does what is due.
    fn handle_timeout(&mut self, now: Instant);
    /// Returns the time of the next time-out.
    fn poll_timeout(&self) -> Option<Instant>;
    /// Returns the next thing to do.
    fn poll(&mut self) -> Option<LinkAction>;
    /// Returns the number of packets that it has.
    fn held_packets(&self) -> usize;
    /// Returns its counters.
    fn stats(&self) -> MiddleboxCounts;
}

/// Action of such a middlebox.
#[derive(Debug)]
pub(crate) enum LinkAction {
    /// It sends a frame of so many bytes.
    SendFrame(QueuePosition, LinkFrame, u32),
    /// It has something for its node.
    Request(Action),
}

impl<M> LinkMiddlebox<M> {
    pub(super) const fn new(machine: M, across: CrossedLink, near: NodeId, far: NodeId) -> Self {
        Self { machine, crossed_link: across, local: near.ipv4(), peer: far, wishes: VecDeque::new() }
    }

    fn is_incoming(&self, at: Port, from: NodeId) -> bool {
        match self.crossed_link {
            CrossedLink::Wire(own) => is_wire_end(own, at),
            CrossedLink::Neighbour => from == self.peer,
        }
    }

    fn is_outgoing(&self, at: Port, next_hop: Ipv4Addr) -> bool {
        match self.crossed_link {
            CrossedLink::Wire(own) => is_wire_end(own, at),
            CrossedLink::Neighbour => next_hop == self.peer.ipv4(),
        }
    }

    fn sending(&self, turn: QueuePosition, frame: LinkFrame, len_bytes: u32) -> Action {
        let class = class_of(turn);
        let body = Body::Link(Box::new(frame));
        let ip = header(self.local, self.peer.ipv4(), PROTOCOL);
        let next_hop = self.peer.ipv4();
        Action::Send(MiddleboxPacket {
            account: PacketAccount::Control,
            ip,
            body,
            len_bytes,
            next_hop,
            class,
            copy_of: None,
        })
    }
}

fn is_wire_end(own: WireEnd, at: Port) -> bool {
    matches!(at.interface, Interface::Wire { end, .. } if end == own)
}

impl<M: LinkRepair> Middlebox for LinkMiddlebox<M> {
    fn handle_ingress(&mut self, now: Instant, packet: PassingPacket<'_>) -> PathVerdict {
        let PacketDirection::In { at, from } = packet.onward else { return PathVerdict::Pass };
        let Body::Link(frame) = &packet.packet().body else { return PathVerdict::Pass };
        if !self.is_incoming(at, from) || !M::is_own_frame(frame) {
            return PathVerdict::Pass;
        }
        // The hold on what is within passes from the frame to the machine.
        self.wishes.push_back(Action::Decapsulate(packet.handle));
        self.machine.handle_frame(now, frame, |&InnerPacket(inner)| {
            let mark = if packet.handle.mark == Mark::Congestion { Mark::Congestion } else { inner.mark };
            CrossingPacket { handle: Handle { mark, ..inner }, len_bytes: 0, onward: packet.onward }
        });
        PathVerdict::Held
    }

    fn handle_egress(&mut self, now: Instant, packet: PassingPacket<'_>, next_hop: Ipv4Addr) -> PathVerdict {
        let is_own = matches!(&packet.packet().body, Body::Link(frame) if M::is_own_frame(frame));
        if is_own || !self.is_outgoing(packet.at(), next_hop) {
            return PathVerdict::Pass;
        }
        let len_bytes = packet.packet().len_bytes;
        self.machine.send(now, CrossingPacket { handle: packet.handle, len_bytes, onward: packet.onward });
        PathVerdict::Held
    }

    fn handle_queue_drop(&mut self, _now: Instant, packet: &Packet) {
        if let Body::Link(frame) = &packet.body
            && M::is_own_frame(frame)
            && packet.ip.dst == self.peer.ipv4()
        {
            self.machine.on_frame_dropped(frame);
        }
    }

    fn held(&self) -> usize {
        self.machine.held_packets()
    }

    fn counts(&self) -> MiddleboxCounts {
        self.machine.stats()
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.machine.handle_timeout(now);
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.machine.poll_timeout()
    }

    fn poll_action(&mut self, _now: Instant) -> Option<Action> {
        if let Some(wish) = self.wishes.pop_front() {
            return Some(wish);
        }
        Some(match self.machine.poll()? {
            LinkAction::SendFrame(turn, frame, len_bytes) => self.sending(turn, frame, len_bytes),
            LinkAction::Request(wish) => wish,
        })
    }
}

impl LinkRepair for Arq<CrossingPacket> {
    fn is_own_frame(frame: &LinkFrame) -> bool {
        matches!(frame, LinkFrame::Arq(_))
    }

    fn send(&mut self, now: Instant, packet: CrossingPacket) {
        self.send(now, packet);
    }

    fn handle_frame(&mut self, now: Instant, frame: &LinkFrame, of: impl Fn(&InnerPacket) -> CrossingPacket) {
        if let LinkFrame::Arq(frame) = frame {
            self.handle_frame(now, frame.map(of));
        }
    }

    fn on_frame_dropped(&mut self, frame: &LinkFrame) {
        if let LinkFrame::Arq(arq::Frame::Data { number, .. }) = *frame {
            self.on_queue_drop(number);
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.handle_timeout(now);
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.poll_timeout()
    }

    fn poll(&mut self) -> Option<LinkAction> {
        Some(LinkAction::Request(match self.poll_action()? {
            arq::ArqAction::Send(turn, frame) => {
                let len_bytes = frame.len_bytes(|packet| packet.len_bytes);
                return Some(LinkAction::SendFrame(turn, LinkFrame::Arq(frame.map(inner_packet)), len_bytes));
            }
            arq::ArqAction::Deliver(packet) => Action::Resume(packet.handle, packet.onward),
            arq::ArqAction::Refuse(packet) => Action::Reject(packet.handle),
            arq::ArqAction::ReportDrop(packet) => Action::ReportDrop(packet.handle),
            arq::ArqAction::Release(packet) => Action::Release(packet.handle),
        }))
    }

    fn held_packets(&self) -> usize {
        self.stored_packets()
    }

    fn stats(&self) -> MiddleboxCounts {
        self.stats().into()
    }
}

impl LinkRepair for Opaque<CrossingPacket> {
    fn is_own_frame(frame: &LinkFrame) -> bool {
        matches!(frame, LinkFrame::Opaque(_))
    }

    fn send(&mut self, now: Instant, packet: CrossingPacket) {
        self.send(now, packet);
    }

    fn handle_frame(&mut self, now: Instant, frame: &LinkFrame, of: impl Fn(&InnerPacket) -> CrossingPacket) {
        if let LinkFrame::Opaque(frame) = frame {
            self.handle_frame(now, frame.map(of));
        }
    }

    fn on_frame_dropped(&mut self, frame: &LinkFrame) {
        if let LinkFrame::Opaque(opaque::Frame::Data { number, .. }) = *frame {
            self.on_queue_drop(number);
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.handle_timeout(now);
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.poll_timeout()
    }

    fn poll(&mut self) -> Option<LinkAction> {
        Some(LinkAction::Request(match self.poll_action()? {
            opaque::OpaqueAction::Send(turn, frame) => {
                let len_bytes = frame.len_bytes(|packet| packet.len_bytes);
                return Some(LinkAction::SendFrame(
                    turn,
                    LinkFrame::Opaque(frame.map(inner_packet)),
                    len_bytes,
                ));
            }
            opaque::OpaqueAction::Deliver(packet) => Action::Resume(packet.handle, packet.onward),
            opaque::OpaqueAction::ReportDrop(packet) => Action::ReportDrop(packet.handle),
            opaque::OpaqueAction::Release(packet) => Action::Release(packet.handle),
        }))
    }

    fn held_packets(&self) -> usize {
        self.stored_packets()
    }

    fn stats(&self) -> MiddleboxCounts {
        MiddleboxCounts::of_opaque(self.stats(), self.recovery())
    }
}

fn inner_packet(packet: &CrossingPacket) -> InnerPacket {
    InnerPacket(packet.handle)
}
