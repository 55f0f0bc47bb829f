//! RFC 5681 §3.1 and §4.1, RFC 3465, RFC 3042: growth, reduction, idle time, limited transmit.

use super::script::{Script, mss_1000_sack, plain, segment};
use crate::tcp::{
    Config, Growth, GrowthCondition, IdleRestart, InitialSsthresh, InitialWindow, LimitedTransmit,
    RecoveryPhase, RecoveryTimeout, Reduction, RepeatedTimeout,
};
use hopline_core::Length;

fn start(config: Config, window: u32) -> Script {
    Script::sending(Config { initial_window: InitialWindow::Segments(window), ..config }, 1 << 40)
}

#[test]
fn slow_start_adds_a_segment_per_ack() {
    let mut s = start(plain(), 2);
    s.transmits();
    s.receive(segment(1).ack(1001));
    assert_eq!(s.endpoint.cwnd(), 3000);
    s.receive(segment(1).ack(2001));
    assert_eq!(s.endpoint.cwnd(), 4000);
}

#[test]
fn per_ack_growth_ignores_how_much_an_ack_covers() {
    let mut s = start(plain(), 4);
    s.transmits();
    s.receive(segment(1).ack(4001));
    assert_eq!(s.endpoint.cwnd(), 5000);
}

#[test]
fn byte_counting_adds_what_was_acknowledged_up_to_the_limit() {
    let mut s = start(Config { growth: Growth::Bytes { limit: 2 }, ..plain() }, 6);
    s.transmits();
    s.receive(segment(1).ack(501));
    assert_eq!(s.endpoint.cwnd(), 6500);
    s.receive(segment(1).ack(2001));
    assert_eq!(s.endpoint.cwnd(), 8000);
    s.receive(segment(1).ack(6001));
    assert_eq!(s.endpoint.cwnd(), 10_000, "L = 2");
}

#[test]
fn byte_counting_adds_one_segment_at_most_after_a_timeout() {
    let mut s = start(Config { growth: Growth::Bytes { limit: 2 }, ..plain() }, 8);
    s.transmits();
    s.run_until(450);
    s.receive(segment(1).ack(3001));
    assert_eq!(s.endpoint.cwnd(), 2000);
}

#[test]
fn congestion_avoidance_adds_a_segment_per_window() {
    for growth in [Growth::PerAck, Growth::Bytes { limit: 2 }] {
        let ssthresh = InitialSsthresh::Segments(4);
        let mut s = start(Config { growth, initial_ssthresh: ssthresh, ..plain() }, 4);
        s.transmits();
        for i in 1..=4 {
            s.receive(segment(1).ack(1 + 1000 * i));
            s.transmits();
        }
        let cwnd = s.endpoint.cwnd();
        assert!((4880..=5000).contains(&cwnd), "{growth:?}: {cwnd}");
    }
}

#[test]
fn an_unused_window_does_not_grow_if_configured() {
    let config = Config { growth_condition: GrowthCondition::WindowFull, ..plain() };
    let mut s = Script::connected(config);
    for i in 0..5 {
        s.endpoint.send(s.now, Length(1000)).unwrap();
        s.transmits();
        s.receive(segment(1).ack(1001 + 1000 * i));
    }
    assert_eq!(s.endpoint.cwnd(), 10_000);
}

#[test]
fn a_timeout_halves_the_flight_and_a_second_one_does_not() {
    let mut s = start(plain(), 10);
    s.transmits();
    s.run_until(450);
    assert_eq!((s.endpoint.cwnd(), s.endpoint.ssthresh()), (1000, 5000));
    assert_eq!(s.endpoint.phase(), RecoveryPhase::Loss);
    s.run_until(1050);
    assert_eq!((s.endpoint.cwnd(), s.endpoint.ssthresh()), (1000, 5000), "RFC 5681 §3.1");
    s.receive(segment(1).ack(10_001));
    assert_eq!(s.endpoint.phase(), RecoveryPhase::Open);
}

