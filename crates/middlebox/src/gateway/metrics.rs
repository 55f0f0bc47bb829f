//! Metrics of gateways.

use super::relay::Moved;
use crate::service::Metric;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// A counter that only grows.
#[derive(Debug, Default)]
pub(super) struct Count(AtomicU64);

impl Count {
    pub(super) fn add(&self) {
        self.0.fetch_add(1, Relaxed);
    }

    fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

/// A gauge that counts [`UsageGuard`] values.
#[derive(Debug, Default)]
pub(super) struct Level(Arc<AtomicU64>);

/// A gauge.
#[derive(Debug, Default)]
pub(super) struct Gauge(AtomicU64);

impl Gauge {
    pub(super) fn set(&self, value: u64) {
        self.0.store(value, Relaxed);
    }

    fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

/// A unit of a [`Level`], counted as long as it lives.
#[derive(Debug)]
pub(super) struct UsageGuard(Arc<AtomicU64>);

impl Level {
    pub(super) fn enter(&self) -> UsageGuard {
        self.0.fetch_add(1, Relaxed);
        UsageGuard(Arc::clone(&self.0))
    }

    fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

impl Drop for UsageGuard {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}

/// Defines the counters and gauges of a gateway, with their names and descriptions.
macro_rules! figures {
    ($(#[$about:meta])* $name:ident { $($count:ident: $doc:literal),+ $(,)? } $($gauge:ident: $says:literal),+ $(,)?) => {
        $(#[$about])*
        #[derive(Debug, Default)]
        pub(super) struct $name {
            $(#[doc = $doc] pub(super) $count: Count,)+
            $(#[doc = $says] pub(super) $gauge: Gauge,)+
            /// Bytes of applications.
            pub(super) moved: Moved,
            /// Open connections.
            pub(super) open: Level,
        }

        impl $name {
            /// Returns all metrics.
            pub(super) fn figures(&self) -> Vec<Metric> {
                vec![
                    $(Metric::counter(stringify!($count), $doc, self.$count.get()),)+
                    Metric::counter("out_bytes", "bytes towards destinations", self.moved.out.load(Relaxed)),
                    Metric::counter("back_bytes", "bytes from destinations", self.moved.back.load(Relaxed)),
                    Metric::gauge("open_connections", "connections now", self.open.get()),
                    $(Metric::gauge(stringify!($gauge), $says, self.$gauge.get()),)+
                ]
            }
        }
    };
}

figures! {
    /// Metrics of an entrance.
    EntranceFigures {
        accepted_connections: "connections that came in",
        turned_away_connections: "connections reset because there were as many as may be, and as many waited, or one waited too long",
        unintelligible_connections: "SOCKS clients that said nothing in time, or nothing that is served here",
        tpa_connections: "connections carried by TPA",
        tcp_connections: "connections carried by TCP because no exit answered, or it had too many",
        unannounced_connections: "connections carried by TCP because their host is not known to speak TPA, or not at that port",
        clear_connections: "of these and those before: connections that went in clear though the transport encrypts",
        not_allowed_connections: "connections that would have gone by TCP to where none may go from here",
        refused_connections: "connections that the exit or the destination refused, or nobody could make",
        rejected_connections: "connections of which the exit would not hear, or whose answer was not its own: wrong key or name",
        finished_connections: "connections that both sides ended",
        broken_connections: "connections that one side reset, or that TPA lost: both sides were reset",
        exit_absences: "times that there was no exit any more, or none at the start",
    }
    exit_present: "1 while the exit answers",
    clear_fallback: "1 while connections go in clear though the transport encrypts",
}

figures! {
    /// Metrics of an exit.
    ExitFigures {
        accepted_connections: "TPA connections that came in",
        turned_away_connections: "TPA connections reset for newer ones because too many had not yet said what they want",
        trunks: "trunks that entrances have opened",
        silent_connections: "TPA connections that ended, or took too long, before they asked for anything",
        malformed_requests: "requests that were none",
        unknown_peers: "requests under a name that nobody here has",
        wrong_proofs: "hellos and requests of senders that do not have the key, or that were recorded, or of a trunk that is over",
        not_allowed_requests: "requests for a destination that is not allowed",
        too_many_requests: "requests when there were as many connections as may be, for too long",
        failed_requests: "requests whose destination refused, did not answer or could not be reached",
        tpa_connections: "connections carried",
        finished_connections: "connections that both sides ended",
        broken_connections: "connections that one side reset, or that TPA lost: both sides were reset",
    }
    open_trunks: "entrances that are there now",
}
