//! Data that arrived out of order (RFC 9293 §3.10.7.4) and the SACK blocks that report it (RFC 2018 §4).

use core::ops::Range;
use hopline_core::Payload;
use std::collections::VecDeque;

/// Number of blocks remembered in order of arrival; a SACK option holds at most four.
const RECENT_BLOCKS: usize = 4;

/// Runs of contiguous out-of-order data, disjoint, not touching, ascending. Positions are stream offsets.
#[derive(Clone, Debug)]
pub(crate) struct ReassemblyBuffer<P> {
    runs: VecDeque<Run<P>>,
    piece_count: usize,
    bytes: u64,
    max_pieces: usize,
    /// Limit of the host, below `max_pieces`.
    host_limit: usize,
    /// One position in each of the runs that changed last, the latest first.
    recent: [Option<u64>; RECENT_BLOCKS],
}

#[derive(Clone, Debug)]
struct Run<P> {
    start: u64,
    end: u64,
    pieces: VecDeque<P>,
}

/// Returns a part of `data`. A part of less than half of the data does not keep the rest in memory.
pub(crate) fn slice_detached<P: Payload>(data: &P, range: Range<u64>) -> P {
    let small = range.end - range.start < data.len() / 2;
    let part = data.slice(range);
    if small { part.detached() } else { part }
}

/// Result of storing a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stored {
    /// Number of new bytes; 0: all are known.
    New(u64),
    /// No room for more pieces.
    Full,
}

impl<P: Payload> ReassemblyBuffer<P> {
    /// Creates an empty store for at most `max_pieces` pieces.
    pub(crate) fn new(most_parts: usize) -> Self {
        Self {
            runs: VecDeque::new(),
            piece_count: 0,
            bytes: 0,
            max_pieces: most_parts,
            host_limit: most_parts,
            recent: [None; RECENT_BLOCKS],
        }
    }

    /// Keeps `most` pieces at most, or as many as it was made for if that is fewer. Pieces that are kept stay.
    pub(crate) fn set_limit(&mut self, most: usize) {
        self.host_limit = most.min(self.max_pieces);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// Returns the number of bytes held.
    pub(crate) fn len(&self) -> u64 {
        self.bytes
    }

    /// Returns the number of pieces held.
    pub(crate) fn piece_count(&self) -> usize {
        self.piece_count
    }

    /// Returns the position after the last byte held.
    pub(crate) fn end(&self) -> Option<u64> {
        self.runs.back().map(|run| run.end)
    }

    /// Removes all data.
    pub(crate) fn clear(&mut self) {
        *self = Self { host_limit: self.host_limit, ..Self::new(self.max_pieces) };
    }

    /// Stores the new bytes of `data`, which start at `start`.
    pub(crate) fn insert(&mut self, start: u64, data: P) -> Stored {
        let end = start + data.len();
        let first = self.runs.partition_point(|r| r.end < start);
        let last = self.runs.partition_point(|r| r.start <= end);
        if let Some(run) = self.runs.get(first)
            && run.start <= start
            && end <= run.end
        {
            self.mark_recent(start);
            return Stored::New(0);
        }
        if self.piece_count + (last - first) + 1 > self.host_limit {
            return Stored::Full;
        }
        let mut joined = Run { start, end: start, pieces: VecDeque::new() };
        let mut new = 0;
        let mut keep = |joined: &mut Run<P>, upto: u64| {
            if upto > joined.end {
                joined.pieces.push_back(slice_detached(&data, joined.end - start..upto - start));
                new += upto - joined.end;
                joined.end = upto;
            }
        };
        for mut run in self.runs.drain(first..last) {
            self.piece_count -= run.pieces.len();
            if run.start < joined.start {
                joined = run;
            } else {
                keep(&mut joined, run.start);
                joined.pieces.append(&mut run.pieces);
                joined.end = run.end;
            }
        }
        keep(&mut joined, end);
        self.piece_count += joined.pieces.len();
        self.bytes += new;
        self.runs.insert(first, joined);
        self.mark_recent(start);
        Stored::New(new)
    }

    /// Returns the first range between `start` and `end` that is held already.
    pub(crate) fn first_overlap(&self, start: u64, end: u64) -> Option<(u64, u64)> {
        let run = self.runs.get(self.runs.partition_point(|r| r.end <= start))?;
        let (left, right) = (run.start.max(start), run.end.min(end));
        (left < right).then_some((left, right))
    }

    /// Removes the run that starts at or below `next`, and passes its bytes from `next` on to `take`. Returns the
    /// position after it, or `next`.
    pub(crate) fn take_in_order(&mut self, next: u64, mut take: impl FnMut(P)) -> u64 {
        let mut upto = next;
        while let Some(run) = self.runs.pop_front_if(|r| r.start <= next) {
            self.piece_count -= run.pieces.len();
            self.bytes -= run.end - run.start;
            let mut at = run.start;
            for part in run.pieces {
                let (from, len) = (at, part.len());
                at += len;
                if at > upto {
                    take(if from >= upto { part } else { part.slice(upto - from..len) });
                    upto = at;
                }
            }
        }
        upto
    }

    /// Returns the blocks held, the one that changed last first (RFC 2018 §4).
    pub(crate) fn blocks(&self) -> impl Iterator<Item = (u64, u64)> {
        self.recent.iter().filter_map(|&p| {
            let run = self.runs.get(self.run_of(p?)?)?;
            Some((run.start, run.end))
        })
    }

    fn run_of(&self, position: u64) -> Option<usize> {
        let i = self.runs.partition_point(|r| r.end <= position);
        self.runs.get(i).filter(|r| r.start <= position).map(|_| i)
    }

    /// Moves the run of `position` to the front of the recently changed ones. Removes entries of removed or equal runs.
    fn mark_recent(&mut self, position: u64) {
        let run = self.run_of(position);
        let mut kept = [Some(position), None, None, None];
        let mut n = 1;
        for old in self.recent {
            let of_old = old.and_then(|p| self.run_of(p));
            if n < RECENT_BLOCKS && of_old.is_some() && of_old != run {
                kept[n] = old;
                n += 1;
            }
        }
        self.recent = kept;
    }
}
