//! Expiry of timers.

use super::block::TransmissionPurpose;
use super::config::SimultaneousTimeouts;
use super::endpoint::Endpoint;
use super::state::{EarlySyn, PeerConfirmed};
use super::timer::Timer;
use crate::connection::{CloseReason, State};
use crate::lifecycle::Role;
use hopline_core::{Instant, Payload};

impl<P: Payload> Endpoint<P> {
    pub(super) fn handle_timers(&mut self, now: Instant) {
        while let Some(timer) = self.timers.take_expired(now) {
            match timer {
                Timer::Open => self.retransmit_opening(now),
                Timer::Retransmit => self.time_out_segments(now),
                Timer::BlockFill => self.form_block(now),
                Timer::DelayedAck => {
                    self.pending_segments.ack = self.rcv.has_pending() || self.pending_segments.ack
                }
                Timer::Probe => self.probe_window(),
                Timer::KeepAlive => self.on_keep_alive_timeout(now),
                Timer::Silence => self.on_silence_timeout(now),
                Timer::Release => {}
                Timer::TimeWait => self.terminate(CloseReason::Finished),
            }
        }
    }

    /// Retransmits a SYN, or the segment that completes the handshake, if it was not answered.
    fn retransmit_opening(&mut self, now: Instant) {
        let opening = matches!(self.state(), State::SynSent | State::SynReceived);
        if core::mem::replace(&mut self.opening.early_syn, EarlySyn::No) == EarlySyn::Yes && opening {
            return self.send_syn(now);
        }
        // Once the user has a connection, only silence ends it.
        if opening && self.config.syn_retries.is_some_and(|most| self.opening.retries >= most) {
            return self.terminate(CloseReason::TimedOut);
        }
        self.opening.retries += 1;
        self.opening.syn_sent = None;
        self.rto.back_off();
        if opening {
            self.send_syn(now);
            // The SYN that we answer may have been forged: the one we call must not wait for the forger.
            self.pending_segments.syn_without_tag = self.state() == State::SynReceived
                && self.lifecycle.role() == Role::Active
                && self.tags.local.is_some();
        } else {
            self.pending_segments.ack = true;
            self.timers.set(Timer::Open, now + self.rto.timeout());
        }
    }

    /// Removes timed-out segments from the window, as if they were acknowledged. They are not sent again before the next
    /// round (§3.2).
    fn time_out_segments(&mut self, now: Instant) {
        let mut counted = false;
        while let Some(purpose) = self.snd.block.as_mut().and_then(|block| block.take_timed_out(now)) {
            self.stats.timeouts += 1;
            if purpose == TransmissionPurpose::Probe && self.window.backs_off() {
                self.rto.back_off();
            }
            if !counted || self.config.failures.simultaneous == SimultaneousTimeouts::Each {
                let change = self.window.on_timeout();
                self.apply_path_change(change);
                counted = true;
            }
        }
        self.arm_retransmit();
    }

    /// Probes for the peer's window, which may have opened while the update was lost.
    fn probe_window(&mut self) {
        self.snd.probes = self.snd.probes.saturating_add(1);
        self.send_probe();
    }

    fn on_keep_alive_timeout(&mut self, now: Instant) {
        let Some(interval) = self.config.keep_alive else { return };
        let due = self.last_heard + interval;
        if now < due {
            return self.timers.set(Timer::KeepAlive, due);
        }
        self.timers.set(Timer::KeepAlive, now + interval);
        // A block in transmission is question enough.
        if self.snd.block.is_none() {
            self.start_waiting_for_peer(now);
            self.is_probed = true;
            self.set_silence_timer();
            self.send_probe();
        }
    }

    fn send_probe(&mut self) {
        self.stats.probes += 1;
        self.pending_segments.probe = true;
    }

    /// Returns whether the peer has to answer.
    fn awaits_peer(&self) -> bool {
        self.snd.block.is_some() || self.opening.confirmed == PeerConfirmed::No || self.is_probed
    }

    /// Starts the wait for an answer at `now`, unless the peer had to answer before. Call before it has to.
    pub(super) fn start_waiting_for_peer(&mut self, now: Instant) {
        if !self.awaits_peer() {
            self.waiting_since = now;
        }
    }

    /// Sets the silence timer if the peer has to answer. It does not move with each segment of the peer: at its expiry,
    /// the time of the last segment is checked.
    pub(super) fn set_silence_timer(&mut self) {
        if let Some(at) = self.silence_deadline()
            && !self.timers.is_set(Timer::Silence)
        {
            self.timers.set(Timer::Silence, at);
        }
    }

    fn on_silence_timeout(&mut self, now: Instant) {
        match self.silence_deadline() {
            Some(at) if at <= now => self.terminate(CloseReason::TimedOut),
            Some(at) => self.timers.set(Timer::Silence, at),
            None => {}
        }
    }

    /// Returns the time at which the peer has been silent for too long; `None` if it need not answer.
    fn silence_deadline(&self) -> Option<Instant> {
        let limit = self.config.silence_limit.filter(|_| self.awaits_peer())?;
        Some(self.last_heard.max(self.waiting_since) + limit)
    }
}
