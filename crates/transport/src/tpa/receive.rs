//! The receiving half: which segments of the current block are here, what the user may read, when to acknowledge (TPA §3.6).

use super::config::{AckConfig, AckEvery, CompleteBlock, Config, Echo};
use super::stats::DropReason;
use hopline_core::Payload;
use hopline_wire::tpa::{Ack, Bitmap, Control, POSITIONS, Place, Segment, TxStat};
use std::collections::VecDeque;

/// Largest WinSize.
const MOST_WINDOW: u64 = u16::MAX as u64;

/// The receiving half of an endpoint.
#[derive(Clone, Debug)]
pub(super) struct Receiver<P> {
    config: AckConfig,
    mss: u16,
    buffer: u64,
    /// Bits of block numbers in use.
    mask: u16,
    /// Number of the current block; before the first, one less than it.
    block: u16,
    progress: Progress,
    received: Bitmap,
    /// Proof of `received`.
    proof: u16,
    /// Position of the block's last segment, once known.
    last: Option<u8>,
    /// Whether the last segment carries the FIN.
    fin: bool,
    /// Next position that the user is to have.
    next: u8,
    held: [Option<P>; POSITIONS as usize],
    held_bytes: u64,
    /// In order, not yet read.
    pub(super) ready: VecDeque<P>,
    ready_bytes: u64,
    /// Segments for one ACK in the [`AckEvery::Window`] policy: the peer's cwndmax.
    pub(super) peer_cwnd_max: u8,
    /// Segments not yet acknowledged.
    pending: u8,
    /// AckTxSeqNumber of the next ACK.
    echo: u8,
    /// Window in the latest ACK.
    announced: u64,
}

/// Whether there is a current block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Progress {
    BeforeFirst,
    InBlock,
}

/// What a data segment brings about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Taken {
    pub(super) reply: Reply,
    pub(super) what: What,
}

/// When to acknowledge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reply {
    None,
    Now,
    /// With others, or when the timer says so.
    Delayed,
}

/// What a data segment held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum What {
    /// News; `bytes` of it or of earlier segments are now in order.
    New {
        in_order: u64,
        overtook: bool,
    },
    /// Nothing new.
    Duplicate,
    /// A question of the peer.
    Question,
    Dropped(DropReason),
}

impl<P: Payload> Receiver<P> {
    pub(super) fn new(config: &Config, longest: u16) -> Self {
        let mask = config.block_numbers.mask();
        Self {
            config: config.ack,
            mss: longest,
            buffer: u64::from(config.receive_buffer),
            mask,
            block: mask,
            progress: Progress::BeforeFirst,
            received: Bitmap::EMPTY,
            proof: 0,
            last: None,
            fin: false,
            next: 0,
            held: Default::default(),
            held_bytes: 0,
            ready: VecDeque::new(),
            ready_bytes: 0,
            peer_cwnd_max: config.cwnd_max,
            pending: 0,
            echo: 0,
            announced: 0,
        }
    }

    /// Takes a segment with a place in a block.
    pub(super) fn take(&mut self, segment: Segment<P>, place: Place) -> Taken {
        if segment.payload.is_empty() && segment.control != Control::Fin {
            return Taken { reply: Reply::Now, what: What::Question };
        }
        let distance = segment.block.wrapping_sub(self.block) & self.mask;
        match distance {
            0 if self.progress == Progress::InBlock => self.take_of_block(segment, place),
            1 if self.is_finished() => drop_for(DropReason::AfterClose),
            1 if self.is_complete() => {
                self.begin(segment.block);
                self.take_of_block(segment, place)
            }
            // B7: of a block that is over.
            d if d > self.mask / 2 || d == 0 => Taken { reply: Reply::Now, what: What::Duplicate },
            _ => drop_for(DropReason::OutsideBlock),
        }
    }

    fn take_of_block(&mut self, segment: Segment<P>, place: Place) -> Taken {
        let Place { position, last } = place;
        if segment.payload.len() > u64::from(self.mss) {
            return drop_for(DropReason::TooLong);
        }
        if self.contradicts(place) {
            return drop_for(DropReason::Inconsistent);
        }
        if self.received.contains(position) {
            self.echo = segment.tx;
            return Taken { reply: Reply::Now, what: What::Duplicate };
        }
        let len = segment.payload.len();
        if len > self.room() {
            return Taken { reply: Reply::Now, what: What::Dropped(DropReason::NoRoom) };
        }
        self.note_echo(segment.tx);
        if last {
            (self.last, self.fin) = (Some(position), segment.control == Control::Fin);
        }
        let overtook = position > self.next;
        self.received.insert(position);
        self.proof ^= segment.receipt.nonce;
        self.held[usize::from(position)] = Some(segment.payload);
        self.held_bytes += len;
        let in_order = self.release();
        self.pending = self.pending.saturating_add(1);
        Taken { reply: self.reply_to(segment.tx_stat), what: What::New { in_order, overtook } }
    }

