//! D-Proxy, seated: one end of a link.

use super::border::class_of;
use crate::in_path::{InPath, Onward, Passage, Passing, Sending, Wish};
use crate::outcome::ProxyCounts;
use crate::packet::{Account, Body, Handle, Original, Packet, header};
use hopline_core::{Instant, Length, NodeId};
use hopline_proxy::dproxy::{DProxy, Does, Verdict};
use hopline_proxy::{self as proxy, Turn};
use hopline_transport::any::Segment;
use hopline_wire::dproxy::Sealed;
use hopline_wire::ipv4::{HEADER_LEN, Header, Protocol};
use hopline_wire::{tcp, udp};
use std::collections::VecDeque;
use std::net::Ipv4Addr;

/// One end of a link.
#[derive(Debug)]
pub(crate) struct DProxySeat {
    machine: DProxy<Stored>,
    near: Ipv4Addr,
    far: NodeId,
    wishes: VecDeque<Wish>,
}

/// A packet as the machine has it.
#[derive(Clone, Copy, Debug)]
pub(super) enum Stored {
    /// Copy of a packet that has gone out, from which it can be sent again.
    Copy(Account, Header, tcp::Segment<Length>, Original),
    /// One that has come in.
    Held(Handle, Onward),
}

impl DProxySeat {
    pub(super) const fn new(machine: DProxy<Stored>, near: NodeId, far: NodeId) -> Self {
        Self { machine, near: near.ipv4(), far, wishes: VecDeque::new() }
    }

    fn replaying(
        &self,
        turn: Turn,
        (account, ip, segment): (Account, Header, tcp::Segment<Length>),
        original: Original,
    ) -> Wish {
        let segment = Segment::Tcp(segment);
        let len_bytes = (HEADER_LEN + segment.wire_len()) as u32;
        let (body, next_hop, class) = (Body::Segment(segment), self.far.ipv4(), class_of(turn));
        Wish::Send(Sending { account, ip, body, len_bytes, next_hop, class, copy_of: Some(original) })
    }

    fn telling(&self, turn: Turn, sealed: Sealed) -> Wish {
        let ip = header(self.near, self.far.ipv4(), Protocol::Udp);
        let len_bytes = (HEADER_LEN + udp::HEADER_LEN + sealed.wire_len()) as u32;
        let (account, body, next_hop) = (Account::Control, Body::DProxy(sealed), self.far.ipv4());
        let class = class_of(turn);
        Wish::Send(Sending { account, ip, body, len_bytes, next_hop, class, copy_of: None })
    }
}

impl InPath for DProxySeat {
    fn ingress(&mut self, now: Instant, packet: Passing<'_>) -> Passage {
        if !matches!(packet.onward, Onward::In { from, .. } if from == self.far) {
            return Passage::Pass;
        }
        let ip = &packet.packet().ip;
        match &packet.packet().body {
            Body::DProxy(sealed) if ip.dst == self.near => {
                self.machine.handle_message(now, ip.src.into(), sealed);
                self.wishes.push_back(Wish::Absorb(packet.handle));
                Passage::Taken
            }
            Body::Segment(Segment::Tcp(segment)) => {
                let keep = || Stored::Held(packet.handle, packet.onward);
                let verdict = self.machine.pass_in(now, proxy::Packet::new(ip, segment), keep);
                if verdict == Verdict::Forward {
                    // Before what it sets free.
                    self.wishes.push_back(Wish::GoOn(packet.handle, packet.onward));
                }
                Passage::Taken
            }
            _ => Passage::Pass,
        }
    }

    fn egress(&mut self, now: Instant, packet: Passing<'_>, next_hop: Ipv4Addr) -> Passage {
        let Packet { account, ip, body: Body::Segment(Segment::Tcp(segment)), original, .. } =
            packet.packet()
        else {
            return Passage::Pass;
        };
        if next_hop == self.far.ipv4() {
            // It goes out again as it went out first, with the mark that it had.
            let kept = Header { ecn: packet.view.ecn, ttl: packet.view.ttl, ..*ip };
            let keep = || Stored::Copy(*account, kept, *segment, *original);
            self.machine.pass_out(now, proxy::Packet::new(ip, segment), keep);
        }
        Passage::Pass
    }

    fn refused(&mut self, _now: Instant, packet: &Packet) {
        if let Body::Segment(Segment::Tcp(segment)) = &packet.body {
            self.machine.refused(proxy::Packet::new(&packet.ip, segment));
        }
    }

    fn held(&self) -> usize {
        self.machine.held() as usize
    }

    fn counts(&self) -> ProxyCounts {
        ProxyCounts::of_d_proxy(self.machine.stats(), self.machine.recovery())
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
            Does::Replays(turn, Stored::Copy(account, ip, segment, original)) => {
                self.replaying(turn, (account, ip, segment), original)
            }
            Does::Releases(Stored::Held(handle, onward)) => Wish::GoOn(handle, onward),
            Does::Replays(_, Stored::Held(..)) | Does::Releases(Stored::Copy(..)) => {
                unreachable!("what goes out is kept as a copy, and what comes in waits as it is")
            }
            Does::Sends { turn, sealed, .. } => self.telling(turn, sealed),
        })
    }
}
