use super::*;
use hopline_core::Purpose;
use proptest::prelude::*;

fn p(value: f64) -> Probability {
    Probability::new(value).unwrap()
}

fn stream() -> RandomStream {
    RandomStream::global(11, 1, Purpose::Errors)
}

/// The fates of `n` back-to-back packets of `bits` bits that take `duration`, each `gap` after the one before.
fn losses(model: ErrorModel, n: u64, bits: u64, duration: Duration, gap: Duration) -> Vec<bool> {
    let (mut process, mut s) = (ErrorProcess::new(model), stream());
    let start = |k: u64| Instant::ZERO + (duration + gap) * k;
    (0..n).map(|k| process.corrupts(start(k), bits, duration, &mut s)).collect()
}

fn loss_share(fates: &[bool]) -> f64 {
    fates.iter().filter(|&&lost| lost).count() as f64 / fates.len() as f64
}

const MS: Duration = Duration::from_millis(1);

#[test]
fn a_probability_is_between_0_and_1() {
    for bad in [-1e-9, 1.000_000_1, f64::NAN, f64::INFINITY] {
        assert_eq!(Probability::new(bad), None);
    }
    assert_eq!(Probability::new(1.0), Some(Probability::ONE));
}

#[test]
fn tiny_bit_error_ratios_are_not_lost_to_rounding() {
    assert!((p(1e-12).any_of(12_000) / 1.2e-8 - 1.0).abs() < 1e-7);
    assert!((p(1e-300).any_of(12_000) / 1.2e-296 - 1.0).abs() < 1e-12);
    // (1 - 1.5e-5)^12000
    assert!((p(1.5e-5).none_of(12_000) - 0.835_269_08).abs() < 1e-6, "{}", p(1.5e-5).none_of(12_000));
}

#[test]
fn certain_errors_and_empty_packets_are_no_special_case() {
    assert_eq!(Probability::ONE.any_of(1), 1.0);
    assert_eq!(Probability::ONE.any_of(0), 0.0);
    assert_eq!(Probability::ONE.none_of(u64::MAX), 0.0);
    assert_eq!(Probability::ZERO.any_of(u64::MAX), 0.0);
    assert_eq!(p(0.5).any_of(u64::MAX), 1.0);
}

#[test]
fn without_a_model_no_packet_is_corrupted_and_no_number_drawn() {
    let mut s = stream();
    assert!(!ErrorProcess::new(ErrorModel::None).corrupts(Instant::ZERO, u64::MAX, MS, &mut s));
    assert_eq!(s.bits(), stream().bits());
}

#[test]
fn packet_loss_ignores_length() {
    let model = ErrorModel::PacketLoss(p(0.1));
    assert!((loss_share(&losses(model, 40_000, 8, MS, MS)) - 0.1).abs() < 0.005);
    assert_eq!(losses(model, 500, 8, MS, MS), losses(model, 500, 12_000, MS, MS));
}

#[test]
fn bit_errors_hit_long_packets_more_often() {
    let model = ErrorModel::BitErrors(p(1.5e-5));
    for bits in [320, 12_000] {
        let drawn = loss_share(&losses(model, 60_000, bits, MS, MS));
        assert!((drawn - p(1.5e-5).any_of(bits)).abs() < 0.004, "{bits}: {drawn}");
    }
}

#[test]
fn gilbert_packets_lose_in_bursts_of_the_mean_length_asked_for() {
    let model = GilbertPackets {
        good_to_bad: p(0.02),
        bad_to_good: p(0.25),
        loss_good: Probability::ZERO,
        loss_bad: Probability::ONE,
    };
    assert!((model.bad_share() - 0.02 / 0.27).abs() < 1e-12);
    let fates = losses(ErrorModel::GilbertPackets(model), 200_000, 8, MS, MS);
    let bursts = fates.windows(2).filter(|pair| !pair[0] && pair[1]).count() as f64;
    let lost = loss_share(&fates);
    assert!((lost / model.bad_share() - 1.0).abs() < 0.05, "{lost}");
    let burst = lost * fates.len() as f64 / bursts;
    assert!((burst - 4.0).abs() < 0.15, "{burst}");
}

#[test]
fn a_chain_that_never_moves_starts_and_stays_good() {
    let stuck = GilbertPackets {
        good_to_bad: Probability::ZERO,
        bad_to_good: Probability::ZERO,
        loss_good: Probability::ZERO,
        loss_bad: Probability::ONE,
    };
    assert_eq!(loss_share(&losses(ErrorModel::GilbertPackets(stuck), 100, 8, MS, MS)), 0.0);
}

fn bursts(mean_good: Duration, mean_bad: Duration) -> GilbertElliott {
    GilbertElliott { mean_good, mean_bad, ber_good: Probability::ZERO, ber_bad: Probability::ONE }
}

#[test]
fn a_frame_survives_a_burst_channel_only_if_it_sees_no_bad_time() {
    // P(survive) = P(good at the start) · P(stays good for the whole frame) = 10/11 · exp(-5/10).
    let model = bursts(MS * 10, MS);
    let lost = loss_share(&losses(ErrorModel::GilbertElliott(model), 60_000, 1_000, MS * 5, MS * 200));
    let expected = 1.0 - 10.0 / 11.0 * libm::exp(-0.5);
    assert!((lost - expected).abs() < 0.007, "{lost} for {expected}");
}

