//! Segment arrives (RFC 9293 §3.10.7), with the defences of RFC 5961.

use super::config::{MIN_MSS, MissingTimestamp, TimeWaitReset};
use super::congestion::{SackNegotiation, SynOutcome};
use super::ecn::RepeatedSyn;
use super::endpoint::{Endpoint, Negotiated};
use super::receive::{PendingAck, ReceiveHalf};
use super::stats::DropReason;
use super::timer::Timer;
use crate::connection::{CloseReason, Event, State};
use crate::lifecycle::Role;
use core::ops::ControlFlow;
use hopline_core::{Instant, Payload, Seq32};
use hopline_wire::tcp::{DoorOption, Flags, SackBlocks, Segment};

/// Largest payload that a segment can have on the wire.
const MAX_PAYLOAD: u64 = 65_535;
/// MSS of a peer that announces none (RFC 9293 §3.7.1).
const DEFAULT_MSS: u32 = 536;
/// Length of the timestamps option, padded.
pub(super) const TIMESTAMPS_LEN: u32 = 12;

/// Result of a check: processing of the segment goes on or ends.
type Check = ControlFlow<()>;
const STOP: Check = ControlFlow::Break(());
const CONTINUE: Check = ControlFlow::Continue(());

impl<P: Payload> Endpoint<P> {
    pub(super) fn handle_segment(&mut self, now: Instant, mut segment: Segment<P>) {
        self.stats.segments_received += 1;
        let learns_port = self.state() == State::Listen && self.ports.remote == 0;
        if segment.dst_port != self.ports.local || (segment.src_port != self.ports.remote && !learns_port) {
            return self.drop_segment(DropReason::WrongPort);
        }
        if segment.payload.len() > MAX_PAYLOAD {
            return self.drop_segment(DropReason::Unexpected);
        }
        if segment.options.nack {
            // The blocks of a NACK are missing data, not received data. A proxy on the path answers them.
            segment.options.sack = SackBlocks::default();
        }
        match self.state() {
            State::Closed => self.on_segment_in_closed(&segment),
            State::Listen => self.on_segment_in_listen(now, &segment),
            State::SynSent => self.on_segment_in_syn_sent(now, &segment),
            _ => {
                let _ = self.on_segment_in_connection(now, segment);
            }
        }
    }

    /// Processes a segment in CLOSED (RFC 9293 §3.10.7.1).
    fn on_segment_in_closed(&mut self, segment: &Segment<P>) {
        self.drop_segment(DropReason::Closed);
        self.send_reset(segment);
    }

    /// Processes a segment in LISTEN (RFC 9293 §3.10.7.2).
    fn on_segment_in_listen(&mut self, now: Instant, segment: &Segment<P>) {
        if segment.flags.contains(Flags::RST) {
            return self.drop_segment(DropReason::Unexpected);
        }
        let anyone = self.ports.remote == 0;
        self.ports.remote = segment.src_port;
        if segment.flags.contains(Flags::ACK) || !segment.flags.contains(Flags::SYN) {
            self.drop_segment(DropReason::Unexpected);
            if segment.flags.contains(Flags::ACK) {
                self.send_reset(segment);
            }
            self.ports.remote = if anyone { 0 } else { self.ports.remote };
            return;
        }
        self.handle_syn(now, segment);
        self.lifecycle.enter(State::SynReceived);
        self.send_syn(now);
    }

    /// Processes a segment in SYN-SENT (RFC 9293 §3.10.7.3).
    fn on_segment_in_syn_sent(&mut self, now: Instant, segment: &Segment<P>) {
        let flags = segment.flags;
        let has_ack = flags.contains(Flags::ACK);
        let acks_syn = has_ack && self.snd.max > 0 && segment.ack == self.snd.seq(1);
        if has_ack && !acks_syn {
            self.drop_segment(DropReason::BadAck);
            return self.send_reset(segment);
        }
        if flags.contains(Flags::RST) {
            return if acks_syn {
                self.terminate(CloseReason::Refused);
            } else {
                self.drop_segment(DropReason::BadReset);
            };
        }
        if !flags.contains(Flags::SYN) {
            return self.drop_segment(DropReason::Unexpected);
        }
        self.handle_syn(now, segment);
        if acks_syn {
            self.rcv.pending_ack = PendingAck::Now;
            self.establish(now, segment);
            self.handle_data_of_syn(now, segment);
        } else {
            // Simultaneous open (RFC 9293 §3.5, figure 7).
            self.keep_data_of_syn(segment);
            self.lifecycle.enter(State::SynReceived);
            self.send_syn(now);
        }
    }

