//! One receiver, and signals that begin and end around it. Times in µs, powers as multiples of the lowest decodable power.

use super::*;
use hopline_core::Duration;
use proptest::prelude::*;

/// 500 bytes at 2 Mb/s.
const BITS: u32 = 4000;

fn us(micros: u64) -> Instant {
    Instant::from_nanos(1_000 * micros)
}

/// A receiver, with the signals that have begun and not ended.
struct Radio {
    thresholds: Thresholds,
    receiver: Receiver,
    params: RadioParams,
}

impl Radio {
    fn new(model: ReceptionModel) -> Self {
        let params = RadioParams::ns2_wavelan();
        Self { thresholds: Thresholds::new(model, &params), receiver: Receiver::default(), params }
    }

    /// Signal `id` begins, `strength` times as strong as the weakest that can be decoded.
    fn signal_begin(&mut self, at_us: u64, id: u32, strength: f64, end_us: u64) -> Option<Instant> {
        let power_w = strength * self.params.rx_threshold_w;
        let arrival = Arrival { id, power_w, end: us(end_us), rate: Rate::Dsss2, bits: BITS };
        self.receiver.signal_begin(&self.thresholds, us(at_us), arrival)
    }

    fn signal_end(&mut self, at_us: u64, id: u32) -> ReceptionResult {
        self.receiver.signal_end(&self.thresholds, us(at_us), id)
    }

    #[track_caller]
    fn assert_activity(&self, activity: RadioState) {
        assert_eq!(self.receiver.activity(), activity);
    }
}

const INTACT: ReceptionResult = ReceptionResult::Decodable { probability: 1.0 };

const MODELS: [ReceptionModel; 3] =
    [ReceptionModel::LockOnSensed, ReceptionModel::LockOnDecodable, ReceptionModel::CumulativeSinr];

#[test]
fn a_frame_alone_is_received_down_to_the_threshold() {
    for model in MODELS {
        for strength in [1.0, 1000.0] {
            let mut radio = Radio::new(model);
            radio.assert_activity(RadioState::Idle);
            assert_eq!(radio.signal_begin(0, 1, strength, 2192), None);
            radio.assert_activity(RadioState::Receiving);
            // −64 dBm against a noise floor of −91 dBm: no bit errs.
            assert_eq!(radio.signal_end(2192, 1), INTACT, "{model:?}");
            radio.assert_activity(RadioState::Idle);
        }
    }
}

#[test]
fn the_end_of_a_signal_never_heard_is_missed() {
    for model in MODELS {
        assert_eq!(Radio::new(model).signal_end(100, 7), ReceptionResult::NotLocked);
    }
}

mod locked_on_sensed {
    use super::*;

    fn radio() -> Radio {
        Radio::new(ReceptionModel::LockOnSensed)
    }

    #[test]
    fn an_undecodable_frame_occupies_the_receiver_and_ends_damaged() {
        let mut radio = radio();
        radio.signal_begin(0, 1, 0.5, 1000);
        radio.assert_activity(RadioState::Receiving);
        assert_eq!(radio.signal_end(1000, 1), ReceptionResult::Damaged);
        radio.assert_activity(RadioState::Idle);
    }

    #[test]
    fn a_decodable_frame_that_begins_meanwhile_is_lost_with_it() {
        let mut radio = radio();
        radio.signal_begin(0, 1, 0.5, 1000);
        assert_eq!(radio.signal_begin(500, 2, 1.0, 1500), None);
        assert_eq!(radio.signal_end(1000, 1), ReceptionResult::NotLocked);
        radio.assert_activity(RadioState::Receiving);
        assert_eq!(radio.signal_end(1500, 2), ReceptionResult::Damaged);
        radio.assert_activity(RadioState::Idle);
    }

    #[test]
    fn a_later_frame_below_the_capture_threshold_is_ignored_and_a_stronger_one_destroys() {
        // 200 m against 355.6 m by d⁻⁴.
        let mut radio = radio();
        radio.signal_begin(0, 1, 10.0, 1000);
        assert_eq!(radio.signal_begin(500, 2, 1.0, 1500), Some(us(1500)));
        assert_eq!(radio.signal_end(1000, 1), INTACT);
        // The masked frame has left no trace but its end.
        radio.assert_activity(RadioState::Idle);
        assert_eq!(radio.signal_end(1500, 2), ReceptionResult::NotLocked);
        radio.signal_begin(2000, 3, 10.0, 3000);
        assert_eq!(radio.signal_begin(2500, 4, 1.01, 2600), None);
        assert_eq!(radio.signal_end(2600, 4), ReceptionResult::NotLocked);
        assert_eq!(radio.signal_end(3000, 3), ReceptionResult::Damaged);
    }

