//! Neighborhood RED as a middlebox of a node.

use crate::ids::Interface;
use crate::middlebox::{Action, Middlebox, MiddleboxPacket, PassingPacket, PathVerdict};
use crate::outcome::{NeighborhoodSeries, NoticeCounts};
use crate::packet::{Body, PacketAccount, header};
use crate::spec::RadioSpec;
use crate::trace::DropReason;
use hopline_core::{Duration, Instant, LinkId, NodeId, Purpose, RandomStream, StateMachine};
use hopline_queue::neighborhood_red::{
    self, Arrival, ChannelTime, Destination, NeighborhoodRed, OutgoingNotice, Signal,
};
use hopline_queue::red::RedDecision;
use hopline_queue::{Class, EcnCapability};
use hopline_wire::ipv4::{Ecn, HEADER_LEN, Header, Protocol};
use hopline_wire::udp;
use std::net::Ipv4Addr;

/// Time between two looks: Tinterval as published. Each is the last thing that happens at its moment, so that
/// it meets what the node has made of the interval that ends there.
pub(crate) const OBSERVATION_INTERVAL: Duration = Duration::from_millis(100);

/// Neighborhood RED state machine of a node.
#[derive(Debug)]
pub(crate) struct Neighborhood {
    pub(super) red: NeighborhoodRed,
    address: Ipv4Addr,
    /// Series of a node that is observed.
    pub(crate) series: Option<NeighborhoodSeries>,
}

impl Neighborhood {
    /// Returns the state of a node of this number, if it is a member.
    pub(crate) fn from_spec(spec: &RadioSpec, node: NodeId, (seed, run): (u64, u64)) -> Option<Box<Self>> {
        let neighborhood = spec.neighborhood.as_ref().filter(|all| all.members.contains(node))?;
        let stream = RandomStream::new(seed, run, node, Purpose::Neighborhood);
        let machine = NeighborhoodRed::new(neighborhood.config, node.ipv4(), Instant::ZERO, stream);
        let is_observed = neighborhood.observed.contains(&node);
        let series =
            is_observed.then(|| NeighborhoodSeries::new(&neighborhood.config, neighborhood.observed_weight));
        Some(Box::new(Self { red: machine, address: node.ipv4(), series }))
    }

    /// Returns the counters, with the pairs of a notice and an intended receiver, and those of them in which
    /// it arrived.
    pub(crate) fn notices(&self, (intended, arrived): (u64, u64)) -> NoticeCounts {
        let stats = self.red.stats();
        NoticeCounts {
            intended,
            arrived,
            sent: stats.notices_sent,
            relayed: stats.notices_relayed,
            received: stats.notices_received,
            ignored: stats.ignored(),
            capped: stats.capped,
        }
    }

    fn admit(&mut self, now: Instant, packet: PassingPacket<'_>, coming: Arrival) -> PathVerdict {
        if packet.class() == Class::Routing || !packet.is_traffic() || !is_over_radio(packet) {
            return PathVerdict::Pass;
        }
        let marks = self.red.config().action.marks(match packet.view.ecn {
            Ecn::NotCapable => EcnCapability::NotCapable,
            Ecn::Capable0 | Ecn::Capable1 | Ecn::CongestionExperienced => EcnCapability::Capable,
        });
        match self.red.admit(now, coming) {
            RedDecision::Enqueue => PathVerdict::Pass,
            RedDecision::Signal if marks => PathVerdict::Marked,
            RedDecision::Signal | RedDecision::Drop => PathVerdict::Dropped(DropReason::Neighborhood),
        }
    }
}

impl Middlebox for Neighborhood {
    fn handle_overheard(&mut self, now: Instant, packet: PassingPacket<'_>, from: NodeId) {
        self.red.handle_signal(now, Signal::FrameReceived(from.ipv4()));
        if let Body::Ncn(notice) = packet.packet().body {
            // Notices are not forwarded: their source is the neighbour, if it is honest.
            let received = neighborhood_red::ReceivedNotice { from: packet.packet().ip.src, notice };
            self.red.handle_packet(now, LinkId::ONLY, received);
        }
    }

    fn handle_ingress(&mut self, now: Instant, packet: PassingPacket<'_>) -> PathVerdict {
        self.admit(now, packet, Arrival::Incoming)
    }

    fn handle_egress(&mut self, now: Instant, packet: PassingPacket<'_>, next_hop: Ipv4Addr) -> PathVerdict {
        self.admit(now, packet, Arrival::Outgoing { next_hop })
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.red.handle_timeout(now);
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.red.poll_timeout().map(|(at, _)| at)
    }

    fn poll_action(&mut self, now: Instant) -> Option<Action> {
        if let Some(outgoing) = self.red.poll_transmit(now) {
            return Some(Action::Send(notice_packet(self.address, outgoing)));
        }
        let neighborhood_red::Event::Sample = self.red.poll_event()?;
        Some(Action::ChannelTime)
    }

    fn handle_channel_time(&mut self, now: Instant, time: ChannelTime) {
        self.red.handle_signal(now, Signal::Channel(time));
    }
}

/// Returns the packet of a notice to be sent under the address `source`.
pub(crate) fn notice_packet(
    source: Ipv4Addr,
    OutgoingNotice { to, notice }: OutgoingNotice,
) -> MiddleboxPacket {
    let next_hop = match to {
        Destination::Neighbour(neighbour) => neighbour,
        Destination::AllNeighbours => Ipv4Addr::BROADCAST,
    };
    let ip = Header { ttl: 1, ..header(source, next_hop, Protocol::Udp) };
    let len_bytes = (HEADER_LEN + udp::HEADER_LEN + notice.wire_len()) as u32;
    MiddleboxPacket {
        account: PacketAccount::Control,
        ip,
        body: Body::Ncn(notice),
        len_bytes,
        next_hop,
        class: Class::Routing,
        copy_of: None,
    }
}

const fn is_over_radio(packet: PassingPacket<'_>) -> bool {
    matches!(packet.at().interface, Interface::Radio(_))
}
