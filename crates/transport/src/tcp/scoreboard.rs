//! SACK scoreboard: blocks that the peer holds above the cumulative acknowledgment (RFC 2018, RFC 6675 §4).

/// Largest number of separate blocks kept. The peer's blocks are advisory: further ones are ignored.
const MAX_BLOCKS: usize = 256;

/// Selectively acknowledged blocks, disjoint, not touching, ascending. Positions are stream offsets.
#[derive(Clone, Debug, Default)]
pub(crate) struct Scoreboard {
    blocks: Vec<Block>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Block {
    left: u64,
    right: u64,
}

impl Scoreboard {
    /// Removes all blocks (RFC 2018 §8: after a time-out the peer may have discarded the data).
    pub(crate) fn clear(&mut self) {
        self.blocks.clear();
    }

    /// Returns the position after the highest block; 0 without blocks.
    pub(crate) fn end(&self) -> u64 {
        self.blocks.last().map_or(0, |b| b.right)
    }

    /// Adds `left..right`. Returns the number of new bytes in it.
    pub(crate) fn add(&mut self, left: u64, right: u64) -> u64 {
        if left >= right {
            return 0;
        }
        let first = self.blocks.partition_point(|b| b.right < left);
        let last = self.blocks.partition_point(|b| b.left <= right);
        if first == last {
            if self.blocks.len() >= MAX_BLOCKS {
                return 0;
            }
            self.blocks.insert(first, Block { left, right });
            return right - left;
        }
        let known: u64 = self.blocks[first..last].iter().map(|b| b.right - b.left).sum();
        let joined =
            Block { left: left.min(self.blocks[first].left), right: right.max(self.blocks[last - 1].right) };
        self.blocks[first] = joined;
        self.blocks.drain(first + 1..last);
        joined.right - joined.left - known
    }

    /// Removes blocks below `una`. Returns whether `una` cuts into a block: the peer then acknowledged less than it
    /// reported, so it has discarded data.
    pub(crate) fn advance(&mut self, una: u64) -> Reneging {
        if self.blocks.is_empty() {
            return Reneging::No;
        }
        let gone = self.blocks.partition_point(|b| b.right <= una);
        self.blocks.drain(..gone);
        match self.blocks.first() {
            Some(b) if b.left <= una => Reneging::Yes,
            _ => Reneging::No,
        }
    }

    /// Returns the bytes of blocks below `position`.
    pub(crate) fn sacked_below(&self, position: u64) -> u64 {
        self.blocks.iter().take_while(|b| b.left < position).map(|b| b.right.min(position) - b.left).sum()
    }

    /// Returns the end of the block that contains `position`, or `position`.
    pub(crate) fn skip_block(&self, position: u64) -> u64 {
        let i = self.blocks.partition_point(|b| b.right <= position);
        match self.blocks.get(i) {
            Some(b) if b.left <= position => b.right,
            _ => position,
        }
    }

    /// Returns the block that contains `position`.
    pub(crate) fn block_containing(&self, position: u64) -> Option<core::ops::Range<u64>> {
        let i = self.blocks.partition_point(|b| b.right <= position);
        self.blocks.get(i).filter(|b| b.left <= position).map(|b| b.left..b.right)
    }

    /// Returns the bytes from `position` to the next block above it, if there is one.
    pub(crate) fn gap_at(&self, position: u64) -> Option<u64> {
        let i = self.blocks.partition_point(|b| b.left <= position);
        self.blocks.get(i).map(|b| b.left - position)
    }

    /// Returns the first hole at or above `from` with a block above it: position and length.
    pub(crate) fn next_hole(&self, from: u64) -> Option<(u64, u64)> {
        let at = self.skip_block(from);
        self.gap_at(at).map(|len| (at, len))
    }

    /// Returns whether `position` is lost (RFC 6675 §4 `IsLost()`): at least `threshold` blocks, or more than `threshold`
    /// − 1 segments, are above it.
    pub(crate) fn is_lost(&self, position: u64, threshold: u32, mss: u64) -> bool {
        let above = &self.blocks[self.blocks.partition_point(|b| b.left <= position)..];
        above.len() >= threshold as usize
            || above.iter().map(|b| b.right - b.left).sum::<u64>() > (u64::from(threshold) - 1) * mss
    }

    /// Returns the end of the highest lost hole by `IsLost()`; 0: none is lost.
    pub(crate) fn lost_below(&self, threshold: u32, mss: u64) -> u64 {
        let (mut blocks, mut bytes) = (0u32, 0u64);
        let mut reaches = |b: &&Block| {
            blocks += 1;
            bytes += b.right - b.left;
            blocks >= threshold || bytes > (u64::from(threshold) - 1) * mss
        };
        self.blocks.iter().rev().find(|b| reaches(b)).map_or(0, |b| b.left)
    }

    /// Returns the pipe (RFC 6675 §4 `SetPipe()`): bytes of `una..nxt` that are neither acknowledged nor lost, plus those
    /// that were resent below `high_rxt`.
    pub(crate) fn pipe(&self, una: u64, nxt: u64, high_rxt: u64, threshold: u32, mss: u64) -> u64 {
        let mut pipe = 0;
        let mut hole_end = nxt;
        let (mut blocks_above, mut bytes_above) = (0u32, 0u64);
        let mut count = |hole: core::ops::Range<u64>, blocks: u32, bytes: u64| {
            let lost = blocks >= threshold || bytes > (u64::from(threshold) - 1) * mss;
            if !lost {
                pipe += hole.end.saturating_sub(hole.start);
            }
            pipe += high_rxt.min(hole.end).saturating_sub(hole.start);
        };
        for b in self.blocks.iter().rev() {
            count(b.right.max(una)..hole_end, blocks_above, bytes_above);
            blocks_above += 1;
            bytes_above += b.right - b.left;
            hole_end = b.left;
        }
        count(una..hole_end, blocks_above, bytes_above);
        pipe
    }
}

/// Reneging on selective acknowledgments by the peer (RFC 2018 §8).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reneging {
    /// The peer has kept the data.
    No,
    /// The peer has discarded data that it had selectively acknowledged.
    Yes,
}
