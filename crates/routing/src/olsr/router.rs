//! Common router interface of OLSR.

use super::agent::Olsr;
use super::types::{Event, Received, Signal};
use crate::DropReason;
use crate::router::{
    self, Custody, Decision, FailedTransmission, Message, Report, RouteQuery, Router, Transmission,
};
use hopline_core::{Instant, LinkId, StateMachine};
use std::net::Ipv4Addr;
use std::sync::Arc;

impl<M: Copy> Router<M> for Olsr {
    fn route(&mut self, _now: Instant, question: RouteQuery<M>) -> Decision {
        match Self::route(self, question.destination) {
            Some(route) => Decision::Forward { next_hop: route.next_hop },
            None => Decision::Dropped { reason: DropReason::NoRoute },
        }
    }

    fn has_route(&self, _now: Instant, peer: Ipv4Addr) -> bool {
        Self::route(self, peer).is_some()
    }

    fn handle_message(&mut self, now: Instant, received: router::Received<M>) -> Custody {
        let router::Packet { source: from, message, .. } = received.packet;
        if let (Message::Olsr(packet), router::Receiver::ThisNode) = (message, received.to) {
            self.handle_packet(now, LinkId::ONLY, Received { packet, from });
        }
        Custody::Refused
    }

    fn handle_link_failure(
        &mut self,
        now: Instant,
        neighbour: Ipv4Addr,
        _lost: FailedTransmission<M>,
    ) -> Custody {
        self.handle_signal(now, Signal::LinkFailed { neighbour });
        Custody::Refused
    }

    fn handle_timeout(&mut self, now: Instant) {
        StateMachine::handle_timeout(self, now);
    }

    fn poll_timeout(&self) -> Option<Instant> {
        StateMachine::poll_timeout(self).map(|(at, _)| at)
    }

    fn poll_transmit(&mut self, now: Instant) -> Option<Transmission<M>> {
        let transmit = StateMachine::poll_transmit(self, now)?;
        let (message, everybody) = (Message::Olsr(Arc::new(transmit.packet)), Ipv4Addr::BROADCAST);
        let len = message.packet_len();
        let packet = router::Packet {
            source: transmit.source,
            destination: everybody,
            ttl: 1,
            message,
            payload: None,
        };
        Some(Transmission { packet, next_hop: everybody, len })
    }

    fn poll_event(&mut self) -> Option<Report<M>> {
        Some(match StateMachine::poll_event(self)? {
            Event::RouteFound { destination, .. } => Report::RouteFound { destination },
            Event::RouteLost { destination } => Report::RouteLost { destination },
        })
    }
}
