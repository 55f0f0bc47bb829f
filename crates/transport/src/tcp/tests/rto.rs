//! RFC 6298: the retransmission timeout to the millisecond.

use super::script::{Script, mss_1000, plain, segment};
use crate::tcp::{Config, Estimator};
use hopline_core::{Duration, Instant, Length, StateMachine};

fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

/// Sends one segment now and acknowledges it `rtt` milliseconds later.
fn round_trip(s: &mut Script, rtt: u64) {
    s.endpoint.send(s.now, Length(1000)).unwrap();
    assert!(!s.transmits().is_empty());
    let at = s.now.as_nanos() / 1_000_000 + rtt;
    let ack = 1 + 1000 * (s.endpoint.stats().segments_sent - s.endpoint.stats().retransmissions) as i64;
    s.receive_at(at, segment(1).ack(ack));
}

#[test]
fn the_first_sample_and_the_next() {
    let mut s = Script::connected(plain());
    // §2.2: 100 + 4·50
    assert_eq!(s.endpoint.rto(), ms(300));
    round_trip(&mut s, 180);
    // §2.3: rttvar 3/4·50 + 80/4 = 57.5, srtt 7/8·100 + 180/8 = 110, 110 + 230
    assert_eq!(s.endpoint.srtt(), Some(ms(110)));
    assert_eq!(s.endpoint.rto(), ms(340));
}

#[test]
fn the_least_rto_holds() {
    let mut config = plain();
    config.rto.min = ms(1000);
    let s = Script::connected(config);
    assert_eq!(s.endpoint.rto(), ms(1000));
}

#[test]
fn the_rto_is_a_multiple_of_the_granularity_and_the_variance_at_least_one_tick() {
    let mut config = plain();
    config.rto.granularity = ms(70);
    config.rto.min = ms(1);
    let mut s = Script::connected(config);
    assert_eq!(s.endpoint.rto(), ms(350), "300 rounded up");
    for _ in 0..60 {
        round_trip(&mut s, 100);
    }
    assert_eq!(s.endpoint.rto(), ms(210), "100 + 70 rounded up");
}

#[test]
fn the_timer_starts_with_the_first_segment_and_restarts_with_each_new_ack() {
    let mut s = Script::sending(plain(), 3000);
    s.transmits();
    assert_eq!(s.endpoint.poll_timeout().unwrap().0, Instant::from_millis(400));
    s.receive_at(150, segment(1).ack(1001));
    s.transmits();
    let rto = s.endpoint.rto();
    assert_eq!(s.endpoint.poll_timeout().unwrap().0, Instant::from_millis(150) + rto);
    s.receive_at(200, segment(1).ack(1001));
    assert_eq!(s.endpoint.poll_timeout().unwrap().0, Instant::from_millis(150) + rto, "not with duplicates");
    s.receive_at(210, segment(1).ack(3001));
    assert_eq!(s.endpoint.poll_timeout(), None, "§5.2");
}

#[test]
fn back_off_doubles_up_to_the_largest_rto() {
    let mut config = plain();
    config.rto.max = ms(2000);
    let mut s = Script::sending(config, 10);
    assert_eq!(
        s.run_until(8300).matches(": . 1:11").count(),
        7,
        "at 100, then after 300, 600, 1200, 2000, 2000 and 2000"
    );
    assert_eq!(s.endpoint.rto(), ms(2000));
}

#[test]
fn the_back_off_limit_holds() {
    let mut config = plain();
    config.rto.backoff_limit = Some(4);
    let mut s = Script::sending(config, 10);
    let said = s.run_until(6000);
    let times: Vec<&str> = said.split("; ").map(|l| l.split(':').next().unwrap()).collect();
    assert_eq!(times, ["100", "400", "1000", "2200", "3400", "4600", "5800"]);
}

#[test]
fn by_karns_algorithm_a_retransmission_gives_no_sample_and_keeps_the_backoff() {
    let mut s = Script::sending(plain(), 1000);
    assert_eq!(s.run_until(500), "100: . 1:1001 ack 1; 400: . 1:1001 ack 1");
    s.receive(segment(1).ack(1001));
    assert_eq!(s.endpoint.srtt(), Some(ms(100)));
    assert_eq!(s.endpoint.rto(), ms(600), "until a segment sent once is acknowledged");
    s.endpoint.send(s.now, Length(1000)).unwrap();
    s.transmits();
    s.receive_at(600, segment(1).ack(2001));
    assert_eq!(s.endpoint.backoff(), 1);
    assert_eq!(s.endpoint.rto(), ms(250), "100 + 4·37.5");
}

