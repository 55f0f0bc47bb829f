//! Receiving half: received segments of the current block, data for the user, ACK policy (TPA §3.6).

use super::config::{AckConfig, AckEvery, CompleteBlock, Config, EchoRule};
use super::stats::DropReason;
use hopline_core::Payload;
use hopline_wire::tpa::{Ack, Bitmap, Control, POSITIONS, Segment, SegmentPosition, TxStat};
use std::collections::VecDeque;

/// Largest WinSize.
const MAX_WINDOW: u64 = u16::MAX as u64;

/// Receiving half of an endpoint.
#[derive(Clone, Debug)]
pub(super) struct ReceiveHalf<P> {
    config: AckConfig,
    mss: u16,
    buffer: u64,
    /// Mask of the bits of block numbers in use.
    mask: u16,
    /// Number of the current block; before the first block, one less than its number.
    block: u16,
    progress: BlockProgress,
    received: Bitmap,
    /// Proof of receipt of `received`.
    proof: u16,
    /// Position of the block's last segment, if known.
    last: Option<u8>,
    /// `true` if the last segment carries the FIN.
    fin: bool,
    /// Next position to pass to the user.
    next: u8,
    out_of_order: [Option<P>; POSITIONS as usize],
    out_of_order_bytes: u64,
    /// Data in order, not read yet.
    pub(super) ready: VecDeque<P>,
    ready_bytes: u64,
    /// Number of segments per ACK in the [`AckEvery::Window`] policy: the peer's cwndmax.
    pub(super) peer_cwnd_max: u8,
    /// Number of segments not yet acknowledged.
    pending: u8,
    /// AckTxSeqNumber of the next ACK.
    echo: u8,
    /// Window in the latest ACK, bytes.
    announced: u64,
}

/// Progress of reception: a block has begun or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BlockProgress {
    BeforeFirst,
    InBlock,
}

/// Result of the processing of a data segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ReceiveOutcome {
    pub(super) reply: AckTime,
    pub(super) content: SegmentContent,
}

/// Time of the acknowledgment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AckTime {
    None,
    Now,
    /// With those of further segments, or at the expiry of the timer.
    Delayed,
}

/// Content of a data segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SegmentContent {
    /// New data. `in_order`: bytes that are now in order, of this and of earlier segments; `overtook`: it arrived before
    /// an earlier one.
    New {
        in_order: u64,
        overtook: bool,
    },
    /// No new data.
    Duplicate,
    /// A probe of the peer.
    Probe,
    Dropped(DropReason),
}

impl<P: Payload> ReceiveHalf<P> {
    pub(super) fn new(config: &Config, longest: u16) -> Self {
        let mask = config.block_numbers.mask();
        Self {
            config: config.ack,
            mss: longest,
            buffer: u64::from(config.receive_buffer),
            mask,
            block: mask,
            progress: BlockProgress::BeforeFirst,
            received: Bitmap::EMPTY,
            proof: 0,
            last: None,
            fin: false,
            next: 0,
            out_of_order: Default::default(),
            out_of_order_bytes: 0,
            ready: VecDeque::new(),
            ready_bytes: 0,
            peer_cwnd_max: config.cwnd_max,
            pending: 0,
            echo: 0,
            announced: 0,
        }
    }

    /// Processes a segment with a place in a block.
    pub(super) fn handle_segment(&mut self, segment: Segment<P>, place: SegmentPosition) -> ReceiveOutcome {
        if segment.payload.is_empty() && segment.control != Control::Fin {
            return ReceiveOutcome { reply: AckTime::Now, content: SegmentContent::Probe };
        }
        let distance = segment.block.wrapping_sub(self.block) & self.mask;
        match distance {
            0 if self.progress == BlockProgress::InBlock => self.handle_block_segment(segment, place),
            1 if self.is_finished() => dropped(DropReason::AfterClose),
            1 if self.is_complete() => {
                self.start_block(segment.block);
                self.handle_block_segment(segment, place)
            }
            // B7: of a block that is over.
            d if d > self.mask / 2 || d == 0 => {
                ReceiveOutcome { reply: AckTime::Now, content: SegmentContent::Duplicate }
            }
            _ => dropped(DropReason::OutsideBlock),
        }
    }

    fn handle_block_segment(&mut self, segment: Segment<P>, place: SegmentPosition) -> ReceiveOutcome {
        let SegmentPosition { position, is_last: last } = place;
        if segment.payload.len() > u64::from(self.mss) {
            return dropped(DropReason::TooLong);
        }
        if self.contradicts(place) {
            return dropped(DropReason::Inconsistent);
        }
        if self.received.contains(position) {
            self.echo = segment.tx;
            return ReceiveOutcome { reply: AckTime::Now, content: SegmentContent::Duplicate };
        }
        let len = segment.payload.len();
        if len > self.room() {
            return ReceiveOutcome {
                reply: AckTime::Now,
                content: SegmentContent::Dropped(DropReason::NoRoom),
            };
        }
        self.record_echo(segment.tx);
        if last {
            (self.last, self.fin) = (Some(position), segment.control == Control::Fin);
        }
        let overtook = position > self.next;
        self.received.insert(position);
        self.proof ^= segment.receipt.nonce;
        self.out_of_order[usize::from(position)] = Some(segment.payload);
        self.out_of_order_bytes += len;
        let in_order = self.deliver_in_order();
        self.pending = self.pending.saturating_add(1);
        ReceiveOutcome {
            reply: self.ack_time(segment.tx_stat),
            content: SegmentContent::New { in_order, overtook },
        }
    }