    /// Processes data and FIN of a SYN-ACK (RFC 9293 §3.10.7.3: "other controls or text").
    fn handle_data_of_syn(&mut self, now: Instant, segment: &Segment<P>) {
        let flags = Flags(segment.flags.0 & !Flags::SYN.0);
        let mut rest = Segment { seq: segment.seq + 1, flags, ..segment.clone() };
        let start = self.trim_to_window(1, &mut rest);
        self.handle_data(now, start, rest);
    }

    /// Keeps data and FIN of a SYN until the connection is established (RFC 9293 §3.10.7.3: "other controls or text").
    fn keep_data_of_syn(&mut self, segment: &Segment<P>) {
        let flags = Flags(segment.flags.0 & !Flags::SYN.0);
        let mut rest = Segment { seq: segment.seq + 1, flags, ..segment.clone() };
        let start = self.trim_to_window(1, &mut rest);
        if rest.flags.contains(Flags::FIN) {
            self.rcv.fin = Some(start + rest.payload.len());
        }
        if !rest.payload.is_empty() {
            self.store_out_of_order(start, rest.payload);
        }
    }

    /// Records the peer's initial sequence number and options.
    fn handle_syn(&mut self, now: Instant, segment: &Segment<P>) {
        let options = &segment.options;
        self.stats.segments_accepted += 1;
        self.rcv.irs = segment.seq;
        self.rcv.nxt = 1;
        self.rcv.right_edge += 1; // the window of our SYN, if it was sent, starts behind the peer's
        let both_time = self.offers_timestamps() && options.timestamps.is_some();
        self.negotiate_ecn(segment);
        self.options =
            Negotiated { timestamps: both_time, sack: self.offers_sack() && options.sack_permitted };
        if let (true, Some(ts)) = (both_time, options.timestamps) {
            self.rcv.ts_recent = Some((ts.value, now));
            self.rcv.ts_latest = ts.value;
        }
        if let (Some(ours), Some(theirs)) = (ReceiveHalf::<P>::shift_for(&self.config), options.window_scale)
        {
            self.rcv.scale = ours;
            self.rcv.scale_agreed = true;
            self.snd.scale = theirs.min(14); // RFC 7323 §2.3
        }
        let announced = options.mss.map_or(DEFAULT_MSS, u32::from).max(MIN_MSS);
        self.snd.mss = announced.min(self.config.mss) - if both_time { TIMESTAMPS_LEN } else { 0 };
        if let Some(door) = &mut self.door {
            door.negotiate(options.door);
            let is_offer = matches!(options.door, None | Some(DoorOption::Offer(_)));
            self.stats.door.malformed += u64::from(!is_offer);
            self.snd.mss -= door.fixed_len();
        }
        // The window of a SYN is not scaled.
        self.snd.window = u64::from(segment.window);
        self.snd.max_window = self.snd.window;
    }

    /// Enters ESTABLISHED: our SYN is acknowledged and the peer's is known.
    fn establish(&mut self, now: Instant, segment: &Segment<P>) {
        let sack = if self.options.sack { SackNegotiation::Agreed } else { SackNegotiation::Refused };
        let lost = self.snd.syn_retransmissions > self.config.tolerated_lost_syns;
        let syn = if lost { SynOutcome::Retransmitted } else { SynOutcome::Delivered };
        self.control.on_established(&self.config, self.snd.mss, sack, syn);
        if sack == SackNegotiation::Refused {
            self.rack = None;
        }
        self.snd.una = 1;
        self.snd.nxt = self.snd.nxt.max(1);
        self.snd.retries = 0;
        self.snd.window_from = (0, 1);
        let sent = self.snd.rtt_probe.take().map(|(_, sent)| sent);
        let round_trip = sent.map(|sent| now.since(sent));
        if let (Some(sent), Some(round_trip)) = (sent, round_trip) {
            self.rto.sample(sent, now, 1);
            if let Some(rack) = &mut self.rack {
                rack.on_handshake(now, round_trip);
            }
        }
        self.start_rate_control(now, round_trip);
        if self.snd.syn_was_retransmitted() {
            self.rto.on_lost_syn();
        }
        if self.state() == State::SynReceived {
            self.on_handshake_ack(segment);
        }
        self.start_prague(round_trip);
        self.snd.syn_pending = false;
        self.timers.stop(Timer::Retransmit);
        self.lifecycle.enter(State::Established);
        self.start_keep_alive(now);
        self.rcv.last_data = Some(now);
        self.event(Event::Connected);
        self.update_send_window(1, segment);
    }

