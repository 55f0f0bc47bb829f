use super::*;
use hopline_core::Purpose;

const STEADY: RedConfig =
    RedConfig { weight: 1.0, max_probability: 0.1, idle: IdlePolicy::Keep, ..RedConfig::PAPER };

fn red(config: RedConfig) -> Red {
    assert_eq!(config.validate(), Ok(()));
    Red::new(config, RandomStream::keyed(1, 0, 0, Purpose::Queue))
}

fn at(ms: u64) -> Instant {
    Instant::from_millis(ms)
}

/// Returns the gaps between chosen packets, over many packets, with a queue of always `packets`.
fn drop_gaps(config: RedConfig, packets: usize, len_bytes: u32) -> Vec<u32> {
    let mut red = red(config);
    let (mut gaps, mut gap) = (Vec::new(), 0);
    for n in 0..200_000 {
        gap += 1;
        if red.on_arrival(at(n), len_bytes, packets, 500 * packets as u64) != RedDecision::Enqueue {
            gaps.push(gap);
            gap = 0;
        }
    }
    gaps
}

fn mean(gaps: &[u32]) -> f64 {
    f64::from(gaps.iter().sum::<u32>()) / gaps.len() as f64
}

#[test]
fn all_packets_enter_below_the_lower_threshold_and_none_above_the_upper() {
    assert!(drop_gaps(STEADY, 4, 500).is_empty());
    assert_eq!(drop_gaps(STEADY, 15, 500).len(), 200_000);
    let mut red = red(STEADY);
    assert_eq!(red.on_arrival(at(0), 500, 15, 7500), RedDecision::Drop, "no choice, so no mark");
}

#[test]
fn between_the_thresholds_drops_are_evenly_spaced() {
    // The paper's §7, and its figure 2, which counts before it divides: uniform from 1 to 1/pb - 1, where independent choices
    // would be geometric.
    for (packets, pb) in [(10, 0.05), (14, 0.09)] {
        let gaps = drop_gaps(STEADY, packets, 500);
        let most = 1.0 / pb;
        assert!(f64::from(*gaps.iter().max().unwrap()) <= most, "{packets}");
        assert!((mean(&gaps) / (most / 2.0) - 1.0).abs() < 0.03, "{packets}: {}", mean(&gaps));
    }
}

#[test]
fn gentle_red_rises_up_to_twice_the_upper_threshold() {
    let gentle = RedConfig { gentle: Gentle::On, ..STEADY };
    assert!((mean(&drop_gaps(gentle, 15, 500)) / 5.0 - 1.0).abs() < 0.03, "maxp");
    let above = mean(&drop_gaps(RedConfig { max_threshold: 16.0, ..gentle }, 17, 500));
    assert!((above / 3.2 - 1.0).abs() < 0.1, "0.1 + 0.9/16: {above}");
    assert_eq!(drop_gaps(gentle, 30, 500).len(), 200_000);
}

#[test]
fn in_byte_mode_long_packets_are_chosen_more_often() {
    let bytes = RedConfig { measure: Measure::Bytes { packet_bytes: 1000 }, ..STEADY };
    // 20 packets of 500 bytes are 10 units: pb is 0.05 for a unit.
    assert!((mean(&drop_gaps(bytes, 20, 1000)) / 10.0 - 1.0).abs() < 0.03);
    assert!((mean(&drop_gaps(bytes, 20, 40)) / 250.0 - 1.0).abs() < 0.05);
}

#[test]
fn the_average_follows_the_queue_with_its_weight() {
    let mut red = red(RedConfig { weight: 0.25, ..STEADY });
    for _ in 0..3 {
        let _ = red.on_arrival(at(0), 500, 4, 2000);
    }
    assert!((red.average() - 4.0 * (1.0 - 0.75_f64.powi(3))).abs() < 1e-12);
}

#[test]
fn while_the_queue_is_empty_the_average_decays() {
    let idle = IdlePolicy::Decay { packet_time: Duration::from_millis(2) };
    for (idle, expected) in [(idle, 8.0 * 0.75_f64.powi(5)), (IdlePolicy::Keep, 8.0 * 0.75)] {
        let mut red = red(RedConfig { weight: 0.25, idle, ..STEADY });
        red.average = 8.0;
        red.on_empty(at(100));
        let _ = red.on_arrival(at(110), 500, 0, 0);
        assert!((red.average() - expected).abs() < 1e-12, "{idle:?}");
    }
}

#[test]
fn a_packet_that_is_refused_by_an_empty_queue_does_not_stop_the_decay() {
    let mut red = red(RedConfig {
        weight: 0.25,
        idle: IdlePolicy::Decay { packet_time: Duration::from_millis(1) },
        ..STEADY
    });
    red.average = 1000.0;
    assert_eq!(red.on_arrival(at(1), 500, 0, 0), RedDecision::Drop);
    let _ = red.on_arrival(at(101), 500, 0, 0);
    assert!(red.average() < 1e-6);
}

#[test]
fn same_seed_same_choices() {
    assert_eq!(drop_gaps(STEADY, 10, 500), drop_gaps(STEADY, 10, 500));
}

#[test]
fn parameters_out_of_range_are_refused() {
    type Spoil = fn(&mut RedConfig);
    let spoilt: [Spoil; 9] = [
        |c| c.min_threshold = 15.0,
        |c| c.min_threshold = -1.0,
        |c| c.max_threshold = f64::INFINITY,
        |c| c.max_threshold = f64::NAN,
        |c| c.weight = 0.0,
        |c| c.weight = 1.1,
        |c| c.max_probability = 0.0,
        |c| c.measure = Measure::Bytes { packet_bytes: 0 },
        |c| c.idle = IdlePolicy::Decay { packet_time: Duration::ZERO },
    ];
    assert_eq!(RedConfig::PAPER.validate(), Ok(()));
    for (n, spoil) in spoilt.iter().enumerate() {
        let mut config = RedConfig::PAPER;
        spoil(&mut config);
        assert!(config.validate().is_err(), "{n}");
    }
}
