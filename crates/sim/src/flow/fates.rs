//! Fates of the packets of one direction of a flow, where middleboxes may send a packet again.

use crate::packet::{Packet, Role};
use core::mem::replace;
use std::collections::VecDeque;

/// Number of packets with a remembered fate. A copy of an older one counts as a copy of one that has arrived.
const REMEMBERED: usize = 1 << 16;

/// Fate of a packet, be it by itself or by a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// It is in flight, or lost.
    Open,
    /// A middlebox has absorbed it.
    Absorbed,
    /// A middlebox had absorbed it, or it had been lost, before the flow counted.
    Before,
    /// It has arrived.
    Arrived,
}

/// Machines in the path that may send packets again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Copies {
    /// There are some.
    Possible,
    /// There are none.
    None,
}

/// The fates of the latest packets of one direction.
#[derive(Debug)]
pub(super) struct Fates {
    copies: Copies,
    /// Number of the next packet.
    next: u64,
    /// Fates of the packets before it. Empty where there are no copies.
    latest: VecDeque<Fate>,
}

impl Fates {
    pub(super) const fn new(copies: Copies) -> Self {
        Self { copies, next: 0, latest: VecDeque::new() }
    }

    /// Adds a packet; returns its number.
    pub(super) fn add(&mut self) -> u64 {
        if self.copies == Copies::Possible {
            if self.latest.len() == REMEMBERED {
                self.latest.pop_front();
            }
            self.latest.push_back(Fate::Open);
        }
        self.next += 1;
        self.next - 1
    }

    /// Returns the fate of a packet until now.
    pub(super) fn of(&self, packet: &Packet) -> Fate {
        self.index(packet).map_or_else(|| forgotten(packet), |index| self.latest[index])
    }

    /// Notes that `packet` has arrived; returns its fate before.
    pub(super) fn arrive(&mut self, packet: &Packet) -> Fate {
        self.set(packet, Fate::Arrived)
    }

    /// Records that a middlebox has absorbed `packet`; returns its fate before.
    pub(super) fn absorb(&mut self, packet: &Packet) -> Fate {
        match self.of(packet) {
            Fate::Open => self.set(packet, Fate::Absorbed),
            other => other,
        }
    }

    /// Restarts counting. `is_held`: the packet with this number is in flight.
    pub(super) fn restart(&mut self, is_held: impl Fn(u64) -> bool) {
        let first = self.next - self.latest.len() as u64;
        for (number, fate) in (first..).zip(&mut self.latest) {
            *fate = match *fate {
                Fate::Open if is_held(number) => Fate::Open,
                Fate::Open | Fate::Absorbed | Fate::Before => Fate::Before,
                Fate::Arrived => Fate::Arrived,
            };
        }
    }

    fn set(&mut self, packet: &Packet, fate: Fate) -> Fate {
        match self.index(packet) {
            Some(index) => replace(&mut self.latest[index], fate),
            None => forgotten(packet),
        }
    }

    fn index(&self, packet: &Packet) -> Option<usize> {
        let first = self.next - self.latest.len() as u64;
        let index = packet.original.number.checked_sub(first)? as usize;
        (index < self.latest.len()).then_some(index)
    }
}

/// Returns the fate that is assumed of a packet of which none is remembered.
const fn forgotten(packet: &Packet) -> Fate {
    match packet.role {
        Role::Sent | Role::Made => Fate::Open,
        Role::Copy => Fate::Arrived,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::{Account, Body, Original, header};
    use hopline_core::{FlowId, Instant, Length, NodeId};
    use hopline_wire::ipv4::Protocol;
    use hopline_wire::udp;

    fn packet(number: u64, role: Role) -> Packet {
        let datagram = udp::Datagram { src_port: 1, dst_port: 2, payload: Length(10) };
        Packet {
            ip: header(NodeId(0).ipv4(), NodeId(1).ipv4(), Protocol::Udp),
            body: Body::Udp { datagram, number: 0 },
            len_bytes: 38,
            account: Account::Flow(FlowId(0)),
            made: Instant::ZERO,
            original: Original { number, made: Instant::ZERO },
            role,
            serial: 0,
        }
    }

    #[test]
    fn a_packet_arrives_by_itself_or_by_a_copy_and_once() {
        for first in [Role::Sent, Role::Copy] {
            let mut fates = Fates::new(Copies::Possible);
            assert_eq!((fates.add(), fates.add()), (0, 1));
            assert_eq!(fates.arrive(&packet(1, first)), Fate::Open);
            assert_eq!(fates.arrive(&packet(1, Role::Sent)), Fate::Arrived);
            assert_eq!(fates.arrive(&packet(1, Role::Copy)), Fate::Arrived);
            assert_eq!(fates.absorb(&packet(1, Role::Copy)), Fate::Arrived);
            assert_eq!(fates.of(&packet(0, Role::Sent)), Fate::Open);
        }
    }

    #[test]
    fn what_was_absorbed_and_is_sent_again_arrives() {
        let mut fates = Fates::new(Copies::Possible);
        fates.add();
        assert_eq!(fates.absorb(&packet(0, Role::Sent)), Fate::Open);
        assert_eq!(fates.absorb(&packet(0, Role::Copy)), Fate::Absorbed);
        fates.restart(|_| false);
        assert_eq!(fates.arrive(&packet(0, Role::Copy)), Fate::Before);
    }

    #[test]
    fn what_was_lost_before_counting_began_may_arrive_by_a_copy() {
        let mut fates = Fates::new(Copies::Possible);
        assert_eq!((fates.add(), fates.add()), (0, 1));
        fates.restart(|number| number == 1);
        assert_eq!(fates.arrive(&packet(0, Role::Copy)), Fate::Before);
        assert_eq!(fates.arrive(&packet(1, Role::Copy)), Fate::Open, "it was under way");
    }

    #[test]
    fn memory_is_bounded_and_copies_of_what_is_forgotten_repeat_what_arrived() {
        let mut fates = Fates::new(Copies::Possible);
        for _ in 0..=REMEMBERED {
            fates.add();
        }
        assert_eq!(fates.latest.len(), REMEMBERED);
        assert_eq!(fates.of(&packet(0, Role::Sent)), Fate::Open);
        assert_eq!(fates.arrive(&packet(0, Role::Copy)), Fate::Arrived);
        assert_eq!(fates.arrive(&packet(1, Role::Copy)), Fate::Open);
    }

    #[test]
    fn without_copies_nothing_is_remembered() {
        let mut fates = Fates::new(Copies::None);
        assert_eq!((fates.add(), fates.latest.len()), (0, 0));
        assert_eq!(fates.arrive(&packet(0, Role::Sent)), Fate::Open);
    }
}
