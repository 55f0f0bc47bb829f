//! Broken links and route errors (RFC 3561 §6.11).

use super::agent::Aodv;
use super::config::{ControlFailure, ErrorScope, LinkSensing, LocalRepair, QueuePurge};
use super::stats::IgnoredReason;
use super::table::RouteState;
use super::types::{Event, FailedContent};
use crate::DropReason;
use hopline_core::{Instant, Seq32};
use hopline_wire::aodv::{Message, Rerr};
use std::collections::BTreeSet;
use std::net::Ipv4Addr;

/// Most destinations in one message: the count is a byte (§5.3).
const MAX_DESTINATIONS: usize = 255;

/// Lost routes, and the precursors to inform.
#[derive(Debug, Default)]
pub(super) struct LostRoutes {
    unreachable: Vec<(Ipv4Addr, Seq32)>,
    precursors: BTreeSet<Ipv4Addr>,
}

impl LostRoutes {
    pub(super) fn add(&mut self, destination: Ipv4Addr, seq: Option<Seq32>, users: &[Ipv4Addr]) {
        // The message has no way to say "unknown".
        self.unreachable.push((destination, seq.unwrap_or_default()));
        self.precursors.extend(users);
    }
}

/// Reason for a route error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ErrorCause {
    /// A link failed here, or a packet has no route.
    Local,
    /// A neighbour reported it. All its neighbours received the report at the same instant.
    Reported,
}

impl<M: Copy> Aodv<M> {
    /// Handles a link failure to `neighbour` that the link layer reported.
    pub(super) fn handle_link_failure(
        &mut self,
        now: Instant,
        neighbour: Ipv4Addr,
        carried: FailedContent<M>,
    ) {
        let believed = match (self.config.link_sensing, &carried) {
            (LinkSensing::Hello(_), _) => false,
            (_, FailedContent::Reply | FailedContent::Control) => {
                self.config.control_failure == ControlFailure::LinkBreak
            }
            (_, FailedContent::Data { .. } | FailedContent::Other) => true,
        };
        match carried {
            _ if believed => self.on_link_failure(now, neighbour, carried),
            FailedContent::Data { packet, .. } => self.drop_packet(packet, DropReason::LinkFailure),
            _ => {}
        }
    }

    fn on_link_failure(&mut self, now: Instant, neighbour: Ipv4Addr, carried: FailedContent<M>) {
        let mut spared = None;
        match carried {
            FailedContent::Data { packet, destination, travelled, .. } => {
                if self.repair(now, neighbour, destination, travelled) {
                    self.buffer_packet(now, destination, packet);
                    if matches!(self.config.local_repair, LocalRepair::PastHalfway { .. }) {
                        return;
                    }
                    spared = Some(destination);
                } else {
                    self.drop_packet(packet, DropReason::LinkFailure);
                }
            }
            // §6.8: a failed reply reveals a unidirectional link.
            FailedContent::Reply => {
                self.pending_rrep_acks.on_rrep_ack(neighbour);
                self.blacklist.add(now, neighbour, now + self.config.blacklist_timeout);
            }
            FailedContent::Control | FailedContent::Other => {}
        }
        self.break_link(now, neighbour, spared);
    }

    /// Ends every route over `neighbour`, except the one under repair (§6.11 case i).
    pub(super) fn break_link(&mut self, now: Instant, neighbour: Ipv4Addr, spared: Option<Ipv4Addr>) {
        self.stats.links_broken += 1;
        self.liveness.remove(neighbour);
        if self.config.queue_purge != QueuePurge::Never {
            self.outbox.events.push_back(Event::PurgeQueue { next_hop: neighbour });
        }
        let casualties = self.end_routes_over(now, neighbour, spared);
        self.send_error(now, casualties, ErrorCause::Local);
    }

    fn end_routes_over(&mut self, now: Instant, neighbour: Ipv4Addr, spared: Option<Ipv4Addr>) -> LostRoutes {
        let mut casualties = LostRoutes::default();
        let (forget, scope) = (self.routes.deletion_time(now), self.config.error_scope);
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
        self.routes.update_next_expiry(forget);
        casualties
    }

    /// Reports packets of a neighbour for a destination without a route (§6.11 case ii).
    pub(super) fn report_no_route(&mut self, now: Instant, destination: Ipv4Addr, previous_hop: Ipv4Addr) {
        let mut casualties = LostRoutes::default();
        match self.routes.get(now, destination) {
            Some(route) => casualties.add(destination, route.seq(), route.precursors()),
            None => casualties.add(destination, None, &[]),
        }
        // The RFC informs the precursors only. They may be forgotten by now, and the node that sent the packet needs to
        // know.
        if self.is_other_host(previous_hop) {
            casualties.precursors.insert(previous_hop);
        }
        self.send_error(now, casualties, ErrorCause::Local);
    }

    /// Handles a route error of a neighbour (§6.11 case iii).
    pub(super) fn handle_error(&mut self, now: Instant, from: Ipv4Addr, error: &Rerr) {
        let mut casualties = LostRoutes::default();
        let mut struck = 0;
        let (forget, copies) = (self.routes.deletion_time(now), self.config.local_repair.keeps_sequence());
        for &(destination, seq) in error.unreachable.iter().take(MAX_DESTINATIONS) {
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
        self.routes.update_next_expiry(forget);
        if error.no_delete {
            return self.send_errors(now, casualties, ErrorCause::Reported, DeletionRule::Forbidden);
        }
        if self.config.queue_purge == QueuePurge::OnLinkFailureAndRouteError {
            self.outbox.events.push_back(Event::PurgeQueue { next_hop: from });
        }
        self.send_error(now, casualties, ErrorCause::Reported);
    }

    pub(super) fn send_error(&mut self, now: Instant, casualties: LostRoutes, cause: ErrorCause) {
        self.send_errors(now, casualties, cause, DeletionRule::Required);
    }

    /// Sends route errors to the precursors of lost routes: by unicast to a single one, by broadcast to several.
    pub(super) fn send_errors(
        &mut self,
        now: Instant,
        casualties: LostRoutes,
        cause: ErrorCause,
        deletion: DeletionRule,
    ) {
        let LostRoutes { unreachable, precursors: users } = casualties;
        let to = match (self.config.error_scope, users.len()) {
            (ErrorScope::Precursors, 0) => return,
            (ErrorScope::Precursors, 1) => users.first().copied().unwrap_or(Ipv4Addr::BROADCAST),
            _ => Ipv4Addr::BROADCAST,
        };
        let jitter = match cause {
            ErrorCause::Local => self.config.originated_jitter,
            ErrorCause::Reported => self.config.broadcast_jitter,
        };
        for chunk in unreachable.chunks(MAX_DESTINATIONS) {
            if self.error_rate.take(now).is_err() {
                return self.stats.ignore(IgnoredReason::RateLimited);
            }
            let no_delete = deletion == DeletionRule::Forbidden;
            let message = Message::Rerr(Rerr { no_delete, unreachable: chunk.to_vec() });
            self.stats.errors_sent += 1;
            if to.is_broadcast() {
                let due = self.departure_time(now, jitter);
                self.broadcast(now, due, message, 1);
            } else {
                self.unicast(message, to, 1);
            }
        }
    }
}

/// Reaction that a route error asks of its receivers: the N flag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DeletionRule {
    /// End the routes.
    Required,
    /// Keep them: they were repaired.
    Forbidden,
}
