//! Expiry of timers.

use super::controller::Controller;
use super::endpoint::{Endpoint, PathState};
use super::timer::Timer;
use crate::connection::{CloseReason, State};
use hopline_core::{Duration, Instant, Payload};

/// Number of consecutive unanswered probes that freeze a path: only probes are sent then. The first one is for the tail
/// of a flight.
pub(super) const FROZEN_PROBES: u32 = 2;

impl<P: Payload, C: Controller> Endpoint<P, C> {
    pub(super) fn handle_timers(&mut self, now: Instant) {
        while let Some(timer) = self.timers.take_expired(now) {
            match timer {
                Timer::Open => self.retransmit_opening(now),
                Timer::LossDetection => self.on_loss_detection_timeout(now),
                Timer::Probe => self.on_probe_timeout(now),
                Timer::Ack => self.pending.ack |= self.rcv.has_pending(),
                Timer::PacingRelease => {}
                Timer::KeepAlive => self.on_keep_alive_timeout(now),
                Timer::Silence => self.on_silence_timeout(now),
                Timer::TimeWait => self.terminate(CloseReason::Finished),
            }
        }
    }

    fn retransmit_opening(&mut self, now: Instant) {
        if !matches!(self.state(), State::SynSent | State::SynReceived) {
            return;
        }
        if self.config.opening_retries.is_some_and(|most| self.openings_sent > most) {
            return self.terminate(CloseReason::TimedOut);
        }
        self.send_opening(now);
    }

    fn on_loss_detection_timeout(&mut self, now: Instant) {
        let lost = self.detect_losses(now);
        self.control.on_loss(lost);
    }

    /// Returns the time-out: longest wait for an acknowledgment of packets in flight.
    pub(super) fn probe_timeout(&self) -> Duration {
        let config = &self.config.silence;
        let Some(srtt) = self.delays.srtt() else { return config.initial };
        let usual = srtt
            + self.delays.deviation().saturating_mul(4)
            + self.peer_ack_delay()
            + self.reordering_window();
        usual.max(config.min)
    }

    /// Returns the longest acknowledgment delay of the peer.
    fn peer_ack_delay(&self) -> Duration {
        let ack = &self.config.ack;
        if !self.may_batch_acks() {
            return ack.delay;
        }
        let together = self.packets_per_ack();
        let all_left = self.snd.outstanding.packets() >= together.into();
        self.control
            .sending_time(together)
            .filter(|_| all_left)
            .map_or(ack.relaxed_delay, |time| time.min(ack.relaxed_delay))
    }

    /// Sets the timer for a probe about the packets in flight.
    pub(super) fn set_probe_timer(&mut self, now: Instant) {
        if self.snd.outstanding.packets() == 0 && !self.is_window_blocked() {
            return self.timers.stop(Timer::Probe);
        }
        let patience = match self.path {
            PathState::Alive => self.probe_timeout(),
            PathState::Silent { probes, .. } => {
                let backed_off = self.probe_timeout().saturating_mul(1 << probes.min(16));
                backed_off.min(self.config.silence.probe_max.max(self.probe_timeout()))
            }
        };
        self.timers.set(Timer::Probe, now + patience);
    }

    fn on_probe_timeout(&mut self, now: Instant) {
        if !self.may_request_answer() {
            return;
        }
        self.stats.timeouts += 1;
        self.path = match self.path {
            PathState::Alive => PathState::Silent { since: now, probes: 1 },
            PathState::Silent { since, probes } => {
                PathState::Silent { since, probes: probes.saturating_add(1) }
            }
        };
        if let PathState::Silent { probes, .. } = self.path {
            self.stats.freezes += u64::from(probes == FROZEN_PROBES);
            self.stats.probes += u64::from(probes >= FROZEN_PROBES);
        }
        self.pending.probe = true;
    }

    /// Freezes the path after a notification of a route failure.
    pub(super) fn freeze(&mut self, now: Instant) {
        self.path = PathState::Silent { since: now, probes: FROZEN_PROBES };
        self.stats.freezes += 1;
        self.set_probe_timer(now);
    }

    fn on_keep_alive_timeout(&mut self, now: Instant) {
        let Some(interval) = self.config.keep_alive else { return };
        if self.state() == State::TimeWait {
            // The peer may not know that we have received everything, or our current address.
            self.pending.ack = true;
        } else if now.since(self.last_heard) >= interval {
            self.pending.probe = self.may_request_answer();
        }
        self.set_keep_alive_timer(now);
    }

    pub(super) fn set_keep_alive_timer(&mut self, now: Instant) {
        if let Some(interval) = self.config.keep_alive {
            self.timers.set(Timer::KeepAlive, now + interval);
        }
    }

    fn on_silence_timeout(&mut self, now: Instant) {
        let Some(limit) = self.config.silence.limit else { return };
        if self.snd.outstanding.packets() == 0 && !self.is_window_blocked() && self.snd.lost.is_empty() {
            return;
        }
        let since = self.last_heard.max(self.waiting_since);
        if now.since(since) >= limit {
            return self.terminate(CloseReason::TimedOut);
        }
        self.timers.set(Timer::Silence, since + limit);
    }
}
