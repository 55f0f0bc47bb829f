//! Time-based loss detection of an endpoint: RACK and tail loss probes (RFC 8985), and the choice of the next segment.

use super::congestion::{RecoveryAck, RecoveryPhase, SafeAck};
use super::endpoint::Endpoint;
use super::rack::{RackAck, ReorderingInput};
use super::sack_option::SackInfo;
use super::timer::Timer;
use super::tlp::{Flight, ProbeKind, TlpAck};
use hopline_core::{Instant, Payload};

/// Results of the processing of an acknowledgment.
#[derive(Clone, Copy, Debug)]
pub(super) struct AckSummary {
    /// Position up to which it acknowledges; below zero if that is before the first byte.
    pub(super) ack: i64,
    /// First unacknowledged position, before it.
    pub(super) una_before: u64,
    /// Bytes that it reports for the first time.
    pub(super) delivered: u64,
    /// Recovery phase before it.
    pub(super) phase_before: RecoveryPhase,
    /// `true` if it carries neither data nor a SACK option.
    pub(super) is_bare: bool,
}

impl<P: Payload> Endpoint<P> {
    /// Updates the delivery records before the reaction to an ACK (RFC 8985 §6.2, steps 1 to 3).
    pub(super) fn update_delivery_records(
        &mut self,
        now: Instant,
        una: u64,
        told: &SackInfo,
        echoed: Option<Instant>,
    ) {
        if let Some(rack) = &mut self.rack {
            rack.on_ack(RackAck {
                now,
                una,
                scoreboard: &self.scoreboard,
                blocks: told.blocks(),
                echoed_send_time: echoed,
            });
        }
    }

    /// Detects losses after the reaction to an ACK (RFC 8985 §6.2, steps 4 and 5, and §7.4).
    pub(super) fn detect_losses(&mut self, now: Instant, summary: AckSummary, sack: &SackInfo) {
        let Some(rack) = &mut self.rack else { return };
        let (una, phase) = (self.snd.una, self.control.phase());
        if sack.dsack.is_some() {
            rack.on_dsack(una, self.snd.nxt);
        } else if summary.phase_before != RecoveryPhase::Open && phase == RecoveryPhase::Open {
            rack.on_recovery_over();
        }
        let advanced = una > summary.una_before;
        let answer = TlpAck {
            ack: summary.ack.max(0) as u64,
            dsack: sack.dsack.map(|(_, right)| right),
            bare_duplicate: summary.is_bare && !advanced,
        };
        if let Some(probe) = rack.tlp.on_ack(answer) {
            self.stats.tail_losses += 1;
            let ack = self.control_input(now, summary.delivered);
            self.control.on_tail_loss(&self.config, probe, &ack);
            self.rate_control_on_tail_loss();
            self.record_reduction(now, self.rto.back_off_state());
        }
        let lost = self.run_loss_detection(now, summary.delivered);
        self.continue_recovery(now, summary);
        let progress = if advanced && lost == 0 { SafeAck::Yes } else { SafeAck::No };
        self.update_prr_window(summary.delivered, progress);
        if advanced || !self.may_probe_tail() {
            self.schedule_tail_probe(now);
        }
    }

    /// Starts the next recovery without a pause if a later loss is not repaired when recovery ends. Only for BBR, as in
    /// Linux (`tcp_time_to_recover`). A pause would cost BBR a round of packet conservation.
    fn continue_recovery(&mut self, now: Instant, summary: AckSummary) {
        let over = summary.phase_before != RecoveryPhase::Open && self.control.phase() == RecoveryPhase::Open;
        if !over || self.control.bbr().is_none() {
            return;
        }
        if self.rack.as_ref().is_some_and(|rack| rack.segments.is_repairing()) {
            let sacked = self.scoreboard.sacked_below(u64::MAX);
            let ack = self.control_input(now, summary.delivered);
            let response = self.control.on_loss(&self.config, &ack, sacked);
            self.apply_response(now, response);
        }
    }

    /// Adapts the window to the delivered data during recovery and after a mark, if PRR is in use (RFC 9937).
    fn update_prr_window(&mut self, delivered: u64, progress: SafeAck) {
        let Some(rack) = &self.rack else { return };
        let ack = RecoveryAck { delivered, pipe: rack.segments.in_flight(), safe_ack: progress };
        if self.control.phase() == RecoveryPhase::Recovery && (delivered > 0 || progress == SafeAck::No) {
            self.control.on_recovery_ack(ack);
        } else if self.control.is_in_cwr() && delivered > 0 {
            self.control.on_ack_in_cwr(ack);
        }
    }

    /// Looks for losses (RFC 8985 §6.2, step 5). Returns the number of segments found lost.
    fn run_loss_detection(&mut self, now: Instant, delivered: u64) -> u64 {
        let Some(rack) = &mut self.rack else { return 0 };
        let circumstances = ReorderingInput {
            phase: self.control.phase(),
            srtt: self.rto.srtt(),
            dup_thresh: self.config.dup_ack_threshold,
        };
        let found = rack.detect(now, circumstances);
        self.stats.rack_losses += found.lost;
        match found.recheck_at {
            Some(at) => {
                self.timers.set(Timer::Reordering, at);
                // RFC 8985 §8: the reordering timer comes before the retransmission timer.
                if self.timers.get(Timer::Retransmit).is_some_and(|rto| rto < at) {
                    self.timers.set(Timer::Retransmit, at);
                }
            }
            None => self.timers.stop(Timer::Reordering),
        }
        if found.lost > 0 {
            self.update_hold(now);
            let sacked = self.scoreboard.sacked_below(u64::MAX);
            let response = self.control.on_loss(&self.config, &self.control_input(now, delivered), sacked);
            self.apply_response(now, response);
        }
        found.lost
    }

