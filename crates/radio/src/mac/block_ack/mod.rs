//! Immediate block acknowledgment (802.11-2020 §10.25), compressed, of one traffic identifier. Without ADDBA, all stations
//! use the same parameters, which are known beforehand, and an agreement begins with its first frame.

mod action;
mod receiver;
mod sender;
mod setup;

use super::config::{AckPolicy, BlockAckSetup, Config};
use super::exchange::whole_us;
use super::{Answer, Event, MAX_DURATION_US, Mac, Msdu, Service, State, Timer, Transmission};
use core::fmt::Debug;
use hopline_core::{Duration, Instant, Seq16};
use hopline_wire::dot11::{
    BLOCK_ACK_LEN, BLOCK_ACK_REQ_LEN, Bitmap, CTS_LEN, Frame, MacAddr, QOS_DATA_OVERHEAD, QosAck, RTS_LEN,
};
use receiver::{Receiver, Taken};
use sender::Sender;
use setup::{Next, Setup};
use std::collections::VecDeque;

/// MSDUs that a bitmap covers: limit of the MSDUs outstanding between two stations.
const WINDOW: u16 = 64;
/// Modulus of sequence numbers.
const SEQUENCES: u16 = 4096;
/// The one traffic identifier in use: best effort.
const TID: u8 = 0;

/// Returns the distance from `base` to `sequence` on the circle of 4096.
const fn ahead(sequence: Seq16, base: Seq16) -> u16 {
    sequence.0.wrapping_sub(base.0) % SEQUENCES
}

/// The number that comes `n` after `sequence`.
const fn forward(sequence: Seq16, n: u16) -> Seq16 {
    Seq16(sequence.0.wrapping_add(n) % SEQUENCES)
}

/// State of both sides of all agreements of one station.
#[derive(Clone, Debug)]
pub(super) struct BlockAck<M> {
    sender: Sender<M>,
    receiver: Receiver<M>,
    /// Setup of agreements; only with [`BlockAckSetup::Addba`].
    setup: Option<Setup>,
}

/// Effect of adding an MSDU on the station's contention.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Added {
    /// The station now contends for the medium.
    First,
    /// The MSDU waits behind the service for which the station contends already.
    Later,
}

impl<M: Copy + Debug> BlockAck<M> {
    /// The MSDUs to send that it holds.
    pub(super) fn held(&self) -> impl Iterator<Item = &Msdu<M>> {
        self.sender.held()
    }

    /// Number of received MSDUs that wait for earlier ones.
    pub(super) fn reordered(&self) -> usize {
        self.receiver.held()
    }

    /// Returns the block acknowledgment state for a configuration, if its policy needs any.
    pub(super) fn of(config: &Config) -> Option<Box<Self>> {
        let setup = match config.block_ack_setup {
            BlockAckSetup::None => None,
            BlockAckSetup::Addba => Some(Setup::default()),
        };
        match config.ack_policy {
            AckPolicy::Normal | AckPolicy::NoAck => None,
            AckPolicy::BlockAck { block_size, .. } => {
                let (sender, receiver) = (Sender::new(block_size), Receiver::default());
                Some(Box::new(Self { sender, receiver, setup }))
            }
        }
    }

    /// Releases MSDUs of `from` that the recipient holds back for earlier ones, which will not arrive any more.
    pub(super) fn release_from(&mut self, from: MacAddr, events: &mut VecDeque<Event<M>>) {
        self.receiver.release(from, events);
    }

    /// Returns whether blocks of `from` need an agreement and have none.
    fn lacks_agreement(&self, from: MacAddr) -> bool {
        self.setup.is_some() && !self.receiver.knows(from)
    }

    fn window(&self) -> u16 {
        self.setup.as_ref().map_or(WINDOW, |setup| setup.window(self.sender.receiver()))
    }
}

/// The sender's side.
impl<M: Copy + Debug> Mac<M> {
    pub(super) fn has_room_in_block(&self) -> bool {
        self.block_ack.as_ref().is_some_and(|b| b.sender.has_room())
    }

    pub(super) fn add_to_block(&mut self, now: Instant, msdu: Msdu<M>) -> Added {
        let Some(block) = &mut self.block_ack else { return Added::Later };
        match self.service {
            Service::Nothing if msdu.to.is_group() => {
                self.serve(now, msdu);
                return Added::First;
            }
            Service::Nothing => {
                block.sender.open(now, msdu);
                self.service = Service::Block;
                return Added::First;
            }
            Service::Block | Service::Single(_) => block.sender.add(now, msdu),
        }
        Added::Later
    }

