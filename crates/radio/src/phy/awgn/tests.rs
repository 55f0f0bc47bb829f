use super::*;
use crate::phy::propagation::db_to_ratio;
use proptest::prelude::*;
use std::collections::BTreeMap;

/// DQPSK by the series of Proakis §5.2.8: exp(−2γ)·(½·I₀(√2γ) + Σ (√2 − 1)^k·I_k(√2γ)).
fn dqpsk_series(gamma: f64) -> f64 {
    let bessel = |order: u32, x: f64| {
        let mut term = (1..=order).fold(1.0, |t, k| t * x / 2.0 / f64::from(k));
        let mut sum = term;
        for m in 1..400 {
            term *= x * x / 4.0 / (f64::from(m) * f64::from(m + order));
            sum += term;
        }
        sum
    };
    let mut sum = bessel(0, SQRT_2 * gamma) / 2.0;
    for k in 1..60 {
        sum += libm::pow(SQRT_2 - 1.0, f64::from(k)) * bessel(k, SQRT_2 * gamma);
    }
    libm::exp(-2.0 * gamma) * sum
}

#[test]
fn dqpsk_agrees_with_its_series() {
    assert!((dqpsk_bit_error_rate(0.0) - 0.5).abs() < 1e-12);
    for gamma in [0.1, 1.0, 3.0, 10.0, 20.0, 40.0] {
        let (integral, series) = (dqpsk_bit_error_rate(gamma), dqpsk_series(gamma));
        assert!((integral / series - 1.0).abs() < 1e-8, "{gamma}: {integral} {series}");
    }
}

#[test]
fn dqpsk_needs_2_3_db_more_than_qpsk() {
    // The asymptotic loss of differential detection with four phases (Proakis §5.2.8).
    let gamma = 14.0;
    let qpsk = q_function(libm::sqrt(2.0 * gamma / db_to_ratio(2.3)));
    assert!((dqpsk_bit_error_rate(gamma) / qpsk).ln().abs() < 0.3, "{} {qpsk}", dqpsk_bit_error_rate(gamma));
}

#[test]
fn dbpsk_at_10_3_db_is_wrong_once_in_100_000_bits() {
    assert!((dbpsk_bit_error_rate(db_to_ratio(10.342)) / 1e-5 - 1.0).abs() < 0.01);
}

/// A CCK word by IEEE 802.11-2020 eq. 16-1, from its four phases in quarter turns.
fn cck_word([p1, p2, p3, p4]: [u32; 4]) -> [u32; 8] {
    [p1 + p2 + p3 + p4, p1 + p3 + p4, p1 + p2 + p4, p1 + p4 + 2, p1 + p2 + p3, p1 + p3, p1 + p2 + 2, p1]
        .map(|p| p % 4)
}

/// The distances from `words[0]`, and from every other word, which must be the same.
fn distances(words: &[[u32; 8]]) -> Vec<(f64, f64)> {
    let from = |a: &[u32; 8]| {
        let mut count = BTreeMap::new();
        for b in words.iter().filter(|b| *b != a) {
            // |i^x − i^y|² is 0, 2, 4, 2 for x − y = 0, 1, 2, 3.
            let d2: u32 = a.iter().zip(b).map(|(x, y)| [0, 2, 4, 2][((4 + x - y) % 4) as usize]).sum();
            *count.entry(d2).or_insert(0u32) += 1;
        }
        count
    };
    let first = from(&words[0]);
    assert!(words.iter().all(|word| from(word) == first), "every word sees the same neighbours");
    first.into_iter().map(|(d2, n)| (f64::from(d2), f64::from(n))).collect()
}

#[test]
fn the_cck_distances_are_those_of_the_standards_codewords() {
    let all: Vec<_> = (0..256).map(|w| cck_word([w & 3, w >> 2 & 3, w >> 4 & 3, w >> 6])).collect();
    assert_eq!(distances(&all), CCK_11.distances);
    // §16.3.6.6.3: φ2 = d2·π + π/2, φ3 = 0, φ4 = d3·π.
    let slow: Vec<_> = (0..16).map(|w| cck_word([w & 3, (w >> 2 & 1) * 2 + 1, 0, (w >> 3) * 2])).collect();
    assert_eq!(distances(&slow), CCK_5_5.distances);
}

