//! Times in which the source of a flow had packets to send and knew no route.

use core::ops::Sub;
use hopline_core::{Duration, Instant};

/// The gaps so far. One begins with a packet that finds no route, and ends with one that finds a route.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct RouteGaps {
    pub(super) count: u64,
    /// Without the one that goes on.
    ended_time: Duration,
    since: Option<Instant>,
}

/// Gaps within some time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct RouteGapTotals {
    pub(super) count: u64,
    pub(super) time: Duration,
}

impl RouteGaps {
    pub(super) fn record(&mut self, now: Instant, route: RouteKnowledge) {
        match (route, self.since) {
            (RouteKnowledge::None, None) => {
                self.count += 1;
                self.since = Some(now);
            }
            (RouteKnowledge::Known, Some(since)) => {
                self.ended_time += now.since(since);
                self.since = None;
            }
            (RouteKnowledge::None, Some(_)) | (RouteKnowledge::Known, None) => {}
        }
    }

    pub(super) fn totals_until(&self, now: Instant) -> RouteGapTotals {
        let open = self.since.map_or(Duration::ZERO, |since| now.since(since));
        RouteGapTotals { count: self.count, time: self.ended_time + open }
    }
}

impl Sub for RouteGapTotals {
    type Output = Self;

    fn sub(self, earlier: Self) -> Self {
        Self { count: self.count - earlier.count, time: self.time - earlier.time }
    }
}

/// Knowledge of the source's routing agent about a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RouteKnowledge {
    Known,
    None,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gap_lasts_from_the_first_packet_without_a_route_to_the_first_with_one() {
        let at = Instant::from_secs;
        let mut gaps = RouteGaps::default();
        for (second, route) in [
            (1, RouteKnowledge::Known),
            (3, RouteKnowledge::None),
            (5, RouteKnowledge::None),
            (9, RouteKnowledge::Known),
            (12, RouteKnowledge::None),
        ] {
            gaps.record(at(second), route);
        }
        assert_eq!(gaps.totals_until(at(12)), RouteGapTotals { count: 2, time: Duration::from_secs(6) });
        let since = gaps.totals_until(at(15)) - gaps.totals_until(at(12));
        assert_eq!(since, RouteGapTotals { count: 0, time: Duration::from_secs(3) });
    }
}
