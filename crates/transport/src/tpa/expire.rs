//! Expiry of timers.

use super::block::Purpose;
use super::config::Simultaneous;
use super::endpoint::Endpoint;
use super::parts::{Confirmed, Hurry};
use super::timer::Timer;
use crate::connection::{CloseReason, State};
use crate::lifecycle::Role;
use hopline_core::{Instant, Payload};

impl<P: Payload> Endpoint<P> {
    pub(super) fn on_time(&mut self, now: Instant) {
        while let Some(timer) = self.timers.take_expired(now) {
            match timer {
                Timer::Open => self.open_again(now),
                Timer::Retransmit => self.time_out_segments(now),
                Timer::BlockFill => self.form_block(now),
                Timer::DelayedAck => self.owed.ack = self.rcv.has_pending() || self.owed.ack,
                Timer::Probe => self.ask_for_window(),
                Timer::KeepAlive => self.keep_alive(now),
                Timer::Silence => self.on_silence(now),
                Timer::Release => {}
                Timer::TimeWait => self.finish(CloseReason::Finished),
            }
        }
    }

    /// Retransmits a SYN, or the segment that completes the handshake, if it was not answered.
    fn open_again(&mut self, now: Instant) {
        let opening = matches!(self.state(), State::SynSent | State::SynReceived);
        if core::mem::replace(&mut self.opening.hurry, Hurry::No) == Hurry::Yes && opening {
            return self.send_syn(now);
        }
        // Once the user has a connection, only silence ends it.
        if opening && self.config.syn_retries.is_some_and(|most| self.opening.retries >= most) {
            return self.finish(CloseReason::TimedOut);
        }
        self.opening.retries += 1;
        self.opening.syn_sent = None;
        self.rto.back_off();
        if opening {
            self.send_syn(now);
            // The SYN that we answer may have been forged: the one we call must not wait for the forger.
            self.owed.call = self.state() == State::SynReceived
                && self.lifecycle.role() == Role::Active
                && self.tags.local.is_some();
        } else {
            self.owed.ack = true;
            self.timers.set(Timer::Open, now + self.rto.timeout());
        }
    }

    /// Removes timed-out segments from the window, as if they were acknowledged. They are not sent again before the next
    /// round (§3.2).
    fn time_out_segments(&mut self, now: Instant) {
        let mut counted = false;
        while let Some(purpose) = self.snd.block.as_mut().and_then(|block| block.take_timed_out(now)) {
            self.stats.timeouts += 1;
            if purpose == Purpose::Probe && self.window.backs_off() {
                self.rto.back_off();
            }
            if !counted || self.config.failures.simultaneous == Simultaneous::Each {
                let change = self.window.timed_out();
                self.follow(change);
                counted = true;
            }
        }
        self.arm_retransmit();
    }

    /// Probes for the peer's window, which may have opened while the update was lost.
    fn ask_for_window(&mut self) {
        self.snd.questions = self.snd.questions.saturating_add(1);
        self.ask();
    }

    fn keep_alive(&mut self, now: Instant) {
        let Some(interval) = self.config.keep_alive else { return };
        let due = self.heard + interval;
        if now < due {
            return self.timers.set(Timer::KeepAlive, due);
        }
        self.timers.set(Timer::KeepAlive, now + interval);
        // A block in transmission is question enough.
        if self.snd.block.is_none() {
            self.owes_from(now);
            self.asked = true;
            self.watch_silence();
            self.ask();
        }
    }

    fn ask(&mut self) {
        self.stats.probes += 1;
        self.owed.question = true;
    }

    /// Returns whether the peer has to answer.
    fn awaits_peer(&self) -> bool {
        self.snd.block.is_some() || self.opening.confirmed == Confirmed::NotYet || self.asked
    }

    /// Starts the wait for an answer at `now`, unless the peer had to answer before. Call before it has to.
    pub(super) fn owes_from(&mut self, now: Instant) {
        if !self.awaits_peer() {
            self.owing_since = now;
        }
    }

    /// Sets the silence timer if the peer has to answer. It does not move with each segment of the peer: at its expiry,
    /// the time of the last segment is checked.
    pub(super) fn watch_silence(&mut self) {
        if let Some(at) = self.silence_ends()
            && !self.timers.is_set(Timer::Silence)
        {
            self.timers.set(Timer::Silence, at);
        }
    }

    fn on_silence(&mut self, now: Instant) {
        match self.silence_ends() {
            Some(at) if at <= now => self.finish(CloseReason::TimedOut),
            Some(at) => self.timers.set(Timer::Silence, at),
            None => {}
        }
    }

    /// Returns the time at which the peer has been silent for too long; `None` if it need not answer.
    fn silence_ends(&self) -> Option<Instant> {
        let limit = self.config.silence_limit.filter(|_| self.awaits_peer())?;
        Some(self.heard.max(self.owing_since) + limit)
    }
}
