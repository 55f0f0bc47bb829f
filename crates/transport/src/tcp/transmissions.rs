//! When what is outstanding was sent (RFC 8985 §5.2): a record for each segment, in the order of the stream.
//!
//! A record costs 24 bytes in a ring that grows to the largest window and stays. Segments that are sent again in other
//! sizes split records and join them, so that there are never many more than segments in flight. Where delivery rates are
//! sampled, each record has a stamp beside it, in a ring of its own.

use super::delivery_rate::Stamp;
use core::ops::Range;
use hopline_core::Instant;
use std::collections::VecDeque;

/// A segment that was sent and is not cumulatively acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Record {
    /// Position after it ("Segment.end_seq").
    pub(crate) end: u64,
    /// When it was sent last ("Segment.xmit_ts").
    pub(crate) sent: Instant,
    pub(crate) fate: Fate,
    pub(crate) times: Times,
}

/// What is known of the last transmission of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// Nothing: it counts as being under way.
    InFlight,
    /// It is taken for lost ("Segment.lost").
    Lost,
    /// The peer holds it.
    Sacked,
}

/// How often a segment was sent ("Segment.retransmitted").
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Times {
    Once,
    Again,
}

/// What is outstanding, from the first unacknowledged position on. Positions are stream offsets.
#[derive(Clone, Debug, Default)]
pub(crate) struct Transmissions {
    records: VecDeque<Record>,
    stamps: Stamps,
    una: u64,
    /// Sequence space of each [`Fate`].
    space: [u64; 3],
}

impl Transmissions {
    /// Nothing is outstanding; the next position to be sent is `una`.
    pub(crate) fn new(una: u64) -> Self {
        Self { una, ..Self::default() }
    }

    /// The same, with a stamp for each record.
    pub(crate) fn stamped(una: u64) -> Self {
        Self { stamps: Stamps(Some(VecDeque::new())), ..Self::new(una) }
    }

    /// Sequence space under way: neither acknowledged, nor selectively acknowledged, nor lost ("pipe" of RFC 6675, where a
    /// segment that was sent again counts once: its first transmission was lost).
    pub(crate) fn in_flight(&self) -> u64 {
        self.space[Fate::InFlight as usize]
    }

    /// Whether the peer holds anything beyond the cumulative acknowledgment.
    pub(crate) fn has_sacked(&self) -> bool {
        self.space[Fate::Sacked as usize] > 0
    }

    /// Whether the peer holds so many segments beyond the cumulative acknowledgment ("RACK.segs_sacked").
    pub(crate) fn has_sacked_segments(&self, n: u32) -> bool {
        let sacked = self.records.iter().filter(|r| r.fate == Fate::Sacked);
        self.has_sacked() && sacked.take(n as usize).count() == n as usize
    }

    /// Whether anything is lost, or sent again and not known to have arrived.
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

    /// `at..end` was sent now, for the first time or again. `stamp` is kept if stamps are.
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

    /// Everything below `una` is acknowledged. `each` is shown what the peer was not known to hold.
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

    /// The peer holds the block `held`, of which an ACK told `told`. `each` is shown whole segments that are new.
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

    /// The peer took back what it had selectively acknowledged.
    pub(crate) fn forget_sacks(&mut self) {
        for i in 0..self.records.len() {
            if self.records[i].fate == Fate::Sacked {
                self.set_fate(i, Fate::InFlight);
            }
        }
    }

    /// Shows `verdict` what is in flight with its first position, in the order of the stream, and takes for lost what it
    /// says. `each` is shown what that is. Returns how many segments that were.
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

    /// What is taken for lost counts as being under way: that it was lost turned out to be wrong.
    pub(crate) fn forgive(&mut self) {
        for i in 0..self.records.len() {
            if self.records[i].fate == Fate::Lost {
                self.set_fate(i, Fate::InFlight);
            }
        }
    }

    /// The first lost segments without a gap between them.
    pub(crate) fn first_lost(&self) -> Option<Range<u64>> {
        if self.space[Fate::Lost as usize] == 0 {
            return None;
        }
        let first = self.records.iter().position(|r| r.fate == Fate::Lost)?;
        let run = self.records.iter().skip(first).take_while(|r| r.fate == Fate::Lost);
        Some(self.start(first)..run.last().map_or(0, |r| r.end))
    }

    /// The segment with the highest positions.
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

    /// The record that holds `position`, or the one after it.
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

/// A stamp for each record, in the same places; `None`: nobody wants them.
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

    /// The record at `i` became two.
    fn split(&mut self, i: usize) {
        if let Some(stamps) = &mut self.0
            && let Some(&stamp) = stamps.get(i)
        {
            stamps.insert(i, stamp);
        }
    }

    /// The records at `places`, at least one, became one.
    fn join(&mut self, places: Range<usize>, stamp: Stamp) {
        if let Some(stamps) = &mut self.0 {
            stamps[places.start] = stamp;
            stamps.drain(places.start + 1..places.end);
        }
    }
}

/// What becomes of a segment in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It is lost.
    Lost,
    /// Nothing.
    Leave,
    /// Nothing, and of none behind it.
    Stop,
}
