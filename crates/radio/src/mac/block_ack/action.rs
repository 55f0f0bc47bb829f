//! Set-up and tear-down of block acknowledgment agreements in the MAC: action frames contend like data, take precedence over
//! them, and are acknowledged by an ACK.

use super::super::exchange::whole_us;
use super::super::{Mac, PendingResponse, Service, State, Transmission};
use super::setup::{NextStep, timeout_tu};
use super::{TID, WINDOW};
use core::fmt::Debug;
use hopline_core::{Instant, Seq16};
use hopline_wire::dot11::{
    BlockAckAction, BlockAckPolicy, BlockAckSide, Frame, MacAddr, REASON_TIMEOUT, REASON_UNKNOWN_BA,
    STATUS_REQUEST_DECLINED, STATUS_SUCCESS,
};

/// Content of an ADDBA Request.
struct AddbaRequest {
    dialog_token: u8,
    policy: BlockAckPolicy,
    tid: u8,
    buffer_size: u16,
    start: Seq16,
}

/// Content of an ADDBA Response.
struct AddbaResponse {
    dialog_token: u8,
    status: u16,
    policy: BlockAckPolicy,
    tid: u8,
    buffer_size: u16,
    timeout_tu: u16,
}

impl<M: Copy + Debug> Mac<M> {
    /// Returns whether an action frame waits for the medium.
    pub(in super::super) fn has_action_due(&self) -> bool {
        self.block_ack.as_ref().and_then(|b| b.setup.as_ref()).is_some_and(|setup| setup.has_action_frames())
    }

    /// Sends the next action frame. Never with RTS, as it is hardly longer than an RTS.
    pub(in super::super) fn send_action(&mut self, now: Instant) {
        let fresh = self.next_sequence;
        let Some(next) = self.block_ack.as_mut().and_then(|b| b.setup.as_mut()?.front()) else { return };
        let sequence = *next.sequence.get_or_insert(fresh);
        let (ra, action, retry) = (next.to, next.action, next.failures > 0);
        if !retry {
            self.next_sequence_number();
        }
        self.contention.finish();
        self.stats.actions_sent += 1;
        let (len_bytes, airtime) =
            (action.frame_len() as u32, self.config.control_airtime(action.frame_len()));
        let duration_us = whole_us(self.config.sifs + self.times.ack);
        let frame = Frame::Action { duration_us, ra, ta: self.address, sequence, retry, action };
        let transmission = Transmission { frame, rate: self.config.basic_rate, len_bytes, airtime };
        self.start_transmission(now, State::SendAction, transmission);
    }

    /// Handles the ACK of the action frame.
    pub(in super::super) fn finish_action(&mut self, now: Instant) {
        if let Some(setup) = self.block_ack.as_mut().and_then(|b| b.setup.as_mut()) {
            setup.finish_front(now);
        }
        self.finish_msdu(now);
    }

    /// Handles a missing ACK of the action frame.
    pub(in super::super) fn fail_action(&mut self, now: Instant) {
        self.stats.ack_timeouts += 1;
        let Some(next) = self.block_ack.as_mut().and_then(|b| b.setup.as_mut()?.front()) else { return };
        next.failures += 1;
        if next.failures >= self.config.short_retry_limit {
            self.stats.actions_failed += 1;
            return self.finish_action(now);
        }
        self.contention.double_window();
        self.contention.draw_backoff();
        self.leave_exchange(now);
    }

    /// Handles an action frame for this station. It is acknowledged, whatever its content.
    pub(in super::super) fn receive_action(&mut self, now: Instant, frame: Frame<M>) {
        let Frame::Action { ta, sequence, retry, action, .. } = frame else { return };
        if !matches!(self.state, State::Idle | State::AwaitData) {
            return;
        }
        self.response = Some(PendingResponse { to: ta, duration_us: 0 });
        self.wait_sifs(now, State::BeforeAck);
        let Some(setup) = self.block_ack.as_mut().and_then(|b| b.setup.as_mut()) else {
            self.stats.actions_ignored += 1;
            return;
        };
        if setup.duplicates.is_duplicate(ta, sequence, retry) {
            self.stats.duplicates += 1;
            return;
        }
        match action {
            BlockAckAction::AddbaRequest { dialog_token, policy: kind, tid, buffer_size, start, .. } => {
                self.handle_addba_request(
                    now,
                    ta,
                    &AddbaRequest { dialog_token, policy: kind, tid, buffer_size, start },
                );
            }
            BlockAckAction::AddbaResponse {
                dialog_token,
                status,
                policy: kind,
                tid,
                buffer_size,
                timeout_tu,
            } => {
                let verdict =
                    AddbaResponse { dialog_token, status, policy: kind, tid, buffer_size, timeout_tu };
                self.handle_addba_response(now, ta, &verdict);
            }
            BlockAckAction::Delba { side, tid, .. } => self.end_agreement(ta, side, tid),
        }
    }

