//! Common router interface of DSR.

use super::machine::Dsr;
use super::types::{Event, Packet, Received, Signal};
use crate::router::{self, Custody, Decision, Lost, Message, Purged, Question, Report, Router, Transmission};
use hopline_core::{Instant, LinkId, Machine};
use std::net::Ipv4Addr;

impl<M: Copy> Router<M> for Dsr<M> {
    fn route(&mut self, now: Instant, question: Question<M>) -> Decision {
        let Question { packet, destination, ttl, protocol, .. } = question;
        self.send(now, destination, ttl, protocol, packet);
        Decision::Taken
    }

    fn has_route(&self, now: Instant, peer: Ipv4Addr) -> bool {
        Self::has_route(self, now, peer)
    }

    fn receive(&mut self, now: Instant, received: router::Received<M>) -> Custody {
        let router::Received { packet, from, to } = received;
        let Some(packet) = options(packet) else { return Custody::Refused };
        self.handle_packet(now, LinkId::ONLY, Received { packet, from, to });
        Custody::Taken
    }

    fn link_failed(&mut self, now: Instant, neighbour: Ipv4Addr, lost: Lost<M>) -> Custody {
        let Lost::Message(packet) = lost else { return Custody::Refused };
        let Some(packet) = options(packet) else { return Custody::Refused };
        let custody = if packet.carried.is_some() { Custody::Taken } else { Custody::Refused };
        self.handle_signal(now, Signal::LinkFailed { neighbour, packet });
        custody
    }

    fn wake(&mut self, now: Instant) {
        self.handle_timeout(now);
    }

    fn next_wake(&self) -> Option<Instant> {
        self.poll_timeout().map(|(at, _)| at)
    }

    fn transmission(&mut self, now: Instant) -> Option<Transmission<M>> {
        let transmit = self.poll_transmit(now)?;
        let Packet { source, destination, ttl, header, carried, flow } = transmit.packet;
        let message = Message::Dsr { header, flow };
        let len = if carried.is_some() { message.wire_len() } else { message.packet_len() };
        let packet = router::Packet { source, destination, ttl, message, carried };
        Some(Transmission { packet, next_hop: transmit.next_hop, len })
    }

    fn report(&mut self) -> Option<Report<M>> {
        Some(match self.poll_event()? {
            Event::Deliver { packet, ttl } => Report::Deliver { packet, ttl },
            Event::Drop { packet, reason } => Report::Drop { packet, reason },
            Event::RouteFound { destination, .. } => Report::RouteFound { destination },
            Event::RouteLost { destination } => Report::RouteLost { destination },
            Event::PurgeQueue { next_hop } => Report::PurgeQueue { next_hop, fate: Purged::Failed },
        })
    }
}

/// Returns the packet in DSR's form, if it is a DSR packet.
fn options<M>(packet: router::Packet<M>) -> Option<Packet<M>> {
    let router::Packet { source, destination, ttl, message, carried } = packet;
    let Message::Dsr { header, flow } = message else { return None };
    Some(Packet { source, destination, ttl, header, carried, flow })
}
