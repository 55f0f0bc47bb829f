//! Duplicate set: messages received before (RFC 3626 §3.4).

use crate::DuplicateCheck;
use hopline_core::{Duration, Instant, Seq16};
use std::collections::{BTreeSet, VecDeque};
use std::net::Ipv4Addr;

type MessageId = (Ipv4Addr, u16);

/// Messages of the last DUP_HOLD_TIME.
///
/// With one interface, a message is processed and considered for forwarding at the same time. Its entry is never changed,
/// and entries expire in order of arrival.
#[derive(Clone, Debug)]
pub(super) struct DuplicateSet {
    messages: BTreeSet<MessageId>,
    by_age: VecDeque<(Instant, MessageId)>,
    hold_time: Duration,
    limit: usize,
}

impl DuplicateSet {
    pub(super) fn new(hold_time: Duration, limit: u32) -> Self {
        Self { messages: BTreeSet::new(), by_age: VecDeque::new(), hold_time, limit: limit as usize }
    }

    pub(super) fn record(&mut self, now: Instant, originator: Ipv4Addr, seq: Seq16) -> DuplicateCheck {
        self.expire(now);
        let key = (originator, seq.0);
        if self.messages.contains(&key) {
            return DuplicateCheck::Duplicate;
        }
        if self.messages.len() >= self.limit {
            return DuplicateCheck::TableFull;
        }
        self.messages.insert(key);
        self.by_age.push_back((now + self.hold_time, key));
        DuplicateCheck::New
    }

    pub(super) fn len(&self) -> usize {
        self.messages.len()
    }

    fn expire(&mut self, now: Instant) {
        while let Some((_, key)) = self.by_age.pop_front_if(|(end, _)| *end <= now) {
            self.messages.remove(&key);
        }
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

    #[test]
    fn a_message_is_new_once_for_each_originator_until_it_is_forgotten() {
        let mut heard = DuplicateSet::new(Duration::from_secs(30), 9);
        assert_eq!(heard.record(at(0), A, Seq16(7)), DuplicateCheck::New);
        assert_eq!(heard.record(at(0), B, Seq16(7)), DuplicateCheck::New);
        assert_eq!(heard.record(at(29), A, Seq16(7)), DuplicateCheck::Duplicate);
        assert_eq!(heard.record(at(30), A, Seq16(7)), DuplicateCheck::New);
    }

    #[test]
    fn reordered_and_wrapped_numbers_are_new() {
        let mut heard = DuplicateSet::new(Duration::from_secs(30), 9);
        for seq in [65_535, 0, 65_534] {
            assert_eq!(heard.record(at(0), A, Seq16(seq)), DuplicateCheck::New);
        }
        assert_eq!(heard.record(at(1), A, Seq16(65_535)), DuplicateCheck::Duplicate);
    }

    #[test]
    fn memory_is_bounded_and_freed_by_age() {
        let mut heard = DuplicateSet::new(Duration::from_secs(30), 1);
        assert_eq!(heard.record(at(0), A, Seq16(1)), DuplicateCheck::New);
        assert_eq!(heard.record(at(1), A, Seq16(2)), DuplicateCheck::TableFull);
        assert_eq!(heard.record(at(30), A, Seq16(2)), DuplicateCheck::New);
        assert_eq!((heard.len(), heard.by_age.len()), (1, 1));
    }
}
