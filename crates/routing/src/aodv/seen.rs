//! Route requests received before (RFC 3561 §6.5).

use crate::Sighting;
use crate::address_map::AddressMap;
use hopline_core::{Duration, Instant};
use std::net::Ipv4Addr;

/// Places in the cache of recent requests: more than the number of originators that flood one area at the same time. A power
/// of two.
const AT_HAND: usize = 32;

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
pub(super) struct Seen {
    at_hand: AtHand,
    originators: AddressMap<Ids>,
    memory: Duration,
}

/// Cache of the latest requests, with their expiry times. Each originator has a place, which it shares with other
/// originators.
#[derive(Clone, Debug)]
struct AtHand([(Ipv4Addr, u32, Instant); AT_HAND]);

#[derive(Clone, Debug)]
struct Ids {
    latest: u32,
    /// Bit n: `latest` − n was received.
    heard: u64,
    expires: Instant,
}

impl Seen {
    pub(super) fn new(memory: Duration, limit: u32) -> Self {
        Self { at_hand: AtHand::new(), originators: AddressMap::new(limit), memory }
    }

    pub(super) fn note(&mut self, now: Instant, originator: Ipv4Addr, id: u32) -> Sighting {
        if self.at_hand.holds(now, originator, id) {
            return Sighting::Again;
        }
        let expires = now + self.memory;
        let Some(ids) = self.originators.get_mut(originator) else {
            return self.remember(now, originator, Ids { latest: id, heard: 1, expires });
        };
        let sighting = if ids.expires > now {
            ids.note(id, expires)
        } else {
            *ids = Ids { latest: id, heard: 1, expires };
            Sighting::First
        };
        self.at_hand.put(originator, id, ids.expires);
        sighting
    }

    fn remember(&mut self, now: Instant, originator: Ipv4Addr, ids: Ids) -> Sighting {
        self.originators.make_room(|_, ids| ids.expires > now);
        let (id, expires) = (ids.latest, ids.expires);
        if !self.originators.insert_new(originator, ids) {
            return Sighting::Full;
        }
        self.at_hand.put(originator, id, expires);
        Sighting::First
    }
}

impl AtHand {
    const fn new() -> Self {
        Self([(Ipv4Addr::UNSPECIFIED, 0, Instant::ZERO); AT_HAND])
    }

    fn holds(&self, now: Instant, originator: Ipv4Addr, id: u32) -> bool {
        let (known, latest, expires) = self.0[Self::place(originator)];
        (known, latest) == (originator, id) && expires > now
    }

    /// Replaces the cached entry of the same originator, so that the cache never contradicts the entries. Every change of an
    /// entry calls this.
    fn put(&mut self, originator: Ipv4Addr, id: u32, expires: Instant) {
        self.0[Self::place(originator)] = (originator, id, expires);
    }

    /// Neighbouring addresses have different places.
    fn place(originator: Ipv4Addr) -> usize {
        originator.to_bits() as usize % AT_HAND
    }
}

impl Ids {
    fn note(&mut self, id: u32, expires: Instant) -> Sighting {
        let ahead = id.wrapping_sub(self.latest);
        if ahead.cast_signed() > 0 {
            self.heard = self.heard.checked_shl(ahead).unwrap_or(0) | 1;
            (self.latest, self.expires) = (id, expires);
            return Sighting::First;
        }
        let behind = ahead.wrapping_neg();
        if behind >= WINDOW || self.heard & (1 << behind) != 0 {
            return Sighting::Again;
        }
        self.heard |= 1 << behind;
        Sighting::First
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

    fn seen(limit: u32) -> Seen {
        Seen::new(Duration::from_secs(6), limit)
    }

    #[test]
    fn a_request_is_new_once_for_each_originator() {
        let mut s = seen(9);
        assert_eq!(s.note(at(0), A, 1), Sighting::First);
        assert_eq!(s.note(at(1), A, 1), Sighting::Again);
        assert_eq!(s.note(at(1), B, 1), Sighting::First);
        assert_eq!(s.note(at(1), A, 2), Sighting::First);
    }

    #[test]
    fn a_request_that_was_overtaken_is_still_new() {
        let mut s = seen(9);
        assert_eq!(s.note(at(0), A, 10), Sighting::First);
        assert_eq!(s.note(at(0), A, 7), Sighting::First);
        assert_eq!(s.note(at(0), A, 7), Sighting::Again);
        assert_eq!(s.note(at(0), A, 8), Sighting::First);
        assert_eq!(s.note(at(0), A, 10), Sighting::Again);
    }

    #[test]
    fn ids_wrap_around() {
        let mut s = seen(9);
        assert_eq!(s.note(at(0), A, u32::MAX), Sighting::First);
        assert_eq!(s.note(at(0), A, 0), Sighting::First);
        assert_eq!(s.note(at(0), A, u32::MAX), Sighting::Again);
        assert_eq!(s.note(at(0), A, 0), Sighting::Again);
    }

    #[test]
    fn a_jump_of_the_id_forgets_the_window_and_what_lies_far_behind_counts_as_heard() {
        let mut s = seen(9);
        assert_eq!(s.note(at(0), A, 1), Sighting::First);
        assert_eq!(s.note(at(0), A, 1_000), Sighting::First);
        assert_eq!(s.note(at(0), A, 1), Sighting::Again);
        assert_eq!(s.note(at(0), A, 1_000 - 64), Sighting::Again);
        assert_eq!(s.note(at(0), A, 1_000 - 63), Sighting::First);
        assert_eq!(
            s.note(at(0), A, 1_000u32.wrapping_add(1 << 31)),
            Sighting::Again,
            "half the circle is behind"
        );
    }

    #[test]
    fn requests_are_forgotten_after_path_discovery_time() {
        let mut s = seen(9);
        assert_eq!(s.note(at(0), A, 5), Sighting::First);
        assert_eq!(s.note(at(5), A, 5), Sighting::Again);
        assert_eq!(s.note(at(6), A, 5), Sighting::First);
        assert_eq!(s.note(at(20), A, 3), Sighting::First, "an originator that restarted counts anew");
    }

    #[test]
    fn memory_is_bounded_and_stale_entries_make_room() {
        let mut s = seen(2);
        assert_eq!(s.note(at(0), A, 1), Sighting::First);
        assert_eq!(s.note(at(0), B, 1), Sighting::First);
        let c = Ipv4Addr::new(10, 0, 0, 3);
        assert_eq!(s.note(at(1), c, 1), Sighting::Full);
        assert_eq!(s.note(at(6), c, 1), Sighting::First);
        assert_eq!(s.originators.iter().count(), 1);
    }

    /// Reference without the cache: records every request by originator.
    fn note_plainly(seen: &mut Seen, now: Instant, originator: Ipv4Addr, id: u32) -> Sighting {
        seen.at_hand = AtHand::new();
        seen.note(now, originator, id)
    }

    proptest! {
        /// More originators than cache places; ids that go back and forth, out of the window, and wrap around.
        #[test]
        fn what_is_at_hand_changes_no_answer(
            notes in prop::collection::vec((0u32..12, 0u32..4, 0u32..3, 0u64..3), 0..400),
        ) {
            let (mut with, mut without, mut now) = (seen(10), seen(10), at(0));
            for (originator, low, jump, pause) in notes {
                now += Duration::from_millis(700 * pause);
                let (originator, id) = (Ipv4Addr::from_bits(16 * originator + 1), low + jump * 0x5555_5555);
                let expected = note_plainly(&mut without, now, originator, id);
                prop_assert_eq!(with.note(now, originator, id), expected);
            }
        }
    }
}
