//! What is believed of notices, and what is done at their bidding. The paper believes everything.

use super::config::{Config, Guard, Limits};
use hopline_core::{Duration, Instant};
use hopline_wire::ncn::NormalizedPb;

/// What notices have made this node do of late.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Trust {
    /// Until when everything may be dropped, or might be the last time.
    total: Option<Instant>,
    /// When a notice of anybody was last passed on.
    relayed: Option<Instant>,
    /// Since when this node suffers and says nothing, as others are worse off.
    quiet: Option<Instant>,
}

/// What is believed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Believed {
    pub(super) normalized_pb: NormalizedPb,
    pub(super) lifetime: Duration,
}

impl Trust {
    /// What is believed of a notice that says so much for so long.
    pub(super) fn believe(&mut self, now: Instant, said: Believed, config: &Config) -> Believed {
        let Guard::On(limits) = config.guard else { return said };
        let lifetime = said.lifetime.min(limits.lifetime);
        let partial = NormalizedPb::of(config.largest_partial());
        // What ends at once drops nothing, and uses nothing up.
        if said.normalized_pb <= partial || lifetime.is_zero() {
            return Believed { lifetime, ..said };
        }
        let left = self.total_left(now, limits);
        if left.is_zero() {
            return Believed { normalized_pb: partial, lifetime };
        }
        Believed { lifetime: lifetime.min(left), ..said }
    }

    /// How long everything may still be dropped: for a lifetime from the first such notice, and again after a rest.
    fn total_left(&mut self, now: Instant, limits: Limits) -> Duration {
        let until = match self.total {
            Some(until) if now < until + limits.rest => until,
            _ => *self.total.insert(now + limits.lifetime),
        };
        until.since(now)
    }

    /// Whether one more notice may be passed on: with a guard no more of all neighbours than count of one.
    pub(super) fn passes_on(&mut self, now: Instant, config: &Config) -> bool {
        let Guard::On(limits) = config.guard else { return true };
        let due = self.relayed.is_none_or(|last| now.since(last) >= limits.spacing);
        if due {
            self.relayed = Some(now);
        }
        due
    }

    /// Whether this node, which suffers, leaves it to others who say that they are worse off: with a guard for a lifetime.
    pub(super) fn keeps_quiet(&mut self, now: Instant, config: &Config) -> bool {
        let since = *self.quiet.get_or_insert(now);
        match config.guard {
            Guard::Off => true,
            Guard::On(limits) => now.since(since) < limits.lifetime,
        }
    }

    /// This node has spoken, or has nothing to say.
    pub(super) fn is_heard(&mut self) {
        self.quiet = None;
    }
}