    #[test]
    fn a_much_stronger_later_frame_destroys_and_is_not_captured() {
        let mut radio = radio();
        radio.signal_begin(0, 1, 1.0, 1000);
        assert_eq!(radio.signal_begin(1, 2, 1e6, 1500), None);
        assert_eq!(radio.signal_end(1000, 1), ReceptionResult::NotLocked);
        assert_eq!(radio.signal_end(1500, 2), ReceptionResult::Damaged);
    }

    #[test]
    fn of_two_that_collide_the_later_end_decides_how_long() {
        for (first_end, second_end, last) in [(1000, 1500, 2), (1500, 1000, 1), (1000, 1000, 1)] {
            let mut radio = radio();
            radio.signal_begin(0, 1, 2.0, first_end);
            radio.signal_begin(500, 2, 2.0, second_end);
            let mut ends = [(first_end, 1), (second_end, 2)];
            ends.sort_unstable();
            let verdicts = ends.map(|(at, id)| (id, radio.signal_end(at, id)));
            for (id, verdict) in verdicts {
                assert_eq!(
                    verdict,
                    if id == last { ReceptionResult::Damaged } else { ReceptionResult::NotLocked }
                );
            }
            radio.assert_activity(RadioState::Idle);
        }
    }

    #[test]
    fn after_a_collision_capture_compares_with_the_occupant() {
        let mut radio = radio();
        radio.signal_begin(0, 1, 100.0, 1000);
        // Destroys the first, ends later, and so occupies the receiver with its own power.
        radio.signal_begin(100, 2, 11.0, 2000);
        assert_eq!(radio.signal_begin(200, 3, 1.0, 3000), Some(us(3000)));
        assert_eq!(radio.signal_begin(300, 4, 1.2, 2500), None);
        assert_eq!(radio.signal_end(1000, 1), ReceptionResult::NotLocked);
        assert_eq!(radio.signal_end(2000, 2), ReceptionResult::NotLocked);
        assert_eq!(radio.signal_end(2500, 4), ReceptionResult::Damaged);
        radio.assert_activity(RadioState::Idle);
    }

    #[test]
    fn powers_of_weak_frames_do_not_add_up() {
        let mut radio = radio();
        radio.signal_begin(0, 1, 10.0, 1000);
        for id in 2..50 {
            assert_eq!(radio.signal_begin(100, id, 1.0, 900), Some(us(900)));
        }
        for id in 2..50 {
            assert_eq!(radio.signal_end(900, id), ReceptionResult::NotLocked);
        }
        assert_eq!(radio.signal_end(1000, 1), INTACT);
    }

    #[test]
    fn a_frame_that_begins_during_the_own_one_occupies_the_receiver_and_ends_damaged() {
        let mut radio = radio();
        radio.receiver.transmit_begin();
        radio.signal_begin(100, 1, 1000.0, 2000);
        radio.assert_activity(RadioState::Sensing);
        radio.receiver.transmit_end();
        radio.assert_activity(RadioState::Receiving);
        // What would be the response meets it and is lost.
        assert_eq!(radio.signal_begin(1000, 2, 1000.0, 1500), None);
        assert_eq!(radio.signal_end(1500, 2), ReceptionResult::NotLocked);
        assert_eq!(radio.signal_end(2000, 1), ReceptionResult::Damaged);
    }

    #[test]
    fn after_a_frame_ended_within_the_own_one_the_receiver_is_free() {
        let mut radio = radio();
        radio.receiver.transmit_begin();
        radio.signal_begin(100, 1, 1000.0, 500);
        assert_eq!(radio.signal_end(500, 1), ReceptionResult::NotLocked);
        radio.assert_activity(RadioState::Idle);
        radio.receiver.transmit_end();
        radio.signal_begin(1000, 2, 1.0, 1500);
        assert_eq!(radio.signal_end(1500, 2), INTACT);
    }
}

mod locked_on_decodable {
    use super::*;

