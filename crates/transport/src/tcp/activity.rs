//! Times for which a sender was busy, and for which the peer's window limited it.

use super::endpoint::Endpoint;
use hopline_core::{Duration, Instant, Payload};

/// Times since the connection was opened, as `TCP_INFO` of Linux reports them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Activity {
    /// Time with data to send or to be acknowledged (`tcpi_busy_time`).
    pub busy: Duration,
    /// Of this, time in which the peer's window held data back (`tcpi_rwnd_limited`).
    pub window_limited: Duration,
}

/// State of the sender since the last event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Limit {
    /// Nothing to send.
    #[default]
    Idle,
    /// Data in flight, or held back by another limit than the peer's window.
    Busy,
    /// The peer's window holds data back.
    PeerWindow,
}

/// Record of these times.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ActivityLog {
    total: Activity,
    since: Option<(Instant, Limit)>,
}

impl ActivityLog {
    fn at(&self, now: Instant) -> Activity {
        let mut total = self.total;
        if let Some((since, limit)) = self.since {
            let span = now.since(since);
            if limit != Limit::Idle {
                total.busy += span;
            }
            if limit == Limit::PeerWindow {
                total.window_limited += span;
            }
        }
        total
    }
}

impl<P: Payload> Endpoint<P> {
    /// Returns the times until `now` for which the sender was busy, and for which the peer's window limited it.
    #[must_use]
    pub fn activity(&self, now: Instant) -> Activity {
        self.activity.at(now)
    }

    /// Returns the time at which data of the peer last arrived, or the connection opened.
    #[must_use]
    pub fn last_data_received(&self) -> Option<Instant> {
        self.rcv.last_data
    }

    /// Records the limit of the sender, after it has chosen a segment or found none to send.
    pub(super) fn record_activity(&mut self, now: Instant) {
        let limit = self.current_limit();
        if self.activity.since.is_none_or(|(_, before)| before != limit) {
            self.activity = ActivityLog { total: self.activity.at(now), since: Some((now, limit)) };
        }
    }

    fn current_limit(&self) -> Limit {
        let snd = &self.snd;
        if snd.queue.len() == 0 || !self.state().is_synchronized() {
            return Limit::Idle;
        }
        let unsent = snd.queue.end().saturating_sub(snd.nxt).min(snd.mss.into());
        let is_full = unsent > 0 && snd.nxt - snd.una + unsent > snd.window;
        if is_full { Limit::PeerWindow } else { Limit::Busy }
    }
}
