//! Common router interface of OLSR.

use super::machine::Olsr;
use super::types::{Event, Received, Signal};
use crate::DropReason;
use crate::router::{self, Custody, Decision, Lost, Message, Question, Report, Router, Transmission};
use hopline_core::{Instant, LinkId, Machine};
use std::net::Ipv4Addr;
use std::sync::Arc;

impl<M: Copy> Router<M> for Olsr {
    fn route(&mut self, _now: Instant, question: Question<M>) -> Decision {
        match Self::route(self, question.destination) {
            Some(route) => Decision::Forward { next_hop: route.next_hop },
            None => Decision::Dropped { reason: DropReason::NoRoute },
        }
    }

    fn has_route(&self, _now: Instant, peer: Ipv4Addr) -> bool {
        Self::route(self, peer).is_some()
    }

    fn receive(&mut self, now: Instant, received: router::Received<M>) -> Custody {
        let router::Packet { source: from, message, .. } = received.packet;
        if let (Message::Olsr(packet), router::Receiver::Us) = (message, received.to) {
            self.handle_packet(now, LinkId::ONLY, Received { packet, from });
        }
        Custody::Refused
    }

    fn link_failed(&mut self, now: Instant, neighbour: Ipv4Addr, _lost: Lost<M>) -> Custody {
        self.handle_signal(now, Signal::LinkFailed { neighbour });
        Custody::Refused
    }

    fn wake(&mut self, now: Instant) {
        self.handle_timeout(now);
    }

    fn next_wake(&self) -> Option<Instant> {
        self.poll_timeout().map(|(at, _)| at)
    }

    fn transmission(&mut self, now: Instant) -> Option<Transmission<M>> {
        let transmit = self.poll_transmit(now)?;
        let (message, everybody) = (Message::Olsr(Arc::new(transmit.packet)), Ipv4Addr::BROADCAST);
        let len = message.packet_len();
        let packet = router::Packet {
            source: transmit.source,
            destination: everybody,
            ttl: 1,
            message,
            carried: None,
        };
        Some(Transmission { packet, next_hop: everybody, len })
    }

    fn report(&mut self) -> Option<Report<M>> {
        Some(match self.poll_event()? {
            Event::RouteFound { destination, .. } => Report::RouteFound { destination },
            Event::RouteLost { destination } => Report::RouteLost { destination },
        })
    }
}
