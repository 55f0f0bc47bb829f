//! Counters of the proxy, shared by all threads.

use crate::diversion::BYPASS_DESCRIPTION;
use crate::service::Metric;
use std::io::{self, ErrorKind};
use std::sync::atomic::{AtomicU64, Ordering};

/// One number that threads add to.
#[derive(Debug, Default)]
pub(super) struct Count(AtomicU64);

impl Count {
    pub(super) fn add(&self, amount: u64) {
        self.0.fetch_add(amount, Ordering::Relaxed);
    }

    pub(super) fn subtract(&self, amount: u64) {
        self.0.fetch_sub(amount, Ordering::Relaxed);
    }

    pub(super) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

#[derive(Debug, Default)]
pub(super) struct Counts {
    /// Taken and not yet ended, waiting for the server among them.
    pub(super) open_connections: Count,
    pub(super) accepted: Count,
    pub(super) ended: Count,
    pub(super) reset: Count,
    pub(super) stopped: Count,
    pub(super) refused_full: Count,
    pub(super) refused_here: Count,
    pub(super) refused_descriptors: Count,
    pub(super) failed_refused: Count,
    pub(super) failed_unreachable: Count,
    pub(super) failed_timeout: Count,
    pub(super) failed_other: Count,
    pub(super) not_held: Count,
    pub(super) not_split: Count,
    pub(super) asymmetric: Count,
    pub(super) dropped_held: Count,
    /// To another station, and from one.
    pub(super) moved_away: Count,
    pub(super) moved_here: Count,
    pub(super) moved_bytes: Count,
    pub(super) not_moved: Count,
    pub(super) lost_moving: Count,
    /// Of this station, and of others.
    pub(super) claims: Count,
    pub(super) failed_claims: Count,
    pub(super) broken_claims: Count,
    pub(super) refused_claims: Count,
    /// To the server, and to the client.
    pub(super) bytes: [Count; 2],
}

impl Counts {
    /// Under what a call that failed is counted.
    pub(super) fn failure_counter(&self, error: &io::Error) -> &Count {
        match error.kind() {
            ErrorKind::ConnectionRefused => &self.failed_refused,
            ErrorKind::HostUnreachable | ErrorKind::NetworkUnreachable => &self.failed_unreachable,
            ErrorKind::TimedOut => &self.failed_timeout,
            _ => match error.raw_os_error() {
                Some(libc::EMFILE | libc::ENFILE | libc::ENOMEM | libc::ENOBUFS) => &self.refused_descriptors,
                // ICMPv6 "prohibited"; the same of IPv4 is EHOSTUNREACH (RFC 4443 §3.1, codes 1, 5 and 6).
                Some(libc::EACCES) => &self.failed_unreachable,
                _ => &self.failed_other,
            },
        }
    }

    pub(super) fn metrics(&self) -> Vec<Metric> {
        let counter = |name, doc, count: &Count| Metric::counter(name, doc, count.get());
        vec![
            Metric::gauge(
                "connections_open",
                "connections that are split now, or wait for the server",
                self.open_connections.get(),
            ),
            counter("connections_accepted", "connections that were taken", &self.accepted),
            counter("connections_ended", "connections that both hosts have ended in order", &self.ended),
            counter("connections_reset", "connections that a host reset, or did not answer for", &self.reset),
            counter("connections_stopped", "connections reset because the proxy was stopped", &self.stopped),
            counter(
                "refused_full_connections",
                "calls reset because there were as many as may be",
                &self.refused_full,
            ),
            counter(
                "refused_here_connections",
                "calls reset because they were for this machine",
                &self.refused_here,
            ),
            counter(
                "refused_descriptors_connections",
                "calls reset because the system had no descriptor or memory left",
                &self.refused_descriptors,
            ),
            counter("failed_refused_connects", "calls that the server reset", &self.failed_refused),
            counter(
                "failed_unreachable_connects",
                "calls to servers that could not be reached",
                &self.failed_unreachable,
            ),
            counter("failed_timeout_connects", "calls that the server did not answer", &self.failed_timeout),
            counter(
                "failed_other_connects",
                "calls that failed otherwise, or that the client gave up",
                &self.failed_other,
            ),
            counter(
                "unheld_connects",
                "calls that were answered before the server, as something here kept their SYN from being held",
                &self.not_held,
            ),
            counter("unfollowed_connects", BYPASS_DESCRIPTION, &self.asymmetric),
            counter(
                "unsplit_connects",
                "SYNs that were forwarded unsplit, as too many calls of their network were not accepted yet",
                &self.not_split,
            ),
            counter(
                "dropped_held_connects",
                "calls whose SYN was dropped for newer ones, as too many servers had not answered",
                &self.dropped_held,
            ),
            counter("moved_away_connections", "connections that another station has now", &self.moved_away),
            counter("moved_here_connections", "connections that came from another station", &self.moved_here),
            counter("moved_here_bytes", "bytes of their state", &self.moved_bytes),
            counter(
                "unmoved_connections",
                "times that a connection was to move and stayed, as it could not or the other station did not take it",
                &self.not_moved,
            ),
            counter(
                "lost_moving_connections",
                "connections reset because it is unknown which station has them, or the other one could not go on",
                &self.lost_moving,
            ),
            counter(
                "claims",
                "times that another station was asked for the connections of a host",
                &self.claims,
            ),
            counter(
                "failed_claims",
                "of these, times that it did not answer to the end",
                &self.failed_claims,
            ),
            counter(
                "refused_claims",
                "claims from addresses that are none of the other stations",
                &self.refused_claims,
            ),
            counter(
                "broken_claims",
                "claims of other stations without the network's key, or that came to no end",
                &self.broken_claims,
            ),
            counter("to_servers_bytes", "bytes handed to the halves towards servers", &self.bytes[0]),
            counter("to_clients_bytes", "bytes handed to the halves towards clients", &self.bytes[1]),
        ]
    }
}
