//! Which route requests were heard before (RFC 3561 §6.5).

use crate::Sighting;
use crate::address_map::AddressMap;
use hopline_core::{Duration, Instant};
use std::net::Ipv4Addr;

/// How many request ids below the latest are told apart. Older ones count as heard.
const WINDOW: u32 = u64::BITS;

/// The requests heard in the last PATH_DISCOVERY_TIME.
///
/// An originator numbers its requests consecutively (§6.3), so one entry holds the latest id and a bit for each of the
/// 64 before it. Entries expire when looked at, or are thrown out before memory would grow.
#[derive(Clone, Debug)]
pub(super) struct Seen {
    originators: AddressMap<Ids>,
    memory: Duration,
}

#[derive(Clone, Debug)]
struct Ids {
    latest: u32,
    /// Bit n: `latest` − n was heard.
    heard: u64,
    expires: Instant,
}

impl Seen {
    pub(super) fn new(memory: Duration, limit: u32) -> Self {
        Self { originators: AddressMap::new(limit), memory }
    }

    pub(super) fn note(&mut self, now: Instant, originator: Ipv4Addr, id: u32) -> Sighting {
        let expires = now + self.memory;
        match self.originators.get_mut(originator) {
            Some(ids) if ids.expires > now => ids.note(id, expires),
            Some(ids) => {
                *ids = Ids { latest: id, heard: 1, expires };
                Sighting::First
            }
            None => self.remember(now, originator, Ids { latest: id, heard: 1, expires }),
        }
    }

    fn remember(&mut self, now: Instant, originator: Ipv4Addr, ids: Ids) -> Sighting {
        self.originators.make_room(|_, ids| ids.expires > now);
        if self.originators.insert_new(originator, ids) { Sighting::First } else { Sighting::Full }
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
}
