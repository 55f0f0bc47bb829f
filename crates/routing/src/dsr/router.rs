//! Common router interface of DSR.

use super::agent::Dsr;
use super::types::{Event, Packet, Received, Signal};
use crate::router::{
    self, Custody, Decision, FailedTransmission, Message, PurgedPackets, Report, RouteQuery, Router,
    Transmission,
};
use hopline_core::{Instant, LinkId, StateMachine};
use std::net::Ipv4Addr;

impl<M: Copy> Router<M> for Dsr<M> {
    fn route(&mut self, now: Instant, question: RouteQuery<M>) -> Decision {
        let RouteQuery { packet, destination, ttl, protocol, .. } = question;
        self.send(now, destination, ttl, protocol, packet);
        Decision::Accepted
    }

    fn has_route(&self, now: Instant, peer: Ipv4Addr) -> bool {
        Self::has_route(self, now, peer)
    }

    fn handle_message(&mut self, now: Instant, received: router::Received<M>) -> Custody {
        let router::Received { packet, from, to } = received;
        let Some(packet) = as_dsr_packet(packet) else { return Custody::Refused };
        self.handle_packet(now, LinkId::ONLY, Received { packet, from, to });
        Custody::Accepted
    }

    fn handle_link_failure(
        &mut self,
        now: Instant,
        neighbour: Ipv4Addr,
        lost: FailedTransmission<M>,
    ) -> Custody {
        let FailedTransmission::Message(packet) = lost else { return Custody::Refused };
        let Some(packet) = as_dsr_packet(packet) else { return Custody::Refused };
        let custody = if packet.payload.is_some() { Custody::Accepted } else { Custody::Refused };
        self.handle_signal(now, Signal::LinkFailed { neighbour, packet });
        custody
    }

    fn handle_timeout(&mut self, now: Instant) {
        StateMachine::handle_timeout(self, now);
    }

    fn poll_timeout(&self) -> Option<Instant> {
        StateMachine::poll_timeout(self).map(|(at, _)| at)
    }

    fn poll_transmit(&mut self, now: Instant) -> Option<Transmission<M>> {
        let transmit = StateMachine::poll_transmit(self, now)?;
        let Packet { source, destination, ttl, header, payload: carried, flow } = transmit.packet;
        let message = Message::Dsr { header, flow };
        let len = if carried.is_some() { message.wire_len() } else { message.packet_len() };
        let packet = router::Packet { source, destination, ttl, message, payload: carried };
        Some(Transmission { packet, next_hop: transmit.next_hop, len })
    }

    fn poll_event(&mut self) -> Option<Report<M>> {
        Some(match StateMachine::poll_event(self)? {
            Event::Deliver { packet, ttl } => Report::Deliver { packet, ttl },
            Event::Drop { packet, reason } => Report::Drop { packet, reason },
            Event::RouteFound { destination, .. } => Report::RouteFound { destination },
            Event::RouteLost { destination } => Report::RouteLost { destination },
            Event::PurgeQueue { next_hop } => Report::PurgeQueue { next_hop, fate: PurgedPackets::Failed },
        })
    }
}

/// Returns the packet in DSR's form, if it is a DSR packet.
fn as_dsr_packet<M>(packet: router::Packet<M>) -> Option<Packet<M>> {
    let router::Packet { source, destination, ttl, message, payload: carried } = packet;
    let Message::Dsr { header, flow } = message else { return None };
    Some(Packet { source, destination, ttl, header, payload: carried, flow })
}
