//! Times for which a sender was busy, and for which the peer's window limited it.

use hopline_core::{Duration, Instant};

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
pub(super) enum Limit {
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
    /// Returns the times until `now`.
    pub(super) fn at(&self, now: Instant) -> Activity {
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

    /// Records what limits the sender from `now` on.
    pub(super) fn record(&mut self, now: Instant, limit: Limit) {
        if self.since.is_none_or(|(_, before)| before != limit) {
            *self = Self { total: self.at(now), since: Some((now, limit)) };
        }
    }
}
