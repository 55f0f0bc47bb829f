//! A link that repairs its own losses: one end of it, seated.

use super::border::class_of;
use crate::ids::{Interface, Port, WireEnd};
use crate::in_path::{InPath, Onward, Passage, Passing, Sending, Wish};
use crate::outcome::ProxyCounts;
use crate::packet::{Account, Body, Carried, Handle, LinkFrame, Mark, Packet, header};
use hopline_core::{Instant, NodeId};
use hopline_proxy::Turn;
use hopline_proxy::arq::{self, Arq};
use hopline_proxy::dproxy::opaque::{self, Opaque};
use hopline_wire::ipv4::Protocol;
use std::collections::VecDeque;
use std::net::Ipv4Addr;

/// Frames have no IP header; in captures they stand behind one with a protocol number for experiments (RFC 3692 §2.1).
const PROTOCOL: Protocol = Protocol::Other(253);

/// One end of a link.
#[derive(Debug)]
pub(crate) struct LinkSeat<M> {
    machine: M,
    across: Across,
    near: Ipv4Addr,
    far: NodeId,
    wishes: VecDeque<Wish>,
}

/// Link that is crossed.
#[derive(Clone, Copy, Debug)]
pub(super) enum Across {
    /// Packets that leave and arrive by this end of a wire.
    Wire(WireEnd),
    /// Packets to and from the node at the other end.
    Neighbour,
}

/// A packet that crosses the link. At the far end it goes on there.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Crossing {
    handle: Handle,
    len_bytes: u32,
    onward: Onward,
}

/// A machine that repairs a link's losses by frames of its own.
pub(crate) trait RepairsLink: core::fmt::Debug {
    /// Returns whether a frame belongs to such a middlebox.
    fn knows(frame: &LinkFrame) -> bool;
    /// Records that a packet is to cross.
    fn send(&mut self, now: Instant, packet: Crossing);
    /// Records that a frame that it knows has come. `of`: the packets in it.
    fn handle_frame(&mut self, now: Instant, frame: &LinkFrame, of: impl Fn(&Carried) -> Crossing);
    /// Records that the queue has no room for a frame that it knows.
    fn refused(&mut self, frame: &LinkFrame);
    /// Does what is due.
    fn handle_timeout(&mut self, now: Instant);
    /// Returns the time of the next time-out.
    fn poll_timeout(&self) -> Option<Instant>;
    /// Returns the next thing to do.
    fn poll(&mut self) -> Option<Does>;
    /// Returns the number of packets that it has.
    fn held(&self) -> usize;
    /// Returns its counters.
    fn counts(&self) -> ProxyCounts;
}

/// Action of such a middlebox.
#[derive(Debug)]
pub(crate) enum Does {
    /// It sends a frame of so many bytes.
    Sends(Turn, LinkFrame, u32),
    /// It has something for its node.
    Wishes(Wish),
}

impl<M> LinkSeat<M> {
    pub(super) const fn new(machine: M, across: Across, near: NodeId, far: NodeId) -> Self {
        Self { machine, across, near: near.ipv4(), far, wishes: VecDeque::new() }
    }

    fn comes_across(&self, at: Port, from: NodeId) -> bool {
        match self.across {
            Across::Wire(own) => is_at(own, at),
            Across::Neighbour => from == self.far,
        }
    }

    fn goes_across(&self, at: Port, next_hop: Ipv4Addr) -> bool {
        match self.across {
            Across::Wire(own) => is_at(own, at),
            Across::Neighbour => next_hop == self.far.ipv4(),
        }
    }

    fn sending(&self, turn: Turn, frame: LinkFrame, len_bytes: u32) -> Wish {
        let class = class_of(turn);
        let body = Body::Link(Box::new(frame));
        let ip = header(self.near, self.far.ipv4(), PROTOCOL);
        let next_hop = self.far.ipv4();
        Wish::Send(Sending { account: Account::Control, ip, body, len_bytes, next_hop, class, copy_of: None })
    }
}

fn is_at(own: WireEnd, at: Port) -> bool {
    matches!(at.interface, Interface::Wire { end, .. } if end == own)
}

impl<M: RepairsLink> InPath for LinkSeat<M> {
    fn ingress(&mut self, now: Instant, packet: Passing<'_>) -> Passage {
        let Onward::In { at, from } = packet.onward else { return Passage::Pass };
        let Body::Link(frame) = &packet.packet().body else { return Passage::Pass };
        if !self.comes_across(at, from) || !M::knows(frame) {
            return Passage::Pass;
        }
        // The hold on what is within passes from the frame to the machine.
        self.wishes.push_back(Wish::Open(packet.handle));
        self.machine.handle_frame(now, frame, |&Carried(inner)| {
            let mark = if packet.handle.mark == Mark::Congestion { Mark::Congestion } else { inner.mark };
            Crossing { handle: Handle { mark, ..inner }, len_bytes: 0, onward: packet.onward }
        });
        Passage::Taken
    }

