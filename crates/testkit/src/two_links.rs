//! Two machines in virtual time with a station between them: two emulated links, and a middlebox in the path.

use crate::packet::Packet;
use crate::transfer::EndpointPair;
use hopline_core::{Instant, LinkId, StateMachine};
use hopline_link::{CopyState, Direction, Emulation, Side};
use std::collections::BTreeMap;

/// Station between the two links.
pub trait Station<P> {
    /// Handles a packet from this side.
    fn handle_packet(&mut self, now: Instant, from: Side, packet: P);

    /// Processes the timers that are due.
    fn handle_timeout(&mut self, now: Instant);

    /// Returns the next packet to send, and the side that it travels from: `Side::A` for packets to B.
    fn poll_transmit(&mut self, now: Instant) -> Option<(Side, P)>;

    /// Returns the time of the next timer.
    fn poll_timeout(&self) -> Option<Instant>;
}

/// Two machines, the station, and a clock. Side A is the fixed host, side B the mobile host.
#[derive(Debug)]
pub struct TwoLinks<M: StateMachine, S> {
    /// Machine behind the first link.
    pub a: M,
    /// Station between the links.
    pub station: S,
    /// Machine behind the second link.
    pub b: M,
    now: Instant,
    /// Links between A and the station, and between the station and B. Each has a direction from A to B and one from B to A.
    links: [[Direction; 2]; 2],
    in_flight: BTreeMap<(Instant, u64), (Location, M::Packet)>,
    sent: u64,
    events: Vec<(Instant, Side, M::Event)>,
}

/// Position of a packet.
#[derive(Clone, Copy, Debug)]
enum Location {
    /// On the way to the station, from this side.
    ToStation(Side),
    /// On the way from the station, away from this side.
    FromStation(Side),
}

impl Location {
    /// Returns the index of the link, and of the direction on it.
    const fn indices(self) -> (usize, usize) {
        match self {
            Self::ToStation(Side::A) => (0, 0),
            Self::FromStation(Side::B) => (0, 1),
            Self::FromStation(Side::A) => (1, 0),
            Self::ToStation(Side::B) => (1, 1),
        }
    }
}

impl<M, S> TwoLinks<M, S>
where
    M: StateMachine<Transmit = <M as StateMachine>::Packet>,
    M::Packet: Packet,
    S: Station<M::Packet>,
{
    /// Creates two machines with a station between a `wired` and a `wireless` link, each given from A to B and from B to A.
    #[must_use]
    pub fn new(a: M, station: S, b: M, wired: [Emulation; 2], wireless: [Emulation; 2], seed: u64) -> Self {
        let mut owner = 0;
        let mut link = |emulation: [Emulation; 2]| {
            emulation.map(|emulation| {
                owner += 1;
                Direction::new(emulation, seed, owner)
            })
        };
        Self {
            a,
            station,
            b,
            now: Instant::ZERO,
            links: [link(wired), link(wireless)],
            in_flight: BTreeMap::new(),
            sent: 0,
            events: Vec::new(),
        }
    }

    /// Sends the packets that the machines and the station have ready at the present time.
    pub fn settle(&mut self) {
        let now = self.now;
        for side in [Side::A, Side::B] {
            while let Some(packet) = EndpointPair::side(self, side).poll_transmit(now) {
                self.transmit(Location::ToStation(side), packet);
            }
            while let Some(event) = EndpointPair::side(self, side).poll_event() {
                self.events.push((now, side, event));
            }
        }
        while let Some((from, packet)) = self.station.poll_transmit(now) {
            self.transmit(Location::FromStation(from), packet);
        }
    }

    fn transmit(&mut self, leg: Location, packet: M::Packet) {
        let packet = packet.through_bytes();
        let (link, way) = leg.indices();
        let direction = &mut self.links[link][way];
        let packet = if direction.draw_mark() { packet.marked() } else { packet };
        for (at, fate) in direction.transmit(self.now, packet.link_len()).into_iter().flatten() {
            let copy = match fate {
                CopyState::Intact => Some(packet.clone()),
                CopyState::Corrupted => packet.corrupted(&mut direction.random),
            };
            if let Some(copy) = copy {
                self.in_flight.insert((at, self.sent), (leg, copy));
                self.sent += 1;
            }
        }
    }

    fn next_time(&self) -> Option<Instant> {
        let timer = |machine: &M| machine.poll_timeout().map(|(at, _)| at);
        let arrival = self.in_flight.keys().next().map(|&(at, _)| at);
        [arrival, timer(&self.a), timer(&self.b), self.station.poll_timeout()].into_iter().flatten().min()
    }
}

impl<M, S> EndpointPair<M> for TwoLinks<M, S>
where
    M: StateMachine<Transmit = <M as StateMachine>::Packet>,
    M::Packet: Packet,
    S: Station<M::Packet>,
{
    fn now(&self) -> Instant {
        self.now
    }

    fn side(&mut self, side: Side) -> &mut M {
        match side {
            Side::A => &mut self.a,
            Side::B => &mut self.b,
        }
    }

    fn step(&mut self, limit: Instant) -> bool {
        self.settle();
        let Some(at) = self.next_time().filter(|&at| at <= limit) else {
            self.now = self.now.max(limit);
            return false;
        };
        self.now = self.now.max(at);
        let now = self.now;
        match self.in_flight.first_key_value() {
            Some((&(arrival, _), _)) if arrival <= now => {
                let (_, (leg, packet)) = self.in_flight.pop_first().expect("just seen");
                match leg {
                    Location::ToStation(from) => self.station.handle_packet(now, from, packet),
                    Location::FromStation(from) => {
                        self.side(from.other()).handle_packet(now, LinkId::ONLY, packet)
                    }
                }
            }
            _ => {
                self.a.handle_timeout(now);
                self.b.handle_timeout(now);
                self.station.handle_timeout(now);
            }
        }
        self.settle();
        true
    }

    fn take_events(&mut self) -> Vec<(Instant, Side, M::Event)> {
        core::mem::take(&mut self.events)
    }
}