    /// Processes an expiry of the reordering timer.
    pub(super) fn on_reordering_timeout(&mut self, now: Instant) {
        if self.run_loss_detection(now, 0) > 0 {
            self.update_prr_window(0, SafeAck::No);
        }
        self.report_losses(now);
        if self.snd.outstanding() {
            self.timers.set(Timer::Retransmit, now + self.rto.timeout());
        }
    }

    /// Marks losses at an expiry of the retransmission timer (RFC 8985 §6.3). Records are kept, and only lost data are
    /// sent again.
    pub(super) fn mark_losses_on_timeout(&mut self, now: Instant) {
        let Some(rack) = &mut self.rack else { return };
        self.stats.rack_losses += rack.on_timeout(now, self.snd.una, self.rto.srtt());
        self.snd.retransmit_first = true;
        self.timers.stop(Timer::Reordering);
        self.timers.stop(Timer::TailProbe);
        self.rate_control_on_timeout(now);
    }

    /// Records the transmission of `at..after`.
    pub(super) fn record_transmission(&mut self, now: Instant, at: u64, after: u64) {
        let Some(rack) = &mut self.rack else { return };
        rack.on_sent(at, after, now);
        self.report_cwnd_limited();
        if after == self.snd.nxt {
            self.schedule_tail_probe(now);
        }
    }

    /// Returns whether a tail loss probe may be scheduled: not in recovery, and not while SACK blocks report holes
    /// (RFC 8985 §7.2).
    fn may_probe_tail(&self) -> bool {
        let Some(rack) = &self.rack else { return false };
        let waits = !rack.segments.is_empty() && !rack.segments.has_sacked();
        waits && rack.tlp.may_probe() && self.control.phase() == RecoveryPhase::Open
    }

    fn schedule_tail_probe(&mut self, now: Instant) {
        self.timers.stop(Timer::TailProbe);
        let Some(rack) = self.rack.as_ref().filter(|_| self.may_probe_tail()) else { return };
        let one = rack.segments.in_flight() <= u64::from(self.snd.mss);
        let flight = if one { Flight::OneSegment } else { Flight::More };
        if let Some(at) =
            rack.tlp.probe_timeout(now, self.rto.srtt(), flight, self.timers.get(Timer::Retransmit))
        {
            self.timers.set(Timer::TailProbe, at);
        }
    }

    /// Processes an expiry of the probe timer (RFC 8985 §7.3).
    pub(super) fn on_probe_timeout(&mut self, now: Instant) {
        let may = self.may_probe_tail();
        if let Some(rack) = &mut self.rack {
            rack.tlp.pending = may;
        }
        if self.snd.outstanding() {
            self.timers.set(Timer::Retransmit, now + self.rto.timeout());
        }
    }

    /// Chooses the position and length of the next data segment: a probe, lost data, or new data (`NextSeg` of
    /// RFC 6675 §4, with known losses).
    pub(super) fn choose_segment_by_rack(&mut self, now: Instant) -> Option<(u64, u64)> {
        let rack = self.rack.as_ref()?;
        if rack.tlp.pending {
            return self.choose_tail_probe();
        }
        let pipe = rack.segments.in_flight();
        if let Some(lost) = rack.segments.first_lost() {
            let len = self.data_within(lost.start, lost.end);
            // RFC 6675 §5 (4.3): the first retransmission is sent even if the pipe is full.
            let may = self.snd.retransmit_first || self.fits_cwnd(pipe, len);
            self.snd.retransmit_first &= !may;
            return may.then_some((lost.start, len));
        }
        self.snd.retransmit_first = false;
        if self.snd.nxt == self.snd.end() || self.is_in_ecn_pause() {
            return None;
        }
        self.restart_if_idle(now);
        let next = self.next_segment_len().filter(|&len| self.fits_cwnd(pipe, len));
        next.map(|len| (self.snd.nxt, len)).or_else(|| self.choose_fin())
    }

    /// Returns whether a segment fits into the window. Segments are never cut to fit `cwnd`; `cwnd` is at least one
    /// segment.
    fn fits_cwnd(&self, pipe: u64, len: u64) -> bool {
        pipe == 0 || pipe + len <= u64::from(self.control.cwnd())
    }

    /// Returns the data bytes of a segment that starts at `from` and does not go beyond `to`.
    fn data_within(&self, from: u64, to: u64) -> u64 {
        let data = to.min(self.snd.queue.end()).saturating_sub(from);
        data.min(self.full_segment_len()).min(self.room_in_record(from))
    }

    /// Chooses the segment of a tail loss probe: new data if the peer's window takes them, regardless of `cwnd`;
    /// otherwise the last segment again (RFC 8985 §7.3).
    fn choose_tail_probe(&mut self) -> Option<(u64, u64)> {
        let nxt = self.snd.nxt;
        let new = self.data_within(nxt, self.snd.queue.end());
        let fits_peer_window = new > 0 && nxt - self.snd.una + new <= self.snd.window;
        let full = self.full_segment_len();
        let rack = self.rack.as_mut()?;
        rack.tlp.pending = false;
        let (last, flight) = (rack.segments.last()?, rack.segments.in_flight());
        self.stats.tail_probes += 1;
        if fits_peer_window {
            let end = nxt + new + u64::from(self.snd.fin == Some(nxt + new));
            rack.tlp.on_probe(ProbeKind::NewData, end, flight);
            return Some((nxt, new));
        }
        rack.tlp.on_probe(ProbeKind::Retransmission, nxt, flight);
        let data_end = last.end.min(self.snd.queue.end());
        let at = last.start.max(data_end.saturating_sub(full)).min(data_end);
        rack.tlp.retransmit_at = Some(at);
        Some((at, data_end - at))
    }
}
