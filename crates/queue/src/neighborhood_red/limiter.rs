//! Limits to the effect of received notices. The paper has no such limits.

use super::config::{Config, Limits, NoticeLimits};
use hopline_core::{Duration, Instant};
use hopline_wire::ncn::NormalizedPb;

/// Recent effects of notices on this node.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct NoticeLimiter {
    /// End of the period in which all packets may be dropped, now or the last time.
    full_drop_until: Option<Instant>,
    /// Time of the last relayed notice of any node.
    last_relay: Option<Instant>,
    /// Start of the period in which this starved node sends no notices in favour of more starved nodes.
    deferring_since: Option<Instant>,
}

/// Accepted content of a notice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NoticeEffect {
    pub(super) normalized_pb: NormalizedPb,
    pub(super) lifetime: Duration,
}

impl NoticeLimiter {
    /// Returns the accepted content of a notice: drop share and lifetime within the limits.
    pub(super) fn limit(&mut self, now: Instant, said: NoticeEffect, config: &Config) -> NoticeEffect {
        let NoticeLimits::On(limits) = config.notice_limits else { return said };
        let lifetime = said.lifetime.min(limits.max_lifetime);
        let partial = NormalizedPb::of(config.max_partial_pb());
        // A notice that ends at once drops nothing, and does not start a period of total drops.
        if said.normalized_pb <= partial || lifetime.is_zero() {
            return NoticeEffect { lifetime, ..said };
        }
        let left = self.full_drop_time_left(now, limits);
        if left.is_zero() {
            return NoticeEffect { normalized_pb: partial, lifetime };
        }
        NoticeEffect { lifetime: lifetime.min(left), ..said }
    }

    /// Returns the time for which all packets may still be dropped: a lifetime from the first such notice, and again after a
    /// rest.
    fn full_drop_time_left(&mut self, now: Instant, limits: Limits) -> Duration {
        let until = match self.full_drop_until {
            Some(until) if now < until + limits.recovery_time => until,
            _ => *self.full_drop_until.insert(now + limits.max_lifetime),
        };
        until.since(now)
    }

    /// Returns whether one more notice may be relayed. With limits, notices of all neighbours together are relayed no more
    /// often than those of one neighbour are accepted.
    pub(super) fn may_relay(&mut self, now: Instant, config: &Config) -> bool {
        let NoticeLimits::On(limits) = config.notice_limits else { return true };
        let due = self.last_relay.is_none_or(|last| now.since(last) >= limits.min_spacing);
        if due {
            self.last_relay = Some(now);
        }
        due
    }

    /// Returns whether this starved node sends no notice in favour of more starved nodes. With limits, it does so for a
    /// lifetime at most.
    pub(super) fn must_defer(&mut self, now: Instant, config: &Config) -> bool {
        let since = *self.deferring_since.get_or_insert(now);
        match config.notice_limits {
            NoticeLimits::Off => true,
            NoticeLimits::On(limits) => now.since(since) < limits.max_lifetime,
        }
    }

    /// Records that this node has sent its notice, or has none to send.
    pub(super) fn end_deferral(&mut self) {
        self.deferring_since = None;
    }
}