    /// Processes a segment in SYN-RECEIVED and later states (RFC 9293 §3.10.7.4).
    fn on_segment_in_connection(&mut self, now: Instant, mut segment: Segment<P>) -> Check {
        let mut position = self.position(segment.seq);
        self.check_order(now, position, &segment);
        let is_reset = segment.flags.contains(Flags::RST);
        let is_syn = segment.flags.contains(Flags::SYN) && !is_reset;
        if is_syn && !(self.state() == State::SynReceived && position == 0) {
            return self.check_unexpected_syn(now, &segment);
        }
        if self.options.timestamps && !is_reset {
            self.check_timestamp(now, &segment)?;
        }
        if is_syn {
            self.check_repeated_syn(now, &mut segment, &mut position)?;
        }
        self.check_window(now, position, &segment)?;
        if is_reset {
            return self.check_reset(now, position);
        }
        self.check_ack(now, &segment)?;
        // RFC 5961 §5.2: a segment changes nothing before its ACK is known to be acceptable.
        self.stats.segments_accepted += 1;
        self.record_peer_activity(now);
        self.update_ts_recent(now, position, &segment);
        self.count_codepoint(segment.ecn, segment.payload.len());
        let start = self.trim_to_window(position, &mut segment);
        self.record_ce_mark(&segment);
        self.handle_ack(now, start, &segment)?;
        if self.state() == State::TimeWait && (position != self.rcv.nxt as i64 || segment.seq_len() > 0) {
            // Nothing new can arrive in TIME-WAIT: a peer that sends other numbers has to learn ours (as Linux and FreeBSD).
            self.rcv.pending_ack = PendingAck::Now;
        }
        self.handle_data(now, start, segment);
        CONTINUE
    }

    /// Checks the timestamp (RFC 7323 §5.3 R1 and §3.2).
    fn check_timestamp(&mut self, now: Instant, segment: &Segment<P>) -> Check {
        if segment.options.timestamps.is_none() {
            if self.config.missing_timestamp == MissingTimestamp::Accepted {
                return CONTINUE;
            }
            self.drop_segment(DropReason::NoTimestamp);
            return STOP;
        }
        if self.is_old_timestamp(now, segment) {
            self.drop_segment(DropReason::OldTimestamp);
            self.rcv.pending_ack = PendingAck::Now;
            return STOP;
        }
        CONTINUE
    }

    /// Processes a repeated SYN of the peer. Without ACK, our SYN-ACK was lost. With ACK, the open is simultaneous and
    /// the segment counts as an ACK.
    fn check_repeated_syn(&mut self, now: Instant, segment: &mut Segment<P>, position: &mut i64) -> Check {
        if !segment.flags.contains(Flags::ACK) {
            if self.renegotiate_ecn(segment) == RepeatedSyn::Conflicting {
                return self.reset_handshake(now);
            }
            self.snd.syn_retransmissions = self.snd.syn_retransmissions.saturating_add(1);
            self.send_syn(now);
            return STOP;
        }
        segment.flags = Flags(segment.flags.0 & !Flags::SYN.0);
        segment.window >>= self.snd.scale; // the window of a SYN is not scaled
        *position = 1;
        self.rcv.pending_ack = PendingAck::Now;
        CONTINUE
    }

    /// Resets a connection of which the SYNs contradict each other.
    fn reset_handshake(&mut self, now: Instant) -> Check {
        self.drop_segment(DropReason::UnexpectedSyn);
        let reset = self.bare_segment(self.snd.seq(self.snd.max), Seq32(0), Flags::RST);
        self.handle_reset(now);
        self.reply = Some(reset);
        STOP
    }

