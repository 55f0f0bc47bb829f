//! Worked examples. With segments of 1460 bytes and 112 bytes of overhead at 2 Mb/s, a segment takes
//! s = 1572·8/2 = 6288 µs of air and an ACK a = 112·8/2 = 448 µs.

use super::*;

/// A round trip in milliseconds, and over how many hops.
type RttSample = (u64, u8);

fn add_sample(pacing: &mut AdaptivePacing, (ms, hops): RttSample) {
    pacing.set_hops(hops);
    pacing.on_rtt_sample(Duration::from_millis(ms), 1460);
}

fn paced(config: Config, trips: &[RttSample]) -> AdaptivePacing {
    let mut pacing = AdaptivePacing::new(config);
    trips.iter().for_each(|&trip| add_sample(&mut pacing, trip));
    pacing
}

/// Microseconds between segments after these round trips.
fn interval_us(config: Config, trips: &[RttSample]) -> u64 {
    paced(config, trips).interval().as_micros()
}

#[test]
fn before_any_sample_segments_are_50_ms_apart() {
    let pacing = AdaptivePacing::new(Config::AUTHORS);
    assert_eq!(pacing.interval(), Duration::from_millis(50));
    assert_eq!(pacing.four_hop_delay(), None);
    assert_eq!(pacing.variability(), 0.0);
}

#[test]
fn the_first_sample_is_taken_as_it_is() {
    // tq = ½·(100/4 − 6.288 − 0.448) = 9.132 ms; d1 = 9.132 + 6.288 = 15.42 ms; four of it
    assert_eq!(interval_us(Config::AUTHORS, &[(100, 4)]), 61_680);
}

#[test]
fn paths_longer_than_four_hops_use_four_hops() {
    // tq = ½·(200/8 − 6.736): a hop is as slow as above
    assert_eq!(interval_us(Config::AUTHORS, &[(200, 8)]), 61_680);
}

#[test]
fn the_second_sample_weighs_thirty_percent_and_variability_raises_the_interval() {
    // 140 ms: tq 14.132, d1 20.42, FHD 81.68 ms; average 0.7·61.68 + 0.3·81.68 = 67.68 ms
    let pacing = paced(Config::AUTHORS, &[(100, 4), (140, 4)]);
    assert_eq!(pacing.four_hop_delay(), Some(Duration::from_micros(67_680)));
    // mean of FHD 71.68, deviations 10 and 10: 10/71.68
    assert!((pacing.variability() - 10.0 / 71.68).abs() < 1e-12);
    // 67.68·(1 + 2·10/71.68) = 86.563 928 ms
    assert_eq!(pacing.interval().as_micros(), 86_563);
}

#[test]
fn the_variability_of_the_paper_is_that_of_round_trip_times() {
    let config = Config { variability: Variability::CovRtt, ..Config::AUTHORS };
    // 100 and 140 ms: standard deviation 20 over mean 120; 67.68·(1 + 2/6) = 90.24 ms
    let trips = [(100, 4), (140, 4)];
    assert!((paced(config, &trips).variability() - 1.0 / 6.0).abs() < 1e-12);
    assert_eq!(interval_us(config, &trips), 90_240);
    // K = 2: 67.68·(1 + 4/6) = 112.8 ms
    assert_eq!(interval_us(Config { contention_factor: 2.0, ..config }, &trips), 112_799); // 112.8 less a rounding
    // K = 0: the average alone
    assert_eq!(interval_us(Config { contention_factor: 0.0, ..config }, &trips), 67_680);
}

#[test]
fn a_path_of_unknown_length_gives_no_sample() {
    let mut pacing = AdaptivePacing::new(Config::AUTHORS);
    add_sample(&mut pacing, (100, 0));
    assert_eq!((pacing.interval().as_millis(), pacing.four_hop_delay()), (50, None));
    add_sample(&mut pacing, (100, 4));
    add_sample(&mut pacing, (100, 0));
    assert_eq!(pacing.four_hop_delay(), Some(Duration::from_micros(61_680)));
}

