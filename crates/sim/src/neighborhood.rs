//! Nodes with Neighborhood RED: their radio times, notices, and what they drop for others.

mod delivery;
mod observation;

use crate::alarm::Alarm;
use crate::node::{Node, Queued};
use crate::outcome::{NeighborhoodSeries, Notices};
use crate::packet::{Account, Body, Handle, Mark, Packet};
use crate::queueing::Told;
use crate::spec::RadioSpec;
use crate::stack::header;
use crate::trace::{DropReason, Place, Tracer};
use crate::world::{Event, World};
use delivery::Delivery;
use hopline_core::{Instant, LinkId, Machine, NodeId, Purpose, Stream};
use hopline_queue::neighborhood_red::{self, ChannelTime, Coming, NeighborhoodRed, Outgoing, Signal, To};
use hopline_queue::red::Verdict;
use hopline_queue::{Capability, Class};
use hopline_radio::mac::Mac;
use hopline_wire::ipv4::{Ecn, HEADER_LEN, Header, Protocol};
use hopline_wire::{ncn, udp};
pub(crate) use observation::OBSERVATION_INTERVAL;
use std::net::Ipv4Addr;

/// The machine of a node, and when it will be woken.
#[derive(Debug)]
pub(crate) struct Neighborhood {
    pub(crate) machine: NeighborhoodRed,
    alarm: Alarm,
    delivery: Delivery,
    /// Of nodes that are observed.
    pub(crate) series: Option<NeighborhoodSeries>,
}

/// What is to become of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Admission {
    Admitted(Handle),
    /// It was dropped; the caller's hold on it has ended.
    Dropped,
}

impl Neighborhood {
    /// That of a node of this number, if it is a member.
    pub(crate) fn of(spec: &RadioSpec, node: NodeId, (seed, run): (u64, u64)) -> Option<Box<Self>> {
        let neighborhood = spec.neighborhood.as_ref().filter(|all| all.members.include(node))?;
        let stream = Stream::new(seed, run, node, Purpose::Neighborhood);
        let machine = NeighborhoodRed::new(neighborhood.config, node.ipv4(), Instant::ZERO, stream);
        let series =
            neighborhood.observed.contains(&node).then(|| NeighborhoodSeries::new(&neighborhood.config));
        Some(Box::new(Self { machine, alarm: Alarm::OFF, delivery: Delivery::default(), series }))
    }

    /// What was counted.
    pub(crate) fn notices(&self) -> Notices {
        let stats = self.machine.stats();
        let (intended, arrived) = self.delivery.pairs();
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
}

impl Node {
    fn neighborhood(&mut self) -> Option<&mut NeighborhoodRed> {
        self.neighborhood.as_deref_mut().map(|neighborhood| &mut neighborhood.machine)
    }
}

impl<T: Tracer> World<T> {
    /// The machine of `node` is due.
    pub(crate) fn wake_neighborhood(&mut self, node: u32) {
        let now = self.now;
        let Some(neighborhood) = &mut self.nodes[node as usize].neighborhood else { return };
        if neighborhood.alarm.rings(now) {
            neighborhood.machine.handle_timeout(now);
            self.drive_neighborhood(node);
        }
    }

    /// Drains the machine of `node`: notices, and questions about the radio.
    pub(crate) fn drive_neighborhood(&mut self, node: u32) {
        let now = self.now;
        loop {
            let state = &mut self.nodes[node as usize];
            let Some(neighborhood) = &mut state.neighborhood else { return };
            let machine = &mut neighborhood.machine;
            if let Some(outgoing) = machine.poll_transmit(now) {
                self.send_notice(node, NodeId(node).ipv4(), outgoing);
            } else if let Some(neighborhood_red::Event::Sample) = machine.poll_event() {
                let radio = state.radio.as_ref().expect("only nodes with a radio are members");
                machine.handle_signal(now, Signal::Channel(channel_time(&radio.mac, now)));
            } else {
                break;
            }
        }
        let Some(neighborhood) = &mut self.nodes[node as usize].neighborhood else { return };
        let wanted = neighborhood.machine.poll_timeout().map(|(at, _)| at);
        neighborhood.alarm.set(now, wanted, &mut self.scheduler, Event::Neighborhood { node });
    }

