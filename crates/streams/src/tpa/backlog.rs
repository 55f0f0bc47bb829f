//! Admission of new connections, and the count of those in the accept queue.

use super::tokens::address_bytes;
use crate::udp::Path;
use bytes::Bytes;
use hopline_core::{Duration, Instant};
use hopline_transport::tpa::{Listener, Refusal, Verdict};
use hopline_wire::tpa::{Segment, Tag};
use std::collections::{BTreeSet, VecDeque};

/// Maximum validity of the listener's tags: `Listener` issues them for 30 to 60 s.
const TAG_LIFETIME: Duration = Duration::from_secs(60);
/// Maximum number of remembered tags; beyond it the oldest are forgotten.
const MAX_SPENT_TAGS: usize = 1 << 14;

/// State of a host with a listener.
#[derive(Debug)]
pub(super) struct Backlog {
    machine: Listener,
    limit: usize,
    /// Connections in the accept queue.
    waiting: usize,
    pub(super) spent: SpentTags,
}

impl Backlog {
    pub(super) fn new(machine: Listener, limit: usize) -> Self {
        Self { machine, limit, waiting: 0, spent: SpentTags::default() }
    }

    pub(super) fn is_full(&self) -> bool {
        self.waiting >= self.limit
    }

    /// Returns the verdict on a segment that belongs to no connection.
    pub(super) fn handle_segment(&self, now: Instant, path: Path, segment: Segment<Bytes>) -> Verdict<Bytes> {
        match segment.tag {
            Some(tag) if self.spent.contains(tag) => Verdict::Refused(Refusal::BadTag),
            _ => self.machine.handle(now, &address_bytes(path.peer), segment),
        }
    }

    /// Counts a connection that enters the accept queue.
    pub(super) fn add_waiting(&mut self) {
        self.waiting += 1;
    }

    /// Counts a connection that leaves the accept queue.
    pub(super) fn remove_waiting(&mut self) {
        self.waiting -= 1;
    }
}

/// Tags of finished connections. A duplicate of the segment that opened one must not open another.
#[derive(Debug, Default)]
pub(super) struct SpentTags {
    by_time: VecDeque<(Instant, Tag)>,
    tags: BTreeSet<Tag>,
}

impl SpentTags {
    pub(super) fn insert(&mut self, now: Instant, tag: Tag) {
        while let Some(&(at, oldest)) = self.by_time.front()
            && (now >= at + TAG_LIFETIME || self.by_time.len() >= MAX_SPENT_TAGS)
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
    fn spent_tags_are_remembered_until_they_expire() {
        let mut spent = SpentTags::default();
        spent.insert(Instant::from_secs(1), tag(1));
        spent.insert(Instant::from_secs(60), tag(2));
        assert!(spent.contains(tag(1)) && spent.contains(tag(2)));
        spent.insert(Instant::from_secs(61), tag(3));
        assert!(!spent.contains(tag(1)) && spent.contains(tag(2)));
    }

    #[test]
    fn the_number_of_remembered_tags_is_bounded() {
        let mut spent = SpentTags::default();
        for number in 1..=100_000 {
            spent.insert(Instant::from_secs(1), tag(number));
        }
        assert_eq!((spent.by_time.len(), spent.tags.len()), (MAX_SPENT_TAGS, MAX_SPENT_TAGS));
        assert!(spent.contains(tag(100_000)) && !spent.contains(tag(1)));
    }
}