    /// Returns the next step for the block's receiver.
    pub(super) fn next_step(&mut self, now: Instant) -> NextStep {
        let Some(block) = &mut self.block_ack else { return NextStep::Burst };
        let (to, account) = (block.originator.recipient(), block.originator.request_state());
        block.setup.as_mut().map_or(NextStep::Burst, |setup| setup.next_step(now, to, account))
    }

    /// Requests an agreement from the block's receiver.
    pub(super) fn request_agreement(&mut self, now: Instant) {
        let timeout_tu = timeout_tu(self.config.block_ack_timeout);
        let Some(block) = &mut self.block_ack else { return };
        let (to, start) = (block.originator.recipient(), block.originator.window_start());
        let Some(setup) = &mut block.setup else { return };
        let action = BlockAckAction::AddbaRequest {
            dialog_token: setup.begin_request(to),
            policy: BlockAckPolicy::Immediate,
            tid: TID,
            buffer_size: WINDOW,
            timeout_tu,
            start,
        };
        setup.push(to, action);
        self.send_action(now);
    }

    /// Sends the oldest MSDU of the block alone.
    pub(super) fn send_oldest_singly(&mut self, now: Instant) {
        let Some((msdu, since)) = self.block_ack.as_mut().and_then(|b| b.originator.take_oldest()) else {
            return;
        };
        self.start_service(since, msdu);
        self.transmit_current(now);
    }

    /// Answers a block without an agreement by a DELBA (802.11-2020 §10.25.4).
    pub(super) fn reject_block(&mut self, now: Instant, to: MacAddr) {
        self.stats.without_agreement += 1;
        self.queue_delba(now, to, REASON_UNKNOWN_BA);
    }

    /// Informs the senders of expired agreements by a DELBA (802.11-2020 §10.25.5).
    pub(super) fn send_timeout_delbas(&mut self, now: Instant, senders: &[MacAddr]) {
        for &to in senders {
            self.queue_delba(now, to, REASON_TIMEOUT);
        }
    }

    fn handle_addba_request(&mut self, now: Instant, from: MacAddr, wish: &AddbaRequest) {
        let AddbaRequest { dialog_token, policy: kind, tid, buffer_size, start } = *wish;
        let timeout_tu = timeout_tu(self.config.block_ack_timeout);
        let (status, buffer_size) = match (kind, tid, &mut self.block_ack) {
            (BlockAckPolicy::Immediate, TID, Some(block)) => {
                block.recipient.begin_agreement(now, from, start, &mut self.events);
                (STATUS_SUCCESS, if buffer_size == 0 { WINDOW } else { buffer_size.min(WINDOW) })
            }
            _ => (STATUS_REQUEST_DECLINED, buffer_size),
        };
        self.set_inactivity_timer();
        let response = BlockAckAction::AddbaResponse {
            dialog_token,
            status,
            policy: kind,
            tid,
            buffer_size,
            timeout_tu,
        };
        self.queue_action(now, from, response);
    }

    fn handle_addba_response(&mut self, now: Instant, from: MacAddr, verdict: &AddbaResponse) {
        let AddbaResponse { dialog_token, status, policy: kind, tid, buffer_size, timeout_tu } = *verdict;
        let Some(setup) = self.block_ack.as_mut().and_then(|b| b.setup.as_mut()) else { return };
        let is_awaited = match (status, kind, tid) {
            (STATUS_SUCCESS, BlockAckPolicy::Immediate, TID) if buffer_size > 0 => {
                setup.accept(now, from, dialog_token, (buffer_size, timeout_tu))
            }
            (.., TID) => setup.refuse(now, from, dialog_token),
            _ => false,
        };
        self.stats.actions_ignored += u64::from(!is_awaited);
    }

    fn end_agreement(&mut self, with: MacAddr, side: BlockAckSide, tid: u8) {
        let Some(block) = &mut self.block_ack else { return };
        let ended = tid == TID
            && match side {
                BlockAckSide::Originator => block.recipient.end_agreement(with, &mut self.events),
                BlockAckSide::Recipient => block.setup.as_mut().is_some_and(|setup| setup.end(with)),
            };
        if !ended {
            self.stats.actions_ignored += 1;
        } else if side == BlockAckSide::Originator {
            self.set_inactivity_timer();
        } else if block.originator.recipient() == with {
            block.originator.on_agreement_end();
            if matches!(self.service, Service::Block) {
                self.continue_service();
            }
        }
    }

    fn queue_delba(&mut self, now: Instant, to: MacAddr, reason: u16) {
        let delba = BlockAckAction::Delba { side: BlockAckSide::Recipient, tid: TID, reason };
        self.queue_action(now, to, delba);
    }

    fn queue_action(&mut self, now: Instant, to: MacAddr, action: BlockAckAction) {
        let contends = self.wants_medium();
        let Some(setup) = self.block_ack.as_mut().and_then(|b| b.setup.as_mut()) else { return };
        setup.push(to, action);
        if !contends {
            self.request_access(now);
        }
    }
}
