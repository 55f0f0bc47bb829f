//! The recipient of block acknowledgment: scoreboard and reordering buffer of each sender (802.11-2020 §10.25.6.3,
//! §10.25.6.6).

use super::{Event, SEQUENCES, WINDOW, ahead, forward};
use hopline_core::{Instant, Seq16};
use hopline_wire::dot11::{Bitmap, MacAddr};
use std::collections::VecDeque;

/// Most senders with an agreement; a new one replaces the oldest.
const CAPACITY: usize = 64;

/// Agreements in the order in which they began, and the response to the last request.
#[derive(Clone, Debug)]
pub(super) struct Receiver<M> {
    agreements: Vec<Agreement<M>>,
    reply: (Seq16, Bitmap),
}

/// A data frame as received.
#[derive(Clone, Copy, Debug)]
pub(super) struct Parcel<M> {
    pub(super) from: MacAddr,
    pub(super) to: MacAddr,
    pub(super) sequence: Seq16,
    pub(super) body: M,
}

/// Result of receiving a data frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Taken {
    /// Delivered, or held until earlier MSDUs have arrived.
    New,
    /// Dropped: received before, or behind the window.
    Duplicate,
}

#[derive(Clone, Debug)]
struct Agreement<M> {
    from: MacAddr,
    /// Time at which the sender was last heard.
    heard: Instant,
    scoreboard: Scoreboard,
    /// The MSDU to be delivered next (WinStart_B).
    next: Seq16,
    /// MSDUs from `next` on, each at its sequence number modulo the window.
    held: Box<[Option<M>]>,
}

/// Record of received MSDUs, for the BlockAck. It keeps delivered MSDUs in case the BlockAck gets lost.
#[derive(Clone, Copy, Debug)]
struct Scoreboard {
    /// Sequence number of bit 0 (WinStart_R).
    start: Seq16,
    bits: u64,
}

impl<M> Default for Receiver<M> {
    fn default() -> Self {
        Self { agreements: Vec::new(), reply: (Seq16(0), Bitmap::default()) }
    }
}

impl<M: Copy> Receiver<M> {
    /// Number of MSDUs that wait for earlier ones.
    pub(super) fn held(&self) -> usize {
        self.agreements.iter().map(|agreement| agreement.held.iter().flatten().count()).sum()
    }

    /// Handles a data frame. Until a request has defined the start of a new agreement, the recipient waits for all MSDUs
    /// that may precede the first frame.
    pub(super) fn take(&mut self, now: Instant, parcel: Parcel<M>, events: &mut VecDeque<Event<M>>) -> Taken {
        let Parcel { from, to, sequence, body } = parcel;
        let sequence = forward(sequence, 0);
        let start = forward(sequence, SEQUENCES - WINDOW + 1);
        let agreement = self.agreement(now, from, start, events);
        agreement.scoreboard.record(sequence);
        if ahead(sequence, agreement.next) >= SEQUENCES / 2 {
            return Taken::Duplicate;
        }
        if ahead(sequence, agreement.next) >= WINDOW {
            agreement.advance(start, events);
        }
        let slot = &mut agreement.held[usize::from(sequence.0 % WINDOW)];
        if slot.is_some() {
            return Taken::Duplicate;
        }
        if sequence == agreement.next {
            agreement.next = forward(sequence, 1);
            events.push_back(Event::Deliver { body, from, to });
            agreement.release_run(events);
        } else {
            *slot = Some(body);
            events.push_back(Event::Held { body });
        }
        Taken::New
    }

    /// Handles a BlockAckReq: no MSDU before `start` will arrive any more.
    pub(super) fn request(
        &mut self,
        now: Instant,
        from: MacAddr,
        start: Seq16,
        events: &mut VecDeque<Event<M>>,
    ) {
        let start = forward(start, 0);
        let agreement = self.agreement(now, from, start, events);
        agreement.scoreboard.advance(start);
        if ahead(start, agreement.next) < SEQUENCES / 2 {
            agreement.advance(start, events);
        }
        self.reply = (start, Bitmap::from_bits(agreement.scoreboard.bits_from(start)));
    }

    /// Returns the starting sequence number and the bitmap of the response to the last request.
    pub(super) const fn reply(&self) -> (Seq16, Bitmap) {
        self.reply
    }

