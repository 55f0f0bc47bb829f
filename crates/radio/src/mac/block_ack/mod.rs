//! Immediate block acknowledgment (802.11-2020 §10.25), compressed, of one traffic identifier. Without ADDBA, all stations
//! use the same parameters, which are known beforehand, and an agreement begins with its first frame.

mod action;
mod originator;
mod recipient;
mod setup;

use super::config::{AckPolicy, BlockAckSetup, Config};
use super::exchange::whole_us;
use super::{Event, MAX_DURATION_US, Mac, Msdu, PendingResponse, Service, State, Timer, Transmission};
use core::fmt::Debug;
use hopline_core::{Duration, Instant, Seq16};
use hopline_wire::dot11::{
    BLOCK_ACK_LEN, BLOCK_ACK_REQ_LEN, Bitmap, CTS_LEN, Frame, MacAddr, QOS_DATA_OVERHEAD, QosAckPolicy,
    RTS_LEN,
};
use originator::Originator;
use recipient::{ReceiveResult, Recipient};
use setup::{AgreementSetup, NextStep};
use std::collections::VecDeque;

/// MSDUs that a bitmap covers: limit of the MSDUs outstanding between two stations.
const WINDOW: u16 = 64;
/// Modulus of sequence numbers.
const SEQUENCES: u16 = 4096;
/// The one traffic identifier in use: best effort.
const TID: u8 = 0;

/// Returns the distance from `base` to `sequence` on the circle of 4096.
const fn sequence_distance(sequence: Seq16, base: Seq16) -> u16 {
    sequence.0.wrapping_sub(base.0) % SEQUENCES
}

/// The number that comes `n` after `sequence`.
const fn sequence_after(sequence: Seq16, n: u16) -> Seq16 {
    Seq16(sequence.0.wrapping_add(n) % SEQUENCES)
}

/// State of both sides of all agreements of one station.
#[derive(Clone, Debug)]
pub(super) struct BlockAck<M> {
    originator: Originator<M>,
    recipient: Recipient<M>,
    /// Setup of agreements; only with [`BlockAckSetup::Addba`].
    setup: Option<AgreementSetup>,
}

/// Effect of adding an MSDU on the station's contention.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AddResult {
    /// The station now contends for the medium.
    Contending,
    /// The MSDU waits behind the service for which the station contends already.
    Queued,
}

impl<M: Copy + Debug> BlockAck<M> {
    /// The MSDUs to send that it holds.
    pub(super) fn pending_msdus(&self) -> impl Iterator<Item = &Msdu<M>> {
        self.originator.pending_msdus()
    }

    /// Number of received MSDUs that wait for earlier ones.
    pub(super) fn reorder_buffer_len(&self) -> usize {
        self.recipient.reorder_buffer_len()
    }

    /// Returns the block acknowledgment state for a configuration, if its policy needs any.
    pub(super) fn from_config(config: &Config) -> Option<Box<Self>> {
        let setup = match config.block_ack_setup {
            BlockAckSetup::None => None,
            BlockAckSetup::Addba => Some(AgreementSetup::default()),
        };
        match config.ack_policy {
            AckPolicy::Normal | AckPolicy::NoAck => None,
            AckPolicy::BlockAck { block_size, .. } => {
                let (sender, receiver) = (Originator::new(block_size), Recipient::default());
                Some(Box::new(Self { originator: sender, recipient: receiver, setup }))
            }
        }
    }

    /// Releases MSDUs of `from` that the recipient holds back for earlier ones, which will not arrive any more.
    pub(super) fn release_from(&mut self, from: MacAddr, events: &mut VecDeque<Event<M>>) {
        self.recipient.release(from, events);
    }

    /// Returns whether blocks of `from` need an agreement and have none.
    fn needs_agreement(&self, from: MacAddr) -> bool {
        self.setup.is_some() && !self.recipient.has_agreement(from)
    }

    fn window(&self) -> u16 {
        self.setup.as_ref().map_or(WINDOW, |setup| setup.window(self.originator.recipient()))
    }
}

/// The sender's side.
impl<M: Copy + Debug> Mac<M> {
    pub(super) fn has_room_in_block(&self) -> bool {
        self.block_ack.as_ref().is_some_and(|b| b.originator.has_room())
    }

