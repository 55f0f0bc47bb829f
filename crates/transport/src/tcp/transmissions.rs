//! Transmission records of outstanding data (RFC 8985 §5.2): one for each segment, in stream order.
//!
//! A record takes 24 bytes in a ring that grows to the largest window and stays. Retransmissions in other sizes split and
//! join records, so that there are never many more records than segments in flight. If delivery rates are sampled, each
//! record has a stamp in a second ring.

use super::delivery_rate::Stamp;
use core::ops::Range;
use hopline_core::Instant;
use std::collections::VecDeque;

/// Segment that was sent and is not cumulatively acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Record {
    /// Position after it ("Segment.end_seq").
    pub(crate) end: u64,
    /// Time of the last transmission ("Segment.xmit_ts").
    pub(crate) sent: Instant,
    pub(crate) fate: Fate,
    pub(crate) times: Times,
}

/// State of the last transmission of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// Not known to be lost or received.
    InFlight,
    /// Declared lost ("Segment.lost").
    Lost,
    /// Selectively acknowledged.
    Sacked,
}

/// Number of transmissions of a segment ("Segment.retransmitted").
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Times {
    Once,
    Again,
}

/// Outstanding data, from the first unacknowledged position on. Positions are stream offsets.
#[derive(Clone, Debug, Default)]
pub(crate) struct Transmissions {
    records: VecDeque<Record>,
    stamps: Stamps,
    una: u64,
    /// Bytes of sequence space in each [`Fate`].
    space: [u64; 3],
}

impl Transmissions {
    /// Creates the records without outstanding data; the next position to send is `una`.
    pub(crate) fn new(una: u64) -> Self {
        Self { una, ..Self::default() }
    }

    /// As [`Self::new`], with a stamp for each record.
    pub(crate) fn stamped(una: u64) -> Self {
        Self { stamps: Stamps(Some(VecDeque::new())), ..Self::new(una) }
    }

    /// Returns the bytes of sequence space in flight: neither acknowledged, nor selectively acknowledged, nor lost
    /// ("pipe" of RFC 6675; a retransmitted segment counts once, since its first transmission was lost).
    pub(crate) fn in_flight(&self) -> u64 {
        self.space[Fate::InFlight as usize]
    }

    /// Returns whether the peer has selectively acknowledged any data.
    pub(crate) fn has_sacked(&self) -> bool {
        self.space[Fate::Sacked as usize] > 0
    }

    /// Returns whether the peer has selectively acknowledged at least `n` segments ("RACK.segs_sacked").
    pub(crate) fn has_sacked_segments(&self, n: u32) -> bool {
        let sacked = self.records.iter().filter(|r| r.fate == Fate::Sacked);
        self.has_sacked() && sacked.take(n as usize).count() == n as usize
    }