    /// Begins an agreement with `from` at `start`. Ends an existing one, and delivers its held MSDUs.
    pub(super) fn begin(
        &mut self,
        now: Instant,
        from: MacAddr,
        start: Seq16,
        events: &mut VecDeque<Event<M>>,
    ) {
        self.end(from, events);
        self.agreement(now, from, forward(start, 0), events);
    }

    /// Ends the agreement with `from`, and delivers its held MSDUs. Returns whether there was one.
    pub(super) fn end(&mut self, from: MacAddr, events: &mut VecDeque<Event<M>>) -> bool {
        let Some(index) = self.agreements.iter().position(|a| a.from == from) else { return false };
        self.agreements.remove(index).release_all(events);
        true
    }

    /// Returns whether there is an agreement with `from`.
    pub(super) fn knows(&self, from: MacAddr) -> bool {
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
    pub(super) fn drop_inactive(
        &mut self,
        is_over: impl Fn(Instant) -> bool,
        events: &mut VecDeque<Event<M>>,
    ) -> Vec<MacAddr> {
        let mut dropped = Vec::new();
        self.agreements.retain_mut(|agreement| {
            let stays = !is_over(agreement.heard);
            if !stays {
                agreement.release_all(events);
                dropped.push(agreement.from);
            }
            stays
        });
        dropped
    }

    /// Returns the time at which the longest-silent sender was last heard.
    pub(super) fn longest_silent(&self) -> Option<Instant> {
        self.agreements.iter().map(|agreement| agreement.heard).min()
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
            let scoreboard = Scoreboard { start, bits: 0 };
            self.agreements.push(Agreement { from, heard: now, scoreboard, next: start, held });
            self.agreements.len() - 1
        });
        let agreement = &mut self.agreements[index];
        agreement.heard = now;
        agreement
    }
}

impl<M: Copy> Agreement<M> {
    /// Delivers all held MSDUs in spite of gaps.
    fn release_all(&mut self, events: &mut VecDeque<Event<M>>) {
        self.advance(forward(self.next, WINDOW), events);
    }

    /// Delivers all held MSDUs, and moves the window behind them.
    fn release_held(&mut self, events: &mut VecDeque<Event<M>>) {
        let held = |n: &u16| self.held[usize::from(forward(self.next, *n).0 % WINDOW)].is_some();
        if let Some(last) = (0..WINDOW).rev().find(held) {
            self.advance(forward(self.next, last + 1), events);
        }
    }

    /// Moves the window to `start`: held MSDUs before that are delivered, and missing ones are abandoned.
    fn advance(&mut self, start: Seq16, events: &mut VecDeque<Event<M>>) {
        for n in 0..ahead(start, self.next).min(WINDOW) {
            self.release(forward(self.next, n), events);
        }
        self.next = start;
        self.release_run(events);
    }

    /// Delivers successive MSDUs up to the next gap.
    fn release_run(&mut self, events: &mut VecDeque<Event<M>>) {
        while self.held[usize::from(self.next.0 % WINDOW)].is_some() {
            self.release(self.next, events);
            self.next = forward(self.next, 1);
        }
    }

    fn release(&mut self, sequence: Seq16, events: &mut VecDeque<Event<M>>) {
        if let Some(body) = self.held[usize::from(sequence.0 % WINDOW)].take() {
            events.push_back(Event::DeliverHeld { body, from: self.from });
        }
    }
}

impl Scoreboard {
    fn record(&mut self, sequence: Seq16) {
        let offset = ahead(sequence, self.start);
        if offset >= SEQUENCES / 2 {
            return;
        }
        if offset >= WINDOW {
            self.advance(forward(sequence, SEQUENCES - WINDOW + 1));
        }
        self.bits |= 1 << ahead(sequence, self.start);
    }

    /// Discards bits before `start`, unless the scoreboard starts there already or the number is old.
    fn advance(&mut self, start: Seq16) {
        let by = ahead(start, self.start);
        if by < SEQUENCES / 2 {
            self.bits = self.bits.checked_shr(u32::from(by)).unwrap_or(0);
            self.start = start;
        }
    }

    /// Returns the bits from `start` on; discarded ones are zero.
    fn bits_from(&self, start: Seq16) -> u64 {
        self.bits.checked_shl(u32::from(ahead(self.start, start))).unwrap_or(0)
    }
}
