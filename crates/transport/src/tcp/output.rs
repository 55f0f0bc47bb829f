//! Choice of the next segment to send.

use super::config::{IdleRestart, Nagle, TimestampEcho, WindowProbe};
use super::congestion::NewData;
use super::door::{DoorState, PayloadKind, SynKind};
use super::endpoint::Endpoint;
use super::frto::FrtoState;
use super::input::TIMESTAMPS_LEN;
use super::receive::{PendingAck, ReceiveHalf};
use super::timer::Timer;
use crate::connection::State;
use hopline_core::{Instant, Payload, Seq32};
use hopline_wire::tcp::{AccEcnOption, Flags, MAX_OPTIONS_LEN, Segment, Timestamps};

/// Length of the SACK option without its blocks, padding included, and length of a block, bytes.
const SACK_HEADER: usize = 4;
const SACK_BLOCK: usize = 8;

impl<P: Payload> Endpoint<P> {
    pub(super) fn next_segment(&mut self, now: Instant) -> Option<Segment<P>> {
        if let Some(reply) = self.reply.take() {
            self.stats.acks_sent += 1;
            return Some(reply);
        }
        if self.snd.syn_pending {
            return Some(self.syn(now));
        }
        if let Some(probe) = self.window_probe_without_data(now) {
            return Some(probe);
        }
        if self.owes_handshake_ack() {
            return Some(self.pure_ack(now));
        }
        if self.state().may_transmit() && !self.waits_for_release(now) {
            if let Some((at, len)) = self.choose_segment(now) {
                self.record_release(now, len);
                return Some(self.data_segment(now, at, len));
            }
            self.arm_persist(now);
        }
        if let Some(probe) = self.keep_alive_probe(now) {
            return Some(probe);
        }
        if self.rcv.pending_ack == PendingAck::Now {
            return Some(self.pure_ack(now));
        }
        None
    }

    /// Builds a SYN or SYN-ACK.
    fn syn(&mut self, now: Instant) -> Segment<P> {
        self.snd.syn_pending = false;
        let first = self.snd.max == 0;
        (self.snd.nxt, self.snd.max) = (1, 1);
        self.snd.rtt_probe = first.then_some((1, now)); // Karn: a SYN that was resent is not timed
        let answers = self.state() == State::SynReceived;
        let flags = if answers { Flags::SYN | Flags::ACK } else { Flags::SYN };
        let ack = if answers { self.rcv.seq(self.rcv.nxt) } else { Seq32(0) };
        let setup = self.ecn_setup();
        let mut segment = self.bare_segment(self.snd.iss, ack, flags | setup);
        segment.window = self.rcv.syn_window(&self.config);
        segment.options.mss = Some(self.config.mss as u16);
        // A SYN-ACK carries only what the SYN offered (RFC 7323 §1.3, RFC 2018 §2).
        let shift = ReceiveHalf::<P>::shift_for(&self.config);
        segment.options.window_scale = shift.filter(|_| !answers || self.rcv.scale_agreed);
        segment.options.sack_permitted = if answers { self.options.sack } else { self.offers_sack() };
        let stamped = if answers { self.options.timestamps } else { self.offers_timestamps() };
        if stamped {
            segment.options.timestamps = Some(self.timestamps(now, flags));
        }
        if let Some(door) = &self.door {
            segment.options.door = door.syn_option(if answers { SynKind::Reply } else { SynKind::Initial });
        }
        if answers {
            segment.options.acc_ecn = self.syn_ack_acc_ecn_option();
            self.on_ack_sent();
        }
        self.stats.acks_sent += 1;
        segment
    }

    pub(super) fn timestamps(&self, now: Instant, flags: Flags) -> Timestamps {
        let echo = match self.config.timestamp_echo {
            _ if !flags.contains(Flags::ACK) => 0,
            TimestampEcho::Earliest => self.rcv.ts_recent.map_or(0, |(recent, _)| recent),
            TimestampEcho::Latest => self.rcv.ts_latest,
        };
        Timestamps { value: self.timestamp(now), echo }
    }

    fn pure_ack(&mut self, now: Instant) -> Segment<P> {
        self.stats.acks_sent += 1;
        // RFC 9293 §3.10.7.4: <SEQ=SND.NXT>; the highest one, so that it stays in the peer's window after a time-out.
        let mut segment = self.bare_segment(self.snd.seq(self.snd.max), Seq32(0), Flags::ACK);
        self.fill_in_ack(now, &mut segment);
        segment
    }