    /// Accesses the medium for a block at the end of the backoff.
    pub(super) fn access_for_block(&mut self, now: Instant) {
        self.expire_of_block(now);
        let (Service::Block, Some(block)) = (self.service, &mut self.block_ack) else { return };
        if !block.sender.has_work() && block.setup.is_some() {
            return self.finish_block(now); // All of it expired, and nobody waits for it.
        }
        match self.next_for_block(now) {
            Next::Burst => self.access_under_agreement(now),
            Next::Ask => self.request_agreement(now),
            Next::Single => self.send_oldest_alone(now),
        }
    }

    /// Sends the BlockAckReq, if one is due, or else starts a burst, with RTS if one of its frames is above the threshold.
    fn access_under_agreement(&mut self, now: Instant) {
        let Some(block) = &mut self.block_ack else { return };
        self.contention.finish();
        if block.sender.is_request_due() {
            return self.send_block_ack_req(now);
        }
        let limit = self.txop_limit();
        self.plan_burst(limit);
        let Some(block) = &self.block_ack else { return };
        let longest = block.sender.planned().map(|msdu| self.qos_data_len(msdu)).max().unwrap_or(0);
        if longest > self.config.rts_threshold_bytes {
            self.send_block_rts(now)
        } else {
            self.send_of_block(now)
        }
    }

    /// Sends the next frame of the burst, or the BlockAckReq that ends it.
    pub(super) fn send_of_block(&mut self, now: Instant) {
        let Some(block) = &mut self.block_ack else { return };
        let to = block.sender.receiver();
        let Some(next) = block.sender.next_planned() else { return self.send_block_ack_req(now) };
        let frame = Frame::QosData {
            duration_us: whole_us(self.rest_of_burst()),
            ra: to,
            ta: self.address,
            sequence: next.sequence,
            retry: next.is_retry(),
            tid: TID,
            ack: QosAck::BlockAck,
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
            block.sender.note_answer();
        }
    }

    /// Handles a BlockAck: MSDUs that it does not acknowledge are due again, or given up.
    pub(super) fn handle_block_ack(&mut self, now: Instant, ta: MacAddr, start: Seq16, bitmap: Bitmap) {
        let from_receiver = self.block_ack.as_ref().is_some_and(|b| b.sender.receiver() == ta);
        if !from_receiver {
            return self.fail_if_interrupted(now);
        }
        let Some(block) = &mut self.block_ack else { return };
        let (threshold, extra) = (self.config.rts_threshold_bytes, self.config.data_extra_bytes);
        let (short, long) = (self.config.short_retry_limit, self.config.long_retry_limit);
        let limit = |msdu: &Msdu<M>| if qos_len(msdu, extra) > threshold { long } else { short };
        self.stats.failed += block.sender.settle(start, bitmap.bits(), limit, &mut self.events);
        if let Some(setup) = &mut block.setup {
            setup.note_heard(now, ta);
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
        if block.sender.note_silence() >= self.config.short_retry_limit {
            self.stats.failed += block.sender.give_up(&mut self.events);
            self.finish_block(now);
        } else {
            self.contention.double_window();
            self.contention.draw();
            self.leave(now);
        }
    }

    fn finish_block(&mut self, now: Instant) {
        self.serve_rest();
        self.finish_msdu(now);
    }

    /// Continues with the rest of the block, or with the MSDU for another receiver that waited for its end.
    pub(super) fn serve_rest(&mut self) {
        self.service = Service::Nothing;
        let Some(block) = &mut self.block_ack else { return };
        if block.sender.has_work() {
            self.service = Service::Block;
            return;
        }
        match block.sender.take_parked() {
            Some((msdu, since)) if msdu.to.is_group() => self.serve(since, msdu),
            Some((msdu, since)) => {
                block.sender.open(since, msdu);
                self.service = Service::Block;
            }
            None => {}
        }
    }

    /// Gives up MSDUs with an expired lifetime. The receiver is informed, as it may wait for them.
    fn expire_of_block(&mut self, now: Instant) {
        let (Some(lifetime), Some(block)) = (self.config.msdu_lifetime, &mut self.block_ack) else { return };
        let expired = block.sender.expire(|since| since + lifetime <= now, &mut self.events);
        self.stats.expired += expired;
        self.stats.failed += expired;
        let to = block.sender.receiver();
        if block.setup.as_ref().is_some_and(|setup| !setup.stands(to)) {
            block.sender.forget();
        }
    }

    /// Chooses the frames of the next burst: the oldest ones, as many as fit.
    fn plan_burst(&mut self, limit: Duration) {
        let Some(mut block) = self.block_ack.take() else { return };
        let mut left = limit.saturating_sub(self.request_and_answer());
        let window = block.window();
        block.sender.plan(window, |msdu| {
            let takes = self.config.sifs + self.qos_data_airtime(msdu);
            let fits = takes <= left;
            left = left.saturating_sub(takes);
            fits
        });
        self.block_ack = Some(block);
    }

    /// Returns the time reserved by a frame in a TXOP, which extends to the end of the burst (802.11-2020 §9.2.5.2).
    fn rest_of_burst(&self) -> Duration {
        let planned = self.block_ack.iter().flat_map(|b| b.sender.planned());
        planned
            .fold(self.request_and_answer(), |sum, msdu| sum + self.config.sifs + self.qos_data_airtime(msdu))
    }

    /// Returns the duration of SIFS, BlockAckReq, SIFS, BlockAck.
    fn request_and_answer(&self) -> Duration {
        self.config.sifs + self.config.control_airtime(BLOCK_ACK_REQ_LEN) + self.answer_to_request()
    }

    fn answer_to_request(&self) -> Duration {
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
        let reserve = self.config.sifs + self.config.control_airtime(CTS_LEN) + self.rest_of_burst();
        let ra = block.sender.receiver();
        self.stats.rts_sent += 1;
        let frame = Frame::Rts { duration_us: whole_us(reserve), ra, ta: self.address };
        self.send_control(now, State::SendRts, frame, RTS_LEN);
    }

    fn send_block_ack_req(&mut self, now: Instant) {
        let Some(block) = &self.block_ack else { return };
        let frame = Frame::BlockAckReq {
            duration_us: whole_us(self.answer_to_request()),
            ra: block.sender.receiver(),
            ta: self.address,
            tid: TID,
            start: block.sender.start(),
        };
        self.stats.block_ack_reqs_sent += 1;
        self.send_control(now, State::SendBlockAckReq, frame, BLOCK_ACK_REQ_LEN);
    }
}

/// The receiver's side.
impl<M: Copy + Debug> Mac<M> {
    pub(super) fn receive_qos_data(&mut self, now: Instant, frame: Frame<M>) {
        let Frame::QosData { ta, ra, sequence, tid: TID, ack: QosAck::BlockAck, body, .. } = frame else {
            return;
        };
        let Some(block) = &mut self.block_ack else { return };
        if !matches!(self.state, State::Idle | State::AwaitData) {
            return;
        }
        if block.lacks_agreement(ta) {
            return self.refuse_block(now, ta);
        }
        let parcel = receiver::Parcel { from: ta, to: ra, sequence, body };
        if block.receiver.take(now, parcel, &mut self.events) == Taken::Duplicate {
            self.stats.duplicates += 1;
        }
        self.watch_inactivity();
    }

