//! Expiry of timers.

use super::congestion::hold::Hold;
use super::congestion::undo::Cause;
use super::congestion::{Outstanding, Phase};
use super::door::Spared;
use super::endpoint::{Endpoint, Sender};
use super::frto::Series;
use super::receive::OwedAck;
use super::rto::BackOff;
use super::stance::{Patience, Resent, Timeout};
use super::timer::Timer;
use crate::connection::{CloseReason, State};
use hopline_core::{Duration, Instant, Payload};

impl<P: Payload> Endpoint<P> {
    pub(super) fn on_time(&mut self, now: Instant) {
        self.check_application_limit();
        while let Some(timer) = self.timers.take_expired(now) {
            match timer {
                Timer::TailProbe => self.on_tail_probe(now),
                Timer::Reordering => self.on_reordering(now),
                Timer::Retransmit => self.on_retransmit(now),
                Timer::DelayedAck => self.rcv.owed = OwedAck::Now,
                Timer::Persist => self.on_persist(now),
                Timer::TimeWait => self.finish(CloseReason::Finished),
                Timer::Release | Timer::MarkPause => {} // what waited is chosen when the outputs are drained
                Timer::Route => self.on_route_timer(now),
                Timer::KeepAlive => self.on_keep_alive(now),
            }
        }
    }

    /// Processes an expiry of the retransmission timer (RFC 6298 §5.4–5.7).
    fn on_retransmit(&mut self, now: Instant) {
        let handshake = matches!(self.state(), State::SynSent | State::SynReceived);
        let limit = if handshake { self.config.syn_retries } else { self.config.data_retries };
        let stance = self.stance(now);
        let gives_up = match stance.patience {
            Patience::Timeouts => limit.is_some_and(|n| self.snd.retries >= n),
            Patience::Time => self.is_out_of_patience(now),
        };
        if gives_up {
            return self.finish(CloseReason::TimedOut);
        }
        let back_off = self.rto.back_off_state();
        match stance.timeout {
            Timeout::Stays if !handshake => self.note_fixed_rto(now),
            Timeout::Stays | Timeout::Doubles => self.rto.back_off(),
        }
        self.snd.retries += 1;
        self.stats.timeouts += 1;
        self.snd.timed = None;
        if handshake {
            self.snd.syn_resent = true;
            return self.send_syn(now);
        }
        if stance.resends == Resent::FirstAlone {
            self.count_spared(now, Spared::Timeout);
            self.snd.resend_first = true;
        } else {
            self.reduce_on_timeout(now, stance.hold, back_off);
            self.resend_on_timeout(now);
        }
        self.arm_retransmit(now);
    }

    /// Reduces the window for a time-out (RFC 5681 §3.1, (4)), unless it is held. The old state is kept until the
    /// time-out is known to be genuine.
    fn reduce_on_timeout(&mut self, now: Instant, hold: Hold, back_off: BackOff) {
        self.stop_pacing();
        self.timers.stop(Timer::MarkPause);
        self.control.set_hold(now, hold);
        self.count_spared(now, Spared::Timeout);
        let series = if self.control.phase() == Phase::Loss { Series::Continued } else { Series::New };
        let Sender { una, nxt, max, .. } = self.snd;
        let sacked = self.board.sacked_below(nxt);
        let round_trip = self.rto.srtt().unwrap_or(Duration::ZERO);
        self.control.on_timeout(&self.config, Outstanding { una, nxt, max, sacked, now, round_trip });
        self.remember_reduction(now, back_off);
        self.suspect(now, Cause::Timeout);
        self.start_frto(series);
    }

    /// Retransmits the earliest segment (RFC 6298 §5.4), and then all data that count as lost.
    fn resend_on_timeout(&mut self, now: Instant) {
        if self.rack.is_some() {
            self.mark_losses_on_timeout(now);
        } else {
            self.snd.nxt = self.snd.una;
            self.snd.resend_first = false;
            self.board.clear(); // RFC 2018 §8
        }
    }

    /// Processes an expiry of the persist timer (RFC 9293 §3.8.6.1).
    fn on_persist(&mut self, now: Instant) {
        if self.config.data_retries.is_some_and(|n| self.snd.retries >= n) {
            return self.finish(CloseReason::TimedOut);
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
