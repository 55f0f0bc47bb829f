//! TPA §3.5: the congested state, the one that stands for both, and which expiries double the timer (B2).

use super::script::{Script, ack, plain};
use crate::tpa::{Config, CongestedBackoff, Notification, Path, RowEnds, Simultaneous};
use hopline_core::Duration;

fn sending(bytes: u64, change: impl FnOnce(&mut Config)) -> Script {
    let mut config = plain();
    change(&mut config);
    let mut s = Script::sending(config, bytes);
    s.says();
    s
}

#[test]
fn without_elfn_a_timeout_is_both_and_the_window_is_one() {
    let mut s = sending(4000, |_| {});
    assert_eq!(s.runs_to(400), "400: 0:3. (1000) tx 3 !");
    assert_eq!((s.path(), s.endpoint.cwnd()), (Path::CongestedOrFrozen, 1));
    assert_eq!((s.endpoint.stats().congestions, s.endpoint.stats().timeouts), (1, 3));
}

#[test]
fn only_what_was_sent_in_trouble_doubles_the_timer_when_it_expires() {
    let mut s = sending(4000, |_| {});
    s.runs_to(400);
    assert_eq!(s.endpoint.backoff(), 1, "the three left while all was well");
    assert_eq!(s.runs_to(2500), "700: 0:0 (1000) tx 4 !; 1300: 0:1 (1000) tx 5 !; 2500: 0:2 (1000) tx 6 !");
    assert_eq!(s.endpoint.backoff(), 8);
    // What left before the trouble and expires during it does not count either.
    let mut s = sending(4000, |c| c.cwnd_max = 2);
    s.hears_at(150, ack(0, &[0], 0));
    assert_eq!(s.says(), "0:2 (1000) tx 2", "at 150 ms, with an RTO of 293.75 ms");
    assert_eq!(s.runs_to(440), "");
    assert_eq!(s.path(), Path::CongestedOrFrozen, "since 1 expired at 400 ms");
    assert_eq!(s.runs_to(700), "443: 0:3. (1000) tx 3 !");
    assert_eq!(s.endpoint.backoff(), 1, "2 left before the trouble");
}

#[test]
fn news_end_the_trouble_and_the_back_off() {
    let mut s = sending(8000, |_| {});
    s.runs_to(2500);
    assert_eq!(s.answers(ack(0, &[0, 1, 2, 3], 3)), "1:0 (1000) tx 0; 1:1 (1000) tx 1; 1:2 (1000) tx 2");
    assert_eq!((s.path(), s.endpoint.cwnd(), s.endpoint.backoff()), (Path::Normal, 3, 1));
    assert_eq!(s.endpoint.stats().route_changes, 1);
}

#[test]
fn with_elfn_the_congested_state_is_its_own_and_does_not_double() {
    let mut s = sending(4000, |c| c.failures.notification = Notification::Elfn);
    assert_eq!(s.runs_to(1000), "400: 0:3. (1000) tx 3 !; 700: 0:0 (1000) tx 4 !; 1000: 0:1 (1000) tx 5 !");
    assert_eq!((s.path(), s.endpoint.backoff()), (Path::Congested, 1));
    s.hears(ack(0, &[0, 3], 4));
    assert_eq!((s.path(), s.endpoint.stats().route_changes), (Path::Normal, 0), "the same route as before");
}

#[test]
fn doubling_while_congested_is_a_choice() {
    for (notification, choice, times) in [
        (Notification::Elfn, CongestedBackoff::Always, [400, 700, 1300, 2500]),
        (Notification::Elfn, CongestedBackoff::WhenMerged, [400, 700, 1000, 1300]),
        (Notification::None, CongestedBackoff::WhenMerged, [400, 700, 1300, 2500]),
        (Notification::None, CongestedBackoff::Never, [400, 700, 1000, 1300]),
    ] {
        let mut s = sending(4000, |c| {
            (c.failures.notification, c.failures.congested_backoff) = (notification, choice);
        });
        let said = s.runs_to(times[3]);
        let at: Vec<u64> = said.split("; ").map(|l| l.split(':').next().unwrap().parse().unwrap()).collect();
        assert_eq!(at, times, "{notification:?} {choice:?}");
    }
}

#[test]
fn thcong_counts_timeouts_in_a_row() {
    let mut s = sending(1000, |c| c.failures.th_cong = 2);
    assert_eq!(s.runs_to(400), "400: 0:0. (1000) tx 1");
    assert_eq!(s.path(), Path::Normal);
    assert_eq!(s.runs_to(700), "700: 0:0. (1000) tx 2 !");
    assert_eq!(s.path(), Path::CongestedOrFrozen);
}

#[test]
fn timers_that_expire_together_count_each_or_once() {
    // B3.
    for (choice, path) in [(Simultaneous::Each, Path::CongestedOrFrozen), (Simultaneous::Once, Path::Normal)]
    {
        let mut s = sending(4000, |c| (c.failures.th_cong, c.failures.simultaneous) = (2, choice));
        s.runs_to(400);
        assert_eq!(s.path(), path, "{choice:?}");
    }
}

#[test]
fn what_ends_a_row_of_timeouts_is_a_choice() {
    // B1: one of two is answered, late, by an ACK of the earlier transmission.
    for (choice, path) in
        [(RowEnds::AnyNews, Path::Normal), (RowEnds::LatestTransmission, Path::CongestedOrFrozen)]
    {
        let mut s = sending(2000, |c| {
            (c.failures.th_cong, c.failures.row_ends, c.failures.simultaneous) =
                (2, choice, Simultaneous::Once);
        });
        s.runs_to(400);
        s.hears_at(410, ack(0, &[0], 0));
        s.runs_to(1000);
        assert_eq!(s.path(), path, "{choice:?}");
    }
}

#[test]
fn thack_counts_acks_in_a_row() {
    let mut s = sending(4000, |c| c.failures.th_ack = 2);
    s.runs_to(400);
    assert_eq!(s.answers(ack(0, &[0, 3], 3)), "0:1 (1000) tx 4 !");
    assert_eq!(s.endpoint.cwnd(), 1);
    assert_eq!(s.answers(ack(0, &[0, 1, 3], 4)), "0:2 (1000) tx 5");
    assert_eq!(s.endpoint.cwnd(), 3);
    let mut s = sending(4000, |c| c.failures.th_ack = 2);
    s.runs_to(400);
    s.hears(ack(0, &[0, 3], 3));
    s.says();
    s.runs_to(2000);
    s.hears(ack(0, &[0, 2, 3], 5));
    assert_eq!(s.endpoint.cwnd(), 1, "the timeout between them broke the row");
}

#[test]
fn the_window_may_be_one_to_twelve() {
    for cwnd in [1u8, 2, 12] {
        let mut s = sending(0, |c| (c.cwnd_max, c.block_segments) = (cwnd, 12));
        s.hands_over(12_000);
        assert_eq!(s.says().split("; ").count(), usize::from(cwnd));
        assert_eq!(s.endpoint.in_flight(), cwnd);
    }
    assert_eq!(Script::connected(plain()).endpoint.rto(), Duration::from_millis(300));
}