#[test]
fn in_ns2_a_second_timeout_leaves_two_segments() {
    let config = Config {
        repeated_timeout: RepeatedTimeout::Reduce,
        reduction: Reduction::Window,
        initial_ssthresh: InitialSsthresh::WindowClamp,
        window_clamp: Some(9),
        ..plain()
    };
    let mut s = start(config, 9);
    s.transmits();
    assert_eq!(s.endpoint.ssthresh(), 9000);
    s.run_until(450);
    assert_eq!(s.endpoint.ssthresh(), 4000, "half of nine in whole segments");
    s.run_until(1050);
    assert_eq!(s.endpoint.ssthresh(), 2000);
}

#[test]
fn after_idle_time_the_window_restarts() {
    for (rule, expected) in
        [(IdleRestart::Never, 20_000), (IdleRestart::InitialWindow, 10_000), (IdleRestart::OneSegment, 1000)]
    {
        let mut s = Script::connected(Config { idle_restart: rule, ..plain() });
        s.endpoint.send(s.now, Length(10_000)).unwrap();
        s.transmits();
        for i in 1..=10 {
            s.receive(segment(1).ack(1 + 1000 * i));
        }
        assert_eq!(s.endpoint.cwnd(), 20_000);
        s.endpoint.send(s.now, Length(1000)).unwrap();
        s.transmits();
        s.receive_at(200, segment(1).ack(11_001));
        assert_eq!(s.endpoint.cwnd(), 21_000, "a short pause changes nothing");
        s.run_until(5000);
        s.endpoint.send(s.now, Length(1000)).unwrap();
        s.transmits();
        let cwnd = s.endpoint.cwnd();
        assert_eq!(cwnd, if rule == IdleRestart::Never { 21_000 } else { expected }, "{rule:?}");
    }
}

#[test]
fn limited_transmit_sends_new_data_on_the_first_two_duplicates() {
    let mut s = start(plain(), 4);
    s.transmits();
    s.receive(segment(1).ack(1));
    assert_eq!(s.transmits(), ". 4001:5001 ack 1");
    s.receive(segment(1).ack(1));
    assert_eq!(s.transmits(), ". 5001:6001 ack 1");
    s.receive(segment(1).ack(1));
    assert_eq!(s.transmits(), ". 1:1001 ack 1", "the third is a loss");
    assert_eq!(s.endpoint.ssthresh(), 2000, "FlightSize without what limited transmit sent");
}

#[test]
fn limited_transmit_can_be_off() {
    let mut s = start(Config { limited_transmit: LimitedTransmit::Off, ..plain() }, 4);
    s.transmits();
    s.receive(segment(1).ack(1));
    s.receive(segment(1).ack(1));
    assert_eq!(s.transmits(), "");
    s.receive(segment(1).ack(1));
    assert_eq!(s.transmits(), ". 1:1001 ack 1; . 4001:5001 ack 1", "half of four, and three inflated");
}

#[test]
fn limited_transmit_keeps_within_the_peers_window_and_the_clamp() {
    let mut s = start(Config { window_clamp: Some(4), ..plain() }, 4);
    s.transmits();
    s.receive(segment(1).ack(1));
    s.receive(segment(1).ack(1));
    assert_eq!(s.transmits(), "");
}

#[test]
fn after_a_timeout_limited_transmit_sends_old_data_only_as_ns2() {
    for (rule, expected) in [(LimitedTransmit::NewData, ""), (LimitedTransmit::NextData, ". 1001:2001 ack 1")]
    {
        let mut s = start(Config { limited_transmit: rule, ..plain() }, 4);
        s.transmits();
        s.run_until(450);
        s.receive(segment(1).ack(1));
        assert_eq!(s.transmits(), expected, "{rule:?}");
    }
}

