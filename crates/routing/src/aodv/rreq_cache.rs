//! Route requests received before (RFC 3561 §6.5).

use crate::DuplicateCheck;
use crate::address_map::AddressMap;
use hopline_core::{Duration, Instant};
use std::net::Ipv4Addr;

/// Places in the cache of recent requests: more than the number of originators that flood one area at the same time. A power
/// of two.
const CACHE_SLOTS: usize = 32;

/// Number of request ids below the latest that are told apart. Older ones count as received.
const WINDOW: u32 = u64::BITS;

/// Requests received in the last PATH_DISCOVERY_TIME.
///
/// An originator numbers its requests consecutively (§6.3), so one entry holds the latest id and a bit for each of the 64
/// before it. Entries expire on access, or are removed before memory would grow.
///
/// Nine of ten requests are copies of one that arrived some milliseconds ago. A small cache recognises them without access
/// to the entries, which in a large network have left the CPU caches by then.
#[derive(Clone, Debug)]
pub(super) struct RreqCache {
    recent: RecentRequests,
    windows: AddressMap<RreqIdWindow>,
    memory: Duration,
}

/// Cache of the latest requests, with their expiry times. Each originator has a place, which it shares with other
/// originators.
#[derive(Clone, Debug)]
struct RecentRequests([(Ipv4Addr, u32, Instant); CACHE_SLOTS]);

#[derive(Clone, Debug)]
struct RreqIdWindow {
    latest: u32,
    /// Bit n: `latest` − n was received.
    received: u64,
    expires: Instant,
}

impl RreqCache {
    pub(super) fn new(memory: Duration, limit: u32) -> Self {
        Self { recent: RecentRequests::new(), windows: AddressMap::new(limit), memory }
    }

    pub(super) fn record(&mut self, now: Instant, originator: Ipv4Addr, id: u32) -> DuplicateCheck {
        if self.recent.contains(now, originator, id) {
            return DuplicateCheck::Duplicate;
        }
        let expires = now + self.memory;
        let Some(ids) = self.windows.get_mut(originator) else {
            return self.insert_originator(
                now,
                originator,
                RreqIdWindow { latest: id, received: 1, expires },
            );
        };
        let sighting = if ids.expires > now {
            ids.record(id, expires)
        } else {
            *ids = RreqIdWindow { latest: id, received: 1, expires };
            DuplicateCheck::New
        };
        self.recent.insert(originator, id, ids.expires);
        sighting
    }

    fn insert_originator(&mut self, now: Instant, originator: Ipv4Addr, ids: RreqIdWindow) -> DuplicateCheck {
        self.windows.make_room(|_, ids| ids.expires > now);
        let (id, expires) = (ids.latest, ids.expires);
        if !self.windows.insert_new(originator, ids) {
            return DuplicateCheck::TableFull;
        }
        self.recent.insert(originator, id, expires);
        DuplicateCheck::New
    }
}

impl RecentRequests {
    const fn new() -> Self {
        Self([(Ipv4Addr::UNSPECIFIED, 0, Instant::ZERO); CACHE_SLOTS])
    }

    fn contains(&self, now: Instant, originator: Ipv4Addr, id: u32) -> bool {
        let (known, latest, expires) = self.0[Self::slot_of(originator)];
        (known, latest) == (originator, id) && expires > now
    }

    /// Replaces the cached entry of the same originator, so that the cache never contradicts the entries. Every change of an
    /// entry calls this.
    fn insert(&mut self, originator: Ipv4Addr, id: u32, expires: Instant) {
        self.0[Self::slot_of(originator)] = (originator, id, expires);
    }

    /// Neighbouring addresses have different places.
    fn slot_of(originator: Ipv4Addr) -> usize {
        originator.to_bits() as usize % CACHE_SLOTS
    }
}

impl RreqIdWindow {
    fn record(&mut self, id: u32, expires: Instant) -> DuplicateCheck {
        let ahead = id.wrapping_sub(self.latest);
        if ahead.cast_signed() > 0 {
            self.received = self.received.checked_shl(ahead).unwrap_or(0) | 1;
            (self.latest, self.expires) = (id, expires);
            return DuplicateCheck::New;
        }
        let behind = ahead.wrapping_neg();
        if behind >= WINDOW || self.received & (1 << behind) != 0 {
            return DuplicateCheck::Duplicate;
        }
        self.received |= 1 << behind;
        DuplicateCheck::New
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const A: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
    const B: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);

    fn at(secs: u64) -> Instant {
        Instant::from_secs(secs)
    }