    pub(super) fn add_to_block(&mut self, now: Instant, msdu: Msdu<M>) -> AddResult {
        let Some(block) = &mut self.block_ack else { return AddResult::Queued };
        match self.service {
            Service::None if msdu.to.is_group() => {
                self.start_service(now, msdu);
                return AddResult::Contending;
            }
            Service::None => {
                block.originator.start_block(now, msdu);
                self.service = Service::Block;
                return AddResult::Contending;
            }
            Service::Block | Service::Single(_) => block.originator.add(now, msdu),
        }
        AddResult::Queued
    }

    /// Accesses the medium for a block at the end of the backoff.
    pub(super) fn start_block(&mut self, now: Instant) {
        self.expire_block_msdus(now);
        let (Service::Block, Some(block)) = (self.service, &mut self.block_ack) else { return };
        if !block.originator.has_work() && block.setup.is_some() {
            return self.finish_block(now); // All of it expired, and nobody waits for it.
        }
        match self.next_step(now) {
            NextStep::Burst => self.start_burst(now),
            NextStep::RequestAgreement => self.request_agreement(now),
            NextStep::Single => self.send_oldest_singly(now),
        }
    }

    /// Sends the BlockAckReq, if one is due, or else starts a burst, with RTS if one of its frames is above the threshold.
    fn start_burst(&mut self, now: Instant) {
        let Some(block) = &mut self.block_ack else { return };
        self.contention.finish();
        if block.originator.is_request_due() {
            return self.send_block_ack_req(now);
        }
        let limit = self.txop_limit();
        self.plan_burst(limit);
        let Some(block) = &self.block_ack else { return };
        let longest = block.originator.planned().map(|msdu| self.qos_data_len(msdu)).max().unwrap_or(0);
        if longest > self.config.rts_threshold_bytes {
            self.send_block_rts(now)
        } else {
            self.send_next_in_block(now)
        }
    }

    /// Sends the next frame of the burst, or the BlockAckReq that ends it.
    pub(super) fn send_next_in_block(&mut self, now: Instant) {
        let Some(block) = &mut self.block_ack else { return };
        let to = block.originator.recipient();
        let Some(next) = block.originator.next_planned() else { return self.send_block_ack_req(now) };
        let frame = Frame::QosData {
            duration_us: whole_us(self.remaining_burst()),
            ra: to,
            ta: self.address,
            sequence: next.sequence,
            retry: next.is_retry(),
            tid: TID,
            ack: QosAckPolicy::BlockAck,
            body: next.msdu.body,
        };
        self.stats.data_sent += 1;
        self.stats.data_retries += u64::from(next.is_retry());
        let len_bytes = self.qos_data_len(&next.msdu);
        let (rate, airtime) = (self.config.data_rate, self.qos_data_airtime(&next.msdu));
        self.start_transmission(now, State::SendData, Transmission { frame, rate, len_bytes, airtime });
    }

    pub(super) fn clear_block_to_send(&mut self) {
        if let Some(block) = &mut self.block_ack {
            block.originator.record_response();
        }
    }

    /// Handles a BlockAck: MSDUs that it does not acknowledge are due again, or given up.
    pub(super) fn handle_block_ack(&mut self, now: Instant, ta: MacAddr, start: Seq16, bitmap: Bitmap) {
        let from_receiver = self.block_ack.as_ref().is_some_and(|b| b.originator.recipient() == ta);
        if !from_receiver {
            return self.fail_if_interrupted(now);
        }
        let Some(block) = &mut self.block_ack else { return };
        let (threshold, extra) = (self.config.rts_threshold_bytes, self.config.data_extra_bytes);
        let (short, long) = (self.config.short_retry_limit, self.config.long_retry_limit);
        let limit = |msdu: &Msdu<M>| if qos_len(msdu, extra) > threshold { long } else { short };
        self.stats.failed += block.originator.handle_block_ack(start, bitmap.bits(), limit, &mut self.events);
        if let Some(setup) = &mut block.setup {
            setup.record_block_ack(now, ta);
        }
        self.finish_block(now);
    }

