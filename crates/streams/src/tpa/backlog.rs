//! Admission of new connections, and the count of those in the accept queue.

use super::trust::name;
use crate::streams::Path;
use bytes::Bytes;
use hopline_core::{Duration, Instant};
use hopline_transport::tpa::{Listener, Refusal, Verdict};
use hopline_wire::tpa::{Segment, Tag};
use std::collections::{BTreeSet, VecDeque};

/// Maximum validity of the listener's tags: `Listener` issues them for 30 to 60 s.
const TAGS_LAST: Duration = Duration::from_secs(60);
/// Maximum number of remembered tags; beyond it the oldest are forgotten.
const MOST_SPENT: usize = 1 << 14;

/// State of a host with a listener.
#[derive(Debug)]
pub(super) struct Backlog {
    machine: Listener,
    limit: usize,
    /// Connections in the accept queue.
    waiting: usize,
    pub(super) spent: Spent,
}

impl Backlog {
    pub(super) fn new(machine: Listener, limit: usize) -> Self {
        Self { machine, limit, waiting: 0, spent: Spent::default() }
    }

    pub(super) fn is_full(&self) -> bool {
        self.waiting >= self.limit
    }

    /// Returns the verdict on a segment that belongs to no connection.
    pub(super) fn judge(&self, now: Instant, path: Path, segment: Segment<Bytes>) -> Verdict<Bytes> {
        match segment.tag {
            Some(tag) if self.spent.contains(tag) => Verdict::Refused(Refusal::BadTag),
            _ => self.machine.handle(now, &name(path.peer), segment),
        }
    }

    /// Counts a connection that enters the accept queue.
    pub(super) fn enter(&mut self) {
        self.waiting += 1;
    }

    /// Counts a connection that leaves the accept queue.
    pub(super) fn leave(&mut self) {
        self.waiting -= 1;
    }
}

/// Tags of finished connections. A duplicate of the segment that opened one must not open another.
#[derive(Debug, Default)]
pub(super) struct Spent {
    by_time: VecDeque<(Instant, Tag)>,
    tags: BTreeSet<Tag>,
}

impl Spent {
    pub(super) fn insert(&mut self, now: Instant, tag: Tag) {
        while let Some(&(at, oldest)) = self.by_time.front()
            && (now >= at + TAGS_LAST || self.by_time.len() >= MOST_SPENT)
        {
            self.by_time.pop_front();
            self.tags.remove(&oldest);
        }
        if self.tags.insert(tag) {
            self.by_time.push_back((now, tag));
        }
    }

    fn contains(&self, tag: Tag) -> bool {
        self.tags.contains(&tag)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::num::NonZeroU64;

    fn tag(number: u64) -> Tag {
        Tag(NonZeroU64::new(number).unwrap())
    }

    #[test]
    fn spent_tags_are_remembered_for_as_long_as_they_are_good_and_no_longer() {
        let mut spent = Spent::default();
        spent.insert(Instant::from_secs(1), tag(1));
        spent.insert(Instant::from_secs(60), tag(2));
        assert!(spent.contains(tag(1)) && spent.contains(tag(2)));
        spent.insert(Instant::from_secs(61), tag(3));
        assert!(!spent.contains(tag(1)) && spent.contains(tag(2)));
    }

    #[test]
    fn however_many_tags_are_spent_the_memory_is_bounded() {
        let mut spent = Spent::default();
        for number in 1..=100_000 {
            spent.insert(Instant::from_secs(1), tag(number));
        }
        assert_eq!((spent.by_time.len(), spent.tags.len()), (MOST_SPENT, MOST_SPENT));
        assert!(spent.contains(tag(100_000)) && !spent.contains(tag(1)));
    }
}
