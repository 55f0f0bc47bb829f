//! Frame exchanges: RTS, CTS, data, ACK, and the handling of missing responses (802.11-2020 §10.3.2, §10.3.4).

use super::config::{AckPolicy, Reservation, ResponseTimeout, Tap};
use super::{
    CurrentMsdu, Event, MAX_DURATION_US, Mac, Msdu, PendingResponse, RadioState, Service, State, Timer,
    Transmission, may_transmit,
};
use crate::rate::Rate;
use core::fmt::Debug;
use hopline_core::{Duration, Instant};
use hopline_wire::dot11::{ACK_LEN, BLOCK_ACK_LEN, CTS_LEN, DATA_OVERHEAD, Frame, MacAddr, RTS_LEN};

/// ns-2's allowance for the propagation delay, once in each direction.
const NS2_MAX_PROPAGATION: Duration = Duration::from_micros(2);

/// Missing response that made an attempt fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MissingResponse {
    Cts,
    Ack,
}

impl<M: Copy + Debug> Mac<M> {
    /// Sends the frame in service, or its RTS, at the end of the backoff.
    pub(super) fn transmit_current(&mut self, now: Instant) {
        if self.has_action_due() {
            return self.send_action(now);
        }
        let Service::Single(current) = self.service else { return self.start_block(now) };
        if self.is_expired(now, current.accepted_at) {
            self.stats.expired += 1;
            return self.give_up(now, current.msdu);
        }
        self.contention.finish();
        self.open_burst(now);
        if self.is_above_rts_threshold(&current) {
            self.send_rts(now, &current)
        } else {
            self.send_data(now, &current)
        }
    }

    /// Handles the end of the station's own frame.
    pub(super) fn after_transmission(&mut self, now: Instant) {
        match self.state {
            State::SendRts => self.await_response(now, State::AwaitCts, self.times.cts),
            State::SendData => match self.service {
                Service::Single(current) if !self.needs_ack(&current.msdu) => self.on_success(now),
                Service::Block => self.wait_sifs(now, State::BetweenFrames),
                _ => self.await_response(now, State::AwaitAck, self.times.ack),
            },
            State::SendAction => self.await_response(now, State::AwaitActionAck, self.times.ack),
            State::SendCts => self.after_cts(now),
            State::SendBlockAckReq => {
                self.await_response(now, State::AwaitBlockAck, self.config.control_airtime(BLOCK_ACK_LEN));
            }
            _ => self.leave_exchange(now),
        }
    }

    /// Handles the end of a SIFS.
    pub(super) fn after_sifs(&mut self, now: Instant) {
        let may_go = may_transmit(self.config.reservation, self.is_carrier_idle(), self.nav_until, now);
        match (self.state, self.service, self.response) {
            (State::BeforeData, Service::Single(current), _) if may_go => self.send_data(now, &current),
            (State::BeforeData, Service::Block, _) if may_go => self.send_next_in_block(now),
            (State::BeforeData, ..) => {
                self.contention.double_window();
                self.contention.draw_backoff();
                self.leave_exchange(now);
            }
            (State::BeforeCts, _, Some(answer)) if may_go => self.send_cts(now, answer),
            (State::BeforeCts, ..) => self.leave_exchange(now),
            (State::BeforeAck, _, Some(answer)) => self.send_ack(now, answer),
            (State::BetweenFrames, Service::Block, _) => self.send_next_in_block(now),
            (State::BetweenFrames, ..) => self.continue_burst(now),
            (State::BeforeBlockAck, _, Some(answer)) => self.send_block_ack(now, answer),
            _ => {}
        }
    }

    /// Handles an intact frame.
    pub(super) fn handle_frame(&mut self, now: Instant, frame: Frame<M>) {
        self.eifs_until = Instant::ZERO;
        if frame.ra() == self.address {
            self.clock.record_addressed(now);
            self.handle_addressed_frame(now, frame);
        } else if frame.ra().is_group() {
            self.clock.record_addressed(now);
            self.fail_if_interrupted(now);
            if let Frame::Data { ra, ta, body, .. } = frame {
                self.events.push_back(Event::Deliver { body, from: ta, to: ra });
            }
        } else {
            self.fail_if_interrupted(now);
            self.handle_overheard(now, frame);
        }
    }