    /// Handles a missing CTS or BlockAck: retries with a larger window. After `short_retry_limit` attempts in a row the link
    /// has failed, and all MSDUs that were sent without acknowledgment or about to be sent are given up.
    pub(super) fn fail_block(&mut self, now: Instant) {
        let Some(block) = &mut self.block_ack else { return };
        match self.state {
            State::AwaitCts => self.stats.cts_timeouts += 1,
            _ => self.stats.block_ack_timeouts += 1,
        }
        if block.originator.record_missing_response() >= self.config.short_retry_limit {
            self.stats.failed += block.originator.give_up(&mut self.events);
            self.finish_block(now);
        } else {
            self.contention.double_window();
            self.contention.draw_backoff();
            self.leave_exchange(now);
        }
    }

    fn finish_block(&mut self, now: Instant) {
        self.continue_service();
        self.finish_msdu(now);
    }

    /// Continues with the rest of the block, or with the MSDU for another receiver that waited for its end.
    pub(super) fn continue_service(&mut self) {
        self.service = Service::None;
        let Some(block) = &mut self.block_ack else { return };
        if block.originator.has_work() {
            self.service = Service::Block;
            return;
        }
        match block.originator.take_parked() {
            Some((msdu, since)) if msdu.to.is_group() => self.start_service(since, msdu),
            Some((msdu, since)) => {
                block.originator.start_block(since, msdu);
                self.service = Service::Block;
            }
            None => {}
        }
    }

    /// Gives up MSDUs with an expired lifetime. The receiver is informed, as it may wait for them.
    fn expire_block_msdus(&mut self, now: Instant) {
        let (Some(lifetime), Some(block)) = (self.config.msdu_lifetime, &mut self.block_ack) else { return };
        let expired = block.originator.expire(|since| since + lifetime <= now, &mut self.events);
        self.stats.expired += expired;
        self.stats.failed += expired;
        let to = block.originator.recipient();
        if block.setup.as_ref().is_some_and(|setup| !setup.is_established(to)) {
            block.originator.on_agreement_end();
        }
    }

    /// Chooses the frames of the next burst: the oldest ones, as many as fit.
    fn plan_burst(&mut self, limit: Duration) {
        let Some(mut block) = self.block_ack.take() else { return };
        let mut left = limit.saturating_sub(self.bar_exchange_time());
        let window = block.window();
        block.originator.plan(window, |msdu| {
            let takes = self.config.sifs + self.qos_data_airtime(msdu);
            let fits = takes <= left;
            left = left.saturating_sub(takes);
            fits
        });
        self.block_ack = Some(block);
    }

    /// Returns the time reserved by a frame in a TXOP, which extends to the end of the burst (802.11-2020 §9.2.5.2).
    fn remaining_burst(&self) -> Duration {
        let planned = self.block_ack.iter().flat_map(|b| b.originator.planned());
        planned
            .fold(self.bar_exchange_time(), |sum, msdu| sum + self.config.sifs + self.qos_data_airtime(msdu))
    }

    /// Returns the duration of SIFS, BlockAckReq, SIFS, BlockAck.
    fn bar_exchange_time(&self) -> Duration {
        self.config.sifs + self.config.control_airtime(BLOCK_ACK_REQ_LEN) + self.bar_response_time()
    }

    fn bar_response_time(&self) -> Duration {
        self.config.sifs + self.config.control_airtime(BLOCK_ACK_LEN)
    }

    /// Returns the TXOP limit, bounded by the time that an RTS can reserve behind its CTS.
    fn txop_limit(&self) -> Duration {
        let reservable = Duration::from_micros(u64::from(MAX_DURATION_US))
            .saturating_sub(self.config.sifs + self.config.control_airtime(CTS_LEN));
        match self.config.ack_policy {
            AckPolicy::BlockAck { txop_limit: Some(limit), .. } => limit.min(reservable),
            _ => reservable,
        }
    }

    fn qos_data_len(&self, msdu: &Msdu<M>) -> u32 {
        qos_len(msdu, self.config.data_extra_bytes)
    }

    fn qos_data_airtime(&self, msdu: &Msdu<M>) -> Duration {
        self.config.data_rate.airtime(self.qos_data_len(msdu), self.config.preamble)
    }

