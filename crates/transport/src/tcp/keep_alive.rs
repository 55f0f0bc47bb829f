//! Keep-alive of an idle connection (RFC 9293 §3.8.4).

use super::endpoint::Endpoint;
use super::timer::Timer;
use crate::connection::CloseReason;
use hopline_core::{Duration, Instant, Payload, settings};
use hopline_wire::tcp::{Flags, Segment};

settings! {
    /// Times of keep-alive. RFC 9293 §3.8.4 has a connection without it unless the application asks for it. Start from
    /// [`Self::DEFAULT`] and use the setters.
    ///
    /// # Example
    ///
    /// ```
    /// use hopline_core::{Duration, Instant, Length, Seq32};
    /// use hopline_transport::tcp::{Config, Endpoint, KeepAlive, Ports};
    ///
    /// let ports = Ports { local: 40_000, remote: 80 };
    /// let mut endpoint = Endpoint::<Length>::new(Config::modern(), ports, Seq32(1)).expect("valid");
    /// let keep_alive = KeepAlive::DEFAULT.with_idle(Duration::from_secs(60));
    /// endpoint.set_keep_alive(Instant::ZERO, Some(keep_alive));
    /// ```
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct KeepAlive {
        /// Time without a segment of the peer after which the first probe leaves. Above zero, default two hours
        /// (MUST-28: no less).
        idle, with_idle: Duration as into,
        /// Time between two probes. Above zero, default 75 s.
        interval, with_interval: Duration as into,
        /// Probes without an answer after which the connection ends, one interval after the last. At least 1, default 9.
        probes, with_probes: u32,
    }
}

impl KeepAlive {
    /// Two hours, then nine probes, 75 s apart: the least that RFC 9293 permits as a default, and the default of Linux.
    pub const DEFAULT: Self =
        Self { idle: Duration::from_secs(2 * 3600), interval: Duration::from_secs(75), probes: 9 };
}

/// Keep-alive of one connection.
#[derive(Clone, Debug)]
pub(super) struct KeepAliveState {
    config: KeepAlive,
    /// Arrival of the last acceptable segment.
    last_heard: Instant,
    /// Probes sent since.
    unanswered_probes: u32,
    /// A probe is to leave now.
    probe_pending: bool,
}

impl<P: Payload> Endpoint<P> {
    /// Turns keep-alive on or, with `None`, off. A peer that does not answer its probes ends the connection as
    /// [timed out](CloseReason::TimedOut).
    pub fn set_keep_alive(&mut self, now: Instant, config: Option<KeepAlive>) {
        self.timers.stop(Timer::KeepAlive);
        self.keep_alive = config.map(|config| {
            Box::new(KeepAliveState { config, last_heard: now, unanswered_probes: 0, probe_pending: false })
        });
        if self.state().is_synchronized() {
            self.start_keep_alive(now);
        }
    }

    /// Begins to measure how long the peer of an open connection is silent.
    pub(super) fn start_keep_alive(&mut self, now: Instant) {
        if let Some(keep) = &mut self.keep_alive {
            (keep.last_heard, keep.unanswered_probes) = (now, 0);
            self.timers.set(Timer::KeepAlive, now + keep.config.idle);
        }
    }

    /// Records a segment that passed the checks of RFC 9293 §3.10.7.4. The timer follows when it expires.
    pub(super) fn record_peer_activity(&mut self, now: Instant) {
        if let Some(keep) = &mut self.keep_alive {
            (keep.last_heard, keep.unanswered_probes, keep.probe_pending) = (now, 0, false);
        }
    }

    pub(super) fn on_keep_alive_timeout(&mut self, now: Instant) {
        // MUST-26: a probe is sent only when no data are outstanding. Those are retransmitted, or probe the window, and end the connection
        // by a limit of their own.
        let asks_already = self.snd.outstanding() || self.timers.is_set(Timer::Persist);
        let Some(keep) = &mut self.keep_alive else { return };
        let due = keep.last_heard + keep.config.idle;
        if due > now {
            return self.timers.set(Timer::KeepAlive, due);
        }
        if !asks_already {
            if keep.unanswered_probes >= keep.config.probes {
                return self.terminate(CloseReason::TimedOut);
            }
            keep.unanswered_probes += 1;
            keep.probe_pending = true;
        }
        self.timers.set(Timer::KeepAlive, now + keep.config.interval);
    }

    /// Returns a probe that is due: without data, and with a sequence number that the peer has acknowledged, so that it has to answer.
    pub(super) fn keep_alive_probe(&mut self, now: Instant) -> Option<Segment<P>> {
        let keep = self.keep_alive.as_mut().filter(|keep| keep.probe_pending)?;
        keep.probe_pending = false;
        self.stats.keep_alives += 1;
        let mut probe =
            self.bare_segment(self.snd.seq(self.snd.max - 1), self.rcv.seq(self.rcv.nxt), Flags::ACK);
        self.fill_in_ack(now, &mut probe);
        Some(probe)
    }
}