    /// Handles a timeout of a CTS, an ACK or data.
    pub(super) fn on_response_timeout(&mut self, now: Instant) {
        let reception_under_way = self.carrier == RadioState::Receiving;
        match self.config.response_timeout {
            // A frame that has begun by now decides at its end (802.11-2020 §10.3.2.9).
            ResponseTimeout::Standard if reception_under_way => {}
            ResponseTimeout::Standard => self.fail_if_awaiting(now),
            ResponseTimeout::WholeResponse => {
                self.idle_since = now;
                if self.state == State::AwaitData {
                    self.leave_exchange(now)
                } else {
                    self.fail_if_awaiting(now)
                }
            }
        }
    }

    /// Fails the attempt if the station still waits for the response.
    pub(super) fn fail_if_awaiting(&mut self, now: Instant) {
        match self.state {
            State::AwaitCts => self.on_failure(now, MissingResponse::Cts),
            State::AwaitAck => self.on_failure(now, MissingResponse::Ack),
            State::AwaitBlockAck => self.fail_block(now),
            State::AwaitActionAck => self.fail_action(now),
            _ => {}
        }
    }

    /// Fails the attempt if another valid frame arrived in place of the response (802.11-2020 §10.3.2.9, §10.3.2.11).
    pub(super) fn fail_if_interrupted(&mut self, now: Instant) {
        if self.config.response_timeout == ResponseTimeout::Standard {
            self.fail_if_awaiting(now);
        }
    }

    fn handle_addressed_frame(&mut self, now: Instant, frame: Frame<M>) {
        match (frame, self.state) {
            (Frame::Cts { .. }, State::AwaitCts) => {
                match &mut self.service {
                    Service::Single(current) => current.short_retries = 0,
                    Service::Block | Service::None => self.clear_block_to_send(),
                }
                self.wait_sifs(now, State::BeforeData);
            }
            (Frame::Ack { .. }, State::AwaitAck) => self.on_success(now),
            (Frame::Ack { .. }, State::AwaitActionAck) => self.finish_action(now),
            (Frame::BlockAck { ta, start, bitmap, .. }, State::AwaitBlockAck) => {
                self.handle_block_ack(now, ta, start, bitmap);
            }
            (Frame::Cts { .. } | Frame::Ack { .. } | Frame::BlockAck { .. }, _) => {
                self.fail_if_interrupted(now);
            }
            (Frame::Rts { ta, duration_us, .. }, _) => {
                self.fail_if_interrupted(now);
                self.handle_rts(now, ta, duration_us);
            }
            (Frame::Data { .. }, _) => {
                self.fail_if_interrupted(now);
                self.receive_data(now, frame);
            }
            (Frame::QosData { .. }, _) => {
                self.fail_if_interrupted(now);
                self.receive_qos_data(now, frame);
            }
            (Frame::Action { .. }, _) => {
                self.fail_if_interrupted(now);
                self.receive_action(now, frame);
            }
            (Frame::BlockAckReq { ta, tid, start, duration_us, .. }, _) => {
                self.fail_if_interrupted(now);
                self.handle_block_ack_req(now, (ta, tid), start, duration_us);
            }
        }
    }

    fn handle_rts(&mut self, now: Instant, ta: MacAddr, duration_us: u16) {
        let reserved = self.config.reservation == Reservation::Standard && self.nav_until > now;
        if self.state == State::Idle && !reserved {
            let taken = (self.config.sifs + self.times.cts).as_micros() as u16;
            self.response = Some(PendingResponse { to: ta, duration_us: duration_us.saturating_sub(taken) });
            self.wait_sifs(now, State::BeforeCts);
        }
    }

