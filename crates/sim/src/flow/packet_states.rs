//! Fates of the packets of one direction of a flow, where middleboxes may send a packet again.

use crate::packet::{Packet, PacketRole};
use core::mem::replace;
use std::collections::VecDeque;

/// Number of packets with a remembered fate. A copy of an older one counts as a copy of one that has arrived.
const MAX_STATES: usize = 1 << 16;

/// Fate of a packet, be it by itself or by a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PacketState {
    /// It is in flight, or lost.
    InFlightOrLost,
    /// A middlebox has absorbed it.
    Absorbed,
    /// A middlebox had absorbed it, or it had been lost, before the flow counted.
    BeforeCounting,
    /// It has arrived.
    Arrived,
}

/// Machines in the path that may send packets again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CopySource {
    /// There are some.
    Possible,
    /// There are none.
    None,
}

/// The fates of the latest packets of one direction.
#[derive(Debug)]
pub(super) struct PacketStates {
    copy_source: CopySource,
    /// Number of the next packet.
    next: u64,
    /// Fates of the packets before it. Empty where there are no copies.
    latest: VecDeque<PacketState>,
}

impl PacketStates {
    pub(super) const fn new(copies: CopySource) -> Self {
        Self { copy_source: copies, next: 0, latest: VecDeque::new() }
    }

    /// Adds a packet; returns its number.
    pub(super) fn add(&mut self) -> u64 {
        if self.copy_source == CopySource::Possible {
            if self.latest.len() == MAX_STATES {
                self.latest.pop_front();
            }
            self.latest.push_back(PacketState::InFlightOrLost);
        }
        self.next += 1;
        self.next - 1
    }

    /// Returns the fate of a packet until now.
    pub(super) fn state_of(&self, packet: &Packet) -> PacketState {
        self.index(packet).map_or_else(|| assumed_state(packet), |index| self.latest[index])
    }

    /// Notes that `packet` has arrived; returns its fate before.
    pub(super) fn record_arrival(&mut self, packet: &Packet) -> PacketState {
        self.set(packet, PacketState::Arrived)
    }

    /// Records that a middlebox has absorbed `packet`; returns its fate before.
    pub(super) fn record_absorption(&mut self, packet: &Packet) -> PacketState {
        match self.state_of(packet) {
            PacketState::InFlightOrLost => self.set(packet, PacketState::Absorbed),
            other => other,
        }
    }

    /// Restarts counting. `is_held`: the packet with this number is in flight.
    pub(super) fn restart(&mut self, is_held: impl Fn(u64) -> bool) {
        let first = self.next - self.latest.len() as u64;
        for (number, fate) in (first..).zip(&mut self.latest) {
            *fate = match *fate {
                PacketState::InFlightOrLost if is_held(number) => PacketState::InFlightOrLost,
                PacketState::InFlightOrLost | PacketState::Absorbed | PacketState::BeforeCounting => {
                    PacketState::BeforeCounting
                }
                PacketState::Arrived => PacketState::Arrived,
            };
        }
    }

    fn set(&mut self, packet: &Packet, fate: PacketState) -> PacketState {
        match self.index(packet) {
            Some(index) => replace(&mut self.latest[index], fate),
            None => assumed_state(packet),
        }
    }

    fn index(&self, packet: &Packet) -> Option<usize> {
        let first = self.next - self.latest.len() as u64;
        let index = packet.original.number.checked_sub(first)? as usize;
        (index < self.latest.len()).then_some(index)
    }
}

/// Returns the fate that is assumed of a packet of which none is remembered.
const fn assumed_state(packet: &Packet) -> PacketState {
    match packet.role {
        PacketRole::Original | PacketRole::MiddleboxMade => PacketState::InFlightOrLost,
        PacketRole::Copy => PacketState::Arrived,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::{Body, FlowPacketId, PacketAccount, header};
    use hopline_core::{FlowId, Instant, Length, NodeId};
    use hopline_wire::ipv4::Protocol;
    use hopline_wire::udp;

    fn packet(number: u64, role: PacketRole) -> Packet {
        let datagram = udp::Datagram { src_port: 1, dst_port: 2, payload: Length(10) };
        Packet {
            ip: header(NodeId(0).ipv4(), NodeId(1).ipv4(), Protocol::Udp),
            body: Body::Udp { datagram, number: 0 },
            len_bytes: 38,
            account: PacketAccount::Flow(FlowId(0)),
            made: Instant::ZERO,
            original: FlowPacketId { number, made: Instant::ZERO },
            role,
            serial: 0,
        }
    }

    #[test]
    fn a_packet_arrives_by_itself_or_by_a_copy_and_once() {
        for first in [PacketRole::Original, PacketRole::Copy] {
            let mut fates = PacketStates::new(CopySource::Possible);
            assert_eq!((fates.add(), fates.add()), (0, 1));
            assert_eq!(fates.record_arrival(&packet(1, first)), PacketState::InFlightOrLost);
            assert_eq!(fates.record_arrival(&packet(1, PacketRole::Original)), PacketState::Arrived);
            assert_eq!(fates.record_arrival(&packet(1, PacketRole::Copy)), PacketState::Arrived);
            assert_eq!(fates.record_absorption(&packet(1, PacketRole::Copy)), PacketState::Arrived);
            assert_eq!(fates.state_of(&packet(0, PacketRole::Original)), PacketState::InFlightOrLost);
        }
    }

    #[test]
    fn an_absorbed_packet_that_is_sent_again_arrives() {
        let mut fates = PacketStates::new(CopySource::Possible);
        fates.add();
        assert_eq!(fates.record_absorption(&packet(0, PacketRole::Original)), PacketState::InFlightOrLost);
        assert_eq!(fates.record_absorption(&packet(0, PacketRole::Copy)), PacketState::Absorbed);
        fates.restart(|_| false);
        assert_eq!(fates.record_arrival(&packet(0, PacketRole::Copy)), PacketState::BeforeCounting);
    }

    #[test]
    fn a_packet_lost_before_counting_may_arrive_by_a_copy() {
        let mut fates = PacketStates::new(CopySource::Possible);
        assert_eq!((fates.add(), fates.add()), (0, 1));
        fates.restart(|number| number == 1);
        assert_eq!(fates.record_arrival(&packet(0, PacketRole::Copy)), PacketState::BeforeCounting);
        assert_eq!(
            fates.record_arrival(&packet(1, PacketRole::Copy)),
            PacketState::InFlightOrLost,
            "it was under way"
        );
    }

    #[test]
    fn memory_is_bounded_and_copies_of_forgotten_packets_count_as_duplicates() {
        let mut fates = PacketStates::new(CopySource::Possible);
        for _ in 0..=MAX_STATES {
            fates.add();
        }
        assert_eq!(fates.latest.len(), MAX_STATES);
        assert_eq!(fates.state_of(&packet(0, PacketRole::Original)), PacketState::InFlightOrLost);
        assert_eq!(fates.record_arrival(&packet(0, PacketRole::Copy)), PacketState::Arrived);
        assert_eq!(fates.record_arrival(&packet(1, PacketRole::Copy)), PacketState::InFlightOrLost);
    }

    #[test]
    fn without_copies_no_state_is_kept() {
        let mut fates = PacketStates::new(CopySource::None);
        assert_eq!((fates.add(), fates.latest.len()), (0, 0));
        assert_eq!(fates.record_arrival(&packet(0, PacketRole::Original)), PacketState::InFlightOrLost);
    }
}
