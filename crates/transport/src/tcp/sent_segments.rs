//! Transmission records of outstanding data (RFC 8985 §5.2): one for each segment, in stream order.
//!
//! A record takes 24 bytes in a ring that grows to the largest window and stays. Retransmissions in other sizes split and
//! join records, so that there are never many more records than segments in flight. If delivery rates are sampled, each
//! record has a stamp in a second ring.

use super::delivery_rate::PacketState;
use core::ops::Range;
use hopline_core::Instant;
use std::collections::VecDeque;

/// Segment that was sent and is not cumulatively acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SentSegment {
    /// Position after it ("Segment.end_seq").
    pub(crate) end: u64,
    /// Time of the last transmission ("Segment.xmit_ts").
    pub(crate) sent_at: Instant,
    pub(crate) state: SegmentState,
    pub(crate) transmissions: TransmissionCount,
}

/// State of the last transmission of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SegmentState {
    /// Not known to be lost or received.
    InFlight,
    /// Declared lost ("Segment.lost").
    Lost,
    /// Selectively acknowledged.
    Sacked,
}

/// Number of transmissions of a segment ("Segment.retransmitted").
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TransmissionCount {
    Once,
    Several,
}

/// Outstanding data, from the first unacknowledged position on. Positions are stream offsets.
#[derive(Clone, Debug, Default)]
pub(crate) struct SentSegments {
    segments: VecDeque<SentSegment>,
    packet_states: PacketStates,
    una: u64,
    /// Bytes of sequence space in each [`SegmentState`].
    bytes: [u64; 3],
}

impl SentSegments {
    /// Creates the records without outstanding data; the next position to send is `una`.
    pub(crate) fn new(una: u64) -> Self {
        Self { una, ..Self::default() }
    }

    /// As [`Self::new`], with a stamp for each record.
    pub(crate) fn with_packet_states(una: u64) -> Self {
        Self { packet_states: PacketStates(Some(VecDeque::new())), ..Self::new(una) }
    }

    /// Returns the bytes of sequence space in flight: neither acknowledged, nor selectively acknowledged, nor lost
    /// ("pipe" of RFC 6675; a retransmitted segment counts once, since its first transmission was lost).
    pub(crate) fn in_flight(&self) -> u64 {
        self.bytes[SegmentState::InFlight as usize]
    }

    /// Returns whether the peer has selectively acknowledged any data.
    pub(crate) fn has_sacked(&self) -> bool {
        self.bytes[SegmentState::Sacked as usize] > 0
    }

    /// Returns whether the peer has selectively acknowledged at least `n` segments ("RACK.segs_sacked").
    pub(crate) fn has_sacked_segments(&self, n: u32) -> bool {
        let sacked = self.segments.iter().filter(|r| r.state == SegmentState::Sacked);
        self.has_sacked() && sacked.take(n as usize).count() == n as usize
    }

    /// Returns whether any segment is lost, or resent and not known to have arrived.
    pub(crate) fn is_repairing(&self) -> bool {
        self.segments.iter().any(|r| match r.state {
            SegmentState::Lost => true,
            SegmentState::InFlight => r.transmissions == TransmissionCount::Several,
            SegmentState::Sacked => false,
        })
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.segments.is_empty()
    }

