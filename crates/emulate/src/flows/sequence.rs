//! Sequence numbers of a direction of TCP, as both ends' taps show them.

use std::collections::BTreeMap;

/// Most ranges that are held beyond a gap. What comes beyond that does not count until it comes again.
const MAX_RANGES: usize = 4096;

/// Offsets of what a sender has sent.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SentSequence {
    /// Sequence number of the first byte.
    first: Option<u32>,
    /// Bytes of earlier connections with the same ports.
    before: u64,
    /// End of what was sent of this connection.
    end: u64,
}

/// Place of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SentPlace {
    /// Offset of its first byte, counted over all connections with these ports.
    pub(super) offset: u64,
    /// `true` if bytes of it were sent before.
    pub(super) is_repeated: bool,
}

impl SentSequence {
    /// Records that `len` bytes are sent from a sequence number on. `is_first`: with a SYN.
    pub(super) fn record(&mut self, sequence: u32, len: u32, is_first: bool) -> SentPlace {
        if self.first.is_none() || (is_first && self.first != Some(sequence)) {
            self.before += self.end;
            (self.first, self.end) = (Some(sequence), 0);
        }
        let expected = self.first.unwrap_or(sequence).wrapping_add(self.end as u32);
        // Within half of the number space of what is expected (RFC 9293 §3.4). A keep-alive may begin before the first byte.
        let distance = i64::from(sequence.wrapping_sub(expected) as i32);
        let start = self.end.saturating_add_signed(distance);
        let is_repeated = len > 0 && start < self.end;
        self.end = self.end.max(start + u64::from(len));
        SentPlace { offset: self.before + start, is_repeated }
    }
}

/// Received ranges of a stream of bytes.
#[derive(Clone, Debug, Default)]
pub(super) struct ReceivedBytes {
    /// Everything up to here.
    contiguous: u64,
    /// Ranges beyond a gap, by start.
    ranges: BTreeMap<u64, u64>,
}

impl ReceivedBytes {
    /// Records the arrival of a range. Returns whether a byte of it is new.
    pub(super) fn record(&mut self, start: u64, len: u32) -> bool {
        let (mut start, mut end) = (start.max(self.contiguous), start + u64::from(len));
        if start >= end {
            return false;
        }
        let before = self.ranges.range(..=start).next_back().map(|(&from, &to)| (from, to));
        if before.is_some_and(|(_, to)| to >= end) {
            return false;
        }
        if let Some((from, to)) = before.filter(|(_, to)| *to >= start) {
            (start, end) = (from, end.max(to));
        }
        while let Some((from, to)) = self.ranges.range(start..=end).next().map(|(&from, &to)| (from, to)) {
            self.ranges.remove(&from);
            end = end.max(to);
        }
        if start == self.contiguous {
            self.contiguous = end;
        } else if self.ranges.len() < MAX_RANGES {
            self.ranges.insert(start, end);
        } else {
            return false;
        }
        true
    }

    /// Returns the number of bytes before the first gap.
    pub(super) const fn in_order(&self) -> u64 {
        self.contiguous
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_segment_of_which_bytes_were_sent_before_is_repeated_also_across_the_end_of_the_numbers() {
        let mut sent = SentSequence::default();
        let first = u32::MAX - 150;
        let place = |offset, is_repeated| SentPlace { offset, is_repeated };
        assert_eq!(sent.record(first, 0, true), place(0, false));
        assert_eq!(sent.record(first, 100, false), place(0, false));
        assert_eq!(sent.record(first.wrapping_add(100), 100, false), place(100, false));
        assert_eq!(sent.record(first.wrapping_add(200), 100, false), place(200, false));
        assert_eq!(sent.record(first.wrapping_add(100), 200, false), place(100, true));
        assert_eq!(sent.record(first.wrapping_add(300), 0, false), place(300, false), "an ACK");
        assert_eq!(sent.record(first, 0, true), place(0, false), "the SYN again");
    }

    #[test]
    fn a_new_connection_with_the_same_ports_goes_on_behind_the_old_one() {
        let mut sent = SentSequence::default();
        sent.record(7, 0, true);
        sent.record(7, 50, false);
        assert_eq!(sent.record(4_000_000, 0, true).offset, 50);
        assert_eq!(sent.record(4_000_000, 10, false), SentPlace { offset: 50, is_repeated: false });
    }

    #[test]
    fn bytes_count_once_and_in_order() {
        let mut received = ReceivedBytes::default();
        let arrivals = [
            (100, 50, true, 0),
            (200, 50, true, 0),
            (100, 50, false, 0),
            (120, 50, true, 0),
            (0, 100, true, 170),
            (160, 50, true, 250),
            (0, 250, false, 250),
            (240, 20, true, 260),
        ];
        for (start, len, is_new, in_order) in arrivals {
            assert_eq!((received.record(start, len), received.in_order()), (is_new, in_order), "{start}");
        }
    }

    #[test]
    fn memory_is_bounded_whatever_arrives() {
        let mut received = ReceivedBytes::default();
        for n in 0..10_000 {
            received.record(1 + 2 * n, 1);
        }
        assert_eq!(received.ranges.len(), MAX_RANGES);
        assert!(received.record(0, 20_000), "all at once");
        assert_eq!((received.in_order(), received.ranges.len()), (20_000, 0));
    }
}