#[test]
fn short_paths_use_one_hop_or_all_hops_as_configured() {
    // 60 ms over 3 hops: tq = ½·(20 − 6.736) = 6.632, d1 = 12.92 ms
    assert_eq!(interval_us(Config::AUTHORS, &[(60, 3)]), 12_920);
    let fewer = Config { short_paths: ShortPaths::FewerHops, ..Config::AUTHORS };
    assert_eq!(interval_us(fewer, &[(60, 3)]), 38_760);
    assert_eq!(interval_us(fewer, &[(20, 1)]), 12_920);
    assert_eq!(interval_us(fewer, &[(100, 4)]), 61_680);
}

#[test]
fn a_four_hop_delay_above_the_limit_is_discarded() {
    // over 4 hops FHD is half the round trip and 11.68 ms; so 1000 ms give 511.68 ms
    let mut pacing = paced(Config::AUTHORS, &[(100, 4)]);
    for hopeless in [(1000, 4), (u64::MAX / 2_000_000, 4), (u64::MAX / 2_000_000, 1)] {
        add_sample(&mut pacing, hopeless);
        assert_eq!(pacing.interval().as_micros(), 61_680, "{hopeless:?}");
    }
    add_sample(&mut pacing, (970, 4)); // 496.68 ms: just believed
    assert_eq!(pacing.four_hop_delay().unwrap().as_micros(), 192_180);
}

#[test]
fn a_queueing_delay_above_half_a_second_is_smoothed() {
    // over one hop: 100 ms give tq 46.632; 1100 ms give 546.632, above the limit: ½·46.632 + ½·546.632 = 296.632
    // d1 = 302.92; average 0.7·52.92 + 0.3·302.92 = 127.92 ms
    let pacing = paced(Config::AUTHORS, &[(100, 1), (1100, 1)]);
    assert_eq!(pacing.four_hop_delay(), Some(Duration::from_micros(127_920)));
}

#[test]
fn a_zero_round_trip_time_gives_the_least_interval_of_the_model() {
    // tq = −½·6.736 = −3.368; d1 = 2.92 ms; a segment without data would give nothing, and counts as none
    assert_eq!(interval_us(Config::AUTHORS, &[(0, 4)]), 11_680);
    let mut pacing = AdaptivePacing::new(Config::AUTHORS);
    pacing.set_hops(4);
    pacing.on_rtt_sample(Duration::ZERO, 0);
    assert_eq!(pacing.interval().as_millis(), 50);
}

#[test]
fn a_longer_round_trip_never_shortens_the_spacing_of_a_fresh_path() {
    for short_paths in [ShortPaths::OneHop, ShortPaths::FewerHops] {
        for hops in [1, 2, 3, 4, 5, 16, 255] {
            let config = Config { short_paths, ..Config::AUTHORS };
            let intervals: Vec<u64> =
                (1..50).map(|n| interval_us(config, &[(n * u64::from(hops) * 4, hops)])).collect();
            assert!(intervals.is_sorted(), "{hops} hops: {intervals:?}");
        }
    }
}

#[test]
fn contention_raises_the_interval_until_the_history_has_passed() {
    let wild: Vec<RttSample> = (0..60).map(|n| (if n % 2 == 0 { 60 } else { 140 }, 4)).collect();
    for variability in [Variability::MadFhd, Variability::CovRtt] {
        let config = Config { variability, ..Config::AUTHORS };
        let mut pacing = paced(config, &wild);
        assert!(pacing.variability() > 0.3, "{variability:?}");
        for _ in 0..50 {
            add_sample(&mut pacing, (100, 4));
        }
        assert_eq!(pacing.variability(), 0.0, "{variability:?}: 50 equal samples fill the history");
    }
}

#[test]
fn sums_do_not_drift() {
    let samples: Vec<u64> = (0..20_000).map(|n: u64| n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 25).collect();
    let mut long = SampleHistory::new(50);
    samples.iter().for_each(|&x| long.push(x));
    let mut fresh = SampleHistory::new(50);
    samples[19_950..].iter().for_each(|&x| fresh.push(x));
    assert_eq!(long.coefficient_of_variation().to_bits(), fresh.coefficient_of_variation().to_bits());
    assert_eq!(long.mean_absolute_deviation().to_bits(), fresh.mean_absolute_deviation().to_bits());
}

