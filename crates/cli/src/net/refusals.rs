//! Output of a receiver about refused files. An unknown sender may cause as many refusals as it likes, so their output is
//! limited.

use crate::net::clock;
use hopline_tools::transfer::Reason;
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// Most refusals of a conversation that are named; further ones are counted.
const MAX_NAMED: u64 = 100;
/// Most refusals of all conversations together that are named in a second.
const MAX_NAMED_PER_SECOND: u64 = 50;
/// Most deferred files that are remembered as reported.
const MAX_DEFERRED: usize = 1024;
const SECOND: Duration = Duration::from_secs(1);
const UNPOISONED: &str = "no thread panics while it holds this";

static NAMED: Mutex<Option<(Instant, u64)>> = Mutex::new(None);
static DEFERRED: Mutex<BTreeMap<File, (Reason, u64)>> = Mutex::new(BTreeMap::new());

/// Sender, and path of the offered file.
pub(crate) type File = (String, String);

/// Counters of the refusals of a conversation.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RefusalCounts {
    named: u64,
    unnamed: u64,
}

impl RefusalCounts {
    /// Counts a refusal, and returns whether it is named.
    pub(crate) fn count_named(&mut self) -> bool {
        let mut in_second = NAMED.lock().expect(UNPOISONED);
        let named = self.named < MAX_NAMED && is_within(&mut in_second, clock::now());
        if named {
            self.named += 1;
        } else {
            self.unnamed += 1;
        }
        named
    }

    /// Returns the number of refusals that were not named.
    pub(crate) const fn unnamed(&self) -> u64 {
        self.unnamed
    }
}

fn is_within(second: &mut Option<(Instant, u64)>, now: Instant) -> bool {
    let (begin, count) = second.filter(|(begin, _)| now.duration_since(*begin) < SECOND).unwrap_or((now, 0));
    *second = Some((begin, count + 1));
    count < MAX_NAMED_PER_SECOND
}

/// Records a deferred file, and returns whether it is new.
pub(crate) fn defer(file: File, reason: Reason) -> bool {
    let mut deferred = DEFERRED.lock().expect(UNPOISONED);
    match deferred.get_mut(&file) {
        Some((before, tries)) if *before == reason => {
            *tries += 1;
            return false;
        }
        Some((before, tries)) => {
            *before = reason;
            *tries += 1;
            return true;
        }
        None => {}
    }
    if deferred.len() >= MAX_DEFERRED {
        deferred.pop_first();
    }
    deferred.insert(file, (reason, 1));
    true
}

/// Forgets a deferred file, and returns the number of its deferrals.
pub(crate) fn settle(file: &File) -> Option<u64> {
    DEFERRED.lock().expect(UNPOISONED).remove(file).map(|(_, tries)| tries)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_above_the_limit_of_a_second_are_not_named() {
        let (begin, mut second) = (clock::now(), None);
        let named = |second: &mut _, at| (0..60).filter(|_| is_within(second, at)).count() as u64;
        assert_eq!(named(&mut second, begin), MAX_NAMED_PER_SECOND);
        assert_eq!(named(&mut second, begin + SECOND / 2), 0);
        assert_eq!(named(&mut second, begin + SECOND), MAX_NAMED_PER_SECOND);
    }

    #[test]
    fn a_deferred_file_is_reported_once_for_each_reason() {
        let file = || ("a sender of this test".to_owned(), "f".to_owned());
        let told = [Reason::NoSpace, Reason::NoSpace, Reason::Busy, Reason::Busy]
            .map(|reason| defer(file(), reason));
        assert_eq!(told, [true, false, true, false]);
        assert_eq!(settle(&file()), Some(4));
        assert_eq!(settle(&file()), None);
    }
}
