//! The recipient of block acknowledgment: scoreboard and reordering buffer of each sender (802.11-2020 §10.25.6.3,
//! §10.25.6.6).

use super::{Event, SEQUENCES, WINDOW, sequence_after, sequence_distance};
use hopline_core::{Instant, Seq16};
use hopline_wire::dot11::{Bitmap, MacAddr};
use std::collections::VecDeque;

/// Most senders with an agreement; a new one replaces the oldest.
const CAPACITY: usize = 64;

/// Agreements in the order in which they began, and the response to the last request.
#[derive(Clone, Debug)]
pub(super) struct Recipient<M> {
    agreements: Vec<Agreement<M>>,
    response: (Seq16, Bitmap),
}

/// A data frame as received.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReceivedFrame<M> {
    pub(super) from: MacAddr,
    pub(super) to: MacAddr,
    pub(super) sequence: Seq16,
    pub(super) body: M,
}

/// Result of receiving a data frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReceiveResult {
    /// Delivered, or held until earlier MSDUs have arrived.
    Accepted,
    /// Dropped: received before, or behind the window.
    Duplicate,
}

#[derive(Clone, Debug)]
struct Agreement<M> {
    from: MacAddr,
    /// Time at which the sender was last heard.
    last_heard: Instant,
    scoreboard: Scoreboard,
    /// The MSDU to be delivered next (WinStart_B).
    win_start: Seq16,
    /// MSDUs from `next` on, each at its sequence number modulo the window.
    reorder_buffer: Box<[Option<M>]>,
}

/// Record of received MSDUs, for the BlockAck. It keeps delivered MSDUs in case the BlockAck gets lost.
#[derive(Clone, Copy, Debug)]
struct Scoreboard {
    /// Sequence number of bit 0 (WinStart_R).
    win_start: Seq16,
    bits: u64,
}

impl<M> Default for Recipient<M> {
    fn default() -> Self {
        Self { agreements: Vec::new(), response: (Seq16(0), Bitmap::default()) }
    }
}

impl<M: Copy> Recipient<M> {
    /// Number of MSDUs that wait for earlier ones.
    pub(super) fn reorder_buffer_len(&self) -> usize {
        self.agreements.iter().map(|agreement| agreement.reorder_buffer.iter().flatten().count()).sum()
    }

    /// Handles a data frame. Until a request has defined the start of a new agreement, the recipient waits for all MSDUs
    /// that may precede the first frame.
    pub(super) fn handle_frame(
        &mut self,
        now: Instant,
        parcel: ReceivedFrame<M>,
        events: &mut VecDeque<Event<M>>,
    ) -> ReceiveResult {
        let ReceivedFrame { from, to, sequence, body } = parcel;
        let sequence = sequence_after(sequence, 0);
        let start = sequence_after(sequence, SEQUENCES - WINDOW + 1);
        let agreement = self.agreement(now, from, start, events);
        agreement.scoreboard.record(sequence);
        if sequence_distance(sequence, agreement.win_start) >= SEQUENCES / 2 {
            return ReceiveResult::Duplicate;
        }
        if sequence_distance(sequence, agreement.win_start) >= WINDOW {
            agreement.advance(start, events);
        }
        let slot = &mut agreement.reorder_buffer[usize::from(sequence.0 % WINDOW)];
        if slot.is_some() {
            return ReceiveResult::Duplicate;
        }
        if sequence == agreement.win_start {
            agreement.win_start = sequence_after(sequence, 1);
            events.push_back(Event::Deliver { body, from, to });
            agreement.release_run(events);
        } else {
            *slot = Some(body);
            events.push_back(Event::Buffered { body });
        }
        ReceiveResult::Accepted
    }

    /// Handles a BlockAckReq: no MSDU before `start` will arrive any more.
    pub(super) fn handle_request(
        &mut self,
        now: Instant,
        from: MacAddr,
        start: Seq16,
        events: &mut VecDeque<Event<M>>,
    ) {
        let start = sequence_after(start, 0);
        let agreement = self.agreement(now, from, start, events);
        agreement.scoreboard.advance(start);
        if sequence_distance(start, agreement.win_start) < SEQUENCES / 2 {
            agreement.advance(start, events);
        }
        self.response = (start, Bitmap::from_bits(agreement.scoreboard.bits_from(start)));
    }

    /// Returns the starting sequence number and the bitmap of the response to the last request.
    pub(super) const fn response(&self) -> (Seq16, Bitmap) {
        self.response
    }

    /// Begins an agreement with `from` at `start`. Ends an existing one, and delivers its held MSDUs.
    pub(super) fn begin_agreement(
        &mut self,
        now: Instant,
        from: MacAddr,
        start: Seq16,
        events: &mut VecDeque<Event<M>>,
    ) {
        self.end_agreement(from, events);
        self.agreement(now, from, sequence_after(start, 0), events);
    }

    /// Ends the agreement with `from`, and delivers its held MSDUs. Returns whether there was one.
    pub(super) fn end_agreement(&mut self, from: MacAddr, events: &mut VecDeque<Event<M>>) -> bool {
        let Some(index) = self.agreements.iter().position(|a| a.from == from) else { return false };
        self.agreements.remove(index).release_all(events);
        true
    }

