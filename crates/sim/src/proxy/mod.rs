//! Machines in the path of TCP, seated: what they see of the packets that pass, and what their verdicts come to.

mod ack_pacing;
mod d_proxy;
mod fast_retransmit;
mod filter;
mod handover;
mod link;
mod split;

use crate::node::Interface;
use crate::packet::{Account, Body, Handle, Original, Packet, header};
use crate::seat::{Onward, Passage, Passing, Sending, Sitter, Wish};
use crate::spec::{CellsSpec, MobileSide, PairKind, PairSpec, ProxyKind, ProxySpec, Spec};
use crate::wired::WireEnd;
pub(crate) use ack_pacing::AckPacingSeat;
pub(crate) use d_proxy::DProxySeat;
pub(crate) use fast_retransmit::FastRetransmitSeat;
pub(crate) use filter::{FilterSeat, Kept};
pub(crate) use handover::Handover;
use handover::Handovers;
use hopline_core::{Length, NodeId, Purpose, Stream};
use hopline_proxy::ack_pacing::AckPacing;
use hopline_proxy::arq::Arq;
use hopline_proxy::dproxy::opaque::Opaque;
use hopline_proxy::dproxy::{self, DProxy};
use hopline_proxy::fast_retransmit::FastRetransmit;
use hopline_proxy::mtcp::Mtcp;
use hopline_proxy::nack::Nacks;
use hopline_proxy::snoop;
use hopline_proxy::split::{Split, Unknown};
use hopline_proxy::{Connection, Side, Turn};
use hopline_queue::Class;
use hopline_transport::any::Segment;
use hopline_wire::ipv4::{HEADER_LEN, Header};
use link::Across;
pub(crate) use link::{Crossing, LinkSeat};
pub(crate) use split::SplitSeat;
use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, Ipv4Addr};

/// Converts an address of the simulator.
fn ipv4_of(address: IpAddr) -> Ipv4Addr {
    match address {
        IpAddr::V4(address) => address,
        IpAddr::V6(address) => unreachable!("nodes have IPv4 addresses, and {address} is none"),
    }
}

/// Creates the middlebox that `spec`, number `number` of them all, describes.
pub(crate) fn sitter(
    (number, spec): (u64, &ProxySpec),
    cells: Option<&CellsSpec>,
    (seed, run): (u64, u64),
) -> Sitter {
    let border = Border::new(spec, cells);
    match &spec.kind {
        ProxyKind::Snoop(config) => {
            // Packets are lengths here: what real ones would take bounds nothing.
            let machine = snoop::windowed(snoop::Config { kept_bytes: u64::MAX, ..*config });
            Sitter::Snoop(Box::new(FilterSeat::new(machine, border)))
        }
        ProxyKind::Mtcp(config) => Sitter::Mtcp(Box::new(FilterSeat::new(Mtcp::new(*config), border))),
        ProxyKind::Nack(config) => Sitter::Nacks(Box::new(FilterSeat::new(Nacks::new(*config), border))),
        ProxyKind::AckPacing(config) => {
            Sitter::AckPacing(Box::new(AckPacingSeat::new(AckPacing::new(*config), border)))
        }
        ProxyKind::Split(config) => {
            let random = Stream::keyed(seed, run, number, Purpose::Proxy);
            let follows = config.unknown != Unknown::Reset;
            let handovers = follows.then(|| Handovers::new(spec.node.ipv4()));
            Sitter::Split(Box::new(SplitSeat::new(Split::new(**config, random), border, handovers)))
        }
    }
}

/// Returns the ends at `node` of links that repair their own losses.
pub(crate) fn link_ends(spec: &Spec, node: NodeId, run: u64) -> impl Iterator<Item = Sitter> {
    (0..).zip(&spec.links).filter_map(move |(link, of)| {
        let config = of.arq?;
        let (side, far) = if of.a == node {
            (0, of.b)
        } else if of.b == node {
            (1, of.a)
        } else {
            return None;
        };
        // No end restarts here: any number will do for an epoch.
        let machine = Arq::new(config, run as u16);
        let across = Across::Wire(WireEnd { link, side });
        Some(Sitter::Arq(Box::new(LinkSeat::new(machine, across, node, far))))
    })
}