/// Error events of the (133, 171) code: wrong information bits summed by distance, over all starting positions.
/// `kept` says for each input bit of the period which of the outputs A and B are sent.
fn spectrum(kept: &[[u32; 2]], max: usize) -> Vec<f64> {
    let mut total = vec![0.0; max + 1];
    for start in 0..kept.len() {
        // paths[state][weight] = (number of paths, wrong bits on them); bit 5 of the state is the newest input.
        let mut paths = vec![vec![(0.0, 0.0); max + 1]; 64];
        for step in 0.. {
            let mut next = vec![vec![(0.0, 0.0); max + 1]; 64];
            for (state, weights) in paths.iter().enumerate() {
                for input in 0..2usize {
                    let begin = step == 0 && state == 0 && input == 1;
                    let register = input << 6 | state;
                    let output = |taps: usize| (register & taps).count_ones() & 1;
                    let [a, b] = kept[(start + step) % kept.len()];
                    let add = (a * output(0o133) + b * output(0o171)) as usize;
                    for w in 0..=max.saturating_sub(add) {
                        let (n, bits) = if begin && w == 0 { (1.0, 0.0) } else { weights[w] };
                        let slot = &mut next[register >> 1][w + add];
                        slot.0 += n;
                        slot.1 += bits + n * input as f64;
                    }
                }
            }
            for w in 0..=max {
                total[w] += next[0][w].1;
                next[0][w] = (0.0, 0.0);
            }
            paths = next;
            if paths.iter().flatten().all(|path| path.0 == 0.0) {
                break;
            }
        }
    }
    total
}

#[test]
fn the_distance_spectra_are_those_of_the_standards_code_and_puncturing() {
    // Bits stolen: §17.3.5.6, figure 17-9.
    let cases: [(&Convolutional, &[[u32; 2]]); 3] =
        [(&RATE_1_2, &[[1, 1]]), (&RATE_2_3, &[[1, 1], [1, 0]]), (&RATE_3_4, &[[1, 1], [1, 0], [0, 1]])];
    for (code, kept) in cases {
        assert_eq!(code.period, kept.len() as f64);
        let free = code.free as usize;
        let found = spectrum(kept, free + 9);
        assert!(found[..free].iter().all(|&bits| bits == 0.0));
        assert_eq!(found[free..], code.bits);
    }
}

#[test]
fn soft_decoding_at_rate_half_reaches_1e_5_at_4_2_db() {
    // The textbook value for K = 7 and soft decisions (Proakis §8.2, table of coding gains): Eb/N0 = 4.2 dB.
    let ber = |eb_db: f64| coded_bit_error_rate(&RATE_1_2, 1.0, db_to_ratio(eb_db) / 2.0);
    assert!(ber(4.1) > 1e-5 && ber(4.4) < 1e-5, "{} {}", ber(4.1), ber(4.4));
}

#[test]
fn ofdm_meets_the_standards_sensitivity_with_the_margin_it_allows() {
    // IEEE 802.11-2020 table 17-18: 10 % of 1000-byte frames lost at this power in dBm, for a noise figure of 10 dB and
    // 5 dB of implementation losses over thermal noise of −101 dBm. An ideal receiver needs no more, and not 6 dB less.
    let table = [
        (Rate::Ofdm6, -82.0),
        (Rate::Ofdm9, -81.0),
        (Rate::Ofdm12, -79.0),
        (Rate::Ofdm18, -77.0),
        (Rate::Ofdm24, -74.0),
        (Rate::Ofdm36, -70.0),
        (Rate::Ofdm48, -66.0),
        (Rate::Ofdm54, -65.0),
    ];
    for (rate, dbm) in table {
        let snr_db = dbm + 101.0 - 10.0 - 5.0;
        let lost = |db: f64| frame_error_rate(rate, db_to_ratio(db), 8_000);
        assert!(lost(snr_db) < 0.1, "{rate:?}: {}", lost(snr_db));
        assert!(lost(snr_db - 6.0) > 0.1, "{rate:?}: {}", lost(snr_db - 6.0));
    }
}

