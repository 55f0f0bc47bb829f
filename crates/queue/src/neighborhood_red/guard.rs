//! What is believed of a notice. The paper believes everything.

use super::config::{Config, Guard, Limits};
use hopline_core::{Duration, Instant};
use hopline_wire::ncn::NormalizedPb;

/// How long everything had to be dropped of late.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Trust {
    /// The latest time of total congestion: since when, and until when at most.
    total: Option<(Instant, Instant)>,
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
        if said.normalized_pb <= partial {
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
            Some((_, until)) if now < until + limits.rest => until,
            _ => {
                let until = now + limits.lifetime;
                self.total = Some((now, until));
                until
            }
        };
        until.since(now)
    }
}