    /// Fills in acknowledgment, window and options. The ACK then counts as sent.
    pub(super) fn fill_in_ack(&mut self, now: Instant, segment: &mut Segment<P>) {
        segment.ack = self.rcv.seq(self.rcv.nxt);
        segment.window = self.rcv.announce_window(&self.config);
        if self.options.timestamps {
            segment.options.timestamps = Some(self.timestamps(now, segment.flags));
        }
        segment.options.acc_ecn = self.next_acc_ecn_option(!segment.payload.is_empty());
        if self.options.sack {
            segment.options.sack = self.rcv.sack_blocks(self.max_sack_blocks(segment.options.acc_ecn));
        }
        self.set_ecn_feedback(segment);
        if let Some(door) = &mut self.door {
            let carries = if segment.payload.is_empty() { PayloadKind::Nothing } else { PayloadKind::Data };
            segment.options.door = door.segment_option(self.rcv.nxt, carries);
        }
        self.on_ack_sent();
    }

    fn on_ack_sent(&mut self) {
        if self.rcv.pending_ack != PendingAck::None {
            self.rcv.quick.on_ack_sent();
        }
        self.rcv.last_ack_sent = self.rcv.nxt;
        self.rcv.pending_ack = PendingAck::None;
        self.timers.stop(Timer::DelayedAck);
    }

    /// Returns the number of SACK blocks that fit into the 40 bytes beside the other options (RFC 2018 §3). Beside AccECN,
    /// options need not be aligned.
    fn max_sack_blocks(&self, acc_ecn: Option<AccEcnOption>) -> usize {
        let timestamps = if self.options.timestamps { TIMESTAMPS_LEN } else { 0 };
        let door = self.door.as_deref().map_or(0, |door| door.fixed_len() + door.extra_len());
        let room = MAX_OPTIONS_LEN - (timestamps + door) as usize;
        match acc_ecn {
            None => (room - SACK_HEADER) / SACK_BLOCK,
            Some(option) => {
                let padding = if self.options.timestamps { 2 } else { 0 };
                (room + padding).saturating_sub(option.len() + 2) / SACK_BLOCK
            }
        }
    }

    /// Returns the AccECN option of the next segment, unless it leaves no room for two SACK blocks that there are (RFC 9768
    /// §3.2.3.3).
    fn next_acc_ecn_option(&self, has_data: bool) -> Option<AccEcnOption> {
        let option = self.acc_ecn_option(has_data)?;
        let room = self.max_sack_blocks(Some(option));
        let fits = !self.options.sack || room >= 2 || self.rcv.count_sack_blocks(2) <= room;
        fits.then_some(option)
    }

    /// Returns the data bytes of a full segment now, without the room of SACK blocks (RFC 6691) and of TCP-DOOR reports.
    pub(super) fn full_segment_len(&self) -> u64 {
        let mss = u64::from(self.snd.mss - self.door.as_deref().map_or(0, DoorState::extra_len));
        let option = self.next_acc_ecn_option(true);
        let most = self.max_sack_blocks(option);
        let blocks = if self.options.sack { self.rcv.count_sack_blocks(most) } else { 0 };
        let sack = if blocks == 0 { 0 } else { SACK_HEADER + SACK_BLOCK * blocks };
        let taken = sack + option.map_or(0, |option| option.len().next_multiple_of(4));
        mss.saturating_sub(taken as u64).max(1)
    }

    /// Chooses the position and length of the next data segment; length 0: a FIN alone.
    fn choose_segment(&mut self, now: Instant) -> Option<(u64, u64)> {
        if self.route.is_frozen() {
            return self.take_route_probe().then(|| self.choose_first_unacked());
        }
        if self.snd.probe_pending {
            return Some(self.choose_probe());
        }
        if let FrtoState::AwaitSecondAck(_, left) = self.frto {
            return self.choose_frto_segment(left);
        }
        if self.rack.is_some() {
            return self.choose_segment_by_rack(now);
        }
        if self.snd.retransmit_first {
            return Some(self.choose_first_unacked());
        }
        if self.control.in_sack_recovery() {
            return self.choose_in_recovery().or_else(|| self.choose_fin());
        }
        if self.snd.nxt == self.snd.end() || self.is_in_ecn_pause() {
            return None; // nothing left: the common case after an ACK
        }
        self.restart_if_idle(now);
        if self.skips_sacked() {
            self.snd.nxt = self.scoreboard.skip_block(self.snd.nxt);
        }
        self.choose_next_new().or_else(|| self.choose_fin())
    }

