//! Times in which the source of a flow had packets to send and knew no route.

use core::ops::Sub;
use hopline_core::{Duration, Instant};

/// The gaps so far. One begins with a packet that finds no route, and ends with one that finds a route.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Gaps {
    pub(super) begun: u64,
    /// Without the one that goes on.
    ended: Duration,
    since: Option<Instant>,
}

/// Gaps within some time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct GapsWithin {
    pub(super) begun: u64,
    pub(super) time: Duration,
}

impl Gaps {
    pub(super) fn note(&mut self, now: Instant, route: Route) {
        match (route, self.since) {
            (Route::None, None) => {
                self.begun += 1;
                self.since = Some(now);
            }
            (Route::Known, Some(since)) => {
                self.ended += now.since(since);
                self.since = None;
            }
            (Route::None, Some(_)) | (Route::Known, None) => {}
        }
    }

    pub(super) fn until(&self, now: Instant) -> GapsWithin {
        let open = self.since.map_or(Duration::ZERO, |since| now.since(since));
        GapsWithin { begun: self.begun, time: self.ended + open }
    }
}

impl Sub for GapsWithin {
    type Output = Self;

    fn sub(self, earlier: Self) -> Self {
        Self { begun: self.begun - earlier.begun, time: self.time - earlier.time }
    }
}

/// Knowledge of the source's routing agent about a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Route {
    Known,
    None,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gap_lasts_from_the_first_packet_without_a_route_to_the_first_with_one() {
        let at = Instant::from_secs;
        let mut gaps = Gaps::default();
        for (second, route) in
            [(1, Route::Known), (3, Route::None), (5, Route::None), (9, Route::Known), (12, Route::None)]
        {
            gaps.note(at(second), route);
        }
        assert_eq!(gaps.until(at(12)), GapsWithin { begun: 2, time: Duration::from_secs(6) });
        let since = gaps.until(at(15)) - gaps.until(at(12));
        assert_eq!(since, GapsWithin { begun: 0, time: Duration::from_secs(3) });
    }
}
