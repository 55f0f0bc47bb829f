//! Split connections, seated.

use super::border::Border;
use super::handover::Handovers;
use crate::ids::Interface;
use crate::in_path::{InPath, Passage, Passing, Wish};
use crate::outcome::ProxyCounts;
use crate::packet::{Body, Handover};
use hopline_core::{Instant, Length};
use hopline_proxy::split::{Split, Transmit};
use hopline_queue::Class;
use hopline_wire::handoff::Past;
use std::net::Ipv4Addr;

/// Middlebox that splits connections at a node.
#[derive(Debug)]
pub(crate) struct SplitSeat {
    machine: Split<Length>,
    border: Border,
    /// Transfers of connections that follow their hosts to other stations.
    handovers: Option<Handovers>,
}

impl SplitSeat {
    pub(super) const fn new(machine: Split<Length>, border: Border, handovers: Option<Handovers>) -> Self {
        Self { machine, border, handovers }
    }

    /// Handles a piece of state from another station that goes to a host which is here: it is for this
    /// middlebox.
    fn take_piece(&mut self, now: Instant, packet: Passing<'_>) -> Option<Passage> {
        let handovers = self.handovers.as_mut()?;
        let Body::Handover(Handover::Piece(piece, state)) = &packet.packet().body else { return None };
        if !matches!(packet.at().interface, Interface::Radio(_)) {
            return None;
        }
        let ip = packet.packet().ip;
        let (wish, moved) = handovers.take(now, ip.src, *piece, state);
        self.border.wishes.push_back(wish);
        if let Some(moved) = moved {
            self.machine.put_in(now, ip.dst.into(), moved);
        }
        Some(self.border.absorb(packet.handle))
    }

    fn take(&mut self, now: Instant, packet: Passing<'_>) -> Passage {
        let Some((connection, from, segment)) = self.border.crossing(packet) else { return Passage::Pass };
        if !self.machine.speaks(from, segment) {
            return Passage::Pass;
        }
        self.machine.handle_packet(now, connection, from, segment.clone().with_ecn(packet.view.ecn));
        self.border.absorb(packet.handle)
    }
}

impl InPath for SplitSeat {
    fn ingress(&mut self, now: Instant, packet: Passing<'_>) -> Passage {
        if let (Some(handovers), Body::Handover(Handover::Arrived(piece))) =
            (&mut self.handovers, &packet.packet().body)
            && handovers.is_for(packet.packet().ip.dst)
        {
            handovers.acknowledged(now, packet.packet().ip.src, *piece);
            return self.border.absorb(packet.handle);
        }
        self.take(now, packet)
    }

    fn egress(&mut self, now: Instant, packet: Passing<'_>, _next_hop: Ipv4Addr) -> Passage {
        self.take_piece(now, packet).unwrap_or_else(|| self.take(now, packet))
    }

    fn joined(&mut self, now: Instant, mobile: Ipv4Addr, past: Past) {
        match self.handovers.as_mut().and_then(|handovers| handovers.recall(mobile)) {
            Some(back) => self.machine.put_in(now, mobile.into(), back),
            None if past == Past::Some => self.machine.expect(now, mobile.into()),
            None => self.machine.put_in(now, mobile.into(), Vec::new()),
        }
    }

    fn parted(&mut self, now: Instant, mobile: Ipv4Addr) {
        if let Some(handovers) = &mut self.handovers {
            let follows = self.machine.is_expecting(now, mobile.into());
            let moved = self.machine.take_out(mobile.into());
            // Nothing is an answer too, unless it is still on its way from another station: then it goes on from there.
            if !(follows && moved.is_empty()) {
                handovers.begin(now, mobile, moved);
            }
        }
    }

    fn counts(&self) -> ProxyCounts {
        let state_bytes = self.handovers.as_ref().map_or(0, |handovers| handovers.bytes);
        ProxyCounts { state_bytes, ..self.machine.stats().into() }
    }

    fn wake(&mut self, now: Instant) {
        self.machine.handle_timeout(now);
        if let Some(handovers) = &mut self.handovers {
            handovers.handle_timeout(now);
        }
    }

    fn next_wake(&self) -> Option<Instant> {
        let handovers = self.handovers.as_ref().and_then(Handovers::poll_timeout);
        self.machine.poll_timeout().into_iter().chain(handovers).min()
    }

    fn poll(&mut self, now: Instant) -> Option<Wish> {
        if let Some(wish) = self.border.wishes.pop_front() {
            return Some(wish);
        }
        match self.handovers.as_mut().and_then(Handovers::poll) {
            Some(Ok(wish)) => return Some(wish),
            Some(Err(lost)) => self.machine.reset(now, lost),
            None => {}
        }
        let Transmit { connection, to, segment } = self.machine.poll_transmit()?;
        Some(self.border.sending(connection, to, segment, Class::Data))
    }
}
