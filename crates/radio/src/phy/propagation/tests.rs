use super::*;
use proptest::prelude::*;

const RADIO: RadioParams = RadioParams::ns2_wavelan();

fn shadowed(draw: ShadowingDraw) -> Propagation {
    Propagation::Shadowing(Shadowing { draw, ..Shadowing::default() })
}

fn stream() -> RandomStream {
    RandomStream::global(7, 1, Purpose::Shadowing)
}

#[test]
fn wavelan_decodes_to_250_m_and_senses_to_550_m() {
    let model = Propagation::TwoRayGround;
    let decode = model.range_for(&RADIO, RADIO.rx_threshold_w);
    let sense = model.range_for(&RADIO, RADIO.cs_threshold_w);
    assert!((decode - 250.0).abs() < 0.5, "{decode}");
    assert!((sense - 550.0).abs() < 1.0, "{sense}");
    assert!(model.received_w(&RADIO, 250.0) >= RADIO.rx_threshold_w);
    assert!(model.received_w(&RADIO, 251.0) < RADIO.rx_threshold_w);
    assert!(model.received_w(&RADIO, 550.0) >= RADIO.cs_threshold_w);
    assert!(model.received_w(&RADIO, 551.0) < RADIO.cs_threshold_w);
}

#[test]
fn two_ray_is_free_space_up_to_the_crossover_and_joins_without_a_step() {
    let crossover = RADIO.crossover_m();
    assert!((crossover - 86.2).abs() < 0.1, "{crossover}");
    let near = Propagation::TwoRayGround.received_w(&RADIO, crossover * 0.999_999);
    let far = Propagation::TwoRayGround.received_w(&RADIO, crossover * 1.000_001);
    assert!((near / far - 1.0).abs() < 1e-5);
    for d in [1.0, 10.0, 80.0] {
        assert_eq!(
            Propagation::TwoRayGround.received_w(&RADIO, d),
            Propagation::FreeSpace.received_w(&RADIO, d)
        );
    }
    let ratio = Propagation::TwoRayGround.received_w(&RADIO, 200.0)
        / Propagation::TwoRayGround.received_w(&RADIO, 400.0);
    assert!((ratio - 16.0).abs() < 1e-9);
}

#[test]
fn free_space_loses_31_67_db_at_one_metre_at_914_mhz() {
    // 20·log10(4π·1 m/λ), λ = 0.328 m.
    let loss = ratio_to_db(RADIO.tx_power_w / Propagation::FreeSpace.received_w(&RADIO, 1.0));
    assert!((loss - 31.667).abs() < 0.01, "{loss}");
}

#[test]
fn nothing_arrives_stronger_than_it_was_sent() {
    let models =
        [Propagation::FreeSpace, Propagation::TwoRayGround, Propagation::LogDistance(LogDistance::default())];
    for model in models {
        assert_eq!(model.received_w(&RADIO, 0.0), RADIO.tx_power_w);
        assert_eq!(model.received_w(&RADIO, 1e-9), RADIO.tx_power_w);
        assert_eq!(model.range_for(&RADIO, RADIO.tx_power_w * 2.0), 0.0);
    }
}

#[test]
fn log_distance_falls_by_its_exponent_per_decade() {
    let model = Propagation::LogDistance(LogDistance { exponent: 3.5, reference_m: 1.0 });
    let drop = ratio_to_db(model.received_w(&RADIO, 10.0) / model.received_w(&RADIO, 100.0));
    assert!((drop - 35.0).abs() < 1e-9, "{drop}");
    assert_eq!(model.received_w(&RADIO, 1.0), Propagation::FreeSpace.received_w(&RADIO, 1.0));
}

#[test]
fn shadowing_per_frame_has_the_median_and_the_deviation_asked_for() {
    let model = shadowed(ShadowingDraw::PerFrame);
    let mut s = stream();
    let db: Vec<f64> = (0..20_000).map(|_| ratio_to_db(model.frame_gain(&mut s))).collect();
    let mean = db.iter().sum::<f64>() / db.len() as f64;
    let variance = db.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / db.len() as f64;
    assert!(mean.abs() < 0.1, "{mean}");
    assert!((variance.sqrt() - 4.0).abs() < 0.1, "{}", variance.sqrt());
    assert!(db.iter().all(|x| x.abs() <= 12.0 + 1e-9), "cut off at three sigmas");
    assert_eq!(model.link_gain(1, 1, NodeId(0), NodeId(1)), 1.0);
}

#[test]
fn shadowing_per_link_is_symmetric_fixed_in_a_run_and_new_in_the_next() {
    let model = shadowed(ShadowingDraw::PerLink);
    let gain = model.link_gain(1, 1, NodeId(3), NodeId(9));
    assert_eq!(gain, model.link_gain(1, 1, NodeId(9), NodeId(3)));
    assert_ne!(gain, model.link_gain(1, 2, NodeId(3), NodeId(9)));
    assert_ne!(gain, model.link_gain(1, 1, NodeId(3), NodeId(8)));
    assert_ne!(gain, 1.0);
}

