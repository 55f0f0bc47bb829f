//! TPA §3.5: the congested state, the one that stands for both, and which expiries double the timer (B2).

use super::script::{Script, ack, plain};
use crate::tpa::{Config, CongestedBackoff, CountReset, Notification, PathState, SimultaneousTimeouts};
use hopline_core::Duration;

fn sending(bytes: u64, change: impl FnOnce(&mut Config)) -> Script {
    let mut config = plain();
    change(&mut config);
    let mut s = Script::sending(config, bytes);
    s.transmits();
    s
}

#[test]
fn without_elfn_a_timeout_enters_the_merged_state() {
    let mut s = sending(4000, |_| {});
    assert_eq!(s.run_until(400), "400: 0:3. (1000) tx 3 !");
    assert_eq!((s.path(), s.endpoint.cwnd()), (PathState::CongestedOrFrozen, 1));
    assert_eq!((s.endpoint.stats().congested_periods, s.endpoint.stats().timeouts), (1, 3));
}

#[test]
fn only_segments_sent_while_congested_back_off_the_timer() {
    let mut s = sending(4000, |_| {});
    s.run_until(400);
    assert_eq!(s.endpoint.backoff(), 1, "the three left while all was well");
    assert_eq!(s.run_until(2500), "700: 0:0 (1000) tx 4 !; 1300: 0:1 (1000) tx 5 !; 2500: 0:2 (1000) tx 6 !");
    assert_eq!(s.endpoint.backoff(), 8);
    // What left before the trouble and expires during it does not count either.
    let mut s = sending(4000, |c| c.cwnd_max = 2);
    s.receive_at(150, ack(0, &[0], 0));
    assert_eq!(s.transmits(), "0:2 (1000) tx 2", "at 150 ms, with an RTO of 293.75 ms");
    assert_eq!(s.run_until(440), "");
    assert_eq!(s.path(), PathState::CongestedOrFrozen, "since 1 expired at 400 ms");
    assert_eq!(s.run_until(700), "443: 0:3. (1000) tx 3 !");
    assert_eq!(s.endpoint.backoff(), 1, "2 left before the trouble");
}

#[test]
fn new_acks_end_congestion_and_backoff() {
    let mut s = sending(8000, |_| {});
    s.run_until(2500);
    assert_eq!(s.exchange(ack(0, &[0, 1, 2, 3], 3)), "1:0 (1000) tx 0; 1:1 (1000) tx 1; 1:2 (1000) tx 2");
    assert_eq!((s.path(), s.endpoint.cwnd(), s.endpoint.backoff()), (PathState::Normal, 3, 1));
    assert_eq!(s.endpoint.stats().route_changes, 1);
}

#[test]
fn with_elfn_the_congested_state_does_not_back_off() {
    let mut s = sending(4000, |c| c.failures.notification = Notification::Elfn);
    assert_eq!(s.run_until(1000), "400: 0:3. (1000) tx 3 !; 700: 0:0 (1000) tx 4 !; 1000: 0:1 (1000) tx 5 !");
    assert_eq!((s.path(), s.endpoint.backoff()), (PathState::Congested, 1));
    s.receive(ack(0, &[0, 3], 4));
    assert_eq!(
        (s.path(), s.endpoint.stats().route_changes),
        (PathState::Normal, 0),
        "the same route as before"
    );
}

#[test]
fn backoff_while_congested_is_configurable() {
    for (notification, choice, times) in [
        (Notification::Elfn, CongestedBackoff::Always, [400, 700, 1300, 2500]),
        (Notification::Elfn, CongestedBackoff::WhenMerged, [400, 700, 1000, 1300]),
        (Notification::None, CongestedBackoff::WhenMerged, [400, 700, 1300, 2500]),
        (Notification::None, CongestedBackoff::Never, [400, 700, 1000, 1300]),
    ] {
        let mut s = sending(4000, |c| {
            (c.failures.notification, c.failures.congested_backoff) = (notification, choice);
        });
        let said = s.run_until(times[3]);
        let at: Vec<u64> = said.split("; ").map(|l| l.split(':').next().unwrap().parse().unwrap()).collect();
        assert_eq!(at, times, "{notification:?} {choice:?}");
    }
}

#[test]
fn thcong_counts_timeouts_in_a_row() {
    let mut s = sending(1000, |c| c.failures.th_cong = 2);
    assert_eq!(s.run_until(400), "400: 0:0. (1000) tx 1");
    assert_eq!(s.path(), PathState::Normal);
    assert_eq!(s.run_until(700), "700: 0:0. (1000) tx 2 !");
    assert_eq!(s.path(), PathState::CongestedOrFrozen);
}

#[test]
fn timers_that_expire_together_count_each_or_once() {
    // B3.
    for (choice, path) in [
        (SimultaneousTimeouts::Each, PathState::CongestedOrFrozen),
        (SimultaneousTimeouts::Once, PathState::Normal),
    ] {
        let mut s = sending(4000, |c| (c.failures.th_cong, c.failures.simultaneous) = (2, choice));
        s.run_until(400);
        assert_eq!(s.path(), path, "{choice:?}");
    }
}

#[test]
fn the_reset_of_the_timeout_count_is_configurable() {
    // B1: one of two is answered, late, by an ACK of the earlier transmission.
    for (choice, path) in [
        (CountReset::AnyNewAck, PathState::Normal),
        (CountReset::LatestTransmission, PathState::CongestedOrFrozen),
    ] {
        let mut s = sending(2000, |c| {
            (c.failures.th_cong, c.failures.count_reset, c.failures.simultaneous) =
                (2, choice, SimultaneousTimeouts::Once);
        });
        s.run_until(400);
        s.receive_at(410, ack(0, &[0], 0));
        s.run_until(1000);
        assert_eq!(s.path(), path, "{choice:?}");
    }
}

#[test]
fn thack_counts_acks_in_a_row() {
    let mut s = sending(4000, |c| c.failures.th_ack = 2);
    s.run_until(400);
    assert_eq!(s.exchange(ack(0, &[0, 3], 3)), "0:1 (1000) tx 4 !");
    assert_eq!(s.endpoint.cwnd(), 1);
    assert_eq!(s.exchange(ack(0, &[0, 1, 3], 4)), "0:2 (1000) tx 5");
    assert_eq!(s.endpoint.cwnd(), 3);
    let mut s = sending(4000, |c| c.failures.th_ack = 2);
    s.run_until(400);
    s.receive(ack(0, &[0, 3], 3));
    s.transmits();
    s.run_until(2000);
    s.receive(ack(0, &[0, 2, 3], 5));
    assert_eq!(s.endpoint.cwnd(), 1, "the timeout between them broke the row");
}

#[test]
fn the_window_may_be_one_to_twelve() {
    for cwnd in [1u8, 2, 12] {
        let mut s = sending(0, |c| (c.cwnd_max, c.block_segments) = (cwnd, 12));
        s.write_and_flush(12_000);
        assert_eq!(s.transmits().split("; ").count(), usize::from(cwnd));
        assert_eq!(s.endpoint.in_flight(), cwnd);
    }
    assert_eq!(Script::connected(plain()).endpoint.rto(), Duration::from_millis(300));
}