    fn egress(&mut self, now: Instant, packet: Passing<'_>, next_hop: Ipv4Addr) -> Passage {
        let is_own = matches!(&packet.packet().body, Body::Link(frame) if M::knows(frame));
        if is_own || !self.goes_across(packet.at(), next_hop) {
            return Passage::Pass;
        }
        let len_bytes = packet.packet().len_bytes;
        self.machine.send(now, Crossing { handle: packet.handle, len_bytes, onward: packet.onward });
        Passage::Taken
    }

    fn refused(&mut self, _now: Instant, packet: &Packet) {
        if let Body::Link(frame) = &packet.body
            && M::knows(frame)
            && packet.ip.dst == self.far.ipv4()
        {
            self.machine.refused(frame);
        }
    }

    fn held(&self) -> usize {
        self.machine.held()
    }

    fn counts(&self) -> ProxyCounts {
        self.machine.counts()
    }

    fn wake(&mut self, now: Instant) {
        self.machine.handle_timeout(now);
    }

    fn next_wake(&self) -> Option<Instant> {
        self.machine.poll_timeout()
    }

    fn poll(&mut self, _now: Instant) -> Option<Wish> {
        if let Some(wish) = self.wishes.pop_front() {
            return Some(wish);
        }
        Some(match self.machine.poll()? {
            Does::Sends(turn, frame, len_bytes) => self.sending(turn, frame, len_bytes),
            Does::Wishes(wish) => wish,
        })
    }
}

impl RepairsLink for Arq<Crossing> {
    fn knows(frame: &LinkFrame) -> bool {
        matches!(frame, LinkFrame::Arq(_))
    }

    fn send(&mut self, now: Instant, packet: Crossing) {
        self.send(now, packet);
    }

    fn handle_frame(&mut self, now: Instant, frame: &LinkFrame, of: impl Fn(&Carried) -> Crossing) {
        if let LinkFrame::Arq(frame) = frame {
            self.handle_frame(now, frame.map(of));
        }
    }

    fn refused(&mut self, frame: &LinkFrame) {
        if let LinkFrame::Arq(arq::Frame::Data { number, .. }) = *frame {
            self.refused(number);
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.handle_timeout(now);
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.poll_timeout()
    }

    fn poll(&mut self) -> Option<Does> {
        Some(Does::Wishes(match self.poll()? {
            arq::Does::Sends(turn, frame) => {
                let len_bytes = frame.len_bytes(|packet| packet.len_bytes);
                return Some(Does::Sends(turn, LinkFrame::Arq(frame.map(carried)), len_bytes));
            }
            arq::Does::Delivers(packet) => Wish::GoOn(packet.handle, packet.onward),
            arq::Does::Refuses(packet) => Wish::Refuse(packet.handle),
            arq::Does::Loses(packet) => Wish::Lose(packet.handle),
            arq::Does::Discards(packet) => Wish::LetGo(packet.handle),
        }))
    }

    fn held(&self) -> usize {
        self.held()
    }

    fn counts(&self) -> ProxyCounts {
        self.stats().into()
    }
}

impl RepairsLink for Opaque<Crossing> {
    fn knows(frame: &LinkFrame) -> bool {
        matches!(frame, LinkFrame::Opaque(_))
    }

    fn send(&mut self, now: Instant, packet: Crossing) {
        self.send(now, packet);
    }

    fn handle_frame(&mut self, now: Instant, frame: &LinkFrame, of: impl Fn(&Carried) -> Crossing) {
        if let LinkFrame::Opaque(frame) = frame {
            self.handle_frame(now, frame.map(of));
        }
    }

    fn refused(&mut self, frame: &LinkFrame) {
        if let LinkFrame::Opaque(opaque::Frame::Data { number, .. }) = *frame {
            self.refused(number);
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.handle_timeout(now);
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.poll_timeout()
    }

    fn poll(&mut self) -> Option<Does> {
        Some(Does::Wishes(match self.poll()? {
            opaque::Does::Sends(turn, frame) => {
                let len_bytes = frame.len_bytes(|packet| packet.len_bytes);
                return Some(Does::Sends(turn, LinkFrame::Opaque(frame.map(carried)), len_bytes));
            }
            opaque::Does::Delivers(packet) => Wish::GoOn(packet.handle, packet.onward),
            opaque::Does::Loses(packet) => Wish::Lose(packet.handle),
            opaque::Does::Discards(packet) => Wish::LetGo(packet.handle),
        }))
    }

    fn held(&self) -> usize {
        self.held()
    }

    fn counts(&self) -> ProxyCounts {
        ProxyCounts::of_opaque(self.stats(), self.recovery())
    }
}

fn carried(packet: &Crossing) -> Carried {
    Carried(packet.handle)
}