    fn radio() -> Radio {
        Radio::new(ReceptionModel::LockOnDecodable)
    }

    #[test]
    fn an_undecodable_frame_is_energy_without_result() {
        let mut radio = radio();
        radio.signal_begin(0, 1, 0.9, 1000);
        radio.assert_activity(RadioState::Sensing);
        assert_eq!(radio.signal_end(1000, 1), ReceptionResult::NotLocked);
        radio.assert_activity(RadioState::Idle);
    }

    #[test]
    fn a_decodable_frame_is_received_in_spite_of_energy_weaker_by_ten_times_in_either_order() {
        for (first, second) in [(5.0, 0.5), (0.5, 5.0)] {
            let mut radio = radio();
            assert_eq!(radio.signal_begin(0, 1, first, 1000), None);
            assert_eq!(radio.signal_begin(10, 2, second, 1010), None);
            radio.assert_activity(RadioState::Receiving);
            let verdicts = [radio.signal_end(1000, 1), radio.signal_end(1010, 2)];
            let expected = if first > second {
                [INTACT, ReceptionResult::NotLocked]
            } else {
                [ReceptionResult::NotLocked, INTACT]
            };
            assert_eq!(verdicts, expected);
            radio.assert_activity(RadioState::Idle);
        }
    }

    #[test]
    fn energy_above_the_capture_threshold_destroys_earlier_and_later_frames() {
        let mut radio = radio();
        radio.signal_begin(0, 1, 0.5, 1000);
        radio.signal_begin(10, 2, 4.9, 1010);
        radio.assert_activity(RadioState::Sensing);
        assert_eq!([radio.signal_end(1000, 1), radio.signal_end(1010, 2)], [ReceptionResult::NotLocked; 2]);
        radio.signal_begin(2000, 3, 4.9, 3000);
        radio.signal_begin(2010, 4, 0.5, 2500);
        assert_eq!(
            [radio.signal_end(2500, 4), radio.signal_end(3000, 3)],
            [ReceptionResult::NotLocked, ReceptionResult::Damaged]
        );
    }

    /// Two senders out of each other's range meet at a receiver between them: neither gets through.
    #[test]
    fn hidden_nodes_destroy_each_other_and_the_medium_is_busy_until_the_last_end() {
        let mut radio = radio();
        radio.signal_begin(0, 1, 2.0, 1000);
        radio.signal_begin(500, 2, 2.0, 1500);
        radio.assert_activity(RadioState::Receiving);
        assert_eq!(radio.signal_end(1000, 1), ReceptionResult::Damaged);
        radio.assert_activity(RadioState::Sensing);
        assert_eq!(radio.signal_end(1500, 2), ReceptionResult::NotLocked);
        radio.assert_activity(RadioState::Idle);
    }

    #[test]
    fn a_stronger_later_frame_is_not_captured() {
        let mut radio = radio();
        radio.signal_begin(0, 1, 1.0, 1000);
        radio.signal_begin(10, 2, 1e6, 1010);
        assert_eq!(
            [radio.signal_end(1000, 1), radio.signal_end(1010, 2)],
            [ReceptionResult::Damaged, ReceptionResult::NotLocked]
        );
    }

    #[test]
    fn a_frame_after_a_damaged_one_is_measured_against_what_is_still_in_the_air() {
        let mut radio = radio();
        radio.signal_begin(0, 1, 2.0, 1000);
        radio.signal_begin(10, 2, 2.0, 3000);
        assert_eq!(radio.signal_end(1000, 1), ReceptionResult::Damaged);
        radio.signal_begin(1100, 3, 19.9, 2000);
        assert_eq!(radio.signal_end(2000, 3), ReceptionResult::NotLocked);
        radio.signal_begin(2100, 4, 20.0, 2900);
        assert_eq!(radio.signal_end(2900, 4), INTACT);
    }

    #[test]
    fn a_frame_that_begins_during_the_own_one_is_energy() {
        let mut radio = radio();
        radio.receiver.transmit_begin();
        radio.signal_begin(100, 1, 1000.0, 2000);
        radio.receiver.transmit_end();
        radio.assert_activity(RadioState::Sensing);
        assert_eq!(radio.signal_end(2000, 1), ReceptionResult::NotLocked);
    }
}

