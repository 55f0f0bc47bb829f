//! Expiry of timers.

use super::controller::Controller;
use super::endpoint::{Endpoint, Path};
use super::timer::Timer;
use crate::connection::{CloseReason, State};
use hopline_core::{Duration, Instant, Payload};

/// Number of consecutive unanswered probes that freeze a path: only probes are sent then. The first one is for the tail
/// of a flight.
pub(super) const FROZEN: u32 = 2;

impl<P: Payload, C: Controller> Endpoint<P, C> {
    pub(super) fn on_time(&mut self, now: Instant) {
        while let Some(timer) = self.timers.take_expired(now) {
            match timer {
                Timer::Open => self.open_again(now),
                Timer::Detect => self.detect_later(now),
                Timer::Probe => self.probe(now),
                Timer::Ack => self.owed.ack |= self.rcv.has_pending(),
                Timer::Release => {}
                Timer::KeepAlive => self.keep_alive(now),
                Timer::Silence => self.on_silence(now),
                Timer::TimeWait => self.finish(CloseReason::Finished),
            }
        }
    }

    fn open_again(&mut self, now: Instant) {
        if !matches!(self.state(), State::SynSent | State::SynReceived) {
            return;
        }
        if self.config.opening_retries.is_some_and(|most| self.openings > most) {
            return self.finish(CloseReason::TimedOut);
        }
        self.send_opening(now);
    }

    fn detect_later(&mut self, now: Instant) {
        let lost = self.detect(now);
        self.control.on_loss(lost);
    }

    /// Returns the time-out: longest wait for an acknowledgment of packets in flight.
    pub(super) fn timeout(&self) -> Duration {
        let config = &self.config.silence;
        let Some(srtt) = self.times.srtt() else { return config.initial };
        let usual = srtt + self.times.deviation().saturating_mul(4) + self.kept() + self.reordering();
        usual.max(config.min)
    }

    /// Returns the longest acknowledgment delay of the peer.
    fn kept(&self) -> Duration {
        let ack = &self.config.ack;
        if !self.is_calm() {
            return ack.delay;
        }
        let together = self.together();
        let all_left = self.snd.outstanding.packets() >= together.into();
        self.control.sending_time(together).filter(|_| all_left).map_or(ack.late, |time| time.min(ack.late))
    }

    /// Sets the timer for a probe about the packets in flight.
    pub(super) fn watch_path(&mut self, now: Instant) {
        if self.snd.outstanding.packets() == 0 && !self.waits_for_room() {
            return self.timers.stop(Timer::Probe);
        }
        let patience = match self.path {
            Path::Answers => self.timeout(),
            Path::Silent { probes, .. } => {
                let backed_off = self.timeout().saturating_mul(1 << probes.min(16));
                backed_off.min(self.config.silence.probe_max.max(self.timeout()))
            }
        };
        self.timers.set(Timer::Probe, now + patience);
    }

    fn probe(&mut self, now: Instant) {
        if !self.may_ask() {
            return;
        }
        self.stats.timeouts += 1;
        self.path = match self.path {
            Path::Answers => Path::Silent { since: now, probes: 1 },
            Path::Silent { since, probes } => Path::Silent { since, probes: probes.saturating_add(1) },
        };
        if let Path::Silent { probes, .. } = self.path {
            self.stats.freezes += u64::from(probes == FROZEN);
            self.stats.probes += u64::from(probes >= FROZEN);
        }
        self.owed.probe = true;
    }

    /// Freezes the path after a notification of a route failure.
    pub(super) fn freeze(&mut self, now: Instant) {
        self.path = Path::Silent { since: now, probes: FROZEN };
        self.stats.freezes += 1;
        self.watch_path(now);
    }

    fn keep_alive(&mut self, now: Instant) {
        let Some(interval) = self.config.keep_alive else { return };
        if self.state() == State::TimeWait {
            // The peer may not know that we have received everything, or our current address.
            self.owed.ack = true;
        } else if now.since(self.heard) >= interval {
            self.owed.probe = self.may_ask();
        }
        self.set_keep_alive(now);
    }

    pub(super) fn set_keep_alive(&mut self, now: Instant) {
        if let Some(interval) = self.config.keep_alive {
            self.timers.set(Timer::KeepAlive, now + interval);
        }
    }

    fn on_silence(&mut self, now: Instant) {
        let Some(limit) = self.config.silence.limit else { return };
        if self.snd.outstanding.packets() == 0 && !self.waits_for_room() && self.snd.lost.is_empty() {
            return;
        }
        let since = self.heard.max(self.owing_since);
        if now.since(since) >= limit {
            return self.finish(CloseReason::TimedOut);
        }
        self.timers.set(Timer::Silence, since + limit);
    }
}