#[test]
fn after_a_timeout_everything_in_flight_is_sent_again_as_the_window_opens() {
    let mut s = Script::sending(plain(), 4000);
    s.transmits();
    assert_eq!(s.run_until(450), "400: . 1:1001 ack 1");
    assert_eq!(s.endpoint.cwnd(), 1000);
    assert_eq!(s.endpoint.ssthresh(), 2000);
    assert_eq!(s.endpoint.flight_size(), 1000);
    s.receive_at(500, segment(1).ack(1001));
    assert_eq!(s.transmits(), ". 1001:2001 ack 1; . 2001:3001 ack 1");
    s.receive_at(600, segment(1).ack(4001));
    assert_eq!(s.transmits(), "", "the originals arrived");
    assert_eq!(s.endpoint.stats().retransmissions, 3);
    assert_eq!(s.endpoint.stats().timeouts, 1);
}

#[test]
fn a_late_or_repeated_timeout_call_does_nothing() {
    let mut s = Script::sending(plain(), 1000);
    s.transmits();
    s.now = Instant::from_millis(399);
    s.endpoint.handle_timeout(s.now);
    assert_eq!(s.transmits(), "");
    s.now = Instant::from_millis(700);
    s.endpoint.handle_timeout(s.now);
    assert_eq!(s.transmits(), ". 1:1001 ack 1");
    s.endpoint.handle_timeout(s.now);
    assert_eq!(s.transmits(), "");
}

/// Ticks of 10 ms in the integers of Jacobson (1988).
fn ticks() -> Config {
    let ns2 = Config::ns2_235();
    Config { rto: ns2.rto, ..plain() }
}

#[test]
fn ticks_count_the_boundaries_passed() {
    let mut config = ticks();
    config.rto.min = ms(1);
    let mut s = Script::connected(config);
    // 10 ticks: 8·srtt = 80, 4·rttvar = 20; (20·8 + 80) / 8 = 30 ticks
    assert_eq!(s.endpoint.srtt(), Some(ms(100)));
    assert_eq!(s.endpoint.rto(), ms(300));
    round_trip(&mut s, 185);
    // 18 ticks: error 8, 8·srtt = 88; 4·rttvar = 20 + 8 − 5 = 23; (184 + 88) / 8 = 34 ticks
    assert_eq!(s.endpoint.srtt(), Some(ms(110)));
    assert_eq!(s.endpoint.rto(), ms(340));
}

#[test]
fn the_phase_of_the_ticks_decides_between_neighbours() {
    for (phase, expected) in [(0, 100), (4, 100), (5, 110)] {
        let mut config = ticks();
        config.rto.estimator = Estimator::Ticks { phase: ms(phase) };
        let mut s = Script::new(config);
        s.endpoint.connect(s.now).unwrap();
        s.transmits();
        s.receive_at(105, segment(0).syn().ack(1).options(mss_1000()));
        assert_eq!(s.endpoint.srtt(), Some(ms(expected)), "phase {phase} ms");
    }
}

#[test]
fn a_sample_is_at_least_one_tick() {
    let mut config = ticks();
    config.rto.min = Duration::ZERO;
    let mut s = Script::connected(config);
    for _ in 0..200 {
        round_trip(&mut s, 1);
    }
    // The shifts stop at 8·srtt = 15 and 4·rttvar = 3: (24 + 15) / 8 = 4 ticks.
    assert_eq!(s.endpoint.srtt(), Some(Duration::from_micros(18_750)));
    assert_eq!(s.endpoint.rto(), ms(40));
}

#[test]
fn ns2_forgets_the_estimate_after_four_doublings() {
    let mut s = Script::sending(ticks(), 1000);
    s.run_until(3000);
    assert_eq!(s.endpoint.backoff(), 8);
    assert!(s.endpoint.srtt().is_some());
    s.run_until(5000);
    assert_eq!(s.endpoint.backoff(), 16);
    assert_eq!(s.endpoint.srtt(), None);
    assert_eq!(s.endpoint.rto(), ms(4800), "but not the timeout");
}

#[test]
fn ns2_initial_timeouts_of_a_lost_syn() {
    let mut s = Script::new(ticks());
    s.endpoint.connect(s.now).unwrap();
    assert_eq!(s.run_until(100_000), "0: S 0; 3000: S 0; 9000: S 0; 21000: S 0; 45000: S 0; 93000: S 0");
}

#[test]
fn a_floor_on_the_variance_is_on_top_of_the_round_trip() {
    let mut config = plain().with_linux_rto();
    config.rto.min = ms(200);
    let mut s = Script::connected(config);
    assert_eq!(s.endpoint.rto(), ms(300), "100 + 4·50: the variance term is 200");
    for _ in 0..60 {
        round_trip(&mut s, 100);
    }
    assert_eq!(s.endpoint.rto(), ms(300), "without jitter 200 remain");
    let mut on_the_sum = Script::connected(plain());
    for _ in 0..60 {
        round_trip(&mut on_the_sum, 100);
    }
    assert_eq!(on_the_sum.endpoint.rto(), ms(200));
}
