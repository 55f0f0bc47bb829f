//! Machines in the path of TCP, seated: what they see of the packets that pass, and what their verdicts come to.

use crate::node::Interface;
use crate::outcome::ProxyCounts;
use crate::packet::{Account, Body, Handle, Packet, header};
use crate::seat::{InPath, Onward, Passage, Passing, Sending, Sitter, Wish};
use crate::spec::{MobileSide, ProxyKind, ProxySpec};
use hopline_core::{Instant, Length};
use hopline_proxy::snoop::{Snoop, Transmit};
use hopline_proxy::{self as proxy, Verdict};
use hopline_queue::Class;
use hopline_transport::any::Segment;
use hopline_wire::ipv4::{HEADER_LEN, Header, Protocol};
use hopline_wire::tcp;
use std::collections::{BTreeMap, VecDeque};
use std::net::Ipv4Addr;

/// The machine that `spec` describes.
pub(crate) fn sitter(spec: &ProxySpec) -> Sitter {
    let border = Border { mobile: addresses(&spec.mobile) };
    match spec.kind {
        ProxyKind::Snoop(config) => Sitter::Snoop(Box::new(SnoopSeat {
            machine: Snoop::new(config),
            border,
            wishes: VecDeque::new(),
            next_hops: BTreeMap::new(),
            account: Account::Foreign,
        })),
    }
}

/// Where the wired network ends.
#[derive(Debug)]
struct Border {
    /// Addresses of mobile hosts; `None`: whoever is reached by radio.
    mobile: Option<Vec<Ipv4Addr>>,
}

impl Border {
    /// Whether a packet goes to a mobile host now, or comes from one.
    fn is_crossed(&self, packet: Passing<'_>) -> bool {
        let ip = &packet.packet().ip;
        match (&self.mobile, packet.onward) {
            (None, _) => matches!(packet.at().interface, Interface::Radio(_)),
            (Some(mobile), Onward::In { .. }) => mobile.contains(&ip.src),
            (Some(mobile), Onward::Out { .. }) => mobile.contains(&ip.dst),
        }
    }
}

fn addresses(mobile: &MobileSide) -> Option<Vec<Ipv4Addr>> {
    match mobile {
        MobileSide::Radios => None,
        MobileSide::Nodes(nodes) => Some(nodes.iter().map(|node| node.ipv4()).collect()),
    }
}

/// Snoop at a node.
#[derive(Debug)]
pub(crate) struct SnoopSeat {
    machine: Snoop<Kept>,
    border: Border,
    wishes: VecDeque<Wish>,
    /// To whom packets for a mobile host went last.
    next_hops: BTreeMap<Ipv4Addr, Ipv4Addr>,
    /// Whose packet passed last: what is made at once is of the same connection.
    account: Account,
}

/// A packet that can be sent again.
#[derive(Clone, Copy, Debug)]
struct Kept {
    account: Account,
    ip: Header,
    segment: tcp::Segment<Length>,
}

impl SnoopSeat {
    fn absorb(&mut self, handle: Handle) -> Passage {
        self.wishes.push_back(Wish::Absorb(handle));
        Passage::Taken
    }

    fn send_again(&self, Kept { account, ip, segment }: Kept) -> Wish {
        let next_hop = self.next_hops.get(&ip.dst).copied().unwrap_or(ip.dst);
        Wish::Send(sending((account, ip, segment), next_hop, Class::Urgent))
    }
}

impl InPath for SnoopSeat {
    fn ingress(&mut self, now: Instant, packet: Passing<'_>) -> Passage {
        let Some(segment) = tcp_of(packet.packet()).filter(|_| self.border.is_crossed(packet)) else {
            return Passage::Pass;
        };
        match self.machine.from_mobile(now, proxy::Packet { ip: &packet.packet().ip, segment }) {
            Verdict::Forward => Passage::Pass,
            Verdict::ForwardWith(sack) => {
                let options = tcp::Options { sack, ..segment.options };
                Passage::Rewritten(Segment::Tcp(tcp::Segment { options, ..*segment }))
            }
            Verdict::Absorb => self.absorb(packet.handle),
        }
    }

    fn egress(&mut self, now: Instant, packet: Passing<'_>, next_hop: Ipv4Addr) -> Passage {
        let Some(segment) = tcp_of(packet.packet()).filter(|_| self.border.is_crossed(packet)) else {
            return Passage::Pass;
        };
        let &Packet { account, ip, .. } = packet.packet();
        self.next_hops.insert(ip.dst, next_hop);
        self.account = account;
        // It goes out again as it went out first, with the mark that it had.
        let keep = || Kept {
            account,
            ip: Header { ecn: packet.view.ecn, ttl: packet.view.ttl, ..ip },
            segment: *segment,
        };
        match self.machine.to_mobile(now, proxy::Packet { ip: &ip, segment }, keep) {
            Verdict::Forward | Verdict::ForwardWith(_) => Passage::Pass,
            Verdict::Absorb => self.absorb(packet.handle),
        }
    }

    fn refused(&mut self, _now: Instant, packet: &Packet) {
        if let Some(segment) = tcp_of(packet) {
            self.machine.refused(proxy::Packet { ip: &packet.ip, segment });
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
        match self.machine.poll_transmit()? {
            Transmit::Again { kept, .. } => Some(self.send_again(kept)),
            Transmit::Ack(ack) => {
                let ip = header(ack.connection.mobile.0, ack.connection.fixed.0, Protocol::Tcp);
                Some(Wish::Route(sending((self.account, ip, ack.segment()), ip.dst, Class::Data)))
            }
        }
    }
}

fn tcp_of(packet: &Packet) -> Option<&tcp::Segment<Length>> {
    match &packet.body {
        Body::Segment(Segment::Tcp(segment)) => Some(segment),
        _ => None,
    }
}

fn sending(
    (account, ip, segment): (Account, Header, tcp::Segment<Length>),
    next_hop: Ipv4Addr,
    class: Class,
) -> Sending {
    let len_bytes = (HEADER_LEN + segment.wire_len()) as u32;
    Sending { account, ip, body: Body::Segment(Segment::Tcp(segment)), len_bytes, next_hop, class }
}