    fn receive_data(&mut self, now: Instant, frame: Frame<M>) {
        let Frame::Data { duration_us, ta, ra, sequence, retry, body } = frame else { return };
        if !matches!(self.state, State::Idle | State::AwaitData) {
            return;
        }
        // A frame that needs an ACK reserves the time for it (802.11-2020 §9.2.5).
        if duration_us > 0 {
            self.response = Some(PendingResponse { to: ta, duration_us: 0 });
            self.wait_sifs(now, State::BeforeAck);
        }
        if self.duplicates.is_duplicate(ta, sequence, retry) {
            self.stats.duplicates += 1;
        } else {
            if let Some(block) = &mut self.block_ack {
                // Its sender has ended its use of blocks, for now at least.
                block.release_from(ta, &mut self.events);
            }
            self.events.push_back(Event::Deliver { body, from: ta, to: ra });
        }
    }

    fn handle_overheard(&mut self, now: Instant, frame: Frame<M>) {
        let reserved = self.set_nav(now, frame.duration_us());
        match frame {
            Frame::Rts { .. } if reserved => self.arm_nav_reset(now),
            Frame::Data { ra, ta, body, .. } | Frame::QosData { ra, ta, body, .. }
                if self.config.tap == Tap::Promiscuous =>
            {
                self.events.push_back(Event::Overheard { body, from: ta, to: ra });
            }
            _ => {}
        }
    }

    pub(super) fn wait_sifs(&mut self, now: Instant, state: State) {
        self.timers.stop(Timer::Response);
        self.enter_exchange(now, state);
        self.timers.set(Timer::Sifs, now + self.config.sifs);
    }

    fn await_response(&mut self, now: Instant, state: State, response: Duration) {
        self.state = state;
        let config = &self.config;
        let wait = match config.response_timeout {
            // aPHY-RX-START-Delay: the preamble must have passed.
            ResponseTimeout::Standard => config.sifs + config.slot + config.rx_start_delay(),
            ResponseTimeout::WholeResponse => config.sifs + response + NS2_MAX_PROPAGATION * 2,
        };
        self.timers.set(Timer::Response, now + wait);
    }

    fn after_cts(&mut self, now: Instant) {
        match (self.config.response_timeout, self.response) {
            (ResponseTimeout::WholeResponse, Some(answer)) => {
                // The CTS reserves data, SIFS and ACK; the duration of the data is the rest without the latter two.
                let reserved = Duration::from_micros(u64::from(answer.duration_us));
                let data = reserved.saturating_sub(self.config.sifs * 2 + self.times.ack);
                self.await_response(now, State::AwaitData, data);
            }
            _ => self.leave_exchange(now),
        }
    }

    fn on_success(&mut self, now: Instant) {
        if let Service::Single(current) = self.service {
            self.continue_service();
            self.events.push_back(Event::Sent(current.msdu));
        }
        if self.is_burst_open(now) {
            self.contention.reset_window();
            self.wait_sifs(now, State::BetweenFrames);
        } else {
            self.finish_msdu(now);
        }
    }

    fn on_failure(&mut self, now: Instant, missing: MissingResponse) {
        let Service::Single(mut current) = self.service else { return self.fail_block(now) };
        let is_long = missing == MissingResponse::Ack && self.is_above_rts_threshold(&current);
        match missing {
            MissingResponse::Cts => self.stats.cts_timeouts += 1,
            MissingResponse::Ack => {
                self.stats.ack_timeouts += 1;
                current.retry = true;
            }
        }
        let exhausted = if is_long {
            current.long_retries += 1;
            current.long_retries >= self.config.long_retry_limit
        } else {
            current.short_retries += 1;
            current.short_retries >= self.config.short_retry_limit
        };
        if exhausted {
            self.give_up(now, current.msdu);
        } else {
            self.service = Service::Single(current);
            self.contention.double_window();
            self.contention.draw_backoff();
            self.leave_exchange(now);
        }
    }

    fn give_up(&mut self, now: Instant, msdu: Msdu<M>) {
        self.continue_service();
        self.stats.failed += 1;
        self.events.push_back(Event::Failed(msdu));
        self.finish_msdu(now);
    }