    /// Returns whether any segment is lost, or resent and not known to have arrived.
    pub(crate) fn is_repairing(&self) -> bool {
        self.records.iter().any(|r| match r.fate {
            Fate::Lost => true,
            Fate::InFlight => r.times == Times::Again,
            Fate::Sacked => false,
        })
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// Records the transmission of `at..end`, for the first time or again. `stamp` is stored if delivery rates are
    /// sampled.
    pub(crate) fn sent(&mut self, at: u64, end: u64, now: Instant, stamp: Stamp) {
        let known = self.end();
        if at < known {
            self.sent_again(at..end.min(known), now, stamp);
        }
        if end > known {
            self.space[Fate::InFlight as usize] += end - known;
            self.records.push_back(Record { end, sent: now, fate: Fate::InFlight, times: Times::Once });
            self.stamps.push(Stamp { in_flight: self.in_flight(), ..stamp });
        }
    }

    /// Removes the records below `una`. Calls `each` for those that were not selectively acknowledged before.
    pub(crate) fn acknowledge(&mut self, una: u64, mut each: impl FnMut(&Record, Option<&Stamp>)) {
        while let Some(&record) = self.records.front()
            && record.end <= una
        {
            self.space[record.fate as usize] -= record.end - self.una;
            self.una = record.end;
            self.records.pop_front();
            let stamp = self.stamps.pop();
            if record.fate != Fate::Sacked {
                each(&record, stamp.as_ref());
            }
        }
        if let Some(record) = self.records.front()
            && una > self.una
        {
            self.space[record.fate as usize] -= una - self.una;
        }
        self.una = self.una.max(una);
    }

    /// Marks the whole segments in `told`, a part of the block `held`, as selectively acknowledged. Calls `each` for new
    /// ones.
    pub(crate) fn sack(
        &mut self,
        told: Range<u64>,
        held: Range<u64>,
        mut each: impl FnMut(&Record, Option<&Stamp>),
    ) {
        let mut i = self.index(told.start);
        while i < self.records.len() && self.start(i) < told.end {
            let (start, record) = (self.start(i), self.records[i]);
            if record.fate != Fate::Sacked && held.start <= start && record.end <= held.end {
                self.set_fate(i, Fate::Sacked);
                each(&record, self.stamps.get(i));
            }
            i += 1;
        }
    }

    /// Marks selectively acknowledged segments as in flight again, after the peer has discarded them.
    pub(crate) fn forget_sacks(&mut self) {
        for i in 0..self.records.len() {
            if self.records[i].fate == Fate::Sacked {
                self.set_fate(i, Fate::InFlight);
            }
        }
    }

    /// Calls `verdict` for each record with its first position, in stream order, and marks segments in flight as lost if
    /// it says so. Calls `each` for those. Returns their number.
    pub(crate) fn mark_lost(
        &mut self,
        mut verdict: impl FnMut(u64, &Record) -> Verdict,
        mut each: impl FnMut(Range<u64>, Option<&Stamp>),
    ) -> u64 {
        let mut marked = 0;
        for i in 0..self.records.len() {
            match verdict(self.start(i), &self.records[i]) {
                Verdict::Lost if self.records[i].fate == Fate::InFlight => {
                    self.set_fate(i, Fate::Lost);
                    each(self.start(i)..self.records[i].end, self.stamps.get(i));
                    marked += 1;
                }
                Verdict::Lost | Verdict::Leave => {}
                Verdict::Stop => break,
            }
        }
        marked
    }

    /// Marks lost segments as in flight again, after the losses turned out to be spurious.
    pub(crate) fn forgive(&mut self) {
        for i in 0..self.records.len() {
            if self.records[i].fate == Fate::Lost {
                self.set_fate(i, Fate::InFlight);
            }
        }
    }

    /// Returns the first contiguous range of lost segments.
    pub(crate) fn first_lost(&self) -> Option<Range<u64>> {
        if self.space[Fate::Lost as usize] == 0 {
            return None;
        }
        let first = self.records.iter().position(|r| r.fate == Fate::Lost)?;
        let run = self.records.iter().skip(first).take_while(|r| r.fate == Fate::Lost);
        Some(self.start(first)..run.last().map_or(0, |r| r.end))
    }

    /// Returns the segment with the highest positions.
    pub(crate) fn last(&self) -> Option<Range<u64>> {
        let i = self.records.len().checked_sub(1)?;
        Some(self.start(i)..self.records[i].end)
    }

    fn end(&self) -> u64 {
        self.records.back().map_or(self.una, |r| r.end)
    }

    fn start(&self, i: usize) -> u64 {
        if i == 0 { self.una } else { self.records[i - 1].end }
    }

    /// Returns the index of the record that contains `position`, or of the one after it.
    fn index(&self, position: u64) -> usize {
        self.records.partition_point(|r| r.end <= position)
    }

    fn sent_again(&mut self, range: Range<u64>, now: Instant, stamp: Stamp) {
        self.split(range.start);
        self.split(range.end);
        let (from, to) = (self.index(range.start), self.index(range.end));
        for i in from..to {
            self.set_fate(i, Fate::InFlight);
        }
        if from < to {
            let joined = Record { end: range.end, sent: now, fate: Fate::InFlight, times: Times::Again };
            self.records[from] = joined;
            self.records.drain(from + 1..to);
            self.stamps.join(from..to, Stamp { in_flight: self.in_flight(), ..stamp });
        }
    }

    /// Makes `position` a boundary between records.
    fn split(&mut self, position: u64) {
        let i = self.index(position);
        if i < self.records.len() && self.start(i) < position {
            let record = self.records[i];
            self.records.insert(i, Record { end: position, ..record });
            self.stamps.split(i);
        }
    }

    fn set_fate(&mut self, i: usize, fate: Fate) {
        let len = self.records[i].end - self.start(i);
        self.space[self.records[i].fate as usize] -= len;
        self.space[fate as usize] += len;
        self.records[i].fate = fate;
    }
}

/// Stamps of the records, at the same indices; `None`: delivery rates are not sampled.
#[derive(Clone, Debug, Default)]
struct Stamps(Option<VecDeque<Stamp>>);

impl Stamps {
    fn push(&mut self, stamp: Stamp) {
        if let Some(stamps) = &mut self.0 {
            stamps.push_back(stamp);
        }
    }

    fn pop(&mut self) -> Option<Stamp> {
        self.0.as_mut()?.pop_front()
    }

    fn get(&self, i: usize) -> Option<&Stamp> {
        self.0.as_ref()?.get(i)
    }

    /// Splits the stamp of the record at `i` in two.
    fn split(&mut self, i: usize) {
        if let Some(stamps) = &mut self.0
            && let Some(&stamp) = stamps.get(i)
        {
            stamps.insert(i, stamp);
        }
    }

    /// Joins the stamps of the records at `places`, at least one.
    fn join(&mut self, places: Range<usize>, stamp: Stamp) {
        if let Some(stamps) = &mut self.0 {
            stamps[places.start] = stamp;
            stamps.drain(places.start + 1..places.end);
        }
    }
}

/// Decision about a segment in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// The segment is lost.
    Lost,
    /// No change.
    Leave,
    /// No change of this and of the following segments.
    Stop,
}