#[test]
fn the_largest_samples_do_not_overflow() {
    let mut history = SampleHistory::new(1000);
    assert_eq!((history.coefficient_of_variation(), history.mean_absolute_deviation()), (0.0, 0.0));
    (0..3000).for_each(|n| history.push(if n % 2 == 0 { u64::MAX } else { 0 }));
    assert_eq!((history.coefficient_of_variation(), history.mean_absolute_deviation()), (1.0, 1.0));
    (0..1000).for_each(|_| history.push(0));
    assert_eq!((history.coefficient_of_variation(), history.mean_absolute_deviation()), (0.0, 0.0));
}

#[test]
fn the_first_segment_leaves_at_once_and_the_others_an_interval_apart() {
    let mut pacing = AdaptivePacing::new(Config::AUTHORS);
    let at = Instant::from_millis;
    assert_eq!(pacing.release_time(at(7)), at(7));
    pacing.on_released(at(7));
    assert_eq!(pacing.release_time(at(7)), at(57));
    assert_eq!(pacing.release_time(at(57)), at(57));
    assert_eq!(pacing.release_time(at(90)), at(90), "nothing is owed for the time that passed");
    pacing.on_released(at(90));
    assert_eq!(pacing.release_time(at(91)), at(140));
}

#[test]
fn a_new_spacing_holds_from_the_next_segment_on() {
    let mut pacing = AdaptivePacing::new(Config::AUTHORS);
    let at = Instant::from_millis;
    pacing.on_released(at(0));
    add_sample(&mut pacing, (60, 3)); // 12.92 ms
    assert_eq!(pacing.release_time(at(1)), at(50));
    pacing.on_released(at(50));
    assert_eq!(pacing.release_time(at(51)), Instant::from_nanos(62_920_000));
}

#[test]
fn while_stopped_only_a_retransmission_is_released_and_resuming_releases_one_at_once() {
    let mut pacing = paced(Config::AUTHORS, &[(100, 4)]);
    let at = Instant::from_millis;
    pacing.on_released(at(0));
    pacing.stop();
    assert_eq!(pacing.release_time(at(1)), at(1));
    pacing.on_released(at(1));
    assert_eq!(pacing.release_time(at(1)), Instant::FAR_FUTURE);
    pacing.on_released(at(1));
    assert_eq!(pacing.release_time(at(900)), Instant::FAR_FUTURE);
    pacing.resume();
    assert_eq!(pacing.release_time(at(2)), at(2));
    pacing.on_released(at(2));
    pacing.resume();
    assert_eq!(pacing.release_time(at(3)), Instant::from_nanos(63_680_000), "the estimate was kept");
}

#[test]
fn parameters_out_of_range_are_named() {
    type Spoil = fn(&mut Config);
    let spoilt: [(&str, Spoil); 14] = [
        ("pacing.spatial_factor", |c| c.spatial_factor = 0),
        ("pacing.overhead_bytes", |c| c.overhead_bytes = 10_001),
        ("pacing.link_rate_bps", |c| c.link_rate_bps = 0),
        ("pacing.history_weight", |c| c.history_weight = 1.0),
        ("pacing.history_weight", |c| c.history_weight = f64::NAN),
        ("pacing.history", |c| c.history = 0),
        ("pacing.history", |c| c.history = 1001),
        ("pacing.contention_factor", |c| c.contention_factor = -0.1),
        ("pacing.contention_factor", |c| c.contention_factor = f64::INFINITY),
        ("pacing.sample_limit", |c| c.sample_limit = Duration::ZERO),
        ("pacing.queueing_limit", |c| c.queueing_limit = Duration::from_secs(61)),
        ("pacing.queueing_gain", |c| c.queueing_gain = 0.0),
        ("pacing.initial_interval", |c| c.initial_interval = Duration::ZERO),
        ("pacing.initial_interval", |c| c.initial_interval = Duration::MAX),
    ];
    assert_eq!(Config::AUTHORS.validate(), Ok(()));
    for (field, spoil) in spoilt {
        let mut config = Config::AUTHORS;
        spoil(&mut config);
        assert_eq!(config.validate().unwrap_err().field, field);
    }
}
