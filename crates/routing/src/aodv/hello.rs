//! HELLO messages (RFC 3561 §6.9).

use super::config::HelloWhen;
use super::machine::Aodv;
use super::search::Answered;
use super::stats::Ignored;
use super::table::{Expiry, Offer, Role, Route, Verdict};
use super::types::Timer;
use hopline_core::{Duration, Instant};
use hopline_wire::aodv::{Message, Rrep};
use std::net::Ipv4Addr;

/// A HELLO interval of zero would never let time pass.
const SHORTEST_INTERVAL: Duration = Duration::from_millis(1);

impl<M: Copy> Aodv<M> {
    /// A reply that was broadcast is a HELLO about its sender.
    pub(super) fn handle_hello(&mut self, now: Instant, from: Ipv4Addr, hello: &Rrep) {
        if hello.destination != from {
            return self.stats.ignore(Ignored::BadAddress);
        }
        let offer = Offer {
            next_hop: from,
            hops: 1,
            seq: hello.destination_seq,
            expiry: Expiry::AtLeast(now + hello.lifetime),
        };
        let role = self.routes.valid(now, from).map_or(Role::Neighbour, |route| route.role);
        self.learn_previous_hop(now, from);
        if self.routes.offer(now, from, offer) == Verdict::Better {
            self.routes.set_role(from, role);
            self.found(now, from, Answered::Otherwise);
        }
        if let Some(patience) = self.config.link_sensing.hello().map(|hello| hello.patience()) {
            self.watch.begin(now, from, patience);
        }
    }

    pub(super) fn say_hello(&mut self, now: Instant) {
        let Some(hello) = self.config.link_sensing.hello().copied() else { return };
        let interval = hello.interval.max(SHORTEST_INTERVAL);
        self.timers.set(Timer::Hello, now + interval);
        // Any broadcast of the last interval has told the neighbours as much.
        let quiet = now.since(self.last_broadcast) >= interval || self.last_broadcast == Instant::ZERO;
        let takes_part = hello.when == HelloWhen::Always || self.is_on_active_route(now);
        if !quiet || !takes_part {
            return;
        }
        let message = Rrep {
            repair: false,
            ack_required: false,
            prefix_size: 0,
            hop_count: 0,
            destination: self.address,
            destination_seq: self.seq,
            originator: self.address,
            lifetime: hello.patience(),
        };
        self.stats.hellos_sent += 1;
        let due = self.departure(now, self.config.originated_jitter);
        self.broadcast(now, due, Message::Rrep(message), 1);
    }

    fn is_on_active_route(&self, now: Instant) -> bool {
        let active =
            |route: &Route, to: Ipv4Addr| route.role == Role::Path && self.routes.is_usable(now, to, route);
        self.routes.iter().any(|(destination, route)| active(route, destination))
    }

    /// §6.9: a neighbour not heard for ALLOWED_HELLO_LOSS intervals is gone.
    pub(super) fn lose_silent_neighbours(&mut self, now: Instant) {
        let Some(patience) = self.config.link_sensing.hello().map(|hello| hello.patience()) else { return };
        while let Some(neighbour) = self.watch.take_silent(now, patience) {
            self.link_broken(now, neighbour, None);
        }
    }
}