    /// Returns the records with the positions that they cover, in stream order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Range<u64>, &SentSegment)> {
        let starts = core::iter::once(self.una).chain(self.segments.iter().map(|segment| segment.end));
        starts.zip(&self.segments).map(|(start, segment)| (start..segment.end, segment))
    }

    /// Records the transmission of `at..end`, for the first time or again. `stamp` is stored if delivery rates are
    /// sampled.
    pub(crate) fn on_sent(&mut self, at: u64, end: u64, now: Instant, stamp: PacketState) {
        let known = self.end();
        if at < known {
            self.on_retransmitted(at..end.min(known), now, stamp);
        }
        if end > known {
            self.bytes[SegmentState::InFlight as usize] += end - known;
            self.segments.push_back(SentSegment {
                end,
                sent_at: now,
                state: SegmentState::InFlight,
                transmissions: TransmissionCount::Once,
            });
            self.packet_states.push(PacketState { in_flight: self.in_flight(), ..stamp });
        }
    }

    /// Removes the records below `una`. Calls `each` for those that were not selectively acknowledged before.
    pub(crate) fn acknowledge(&mut self, una: u64, mut each: impl FnMut(&SentSegment, Option<&PacketState>)) {
        while let Some(&record) = self.segments.front()
            && record.end <= una
        {
            self.bytes[record.state as usize] -= record.end - self.una;
            self.una = record.end;
            self.segments.pop_front();
            let stamp = self.packet_states.pop();
            if record.state != SegmentState::Sacked {
                each(&record, stamp.as_ref());
            }
        }
        if let Some(record) = self.segments.front()
            && una > self.una
        {
            self.bytes[record.state as usize] -= una - self.una;
        }
        self.una = self.una.max(una);
    }

    /// Marks the whole segments in `told`, a part of the block `held`, as selectively acknowledged. Calls `each` for new
    /// ones.
    pub(crate) fn sack(
        &mut self,
        told: Range<u64>,
        held: Range<u64>,
        mut each: impl FnMut(&SentSegment, Option<&PacketState>),
    ) {
        let mut i = self.index(told.start);
        while i < self.segments.len() && self.start(i) < told.end {
            let (start, record) = (self.start(i), self.segments[i]);
            if record.state != SegmentState::Sacked && held.start <= start && record.end <= held.end {
                self.set_state(i, SegmentState::Sacked);
                each(&record, self.packet_states.get(i));
            }
            i += 1;
        }
    }

    /// Marks selectively acknowledged segments as in flight again, after the peer has discarded them.
    pub(crate) fn undo_sacks(&mut self) {
        for i in 0..self.segments.len() {
            if self.segments[i].state == SegmentState::Sacked {
                self.set_state(i, SegmentState::InFlight);
            }
        }
    }

    /// Calls `verdict` for each record with its first position, in stream order, and marks segments in flight as lost if
    /// it says so. Calls `each` for those. Returns their number.
    pub(crate) fn mark_lost(
        &mut self,
        mut verdict: impl FnMut(u64, &SentSegment) -> LossVerdict,
        mut each: impl FnMut(Range<u64>, Option<&PacketState>),
    ) -> u64 {
        let mut marked = 0;
        for i in 0..self.segments.len() {
            match verdict(self.start(i), &self.segments[i]) {
                LossVerdict::Lost if self.segments[i].state == SegmentState::InFlight => {
                    self.set_state(i, SegmentState::Lost);
                    each(self.start(i)..self.segments[i].end, self.packet_states.get(i));
                    marked += 1;
                }
                LossVerdict::Lost | LossVerdict::Keep => {}
                LossVerdict::Stop => break,
            }
        }
        marked
    }

    /// Marks lost segments as in flight again, after the losses turned out to be spurious.
    pub(crate) fn undo_losses(&mut self) {
        for i in 0..self.segments.len() {
            if self.segments[i].state == SegmentState::Lost {
                self.set_state(i, SegmentState::InFlight);
            }
        }
    }

    /// Returns the first contiguous range of lost segments.
    pub(crate) fn first_lost(&self) -> Option<Range<u64>> {
        if self.bytes[SegmentState::Lost as usize] == 0 {
            return None;
        }
        let first = self.segments.iter().position(|r| r.state == SegmentState::Lost)?;
        let run = self.segments.iter().skip(first).take_while(|r| r.state == SegmentState::Lost);
        Some(self.start(first)..run.last().map_or(0, |r| r.end))
    }

    /// Returns the segment with the highest positions.
    pub(crate) fn last(&self) -> Option<Range<u64>> {
        let i = self.segments.len().checked_sub(1)?;
        Some(self.start(i)..self.segments[i].end)
    }

    fn end(&self) -> u64 {
        self.segments.back().map_or(self.una, |r| r.end)
    }

    fn start(&self, i: usize) -> u64 {
        if i == 0 { self.una } else { self.segments[i - 1].end }
    }

    /// Returns the index of the record that contains `position`, or of the one after it.
    fn index(&self, position: u64) -> usize {
        self.segments.partition_point(|r| r.end <= position)
    }

    fn on_retransmitted(&mut self, range: Range<u64>, now: Instant, stamp: PacketState) {
        self.split(range.start);
        self.split(range.end);
        let (from, to) = (self.index(range.start), self.index(range.end));
        for i in from..to {
            self.set_state(i, SegmentState::InFlight);
        }
        if from < to {
            let joined = SentSegment {
                end: range.end,
                sent_at: now,
                state: SegmentState::InFlight,
                transmissions: TransmissionCount::Several,
            };
            self.segments[from] = joined;
            self.segments.drain(from + 1..to);
            self.packet_states.join(from..to, PacketState { in_flight: self.in_flight(), ..stamp });
        }
    }

    /// Makes `position` a boundary between records.
    fn split(&mut self, position: u64) {
        let i = self.index(position);
        if i < self.segments.len() && self.start(i) < position {
            let record = self.segments[i];
            self.segments.insert(i, SentSegment { end: position, ..record });
            self.packet_states.split(i);
        }
    }

    fn set_state(&mut self, i: usize, fate: SegmentState) {
        let len = self.segments[i].end - self.start(i);
        self.bytes[self.segments[i].state as usize] -= len;
        self.bytes[fate as usize] += len;
        self.segments[i].state = fate;
    }
}

/// Stamps of the records, at the same indices; `None`: delivery rates are not sampled.
#[derive(Clone, Debug, Default)]
struct PacketStates(Option<VecDeque<PacketState>>);

impl PacketStates {
    fn push(&mut self, stamp: PacketState) {
        if let Some(stamps) = &mut self.0 {
            stamps.push_back(stamp);
        }
    }

    fn pop(&mut self) -> Option<PacketState> {
        self.0.as_mut()?.pop_front()
    }

    fn get(&self, i: usize) -> Option<&PacketState> {
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
    fn join(&mut self, places: Range<usize>, stamp: PacketState) {
        if let Some(stamps) = &mut self.0 {
            stamps[places.start] = stamp;
            stamps.drain(places.start + 1..places.end);
        }
    }
}

/// Decision about a segment in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LossVerdict {
    /// The segment is lost.
    Lost,
    /// No change.
    Keep,
    /// No change of this and of the following segments.
    Stop,
}
