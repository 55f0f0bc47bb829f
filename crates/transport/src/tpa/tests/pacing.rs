//! TPA-AP (TPA §5.2): when segments leave. With segments of 1000 bytes and 112 bytes of overhead at 2 Mb/s a segment takes
//! s = 4.448 ms of air and an ACK a = 0.448 ms.

use super::script::{Script, ack, data, plain};
use crate::Signal;
use crate::pacing::{self, Pacing, ShortPaths, Variability};
use crate::tpa::{Config, Timer};
use hopline_core::{Duration, Instant, StateMachine};

fn paced(pacing: pacing::Config) -> Config {
    Config { block_segments: 12, pacing: Pacing::Adaptive(pacing), ..plain() }
}

fn authors() -> Config {
    paced(pacing::Config::AUTHORS)
}

/// Connected at 100 ms, with so many bytes to send and a path of `hops`; 0: not known.
fn sending(config: Config, hops: u8, bytes: u64) -> Script {
    let mut s = Script::connected(config);
    s.endpoint.handle_signal(s.now, Signal::PathLength { hops });
    s.write_and_flush(bytes);
    s
}

/// The block's first segments are acknowledged at these times, one more with each, on account of its first transmission.
fn acknowledged_at(s: &mut Script, times: &[u64]) {
    for (count, &ms) in (1u8..).zip(times) {
        s.run_until(ms);
        let positions: Vec<u8> = (0..count).collect();
        s.receive(ack(0, &positions, count - 1));
    }
}

fn interval_ns(s: &Script) -> u64 {
    s.endpoint.pacing().unwrap().interval().as_nanos()
}

/// The spacing after round trips of 100 and of 110 ms over four hops.
fn after_100_and_110_ms(config: Config) -> u64 {
    let mut s = sending(config, 4, 12_000);
    acknowledged_at(&mut s, &[200, 260]);
    interval_ns(&s)
}

#[test]
fn without_pacing_the_window_is_sent_at_once() {
    let mut s = sending(plain(), 4, 4000);
    assert!(s.endpoint.pacing().is_none());
    assert_eq!(s.transmits(), "0:0 (1000) tx 0; 0:1 (1000) tx 1; 0:2 (1000) tx 2");
    assert_eq!(s.endpoint.poll_timeout().map(|(_, timer)| timer), Some(Timer::Retransmit));
}

#[test]
fn before_any_estimate_segments_are_50_ms_apart() {
    for hops in [0, 1, 4, 255] {
        let mut s = sending(authors(), hops, 12_000);
        assert_eq!(
            s.run_until(399),
            "100: 0:0 (1000) tx 0; 150: 0:1 (1000) tx 1; 200: 0:2 (1000) tx 2",
            "the window of three limits all the same, {hops} hops"
        );
        assert_eq!(s.endpoint.pacing().unwrap().four_hop_delay(), None, "the handshake is no sample");
    }
}

#[test]
fn the_first_ack_sets_the_spacing_from_the_next_but_one_on() {
    let mut s = sending(authors(), 4, 12_000);
    acknowledged_at(&mut s, &[200]);
    // 100 ms over 4 hops: tq = ½·(25 − 4.896) = 10.052, d1 = 14.5, four of it.
    assert_eq!(interval_ns(&s), 58_000_000);
    assert_eq!(s.run_until(259), "250: 0:3 (1000) tx 3", "its time was set when the one before it left");
    s.receive(ack(0, &[0, 1, 2], 2));
    // 59 ms: tq 4.927, d1 9.375, FHD 37.5, average 51.85; mean 47.75, deviation 10.25. The window has room for two.
    assert_eq!(s.run_until(307), "");
    assert_eq!(s.run_until(308), "308: 0:4 (1000) tx 4");
    let spacing = interval_ns(&s);
    assert_eq!(spacing, 74_110_209, "51.85·(1 + 20.5/47.75)");
    assert_eq!(
        s.endpoint.poll_timeout(),
        Some((Instant::from_millis(308) + Duration::from_nanos(spacing), Timer::Release))
    );
    assert_eq!(s.run_until(383), "382: 0:5 (1000) tx 5");
}

#[test]
fn departures_follow_the_formula_to_the_nanosecond() {
    let mut s = sending(authors(), 4, 12_000);
    acknowledged_at(&mut s, &[200, 260]);
    // 110 ms: tq 11.302, d1 15.75, FHD 63; average 0.7·58 + 0.3·63 = 59.5; mean 60.5, deviation 2.5: 59.5·(1 + 5/60.5).
    assert_eq!(interval_ns(&s), 64_417_355);
    assert_eq!(s.run_until(320), "308: 0:4 (1000) tx 4");
    // Room for one more: the ACK tells no round trip, for transmission 9 was never made.
    s.receive(ack(0, &[0, 1, 2], 9));
    assert_eq!(s.transmits(), "");
    assert_eq!(s.endpoint.poll_timeout(), Some((Instant::from_nanos(372_417_355), Timer::Release)));
    assert_eq!(s.run_until(373), "372: 0:5 (1000) tx 5");
}