    /// Chooses a window probe: at least one byte into a closed window (RFC 9293 §3.8.6.1), or data that silly window
    /// avoidance held back.
    fn choose_probe(&mut self) -> (u64, u64) {
        self.snd.probe_pending = false;
        self.stats.window_probes += 1;
        let una = self.snd.una;
        let len = self.snd.window.max(1).min(self.full_segment_len()).min(self.snd.queue.end() - una);
        (una, len)
    }

    /// Returns a window probe that is due, if it carries no data: its sequence number is one that the peer has acknowledged.
    fn window_probe_without_data(&mut self, now: Instant) -> Option<Segment<P>> {
        let is_closed = self.snd.window == 0 && self.state().may_transmit() && !self.route.is_frozen();
        if !self.snd.probe_pending || !is_closed || self.config.window_probe == WindowProbe::NextByte {
            return None;
        }
        self.snd.probe_pending = false;
        self.stats.window_probes += 1;
        self.snd.last_sent = Some(now);
        let mut probe = self.bare_segment(self.snd.seq(self.snd.una - 1), Seq32(0), Flags::ACK);
        self.fill_in_ack(now, &mut probe);
        Some(probe)
    }

    fn choose_first_unacked(&mut self) -> (u64, u64) {
        self.snd.retransmit_first = false;
        let una = self.snd.una;
        let sent = self.snd.max.min(self.snd.queue.end()).saturating_sub(una);
        let gap = self.scoreboard.gap_at(una).unwrap_or(u64::MAX);
        (una, sent.min(self.full_segment_len()).min(gap).min(self.room_in_record(una)))
    }

    fn choose_in_recovery(&mut self) -> Option<(u64, u64)> {
        let next = self.next_segment_len();
        let fresh = if next.is_some() { NewData::Ready } else { NewData::None };
        let (una, nxt) = (self.snd.una, self.snd.nxt);
        let (at, limit) = self.control.next_in_recovery(&self.scoreboard, una, nxt, fresh)?;
        if at == nxt {
            return next.map(|len| (at, len));
        }
        let data = self.snd.queue.end().saturating_sub(at);
        Some((at, limit.min(self.full_segment_len()).min(data).min(self.room_in_record(at))))
    }

    fn skips_sacked(&self) -> bool {
        self.control.skips_sacked(self.snd.nxt < self.snd.max)
    }

    fn choose_next_new(&self) -> Option<(u64, u64)> {
        let len = self.next_segment_len()?;
        let mut flight = self.snd.nxt - self.snd.una;
        if self.skips_sacked() {
            flight -= self.scoreboard.sacked_below(self.snd.nxt);
        }
        // A segment is never cut to fit cwnd; cwnd is at least one segment.
        let fits = flight == 0
            || flight + len <= self.control.send_allowance(&self.config, self.snd.nxt, self.snd.max);
        fits.then_some((self.snd.nxt, len))
    }

    /// Returns the length of the segment at SND.NXT that the peer's window, the clamp, Nagle's algorithm and silly window
    /// avoidance allow (RFC 9293 §3.8.6.2.1).
    pub(super) fn next_segment_len(&self) -> Option<u64> {
        let snd = &self.snd;
        let mss = self.full_segment_len();
        let data = snd.queue.end().checked_sub(snd.nxt).filter(|&n| n > 0)?;
        let want = match self.scoreboard.gap_at(snd.nxt) {
            Some(gap) if self.skips_sacked() => data.min(mss).min(gap),
            _ => data.min(mss),
        };
        let record = self.room_in_record(snd.nxt);
        let want = want.min(record);
        let flight = snd.nxt - snd.una;
        if self.config.window_clamp.is_some_and(|n| flight + want > u64::from(n) * u64::from(snd.mss))
            && flight > 0
        {
            return None;
        }
        let usable = snd.window.saturating_sub(flight);
        let len = want.min(usable);
        let resent = snd.nxt < snd.max;
        let idle = flight == 0;
        let all = len == data;
        let small_may = match self.config.nagle {
            Nagle::On => idle,
            Nagle::Minshall => idle || snd.small_end <= snd.una,
            Nagle::Off => true,
        };
        let may = len == mss
            || (resent && len == want)
            || (all && (snd.fin.is_some() || (small_may && !self.is_corked())))
            || (len == record && !all)
            || (len > 0 && 2 * len >= snd.max_window && (idle || self.config.nagle == Nagle::Off));
        may.then_some(len)
    }