/// Returns the middleboxes at `node` of pairs at both ends of links.
pub(crate) fn pair_ends(spec: &Spec, node: NodeId, run: u64) -> impl Iterator<Item = Sitter> {
    spec.pairs.iter().filter_map(move |PairSpec { ends: [a, b], kind }| {
        let far = if *a == node {
            *b
        } else if *b == node {
            *a
        } else {
            return None;
        };
        Some(match kind {
            PairKind::DProxy(config) => {
                let config = dproxy::Config { local: node.ipv4().into(), peer: far.ipv4().into(), ..*config };
                Sitter::DProxy(Box::new(DProxySeat::new(DProxy::new(config), node, far)))
            }
            PairKind::Opaque(config) => {
                let machine = Opaque::new(*config, run as u16);
                Sitter::Opaque(Box::new(LinkSeat::new(machine, Across::Neighbour, node, far)))
            }
        })
    })
}

/// Returns the middlebox of `node` if it is a host that a station asks for packets that it has sent: it keeps
/// them.
pub(crate) fn told(spec: &Spec, node: NodeId) -> Option<Sitter> {
    let asks = |proxy: &&ProxySpec| matches!(proxy.kind, ProxyKind::Nack(_));
    let stands = |proxy: &ProxySpec| proxy.node == node;
    let is_served = |proxy: &ProxySpec| match &proxy.mobile {
        MobileSide::Radios => spec.nodes[node.index()].is_wireless(),
        MobileSide::Nodes(hosts) => hosts.contains(&node),
    };
    let mut asking = spec.proxies.iter().filter(asks);
    if spec.proxies.iter().any(stands) || !asking.any(is_served) {
        return None;
    }
    let machine = snoop::windowed(snoop::Config::told());
    Some(Sitter::Snoop(Box::new(FilterSeat::new(machine, Border::of_host(node.ipv4())))))
}

/// Returns the middlebox of `node` if it is a mobile host that asks again after a handoff.
pub(crate) fn fast_retransmit(spec: &Spec, node: NodeId) -> Option<Sitter> {
    let mobile = spec.cells.as_ref()?.mobiles.iter().find(|mobile| mobile.node == node)?;
    let machine = FastRetransmit::new(mobile.fast_retransmit?);
    Some(Sitter::FastRetransmit(Box::new(FastRetransmitSeat::new(machine, node.ipv4()))))
}

/// Returns the queue class for a packet that is to have this turn.
const fn class_of(turn: Turn) -> Class {
    match turn {
        Turn::First => Class::Urgent,
        Turn::Last => Class::Data,
    }
}

/// Border of the wired network, as a middlebox there sees it: the routes of packets, and the translation of
/// its actions.
#[derive(Debug)]
struct Border {
    beyond: Beyond,
    wishes: VecDeque<Wish>,
    /// Next hop to each mobile host. `None`: a tunnel leads there.
    next_hops: Option<BTreeMap<Ipv4Addr, Ipv4Addr>>,
    /// Accounts of the packets of each connection.
    accounts: BTreeMap<Connection, Account>,
}

/// Hosts on the side of mobile hosts.
#[derive(Debug)]
enum Beyond {
    /// All hosts that are reached by radio.
    Radios,
    /// Hosts with these addresses.
    Hosts(Vec<Ipv4Addr>),
    /// All hosts but this one.
    All { own: Ipv4Addr },
}

impl Border {
    /// Returns the border of a host with a middlebox of its own.
    fn of_host(own: Ipv4Addr) -> Self {
        Self {
            beyond: Beyond::All { own },
            wishes: VecDeque::new(),
            next_hops: Some(BTreeMap::new()),
            accounts: BTreeMap::new(),
        }
    }