    fn send_block_rts(&mut self, now: Instant) {
        let Some(block) = &self.block_ack else { return };
        let reserve = self.config.sifs + self.config.control_airtime(CTS_LEN) + self.remaining_burst();
        let ra = block.originator.recipient();
        self.stats.rts_sent += 1;
        let frame = Frame::Rts { duration_us: whole_us(reserve), ra, ta: self.address };
        self.send_control(now, State::SendRts, frame, RTS_LEN);
    }

    fn send_block_ack_req(&mut self, now: Instant) {
        let Some(block) = &self.block_ack else { return };
        let frame = Frame::BlockAckReq {
            duration_us: whole_us(self.bar_response_time()),
            ra: block.originator.recipient(),
            ta: self.address,
            tid: TID,
            start: block.originator.window_start(),
        };
        self.stats.block_ack_reqs_sent += 1;
        self.send_control(now, State::SendBlockAckReq, frame, BLOCK_ACK_REQ_LEN);
    }
}

/// The receiver's side.
impl<M: Copy + Debug> Mac<M> {
    pub(super) fn receive_qos_data(&mut self, now: Instant, frame: Frame<M>) {
        let Frame::QosData { ta, ra, sequence, tid: TID, ack: QosAckPolicy::BlockAck, body, .. } = frame
        else {
            return;
        };
        let Some(block) = &mut self.block_ack else { return };
        if !matches!(self.state, State::Idle | State::AwaitData) {
            return;
        }
        if block.needs_agreement(ta) {
            return self.reject_block(now, ta);
        }
        let parcel = recipient::ReceivedFrame { from: ta, to: ra, sequence, body };
        if block.recipient.handle_frame(now, parcel, &mut self.events) == ReceiveResult::Duplicate {
            self.stats.duplicates += 1;
        }
        self.set_inactivity_timer();
    }

    pub(super) fn handle_block_ack_req(
        &mut self,
        now: Instant,
        (ta, tid): (MacAddr, u8),
        start: Seq16,
        duration_us: u16,
    ) {
        let Some(block) = &mut self.block_ack else { return };
        if tid != TID || !matches!(self.state, State::Idle | State::AwaitData) {
            return;
        }
        if block.needs_agreement(ta) {
            return self.reject_block(now, ta);
        }
        block.recipient.handle_request(now, ta, start, &mut self.events);
        self.set_inactivity_timer();
        let taken = whole_us(self.bar_response_time());
        self.response = Some(PendingResponse { to: ta, duration_us: duration_us.saturating_sub(taken) });
        self.wait_sifs(now, State::BeforeBlockAck);
    }

    /// Drops agreements that were silent for too long.
    pub(super) fn expire_agreements(&mut self, now: Instant) {
        let (Some(timeout), Some(block)) = (self.config.block_ack_timeout, &mut self.block_ack) else {
            return;
        };
        let dropped = block.recipient.expire(|heard| heard + timeout <= now, &mut self.events);
        self.stats.agreements_expired += dropped.len() as u64;
        self.set_inactivity_timer();
        self.send_timeout_delbas(now, &dropped);
    }

    fn set_inactivity_timer(&mut self) {
        let (Some(timeout), Some(block)) = (self.config.block_ack_timeout, &self.block_ack) else { return };
        match block.recipient.earliest_heard() {
            Some(heard) => self.timers.set(Timer::Inactivity, heard + timeout),
            None => self.timers.stop(Timer::Inactivity),
        }
    }

    pub(super) fn send_block_ack(&mut self, now: Instant, answer: PendingResponse) {
        let Some(block) = &self.block_ack else { return };
        let (start, bitmap) = block.recipient.response();
        let PendingResponse { to: ra, duration_us } = answer;
        let frame = Frame::BlockAck { duration_us, ra, ta: self.address, tid: TID, start, bitmap };
        self.send_control(now, State::SendBlockAck, frame, BLOCK_ACK_LEN);
    }
}

/// Returns the length of the MSDU's frame, FCS included.
fn qos_len<M>(msdu: &Msdu<M>, extra_bytes: u32) -> u32 {
    msdu.len_bytes + extra_bytes + QOS_DATA_OVERHEAD as u32
}