    /// Chooses a FIN alone, once all data are sent.
    pub(super) fn choose_fin(&self) -> Option<(u64, u64)> {
        let snd = &self.snd;
        let window = match self.config.window_probe {
            WindowProbe::NextByte => snd.window.max(1), // the FIN probes a closed window
            WindowProbe::OldSequence => snd.window,
        };
        let due = snd.fin == Some(snd.nxt) && snd.nxt - snd.una < window;
        due.then_some((snd.nxt, 0))
    }

    /// Restarts the window after idle time (RFC 5681 §4.1).
    pub(super) fn restart_if_idle(&mut self, now: Instant) {
        // A sender in front of a closed window is not idle.
        let is_closed = self.snd.window == 0;
        if self.config.idle_restart == IdleRestart::Never || self.snd.outstanding() || is_closed {
            return;
        }
        let idle = self.snd.last_sent.is_some_and(|t| now.since(t) > self.rto.timeout());
        if idle && !self.recovery_policy(now).holds_everything() {
            self.control.on_idle(&self.config);
            self.snd.last_sent = Some(now);
        }
    }

    fn data_segment(&mut self, now: Instant, at: u64, len: u64) -> Segment<P> {
        let end = at + len;
        let fin = self.snd.fin == Some(end);
        let after = end + u64::from(fin);
        self.count_segment(at, len);
        self.start_user_timeout(now);
        if !self.snd.outstanding() {
            self.control.on_resume(now);
            self.rate_control_on_resume(now);
        }
        if at < self.snd.max {
            self.on_retransmission(at, end);
        }
        if self.snd.rtt_probe.is_none() && at >= self.snd.max {
            self.snd.rtt_probe = Some((after, now));
        } else if self.snd.rtt_probe.is_some_and(|(timed, _)| at < timed && timed <= after) {
            self.snd.rtt_probe = None; // Karn: the segment being timed is sent again
        }
        // A FIN alone is no probe, whatever the window: it counts as sent and has a timer of its own.
        let probe = self.timers.is_set(Timer::Persist) && len == 1 && self.snd.window == 0;
        let fresh = at >= self.snd.max && len > 0 && !probe;
        self.snd.max = self.snd.max.max(after);
        if !probe {
            self.snd.nxt = self.snd.nxt.max(after);
            self.timers.stop(Timer::Persist);
            if !self.timers.is_set(Timer::Retransmit) {
                self.arm_retransmit(now); // RFC 6298 §5.1
            }
            self.record_transmission(now, at, after);
            let (una, nxt, cwnd) = (self.snd.una, self.snd.nxt, self.control.cwnd());
            self.snd.usage.on_sent(una, nxt, nxt - una, cwnd.into(), self.snd.mss.into());
        }
        if len > 0 && len < self.full_segment_len() {
            self.snd.small_end = self.snd.small_end.max(end);
        }
        if len > 0 {
            self.rcv.quick.on_data_sent(now);
            self.snd.last_sent = Some(now);
            self.control.on_sent(at, len as u32, self.snd.nxt - self.snd.una, &self.scoreboard);
        }
        let mut flags = Flags::ACK;
        if fin {
            flags |= Flags::FIN;
        }
        if len > 0 && (end == self.snd.queue.end() || self.room_in_record(at) == len) {
            flags |= Flags::PSH; // RFC 9293 §3.9.1.2: the last buffered data
        }
        let mut segment = self.bare_segment(self.snd.seq(at), Seq32(0), flags);
        segment.payload = self.snd.queue.slice(at, len);
        if fresh {
            self.mark_ecn_capable(&mut segment);
        } else if len > 0 && !probe {
            self.mark_retransmission_ecn_capable(&mut segment);
        }
        self.fill_in_ack(now, &mut segment);
        segment
    }

    fn count_segment(&mut self, at: u64, len: u64) {
        if len == 0 {
            self.stats.acks_sent += 1;
            return;
        }
        self.stats.segments_sent += 1;
        self.stats.bytes_sent += len;
        if at < self.snd.max {
            self.stats.retransmissions += 1;
        }
    }

    /// Starts the persist timer if nothing is in flight and the peer's window does not take the waiting data
    /// (RFC 9293 §3.8.6.1).
    fn arm_persist(&mut self, now: Instant) {
        let snd = &self.snd;
        let waits = self.timers.is_set(Timer::Persist) || self.is_in_ecn_pause();
        if snd.nxt != snd.una || snd.nxt >= snd.end() || waits {
            return;
        }
        self.timers.stop(Timer::Retransmit);
        self.start_user_timeout(now);
        let wait = self.rto.timeout().saturating_mul(1 << self.snd.probes.min(16)).min(self.config.rto.max);
        self.timers.set(Timer::Persist, now + wait);
    }
}