#[test]
fn data_a_window_change_or_a_fin_prevent_a_duplicate_ack() {
    // RFC 5681 §2.
    let mut s = start(plain(), 4);
    s.transmits();
    s.receive(segment(1).ack(1).data(10));
    s.receive(segment(11).ack(1).win(50_000));
    s.receive(segment(11).ack(1).fin().win(50_000));
    assert_eq!(s.endpoint.stats().dup_acks, 0);
}

#[test]
fn the_threshold_can_be_changed() {
    let mut s = start(Config { dup_ack_threshold: 5, limited_transmit: LimitedTransmit::Off, ..plain() }, 8);
    s.transmits();
    for _ in 0..4 {
        s.receive(segment(1).ack(1));
    }
    assert_eq!(s.transmits(), "");
    s.receive(segment(1).ack(1));
    assert_eq!(s.transmits(), ". 1:1001 ack 1; . 8001:9001 ack 1", "half of eight, and five inflated");
}

/// Twenty segments in flight, of which three duplicates have told that the first is lost.
fn recovering(config: Config) -> Script {
    let config = Config { initial_window: InitialWindow::Segments(20), ..config };
    let mut s = Script::connected_with(config, mss_1000_sack());
    s.endpoint.send(s.now, Length(1 << 40)).unwrap();
    s.transmits();
    for n in 1..=3 {
        s.receive(segment(1).ack(1).sack(1001, 1001 + 1000 * n));
    }
    assert_eq!((s.endpoint.phase(), s.endpoint.ssthresh()), (RecoveryPhase::Recovery, 10_000));
    s.transmits();
    s
}

#[test]
fn a_timeout_within_recovery_lowers_the_threshold_a_second_time() {
    // RFC 5681 §4.3. What the peer holds and what duplicates let out does not count.
    let lowered = |config: Config, rule| {
        let mut s = recovering(Config { recovery_timeout: rule, ..config });
        for n in 4..=19 {
            s.receive(segment(1).ack(1).sack(1001, 1001 + 1000 * n));
        }
        s.transmits();
        while s.endpoint.phase() == RecoveryPhase::Recovery {
            s.run_until(s.now.as_nanos() / 1_000_000 + 50);
        }
        assert_eq!(s.endpoint.cwnd(), 1000);
        s.endpoint.ssthresh()
    };
    for config in [plain().with_reno(), plain().with_newreno(), plain().with_sack(), plain().with_rack()] {
        let ssthresh = lowered(config, RecoveryTimeout::Reduce);
        assert!((2000..=5000).contains(&ssthresh), "{:?}: {ssthresh}", config.variant);
        assert_eq!(lowered(config, RecoveryTimeout::Keep), 10_000, "{:?}", config.variant);
    }
}

#[test]
fn a_timeout_after_a_timeout_never_raises_the_threshold() {
    // The first time-out leaves half of twenty; one segment is acknowledged, and the retransmission of the next is lost.
    for config in [plain().with_newreno(), plain().with_sack(), plain().with_rack()] {
        let mut s = start(config, 20);
        s.transmits();
        s.run_until(450);
        assert_eq!(s.endpoint.ssthresh(), 10_000);
        s.receive(segment(1).ack(1001));
        s.transmits();
        s.run_until(5000);
        let (law, ssthresh) = (config.variant, s.endpoint.ssthresh());
        assert_eq!(ssthresh, 2000, "{law:?}: two segments were let out");
    }
}

#[test]
fn without_sack_data_that_duplicates_reported_are_not_delivered_again() {
    // Linux: two duplicates stand for two of the three segments.
    let config = Config { growth: Growth::Delivered, ..plain() };
    let mut s = Script::sending(config, 1 << 40);
    s.transmits();
    s.receive(segment(1).ack(1));
    s.receive(segment(1).ack(1));
    s.transmits();
    s.receive(segment(1).ack(3001));
    assert_eq!(s.endpoint.cwnd(), 11_000);
    s.receive(segment(1).ack(5001));
    assert_eq!(s.endpoint.cwnd(), 13_000);
}