#[test]
fn the_state_is_remembered_between_frames_close_in_time_and_forgotten_over_long_gaps() {
    let model = ErrorModel::GilbertElliott(bursts(MS * 100, MS * 100));
    let agree = |gap| {
        let fates = losses(model, 40_000, 100, Duration::from_nanos(1), gap);
        fates.windows(2).filter(|pair| pair[0] == pair[1]).count() as f64 / 39_999.0
    };
    // P(same state after t) = 1/2 + 1/2·exp(-t·(1/100 + 1/100)).
    for (gap_ms, expected) in [(1, 0.990_1), (20, 0.835_2), (1000, 0.5)] {
        let drawn = agree(MS * gap_ms);
        assert!((drawn - expected).abs() < 0.01, "{gap_ms} ms: {drawn}");
    }
}

#[test]
fn the_cut_between_frames_does_not_change_how_often_they_fail() {
    // One frame of 8 ms against eight of 1 ms, back to back: the channel in between is the same process.
    let model = GilbertElliott { ber_bad: p(1e-3), ber_good: p(1e-6), ..bursts(MS * 6, MS * 2) };
    let whole = loss_share(&losses(ErrorModel::GilbertElliott(model), 40_000, 8_000, MS * 8, MS * 40));
    let (mut process, mut s) = (ErrorProcess::new(ErrorModel::GilbertElliott(model)), stream());
    let pieces = (0..40_000u64).filter(|k| {
        let start = Instant::ZERO + MS * (48 * k);
        let mut any = false;
        for piece in 0..8 {
            any |= process.corrupts(start + MS * piece, 1_000, MS, &mut s);
        }
        any
    });
    let pieces = pieces.count() as f64 / 40_000.0;
    assert!((whole - pieces).abs() < 0.012, "{whole} {pieces}");
}

#[test]
fn sojourns_of_no_time_make_a_one_state_channel() {
    let always_good = ErrorModel::GilbertElliott(bursts(MS, Duration::ZERO));
    let always_bad = ErrorModel::GilbertElliott(bursts(Duration::ZERO, MS));
    let neither = ErrorModel::GilbertElliott(bursts(Duration::ZERO, Duration::ZERO));
    assert_eq!(loss_share(&losses(always_good, 200, 10, MS, MS)), 0.0);
    assert_eq!(loss_share(&losses(always_bad, 200, 10, MS, MS)), 1.0);
    assert_eq!(loss_share(&losses(neither, 200, 10, MS, MS)), 0.0);
}

#[test]
fn a_frame_that_outlasts_thousands_of_sojourns_sees_their_mix() {
    let nano = Duration::from_nanos(1);
    let model = GilbertElliott { ber_bad: p(1e-4), ..bursts(nano * 3, nano) };
    let lost =
        loss_share(&losses(ErrorModel::GilbertElliott(model), 20_000, 10_000, Duration::from_secs(1), MS));
    assert!((lost - p(1e-4).any_of(2_500)).abs() < 0.01, "{lost}");
}

#[test]
fn a_frame_of_no_duration_sees_one_state() {
    let lost = loss_share(&losses(
        ErrorModel::GilbertElliott(bursts(MS * 3, MS)),
        40_000,
        10,
        Duration::ZERO,
        MS * 100,
    ));
    assert!((lost - 0.25).abs() < 0.01, "{lost}");
}

#[test]
fn every_nth_loss_is_deterministic() {
    let model = ErrorModel::EveryNth(2.try_into().unwrap());
    assert_eq!(losses(model, 5, 8, MS, MS), [false, true, false, true, false]);
    let all = ErrorModel::EveryNth(1.try_into().unwrap());
    assert_eq!(loss_share(&losses(all, 10, 8, MS, MS)), 1.0);
}

#[test]
fn a_frame_without_bits_is_never_corrupted() {
    let model = ErrorModel::GilbertElliott(bursts(MS, MS));
    assert_eq!(loss_share(&losses(model, 200, 0, MS, MS)), 0.0);
    assert_eq!(loss_share(&losses(ErrorModel::BitErrors(Probability::ONE), 200, 0, MS, MS)), 0.0);
}

proptest! {
    #[test]
    fn success_and_corruption_are_complements(ber in 0.0f64..=1.0, bits in 0u64..1_000_000) {
        let sum = p(ber).any_of(bits) + p(ber).none_of(bits);
        prop_assert!((sum - 1.0).abs() < 1e-12);
        prop_assert!(p(ber).any_of(bits + 1) >= p(ber).any_of(bits));
    }

    #[test]
    fn the_process_takes_any_times_and_sizes(
        good in any::<u64>(), bad in any::<u64>(), ber in 0.0f64..=1.0,
        frames in prop::collection::vec((any::<u64>(), any::<u64>(), any::<u64>()), 1..8),
    ) {
        let model = GilbertElliott {
            mean_good: Duration::from_nanos(good),
            mean_bad: Duration::from_nanos(bad),
            ber_good: p(ber / 2.0),
            ber_bad: p(ber),
        };
        let (mut process, mut s) = (ErrorProcess::new(ErrorModel::GilbertElliott(model)), stream());
        for (at, bits, duration) in frames {
            let hit = process.corrupts(Instant::from_nanos(at), bits, Duration::from_nanos(duration), &mut s);
            prop_assert!(!hit || (bits > 0 && ber > 0.0));
        }
    }
}