    /// Ends the service of an MSDU: smallest window and a backoff after every MSDU, delivered or given up (802.11-2020
    /// §10.3.3).
    pub(super) fn finish_msdu(&mut self, now: Instant) {
        self.contention.reset_window();
        self.contention.draw_backoff();
        self.leave_exchange(now);
    }

    fn is_above_rts_threshold(&self, current: &CurrentMsdu<M>) -> bool {
        self.needs_ack(&current.msdu) && self.data_len(current) > self.config.rts_threshold_bytes
    }

    /// Returns whether the MSDU's frame calls for an ACK.
    pub(super) fn needs_ack(&self, msdu: &Msdu<M>) -> bool {
        let is_policy = match self.config.ack_policy {
            AckPolicy::Normal | AckPolicy::BlockAck { .. } => true,
            AckPolicy::NoAck => !self.config.no_ack_bytes.contains(&msdu.len_bytes),
        };
        is_policy && !msdu.to.is_group()
    }

    fn data_len(&self, current: &CurrentMsdu<M>) -> u32 {
        current.msdu.len_bytes + self.config.data_extra_bytes + DATA_OVERHEAD as u32
    }

    fn data_rate(&self, to: MacAddr) -> Rate {
        if to.is_group() { self.config.basic_rate } else { self.config.data_rate }
    }

    /// Returns the duration of SIFS and ACK, if the MSDU's frame calls for one.
    pub(super) fn response_airtime(&self, msdu: &Msdu<M>) -> Duration {
        if self.needs_ack(msdu) { self.config.sifs + self.times.ack } else { Duration::ZERO }
    }

    pub(super) fn data_airtime(&self, current: &CurrentMsdu<M>) -> Duration {
        self.data_rate(current.msdu.to).airtime(self.data_len(current), self.config.preamble)
    }

    fn send_rts(&mut self, now: Instant, current: &CurrentMsdu<M>) {
        let reserve = self.config.sifs * 3 + self.times.cts + self.data_airtime(current) + self.times.ack;
        let frame = Frame::Rts { duration_us: whole_us(reserve), ra: current.msdu.to, ta: self.address };
        self.stats.rts_sent += 1;
        self.send_control(now, State::SendRts, frame, RTS_LEN);
    }

    fn send_cts(&mut self, now: Instant, answer: PendingResponse) {
        let frame = Frame::Cts { duration_us: answer.duration_us, ra: answer.to };
        self.send_control(now, State::SendCts, frame, CTS_LEN);
    }

    fn send_ack(&mut self, now: Instant, answer: PendingResponse) {
        let frame = Frame::Ack { duration_us: 0, ra: answer.to };
        self.send_control(now, State::SendAck, frame, ACK_LEN);
    }

    pub(super) fn send_control(&mut self, now: Instant, state: State, frame: Frame<M>, len: usize) {
        let airtime = self.config.control_airtime(len);
        let rate = self.config.basic_rate;
        let transmission = Transmission { frame, rate, len_bytes: len as u32, airtime };
        self.start_transmission(now, state, transmission);
    }

    pub(super) fn send_data(&mut self, now: Instant, current: &CurrentMsdu<M>) {
        let to = current.msdu.to;
        let frame = Frame::Data {
            duration_us: whole_us(self.response_airtime(&current.msdu)),
            ra: to,
            ta: self.address,
            sequence: current.sequence,
            retry: current.retry,
            body: current.msdu.body,
        };
        self.stats.data_sent += 1;
        self.stats.data_retries += u64::from(current.retry);
        let transmission = Transmission {
            frame,
            rate: self.data_rate(to),
            len_bytes: self.data_len(current),
            airtime: self.data_airtime(current),
        };
        self.start_transmission(now, State::SendData, transmission);
    }
}

/// Returns a duration in whole microseconds, rounded up, within the 15 bits of the field (802.11-2020 §9.2.5).
pub(super) fn whole_us(duration: Duration) -> u16 {
    duration.as_nanos().div_ceil(1_000).min(u64::from(MAX_DURATION_US)) as u16
}
