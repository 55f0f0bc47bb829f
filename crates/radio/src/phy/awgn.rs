//! Frame error rate of each 802.11 rate against SINR, for reception by cumulative SINR.
//!
//! The channel is additive white Gaussian noise, and interference counts as such noise. SINR is the ratio of the
//! frame's power to that of noise and interference in the [receiver's bandwidth](noise_bandwidth_hz), linear. All
//! formulas are those of an ideal receiver without implementation losses.
//!
//! | rate | detection | bit or symbol errors |
//! |---|---|---|
//! | 1 Mb/s | differential BPSK | closed form (Proakis, Digital Communications, 4th ed., §5.2.8) |
//! | 2 Mb/s | differential QPSK, Gray | single integral (Simon and Alouini, Digital Communication over Fading Channels, ch. 8) |
//! | 5.5, 11 Mb/s | CCK as a block code, coherent | union bound over the codewords of IEEE 802.11-2020 §16.3.6.6 |
//! | OFDM | BPSK to 64-QAM, Gray, bit-interleaved, K = 7 code, soft Viterbi | union bound, distance spectra of Frenger, Orten and Ottosson 1999 |

use super::errors::Probability;
use crate::rate::Rate;
use core::f64::consts::{PI, SQRT_2};
use std::sync::LazyLock;

mod cache;
#[cfg(test)]
mod tests;

pub use cache::ErrorRateCache;

/// Chips per second of 802.11b.
const CHIP_RATE_HZ: f64 = 11e6;
/// Null-to-null width of the 802.11b spectrum.
const DSSS_BANDWIDTH_HZ: f64 = 22e6;
/// Channel width of 802.11a.
const OFDM_BANDWIDTH_HZ: f64 = 20e6;

/// The bandwidth in Hz in which [`frame_error_rate`] takes noise to be measured: 22 MHz for DSSS and CCK, 20 MHz for
/// OFDM.
#[must_use]
pub const fn noise_bandwidth_hz(rate: Rate) -> f64 {
    if rate.is_ofdm() { OFDM_BANDWIDTH_HZ } else { DSSS_BANDWIDTH_HZ }
}

/// The probability that at least one of `bits` data bits sent at `rate` is wrong when the SINR is `sinr`, linear.
/// Falls with `sinr`, rises with `bits`; 1 for any practical frame if `sinr` is not positive.
///
/// The errors of a frame with a changing SINR are computed piecewise: the success probabilities of the pieces multiply.
#[must_use]
pub fn frame_error_rate(rate: Rate, sinr: f64, bits: u64) -> f64 {
    frame_error_rate_of(rate, symbol_error_rate(rate, sinr), bits)
}

/// The probability that a symbol sent at `rate` is wrong: a bit, or a codeword of [`bits_per_symbol`].
fn symbol_error_rate(rate: Rate, sinr: f64) -> Probability {
    let sinr = if sinr > 0.0 { sinr } else { 0.0 }; // NaN too
    let p = match rate {
        Rate::Dsss1 => dbpsk_bit_error_rate(sinr * DSSS_BANDWIDTH_HZ / rate.bps() as f64),
        Rate::Dsss2 => dqpsk_bit_error_rate(sinr * DSSS_BANDWIDTH_HZ / rate.bps() as f64),
        Rate::Cck5_5 => codeword_error_rate(&CCK_5_5, sinr * DSSS_BANDWIDTH_HZ / CHIP_RATE_HZ),
        Rate::Cck11 => codeword_error_rate(&CCK_11, sinr * DSSS_BANDWIDTH_HZ / CHIP_RATE_HZ),
        Rate::Ofdm6 => coded_bit_error_rate(&RATE_1_2, 1.0, sinr),
        Rate::Ofdm9 => coded_bit_error_rate(&RATE_3_4, 1.0, sinr),
        Rate::Ofdm12 => coded_bit_error_rate(&RATE_1_2, 2.0, sinr),
        Rate::Ofdm18 => coded_bit_error_rate(&RATE_3_4, 2.0, sinr),
        Rate::Ofdm24 => coded_bit_error_rate(&RATE_1_2, 10.0, sinr),
        Rate::Ofdm36 => coded_bit_error_rate(&RATE_3_4, 10.0, sinr),
        Rate::Ofdm48 => coded_bit_error_rate(&RATE_2_3, 42.0, sinr),
        Rate::Ofdm54 => coded_bit_error_rate(&RATE_3_4, 42.0, sinr),
    };
    Probability::new(p).expect("formulas below give a number between 0 and 1")
}

/// The probability that at least one of the symbols of `bits` data bits is wrong.
fn frame_error_rate_of(rate: Rate, symbol: Probability, bits: u64) -> f64 {
    symbol.any_of(bits.div_ceil(bits_per_symbol(rate)))
}

/// Returns the data bits per symbol of the symbol error rate.
const fn bits_per_symbol(rate: Rate) -> u64 {
    match rate {
        Rate::Cck5_5 => 4,
        Rate::Cck11 => 8,
        _ => 1,
    }
}

/// The tail of the standard normal distribution.
fn q_function(x: f64) -> f64 {
    0.5 * libm::erfc(x / SQRT_2)
}