/// The SINR in dB at which a tenth of 1000-byte frames is lost.
fn tenth_db(rate: Rate) -> f64 {
    let (mut low, mut high) = (-30.0, 40.0);
    for _ in 0..60 {
        let middle = (low + high) / 2.0;
        let lost = frame_error_rate(rate, db_to_ratio(middle), 8_000);
        if lost > 0.1 { low = middle } else { high = middle }
    }
    high
}

#[test]
fn dsss_gains_from_spreading() {
    // 10 % of 8000 bits lost is a bit error ratio of 1.317e-5: DBPSK needs 10.23 dB per bit, over 13.42 dB of spreading.
    assert!((tenth_db(Rate::Dsss1) + 3.19).abs() < 0.02, "{}", tenth_db(Rate::Dsss1));
    let cck = (tenth_db(Rate::Cck5_5), tenth_db(Rate::Cck11));
    assert!((0.0..2.0).contains(&cck.0) && (3.5..5.5).contains(&cck.1), "{cck:?}");
}

#[test]
fn a_faster_rate_needs_more_signal_with_two_known_exceptions() {
    let needs: Vec<f64> = Rate::ALL.iter().map(|&rate| tenth_db(rate)).collect();
    let rises = |rates: &[f64]| rates.windows(2).all(|pair| pair[0] < pair[1]);
    // By the ideal formulas 5.5 Mb/s is better than 2 Mb/s: orthogonal words beat differential detection.
    assert!(rises(&[needs[0], needs[1], needs[3]]) && needs[2] < needs[3], "DSSS and CCK: {needs:?}");
    // 9 Mb/s (BPSK 3/4) buys next to nothing over 12 Mb/s (QPSK 1/2).
    let ofdm: Vec<f64> = needs[4..].iter().enumerate().filter(|(k, _)| *k != 1).map(|(_, &db)| db).collect();
    assert!(rises(&ofdm), "OFDM: {needs:?}");
}

#[test]
fn no_signal_loses_every_frame_and_strong_signal_none() {
    for rate in Rate::ALL {
        for none in [0.0, -1.0, f64::NAN] {
            assert!(frame_error_rate(rate, none, 1_000) > 0.999_999, "{rate:?}");
        }
        assert!(frame_error_rate(rate, db_to_ratio(35.0), 100_000) < 1e-12, "{rate:?}");
        assert_eq!(frame_error_rate(rate, f64::INFINITY, u64::MAX), 0.0, "{rate:?}");
        assert_eq!(frame_error_rate(rate, 1e-3, 0), 0.0, "{rate:?}");
    }
}

proptest! {
    #[test]
    fn cached_error_rates_are_exact(
        asked in prop::collection::vec((prop::sample::select(&Rate::ALL[..]), 0u32..40, 1u64..20_000), 1..400),
    ) {
        let mut rates = ErrorRateCache::default();
        for (rate, step, bits) in asked {
            let sinr = db_to_ratio(f64::from(step) - 5.0);
            prop_assert_eq!(rates.frame_error_rate(rate, sinr, bits), frame_error_rate(rate, sinr, bits));
        }
    }

    #[test]
    fn errors_fall_with_sinr_and_rise_with_length(
        rate in prop::sample::select(&Rate::ALL[..]), db in -20.0f64..35.0, better in 0.0f64..10.0,
        bits in 1u64..20_000, more in 0u64..20_000,
    ) {
        let here = frame_error_rate(rate, db_to_ratio(db), bits);
        prop_assert!((0.0..=1.0).contains(&here));
        prop_assert!(frame_error_rate(rate, db_to_ratio(db + better), bits) <= here);
        prop_assert!(frame_error_rate(rate, db_to_ratio(db), bits + more) >= here);
    }

    #[test]
    fn a_frame_cut_in_two_survives_like_the_whole(
        rate in prop::sample::select(&Rate::ALL[..]), db in -5.0f64..25.0, a in 1u64..2_000, b in 1u64..2_000,
    ) {
        let intact = |bits: u64| 1.0 - frame_error_rate(rate, db_to_ratio(db), 8 * bits);
        prop_assert!((intact(a) * intact(b) - intact(a + b)).abs() < 1e-9);
    }
}
