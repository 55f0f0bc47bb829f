//! Originator of block acknowledgment: MSDUs that are due, outstanding and acknowledged (802.11-2020 §10.25.6.7).

use super::setup::Account;
use super::{Event, Msdu, SEQUENCES, WINDOW, ahead, forward};
use hopline_core::{Instant, Seq16};
use hopline_wire::dot11::MacAddr;
use std::collections::VecDeque;

/// MSDUs for one receiver, oldest first, and one that waits for another receiver.
#[derive(Clone, Debug)]
pub(super) struct Sender<M> {
    block_size: usize,
    to: MacAddr,
    pending: VecDeque<Pending<M>>,
    /// MSDU for another receiver, with the time at which it was added.
    parked: Option<(Msdu<M>, Instant)>,
    /// The next sequence number for each receiver (802.11-2020 §10.3.2.14.2).
    next: Vec<(MacAddr, Seq16)>,
    /// Successive frames without the required response.
    silences: u8,
    gap: Gap,
}

/// Gap in the sequence numbers: the receiver may hold MSDUs back for one that will not be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Gap {
    None,
    /// A gap of which a BlockAckReq must inform the receiver.
    Untold,
}

/// Pending MSDU of the sender.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pending<M> {
    pub(super) msdu: Msdu<M>,
    pub(super) sequence: Seq16,
    /// Time at which the MSDU was added.
    since: Instant,
    /// Number of BlockAcks that did not acknowledge it.
    losses: u8,
    stage: Stage,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// Waits for a later burst.
    Waiting,
    /// In the current burst, and not sent yet.
    Planned,
    /// Sent; the BlockAck is outstanding.
    Sent,
}

impl<M: Copy> Pending<M> {
    /// Returns whether it has been sent before.
    pub(super) const fn is_retry(&self) -> bool {
        self.losses > 0
    }
}

impl<M: Copy> Sender<M> {
    /// Creates a sender of blocks of up to `block_size` MSDUs.
    pub(super) fn new(block_size: u8) -> Self {
        Self {
            block_size: usize::from(block_size),
            to: MacAddr::default(),
            pending: VecDeque::new(),
            parked: None,
            next: Vec::new(),
            silences: 0,
            gap: Gap::None,
        }
    }

    /// The MSDUs that it holds.
    pub(super) fn held(&self) -> impl Iterator<Item = &Msdu<M>> {
        self.pending.iter().map(|pending| &pending.msdu).chain(self.parked.as_ref().map(|(msdu, _)| msdu))
    }

    /// The receiver of the block.
    pub(super) const fn receiver(&self) -> MacAddr {
        self.to
    }

    pub(super) fn has_room(&self) -> bool {
        self.parked.is_none() && self.pending.len() < self.block_size
    }

    /// Begins a block with its first MSDU.
    pub(super) fn open(&mut self, since: Instant, msdu: Msdu<M>) {
        self.to = msdu.to;
        self.silences = 0;
        self.push(since, msdu);
    }

    /// Adds an MSDU to the block, or parks it if it is for another receiver.
    pub(super) fn add(&mut self, now: Instant, msdu: Msdu<M>) {
        if msdu.to == self.to { self.push(now, msdu) } else { self.parked = Some((msdu, now)) }
    }

    pub(super) fn take_parked(&mut self) -> Option<(Msdu<M>, Instant)> {
        self.parked.take()
    }

    /// Returns whether there are MSDUs to send, or a gap to report.
    pub(super) fn has_work(&self) -> bool {
        !self.pending.is_empty() || self.gap == Gap::Untold
    }

    /// Returns whether a BlockAckReq is due in place of data: after an unanswered block, or to report a gap.
    pub(super) fn is_request_due(&self) -> bool {
        self.pending.is_empty() || self.pending.iter().any(|p| p.stage == Stage::Sent)
    }

    /// Returns whether the receiver owes a BlockAck or must be informed of a gap.
    pub(super) fn account(&self) -> Account {
        let is_open = self.gap == Gap::Untold || self.pending.iter().any(|p| p.stage == Stage::Sent);
        if is_open { Account::Open } else { Account::Settled }
    }

    /// Ends the agreement: MSDUs that were sent are due again, and the receiver waits for none.
    pub(super) fn forget(&mut self) {
        self.gap = Gap::None;
        self.silences = 0;
        for sent in self.pending.iter_mut().filter(|p| p.stage == Stage::Sent) {
            sent.losses = sent.losses.saturating_add(1);
            sent.stage = Stage::Waiting;
        }
    }

