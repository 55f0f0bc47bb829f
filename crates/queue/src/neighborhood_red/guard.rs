//! Limits to the effect of received notices. The paper has no such limits.

use super::config::{Config, Guard, Limits};
use hopline_core::{Duration, Instant};
use hopline_wire::ncn::NormalizedPb;

/// Recent effects of notices on this node.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Trust {
    /// End of the period in which all packets may be dropped, now or the last time.
    total: Option<Instant>,
    /// Time of the last relayed notice of any node.
    relayed: Option<Instant>,
    /// Start of the period in which this starved node sends no notices in favour of more starved nodes.
    quiet: Option<Instant>,
}

/// Accepted content of a notice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Believed {
    pub(super) normalized_pb: NormalizedPb,
    pub(super) lifetime: Duration,
}

impl Trust {
    /// Returns the accepted content of a notice: drop share and lifetime within the limits.
    pub(super) fn believe(&mut self, now: Instant, said: Believed, config: &Config) -> Believed {
        let Guard::On(limits) = config.guard else { return said };
        let lifetime = said.lifetime.min(limits.lifetime);
        let partial = NormalizedPb::of(config.largest_partial());
        // A notice that ends at once drops nothing, and does not start a period of total drops.
        if said.normalized_pb <= partial || lifetime.is_zero() {
            return Believed { lifetime, ..said };
        }
        let left = self.total_left(now, limits);
        if left.is_zero() {
            return Believed { normalized_pb: partial, lifetime };
        }
        Believed { lifetime: lifetime.min(left), ..said }
    }

    /// Returns the time for which all packets may still be dropped: a lifetime from the first such notice, and again after a
    /// rest.
    fn total_left(&mut self, now: Instant, limits: Limits) -> Duration {
        let until = match self.total {
            Some(until) if now < until + limits.rest => until,
            _ => *self.total.insert(now + limits.lifetime),
        };
        until.since(now)
    }

    /// Returns whether one more notice may be relayed. With limits, notices of all neighbours together are relayed no more
    /// often than those of one neighbour are accepted.
    pub(super) fn passes_on(&mut self, now: Instant, config: &Config) -> bool {
        let Guard::On(limits) = config.guard else { return true };
        let due = self.relayed.is_none_or(|last| now.since(last) >= limits.spacing);
        if due {
            self.relayed = Some(now);
        }
        due
    }

    /// Returns whether this starved node sends no notice in favour of more starved nodes. With limits, it does so for a
    /// lifetime at most.
    pub(super) fn keeps_quiet(&mut self, now: Instant, config: &Config) -> bool {
        let since = *self.quiet.get_or_insert(now);
        match config.guard {
            Guard::Off => true,
            Guard::On(limits) => now.since(since) < limits.lifetime,
        }
    }

    /// Records that this node has sent its notice, or has none to send.
    pub(super) fn is_heard(&mut self) {
        self.quiet = None;
    }
}
