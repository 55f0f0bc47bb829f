//! Neighborhood RED as a middlebox of a node.

use crate::ids::Interface;
use crate::in_path::{InPath, Passage, Passing, Sending, Wish};
use crate::outcome::{NeighborhoodSeries, Notices};
use crate::packet::{Account, Body, header};
use crate::spec::RadioSpec;
use crate::trace::DropReason;
use hopline_core::{Duration, Instant, LinkId, Machine, NodeId, Purpose, Stream};
use hopline_queue::neighborhood_red::{self, ChannelTime, Coming, NeighborhoodRed, Outgoing, Signal, To};
use hopline_queue::red::Verdict;
use hopline_queue::{Capability, Class};
use hopline_wire::ipv4::{Ecn, HEADER_LEN, Header, Protocol};
use hopline_wire::udp;
use std::net::Ipv4Addr;

/// Time between two looks: Tinterval as published. Each is the last thing that happens at its moment, so that
/// it meets what the node has made of the interval that ends there.
pub(crate) const OBSERVATION_INTERVAL: Duration = Duration::from_millis(100);

/// Neighborhood RED state machine of a node.
#[derive(Debug)]
pub(crate) struct Neighborhood {
    pub(super) machine: NeighborhoodRed,
    address: Ipv4Addr,
    /// Series of a node that is observed.
    pub(crate) series: Option<NeighborhoodSeries>,
}

impl Neighborhood {
    /// Returns the state of a node of this number, if it is a member.
    pub(crate) fn of(spec: &RadioSpec, node: NodeId, (seed, run): (u64, u64)) -> Option<Box<Self>> {
        let neighborhood = spec.neighborhood.as_ref().filter(|all| all.members.include(node))?;
        let stream = Stream::new(seed, run, node, Purpose::Neighborhood);
        let machine = NeighborhoodRed::new(neighborhood.config, node.ipv4(), Instant::ZERO, stream);
        let is_observed = neighborhood.observed.contains(&node);
        let series =
            is_observed.then(|| NeighborhoodSeries::new(&neighborhood.config, neighborhood.observed_weight));
        Some(Box::new(Self { machine, address: node.ipv4(), series }))
    }

    /// Returns the counters, with the pairs of a notice and an intended receiver, and those of them in which
    /// it arrived.
    pub(crate) fn notices(&self, (intended, arrived): (u64, u64)) -> Notices {
        let stats = self.machine.stats();
        Notices {
            intended,
            arrived,
            sent: stats.notices_sent,
            relayed: stats.notices_relayed,
            received: stats.notices_received,
            ignored: stats.ignored(),
            capped: stats.capped,
        }
    }

    fn admit(&mut self, now: Instant, packet: Passing<'_>, coming: Coming) -> Passage {
        if packet.class() == Class::Routing || !packet.is_traffic() || !is_radio(packet) {
            return Passage::Pass;
        }
        let marks = self.machine.config().action.marks(match packet.view.ecn {
            Ecn::NotCapable => Capability::NotCapable,
            Ecn::Capable0 | Ecn::Capable1 | Ecn::CongestionExperienced => Capability::Capable,
        });
        match self.machine.admit(now, coming) {
            Verdict::Enter => Passage::Pass,
            Verdict::Notify if marks => Passage::Marked,
            Verdict::Notify | Verdict::Drop => Passage::Dropped(DropReason::Neighborhood),
        }
    }
}

impl InPath for Neighborhood {
    fn hear(&mut self, now: Instant, packet: Passing<'_>, from: NodeId) {
        self.machine.handle_signal(now, Signal::Heard(from.ipv4()));
        if let Body::Ncn(notice) = packet.packet().body {
            // Notices are not forwarded: their source is the neighbour, if it is honest.
            let received = neighborhood_red::Received { from: packet.packet().ip.src, notice };
            self.machine.handle_packet(now, LinkId::ONLY, received);
        }
    }

    fn ingress(&mut self, now: Instant, packet: Passing<'_>) -> Passage {
        self.admit(now, packet, Coming::Up)
    }

    fn egress(&mut self, now: Instant, packet: Passing<'_>, next_hop: Ipv4Addr) -> Passage {
        self.admit(now, packet, Coming::Down { next_hop })
    }

    fn wake(&mut self, now: Instant) {
        self.machine.handle_timeout(now);
    }

    fn next_wake(&self) -> Option<Instant> {
        self.machine.poll_timeout().map(|(at, _)| at)
    }

    fn poll(&mut self, now: Instant) -> Option<Wish> {
        if let Some(outgoing) = self.machine.poll_transmit(now) {
            return Some(Wish::Send(notice(self.address, outgoing)));
        }
        let neighborhood_red::Event::Sample = self.machine.poll_event()?;
        Some(Wish::ChannelTime)
    }

    fn take_channel_time(&mut self, now: Instant, time: ChannelTime) {
        self.machine.handle_signal(now, Signal::Channel(time));
    }
}

/// Returns the packet of a notice to be sent under the address `source`.
pub(crate) fn notice(source: Ipv4Addr, Outgoing { to, notice }: Outgoing) -> Sending {
    let next_hop = match to {
        To::Neighbour(neighbour) => neighbour,
        To::Everyone => Ipv4Addr::BROADCAST,
    };
    let ip = Header { ttl: 1, ..header(source, next_hop, Protocol::Udp) };
    let len_bytes = (HEADER_LEN + udp::HEADER_LEN + notice.wire_len()) as u32;
    Sending {
        account: Account::Control,
        ip,
        body: Body::Ncn(notice),
        len_bytes,
        next_hop,
        class: Class::Routing,
        copy_of: None,
    }
}

const fn is_radio(packet: Passing<'_>) -> bool {
    matches!(packet.at().interface, Interface::Radio(_))
}