#[test]
fn contention_is_weighted_by_its_factor() {
    let factor = |contention_factor| paced(pacing::Config { contention_factor, ..pacing::Config::AUTHORS });
    // TPA Eq. 3 as it is read here: 59.5·(1 + 2·K·2.5/60.5).
    assert_eq!(after_100_and_110_ms(factor(0.0)), 59_500_000);
    assert_eq!(after_100_and_110_ms(factor(1.0)), 64_417_355);
    assert_eq!(after_100_and_110_ms(factor(2.0)), 69_334_710);
    assert_eq!(after_100_and_110_ms(factor(3.0)), 74_252_066);
}

#[test]
fn the_variability_of_the_papers_is_that_of_round_trips() {
    let variability = Variability::CovRtt;
    // Round trips of 100 and 110 ms: deviation 5 of 105. 59.5·(1 + 10/105).
    let config = paced(pacing::Config { variability, ..pacing::Config::AUTHORS });
    assert_eq!(after_100_and_110_ms(config), 65_166_666);
}

#[test]
fn a_path_that_gets_shorter_counts_with_its_new_length() {
    // 58 ms as above; then 50 ms over 2 hops: tq 10.052, d1 14.5.
    for (short_paths, spacing) in [
        // One hop counts: average 0.7·58 + 0.3·14.5 = 44.95; mean 36.25, deviation 21.75: 44.95·(1 + 1.2).
        (ShortPaths::OneHop, 98_890_000),
        // Two count: average 49.3; mean 43.5, deviation 14.5: 49.3·(1 + 2/3).
        (ShortPaths::FewerHops, 82_166_666),
    ] {
        let mut s = sending(paced(pacing::Config { short_paths, ..pacing::Config::AUTHORS }), 4, 12_000);
        acknowledged_at(&mut s, &[200]);
        s.endpoint.handle_signal(s.now, Signal::PathLength { hops: 2 });
        assert_eq!(interval_ns(&s), 58_000_000, "the length alone changes nothing");
        // Transmission 2 left at 200 ms.
        s.run_until(250);
        s.receive(ack(0, &[0, 2], 2));
        assert!(interval_ns(&s).abs_diff(spacing) <= 1, "{short_paths:?}");
    }
}

#[test]
fn a_round_trip_over_a_path_of_unknown_length_is_no_sample() {
    let mut s = sending(authors(), 0, 12_000);
    acknowledged_at(&mut s, &[200]);
    assert_eq!(interval_ns(&s), 50_000_000);
    s.endpoint.handle_signal(s.now, Signal::PathLength { hops: 4 });
    s.run_until(250);
    s.receive(ack(0, &[0, 1], 1));
    assert_eq!(interval_ns(&s), 58_000_000, "the next one is the first");
    s.endpoint.handle_signal(s.now, Signal::PathLength { hops: 0 });
    s.run_until(300);
    s.receive(ack(0, &[0, 1, 2], 2));
    assert_eq!(interval_ns(&s), 58_000_000, "what was known stays known: 100 ms over 4 hops again");
}

#[test]
fn retransmissions_are_paced_too() {
    let mut s = sending(authors(), 0, 3000);
    assert_eq!(
        s.run_until(519),
        "100: 0:0 (1000) tx 0; 150: 0:1 (1000) tx 1; 200: 0:2. (1000) tx 2; 500: 0:0 (1000) tx 3 !"
    );
    s.receive(ack(0, &[0], 3));
    assert_eq!(s.run_until(600), "550: 0:1 (1000) tx 4; 600: 0:2. (1000) tx 5");
}

#[test]
fn the_next_block_keeps_the_spacing() {
    let mut s = sending(authors(), 0, 1000);
    assert_eq!(s.run_until(110), "100: 0:0. (1000) tx 0");
    s.receive(ack(0, &[0], 0));
    s.write_and_flush(1000);
    assert_eq!(s.run_until(149), "");
    assert_eq!(s.run_until(200), "150: 1:0. (1000) tx 0");
}

#[test]
fn after_a_pause_the_next_segment_leaves_at_once() {
    let mut s = sending(authors(), 4, 1000);
    s.run_until(200);
    s.receive(ack(0, &[0], 0));
    assert_eq!(s.run_until(5000), "");
    let waits_for = s.endpoint.poll_timeout().map(|(_, timer)| timer);
    assert_eq!(waits_for, Some(Timer::Silence), "no timer wakes for what is not there to be sent");
    s.write_and_flush(2000);
    assert_eq!(s.run_until(5100), "5000: 1:0 (1000) tx 0; 5058: 1:1. (1000) tx 1");
}

#[test]
fn acks_are_not_paced() {
    let mut s = sending(authors(), 4, 2000);
    assert_eq!(s.run_until(120), "100: 0:0 (1000) tx 0");
    assert_eq!(s.exchange(data(0, 0).congested()), "ack 0:[0] tx 0");
    assert_eq!(s.run_until(150), "150: 0:1. (1000) tx 1 ack 0:[0] tx 0");
}
