//! Expiry of timers.

use super::congestion::undo::Cause;
use super::congestion::window_hold::WindowHold;
use super::congestion::{Outstanding, RecoveryPhase};
use super::door::HeldReduction;
use super::endpoint::{Endpoint, SendHalf};
use super::frto::TimeoutSeries;
use super::receive::PendingAck;
use super::recovery_policy::{BackoffPolicy, GiveUpRule, RetransmissionPolicy};
use super::rto::BackoffState;
use super::timer::Timer;
use crate::connection::{CloseReason, State};
use hopline_core::{Duration, Instant, Payload};

impl<P: Payload> Endpoint<P> {
    pub(super) fn handle_timers(&mut self, now: Instant) {
        self.check_if_application_limited();
        while let Some(timer) = self.timers.take_expired(now) {
            match timer {
                Timer::TailProbe => self.on_probe_timeout(now),
                Timer::Reordering => self.on_reordering_timeout(now),
                Timer::Retransmit => self.on_retransmission_timeout(now),
                Timer::DelayedAck => {
                    self.rcv.quick.on_delay_over();
                    self.rcv.pending_ack = PendingAck::Now;
                }
                Timer::Persist => self.on_persist_timeout(now),
                Timer::TimeWait => self.terminate(CloseReason::Finished),
                Timer::PacingRelease | Timer::EcnPause => {} // what waited is chosen when the outputs are drained
                Timer::Route => self.on_route_timer(now),
                Timer::KeepAlive => self.on_keep_alive_timeout(now),
                Timer::User => self.on_user_timeout(now),
            }
        }
    }

    /// Processes an expiry of the retransmission timer (RFC 6298 §5.4–5.7).
    fn on_retransmission_timeout(&mut self, now: Instant) {
        let handshake = matches!(self.state(), State::SynSent | State::SynReceived);
        let limit = if handshake { self.config.syn_retries } else { self.config.data_retries };
        let stance = self.recovery_policy(now);
        let gives_up = match stance.give_up {
            GiveUpRule::ByCount => limit.is_some_and(|n| self.snd.retries >= n),
            GiveUpRule::ByTime => self.has_given_up_on_peer(now),
        };
        if gives_up {
            return self.terminate(CloseReason::TimedOut);
        }
        let back_off = self.rto.back_off_state();
        match stance.backoff {
            BackoffPolicy::Constant if !handshake => self.record_fixed_rto(now),
            BackoffPolicy::Constant | BackoffPolicy::Exponential => self.rto.back_off(),
        }
        self.snd.retries += 1;
        self.stats.timeouts += 1;
        self.snd.rtt_probe = None;
        if handshake {
            self.snd.syn_retransmissions = self.snd.syn_retransmissions.saturating_add(1);
            return self.send_syn(now);
        }
        if stance.retransmissions == RetransmissionPolicy::FirstSegmentOnly {
            self.count_held_reduction(now, HeldReduction::Timeout);
            self.snd.retransmit_first = true;
        } else {
            self.reduce_on_timeout(now, stance.hold, back_off);
            self.retransmit_on_timeout(now);
        }
        self.arm_retransmit(now);
    }

    /// Reduces the window for a time-out (RFC 5681 §3.1, (4)), unless it is held. The old state is kept until the
    /// time-out is known to be genuine.
    fn reduce_on_timeout(&mut self, now: Instant, hold: WindowHold, back_off: BackoffState) {
        self.stop_pacing();
        self.timers.stop(Timer::EcnPause);
        self.control.set_hold(now, hold);
        self.count_held_reduction(now, HeldReduction::Timeout);
        let series = if self.control.phase() == RecoveryPhase::Loss {
            TimeoutSeries::Repeated
        } else {
            TimeoutSeries::First
        };
        let SendHalf { una, nxt, max, .. } = self.snd;
        let sacked = self.scoreboard.sacked_below(nxt);
        let round_trip = self.rto.srtt().unwrap_or(Duration::ZERO);
        self.control.on_timeout(&self.config, Outstanding { una, nxt, max, sacked, now, round_trip });
        self.record_reduction(now, back_off);
        self.open_suspect(now, Cause::Timeout);
        self.start_frto(series);
    }

    /// Retransmits the earliest segment (RFC 6298 §5.4), and then all data that count as lost.
    fn retransmit_on_timeout(&mut self, now: Instant) {
        if self.rack.is_some() {
            self.mark_losses_on_timeout(now);
        } else {
            self.snd.nxt = self.snd.una;
            self.snd.retransmit_first = false;
            self.scoreboard.clear(); // RFC 2018 §8
        }
    }

    /// Processes an expiry of the persist timer (RFC 9293 §3.8.6.1).
    fn on_persist_timeout(&mut self, now: Instant) {
        if self.config.data_retries.is_some_and(|n| self.snd.retries >= n) {
            return self.terminate(CloseReason::TimedOut);
        }
        if self.snd.una >= self.snd.end() {
            return;
        }
        self.snd.retries += 1;
        self.snd.probes += 1;
        self.snd.probe_pending = true;
        let wait = self.rto.timeout().saturating_mul(1 << self.snd.probes.min(16)).min(self.config.rto.max);
        self.timers.set(Timer::Persist, now + wait);
    }
}
