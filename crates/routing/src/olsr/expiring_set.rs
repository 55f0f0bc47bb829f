//! Sets with members that expire.

use core::ops::RangeBounds;
use hopline_core::Instant;
use std::collections::BTreeMap;

/// At most `limit` members, each with its expiry time.
#[derive(Clone, Debug)]
pub(super) struct ExpiringSet<K> {
    members: BTreeMap<K, Instant>,
    limit: usize,
    /// Earliest expiry of a member, or an earlier time. A wake-up that turns out to be too early computes it again.
    next_expiry: Instant,
}

/// Result of recording a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum InsertResult {
    New,
    /// The member was present; its expiry time has been updated.
    Known,
    /// There is no room for it.
    Full,
}

impl<K: Ord + Copy> ExpiringSet<K> {
    pub(super) fn new(limit: u32) -> Self {
        Self { members: BTreeMap::new(), limit: limit as usize, next_expiry: Instant::FAR_FUTURE }
    }

    /// Keeps `member` until `until`.
    pub(super) fn insert(&mut self, member: K, until: Instant) -> InsertResult {
        let noted = if let Some(end) = self.members.get_mut(&member) {
            *end = until;
            InsertResult::Known
        } else if self.members.len() < self.limit {
            self.members.insert(member, until);
            InsertResult::New
        } else {
            return InsertResult::Full;
        };
        self.next_expiry = self.next_expiry.min(until);
        noted
    }

    /// Removes `member`. Returns whether it was present.
    pub(super) fn remove(&mut self, member: &K) -> bool {
        self.members.remove(member).is_some()
    }

    /// Removes the members in `range`. Returns whether there were any.
    pub(super) fn remove_range(&mut self, range: impl RangeBounds<K>) -> bool {
        let gone: Vec<K> = self.members.range(range).map(|(member, _)| *member).collect();
        for member in &gone {
            self.members.remove(member);
        }
        !gone.is_empty()
    }

    /// Removes expired members. Returns whether there were any.
    pub(super) fn expire(&mut self, now: Instant) -> bool {
        if self.next_expiry > now {
            return false;
        }
        let before = self.members.len();
        self.members.retain(|_, end| *end > now);
        self.next_expiry = self.members.values().copied().min().unwrap_or(Instant::FAR_FUTURE);
        self.members.len() != before
    }

    /// Returns the time at which [`expire`](Self::expire) is to be called next.
    pub(super) const fn next_expiry(&self) -> Instant {
        self.next_expiry
    }

    pub(super) fn contains(&self, member: &K) -> bool {
        self.members.contains_key(member)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.members.len()
    }

    /// Returns the members, in order.
    pub(super) fn iter(&self) -> impl Iterator<Item = K> {
        self.members.keys().copied()
    }

    /// Returns the members in `range`, in order.
    pub(super) fn range(&self, range: impl RangeBounds<K>) -> impl Iterator<Item = K> {
        self.members.range(range).map(|(member, _)| *member)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(secs: u64) -> Instant {
        Instant::from_secs(secs)
    }

    #[test]
    fn members_stay_until_their_time_and_are_renewed() {
        let mut set = ExpiringSet::new(9);
        assert_eq!(set.next_expiry(), Instant::FAR_FUTURE);
        assert_eq!(set.insert(1, at(10)), InsertResult::New);
        assert_eq!(set.insert(2, at(5)), InsertResult::New);
        assert_eq!(set.insert(2, at(12)), InsertResult::Known);
        assert_eq!(set.next_expiry(), at(5), "too early, and cheap");
        assert!(!set.expire(at(5)));
        assert_eq!(set.next_expiry(), at(10));
        assert!(set.expire(at(10)));
        assert_eq!(set.iter().collect::<Vec<_>>(), [2]);
        assert!(set.expire(at(99)));
        assert!(set.is_empty());
    }

    #[test]
    fn a_full_set_renews_members_and_rejects_new_ones() {
        let mut set = ExpiringSet::new(1);
        assert_eq!(set.insert(1, at(10)), InsertResult::New);
        assert_eq!(set.insert(2, at(10)), InsertResult::Full);
        assert_eq!(set.insert(1, at(11)), InsertResult::Known);
        assert!(set.remove(&1));
        assert!(!set.remove(&1));
        assert_eq!(set.insert(2, at(10)), InsertResult::New);
    }

    #[test]
    fn a_range_is_removed_completely() {
        let mut set = ExpiringSet::new(9);
        for member in 0..6 {
            set.insert(member, at(10));
        }
        assert!(set.remove_range(2..4));
        assert!(!set.remove_range(2..4));
        assert_eq!(set.iter().collect::<Vec<_>>(), [0, 1, 4, 5]);
    }
}
