//! Broken links and route errors (RFC 3561 §6.11).

use super::config::{ControlFailure, ErrorScope, LinkSensing, LocalRepair, QueuePurge};
use super::machine::Aodv;
use super::stats::Ignored;
use super::table::RouteState;
use super::types::{Carried, Event};
use crate::DropReason;
use hopline_core::{Instant, Seq32};
use hopline_wire::aodv::{Message, Rerr};
use std::collections::BTreeSet;
use std::net::Ipv4Addr;

/// Most destinations in one message: the count is a byte (§5.3).
const MOST_DESTINATIONS: usize = 255;

/// Lost routes, and the precursors to inform.
#[derive(Debug, Default)]
pub(super) struct Casualties {
    unreachable: Vec<(Ipv4Addr, Seq32)>,
    users: BTreeSet<Ipv4Addr>,
}

impl Casualties {
    pub(super) fn add(&mut self, destination: Ipv4Addr, seq: Option<Seq32>, users: &[Ipv4Addr]) {
        // The message has no way to say "unknown".
        self.unreachable.push((destination, seq.unwrap_or_default()));
        self.users.extend(users);
    }
}

/// Reason for a route error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cause {
    /// A link failed here, or a packet has no route.
    Local,
    /// A neighbour reported it. All its neighbours received the report at the same instant.
    Reported,
}

impl<M: Copy> Aodv<M> {
    /// Handles a link failure to `neighbour` that the link layer reported.
    pub(super) fn handle_link_failure(&mut self, now: Instant, neighbour: Ipv4Addr, carried: Carried<M>) {
        let believed = match (self.config.link_sensing, &carried) {
            (LinkSensing::Hello(_), _) => false,
            (_, Carried::Reply | Carried::Control) => {
                self.config.control_failure == ControlFailure::LinkBreak
            }
            (_, Carried::Data { .. } | Carried::Nothing) => true,
        };
        match carried {
            _ if believed => self.link_failed(now, neighbour, carried),
            Carried::Data { packet, .. } => self.drop_packet(packet, DropReason::LinkFailure),
            _ => {}
        }
    }

    fn link_failed(&mut self, now: Instant, neighbour: Ipv4Addr, carried: Carried<M>) {
        let mut spared = None;
        match carried {
            Carried::Data { packet, destination, travelled, .. } => {
                if self.repair(now, neighbour, destination, travelled) {
                    self.hold(now, destination, packet);
                    if matches!(self.config.local_repair, LocalRepair::WhenPastHalfWay { .. }) {
                        return;
                    }
                    spared = Some(destination);
                } else {
                    self.drop_packet(packet, DropReason::LinkFailure);
                }
            }
            // §6.8: a failed reply reveals a unidirectional link.
            Carried::Reply => {
                self.ack_waits.acknowledged(neighbour);
                self.blacklist.add(now, neighbour, now + self.config.blacklist_timeout);
            }
            Carried::Control | Carried::Nothing => {}
        }
        self.link_broken(now, neighbour, spared);
    }

    /// Ends every route over `neighbour`, except the one under repair (§6.11 case i).
    pub(super) fn link_broken(&mut self, now: Instant, neighbour: Ipv4Addr, spared: Option<Ipv4Addr>) {
        self.stats.links_broken += 1;
        self.watch.forget(neighbour);
        if self.config.queue_purge != QueuePurge::Never {
            self.outbox.events.push_back(Event::PurgeQueue { next_hop: neighbour });
        }
        let casualties = self.end_routes_over(now, neighbour, spared);
        self.send_error(now, casualties, Cause::Local);
    }

    fn end_routes_over(&mut self, now: Instant, neighbour: Ipv4Addr, spared: Option<Ipv4Addr>) -> Casualties {
        let mut casualties = Casualties::default();
        let (forget, scope) = (self.routes.forget_at(now), self.config.error_scope);
        let events = &mut self.outbox.events;
        self.routes.for_each_known(now, |destination, route| {
            route.remove_precursor(neighbour);
            if route.next_hop != neighbour || Some(destination) == spared {
                return;
            }
            route.invalidate(RouteState::Invalid, forget);
            events.push_back(Event::RouteLost { destination });
            if scope == ErrorScope::AllBroadcast || !route.precursors().is_empty() {
                casualties.add(destination, route.seq(), route.precursors());
            }
            route.clear_precursors();
        });
        self.routes.note_expiry(forget);
        casualties
    }