#[test]
fn the_own_transmission_damages_what_is_being_received() {
    for model in MODELS {
        let mut radio = Radio::new(model);
        radio.signal_begin(0, 1, 1000.0, 2000);
        radio.receiver.transmit_begin();
        radio.assert_activity(RadioState::Sensing);
        radio.receiver.transmit_end();
        radio.assert_activity(RadioState::Receiving);
        assert_eq!(radio.signal_end(2000, 1), ReceptionResult::Damaged, "{model:?}");
    }
}

#[test]
fn a_frame_that_ends_during_the_own_transmission_is_missed() {
    for model in MODELS {
        let mut radio = Radio::new(model);
        radio.signal_begin(0, 1, 1000.0, 2000);
        radio.receiver.transmit_begin();
        assert_eq!(radio.signal_end(2000, 1), ReceptionResult::NotLocked, "{model:?}");
        radio.assert_activity(RadioState::Idle);
    }
}

mod cumulative {
    use super::*;
    use crate::phy::awgn::frame_error_rate;

    fn radio() -> Radio {
        Radio::new(ReceptionModel::CumulativeSinr)
    }

    /// The probability that `bits` bits arrive under these interferers, as the error model has it.
    fn success(radio: &Radio, bits: u64, strength: f64, others: f64) -> f64 {
        let p = &radio.params;
        let disturbance_w = p.noise_floor_w() + others * p.rx_threshold_w;
        1.0 - frame_error_rate(Rate::Dsss2, strength * p.rx_threshold_w / disturbance_w, bits)
    }

    fn probability(verdict: ReceptionResult) -> f64 {
        let ReceptionResult::Decodable { probability } = verdict else { panic!("{verdict:?}") };
        probability
    }

    /// With interference at this share of the frame's power a frame of 4000 bits mostly survives, and with twice that
    /// it hardly ever does.
    const TOLERABLE: f64 = 0.7;

    #[test]
    fn two_interferers_tolerable_alone_destroy_together() {
        let alone = |id: u32| {
            let mut radio = radio();
            radio.signal_begin(0, 1, 10.0, 2192);
            radio.signal_begin(0, id, 10.0 * TOLERABLE, 2192);
            probability(radio.signal_end(2192, 1))
        };
        assert!(alone(2) > 0.9 && alone(3) == alone(2), "{}", alone(2));
        let mut radio = radio();
        radio.signal_begin(0, 1, 10.0, 2192);
        radio.signal_begin(0, 2, 10.0 * TOLERABLE, 2192);
        radio.signal_begin(0, 3, 10.0 * TOLERABLE, 2192);
        let together = probability(radio.signal_end(2192, 1));
        assert!(together < 0.2, "{together}");
    }

    #[test]
    fn each_piece_of_the_frame_errs_by_its_own_interference() {
        let mut radio = radio();
        radio.signal_begin(0, 1, 10.0, 2000);
        // A quarter alone, a quarter under one, a quarter under both, the rest under the second.
        radio.signal_begin(500, 2, 8.0, 1500);
        radio.signal_begin(1000, 3, 9.0, 3000);
        assert_eq!(radio.signal_end(1500, 2), ReceptionResult::NotLocked);
        let pieces = [0.0, 8.0, 17.0, 9.0].map(|others| success(&radio, 1000, 10.0, others));
        let expected: f64 = pieces.iter().product();
        let measured = probability(radio.signal_end(2000, 1));
        assert!((measured - expected).abs() < 1e-12, "{measured} {expected}");
        assert!((0.001..0.999).contains(&expected), "the example says something: {expected}");
        radio.assert_activity(RadioState::Sensing);
        assert_eq!(radio.signal_end(3000, 3), ReceptionResult::NotLocked);
        radio.assert_activity(RadioState::Idle);
    }

    #[test]
    fn what_is_in_the_air_before_the_frame_counts_from_its_first_bit() {
        let mut radio = radio();
        radio.signal_begin(0, 1, 0.9, 5000);
        radio.signal_begin(1000, 2, 1.0, 3000);
        let expected = success(&radio, u64::from(BITS), 1.0, 0.9);
        assert_eq!(probability(radio.signal_end(3000, 2)), expected);
    }

    #[test]
    fn a_decodable_frame_that_begins_later_is_interference_however_strong() {
        let mut radio = radio();
        radio.signal_begin(0, 1, 1.0, 2000);
        radio.signal_begin(1000, 2, 1e6, 3000);
        assert!(probability(radio.signal_end(2000, 1)) < 1e-9);
        assert_eq!(radio.signal_end(3000, 2), ReceptionResult::NotLocked);
    }