    /// First check: sequence number in the window.
    fn check_window(&mut self, now: Instant, position: i64, segment: &Segment<P>) -> Check {
        if self.is_acceptable(position, segment) && !self.drops_beyond_window(position, segment) {
            return CONTINUE;
        }
        self.drop_segment(DropReason::OutsideWindow);
        if segment.flags.contains(Flags::RST) {
            return STOP;
        }
        self.rcv.pending_ack = PendingAck::Now;
        if self.is_acceptable_ack(segment) {
            self.record_duplicate(now, position, segment);
        }
        STOP
    }

    /// Records the data that a segment outside the window repeats.
    fn record_duplicate(&mut self, now: Instant, position: i64, segment: &Segment<P>) {
        let end = position + segment.payload.len() as i64;
        let ends_stream = self.rcv.fin.is_some_and(|fin| end == fin as i64);
        if self.state() == State::TimeWait && segment.flags.contains(Flags::FIN) && ends_stream {
            // RFC 9293 §3.10.7.4: "restart the 2 MSL time-wait timeout".
            self.timers.set(Timer::TimeWait, now + self.config.time_wait);
        }
        if segment.payload.len() > 0 && position < self.rcv.nxt as i64 {
            self.stats.duplicates_received += 1;
            self.record_duplicate_range(position, end.clamp(0, self.rcv.nxt as i64) as u64);
            self.update_ts_recent_on_duplicate(now, position, segment);
        }
    }

    fn is_acceptable(&self, position: i64, segment: &Segment<P>) -> bool {
        let (nxt, edge) = (self.rcv.nxt as i64, self.rcv.right_edge as i64);
        let last = position + i64::from(segment.seq_len()) - 1;
        if segment.flags.contains(Flags::RST) {
            // RFC 5961 §3.2 looks at SEG.SEQ alone. The edge itself is outside (RFC 9293 §3.10.7.4).
            position == nxt || (nxt..edge).contains(&position)
        } else if segment.seq_len() == 0 || nxt == edge {
            // An ACK right at the edge comes from a peer that filled the window and lost what filled it. With a closed
            // window, what a segment acknowledges is still of use; its data is cut off (§3.10.7.4, "special allowance").
            (nxt..=edge).contains(&position)
        } else {
            (nxt..edge).contains(&position) || (nxt..edge).contains(&last)
        }
    }

    /// Second check: RST bit, in the window (RFC 5961 §3.2).
    fn check_reset(&mut self, now: Instant, position: i64) -> Check {
        if self.state() == State::TimeWait && self.config.time_wait_reset == TimeWaitReset::Ignored {
            self.drop_segment(DropReason::BadReset);
        } else if position == self.rcv.nxt as i64 {
            self.handle_reset(now);
        } else {
            self.drop_segment(DropReason::BadReset);
            self.send_challenge_ack(now);
        }
        STOP
    }

    /// Fourth check: SYN bit. Sequence number and timestamp have no influence, since the peer may have restarted
    /// (RFC 5961 §4.2).
    fn check_unexpected_syn(&mut self, now: Instant, segment: &Segment<P>) -> Check {
        self.drop_segment(DropReason::UnexpectedSyn);
        self.send_challenge_ack(now);
        self.on_repeated_syn_ack(segment);
        STOP
    }

    fn handle_reset(&mut self, now: Instant) {
        self.end_freeze(now);
        match (self.state(), self.lifecycle.role()) {
            (State::SynReceived, Role::Passive) => self.return_to_listen(),
            _ => self.terminate(self.lifecycle.reset_reason()),
        }
    }

    /// Returns to LISTEN after the reset of a half-open passive connection. Data of the user are kept.
    fn return_to_listen(&mut self) {
        self.lifecycle.enter(State::Listen);
        self.ports.remote = self.listens_for;
        self.timers.stop_all();
        self.rcv = ReceiveHalf::new(&self.config);
        (self.snd.nxt, self.snd.max) = (0, 0);
        self.snd.scale = 0;
        self.snd.syn_pending = false;
        self.snd.syn_retransmissions = 0;
        self.snd.retries = 0;
        self.snd.rtt_probe = None;
        self.rto = super::rto::RtoEstimator::new(self.config.rto);
        self.door = self.door.as_deref().map(|door| Box::new(door.restarted()));
    }

