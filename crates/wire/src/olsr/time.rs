//! Times as mantissa and exponent (RFC 3626 §3.3.2, §18.3).

use hopline_core::Duration;

/// C, the scaling factor: 1/16 s.
const SCALE: u64 = 62_500_000;
/// A sixteenth of [`SCALE`], whole nanoseconds: every code is an exact [`Duration`].
const STEP: u64 = SCALE / 16;
const MAX_EXPONENT: u32 = 15;

/// A time in one byte: C · (1 + a/16) · 2^b, a in the four high bits, b in the four low ones. 62.5 ms to 3968 s.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CodedTime(u8);

impl CodedTime {
    /// Returns the time that these bits encode.
    #[must_use]
    pub const fn from_bits(bits: u8) -> Self {
        Self(bits)
    }

    /// The bits.
    #[must_use]
    pub const fn bits(self) -> u8 {
        self.0
    }

    /// Returns the shortest encodable time that is not below `time`; the longest if there is none (RFC 3626 §18.3).
    #[must_use]
    pub fn at_least(time: Duration) -> Self {
        let nanos = time.as_nanos();
        let exponent = (nanos / SCALE).checked_ilog2().unwrap_or(0);
        if exponent > MAX_EXPONENT {
            return Self(u8::MAX);
        }
        let mantissa = nanos.saturating_sub(SCALE << exponent).div_ceil(STEP << exponent);
        match (mantissa, exponent) {
            (16, MAX_EXPONENT) => Self(u8::MAX),
            // Rounded up to the next power of two.
            (16, exponent) => Self(exponent as u8 + 1),
            (mantissa, exponent) => Self((mantissa as u8) << 4 | exponent as u8),
        }
    }

    /// The time itself.
    #[must_use]
    pub const fn duration(self) -> Duration {
        let (mantissa, exponent) = (self.0 >> 4, self.0 & 0xf);
        Duration::from_nanos((STEP * (16 + mantissa as u64)) << exponent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_times_of_the_rfc_have_their_codes() {
        // RFC 3626 §18.2 and §18.3: HELLO_INTERVAL 2 s, TC_INTERVAL 5 s, NEIGHB_HOLD_TIME 6 s, TOP_HOLD_TIME 15 s.
        for (secs, bits) in [(1, 0x04), (2, 0x05), (5, 0x46), (6, 0x86), (15, 0xe7), (30, 0xe8)] {
            let time = Duration::from_secs(secs);
            assert_eq!(CodedTime::at_least(time).bits(), bits, "{time}");
            assert_eq!(CodedTime::from_bits(bits).duration(), time);
        }
    }

    #[test]
    fn times_are_rounded_up_and_clamped() {
        let bits = |time| CodedTime::at_least(time).bits();
        assert_eq!(bits(Duration::ZERO), 0);
        assert_eq!(bits(Duration::from_micros(62_500)), 0);
        assert_eq!(bits(Duration::from_nanos(62_500_001)), 0x10);
        // Just below 2 s, where the mantissa would be 16.
        assert_eq!(bits(Duration::from_nanos(1_999_999_999)), 0x05);
        assert_eq!(bits(Duration::from_secs(3968)), 0xff);
        assert_eq!(bits(Duration::from_secs(3969)), 0xff);
        assert_eq!(bits(Duration::MAX), 0xff);
        assert_eq!(CodedTime::from_bits(0xff).duration(), Duration::from_secs(3968));
    }

    #[test]
    fn every_code_is_its_own_and_later_codes_are_longer() {
        let mut codes: Vec<u8> = (0..=u8::MAX).collect();
        codes.sort_by_key(|bits| bits.rotate_left(4));
        let times: Vec<_> = codes.iter().map(|bits| CodedTime::from_bits(*bits).duration()).collect();
        assert!(times.windows(2).all(|pair| pair[0] < pair[1]));
        for bits in codes {
            let code = CodedTime::from_bits(bits);
            assert_eq!(CodedTime::at_least(code.duration()), code);
        }
    }

    proptest! {
        #[test]
        fn a_time_is_rounded_up_by_a_seventeenth_at_most(nanos in SCALE..3_968_000_000_000) {
            let coded = CodedTime::at_least(Duration::from_nanos(nanos)).duration().as_nanos();
            prop_assert!(coded >= nanos);
            prop_assert!(coded - nanos <= nanos / 16);
        }
    }
}
