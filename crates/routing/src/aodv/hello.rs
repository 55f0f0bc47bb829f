//! HELLO messages (RFC 3561 §6.9).

use super::agent::Aodv;
use super::config::{Hello, HelloLiveness, HelloSchedule, HelloSenders};
use super::discoveries::FoundBy;
use super::stats::IgnoredReason;
use super::table::{Expiry, OfferResult, Route, RouteOffer, RouteRole};
use super::types::Timer;
use hopline_core::{Duration, Instant};
use hopline_wire::aodv::{Message, Rrep};
use std::net::Ipv4Addr;

/// A HELLO interval of zero would never let time pass.
const MIN_INTERVAL: Duration = Duration::from_millis(1);

impl<M: Copy> Aodv<M> {
    /// Handles a broadcast reply, which is a HELLO of its sender.
    pub(super) fn handle_hello(&mut self, now: Instant, from: Ipv4Addr, hello: &Rrep) {
        if hello.destination != from {
            return self.stats.ignore(IgnoredReason::BadAddress);
        }
        let sensed = self.config.link_sensing.hello().copied();
        // The route must not end before its neighbour is given up.
        let lifetime = hello.lifetime + sensed.map_or(Duration::ZERO, |own| own.slack);
        let offer = RouteOffer {
            next_hop: from,
            hops: 1,
            seq: hello.destination_seq,
            expiry: Expiry::AtLeast(now + lifetime),
        };
        let role = self.routes.valid(now, from).map_or(RouteRole::Neighbour, |route| route.role);
        self.learn_previous_hop(now, from);
        if self.routes.offer(now, from, offer) == OfferResult::Better {
            self.routes.set_role(from, role);
            self.complete_discovery(now, from, FoundBy::OtherMessage);
        }
        if let Some(own) = sensed {
            self.liveness.start(now, from, own.allowed_silence());
        }
    }

    /// Returns whether any packet of a neighbour ends its silence.
    pub(super) fn any_packet_is_liveness(&self) -> bool {
        self.config.link_sensing.hello().is_some_and(|hello| hello.liveness == HelloLiveness::AnyPacket)
    }

    pub(super) fn send_hello(&mut self, now: Instant) {
        let Some(hello) = self.config.link_sensing.hello().copied() else { return };
        let interval = hello.interval.max(MIN_INTERVAL);
        // Any broadcast of the last interval has had the same effect on the neighbours.
        let quiet = now.since(self.last_broadcast) >= interval || self.last_broadcast == Instant::ZERO;
        let next = self.next_hello(now, hello, interval, quiet);
        self.timers.set(Timer::Hello, next);
        let takes_part = hello.senders == HelloSenders::Always || self.is_on_active_route(now);
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
            lifetime: hello.lifetime(),
        };
        self.stats.hellos_sent += 1;
        let due = match hello.schedule {
            // Drawn already, with the interval.
            HelloSchedule::AfterBroadcast { jitter } if !jitter.is_zero() => now,
            _ => self.departure_time(now, self.config.originated_jitter),
        };
        self.broadcast(now, due, Message::Rrep(message), 1);
    }

    /// Returns the time at which this node considers its next HELLO. `quiet`: the last interval passed without a broadcast.
    fn next_hello(&mut self, now: Instant, hello: Hello, interval: Duration, quiet: bool) -> Instant {
        let HelloSchedule::AfterBroadcast { jitter } = hello.schedule else { return now + interval };
        let middle = if quiet { now + interval } else { self.last_broadcast + interval };
        if jitter.is_zero() {
            return middle;
        }
        let half = Duration::from_nanos(jitter.as_nanos() / 2);
        let drawn = self.stream.duration_below(jitter);
        // AODV-UU postpones a HELLO by the amount that would move it into the past.
        if drawn < half && middle.since(now) < half - drawn {
            return middle + (half - drawn);
        }
        now + (middle.since(now) + drawn).saturating_sub(half)
    }

    fn is_on_active_route(&self, now: Instant) -> bool {
        let active = |route: &Route, to: Ipv4Addr| {
            route.role == RouteRole::Path && self.routes.is_usable(now, to, route)
        };
        self.routes.iter().any(|(destination, route)| active(route, destination))
    }

    /// Gives up neighbours that were silent for ALLOWED_HELLO_LOSS intervals and the slack (§6.9).
    pub(super) fn remove_silent_neighbours(&mut self, now: Instant) {
        let Some(patience) = self.config.link_sensing.hello().map(|hello| hello.allowed_silence()) else {
            return;
        };
        while let Some(neighbour) = self.liveness.take_lost(now, patience) {
            self.break_link(now, neighbour, None);
        }
    }
}
