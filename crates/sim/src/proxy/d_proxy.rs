//! D-Proxy, seated: one end of a link.

use super::border::class_of;
use crate::middlebox::{Action, Middlebox, MiddleboxPacket, PacketDirection, PassingPacket, PathVerdict};
use crate::outcome::MiddleboxCounts;
use crate::packet::{Body, FlowPacketId, Handle, Packet, PacketAccount, header};
use hopline_core::{Instant, Length, NodeId};
use hopline_proxy::dproxy::{DProxy, DProxyAction, Verdict};
use hopline_proxy::{self as proxy, QueuePosition};
use hopline_transport::any::Segment;
use hopline_wire::dproxy::Sealed;
use hopline_wire::ipv4::{HEADER_LEN, Header, Protocol};
use hopline_wire::{tcp, udp};
use std::collections::VecDeque;
use std::net::Ipv4Addr;

/// One end of a link.
#[derive(Debug)]
pub(crate) struct DProxyMiddlebox {
    machine: DProxy<StoredPacket>,
    local: Ipv4Addr,
    peer: NodeId,
    wishes: VecDeque<Action>,
}

/// A packet as the machine has it.
#[derive(Clone, Copy, Debug)]
pub(super) enum StoredPacket {
    /// Copy of a packet that has gone out, from which it can be sent again.
    Copy(PacketAccount, Header, tcp::Segment<Length>, FlowPacketId),
    /// One that has come in.
    Delayed(Handle, PacketDirection),
}

impl DProxyMiddlebox {
    pub(super) const fn new(machine: DProxy<StoredPacket>, near: NodeId, far: NodeId) -> Self {
        Self { machine, local: near.ipv4(), peer: far, wishes: VecDeque::new() }
    }

    fn retransmission(
        &self,
        turn: QueuePosition,
        (account, ip, segment): (PacketAccount, Header, tcp::Segment<Length>),
        original: FlowPacketId,
    ) -> Action {
        let segment = Segment::Tcp(segment);
        let len_bytes = (HEADER_LEN + segment.wire_len()) as u32;
        let (body, next_hop, class) = (Body::Segment(segment), self.peer.ipv4(), class_of(turn));
        Action::Send(MiddleboxPacket {
            account,
            ip,
            body,
            len_bytes,
            next_hop,
            class,
            copy_of: Some(original),
        })
    }

    fn message(&self, turn: QueuePosition, sealed: Sealed) -> Action {
        let ip = header(self.local, self.peer.ipv4(), Protocol::Udp);
        let len_bytes = (HEADER_LEN + udp::HEADER_LEN + sealed.wire_len()) as u32;
        let (account, body, next_hop) = (PacketAccount::Control, Body::DProxy(sealed), self.peer.ipv4());
        let class = class_of(turn);
        Action::Send(MiddleboxPacket { account, ip, body, len_bytes, next_hop, class, copy_of: None })
    }
}

impl Middlebox for DProxyMiddlebox {
    fn handle_ingress(&mut self, now: Instant, packet: PassingPacket<'_>) -> PathVerdict {
        if !matches!(packet.onward, PacketDirection::In { from, .. } if from == self.peer) {
            return PathVerdict::Pass;
        }
        let ip = &packet.packet().ip;
        match &packet.packet().body {
            Body::DProxy(sealed) if ip.dst == self.local => {
                self.machine.handle_message(now, ip.src.into(), sealed);
                self.wishes.push_back(Action::Absorb(packet.handle));
                PathVerdict::Held
            }
            Body::Segment(Segment::Tcp(segment)) => {
                let keep = || StoredPacket::Delayed(packet.handle, packet.onward);
                let verdict = self.machine.pass_in(now, proxy::Packet::new(ip, segment), keep);
                if verdict == Verdict::Forward {
                    // Before what it sets free.
                    self.wishes.push_back(Action::Resume(packet.handle, packet.onward));
                }
                PathVerdict::Held
            }
            _ => PathVerdict::Pass,
        }
    }

    fn handle_egress(&mut self, now: Instant, packet: PassingPacket<'_>, next_hop: Ipv4Addr) -> PathVerdict {
        let Packet { account, ip, body: Body::Segment(Segment::Tcp(segment)), original, .. } =
            packet.packet()
        else {
            return PathVerdict::Pass;
        };
        if next_hop == self.peer.ipv4() {
            // It goes out again as it went out first, with the mark that it had.
            let kept = Header { ecn: packet.view.ecn, ttl: packet.view.ttl, ..*ip };
            let keep = || StoredPacket::Copy(*account, kept, *segment, *original);
            self.machine.pass_out(now, proxy::Packet::new(ip, segment), keep);
        }
        PathVerdict::Pass
    }

    fn handle_queue_drop(&mut self, _now: Instant, packet: &Packet) {
        if let Body::Segment(Segment::Tcp(segment)) = &packet.body {
            self.machine.on_queue_drop(proxy::Packet::new(&packet.ip, segment));
        }
    }

    fn held(&self) -> usize {
        self.machine.waiting_packets() as usize
    }

    fn counts(&self) -> MiddleboxCounts {
        MiddleboxCounts::of_d_proxy(self.machine.stats(), self.machine.recovery())
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
        Some(match self.machine.poll_action()? {
            DProxyAction::Retransmit(turn, StoredPacket::Copy(account, ip, segment, original)) => {
                self.retransmission(turn, (account, ip, segment), original)
            }
            DProxyAction::Forward(StoredPacket::Delayed(handle, onward)) => Action::Resume(handle, onward),
            DProxyAction::Retransmit(_, StoredPacket::Delayed(..))
            | DProxyAction::Forward(StoredPacket::Copy(..)) => {
                unreachable!("what goes out is kept as a copy, and what comes in waits as it is")
            }
            DProxyAction::Send { queue_position: turn, sealed, .. } => self.message(turn, sealed),
        })
    }
}
