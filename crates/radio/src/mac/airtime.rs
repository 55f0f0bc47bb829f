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
pub enum Activity {
    /// Carrier idle; NAV or idle.
    #[default]
    Quiet,
    /// Carrier busy, nothing to decode.
    Sensing,
    /// Receiving.
    Receiving,
    /// Sending.
    Transmitting,
}

/// Clock that accumulates [`Airtime`].
#[derive(Clone, Debug, Default)]
pub struct Clock {
    total: Airtime,
    activity: Activity,
    since: Instant,
}

impl Clock {
    /// Accounts for the time since the last call, then continues in state `next`. The NAV runs until `nav_until`.
    pub fn switch(&mut self, now: Instant, next: Activity, nav_until: Instant) {
        let spent = now - self.since;
        match self.activity {
            Activity::Transmitting => self.total.transmitting += spent,
            Activity::Receiving => self.total.receiving += spent,
            Activity::Sensing => self.total.sensing += spent,
            Activity::Quiet => {
                let reserved = nav_until.min(now).since(self.since);
                self.total.nav += reserved;
                self.total.idle += spent - reserved;
            }
        }
        self.since = now;
        self.activity = next;
    }

    /// Records that the frame that ends at `now` was for this station.
    pub fn note_addressed(&mut self, now: Instant) {
        if self.activity == Activity::Receiving {
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
    pub fn read(&self, now: Instant, nav_until: Instant) -> Airtime {
        let mut until_now = self.clone();
        until_now.switch(now, self.activity, nav_until);
        until_now.total
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_moment_is_booked_once() {
        let at = Instant::from_millis;
        let mut clock = Clock::default();
        clock.switch(at(10), Activity::Receiving, Instant::ZERO);
        clock.switch(at(14), Activity::Quiet, at(20));
        clock.switch(at(30), Activity::Transmitting, at(20));
        clock.switch(at(31), Activity::Sensing, at(20));
        let total = clock.read(at(33), at(20));
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
    fn a_frame_for_the_station_counts_among_what_is_received_from_its_start() {
        let at = Instant::from_millis;
        let mut clock = Clock::default();
        clock.switch(at(10), Activity::Receiving, Instant::ZERO);
        clock.note_addressed(at(14));
        clock.switch(at(14), Activity::Sensing, Instant::ZERO);
        clock.note_addressed(at(15));
        let total = clock.read(at(20), Instant::ZERO);
        assert_eq!((total.receiving, total.addressed), (Duration::from_millis(4), Duration::from_millis(4)));
    }

    #[test]
    fn a_restart_forgets_what_was_booked_and_not_what_goes_on() {
        let at = Instant::from_millis;
        let mut clock = Clock::default();
        clock.switch(at(10), Activity::Receiving, Instant::ZERO);
        clock.restart(at(12));
        clock.switch(at(15), Activity::Quiet, at(40));
        clock.restart(at(30));
        let ms = Duration::from_millis;
        assert_eq!(clock.read(at(42), at(40)), Airtime { nav: ms(10), idle: ms(2), ..Airtime::default() });
        clock.restart(at(42));
        assert_eq!(clock.read(at(42), at(40)), Airtime::default());
    }
}
