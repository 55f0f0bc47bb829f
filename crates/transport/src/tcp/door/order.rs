//! Order of sending and of arrival of packets.

use super::config::LateRule;

/// Record of the packets that have arrived, by a number that rises in the order of sending.
#[derive(Clone, Copy, Debug)]
pub(super) struct OrderTracker<N> {
    newest: Option<N>,
    previous: Option<N>,
    /// Newest number at the last event: packets sent up to then belong to that event.
    newest_at_event: Option<N>,
}

/// Classification of a packet by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Arrival {
    /// No packet sent after it has arrived.
    InOrder,
    /// Late, and a new event.
    Event,
    /// Late, part of an event that was noticed before.
    Late,
}

impl<N: Copy + Ord> OrderTracker<N> {
    pub(super) const fn new() -> Self {
        Self { newest: None, previous: None, newest_at_event: None }
    }

    /// Returns the highest number that has arrived.
    pub(super) fn newest(&self) -> Option<N> {
        self.newest
    }

    /// Records a packet with this number.
    pub(super) fn record(&mut self, number: N, late: LateRule) -> Arrival {
        let previous = self.previous.replace(number);
        let Some(newest) = self.newest.filter(|&newest| number < newest) else {
            self.newest = Some(number);
            return Arrival::InOrder;
        };
        let event = match late {
            LateRule::Each => true,
            LateRule::AfterPrevious => previous.is_some_and(|previous| number < previous),
            LateRule::OncePerRouteChange => self.newest_at_event.is_none_or(|noticed| number > noticed),
        };
        if !event {
            return Arrival::Late;
        }
        self.newest_at_event = Some(newest);
        Arrival::Event
    }
}

/// Expands a number from its 16 lower bits, `low`, to the value nearest to `near` (serial number arithmetic).
pub(super) fn unwrap_16(low: u16, near: i64) -> i64 {
    near + i64::from(low.wrapping_sub(near as u16) as i16)
}

/// As [`unwrap_16`], with 32 bits.
pub(super) fn unwrap_32(low: u32, near: i64) -> i64 {
    near + i64::from(low.wrapping_sub(near as u32) as i32)
}

/// As [`unwrap_16`], with 8 bits.
pub(super) fn unwrap_8(low: u8, near: i64) -> i64 {
    near + i64::from(low.wrapping_sub(near as u8) as i8)
}

#[cfg(test)]
mod tests {
    use super::Arrival::{Event, InOrder, Late as Overtaken};
    use super::*;

    fn arrivals(late: LateRule, numbers: &[i64]) -> Vec<Arrival> {
        let mut order = OrderTracker::new();
        numbers.iter().map(|&n| order.record(n, late)).collect()
    }

    #[test]
    fn one_late_packet_is_one_event_and_those_after_it_are_in_order() {
        for late in [LateRule::OncePerRouteChange, LateRule::Each, LateRule::AfterPrevious] {
            assert_eq!(arrivals(late, &[0, 2, 1, 3, 4]), [InOrder, InOrder, Event, InOrder, InOrder]);
        }
    }

    #[test]
    fn several_late_packets_are_as_many_events_as_the_rule_says() {
        let interleaved = [1, 6, 2, 7, 3, 4, 8];
        let is_event = |late| arrivals(late, &interleaved).iter().map(|&a| a == Event).collect::<Vec<_>>();
        assert_eq!(is_event(LateRule::OncePerRouteChange), [false, false, true, false, false, false, false]);
        assert_eq!(is_event(LateRule::Each), [false, false, true, false, true, true, false]);
        assert_eq!(is_event(LateRule::AfterPrevious), [false, false, true, false, true, false, false]);
    }

    #[test]
    fn packets_sent_after_an_event_can_be_late_again() {
        let all = arrivals(LateRule::OncePerRouteChange, &[5, 4, 3, 9, 8, 4, 7, 6]);
        assert_eq!(all, [InOrder, Event, Overtaken, InOrder, Event, Overtaken, Overtaken, Overtaken]);
    }

    #[test]
    fn equal_numbers_are_in_order() {
        for late in [LateRule::OncePerRouteChange, LateRule::Each, LateRule::AfterPrevious] {
            assert_eq!(arrivals(late, &[3, 3, 3]), [InOrder; 3]);
        }
    }

    #[test]
    fn wrapped_numbers_keep_increasing() {
        assert_eq!(unwrap_8(0, 255), 256);
        assert_eq!(unwrap_8(254, 256), 254);
        assert_eq!(unwrap_16(3, 65_534), 65_539);
        assert_eq!(unwrap_16(65_535, 65_536), 65_535);
        assert_eq!(unwrap_16(0x8000, 0), -0x8000, "half the space away is behind");
        assert_eq!(unwrap_32(0, i64::from(u32::MAX)), 1 << 32);
    }
}
