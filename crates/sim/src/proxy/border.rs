//! Border between the wired network and mobile hosts, as middleboxes of TCP see it.

use crate::ids::Interface;
use crate::middlebox::{Action, MiddleboxPacket, PacketDirection, PassingPacket, PathVerdict};
use crate::packet::{Body, FlowPacketId, Handle, Packet, PacketAccount, header};
use crate::spec::{CellsSpec, MobileSide, ProxySpec};
use hopline_core::Length;
use hopline_proxy::{Connection, QueuePosition, Side};
use hopline_queue::Class;
use hopline_transport::any::Segment;
use hopline_wire::ipv4::{HEADER_LEN, Header};
use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, Ipv4Addr};

/// Converts an address of the simulator.
pub(super) fn ipv4_of(address: IpAddr) -> Ipv4Addr {
    match address {
        IpAddr::V4(address) => address,
        IpAddr::V6(address) => unreachable!("nodes have IPv4 addresses, and {address} is none"),
    }
}

/// Returns the queue class for a packet that is to have this turn.
pub(super) const fn class_of(turn: QueuePosition) -> Class {
    match turn {
        QueuePosition::Front => Class::Urgent,
        QueuePosition::Back => Class::Data,
    }
}

/// Border of the wired network, as a middlebox there sees it: the routes of packets, and the translation of
/// its actions.
#[derive(Debug)]
pub(crate) struct NetworkBorder {
    mobile_side: MobileHosts,
    pub(super) wishes: VecDeque<Action>,
    /// Next hop to each mobile host. `None`: a tunnel leads there.
    next_hops: Option<BTreeMap<Ipv4Addr, Ipv4Addr>>,
    /// Accounts of the packets of each connection.
    accounts: BTreeMap<Connection, PacketAccount>,
}

/// Hosts on the side of mobile hosts.
#[derive(Debug)]
enum MobileHosts {
    /// All hosts that are reached by radio.
    Radios,
    /// Hosts with these addresses.
    Hosts(Vec<Ipv4Addr>),
    /// All hosts but this one.
    All { own: Ipv4Addr },
}

impl NetworkBorder {
    /// Returns the border of a host with a middlebox of its own.
    pub(super) fn for_host(own: Ipv4Addr) -> Self {
        Self {
            mobile_side: MobileHosts::All { own },
            wishes: VecDeque::new(),
            next_hops: Some(BTreeMap::new()),
            accounts: BTreeMap::new(),
        }
    }

    pub(super) fn new(spec: &ProxySpec, cells: Option<&CellsSpec>) -> Self {
        let beyond = match &spec.mobile {
            MobileSide::Radios => MobileHosts::Radios,
            MobileSide::Nodes(nodes) => MobileHosts::Hosts(nodes.iter().map(|node| node.ipv4()).collect()),
        };
        let is_home = cells.is_some_and(|cells| cells.home_agent == spec.node);
        let next_hops = (!is_home).then(BTreeMap::new);
        let (wishes, accounts) = (VecDeque::new(), BTreeMap::new());
        Self { mobile_side: beyond, wishes, next_hops, accounts }
    }

    /// Returns the segment of a packet that crosses the border now, with its connection and the side that it
    /// comes from.
    pub(super) fn crossing_segment<'a>(
        &mut self,
        packet: PassingPacket<'a>,
    ) -> Option<(Connection, Side, &'a Segment<Length>)> {
        let Packet { ip, body: Body::Segment(segment), account, .. } = packet.view.packet else {
            return None;
        };
        // Whether a packet between these, of which the second is on this side, crosses.
        let crosses = |beyond: &Ipv4Addr, here: &Ipv4Addr| match &self.mobile_side {
            MobileHosts::Radios => matches!(packet.at().interface, Interface::Radio(_)),
            MobileHosts::Hosts(hosts) => hosts.contains(beyond),
            MobileHosts::All { own } => here == own,
        };
        let (src, dst) = ((ip.src.into(), segment.ports()[0]), (ip.dst.into(), segment.ports()[1]));
        let (connection, from) = match packet.onward {
            PacketDirection::In { from, .. } if crosses(&ip.src, &ip.dst) => {
                self.learn_next_hop(ip.src, from.ipv4());
                (Connection { fixed: dst, mobile: src }, Side::Mobile)
            }
            PacketDirection::Out { next_hop, .. } if crosses(&ip.dst, &ip.src) => {
                self.learn_next_hop(ip.dst, next_hop);
                (Connection { fixed: src, mobile: dst }, Side::Fixed)
            }
            _ => return None,
        };
        self.accounts.insert(connection, *account);
        Some((connection, from, segment))
    }

    fn learn_next_hop(&mut self, mobile: Ipv4Addr, next_hop: Ipv4Addr) {
        if let Some(next_hops) = &mut self.next_hops {
            next_hops.insert(mobile, next_hop);
        }
    }

    pub(super) fn absorb(&mut self, handle: Handle) -> PathVerdict {
        self.wishes.push_back(Action::Absorb(handle));
        PathVerdict::Held
    }

    /// Returns the action that sends a segment of a connection to a side, in the name of the host on the
    /// other one.
    pub(super) fn send_action(
        &self,
        connection: Connection,
        to: Side,
        segment: Segment<Length>,
        class: Class,
    ) -> Action {
        let (src, dst) = match to {
            Side::Mobile => (connection.fixed.0, connection.mobile.0),
            Side::Fixed => (connection.mobile.0, connection.fixed.0),
        };
        let (src, dst) = (ipv4_of(src), ipv4_of(dst));
        let ip = Header { ecn: segment.ecn(), ..header(src, dst, segment.protocol()) };
        self.send_copy_action(connection, to, (ip, None), segment, class)
    }

    /// Does the same under this IP header, as a copy of a packet or as a new one.
    pub(super) fn send_copy_action(
        &self,
        connection: Connection,
        to: Side,
        (ip, copy_of): (Header, Option<FlowPacketId>),
        segment: Segment<Length>,
        class: Class,
    ) -> Action {
        let account = self.accounts.get(&connection).copied().unwrap_or(PacketAccount::External);
        let next_hop =
            self.next_hops.as_ref().and_then(|known| known.get(&ip.dst)).copied().unwrap_or(ip.dst);
        let len_bytes = (HEADER_LEN + segment.wire_len()) as u32;
        let body = Body::Segment(segment);
        let sending = MiddleboxPacket { account, ip, body, len_bytes, next_hop, class, copy_of };
        match to {
            Side::Mobile => Action::Send(sending),
            Side::Fixed => Action::Route(sending),
        }
    }
}