    /// Reports packets of a neighbour for a destination without a route (§6.11 case ii).
    pub(super) fn report_no_route(&mut self, now: Instant, destination: Ipv4Addr, previous_hop: Ipv4Addr) {
        let mut casualties = Casualties::default();
        match self.routes.get(now, destination) {
            Some(route) => casualties.add(destination, route.seq(), route.precursors()),
            None => casualties.add(destination, None, &[]),
        }
        // The RFC informs the precursors only. They may be forgotten by now, and the node that sent the packet needs to
        // know.
        if self.is_other_host(previous_hop) {
            casualties.users.insert(previous_hop);
        }
        self.send_error(now, casualties, Cause::Local);
    }

    /// Handles a route error of a neighbour (§6.11 case iii).
    pub(super) fn handle_error(&mut self, now: Instant, from: Ipv4Addr, error: &Rerr) {
        let mut casualties = Casualties::default();
        let mut struck = 0;
        let (forget, copies) = (self.routes.forget_at(now), self.config.local_repair.keeps_number());
        for &(destination, seq) in error.unreachable.iter().take(MOST_DESTINATIONS) {
            let Some(route) = self.routes.known(now, destination).filter(|route| route.next_hop == from)
            else {
                continue;
            };
            struck += 1;
            if error.no_delete {
                // §6.12: the route continues with a greater length. Precursors are informed and nothing else changes.
                casualties.add(destination, Some(seq), route.precursors());
                continue;
            }
            // The RFC copies the number; a number that would not rise could let a stale route return as a loop.
            route.invalidate(RouteState::Invalid, forget);
            if copies {
                route.copy_seq(seq);
            } else {
                route.raise_seq(seq);
            }
            if !route.precursors().is_empty() {
                casualties.add(destination, route.seq(), route.precursors());
            }
            route.clear_precursors();
            self.outbox.events.push_back(Event::RouteLost { destination });
        }
        if struck == 0 {
            return;
        }
        self.routes.note_expiry(forget);
        if error.no_delete {
            return self.send_errors(now, casualties, Cause::Reported, Deletion::Forbidden);
        }
        if self.config.queue_purge == QueuePurge::OnLinkFailureAndRouteError {
            self.outbox.events.push_back(Event::PurgeQueue { next_hop: from });
        }
        self.send_error(now, casualties, Cause::Reported);
    }

    pub(super) fn send_error(&mut self, now: Instant, casualties: Casualties, cause: Cause) {
        self.send_errors(now, casualties, cause, Deletion::Asked);
    }

    /// Sends route errors to the precursors of lost routes: by unicast to a single one, by broadcast to several.
    pub(super) fn send_errors(
        &mut self,
        now: Instant,
        casualties: Casualties,
        cause: Cause,
        deletion: Deletion,
    ) {
        let Casualties { unreachable, users } = casualties;
        let to = match (self.config.error_scope, users.len()) {
            (ErrorScope::Precursors, 0) => return,
            (ErrorScope::Precursors, 1) => users.first().copied().unwrap_or(Ipv4Addr::BROADCAST),
            _ => Ipv4Addr::BROADCAST,
        };
        let jitter = match cause {
            Cause::Local => self.config.originated_jitter,
            Cause::Reported => self.config.broadcast_jitter,
        };
        for chunk in unreachable.chunks(MOST_DESTINATIONS) {
            if self.error_rate.take(now).is_err() {
                return self.stats.ignore(Ignored::RateLimited);
            }
            let no_delete = deletion == Deletion::Forbidden;
            let message = Message::Rerr(Rerr { no_delete, unreachable: chunk.to_vec() });
            self.stats.errors_sent += 1;
            if to.is_broadcast() {
                let due = self.departure(now, jitter);
                self.broadcast(now, due, message, 1);
            } else {
                self.unicast(message, to, 1);
            }
        }
    }
}

/// Reaction that a route error asks of its receivers: the N flag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Deletion {
    /// End the routes.
    Asked,
    /// Keep them: they were repaired.
    Forbidden,
}