    #[test]
    fn interference_after_the_end_and_before_the_start_does_not_count() {
        let mut radio = radio();
        radio.signal_begin(0, 1, 0.9, 1000);
        assert_eq!(radio.signal_end(1000, 1), ReceptionResult::NotLocked);
        radio.signal_begin(1000, 2, 10.0, 3000);
        radio.signal_begin(3000, 3, 1e6, 4000);
        assert_eq!(radio.signal_end(3000, 2), INTACT);
    }

    #[test]
    fn cutting_a_frame_into_many_pieces_loses_no_bits() {
        let mut radio = radio();
        radio.signal_begin(0, 1, 10.0, 2000);
        radio.signal_begin(0, 2, 8.5, 2500);
        // 999 pieces of a power that changes nothing.
        for n in 1..1000 {
            let id = 10 + n as u32;
            radio.signal_begin(2 * n, id, 1e-12, 2 * n + 1);
            assert_eq!(radio.signal_end(2 * n + 1, id), ReceptionResult::NotLocked);
        }
        let expected = success(&radio, u64::from(BITS), 10.0, 8.5);
        let measured = probability(radio.signal_end(2000, 1));
        assert!((measured - expected).abs() < 1e-6, "{measured} {expected}");
    }
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Begin { strength: f64, span: u64 },
    TransmitBegin,
    TransmitEnd,
    Pass(u64),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (-1.3..4.0f64, 1..3000u64)
            .prop_map(|(exponent, span)| Step::Begin { strength: libm::pow(10.0, exponent), span }),
        1 => Just(Step::TransmitBegin),
        1 => Just(Step::TransmitEnd),
        4 => (0..2000u64).prop_map(Step::Pass),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    /// Signals in any order: probabilities are such, at most one verdict a signal, and silence ends quiet.
    #[test]
    fn any_overlap_of_signals_ends_idle(model in prop::sample::select(&MODELS[..]), steps in prop::collection::vec(step(), 1..60)) {
        let mut radio = Radio::new(model);
        let (mut now, mut air) = (0u64, Vec::<(u64, u32)>::new());
        let land = |radio: &mut Radio, air: &mut Vec<(u64, u32)>, until: u64| {
            air.sort_unstable();
            while air.first().is_some_and(|&(end, _)| end <= until) {
                let (end, id) = air.remove(0);
                if let ReceptionResult::Decodable { probability } = radio.signal_end(end, id) {
                    assert!((0.0..=1.0).contains(&probability), "{probability}");
                    assert_eq!(radio.receiver.antenna, AntennaState::Listening);
                }
                if model != ReceptionModel::LockOnSensed {
                    assert_eq!(radio.receiver.signals.len(), air.len());
                }
            }
        };
        for (id, step) in steps.into_iter().enumerate() {
            match step {
                Step::Begin { strength, span } => {
                    let masked = radio.signal_begin(now, id as u32, strength, now + span);
                    prop_assert!(masked.is_none() || model == ReceptionModel::LockOnSensed);
                    air.push((now + span, id as u32));
                    if radio.receiver.antenna == AntennaState::Listening {
                        prop_assert_ne!(radio.receiver.activity(), RadioState::Idle);
                    }
                }
                Step::TransmitBegin => radio.receiver.transmit_begin(),
                Step::TransmitEnd => radio.receiver.transmit_end(),
                Step::Pass(span) => {
                    land(&mut radio, &mut air, now + span);
                    now += span;
                }
            }
        }
        land(&mut radio, &mut air, u64::MAX);
        radio.assert_activity(RadioState::Idle);
    }
}

#[test]
fn instants_beyond_any_run_do_not_overflow() {
    for model in MODELS {
        let mut radio = Radio::new(model);
        let arrival =
            Arrival { id: 1, power_w: f64::MAX, end: Instant::FAR_FUTURE, rate: Rate::Dsss2, bits: u32::MAX };
        radio.receiver.signal_begin(&radio.thresholds, Instant::ZERO, arrival);
        let end = Instant::FAR_FUTURE - Duration::from_nanos(1);
        assert!(matches!(
            radio.receiver.signal_end(&radio.thresholds, end, 1),
            ReceptionResult::Decodable { .. }
        ));
    }
}
