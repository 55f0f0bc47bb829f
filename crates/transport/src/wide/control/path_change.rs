//! Detection of another path. Where the delay of the path has grown, draining shortens nothing, and delays stay equal as no queue's do:
//! what this flow sends less shortens a queue, and the packets of others vary it.

use super::super::rtt::DELAY_TOLERANCE;
use hopline_core::Duration;

/// Consecutive drains with an equal delay that indicate another path. One could be chance: competing flows may add as much as this flow
/// leaves. Own choice, not swept.
const EQUAL_DRAINS: u32 = 2;

/// Delays before and after drains.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PathChange {
    /// Number of consecutive drains with an equal delay.
    equal_drains: u32,
}

impl PathChange {
    /// Records a drain that began with a queueing delay of `before`. `after`: the shortest and the longest one of a round trip after it,
    /// `is_queue`: the queue is gone, or has lost packets. Returns whether the path is another one.
    pub(super) fn on_drain(&mut self, before: Duration, after: [Duration; 2], is_queue: bool) -> bool {
        let [shortest, longest] = after;
        let is_equal = shortest.abs_diff(before) <= DELAY_TOLERANCE
            && longest.saturating_sub(shortest) <= DELAY_TOLERANCE;
        self.equal_drains = if is_equal && !is_queue { self.equal_drains + 1 } else { 0 };
        if self.equal_drains < EQUAL_DRAINS {
            return false;
        }
        self.equal_drains = 0;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const US: fn(u64) -> Duration = Duration::from_micros;

    #[test]
    fn two_drains_that_change_nothing_show_another_path() {
        let mut path = PathChange::default();
        assert!(!path.on_drain(US(90_000), [US(90_100), US(90_400)], false));
        assert!(path.on_drain(US(90_100), [US(90_100), US(90_100)], false));
        assert!(!path.on_drain(US(90_100), [US(90_100), US(90_100)], false), "detected anew");
    }

    #[test]
    fn a_queue_that_shrinks_varies_overflows_or_is_gone_is_no_other_path() {
        let mut path = PathChange::default();
        for (after, is_queue) in
            [([87_000, 87_000], false), ([90_000, 93_000], false), ([90_000, 90_000], true)]
        {
            assert!(!path.on_drain(US(90_000), [US(90_000); 2], false));
            assert!(!path.on_drain(US(90_000), after.map(US), is_queue), "{after:?} {is_queue}");
        }
    }

    #[test]
    fn delays_within_the_tolerance_are_equal() {
        let mut path = PathChange::default();
        path.on_drain(US(5000), [US(5300), US(5300)], false);
        assert!(path.on_drain(US(5000), [US(5000), US(5300)], false));
        path.on_drain(US(5000), [US(5301), US(5301)], false);
        assert!(!path.on_drain(US(5000), [US(5000), US(5000)], false));
    }
}
