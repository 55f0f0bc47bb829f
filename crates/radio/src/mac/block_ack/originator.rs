//! Originator of block acknowledgment: MSDUs that are due, outstanding and acknowledged (802.11-2020 §10.25.6.7).

use super::setup::RequestState;
use super::{Event, Msdu, SEQUENCES, WINDOW, sequence_after, sequence_distance};
use hopline_core::{Instant, Seq16};
use hopline_wire::dot11::MacAddr;
use std::collections::VecDeque;

/// MSDUs for one receiver, oldest first, and one that waits for another receiver.
#[derive(Clone, Debug)]
pub(super) struct Originator<M> {
    block_size: usize,
    recipient: MacAddr,
    pending: VecDeque<PendingMsdu<M>>,
    /// MSDU for another receiver, with the time at which it was added.
    parked: Option<(Msdu<M>, Instant)>,
    /// The next sequence number for each receiver (802.11-2020 §10.3.2.14.2).
    next_sequences: Vec<(MacAddr, Seq16)>,
    /// Successive frames without the required response.
    missing_responses: u8,
    gap: SequenceGap,
}

/// Gap in the sequence numbers: the receiver may hold MSDUs back for one that will not be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SequenceGap {
    None,
    /// A gap of which a BlockAckReq must inform the receiver.
    Unreported,
}

/// Pending MSDU of the sender.
#[derive(Clone, Copy, Debug)]
pub(super) struct PendingMsdu<M> {
    pub(super) msdu: Msdu<M>,
    pub(super) sequence: Seq16,
    /// Time at which the MSDU was added.
    added_at: Instant,
    /// Number of BlockAcks that did not acknowledge it.
    failures: u8,
    state: PendingState,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PendingState {
    /// Waits for a later burst.
    Waiting,
    /// In the current burst, and not sent yet.
    Planned,
    /// Sent; the BlockAck is outstanding.
    Sent,
}

impl<M: Copy> PendingMsdu<M> {
    /// Returns whether it has been sent before.
    pub(super) const fn is_retry(&self) -> bool {
        self.failures > 0
    }
}

impl<M: Copy> Originator<M> {
    /// Creates a sender of blocks of up to `block_size` MSDUs.
    pub(super) fn new(block_size: u8) -> Self {
        Self {
            block_size: usize::from(block_size),
            recipient: MacAddr::default(),
            pending: VecDeque::new(),
            parked: None,
            next_sequences: Vec::new(),
            missing_responses: 0,
            gap: SequenceGap::None,
        }
    }

    /// The MSDUs that it holds.
    pub(super) fn pending_msdus(&self) -> impl Iterator<Item = &Msdu<M>> {
        self.pending.iter().map(|pending| &pending.msdu).chain(self.parked.as_ref().map(|(msdu, _)| msdu))
    }

    /// The receiver of the block.
    pub(super) const fn recipient(&self) -> MacAddr {
        self.recipient
    }

    pub(super) fn has_room(&self) -> bool {
        self.parked.is_none() && self.pending.len() < self.block_size
    }

    /// Begins a block with its first MSDU.
    pub(super) fn start_block(&mut self, since: Instant, msdu: Msdu<M>) {
        self.recipient = msdu.to;
        self.missing_responses = 0;
        self.push(since, msdu);
    }

    /// Adds an MSDU to the block, or parks it if it is for another receiver.
    pub(super) fn add(&mut self, now: Instant, msdu: Msdu<M>) {
        if msdu.to == self.recipient { self.push(now, msdu) } else { self.parked = Some((msdu, now)) }
    }

    pub(super) fn take_parked(&mut self) -> Option<(Msdu<M>, Instant)> {
        self.parked.take()
    }

    /// Returns whether there are MSDUs to send, or a gap to report.
    pub(super) fn has_work(&self) -> bool {
        !self.pending.is_empty() || self.gap == SequenceGap::Unreported
    }

    /// Returns whether a BlockAckReq is due in place of data: after an unanswered block, or to report a gap.
    pub(super) fn is_request_due(&self) -> bool {
        self.pending.is_empty() || self.pending.iter().any(|p| p.state == PendingState::Sent)
    }

    /// Returns whether the receiver owes a BlockAck or must be informed of a gap.
    pub(super) fn request_state(&self) -> RequestState {
        let is_open =
            self.gap == SequenceGap::Unreported || self.pending.iter().any(|p| p.state == PendingState::Sent);
        if is_open { RequestState::Due } else { RequestState::NotDue }
    }

    /// Ends the agreement: MSDUs that were sent are due again, and the receiver waits for none.
    pub(super) fn on_agreement_end(&mut self) {
        self.gap = SequenceGap::None;
        self.missing_responses = 0;
        for sent in self.pending.iter_mut().filter(|p| p.state == PendingState::Sent) {
            sent.failures = sent.failures.saturating_add(1);
            sent.state = PendingState::Waiting;
        }
    }