    pub(super) fn consider_block_ack_req(
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
        if block.lacks_agreement(ta) {
            return self.refuse_block(now, ta);
        }
        block.receiver.request(now, ta, start, &mut self.events);
        self.watch_inactivity();
        let taken = whole_us(self.answer_to_request());
        self.answer = Some(Answer { to: ta, duration_us: duration_us.saturating_sub(taken) });
        self.wait_sifs(now, State::BeforeBlockAck);
    }

    /// Drops agreements that were silent for too long.
    pub(super) fn drop_inactive(&mut self, now: Instant) {
        let (Some(timeout), Some(block)) = (self.config.block_ack_timeout, &mut self.block_ack) else {
            return;
        };
        let dropped = block.receiver.drop_inactive(|heard| heard + timeout <= now, &mut self.events);
        self.stats.inactive += dropped.len() as u64;
        self.watch_inactivity();
        self.tell_of_timeout(now, &dropped);
    }

    fn watch_inactivity(&mut self) {
        let (Some(timeout), Some(block)) = (self.config.block_ack_timeout, &self.block_ack) else { return };
        match block.receiver.longest_silent() {
            Some(heard) => self.timers.set(Timer::Inactivity, heard + timeout),
            None => self.timers.stop(Timer::Inactivity),
        }
    }

    pub(super) fn send_block_ack(&mut self, now: Instant, answer: Answer) {
        let Some(block) = &self.block_ack else { return };
        let (start, bitmap) = block.receiver.reply();
        let Answer { to: ra, duration_us } = answer;
        let frame = Frame::BlockAck { duration_us, ra, ta: self.address, tid: TID, start, bitmap };
        self.send_control(now, State::SendBlockAck, frame, BLOCK_ACK_LEN);
    }
}

/// Returns the length of the MSDU's frame, FCS included.
fn qos_len<M>(msdu: &Msdu<M>, extra_bytes: u32) -> u32 {
    msdu.len_bytes + extra_bytes + QOS_DATA_OVERHEAD as u32
}