    /// Records the transmission number to echo (B8).
    fn record_echo(&mut self, tx: u8) {
        if self.config.echo == EchoRule::Last || self.pending == 0 {
            self.echo = tx;
        }
    }

    /// Returns whether the segment contradicts the known end of the block: two ends, or data after the end.
    fn contradicts(&self, place: SegmentPosition) -> bool {
        match self.last {
            Some(end) => place.position > end || place.is_last != (place.position == end),
            None => place.is_last && !self.received.without(Bitmap::first(place.position)).is_empty(),
        }
    }

    /// Chooses the time of the acknowledgment (TPA §3.6, and B6).
    fn ack_time(&self, sender: TxStat) -> AckTime {
        let complete = self.is_complete();
        let at_once = sender == TxStat::Congested
            || self.pending >= self.segments_per_ack()
            || (complete && self.config.complete_block == CompleteBlock::AckAtOnce)
            || (complete && self.fin);
        if at_once { AckTime::Now } else { AckTime::Delayed }
    }

    fn segments_per_ack(&self) -> u8 {
        match self.config.every {
            AckEvery::Other => 2,
            AckEvery::Window => self.peer_cwnd_max.max(1),
        }
    }

    /// Moves in-order data to the user. Returns their bytes.
    fn deliver_in_order(&mut self) -> u64 {
        let mut released = 0;
        while self.received.contains(self.next) {
            if let Some(payload) = self.out_of_order[usize::from(self.next)].take().filter(|p| !p.is_empty())
            {
                released += payload.len();
                self.ready.push_back(payload);
            }
            self.next += 1;
        }
        self.out_of_order_bytes -= released;
        self.ready_bytes += released;
        released
    }

    fn start_block(&mut self, block: u16) {
        (self.block, self.progress) = (block & self.mask, BlockProgress::InBlock);
        (self.received, self.proof, self.last, self.next) = (Bitmap::EMPTY, 0, None, 0);
    }

    /// Returns whether the whole block has arrived, which also holds before the first block.
    fn is_complete(&self) -> bool {
        match self.last {
            Some(last) => self.received == Bitmap::first(last + 1),
            None => self.progress == BlockProgress::BeforeFirst,
        }
    }

    /// Returns whether all data up to the FIN are in order.
    pub(super) fn is_finished(&self) -> bool {
        self.fin && self.last.is_some_and(|last| self.next > last)
    }

    /// Returns whether a reset of the peer may name `block`: the block of its latest data, or the next.
    pub(super) fn is_current(&self, block: u16) -> bool {
        block.wrapping_sub(self.block) & self.mask <= 1
    }

    /// Returns the next piece for the user.
    pub(super) fn read(&mut self) -> Option<P> {
        let piece = self.ready.pop_front()?;
        self.ready_bytes -= piece.len();
        Some(piece)
    }

    /// Returns whether the window has grown enough for a window update (RFC 9293 §3.8.6.2.2 in spirit).
    pub(super) fn needs_window_update(&self) -> bool {
        let step = (2 * u64::from(self.mss)).min(self.buffer / 2).max(1);
        self.announced < u64::from(self.mss) * 2 && self.window() >= self.announced + step
    }

    /// Returns the acknowledgment to send now. The segments that it covers are no longer pending.
    pub(super) fn acknowledge(&mut self) -> Ack {
        self.pending = 0;
        Ack { block: self.block, bitmap: self.received, tx: self.echo }
    }

    /// Returns the proof of receipt of the acknowledgment to send now.
    pub(super) fn proof(&self) -> u16 {
        self.proof
    }

    /// Returns the WinSize to send now.
    pub(super) fn announce_window(&mut self) -> u16 {
        self.announced = self.window();
        self.announced as u16
    }

    fn window(&self) -> u64 {
        self.room().min(MAX_WINDOW)
    }

    fn room(&self) -> u64 {
        self.buffer.saturating_sub(self.ready_bytes + self.out_of_order_bytes)
    }

    /// Returns the bytes held for the user, in order or not.
    pub(super) fn unread(&self) -> u64 {
        self.ready_bytes + self.out_of_order_bytes
    }

    /// Returns whether received segments are unacknowledged.
    pub(super) fn has_pending(&self) -> bool {
        self.pending > 0
    }

    /// Discards data that cannot become readable any more.
    pub(super) fn discard_out_of_order(&mut self) {
        self.out_of_order = Default::default();
        self.out_of_order_bytes = 0;
    }
}

fn dropped(reason: DropReason) -> ReceiveOutcome {
    ReceiveOutcome { reply: AckTime::None, content: SegmentContent::Dropped(reason) }
}