    fn new(spec: &ProxySpec, cells: Option<&CellsSpec>) -> Self {
        let beyond = match &spec.mobile {
            MobileSide::Radios => Beyond::Radios,
            MobileSide::Nodes(nodes) => Beyond::Hosts(nodes.iter().map(|node| node.ipv4()).collect()),
        };
        let is_home = cells.is_some_and(|cells| cells.home_agent == spec.node);
        let next_hops = (!is_home).then(BTreeMap::new);
        let (wishes, accounts) = (VecDeque::new(), BTreeMap::new());
        Self { beyond, wishes, next_hops, accounts }
    }

    /// Returns the segment of a packet that crosses the border now, with its connection and the side that it
    /// comes from.
    fn crossing<'a>(&mut self, packet: Passing<'a>) -> Option<(Connection, Side, &'a Segment<Length>)> {
        let Packet { ip, body: Body::Segment(segment), account, .. } = packet.view.packet else {
            return None;
        };
        // Whether a packet between these, of which the second is on this side, crosses.
        let crosses = |beyond: &Ipv4Addr, here: &Ipv4Addr| match &self.beyond {
            Beyond::Radios => matches!(packet.at().interface, Interface::Radio(_)),
            Beyond::Hosts(hosts) => hosts.contains(beyond),
            Beyond::All { own } => here == own,
        };
        let (src, dst) = ((ip.src.into(), segment.ports()[0]), (ip.dst.into(), segment.ports()[1]));
        let (connection, from) = match packet.onward {
            Onward::In { from, .. } if crosses(&ip.src, &ip.dst) => {
                self.learn(ip.src, from.ipv4());
                (Connection { fixed: dst, mobile: src }, Side::Mobile)
            }
            Onward::Out { next_hop, .. } if crosses(&ip.dst, &ip.src) => {
                self.learn(ip.dst, next_hop);
                (Connection { fixed: src, mobile: dst }, Side::Fixed)
            }
            _ => return None,
        };
        self.accounts.insert(connection, *account);
        Some((connection, from, segment))
    }

    fn learn(&mut self, mobile: Ipv4Addr, next_hop: Ipv4Addr) {
        if let Some(next_hops) = &mut self.next_hops {
            next_hops.insert(mobile, next_hop);
        }
    }

    fn absorb(&mut self, handle: Handle) -> Passage {
        self.wishes.push_back(Wish::Absorb(handle));
        Passage::Taken
    }

    /// Returns the action that sends a segment of a connection to a side, in the name of the host on the
    /// other one.
    fn sending(&self, connection: Connection, to: Side, segment: Segment<Length>, class: Class) -> Wish {
        let (src, dst) = match to {
            Side::Mobile => (connection.fixed.0, connection.mobile.0),
            Side::Fixed => (connection.mobile.0, connection.fixed.0),
        };
        let (src, dst) = (ipv4_of(src), ipv4_of(dst));
        let ip = Header { ecn: segment.ecn(), ..header(src, dst, segment.protocol()) };
        self.sending_as(connection, to, (ip, None), segment, class)
    }

    /// Does the same under this IP header, as a copy of a packet or as a new one.
    fn sending_as(
        &self,
        connection: Connection,
        to: Side,
        (ip, copy_of): (Header, Option<Original>),
        segment: Segment<Length>,
        class: Class,
    ) -> Wish {
        let account = self.accounts.get(&connection).copied().unwrap_or(Account::Foreign);
        let next_hop =
            self.next_hops.as_ref().and_then(|known| known.get(&ip.dst)).copied().unwrap_or(ip.dst);
        let len_bytes = (HEADER_LEN + segment.wire_len()) as u32;
        let body = Body::Segment(segment);
        let sending = Sending { account, ip, body, len_bytes, next_hop, class, copy_of };
        match to {
            Side::Mobile => Wish::Send(sending),
            Side::Fixed => Wish::Route(sending),
        }
    }
}