    /// Removes the oldest MSDU from the block, to be sent by other means. The next MSDU gets its sequence number.
    pub(super) fn take_oldest(&mut self) -> Option<(Msdu<M>, Instant)> {
        let oldest = self.pending.pop_front()?;
        let next =
            self.next_sequences.iter_mut().filter(|(to, _)| *to == self.recipient).map(|(_, next)| next);
        for number in self.pending.iter_mut().map(|p| &mut p.sequence).chain(next) {
            *number = sequence_after(*number, SEQUENCES - 1);
        }
        Some((oldest.msdu, oldest.added_at))
    }

    /// Chooses the MSDUs of the next burst, oldest first, while `fits` holds and the receiver's window allows; the oldest in
    /// any case.
    pub(super) fn plan(&mut self, window: u16, mut fits: impl FnMut(&Msdu<M>) -> bool) {
        let start = self.window_start();
        let mut open = true;
        for (i, p) in self.pending.iter_mut().enumerate() {
            open = open && sequence_distance(p.sequence, start) < window && (fits(&p.msdu) || i == 0);
            p.state = if open { PendingState::Planned } else { PendingState::Waiting };
        }
    }

    /// Returns the MSDUs of the current burst that have not been sent.
    pub(super) fn planned(&self) -> impl Iterator<Item = &Msdu<M>> {
        self.pending.iter().filter(|p| p.state == PendingState::Planned).map(|p| &p.msdu)
    }

    /// Returns the next MSDU of the burst, which now counts as sent.
    pub(super) fn next_planned(&mut self) -> Option<PendingMsdu<M>> {
        let next = self.pending.iter_mut().find(|p| p.state == PendingState::Planned)?;
        next.state = PendingState::Sent;
        Some(*next)
    }

    /// Returns the start of the receiver's window: the oldest MSDU that is not acknowledged.
    pub(super) fn window_start(&self) -> Seq16 {
        self.pending.front().map_or_else(|| self.next_sequence(), |p| p.sequence)
    }

    /// Records a CTS.
    pub(super) fn record_response(&mut self) {
        self.missing_responses = 0;
    }

    /// Records a missing CTS or BlockAck. Returns how many were missing in a row.
    pub(super) fn record_missing_response(&mut self) -> u8 {
        self.missing_responses = self.missing_responses.saturating_add(1);
        self.missing_responses
    }

    /// Handles a BlockAck. MSDUs that it does not acknowledge are due again, up to `limit` times. Returns the number given
    /// up.
    pub(super) fn handle_block_ack(
        &mut self,
        start: Seq16,
        bits: u64,
        limit: impl Fn(&Msdu<M>) -> u8,
        events: &mut VecDeque<Event<M>>,
    ) -> u64 {
        self.missing_responses = 0;
        let mut given_up = 0;
        self.pending.retain_mut(|p| {
            if p.state != PendingState::Sent {
                return true;
            }
            let offset = sequence_distance(p.sequence, start);
            if offset < WINDOW && bits >> offset & 1 == 1 {
                events.push_back(Event::Sent(p.msdu));
                return false;
            }
            p.failures += 1;
            p.state = PendingState::Waiting;
            if p.failures < limit(&p.msdu) {
                return true;
            }
            given_up += 1;
            events.push_back(Event::Failed(p.msdu));
            false
        });
        self.gap = if given_up > 0 { SequenceGap::Unreported } else { SequenceGap::None };
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
            let kept = !is_over(p.added_at);
            if !kept {
                events.push_back(Event::Failed(p.msdu));
            }
            kept
        });
        let expired = (before - self.pending.len()) as u64;
        if expired > 0 {
            self.gap = SequenceGap::Unreported;
        }
        expired
    }

    /// Handles a failed link: gives up the outstanding MSDUs. Returns their number.
    pub(super) fn give_up(&mut self, events: &mut VecDeque<Event<M>>) -> u64 {
        self.missing_responses = 0;
        self.gap = SequenceGap::None;
        let before = self.pending.len();
        self.pending.retain(|p| {
            let kept = p.state == PendingState::Waiting;
            if !kept {
                events.push_back(Event::Failed(p.msdu));
            }
            kept
        });
        (before - self.pending.len()) as u64
    }

    fn push(&mut self, since: Instant, msdu: Msdu<M>) {
        let sequence = self.next_sequence();
        self.pending.push_back(PendingMsdu {
            msdu,
            sequence,
            added_at: since,
            failures: 0,
            state: PendingState::Waiting,
        });
        let after = sequence_after(sequence, 1);
        match self.next_sequences.iter_mut().find(|(to, _)| *to == msdu.to) {
            Some((_, next)) => *next = after,
            None => self.next_sequences.push((msdu.to, after)),
        }
    }

    fn next_sequence(&self) -> Seq16 {
        self.next_sequences.iter().find(|(to, _)| *to == self.recipient).map_or(Seq16(0), |&(_, next)| next)
    }
}