    /// Fifth check: ACK bit, and acceptability of the ACK.
    fn check_ack(&mut self, now: Instant, segment: &Segment<P>) -> Check {
        if !segment.flags.contains(Flags::ACK) {
            self.drop_segment(DropReason::Unexpected);
            return STOP;
        }
        if self.state() == State::SynReceived {
            return self.check_handshake_ack(now, segment);
        }
        if !self.is_acceptable_ack(segment) {
            self.drop_segment(DropReason::BadAck);
            self.send_challenge_ack(now);
            return STOP;
        }
        CONTINUE
    }

    /// Fifth check in SYN-RECEIVED.
    fn check_handshake_ack(&mut self, now: Instant, segment: &Segment<P>) -> Check {
        if self.snd.max == 0 || segment.ack != self.snd.seq(1) {
            self.drop_segment(DropReason::BadAck);
            self.send_reset(segment);
            return STOP;
        }
        self.establish(now, segment);
        self.deliver_data_of_syn(now);
        CONTINUE
    }

    /// Cuts off data that were received already or lie beyond the window. Returns the position of the rest.
    fn trim_to_window(&mut self, position: i64, segment: &mut Segment<P>) -> u64 {
        let len = segment.payload.len();
        let known = (self.rcv.nxt as i64 - position).max(0) as u64;
        let start = self.rcv.nxt.max(position.max(0) as u64);
        let room = match self.takes_beyond_window() {
            true => u64::MAX,
            false => self.rcv.right_edge.saturating_sub(start),
        };
        let fresh = len.saturating_sub(known);
        if known > 0 {
            self.record_duplicate_range(position, self.rcv.nxt.min((position + len as i64).max(0) as u64));
        }
        if fresh > room || known > 0 {
            let take = fresh.min(room);
            segment.payload =
                if take == 0 { P::default() } else { segment.payload.slice(known..known + take) };
        }
        if fresh > room {
            self.rcv.pending_ack = PendingAck::Now; // a window probe wants an answer
        }
        // A FIN right at the edge costs no buffer.
        if known > len || fresh > room {
            segment.flags = Flags(segment.flags.0 & !Flags::FIN.0);
        }
        start
    }

    /// Returns the position of a sequence number in the peer's stream; negative: before its SYN.
    fn position(&self, seq: Seq32) -> i64 {
        self.rcv.nxt as i64 + i64::from(seq.distance_from(self.rcv.seq(self.rcv.nxt)))
    }

    /// Sends a challenge ACK, which lets an honest peer find out what is wrong (RFC 5961), at a limited rate.
    pub(super) fn send_challenge_ack(&mut self, now: Instant) {
        let rested =
            self.last_challenge_ack.is_none_or(|t| now.since(t) >= self.config.challenge_ack_interval);
        if rested {
            self.last_challenge_ack = Some(now);
            self.stats.challenge_acks += 1;
            self.rcv.pending_ack = PendingAck::Now;
        }
    }

    /// Returns the reset that ends the connection. It acknowledges what has arrived, as the resets of Linux and FreeBSD do, and
    /// has a timestamp where they were negotiated (RFC 7323 §3.2).
    pub(super) fn reset_of_abort(&self, now: Instant) -> Segment<P> {
        let flags = Flags::RST | Flags::ACK;
        let mut reset = self.bare_segment(self.snd.seq(self.snd.max), self.rcv.seq(self.rcv.nxt), flags);
        reset.options.timestamps = self.options.timestamps.then(|| self.timestamps(now, flags));
        reset
    }

    /// Answers with a reset, unless the segment is one (RFC 9293 §3.10.7.1).
    fn send_reset(&mut self, segment: &Segment<P>) {
        if segment.flags.contains(Flags::RST) {
            return;
        }
        let reset = if segment.flags.contains(Flags::ACK) {
            self.bare_segment(segment.ack, Seq32(0), Flags::RST)
        } else {
            self.bare_segment(Seq32(0), segment.seq_end(), Flags::RST | Flags::ACK)
        };
        self.reply = Some(reset);
    }
}
