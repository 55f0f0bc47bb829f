//! Common router interface of AODV.

use super::machine::Aodv;
use super::types::{Carried, Event, Received, Signal};
use crate::router::{self, Custody, Decision, Lost, Message, Purged, Question, Report, Router, Transmission};
use hopline_core::{Instant, LinkId, Machine};
use std::net::Ipv4Addr;

impl<M: Copy> Router<M> for Aodv<M> {
    fn route(&mut self, now: Instant, question: Question<M>) -> Decision {
        Self::route(self, now, question.destination, question.origin, question.packet)
    }

    fn has_route(&self, now: Instant, peer: Ipv4Addr) -> bool {
        Self::has_route(self, now, peer)
    }

    fn receive(&mut self, now: Instant, received: router::Received<M>) -> Custody {
        let router::Packet { source: from, destination: to, ttl, message, .. } = received.packet;
        if let (Message::Aodv(message), router::Receiver::Us) = (message, received.to) {
            self.handle_packet(now, LinkId::ONLY, Received { message, from, to, ttl });
        }
        Custody::Refused
    }

    fn heard(&mut self, now: Instant, neighbour: Ipv4Addr) {
        self.handle_signal(now, Signal::NeighbourHeard { neighbour });
    }

    fn link_failed(&mut self, now: Instant, neighbour: Ipv4Addr, lost: Lost<M>) -> Custody {
        let (carried, custody) = match lost {
            Lost::Data { packet, destination, source, travelled } => {
                (Carried::Data { packet, destination, source, travelled }, Custody::Taken)
            }
            Lost::Message(router::Packet { message: Message::Aodv(message), .. }) => {
                (Carried::message(&message), Custody::Refused)
            }
            Lost::Message(_) => (Carried::Nothing, Custody::Refused),
        };
        self.handle_signal(now, Signal::LinkFailed { neighbour, carried });
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
        let len = self.config.encapsulation.packet_len(&transmit.message);
        let packet = router::Packet {
            source: transmit.source,
            destination: transmit.destination,
            ttl: transmit.ttl,
            message: Message::Aodv(transmit.message),
            carried: None,
        };
        Some(Transmission { packet, next_hop: transmit.next_hop, len })
    }

    fn report(&mut self) -> Option<Report<M>> {
        Some(match self.poll_event()? {
            Event::Release { packet, next_hop } => Report::Release { packet, next_hop },
            Event::Drop { packet, reason } => Report::Drop { packet, reason },
            Event::RouteFound { destination, .. } => Report::RouteFound { destination },
            Event::RouteLost { destination } => Report::RouteLost { destination },
            Event::PurgeQueue { next_hop } => Report::PurgeQueue { next_hop, fate: Purged::Dropped },
        })
    }
}
