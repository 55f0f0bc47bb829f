//! Accounting of a node's radio time by state.

use core::ops::Add;
use hopline_core::{Duration, Instant};

/// Radio time by state. The first five add up to the time the node has been running.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Airtime {
    /// Sending a frame.
    pub transmitting: Duration,
    /// Receiving a frame that may be decodable.
    pub receiving: Duration,
    /// Carrier busy with a signal that cannot be decoded.
    pub sensing: Duration,
    /// Carrier idle, medium reserved by the NAV.
    pub nav: Duration,
    /// Carrier idle, medium free.
    pub idle: Duration,
    /// Part of `receiving`: decoded frames for this station or for a group.
    pub addressed: Duration,
}

/// Sums the times of several radios.
impl Add for Airtime {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            transmitting: self.transmitting + other.transmitting,
            receiving: self.receiving + other.receiving,
            sensing: self.sensing + other.sensing,
            nav: self.nav + other.nav,
            idle: self.idle + other.idle,
            addressed: self.addressed + other.addressed,
        }
    }
}

/// State of the radio as the physical layer sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum RadioState {
    /// Carrier idle; NAV or idle.
    #[default]
    Idle,
    /// Carrier busy, nothing to decode.
    Sensing,
    /// Receiving.
    Receiving,
    /// Sending.
    Transmitting,
}

/// Clock that accumulates [`Airtime`].
#[derive(Clone, Debug, Default)]
pub struct AirtimeClock {
    total: Airtime,
    activity: RadioState,
    since: Instant,
}

impl AirtimeClock {
    /// Accounts for the time since the last call, then continues in state `next`. The NAV runs until `nav_until`.
    pub fn enter(&mut self, now: Instant, next: RadioState, nav_until: Instant) {
        let spent = now - self.since;
        match self.activity {
            RadioState::Transmitting => self.total.transmitting += spent,
            RadioState::Receiving => self.total.receiving += spent,
            RadioState::Sensing => self.total.sensing += spent,
            RadioState::Idle => {
                let reserved = nav_until.min(now).since(self.since);
                self.total.nav += reserved;
                self.total.idle += spent - reserved;
            }
        }
        self.since = now;
        self.activity = next;
    }

    /// Records that the frame that ends at `now` was for this station.
    pub fn record_addressed(&mut self, now: Instant) {
        if self.activity == RadioState::Receiving {
            self.total.addressed += now - self.since;
        }
    }

    /// Resets the counters at `now`.
    pub fn restart(&mut self, now: Instant) {
        self.total = Airtime::default();
        self.since = now;
    }

    /// Returns the totals at `now`.
    #[must_use]
    pub fn totals(&self, now: Instant, nav_until: Instant) -> Airtime {
        let mut until_now = self.clone();
        until_now.enter(now, self.activity, nav_until);
        until_now.total
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_moment_is_counted_once() {
        let at = Instant::from_millis;
        let mut clock = AirtimeClock::default();
        clock.enter(at(10), RadioState::Receiving, Instant::ZERO);
        clock.enter(at(14), RadioState::Idle, at(20));
        clock.enter(at(30), RadioState::Transmitting, at(20));
        clock.enter(at(31), RadioState::Sensing, at(20));
        let total = clock.totals(at(33), at(20));
        let ms = Duration::from_millis;
        let expected = Airtime {
            transmitting: ms(1),
            receiving: ms(4),
            sensing: ms(2),
            nav: ms(6),
            idle: ms(20),
            addressed: ms(0),
        };
        assert_eq!(total, expected);
    }

    #[test]
    fn a_frame_for_the_station_counts_from_its_start() {
        let at = Instant::from_millis;
        let mut clock = AirtimeClock::default();
        clock.enter(at(10), RadioState::Receiving, Instant::ZERO);
        clock.record_addressed(at(14));
        clock.enter(at(14), RadioState::Sensing, Instant::ZERO);
        clock.record_addressed(at(15));
        let total = clock.totals(at(20), Instant::ZERO);
        assert_eq!((total.receiving, total.addressed), (Duration::from_millis(4), Duration::from_millis(4)));
    }

    #[test]
    fn a_restart_keeps_the_current_state() {
        let at = Instant::from_millis;
        let mut clock = AirtimeClock::default();
        clock.enter(at(10), RadioState::Receiving, Instant::ZERO);
        clock.restart(at(12));
        clock.enter(at(15), RadioState::Idle, at(40));
        clock.restart(at(30));
        let ms = Duration::from_millis;
        assert_eq!(clock.totals(at(42), at(40)), Airtime { nav: ms(10), idle: ms(2), ..Airtime::default() });
        clock.restart(at(42));
        assert_eq!(clock.totals(at(42), at(40)), Airtime::default());
    }
}