    /// Removes the oldest MSDU from the block, to be sent by other means. The next MSDU gets its sequence number.
    pub(super) fn take_oldest(&mut self) -> Option<(Msdu<M>, Instant)> {
        let oldest = self.pending.pop_front()?;
        let next = self.next.iter_mut().filter(|(to, _)| *to == self.to).map(|(_, next)| next);
        for number in self.pending.iter_mut().map(|p| &mut p.sequence).chain(next) {
            *number = forward(*number, SEQUENCES - 1);
        }
        Some((oldest.msdu, oldest.since))
    }

    /// Chooses the MSDUs of the next burst, oldest first, while `fits` holds and the receiver's window allows; the oldest in
    /// any case.
    pub(super) fn plan(&mut self, window: u16, mut fits: impl FnMut(&Msdu<M>) -> bool) {
        let start = self.start();
        let mut open = true;
        for (i, p) in self.pending.iter_mut().enumerate() {
            open = open && ahead(p.sequence, start) < window && (fits(&p.msdu) || i == 0);
            p.stage = if open { Stage::Planned } else { Stage::Waiting };
        }
    }

    /// Returns the MSDUs of the current burst that have not been sent.
    pub(super) fn planned(&self) -> impl Iterator<Item = &Msdu<M>> {
        self.pending.iter().filter(|p| p.stage == Stage::Planned).map(|p| &p.msdu)
    }

    /// Returns the next MSDU of the burst, which now counts as sent.
    pub(super) fn next_planned(&mut self) -> Option<Pending<M>> {
        let next = self.pending.iter_mut().find(|p| p.stage == Stage::Planned)?;
        next.stage = Stage::Sent;
        Some(*next)
    }

    /// Returns the start of the receiver's window: the oldest MSDU that is not acknowledged.
    pub(super) fn start(&self) -> Seq16 {
        self.pending.front().map_or_else(|| self.next_sequence(), |p| p.sequence)
    }

    /// Records a CTS.
    pub(super) fn note_answer(&mut self) {
        self.silences = 0;
    }

    /// Records a missing CTS or BlockAck. Returns how many were missing in a row.
    pub(super) fn note_silence(&mut self) -> u8 {
        self.silences = self.silences.saturating_add(1);
        self.silences
    }

    /// Handles a BlockAck. MSDUs that it does not acknowledge are due again, up to `limit` times. Returns the number given
    /// up.
    pub(super) fn settle(
        &mut self,
        start: Seq16,
        bits: u64,
        limit: impl Fn(&Msdu<M>) -> u8,
        events: &mut VecDeque<Event<M>>,
    ) -> u64 {
        self.silences = 0;
        let mut given_up = 0;
        self.pending.retain_mut(|p| {
            if p.stage != Stage::Sent {
                return true;
            }
            let offset = ahead(p.sequence, start);
            if offset < WINDOW && bits >> offset & 1 == 1 {
                events.push_back(Event::Sent(p.msdu));
                return false;
            }
            p.losses += 1;
            p.stage = Stage::Waiting;
            if p.losses < limit(&p.msdu) {
                return true;
            }
            given_up += 1;
            events.push_back(Event::Failed(p.msdu));
            false
        });
        self.gap = if given_up > 0 { Gap::Untold } else { Gap::None };
        given_up
    }

    /// Gives up MSDUs for which `is_over` holds for the time of arrival. Returns their number.
    pub(super) fn expire(
        &mut self,
        is_over: impl Fn(Instant) -> bool,
        events: &mut VecDeque<Event<M>>,
    ) -> u64 {
        let before = self.pending.len();
        self.pending.retain(|p| {
            let kept = !is_over(p.since);
            if !kept {
                events.push_back(Event::Failed(p.msdu));
            }
            kept
        });
        let expired = (before - self.pending.len()) as u64;
        if expired > 0 {
            self.gap = Gap::Untold;
        }
        expired
    }

    /// Handles a failed link: gives up the outstanding MSDUs. Returns their number.
    pub(super) fn give_up(&mut self, events: &mut VecDeque<Event<M>>) -> u64 {
        self.silences = 0;
        self.gap = Gap::None;
        let before = self.pending.len();
        self.pending.retain(|p| {
            let kept = p.stage == Stage::Waiting;
            if !kept {
                events.push_back(Event::Failed(p.msdu));
            }
            kept
        });
        (before - self.pending.len()) as u64
    }

    fn push(&mut self, since: Instant, msdu: Msdu<M>) {
        let sequence = self.next_sequence();
        self.pending.push_back(Pending { msdu, sequence, since, losses: 0, stage: Stage::Waiting });
        let after = forward(sequence, 1);
        match self.next.iter_mut().find(|(to, _)| *to == msdu.to) {
            Some((_, next)) => *next = after,
            None => self.next.push((msdu.to, after)),
        }
    }

    fn next_sequence(&self) -> Seq16 {
        self.next.iter().find(|(to, _)| *to == self.to).map_or(Seq16(0), |&(_, next)| next)
    }
}
