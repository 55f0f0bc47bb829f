//! Contents of the SACK option of an acknowledgment (RFC 2018 §3, RFC 2883 §4), in stream positions.

use super::endpoint::{Endpoint, FIRST_DATA};
use hopline_core::{Payload, Seq32};
use hopline_wire::tcp::{SackBlocks, Segment};

/// SACK option, checked against the data sent.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SackInfo {
    blocks: [(u64, u64); SackBlocks::MAX],
    len: usize,
    /// Data that arrived twice.
    pub(super) dsack: Option<(u64, u64)>,
}

impl SackInfo {
    /// Returns the blocks above the cumulative acknowledgment, ascending.
    pub(super) fn blocks(&self) -> &[(u64, u64)] {
        &self.blocks[..self.len]
    }

    fn push(&mut self, block: (u64, u64)) {
        self.blocks[self.len] = block;
        self.len += 1;
    }
}

impl<P: Payload> Endpoint<P> {
    /// Returns the SACK option of a segment that acknowledges up to `ack`. Invalid blocks are left out.
    pub(super) fn read_sack(&self, segment: &Segment<P>, ack: i64) -> SackInfo {
        let mut told = SackInfo::default();
        let options = segment.options.sack.as_slice();
        if options.is_empty() || !self.options.sack {
            return told;
        }
        let una = self.snd.una.max(ack.max(0) as u64);
        let mut blocks = options.iter().map(|b| (self.sent_position(b.left), self.sent_position(b.right)));
        let (first, second) = (blocks.next(), blocks.next());
        told.dsack = first
            .filter(|&(left, right)| {
                // RFC 2883 §4: below the cumulative acknowledgment, or part of the second block.
                let inside = second.is_some_and(|(l, r)| l <= left && right <= r);
                left >= FIRST_DATA as i64 && left < right && (right <= ack || inside)
            })
            .filter(|&(_, right)| right <= self.snd.max as i64)
            .map(|(left, right)| (left as u64, right as u64));
        let news = first.filter(|_| told.dsack.is_none());
        for (left, right) in news.into_iter().chain(second).chain(blocks) {
            if left > una as i64 && left < right && right <= self.snd.max as i64 {
                told.push((left as u64, right as u64));
            }
        }
        told.blocks[..told.len].sort_unstable();
        told
    }

    /// Returns the position of a sequence number in our stream; negative: before the SYN.
    fn sent_position(&self, seq: Seq32) -> i64 {
        self.snd.una as i64 + i64::from(seq.distance_from(self.snd.seq(self.snd.una)))
    }
}
