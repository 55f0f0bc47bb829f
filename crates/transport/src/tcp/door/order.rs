//! Order of sending and of arrival of packets.

use super::config::Late;

/// Record of the packets that have arrived, by a number that rises in the order of sending.
#[derive(Clone, Copy, Debug)]
pub(super) struct Order<N> {
    newest: Option<N>,
    previous: Option<N>,
    /// Newest number at the last event: packets sent up to then belong to that event.
    noticed: Option<N>,
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

impl<N: Copy + Ord> Order<N> {
    pub(super) const fn new() -> Self {
        Self { newest: None, previous: None, noticed: None }
    }

    /// Returns the highest number that has arrived.
    pub(super) fn newest(&self) -> Option<N> {
        self.newest
    }

    /// Records a packet with this number.
    pub(super) fn take(&mut self, number: N, late: Late) -> Arrival {
        let previous = self.previous.replace(number);
        let Some(newest) = self.newest.filter(|&newest| number < newest) else {
            self.newest = Some(number);
            return Arrival::InOrder;
        };
        let event = match late {
            Late::Each => true,
            Late::AfterPrevious => previous.is_some_and(|previous| number < previous),
            Late::OncePerSwitch => self.noticed.is_none_or(|noticed| number > noticed),
        };
        if !event {
            return Arrival::Late;
        }
        self.noticed = Some(newest);
        Arrival::Event
    }
}

/// Expands a number from its 16 lower bits, `low`, to the value nearest to `near` (serial number arithmetic).
pub(super) fn unwrapped_16(low: u16, near: i64) -> i64 {
    near + i64::from(low.wrapping_sub(near as u16) as i16)
}

/// As [`unwrapped_16`], with 32 bits.
pub(super) fn unwrapped_32(low: u32, near: i64) -> i64 {
    near + i64::from(low.wrapping_sub(near as u32) as i32)
}

/// As [`unwrapped_16`], with 8 bits.
pub(super) fn unwrapped_8(low: u8, near: i64) -> i64 {
    near + i64::from(low.wrapping_sub(near as u8) as i8)
}

#[cfg(test)]
mod tests {
    use super::Arrival::{Event, InOrder, Late as Overtaken};
    use super::*;

    fn arrivals(late: Late, numbers: &[i64]) -> Vec<Arrival> {
        let mut order = Order::new();
        numbers.iter().map(|&n| order.take(n, late)).collect()
    }

    #[test]
    fn one_late_packet_is_one_event_and_those_after_it_are_in_order() {
        for late in [Late::OncePerSwitch, Late::Each, Late::AfterPrevious] {
            assert_eq!(arrivals(late, &[0, 2, 1, 3, 4]), [InOrder, InOrder, Event, InOrder, InOrder]);
        }
    }

    #[test]
    fn several_late_packets_are_as_many_events_as_the_rule_says() {
        let interleaved = [1, 6, 2, 7, 3, 4, 8];
        let is_event = |late| arrivals(late, &interleaved).iter().map(|&a| a == Event).collect::<Vec<_>>();
        assert_eq!(is_event(Late::OncePerSwitch), [false, false, true, false, false, false, false]);
        assert_eq!(is_event(Late::Each), [false, false, true, false, true, true, false]);
        assert_eq!(is_event(Late::AfterPrevious), [false, false, true, false, true, false, false]);
    }

    #[test]
    fn what_was_sent_after_an_event_was_noticed_can_be_late_again() {
        let all = arrivals(Late::OncePerSwitch, &[5, 4, 3, 9, 8, 4, 7, 6]);
        assert_eq!(all, [InOrder, Event, Overtaken, InOrder, Event, Overtaken, Overtaken, Overtaken]);
    }

    #[test]
    fn equal_numbers_are_in_order() {
        for late in [Late::OncePerSwitch, Late::Each, Late::AfterPrevious] {
            assert_eq!(arrivals(late, &[3, 3, 3]), [InOrder; 3]);
        }
    }

    #[test]
    fn numbers_that_wrap_around_go_on_rising() {
        assert_eq!(unwrapped_8(0, 255), 256);
        assert_eq!(unwrapped_8(254, 256), 254);
        assert_eq!(unwrapped_16(3, 65_534), 65_539);
        assert_eq!(unwrapped_16(65_535, 65_536), 65_535);
        assert_eq!(unwrapped_16(0x8000, 0), -0x8000, "half the space away is behind");
        assert_eq!(unwrapped_32(0, i64::from(u32::MAX)), 1 << 32);
    }
}