    /// The radio of `node` decoded a frame of a neighbour with this packet, whoever it was for.
    pub(crate) fn hear_neighbor(&mut self, node: u32, handle: Handle, from: NodeId) {
        let now = self.now;
        let Some(machine) = self.nodes[node as usize].neighborhood() else { return };
        machine.handle_signal(now, Signal::Heard(from.ipv4()));
        let &Packet { ip, ref body, serial, .. } = self.packets.get(handle);
        if let &Body::Ncn(notice) = body {
            // Notices are not forwarded: their source is the neighbour, if it is honest.
            let received = neighborhood_red::Received { from: ip.src, notice };
            machine.handle_packet(now, LinkId::ONLY, received);
            if let Some(sender) = &mut self.nodes[from.index()].neighborhood {
                sender.delivery.heard(serial, node);
            }
            self.drive_neighborhood(node);
        }
    }

    /// A packet comes to `node`. What does not belong to a flow is let pass.
    pub(crate) fn admit(&mut self, node: u32, mut handle: Handle, coming: Coming) -> Admission {
        let now = self.now;
        let Some(machine) = self.nodes[node as usize].neighborhood() else {
            return Admission::Admitted(handle);
        };
        if !self.packets.get(handle).is_traffic() {
            return Admission::Admitted(handle);
        }
        let marks = machine.config().action.marks(match self.packets.ecn(handle) {
            Ecn::NotCapable => Capability::NotCapable,
            Ecn::Capable0 | Ecn::Capable1 | Ecn::CongestionExperienced => Capability::Capable,
        });
        match machine.admit(now, coming) {
            Verdict::Enter => {}
            Verdict::Notify if marks => {
                handle.mark = Mark::Congestion;
                self.note_told((Place::Network, node), Told::of_mark(handle));
            }
            Verdict::Notify | Verdict::Drop => {
                self.drop_packet(node, handle, DropReason::Neighborhood);
                return Admission::Dropped;
            }
        }
        Admission::Admitted(handle)
    }

    /// As [`admit`](Self::admit), of a packet on its way down to a radio.
    pub(crate) fn admit_down(&mut self, node: u32, queued: Queued, next_hop: Ipv4Addr) -> Option<Queued> {
        if queued.class == Class::Routing {
            return Some(queued);
        }
        match self.admit(node, queued.handle, Coming::Down { next_hop }) {
            Admission::Admitted(handle) => Some(Queued { handle, ..queued }),
            Admission::Dropped => None,
        }
    }

    /// Sends a notice from `node`, under the address `source`.
    pub(crate) fn send_notice(&mut self, node: u32, source: Ipv4Addr, Outgoing { to, notice }: Outgoing) {
        let destination = match to {
            To::Neighbour(neighbour) => neighbour,
            To::Everyone => Ipv4Addr::BROADCAST,
        };
        let ip = Header { ttl: 1, ..header(source, destination, Protocol::Udp) };
        let len_bytes = (HEADER_LEN + udp::HEADER_LEN + notice.wire_len()) as u32 + self.extra_header_bytes;
        let body = Body::Ncn(notice);
        let packet = Packet { ip, body, len_bytes, account: Account::Control, made: self.now, serial: 0 };
        let handle = self.packets.insert(packet);
        let mut to = self.in_range(node);
        to.retain(|&other| self.nodes[other as usize].neighborhood.is_some());
        if let Some(sender) = &mut self.nodes[node as usize].neighborhood {
            sender.delivery.sent(self.packets.get(handle).serial, to);
        }
        self.send_to(node, handle, destination, Class::Routing);
    }
}

/// The UDP ports of notices.
pub(crate) const PORTS: [u16; 2] = [ncn::PORT; 2];

/// What the radio did so far, as Neighborhood RED counts it.
fn channel_time(mac: &Mac<Handle>, now: Instant) -> ChannelTime {
    let time = mac.airtime(now);
    let busy = time.transmitting + time.receiving + time.sensing + time.nav;
    ChannelTime {
        elapsed: busy + time.idle,
        busy,
        transmitting: time.transmitting,
        receiving: time.addressed,
    }
}