    /// Returns whether there is an agreement with `from`.
    pub(super) fn has_agreement(&self, from: MacAddr) -> bool {
        self.agreements.iter().any(|a| a.from == from)
    }

    /// Delivers the held MSDUs of `from` in spite of gaps.
    pub(super) fn release(&mut self, from: MacAddr, events: &mut VecDeque<Event<M>>) {
        if let Some(agreement) = self.agreements.iter_mut().find(|a| a.from == from) {
            agreement.release_held(events);
        }
    }

    /// Drops agreements for which `is_over` holds for the time last heard, and delivers their held MSDUs. Returns the
    /// senders.
    pub(super) fn expire(
        &mut self,
        is_over: impl Fn(Instant) -> bool,
        events: &mut VecDeque<Event<M>>,
    ) -> Vec<MacAddr> {
        let mut dropped = Vec::new();
        self.agreements.retain_mut(|agreement| {
            let stays = !is_over(agreement.last_heard);
            if !stays {
                agreement.release_all(events);
                dropped.push(agreement.from);
            }
            stays
        });
        dropped
    }

    /// Returns the time at which the longest-silent sender was last heard.
    pub(super) fn earliest_heard(&self) -> Option<Instant> {
        self.agreements.iter().map(|agreement| agreement.last_heard).min()
    }

    /// Returns the agreement with `from`, and records that it was heard now; a new one begins at `start`.
    fn agreement(
        &mut self,
        now: Instant,
        from: MacAddr,
        start: Seq16,
        events: &mut VecDeque<Event<M>>,
    ) -> &mut Agreement<M> {
        let known = self.agreements.iter().position(|a| a.from == from);
        let index = known.unwrap_or_else(|| {
            if self.agreements.len() == CAPACITY {
                let mut oldest = self.agreements.remove(0);
                oldest.release_all(events);
            }
            let held = vec![None; usize::from(WINDOW)].into_boxed_slice();
            let scoreboard = Scoreboard { win_start: start, bits: 0 };
            self.agreements.push(Agreement {
                from,
                last_heard: now,
                scoreboard,
                win_start: start,
                reorder_buffer: held,
            });
            self.agreements.len() - 1
        });
        let agreement = &mut self.agreements[index];
        agreement.last_heard = now;
        agreement
    }
}

impl<M: Copy> Agreement<M> {
    /// Delivers all held MSDUs in spite of gaps.
    fn release_all(&mut self, events: &mut VecDeque<Event<M>>) {
        self.advance(sequence_after(self.win_start, WINDOW), events);
    }

    /// Delivers all held MSDUs, and moves the window behind them.
    fn release_held(&mut self, events: &mut VecDeque<Event<M>>) {
        let held = |n: &u16| {
            self.reorder_buffer[usize::from(sequence_after(self.win_start, *n).0 % WINDOW)].is_some()
        };
        if let Some(last) = (0..WINDOW).rev().find(held) {
            self.advance(sequence_after(self.win_start, last + 1), events);
        }
    }

    /// Moves the window to `start`: held MSDUs before that are delivered, and missing ones are abandoned.
    fn advance(&mut self, start: Seq16, events: &mut VecDeque<Event<M>>) {
        for n in 0..sequence_distance(start, self.win_start).min(WINDOW) {
            self.release(sequence_after(self.win_start, n), events);
        }
        self.win_start = start;
        self.release_run(events);
    }

    /// Delivers successive MSDUs up to the next gap.
    fn release_run(&mut self, events: &mut VecDeque<Event<M>>) {
        while self.reorder_buffer[usize::from(self.win_start.0 % WINDOW)].is_some() {
            self.release(self.win_start, events);
            self.win_start = sequence_after(self.win_start, 1);
        }
    }

    fn release(&mut self, sequence: Seq16, events: &mut VecDeque<Event<M>>) {
        if let Some(body) = self.reorder_buffer[usize::from(sequence.0 % WINDOW)].take() {
            events.push_back(Event::DeliverBuffered { body, from: self.from });
        }
    }
}

impl Scoreboard {
    fn record(&mut self, sequence: Seq16) {
        let offset = sequence_distance(sequence, self.win_start);
        if offset >= SEQUENCES / 2 {
            return;
        }
        if offset >= WINDOW {
            self.advance(sequence_after(sequence, SEQUENCES - WINDOW + 1));
        }
        self.bits |= 1 << sequence_distance(sequence, self.win_start);
    }

    /// Discards bits before `start`, unless the scoreboard starts there already or the number is old.
    fn advance(&mut self, start: Seq16) {
        let by = sequence_distance(start, self.win_start);
        if by < SEQUENCES / 2 {
            self.bits = self.bits.checked_shr(u32::from(by)).unwrap_or(0);
            self.win_start = start;
        }
    }

    /// Returns the bits from `start` on; discarded ones are zero.
    fn bits_from(&self, start: Seq16) -> u64 {
        self.bits.checked_shl(u32::from(sequence_distance(self.win_start, start))).unwrap_or(0)
    }
}
