//! A link that repairs its own losses: one end of it, seated.

use crate::node::{Interface, Port};
use crate::outcome::ProxyCounts;
use crate::packet::{Account, Body, Carried, Handle, Mark, Packet, header};
use crate::seat::{InPath, Onward, Passage, Passing, Sending, Wish};
use crate::wired::WireEnd;
use hopline_core::{Instant, NodeId};
use hopline_proxy::Turn;
use hopline_proxy::arq::{Arq, Does, Frame};
use hopline_queue::Class;
use hopline_wire::ipv4::Protocol;
use std::collections::VecDeque;
use std::net::Ipv4Addr;

/// Frames have no IP header; in captures they stand behind one with a protocol number for experiments (RFC 3692 §2.1).
const PROTOCOL: Protocol = Protocol::Other(253);

/// One end of a link.
#[derive(Debug)]
pub(crate) struct ArqSeat {
    machine: Arq<Crossing>,
    /// Where it is, and who is at the other end.
    end: WireEnd,
    near: Ipv4Addr,
    far: NodeId,
    wishes: VecDeque<Wish>,
}

/// A packet that crosses the link. At the far end it goes on there.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Crossing {
    handle: Handle,
    len_bytes: u32,
    onward: Onward,
}

impl ArqSeat {
    pub(super) const fn new(machine: Arq<Crossing>, end: WireEnd, near: NodeId, far: NodeId) -> Self {
        Self { machine, end, near: near.ipv4(), far, wishes: VecDeque::new() }
    }

    fn is_here(&self, at: Port) -> bool {
        matches!(at.interface, Interface::Wire { end, .. } if end == self.end)
    }

    fn sending(&self, turn: Turn, frame: &Frame<Crossing>) -> Wish {
        let len_bytes = frame.len_bytes(|packet| packet.len_bytes);
        let class = match turn {
            Turn::First => Class::Urgent,
            Turn::Last => Class::Data,
        };
        let body = Body::Link(Box::new(frame.map(|packet| Carried(packet.handle))));
        let ip = header(self.near, self.far.ipv4(), PROTOCOL);
        let next_hop = self.far.ipv4();
        Wish::Send(Sending { account: Account::Control, ip, body, len_bytes, next_hop, class })
    }
}

impl InPath for ArqSeat {
    fn ingress(&mut self, now: Instant, packet: Passing<'_>) -> Passage {
        let (true, Body::Link(frame)) = (self.is_here(packet.at()), &packet.packet().body) else {
            return Passage::Pass;
        };
        // The hold on what is within passes from the frame to the machine.
        self.wishes.push_back(Wish::Open(packet.handle));
        let frame = frame.map(|&Carried(inner)| {
            let mark = if packet.handle.mark == Mark::Congestion { Mark::Congestion } else { inner.mark };
            Crossing { handle: Handle { mark, ..inner }, len_bytes: 0, onward: packet.onward }
        });
        self.machine.handle_frame(now, frame);
        Passage::Taken
    }

    fn egress(&mut self, now: Instant, packet: Passing<'_>, _next_hop: Ipv4Addr) -> Passage {
        if !self.is_here(packet.at()) || matches!(packet.packet().body, Body::Link(_)) {
            return Passage::Pass;
        }
        let len_bytes = packet.packet().len_bytes;
        self.machine.send(now, Crossing { handle: packet.handle, len_bytes, onward: packet.onward });
        Passage::Taken
    }

    fn refused(&mut self, _now: Instant, packet: &Packet) {
        if let Body::Link(frame) = &packet.body
            && let Frame::Data { number, .. } = **frame
            && packet.ip.dst == self.far.ipv4()
        {
            self.machine.refused(number);
        }
    }

    fn counts(&self) -> ProxyCounts {
        self.machine.stats().into()
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
            Does::Sends(turn, frame) => self.sending(turn, &frame),
            Does::Delivers(packet) => Wish::GoOn(packet.handle, packet.onward),
            Does::Refuses(packet) => Wish::Refuse(packet.handle),
            Does::Loses(packet) => Wish::Lose(packet.handle),
            Does::Discards(packet) => Wish::LetGo(packet.handle),
        })
    }
}