/// Bit error ratio of differentially detected BPSK: ½·exp(−γ), where γ = Eb/N0.
fn dbpsk_bit_error_rate(gamma: f64) -> f64 {
    0.5 * libm::exp(-gamma)
}

/// Intervals of the trapezoid rule in [`dqpsk_bit_error_rate`]. The integrand is periodic and smooth, so the rule converges faster
/// than any power; 64 intervals are exact to 10⁻⁹ of the value wherever that is above 10⁻²⁰.
const DQPSK_INTERVALS: usize = 64;

/// 2 − √2·cos u at the ends of the intervals.
static DQPSK_DISTANCES: LazyLock<[f64; DQPSK_INTERVALS + 1]> = LazyLock::new(|| {
    std::array::from_fn(|k| 2.0 - SQRT_2 * libm::cos(PI * k as f64 / DQPSK_INTERVALS as f64))
});

/// Bit error ratio of differentially detected Gray QPSK. Simon and Alouini's integral for
/// Q₁(a, b) − ½·I₀(a·b)·exp(−(a² + b²)/2) with a, b = √(2γ·(1 ∓ 1/√2)), simplified:
/// 1/2π · ∫₀^π √2/(2 − √2·cos u) · exp(−γ·(2 − √2·cos u)) du.
fn dqpsk_bit_error_rate(gamma: f64) -> f64 {
    // Below 10⁻²⁵: no frame is long enough to tell it from zero.
    if gamma * (2.0 - SQRT_2) > 60.0 {
        return 0.0;
    }
    let term = |d: &f64| SQRT_2 / d * libm::exp(-gamma * d);
    let [first, inner @ .., last] = &*DQPSK_DISTANCES;
    let sum = (term(first) + term(last)) / 2.0 + inner.iter().map(term).sum::<f64>();
    (sum / (2.0 * DQPSK_INTERVALS as f64)).min(0.5)
}

/// The words of a block code as seen from any one of them.
struct BlockCode {
    /// Number of words.
    words: f64,
    /// Squared distance in units of the energy of a chip, and how many words are that far away.
    distances: &'static [(f64, f64)],
}

/// CCK at 5.5 Mb/s: 16 words of 8 chips, four orthogonal ones in four phases.
const CCK_5_5: BlockCode = BlockCode { words: 16.0, distances: &[(16.0, 14.0), (32.0, 1.0)] };

/// CCK at 11 Mb/s: 256 words of 8 chips.
const CCK_11: BlockCode = BlockCode {
    words: 256.0,
    distances: &[(8.0, 24.0), (12.0, 16.0), (16.0, 174.0), (20.0, 16.0), (24.0, 24.0), (32.0, 1.0)],
};

/// Probability that another word than the one sent is nearest, at chip energy over noise density `gamma`: the union
/// bound, and no worse than guessing.
fn codeword_error_rate(code: &BlockCode, gamma: f64) -> f64 {
    let union: f64 =
        code.distances.iter().map(|(d2, count)| count * q_function(libm::sqrt(d2 * gamma / 2.0))).sum();
    union.min(1.0 - 1.0 / code.words)
}

/// The (133, 171) convolutional code of IEEE 802.11-2020 §17.3.5.6, punctured to a rate of k/n.
struct Convolutional {
    /// k: information bits per puncturing period.
    period: f64,
    /// Free distance.
    free: f64,
    /// Information bits in error, summed over all error events at distance `free`, `free` + 1, … and over the
    /// positions in the period at which they begin.
    bits: [f64; 10],
}

const RATE_1_2: Convolutional = Convolutional {
    period: 1.0,
    free: 10.0,
    bits: [36.0, 0.0, 211.0, 0.0, 1404.0, 0.0, 11_633.0, 0.0, 77_433.0, 0.0],
};

const RATE_2_3: Convolutional = Convolutional {
    period: 2.0,
    free: 6.0,
    bits: [3.0, 70.0, 285.0, 1276.0, 6160.0, 27_128.0, 117_019.0, 498_835.0, 2_103_480.0, 8_781_268.0],
};

const RATE_3_4: Convolutional = Convolutional {
    period: 3.0,
    free: 5.0,
    bits: [
        42.0,
        201.0,
        1492.0,
        10_469.0,
        62_935.0,
        379_546.0,
        2_252_394.0,
        13_064_540.0,
        75_080_308.0,
        427_474_864.0,
    ],
};

/// Bit error ratio after soft Viterbi decoding, by the union bound (Proakis §8.2.3), at most ½.
///
/// `spread` says how much closer than in BPSK the points of the constellation are: minimum distance squared is
/// 4·Es/`spread`; 2·(M − 1)/3 for square M-QAM. All bits are taken to be sent at that distance, which is exact for
/// BPSK and QPSK and a fraction of a dB pessimistic for 16- and 64-QAM (Caire, Taricco and Biglieri 1998). Es/N0 is
/// taken to be the SINR: the 0.9 dB by which 52 of 64 subcarriers concentrate the power are not credited.
fn coded_bit_error_rate(code: &Convolutional, spread: f64, sinr: f64) -> f64 {
    let mut union = 0.0;
    for (extra, bits) in code.bits.iter().enumerate() {
        let distance = code.free + extra as f64;
        union += bits * q_function(libm::sqrt(2.0 * distance * sinr / spread));
    }
    (union / code.period).min(0.5)
}