    /// B8.
    fn note_echo(&mut self, tx: u8) {
        if self.config.echo == Echo::Last || self.pending == 0 {
            self.echo = tx;
        }
    }

    /// Two ends of a block, or something after its end.
    fn contradicts(&self, place: Place) -> bool {
        match self.last {
            Some(end) => place.position > end || place.last != (place.position == end),
            None => place.last && !self.received.without(Bitmap::first(place.position)).is_empty(),
        }
    }

    /// TPA §3.6, and B6.
    fn reply_to(&self, sender: TxStat) -> Reply {
        let complete = self.is_complete();
        let at_once = sender == TxStat::Congested
            || self.pending >= self.segments_per_ack()
            || (complete && self.config.complete_block == CompleteBlock::AckAtOnce)
            || (complete && self.fin);
        if at_once { Reply::Now } else { Reply::Delayed }
    }

    fn segments_per_ack(&self) -> u8 {
        match self.config.every {
            AckEvery::Other => 2,
            AckEvery::Window => self.peer_cwnd_max.max(1),
        }
    }

    /// Moves what is in order to the user. Returns its bytes.
    fn release(&mut self) -> u64 {
        let mut released = 0;
        while self.received.contains(self.next) {
            if let Some(payload) = self.held[usize::from(self.next)].take().filter(|p| !p.is_empty()) {
                released += payload.len();
                self.ready.push_back(payload);
            }
            self.next += 1;
        }
        self.held_bytes -= released;
        self.ready_bytes += released;
        released
    }

    fn begin(&mut self, block: u16) {
        (self.block, self.progress) = (block & self.mask, Progress::InBlock);
        (self.received, self.proof, self.last, self.next) = (Bitmap::EMPTY, 0, None, 0);
    }

    /// Whether the whole block is here; so it is before the first.
    fn is_complete(&self) -> bool {
        match self.last {
            Some(last) => self.received == Bitmap::first(last + 1),
            None => self.progress == Progress::BeforeFirst,
        }
    }

    /// Whether all data up to the FIN are in order.
    pub(super) fn is_finished(&self) -> bool {
        self.fin && self.last.is_some_and(|last| self.next > last)
    }

    /// Whether `block` is one that a reset of the peer may name: that of its latest data, or the next.
    pub(super) fn is_current(&self, block: u16) -> bool {
        block.wrapping_sub(self.block) & self.mask <= 1
    }

    /// The next piece for the user.
    pub(super) fn read(&mut self) -> Option<P> {
        let piece = self.ready.pop_front()?;
        self.ready_bytes -= piece.len();
        Some(piece)
    }

    /// Whether the window has grown so much that the peer should know (RFC 9293 §3.8.6.2.2 in spirit).
    pub(super) fn has_news_of_window(&self) -> bool {
        let step = (2 * u64::from(self.mss)).min(self.buffer / 2).max(1);
        self.announced < u64::from(self.mss) * 2 && self.window() >= self.announced + step
    }

    /// The acknowledgment to send now; the segments it answers are no longer pending.
    pub(super) fn acknowledge(&mut self) -> Ack {
        self.pending = 0;
        Ack { block: self.block, bitmap: self.received, tx: self.echo }
    }

    /// What proves the acknowledgment to send now.
    pub(super) fn proof(&self) -> u16 {
        self.proof
    }

    /// WinSize to send now.
    pub(super) fn announce(&mut self) -> u16 {
        self.announced = self.window();
        self.announced as u16
    }

    fn window(&self) -> u64 {
        self.room().min(MOST_WINDOW)
    }

    fn room(&self) -> u64 {
        self.buffer.saturating_sub(self.ready_bytes + self.held_bytes)
    }

    /// Bytes held for the user, in order or not.
    pub(super) fn unread(&self) -> u64 {
        self.ready_bytes + self.held_bytes
    }

    /// Whether something was received that is not acknowledged.
    pub(super) fn has_pending(&self) -> bool {
        self.pending > 0
    }

    /// Forgets what cannot become readable any more.
    pub(super) fn forget_unordered(&mut self) {
        self.held = Default::default();
        self.held_bytes = 0;
    }
}

fn drop_for(reason: DropReason) -> Taken {
    Taken { reply: Reply::None, what: What::Dropped(reason) }
}
