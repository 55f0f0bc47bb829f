//! Common router interface of AODV.

use super::agent::Aodv;
use super::types::{Event, FailedContent, Received, Signal};
use crate::router::{
    self, Custody, Decision, FailedTransmission, Message, PurgedPackets, Report, RouteQuery, Router,
    Transmission,
};
use hopline_core::{Instant, LinkId, StateMachine};
use std::net::Ipv4Addr;

impl<M: Copy> Router<M> for Aodv<M> {
    fn route(&mut self, now: Instant, question: RouteQuery<M>) -> Decision {
        Self::route(self, now, question.destination, question.origin, question.packet)
    }

    fn has_route(&self, now: Instant, peer: Ipv4Addr) -> bool {
        Self::has_route(self, now, peer)
    }

    fn handle_message(&mut self, now: Instant, received: router::Received<M>) -> Custody {
        let router::Packet { source: from, destination: to, ttl, message, .. } = received.packet;
        if let (Message::Aodv(message), router::Receiver::ThisNode) = (message, received.to) {
            self.handle_packet(now, LinkId::ONLY, Received { message, from, to, ttl });
        }
        Custody::Refused
    }

    fn handle_reception(&mut self, now: Instant, neighbour: Ipv4Addr) {
        self.handle_signal(now, Signal::NeighbourHeard { neighbour });
    }

    fn handle_link_failure(
        &mut self,
        now: Instant,
        neighbour: Ipv4Addr,
        lost: FailedTransmission<M>,
    ) -> Custody {
        let (carried, custody) = match lost {
            FailedTransmission::Data { packet, destination, source, travelled } => {
                (FailedContent::Data { packet, destination, source, travelled }, Custody::Accepted)
            }
            FailedTransmission::Message(router::Packet { message: Message::Aodv(message), .. }) => {
                (FailedContent::of_message(&message), Custody::Refused)
            }
            FailedTransmission::Message(_) => (FailedContent::Other, Custody::Refused),
        };
        self.handle_signal(now, Signal::LinkFailed { neighbour, content: carried });
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
        let len = self.config.encapsulation.packet_len(&transmit.message);
        let packet = router::Packet {
            source: transmit.source,
            destination: transmit.destination,
            ttl: transmit.ttl,
            message: Message::Aodv(transmit.message),
            payload: None,
        };
        Some(Transmission { packet, next_hop: transmit.next_hop, len })
    }

    fn poll_event(&mut self) -> Option<Report<M>> {
        Some(match StateMachine::poll_event(self)? {
            Event::Release { packet, next_hop } => Report::Release { packet, next_hop },
            Event::Drop { packet, reason } => Report::Drop { packet, reason },
            Event::RouteFound { destination, .. } => Report::RouteFound { destination },
            Event::RouteLost { destination } => Report::RouteLost { destination },
            Event::PurgeQueue { next_hop } => Report::PurgeQueue { next_hop, fate: PurgedPackets::Dropped },
        })
    }
}
