//! The ACK field: window, selective acknowledgments, round-trip samples, congestion control
//! (RFC 9293 §3.10.7.4, "fifth, check the ACK field").

use super::config::{ClosedWindow, GrowthCondition};
use super::congestion::undo::Cause;
use super::congestion::{
    AckInput, BackoffAction, ControlEvent, ImmediateRetransmission, Response, TimerAction,
};
use super::door::HeldReduction;
use super::endpoint::{Endpoint, FIRST_DATA};
use super::loss_detection::AckSummary;
use super::recovery_policy::{RecoveryPolicy, RetransmissionPolicy};
use super::sack_option::SackInfo;
use super::scoreboard::Reneging;
use super::spurious::DetectorInput;
use super::timer::Timer;
use crate::connection::{Event, State};
use core::ops::ControlFlow;
use hopline_core::{Duration, Instant, Payload};
use hopline_wire::tcp::{Flags, Segment};

/// Classification of an acknowledgment for loss recovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AckKind {
    /// Acknowledges new data.
    New,
    /// Duplicate acknowledgment: a segment after the missing one has left the network.
    Duplicate,
    /// Window update, or an acknowledgment without news.
    Other,
}

impl<P: Payload> Endpoint<P> {
    /// Processes the acceptable acknowledgment of a segment with remaining data from `start` on. Returns `Break` if the
    /// rest of the segment must not be processed.
    ///
    /// The steps come in this order, since each relies on the results of the earlier ones:
    /// 1. the hold of the window, before any reaction; TCP-DOOR has checked the order of the segment already
    ///    (`check_order`);
    /// 2. the peer's window, which decides if an ACK without news is a duplicate;
    /// 3. SACK blocks, so that `delivered` counts each byte once; accurate ECN feedback relies on it;
    /// 4. delivery records (RACK, tail loss probe), with the old value of `una`;
    /// 5. the reaction: feedback schemes are notified of new data, then ECN marks are processed, then congestion control
    ///    reacts;
    /// 6. detection of spurious reductions from this ACK (Eifel, F-RTO, DSACK), after the reaction to it;
    /// 7. time-based loss detection, so that an undone reduction does not hide losses;
    /// 8. BBR and the pacing of Prague, which use the results of all other steps.
    pub(super) fn handle_ack(&mut self, now: Instant, start: u64, segment: &Segment<P>) -> ControlFlow<()> {
        let una = self.snd.una as i64;
        let ack = self.ack_position(segment);
        self.resume_pacing();
        let before = self.rate_control_snapshot();
        let stance = self.recovery_policy(now);
        self.control.set_hold(now, stance.hold);
        let window_before = self.snd.window;
        if ack >= una {
            self.update_send_window(start, segment);
        }
        if self.snd.nxt == self.snd.una {
            self.snd.retries = 0; // a window probe is answered
        }
        let told = self.read_sack(segment, ack);
        let sacked = self.handle_sack(&told);
        // What was selectively acknowledged before is not news.
        let covered = self.scoreboard.sacked_below(ack.max(una) as u64);
        let delivered = ((ack - una).max(0) as u64 + sacked).saturating_sub(covered);
        let delivered = if self.options.sack { delivered } else { self.without_duplicates(delivered) };
        self.read_ecn_feedback(segment, delivered);
        let taken = AckSummary {
            ack,
            delivered,
            una_before: self.snd.una,
            phase_before: self.control.phase(),
            is_bare: segment.payload.is_empty() && segment.options.sack.is_empty(),
        };
        let echoed = self.echoed_send_time(now, segment);
        self.update_delivery_records(now, ack.max(una) as u64, &told, echoed);
        self.sample_prague_rtt(delivered);
        let kind = self.classify_ack(segment, ack - una, window_before, sacked);
        match kind {
            AckKind::New => self.handle_new_ack(now, stance, ack as u64, delivered, segment),
            AckKind::Duplicate => self.handle_duplicate_ack(now, stance, delivered, segment),
            AckKind::Other if ack == una => {
                let ack = self.ack_input(now, 0, delivered, false, segment);
                self.handle_ecn_echo(&ack);
            }
            AckKind::Other => {}
        }
        if let Some(options) = &mut self.sockopts {
            options.on_ack(self.snd.una);
        }
        let acked = self.snd.una - taken.una_before;
        self.run_spurious_detectors(
            now,
            DetectorInput { kind, acked, sacked, sack: &told, echoed_send_time: echoed },
        );
        self.detect_losses(now, taken, &told);
        self.update_rate_control(now, taken, before);
        self.update_prague_pacing();
        if self.state() == State::Closed { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    /// Returns the delivered data of an ACK for `acked` bytes without those that duplicate ACKs have reported before: each was
    /// for one segment, and one segment at least is new (as Linux, `tcp_remove_reno_sacks`).
    fn without_duplicates(&self, acked: u64) -> u64 {
        let mss = u64::from(self.snd.mss);
        let reported = u64::from(self.control.dup_acks()) * mss;
        acked.saturating_sub(reported).max(acked.min(mss))
    }

    /// Updates the send window, unless the segment is older than the last one that updated it (RFC 9293 §3.10.7.4).
    pub(super) fn update_send_window(&mut self, start: u64, segment: &Segment<P>) {
        let ack = self.snd.una + u64::from(segment.ack - self.snd.seq(self.snd.una));
        let (from_seq, from_ack) = self.snd.window_from;
        if from_seq > start || (from_seq == start && from_ack > ack) {
            return;
        }
        let scale = if segment.flags.contains(Flags::SYN) { 0 } else { self.snd.scale };
        self.snd.window = u64::from(segment.window) << scale;
        self.snd.max_window = self.snd.max_window.max(self.snd.window);
        self.snd.window_from = (start, ack);
        if self.snd.window == 0 && self.config.closed_window == ClosedWindow::Persist {
            self.mark_unsent();
        }
        if self.snd.window > 0 && self.snd.nxt == self.snd.una {
            // RFC 9293 §3.8.6.1: the peer answers; whether the window suffices is seen when something is to be sent.
            self.snd.probes = 0;
        }
    }

    /// Marks all data in flight as unsent.
    fn mark_unsent(&mut self) {
        self.timers.stop(Timer::Retransmit);
        self.snd.nxt = self.snd.una;
        (self.snd.retransmit_first, self.snd.rtt_probe) = (false, None);
        self.scoreboard.clear();
    }

    /// Records the SACK blocks. Returns the number of bytes that they newly report.
    fn handle_sack(&mut self, told: &SackInfo) -> u64 {
        self.stats.dsacks_received += u64::from(told.dsack.is_some());
        if !self.control.records_sack() {
            return 0;
        }
        told.blocks().iter().map(|&(left, right)| self.scoreboard.add(left, right)).sum()
    }

    /// Classifies an ACK that lies `beyond` the first unacknowledged byte.
    fn classify_ack(&self, segment: &Segment<P>, beyond: i64, window_before: u64, sacked: u64) -> AckKind {
        match beyond {
            1.. => AckKind::New,
            0 if self.is_duplicate(segment, window_before, sacked) => AckKind::Duplicate,
            _ => AckKind::Other,
        }
    }

    fn handle_duplicate_ack(
        &mut self,
        now: Instant,
        stance: RecoveryPolicy,
        delivered: u64,
        segment: &Segment<P>,
    ) {
        self.stats.dup_acks += 1;
        if self.samples_duplicate_acks()
            && let Some(sent) = self.echoed_send_time(now, segment)
        {
            self.add_pacing_sample(now.since(sent));
        }
        let ack = self.ack_input(now, 0, delivered, false, segment);
        self.handle_ecn_echo(&ack);
        if !self.route.is_frozen() {
            let response = match stance.retransmissions {
                RetransmissionPolicy::FirstSegmentOnly => {
                    self.control.on_duplicate_without_recovery(&self.config, &ack, &mut self.scoreboard)
                }
                RetransmissionPolicy::Normal => {
                    self.control.on_duplicate(&self.config, &ack, &mut self.scoreboard)
                }
            };
            self.apply_response(now, response);
        }
    }

    /// Returns whether the ACK is a duplicate: by RFC 5681 §2 for plain ACKs; with SACK, if it reports something new
    /// (RFC 6675 §2).
    fn is_duplicate(&self, segment: &Segment<P>, window_before: u64, sacked: u64) -> bool {
        if self.snd.nxt == self.snd.una {
            return false; // at most a window probe is out
        }
        if self.options.sack {
            return sacked > 0 || self.control.counts_pipe_by_acks();
        }
        segment.payload.is_empty() && !segment.flags.contains(Flags::FIN) && self.snd.window == window_before
    }

    fn handle_new_ack(
        &mut self,
        now: Instant,
        stance: RecoveryPolicy,
        ack: u64,
        delivered: u64,
        segment: &Segment<P>,
    ) {
        let was_full = self.may_grow();
        let flight = self.snd.nxt - self.snd.una;
        let bytes = self.snd.queue.advance(ack);
        self.stats.bytes_acked += bytes;
        self.snd.una = ack;
        self.snd.nxt = self.snd.nxt.max(ack);
        self.snd.retries = 0;
        self.snd.probes = 0;
        self.snd.retransmit_first = false;
        self.restart_user_timeout(now);
        if self.scoreboard.advance(ack) == Reneging::Yes {
            self.scoreboard.clear();
            if let Some(rack) = &mut self.rack {
                rack.on_reneging();
            }
            self.stats.reneged += 1;
        }
        let sample = self.sample_rtt(now, stance, flight, segment);
        self.end_fixed_rto();
        self.end_congested();
        self.on_ack_while_frozen(now);
        let segment_rtt = match &self.rack {
            Some(rack) => rack.segment_rtt(),
            None => sample,
        };
        let info =
            AckInput { sample, segment_rtt, ..self.ack_input(now, bytes, delivered, was_full, segment) };
        self.handle_ecn_echo(&info);
        let response = self.control.on_new_ack(&self.config, &info, &mut self.scoreboard);
        self.apply_response(now, response);
        if bytes > 0 && self.snd.queue.take_refused() {
            self.event(Event::Writable);
        }
        self.on_fin_acked(now);
    }

    /// Reacts to an ECN echo (RFC 3168 §6.1.2), or to accurate feedback. An earlier reduction is not undone after it, since there is congestion
    /// (RFC 4015 §3.4).
    fn handle_ecn_echo(&mut self, ack: &AckInput) {
        self.control.on_accurate_feedback(&self.config, ack);
        if ack.marked {
            self.on_congestion_mark(ack.now);
            self.reductions.clear();
            let response = self.control.on_mark(&self.config, ack);
            self.apply_response(ack.now, response);
        }
    }

    fn ack_input(
        &self,
        now: Instant,
        acked: u64,
        delivered: u64,
        window_was_full: bool,
        segment: &Segment<P>,
    ) -> AckInput {
        AckInput {
            acked,
            window_was_full,
            marked: self.has_ecn_echo(segment),
            marked_bytes: self.marked_bytes(),
            ..self.control_input(now, delivered)
        }
    }

    /// Builds the input of congestion control for an event that acknowledges nothing new.
    pub(super) fn control_input(&self, now: Instant, delivered: u64) -> AckInput {
        AckInput {
            marked: false,
            marked_bytes: 0,
            acked: 0,
            delivered,
            una: self.snd.una,
            nxt: self.snd.nxt,
            max: self.snd.max,
            window_was_full: false,
            now,
            round_trip: self.rto.srtt().unwrap_or(Duration::ZERO),
            sample: None,
            segment_rtt: None,
        }
    }

    /// Returns the position up to which a segment acknowledges.
    pub(super) fn ack_position(&self, segment: &Segment<P>) -> i64 {
        let una = self.snd.una;
        una as i64 + i64::from(segment.ack.distance_from(self.snd.seq(una)))
    }

    /// Returns whether a segment has an acceptable ACK (RFC 5961 §5.2), which a blind attacker has to guess. Nothing before
    /// our first data was ever acknowledged to a connected endpoint, however large the peer's window.
    pub(super) fn is_acceptable_ack(&self, segment: &Segment<P>) -> bool {
        let (una, max) = (self.snd.una as i64, self.snd.max as i64);
        let earliest = (una - self.snd.max_window as i64).max(FIRST_DATA as i64);
        segment.flags.contains(Flags::ACK) && (earliest..=max).contains(&self.ack_position(segment))
    }

    /// Returns whether the window is in use, so that it may grow.
    fn may_grow(&self) -> bool {
        if self.config.growth_condition != GrowthCondition::WindowUsed {
            return self.is_cwnd_limited();
        }
        if self.is_limited_by_window_pacing() {
            return true;
        }
        let is_slow_start = self.control.cwnd() < self.control.ssthresh();
        self.snd.usage.permits_growth(self.control.cwnd().into(), is_slow_start)
    }

    /// Returns whether `cwnd` limits the sender. In slow start half of it in use is enough, since it doubles each round
    /// trip.
    fn is_cwnd_limited(&self) -> bool {
        let (flight, cwnd) = (self.snd.nxt - self.snd.una, u64::from(self.control.cwnd()));
        if self.control.cwnd() < self.control.ssthresh() {
            2 * flight >= cwnd
        } else {
            flight + u64::from(self.snd.mss) > cwnd
        }
    }

    /// Samples the round-trip time (Karn's algorithm, RFC 6298 §3; RFC 7323 §4.1). Returns the sample.
    fn sample_rtt(
        &mut self,
        now: Instant,
        stance: RecoveryPolicy,
        flight: u64,
        segment: &Segment<P>,
    ) -> Option<Duration> {
        let timed = self.snd.rtt_probe;
        if timed.is_some_and(|(end, _)| self.snd.una >= end) {
            self.snd.rtt_probe = None;
        }
        if stance.holds_everything() {
            return None;
        }
        let (sent, share) = if self.options.timestamps {
            let share = flight.div_ceil(2 * u64::from(self.snd.mss)).clamp(1, 1 << 20);
            (self.echoed_send_time(now, segment)?, share as u32)
        } else {
            let (end, sent) = timed?;
            if self.snd.una < end {
                return None;
            }
            (sent, 1)
        };
        self.rto.sample(sent, now, share);
        self.add_pacing_sample(now.since(sent));
        Some(now.since(sent))
    }

    /// Returns the time of sending of the segment that the timestamp echo names, in whole milliseconds; `None` if it is
    /// implausible.
    fn echoed_send_time(&self, now: Instant, segment: &Segment<P>) -> Option<Instant> {
        let ts = segment.options.timestamps.filter(|ts| self.options.timestamps && ts.echo != 0)?;
        let age = self.timestamp(now).wrapping_sub(ts.echo);
        let clock = now.as_nanos() / 1_000_000;
        (age <= i32::MAX as u32 && u64::from(age) <= clock)
            .then(|| Instant::from_millis(clock - u64::from(age)))
    }

    pub(super) fn apply_response(&mut self, now: Instant, response: Response) {
        self.record_reduction(now, self.rto.back_off_state());
        if response.event == ControlEvent::RecoveryStarted {
            self.stop_pacing();
            self.stats.fast_retransmits += 1;
            if let Some(rack) = &mut self.rack {
                rack.tlp.reset();
            }
            self.snd.rtt_probe = None;
            self.count_held_reduction(now, HeldReduction::FastRetransmit);
            self.open_suspect(now, Cause::FastRetransmit);
        }
        if let ControlEvent::EcnReaction(window) = response.event {
            self.stats.mark_reactions += 1;
            self.request_cwr();
            self.start_ecn_pause(now, window);
        }
        if response.back_off == BackoffAction::Reset && !self.recovery_policy(now).holds_everything() {
            self.rto.end_back_off();
        }
        self.snd.retransmit_first |= response.retransmission == ImmediateRetransmission::FirstUnacked;
        if !self.snd.outstanding() {
            self.timers.stop(Timer::Retransmit); // RFC 6298 §5.2
        } else if response.timer == TimerAction::Restart {
            self.arm_retransmit(now); // §5.3
        }
    }

    fn on_fin_acked(&mut self, now: Instant) {
        if self.snd.fin.is_some_and(|fin| self.snd.una > fin) {
            self.enter_state(now, self.state().after_fin_acked());
        }
    }
}
