//! TPA §3.4: exact round trips and route changes.

use super::script::{Script, ack, plain};
use crate::tpa::{Config, MergedExit};
use hopline_core::Duration;

fn micros(s: &Script) -> u64 {
    s.endpoint.srtt().unwrap().as_nanos() / 1000
}

/// One segment after another, each acknowledged after `ms`.
fn samples(s: &mut Script, ms: &[u64]) {
    for ms in ms {
        s.write_and_flush(1000);
        s.transmits();
        let block = s.last.unwrap().block;
        let at = s.now.as_nanos() / 1_000_000 + ms;
        s.receive_at(at, ack(block, &[0], 0));
    }
}

#[test]
fn a_retransmitted_segment_samples_the_acknowledged_transmission() {
    for (tx, micros_after) in [(1, 93_750), (0, 131_250)] {
        let mut config = plain();
        config.failures.th_cong = 200;
        let mut s = Script::sending(config, 1000);
        assert_eq!(s.run_until(450), "100: 0:0. (1000) tx 0; 400: 0:0. (1000) tx 1");
        s.receive(ack(0, &[0], tx));
        // 7/8 of 100 ms and 1/8 of 50 or of 350 ms.
        assert_eq!(micros(&s), micros_after, "transmission {tx}");
    }
}

#[test]
fn an_ack_that_comes_again_gives_no_second_sample() {
    let mut s = Script::sending(plain(), 2000);
    s.transmits();
    s.receive_at(180, ack(0, &[0], 0));
    let mean = micros(&s);
    s.receive_at(260, ack(0, &[0], 0));
    assert_eq!(micros(&s), mean);
}

#[test]
fn three_late_samples_in_a_row_are_a_route_change_that_five_updates_follow() {
    let mut s = Script::connected(plain());
    samples(&mut s, &[200, 200]);
    assert_eq!((micros(&s), s.endpoint.stats().route_changes), (123_437, 0), "g = 1/8");
    samples(&mut s, &[200]);
    assert_eq!((micros(&s), s.endpoint.stats().route_changes), (161_718, 1), "g1 = 1/2 from the third on");
    samples(&mut s, &[200, 200, 200, 200]);
    assert_eq!(micros(&s), 197_607, "five halvings of the distance");
    samples(&mut s, &[100]);
    assert_eq!(micros(&s), 185_406, "g = 1/8 again");
    assert_eq!(s.endpoint.stats().route_changes, 1);
}

#[test]
fn early_samples_are_a_route_change_too() {
    let mut s = Script::connected(plain());
    samples(&mut s, &[20, 20, 20]);
    assert_eq!(s.endpoint.stats().route_changes, 1);
}

#[test]
fn a_sample_inside_or_on_the_other_side_resets_the_count() {
    for between in [110, 10] {
        let mut s = Script::connected(plain());
        samples(&mut s, &[200, 200, between, 200, 200]);
        assert_eq!(s.endpoint.stats().route_changes, 0, "{between}");
    }
}

#[test]
fn a_route_that_works_again_is_a_route_change() {
    let exits =
        [(MergedExit::RouteChange, 1, [112_500, 162_250]), (MergedExit::Plain, 0, [103_125, 116_734])];
    for (merged, changes, [at_once, after]) in exits {
        let mut config = plain();
        config.failures.merged_exit = merged;
        let mut s = Script::sending(config, 1000);
        assert_eq!(s.run_until(525), "100: 0:0. (1000) tx 0; 400: 0:0. (1000) tx 1 !");
        s.receive(ack(0, &[0], 1));
        assert_eq!((micros(&s), s.endpoint.stats().route_changes), (at_once, changes), "{merged:?}");
        samples(&mut s, &[212]);
        assert_eq!(micros(&s), after, "g1 = 1/2 or g = 1/8");
    }
}

#[test]
fn the_timeout_has_its_limits() {
    let mut config = Config { ..plain() };
    (config.rto.min, config.rto.max) = (Duration::from_millis(250), Duration::from_millis(800));
    let mut s = Script::connected(config);
    samples(&mut s, &[10; 30]);
    assert_eq!(s.endpoint.rto(), Duration::from_millis(250));
    let start = s.now.as_nanos() / 1_000_000;
    s.write_and_flush(1000);
    let times: Vec<u64> = s
        .run_until(start + 5_000)
        .split("; ")
        .map(|line| line.split(':').next().unwrap().parse::<u64>().unwrap() - start)
        .collect();
    assert_eq!(times, [0, 250, 500, 1000, 1800, 2600, 3400, 4200, 5000]);
}