#[test]
fn models_without_randomness_do_not_touch_the_stream() {
    let mut s = stream();
    for model in [Propagation::TwoRayGround, shadowed(ShadowingDraw::PerLink)] {
        assert_eq!(model.frame_gain(&mut s), 1.0);
    }
    assert_eq!(s.bits(), stream().bits());
}

#[test]
fn no_shadowed_frame_arrives_from_beyond_the_reach() {
    let model = shadowed(ShadowingDraw::PerFrame);
    let reach = model.reach_m(&RADIO, RADIO.cs_threshold_w);
    assert!(
        reach > model.range_for(&RADIO, RADIO.cs_threshold_w) * 3.9,
        "12 dB at exponent 2 is a factor of 4"
    );
    let beyond = model.received_w(&RADIO, reach * 1.001);
    let mut s = stream();
    assert!((0..10_000).all(|_| beyond * model.frame_gain(&mut s) < RADIO.cs_threshold_w));
}

#[test]
fn disks_give_the_pairwise_capture_model_three_sharp_zones() {
    let disk = RangeDisk { transmission_m: 100.0, interference_m: 150.0, carrier_sense_m: 220.0 };
    let model = Propagation::RangeDisk(disk);
    let at = |d| model.received_w(&RADIO, d);
    assert!(at(0.0) >= RADIO.rx_threshold_w && at(100.0) >= RADIO.rx_threshold_w);
    assert!(at(100.1) < RADIO.rx_threshold_w && at(150.0) >= RADIO.cs_threshold_w);
    assert!(at(100.0) / at(150.0) < RADIO.capture_ratio(), "interference destroys");
    assert!(at(150.1) >= RADIO.cs_threshold_w && at(220.0) >= RADIO.cs_threshold_w);
    assert!(at(100.0) / at(220.0) >= RADIO.capture_ratio(), "what is only sensed does not");
    assert_eq!(at(220.1), 0.0);
    assert_eq!(model.range_for(&RADIO, RADIO.rx_threshold_w), 100.0);
    assert_eq!(model.range_for(&RADIO, RADIO.cs_threshold_w), 220.0);
    assert_eq!(model.range_for(&RADIO, RADIO.rx_threshold_w / 2.0), 150.0);
    assert_eq!(model.range_for(&RADIO, 1.0), 0.0);
}

#[test]
fn light_takes_834_ns_over_250_m() {
    assert_eq!(propagation_delay(250.0), Duration::from_nanos(834));
    assert_eq!(propagation_delay(0.0), Duration::ZERO);
}

#[test]
fn thermal_noise_in_20_mhz_is_minus_101_dbm_plus_the_noise_figure() {
    let radio = RadioParams { bandwidth_hz: 20e6, noise_figure_db: 0.0, ..RADIO };
    assert!((watts_to_dbm(radio.noise_floor_w()) + 100.97).abs() < 0.01);
    let radio = RadioParams { noise_figure_db: 7.0, ..radio };
    assert!((watts_to_dbm(radio.noise_floor_w()) + 93.97).abs() < 0.01);
}

#[test]
fn decibels_convert_both_ways() {
    assert_eq!(db_to_ratio(10.0), 10.0);
    assert_eq!(dbm_to_watts(30.0), 1.0);
    assert!((watts_to_dbm(RADIO.tx_power_w) - 24.5).abs() < 1e-4);
    assert!((ratio_to_db(db_to_ratio(-3.7)) + 3.7).abs() < 1e-12);
}

proptest! {
    #[test]
    fn range_is_the_inverse_of_power(distance in 0.5f64..5_000.0, exponent in 1.6f64..6.0) {
        let log = LogDistance { exponent, reference_m: 1.0 };
        let models = [
            Propagation::FreeSpace,
            Propagation::TwoRayGround,
            Propagation::LogDistance(log),
            Propagation::Shadowing(Shadowing { median: log, ..Shadowing::default() }),
        ];
        for model in models {
            let back = model.range_for(&RADIO, model.received_w(&RADIO, distance));
            prop_assert!((back / distance - 1.0).abs() < 1e-9, "{model:?}: {back} for {distance}");
        }
    }

    #[test]
    fn power_never_rises_with_distance(near in 0.0f64..2_000.0, further in 0.0f64..2_000.0) {
        let models = [
            Propagation::FreeSpace,
            Propagation::TwoRayGround,
            Propagation::LogDistance(LogDistance::default()),
            Propagation::RangeDisk(RangeDisk::default()),
        ];
        for model in models {
            prop_assert!(model.received_w(&RADIO, near) >= model.received_w(&RADIO, near + further));
        }
    }
}
