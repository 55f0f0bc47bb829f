//! Route requests received before (RFC 4728 §4.3).

use crate::DuplicateCheck;
use crate::address_map::AddressMap;
use core::num::NonZeroU8;
use std::net::Ipv4Addr;

/// The latest requests of each of the latest initiators.
#[derive(Clone, Debug)]
pub(super) struct RequestTable {
    initiators: AddressMap<InitiatorRequests>,
    ids: NonZeroU8,
    /// Counter of received requests, as a clock.
    clock: u64,
}

/// Ring buffer of requests.
#[derive(Clone, Debug)]
struct InitiatorRequests {
    requests: Vec<(u16, Ipv4Addr)>,
    /// Index of the oldest request, once all places are taken.
    oldest: usize,
    last_used: u64,
}

impl RequestTable {
    pub(super) fn new(initiators: u32, ids: NonZeroU8) -> Self {
        Self { initiators: AddressMap::new(initiators), ids, clock: 0 }
    }

    /// Records the request `id` of `initiator` for `target`. Allocates nothing for a known initiator.
    pub(super) fn record(&mut self, initiator: Ipv4Addr, id: u16, target: Ipv4Addr) -> DuplicateCheck {
        self.clock += 1;
        let capacity = usize::from(self.ids.get());
        if let Some(recent) = self.initiators.get_mut(initiator) {
            recent.last_used = self.clock;
            return recent.record((id, target), capacity);
        }
        let mut requests = Vec::with_capacity(capacity);
        requests.push((id, target));
        self.evict_oldest();
        let recent = InitiatorRequests { requests, oldest: 0, last_used: self.clock };
        if self.initiators.insert_new(initiator, recent) {
            DuplicateCheck::New
        } else {
            DuplicateCheck::TableFull
        }
    }

    /// Forgets the initiator that was silent for longest (§4.3).
    fn evict_oldest(&mut self) {
        if !self.initiators.is_full() {
            return;
        }
        let oldest =
            self.initiators.iter().min_by_key(|(_, recent)| recent.last_used).map(|(address, _)| address);
        self.initiators.retain(|address, _| Some(address) != oldest);
    }
}

impl InitiatorRequests {
    fn record(&mut self, request: (u16, Ipv4Addr), capacity: usize) -> DuplicateCheck {
        if self.requests.contains(&request) {
            return DuplicateCheck::Duplicate;
        }
        if self.requests.len() < capacity {
            self.requests.push(request);
        } else {
            self.requests[self.oldest] = request;
            self.oldest = (self.oldest + 1) % capacity;
        }
        DuplicateCheck::New
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
    const B: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);
    const C: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 3);

    fn seen(initiators: u32) -> RequestTable {
        RequestTable::new(initiators, NonZeroU8::new(2).unwrap())
    }

    #[test]
    fn a_request_is_identified_by_initiator_id_and_target() {
        let mut s = seen(4);
        assert_eq!(s.record(A, 1, C), DuplicateCheck::New);
        assert_eq!(s.record(A, 1, C), DuplicateCheck::Duplicate);
        assert_eq!(s.record(A, 1, B), DuplicateCheck::New);
        assert_eq!(s.record(B, 1, C), DuplicateCheck::New);
    }

    #[test]
    fn the_oldest_request_is_forgotten_first() {
        let mut s = seen(4);
        for id in 1..=3 {
            assert_eq!(s.record(A, id, C), DuplicateCheck::New);
        }
        assert_eq!(s.record(A, 2, C), DuplicateCheck::Duplicate);
        assert_eq!(s.record(A, 3, C), DuplicateCheck::Duplicate);
        assert_eq!(s.record(A, 1, C), DuplicateCheck::New, "two are remembered");
        assert_eq!(s.record(A, 2, C), DuplicateCheck::New);
    }

    #[test]
    fn the_initiator_silent_for_longest_is_evicted() {
        let mut s = seen(2);
        s.record(A, 1, C);
        s.record(B, 1, C);
        s.record(A, 1, C);
        assert_eq!(s.record(C, 1, A), DuplicateCheck::New);
        assert_eq!(s.record(A, 1, C), DuplicateCheck::Duplicate);
        assert_eq!(s.record(B, 1, C), DuplicateCheck::New, "B was forgotten");
        assert_eq!(seen(0).record(A, 1, C), DuplicateCheck::TableFull);
    }
}
