//! Route requests received before (RFC 4728 §4.3).

use crate::Sighting;
use crate::address_map::AddressMap;
use core::num::NonZeroU8;
use std::net::Ipv4Addr;

/// The latest requests of each of the latest initiators.
#[derive(Clone, Debug)]
pub(super) struct Seen {
    initiators: AddressMap<Recent>,
    ids: NonZeroU8,
    /// Counter of received requests, as a clock.
    clock: u64,
}

/// Ring buffer of requests.
#[derive(Clone, Debug)]
struct Recent {
    requests: Vec<(u16, Ipv4Addr)>,
    /// Index of the oldest request, once all places are taken.
    oldest: usize,
    used: u64,
}

impl Seen {
    pub(super) fn new(initiators: u32, ids: NonZeroU8) -> Self {
        Self { initiators: AddressMap::new(initiators), ids, clock: 0 }
    }

    /// Records the request `id` of `initiator` for `target`. Allocates nothing for a known initiator.
    pub(super) fn note(&mut self, initiator: Ipv4Addr, id: u16, target: Ipv4Addr) -> Sighting {
        self.clock += 1;
        let capacity = usize::from(self.ids.get());
        if let Some(recent) = self.initiators.get_mut(initiator) {
            recent.used = self.clock;
            return recent.note((id, target), capacity);
        }
        let mut requests = Vec::with_capacity(capacity);
        requests.push((id, target));
        self.make_room();
        let recent = Recent { requests, oldest: 0, used: self.clock };
        if self.initiators.insert_new(initiator, recent) { Sighting::First } else { Sighting::Full }
    }

    /// Forgets the initiator that was silent for longest (§4.3).
    fn make_room(&mut self) {
        if !self.initiators.is_full() {
            return;
        }
        let oldest = self.initiators.iter().min_by_key(|(_, recent)| recent.used).map(|(address, _)| address);
        self.initiators.retain(|address, _| Some(address) != oldest);
    }
}

impl Recent {
    fn note(&mut self, request: (u16, Ipv4Addr), capacity: usize) -> Sighting {
        if self.requests.contains(&request) {
            return Sighting::Again;
        }
        if self.requests.len() < capacity {
            self.requests.push(request);
        } else {
            self.requests[self.oldest] = request;
            self.oldest = (self.oldest + 1) % capacity;
        }
        Sighting::First
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
    const B: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);
    const C: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 3);

    fn seen(initiators: u32) -> Seen {
        Seen::new(initiators, NonZeroU8::new(2).unwrap())
    }

    #[test]
    fn a_request_is_named_by_initiator_id_and_target() {
        let mut s = seen(4);
        assert_eq!(s.note(A, 1, C), Sighting::First);
        assert_eq!(s.note(A, 1, C), Sighting::Again);
        assert_eq!(s.note(A, 1, B), Sighting::First);
        assert_eq!(s.note(B, 1, C), Sighting::First);
    }

    #[test]
    fn the_oldest_request_is_forgotten_first() {
        let mut s = seen(4);
        for id in 1..=3 {
            assert_eq!(s.note(A, id, C), Sighting::First);
        }
        assert_eq!(s.note(A, 2, C), Sighting::Again);
        assert_eq!(s.note(A, 3, C), Sighting::Again);
        assert_eq!(s.note(A, 1, C), Sighting::First, "two are remembered");
        assert_eq!(s.note(A, 2, C), Sighting::First);
    }

    #[test]
    fn the_initiator_not_heard_for_longest_makes_room() {
        let mut s = seen(2);
        s.note(A, 1, C);
        s.note(B, 1, C);
        s.note(A, 1, C);
        assert_eq!(s.note(C, 1, A), Sighting::First);
        assert_eq!(s.note(A, 1, C), Sighting::Again);
        assert_eq!(s.note(B, 1, C), Sighting::First, "B was forgotten");
        assert_eq!(seen(0).note(A, 1, C), Sighting::Full);
    }
}
