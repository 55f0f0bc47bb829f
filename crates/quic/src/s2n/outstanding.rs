//! Packets in flight, as quinn counts them.

use crate::packets::Space;
use std::collections::VecDeque;
use std::time::Instant;

/// Packet that was neither acknowledged nor lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SentPacket<I> {
    /// Place in the order of all packets sent, those out of flight included.
    pub(super) number: u64,
    pub(super) space: Space,
    pub(super) sent: Instant,
    pub(super) bytes: u32,
    /// Metadata of the controller.
    pub(super) info: I,
}

/// Packets in flight, oldest first.
///
/// quinn names acknowledged packets by time and size, and lost ones by their sum and the time of the newest.
#[derive(Clone, Debug)]
pub(super) struct Outstanding<I> {
    packets: VecDeque<SentPacket<I>>,
    bytes: u64,
    next_number: u64,
}

impl<I> Default for Outstanding<I> {
    fn default() -> Self {
        Self { packets: VecDeque::new(), bytes: 0, next_number: 0 }
    }
}

impl<I: Copy> Outstanding<I> {
    /// Returns the sum of the sizes.
    pub(super) const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Adds a packet; one of 0 bytes is not in flight and has a number only.
    pub(super) fn insert(&mut self, space: Space, sent: Instant, bytes: u32, info: I) {
        let number = self.next_number;
        self.next_number += 1;
        if bytes > 0 {
            self.bytes += u64::from(bytes);
            self.packets.push_back(SentPacket { number, space, sent, bytes, info });
        }
    }

    /// Removes an acknowledged packet.
    pub(super) fn take_acked(&mut self, sent: Instant, bytes: u64) -> Option<SentPacket<I>> {
        let first = self.packets.partition_point(|packet| packet.sent < sent);
        let mut at_once = self.packets.range(first..).take_while(|packet| packet.sent == sent);
        let place = at_once.position(|packet| u64::from(packet.bytes) == bytes)?;
        let packet = self.packets.remove(first + place)?;
        self.bytes -= bytes;
        Some(packet)
    }

    /// Removes lost packets: `bytes` in total, the newest sent at `newest`.
    ///
    /// Loss detection finds the oldest packets of one packet number space (RFC 9002 §6.1). quinn does not tell which space, so
    /// that it is the one where the sizes add up.
    pub(super) fn take_lost(&mut self, newest: Instant, bytes: u64) -> Vec<SentPacket<I>> {
        let space = [Space::Data, Space::Handshake, Space::Initial].into_iter().find(|&space| {
            let mut sum = 0;
            let mut old = self.packets.iter().filter(|packet| packet.space == space && packet.sent <= newest);
            old.any(|packet| {
                sum += u64::from(packet.bytes);
                sum == bytes
            })
        });
        self.take(bytes, |packet| packet.sent <= newest && space.is_none_or(|space| packet.space == space))
    }

    /// Removes packets that left the flight for another reason: `bytes` in total.
    ///
    /// These are the packets of a packet number space with discarded keys (RFC 9002 §6.4).
    pub(super) fn take_discarded(&mut self, bytes: u64) -> Vec<SentPacket<I>> {
        let sum = |space| -> u64 {
            let of = self.packets.iter().filter(|packet| packet.space == space);
            of.map(|packet| u64::from(packet.bytes)).sum()
        };
        let space = [Space::Initial, Space::Handshake].into_iter().find(|&space| sum(space) == bytes);
        self.take(bytes, |packet| space.is_none_or(|space| packet.space == space))
    }

    /// Removes the oldest of the packets that match until `bytes` are reached. No packet is removed in part.
    fn take(&mut self, bytes: u64, matches: impl Fn(&SentPacket<I>) -> bool) -> Vec<SentPacket<I>> {
        let mut rest = bytes;
        let mut taken = Vec::new();
        let mut place = 0;
        while rest > 0
            && let Some(packet) = self.packets.get(place)
        {
            if matches(packet) && u64::from(packet.bytes) <= rest {
                rest -= u64::from(packet.bytes);
                taken.extend(self.packets.remove(place));
            } else {
                place += 1;
            }
        }
        self.bytes -= bytes - rest;
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::to_quinn;

    fn at(ms: u64) -> Instant {
        to_quinn(hopline_core::Instant::from_millis(ms))
    }

    /// Packets in order of sending: space, time, bytes.
    fn sent(packets: &[(Space, u64, u32)]) -> Outstanding<()> {
        let mut outstanding = Outstanding::default();
        for &(space, ms, bytes) in packets {
            outstanding.insert(space, at(ms), bytes, ());
        }
        outstanding
    }

    fn numbers(packets: &[SentPacket<()>]) -> Vec<u64> {
        packets.iter().map(|packet| packet.number).collect()
    }

    #[test]
    fn acknowledged_packets_are_found_by_time_and_size() {
        use Space::Data;
        let mut all = sent(&[(Data, 1, 100), (Data, 2, 100), (Data, 2, 70), (Data, 2, 0), (Data, 3, 100)]);
        assert_eq!(all.bytes(), 370);
        assert_eq!(all.take_acked(at(2), 70).map(|packet| packet.number), Some(2));
        assert_eq!(all.take_acked(at(3), 100).map(|packet| packet.number), Some(4));
        assert_eq!(all.take_acked(at(3), 100), None);
        assert_eq!(all.bytes(), 200);
    }

    #[test]
    fn lost_packets_are_the_oldest_of_a_space() {
        use Space::{Data, Handshake, Initial};
        let mut all =
            sent(&[(Initial, 0, 90), (Handshake, 0, 80), (Data, 1, 60), (Data, 2, 60), (Data, 3, 60)]);
        assert_eq!(numbers(&all.take_lost(at(2), 120)), [2, 3]);
        assert_eq!(numbers(&all.take_lost(at(0), 80)), [1]);
        assert_eq!(all.bytes(), 150);
        assert_eq!(numbers(&all.take_lost(at(9), 1_000)), [0, 4], "no more than there are");
        assert_eq!(all.bytes(), 0);
    }

    #[test]
    fn discarded_packets_are_those_of_a_space() {
        use Space::{Data, Handshake, Initial};
        let mut all = sent(&[(Initial, 0, 90), (Handshake, 0, 80), (Data, 0, 70), (Initial, 1, 90)]);
        assert_eq!(numbers(&all.take_discarded(180)), [0, 3]);
        assert_eq!(numbers(&all.take_discarded(80)), [1]);
        assert_eq!(all.bytes(), 70);
    }
}
