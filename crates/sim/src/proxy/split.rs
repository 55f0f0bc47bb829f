//! Split connections, seated.

use super::border::NetworkBorder;
use super::state_transfer::StateTransfers;
use crate::ids::Interface;
use crate::middlebox::{Action, Middlebox, PassingPacket, PathVerdict};
use crate::outcome::MiddleboxCounts;
use crate::packet::{Body, StateTransfer};
use hopline_core::{Instant, Length};
use hopline_proxy::split::{Split, Transmit};
use hopline_queue::Class;
use hopline_wire::handoff::PriorReception;
use std::net::Ipv4Addr;

/// Middlebox that splits connections at a node.
#[derive(Debug)]
pub(crate) struct SplitMiddlebox {
    machine: Split<Length>,
    border: NetworkBorder,
    /// Transfers of connections that follow their hosts to other stations.
    transfers: Option<StateTransfers>,
}

impl SplitMiddlebox {
    pub(super) const fn new(
        machine: Split<Length>,
        border: NetworkBorder,
        handovers: Option<StateTransfers>,
    ) -> Self {
        Self { machine, border, transfers: handovers }
    }

    /// Handles a piece of state from another station that goes to a host which is here: it is for this
    /// middlebox.
    fn handle_transfer(&mut self, now: Instant, packet: PassingPacket<'_>) -> Option<PathVerdict> {
        let handovers = self.transfers.as_mut()?;
        let Body::Handover(StateTransfer::Piece(piece, state)) = &packet.packet().body else { return None };
        if !matches!(packet.at().interface, Interface::Radio(_)) {
            return None;
        }
        let ip = packet.packet().ip;
        let (wish, moved) = handovers.handle_piece(now, ip.src, *piece, state);
        self.border.wishes.push_back(wish);
        if let Some(moved) = moved {
            self.machine.add_host(now, ip.dst.into(), moved);
        }
        Some(self.border.absorb(packet.handle))
    }

    fn handle_packet(&mut self, now: Instant, packet: PassingPacket<'_>) -> PathVerdict {
        let Some((connection, from, segment)) = self.border.crossing_segment(packet) else {
            return PathVerdict::Pass;
        };
        if !self.machine.is_supported(from, segment) {
            return PathVerdict::Pass;
        }
        self.machine.handle_packet(now, connection, from, segment.clone().with_ecn(packet.view.ecn));
        self.border.absorb(packet.handle)
    }
}

impl Middlebox for SplitMiddlebox {
    fn handle_ingress(&mut self, now: Instant, packet: PassingPacket<'_>) -> PathVerdict {
        if let (Some(handovers), Body::Handover(StateTransfer::Acknowledged(piece))) =
            (&mut self.transfers, &packet.packet().body)
            && handovers.is_for(packet.packet().ip.dst)
        {
            handovers.on_acknowledged(now, packet.packet().ip.src, *piece);
            return self.border.absorb(packet.handle);
        }
        self.handle_packet(now, packet)
    }

    fn handle_egress(&mut self, now: Instant, packet: PassingPacket<'_>, _next_hop: Ipv4Addr) -> PathVerdict {
        self.handle_transfer(now, packet).unwrap_or_else(|| self.handle_packet(now, packet))
    }

    fn handle_arrival(&mut self, now: Instant, mobile: Ipv4Addr, past: PriorReception) {
        match self.transfers.as_mut().and_then(|handovers| handovers.recall(mobile)) {
            Some(back) => self.machine.add_host(now, mobile.into(), back),
            None if past == PriorReception::Received => self.machine.expect_host(now, mobile.into()),
            None => self.machine.add_host(now, mobile.into(), Vec::new()),
        }
    }

    fn handle_departure(&mut self, now: Instant, mobile: Ipv4Addr) {
        if let Some(handovers) = &mut self.transfers {
            let follows = self.machine.is_expecting(now, mobile.into());
            let moved = self.machine.remove_host(mobile.into());
            // Nothing is an answer too, unless it is still on its way from another station: then it goes on from there.
            if !(follows && moved.is_empty()) {
                handovers.start(now, mobile, moved);
            }
        }
    }

    fn counts(&self) -> MiddleboxCounts {
        let state_bytes = self.transfers.as_ref().map_or(0, |handovers| handovers.bytes);
        MiddleboxCounts { state_bytes, ..self.machine.stats().into() }
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.machine.handle_timeout(now);
        if let Some(handovers) = &mut self.transfers {
            handovers.handle_timeout(now);
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let handovers = self.transfers.as_ref().and_then(StateTransfers::poll_timeout);
        self.machine.poll_timeout().into_iter().chain(handovers).min()
    }

    fn poll_action(&mut self, now: Instant) -> Option<Action> {
        if let Some(wish) = self.border.wishes.pop_front() {
            return Some(wish);
        }
        match self.transfers.as_mut().and_then(StateTransfers::poll) {
            Some(Ok(wish)) => return Some(wish),
            Some(Err(lost)) => self.machine.reset(now, lost),
            None => {}
        }
        let Transmit { connection, to, segment } = self.machine.poll_transmit()?;
        Some(self.border.send_action(connection, to, segment, Class::Data))
    }
}