    fn seen(limit: u32) -> RreqCache {
        RreqCache::new(Duration::from_secs(6), limit)
    }

    #[test]
    fn a_request_is_new_once_for_each_originator() {
        let mut s = seen(9);
        assert_eq!(s.record(at(0), A, 1), DuplicateCheck::New);
        assert_eq!(s.record(at(1), A, 1), DuplicateCheck::Duplicate);
        assert_eq!(s.record(at(1), B, 1), DuplicateCheck::New);
        assert_eq!(s.record(at(1), A, 2), DuplicateCheck::New);
    }

    #[test]
    fn a_reordered_request_is_still_new() {
        let mut s = seen(9);
        assert_eq!(s.record(at(0), A, 10), DuplicateCheck::New);
        assert_eq!(s.record(at(0), A, 7), DuplicateCheck::New);
        assert_eq!(s.record(at(0), A, 7), DuplicateCheck::Duplicate);
        assert_eq!(s.record(at(0), A, 8), DuplicateCheck::New);
        assert_eq!(s.record(at(0), A, 10), DuplicateCheck::Duplicate);
    }

    #[test]
    fn ids_wrap_around() {
        let mut s = seen(9);
        assert_eq!(s.record(at(0), A, u32::MAX), DuplicateCheck::New);
        assert_eq!(s.record(at(0), A, 0), DuplicateCheck::New);
        assert_eq!(s.record(at(0), A, u32::MAX), DuplicateCheck::Duplicate);
        assert_eq!(s.record(at(0), A, 0), DuplicateCheck::Duplicate);
    }

    #[test]
    fn a_jump_of_the_id_clears_the_window_and_old_ids_count_as_received() {
        let mut s = seen(9);
        assert_eq!(s.record(at(0), A, 1), DuplicateCheck::New);
        assert_eq!(s.record(at(0), A, 1_000), DuplicateCheck::New);
        assert_eq!(s.record(at(0), A, 1), DuplicateCheck::Duplicate);
        assert_eq!(s.record(at(0), A, 1_000 - 64), DuplicateCheck::Duplicate);
        assert_eq!(s.record(at(0), A, 1_000 - 63), DuplicateCheck::New);
        assert_eq!(
            s.record(at(0), A, 1_000u32.wrapping_add(1 << 31)),
            DuplicateCheck::Duplicate,
            "half the circle is behind"
        );
    }

    #[test]
    fn requests_are_forgotten_after_path_discovery_time() {
        let mut s = seen(9);
        assert_eq!(s.record(at(0), A, 5), DuplicateCheck::New);
        assert_eq!(s.record(at(5), A, 5), DuplicateCheck::Duplicate);
        assert_eq!(s.record(at(6), A, 5), DuplicateCheck::New);
        assert_eq!(s.record(at(20), A, 3), DuplicateCheck::New, "an originator that restarted counts anew");
    }

    #[test]
    fn memory_is_bounded_and_stale_entries_are_evicted() {
        let mut s = seen(2);
        assert_eq!(s.record(at(0), A, 1), DuplicateCheck::New);
        assert_eq!(s.record(at(0), B, 1), DuplicateCheck::New);
        let c = Ipv4Addr::new(10, 0, 0, 3);
        assert_eq!(s.record(at(1), c, 1), DuplicateCheck::TableFull);
        assert_eq!(s.record(at(6), c, 1), DuplicateCheck::New);
        assert_eq!(s.windows.iter().count(), 1);
    }

    /// Reference without the cache: records every request by originator.
    fn record_in_reference(
        seen: &mut RreqCache,
        now: Instant,
        originator: Ipv4Addr,
        id: u32,
    ) -> DuplicateCheck {
        seen.recent = RecentRequests::new();
        seen.record(now, originator, id)
    }

    proptest! {
        /// More originators than cache places; ids that go back and forth, out of the window, and wrap around.
        #[test]
        fn the_cache_does_not_change_results(
            notes in prop::collection::vec((0u32..12, 0u32..4, 0u32..3, 0u64..3), 0..400),
        ) {
            let (mut with, mut without, mut now) = (seen(10), seen(10), at(0));
            for (originator, low, jump, pause) in notes {
                now += Duration::from_millis(700 * pause);
                let (originator, id) = (Ipv4Addr::from_bits(16 * originator + 1), low + jump * 0x5555_5555);
                let expected = record_in_reference(&mut without, now, originator, id);
                prop_assert_eq!(with.record(now, originator, id), expected);
            }
        }
    }
}
