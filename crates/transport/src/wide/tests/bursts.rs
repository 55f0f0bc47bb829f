//! Packets that leave together before their time.

use super::over_link::{transfer, transfer_with_coarse_wakeups};
use crate::wide::{Config, Endpoint};
use hopline_core::{Duration, Instant, Length};
use std::collections::{BTreeMap, BTreeSet};

const RATE: f64 = 50e6;
const ONE_WAY_DELAY: Duration = Duration::from_millis(20);
const BYTES: u64 = 3_000_000;

/// Departures of one end over a link of 50 Mb/s: times and numbers of packets.
struct DepartureLog {
    departures: BTreeMap<Instant, usize>,
    finished: Instant,
}

fn departures(pace_ahead: Duration) -> DepartureLog {
    let mut departures = BTreeMap::new();
    let config = Config { pace_ahead, ..Config::DEFAULT };
    let ended =
        transfer(config, (RATE, ONE_WAY_DELAY), BYTES, |at, _| *departures.entry(at).or_insert(0) += 1);
    DepartureLog { departures, finished: ended }
}

#[test]
fn packets_due_within_pace_ahead_are_sent_together() {
    let [single, trains] = [Duration::ZERO, Duration::from_millis(1)].map(departures);
    let packets = |course: &DepartureLog| course.departures.values().sum::<usize>();
    assert!(single.departures.len() * 4 > packets(&single) * 3, "one by one: {}", single.departures.len());
    assert!(trains.departures.len() * 2 < packets(&trains), "in trains: {}", trains.departures.len());
    // A millisecond of the link is 4 packets, and of what is twice as fast 8; the first 10 leave together.
    assert!(trains.departures.values().all(|&train| train <= 20), "{:?}", trains.departures);
    let later = trains.finished.since(single.finished);
    assert!(later < Duration::from_millis(100), "{:?} and {:?}", single.finished, trains.finished);
}

#[test]
fn bursts_keep_the_pacing_rate() {
    let course = departures(Duration::from_millis(1));
    let departures: Vec<_> = course.departures.iter().collect();
    let busy: BTreeSet<_> = departures.iter().map(|(at, _)| at.as_nanos() / 100_000_000).collect();
    for tenth in busy {
        let begins = |at: &Instant| at.as_nanos() / 100_000_000 == tenth;
        let sent: usize = departures.iter().filter(|(at, _)| begins(at)).map(|(_, count)| **count).sum();
        // 50 Mb/s are 416 packets in a tenth of a second; a sender that looks for more bandwidth sends up to twice as
        // many.
        assert!(sent < 1000, "{sent} in the tenth {tenth}");
    }
}

#[test]
fn pace_ahead_is_limited_to_a_millisecond() {
    let config = Config { pace_ahead: Duration::from_micros(1001), ..Config::DEFAULT };
    let error = Endpoint::<Length>::new(config).map(drop).expect_err("too much");
    assert_eq!(error.field, "pace_ahead");
}

/// Returns the time of 3 MB over 20 Mb/s and 25 ms between threads that run at multiples of `turn` only.
fn transfer_time_with_coarse_wakeups(turn: Duration, catch_up: Duration) -> Duration {
    let config = Config { pace_ahead: Duration::from_millis(1), catch_up, ..Config::DEFAULT };
    let path = (20e6, Duration::from_millis(25));
    transfer_with_coarse_wakeups(config, path, turn, BYTES, |_, _| {}).since(Instant::ZERO)
}

#[test]
fn a_late_wakeup_catches_up_to_the_pacing_rate() {
    let [one, four] = [1, 4].map(Duration::from_millis);
    let [exact, kept, lost] = [(Duration::ZERO, one), (four, four), (four, one)]
        .map(|(turn, catch_up)| transfer_time_with_coarse_wakeups(turn, catch_up));
    assert!(kept < exact * 5 / 4, "{kept} in turns, {exact} without");
    assert!(lost > exact * 3 / 2, "{lost} in turns whose lateness is lost, {exact} without");
}
