//! Progress of a transfer over all its connections, which `--patience` refers to.
//!
//! A sender only knows what it has passed to the transport. Bytes that a receiver then refuses, or that the next connection
//! has to send again, are no progress, however often they are sent.

use std::time::Instant;

/// Bytes of a transfer: over this connection, and the maximum of all connections.
#[derive(Clone, Copy, Debug, Default)]
struct Bytes {
    current: u64,
    max: u64,
}

impl Bytes {
    /// Adds bytes to those of this connection, and returns whether the result is a new maximum.
    fn add(&mut self, bytes: u64) -> bool {
        self.current += bytes;
        let is_most = self.current > self.max;
        self.max = self.max.max(self.current);
        is_most
    }

    fn restart(&mut self, bytes: u64) {
        self.current = bytes;
        self.max = self.max.max(bytes);
    }
}

/// Progress of a transfer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Progress {
    /// Bytes that the receiver has confirmed.
    confirmed: Bytes,
    /// Confirmed bytes, and those passed to the transport since.
    sent: Bytes,
    /// Time of the last new maximum of confirmed bytes.
    last_confirmed: Instant,
    last: Instant,
}

impl Progress {
    /// Begins a transfer.
    pub(crate) fn new(now: Instant) -> Self {
        Self { confirmed: Bytes::default(), sent: Bytes::default(), last_confirmed: now, last: now }
    }

    /// Returns the time of the last progress; before any progress, the beginning.
    pub(crate) const fn last(&self) -> Instant {
        self.last
    }

    /// Begins another connection. The receiver has `bytes` that it is not offered again.
    pub(crate) fn restart(&mut self, bytes: u64) {
        self.confirmed.restart(bytes);
        self.sent.restart(bytes);
    }

    /// Counts the part of a file that the receiver has before it is sent.
    pub(crate) fn already_received(&mut self, now: Instant, offset: u64) {
        self.sent.add(offset);
        if self.confirmed.add(offset) {
            self.stored(now);
        }
    }

    /// Counts bytes passed to the transport, or received from it.
    pub(crate) fn advanced(&mut self, now: Instant, bytes: u64) {
        if self.sent.add(bytes) {
            self.last = now;
        }
    }

    /// Counts a stored file.
    pub(crate) fn stored(&mut self, now: Instant) {
        (self.last_confirmed, self.last) = (now, now);
    }

    /// Discards the progress since the last confirmation: a file was deferred.
    pub(crate) fn deferred(&mut self) {
        self.last = self.last_confirmed;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::clock;
    use std::time::Duration;

    /// Returns the seconds from the beginning to the last progress, after `course`, which is called with the time of a
    /// second.
    fn last(course: impl FnOnce(&mut Progress, &dyn Fn(u64) -> Instant)) -> u64 {
        let begin = clock::now();
        let mut progress = Progress::new(begin);
        course(&mut progress, &|second| begin + Duration::from_secs(second));
        progress.last().duration_since(begin).as_secs()
    }

    #[test]
    fn new_bytes_are_progress() {
        let once = |progress: &mut Progress, at: &dyn Fn(u64) -> Instant| {
            progress.already_received(at(1), 0);
            progress.advanced(at(2), 100);
        };
        assert_eq!(last(once), 2);
    }

    #[test]
    fn retransmitted_bytes_are_no_progress() {
        let again = |progress: &mut Progress, at: &dyn Fn(u64) -> Instant| {
            for second in [1, 2, 3] {
                progress.restart(0);
                progress.already_received(at(second), 0);
                progress.advanced(at(second), 100);
            }
        };
        assert_eq!(last(again), 1);
    }

    #[test]
    fn bytes_beyond_those_sent_before_are_progress() {
        let further = |progress: &mut Progress, at: &dyn Fn(u64) -> Instant| {
            progress.advanced(at(1), 100);
            progress.restart(0);
            progress.already_received(at(2), 60);
            progress.advanced(at(3), 40);
            progress.advanced(at(4), 1);
        };
        assert_eq!(last(further), 4);
    }

    #[test]
    fn refused_bytes_are_no_progress_and_kept_ones_are() {
        let refused = |progress: &mut Progress, at: &dyn Fn(u64) -> Instant| {
            progress.advanced(at(1), 120);
            progress.deferred();
        };
        assert_eq!(last(refused), 0);
        let kept = |progress: &mut Progress, at: &dyn Fn(u64) -> Instant| {
            refused(progress, at);
            progress.restart(0);
            progress.already_received(at(3), 100);
            progress.advanced(at(4), 120);
            progress.deferred();
        };
        assert_eq!(last(kept), 3);
    }

    #[test]
    fn a_stored_file_is_progress_despite_later_refusals() {
        let stored = |progress: &mut Progress, at: &dyn Fn(u64) -> Instant| {
            progress.advanced(at(1), 1);
            progress.stored(at(2));
            progress.advanced(at(3), 1);
            progress.deferred();
        };
        assert_eq!(last(stored), 2);
    }
}
