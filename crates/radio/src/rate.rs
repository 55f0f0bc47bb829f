//! Rates of 802.11b and 802.11a and the airtime of a frame.

use hopline_core::Duration;

/// A PHY rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Rate {
    /// 1 Mb/s DSSS (DBPSK).
    Dsss1,
    /// 2 Mb/s DSSS (DQPSK).
    Dsss2,
    /// 5.5 Mb/s CCK.
    Cck5_5,
    /// 11 Mb/s CCK.
    Cck11,
    /// 6 Mb/s OFDM (BPSK 1/2).
    Ofdm6,
    /// 9 Mb/s OFDM (BPSK 3/4).
    Ofdm9,
    /// 12 Mb/s OFDM (QPSK 1/2).
    Ofdm12,
    /// 18 Mb/s OFDM (QPSK 3/4).
    Ofdm18,
    /// 24 Mb/s OFDM (16-QAM 1/2).
    Ofdm24,
    /// 36 Mb/s OFDM (16-QAM 3/4).
    Ofdm36,
    /// 48 Mb/s OFDM (64-QAM 2/3).
    Ofdm48,
    /// 54 Mb/s OFDM (64-QAM 3/4).
    Ofdm54,
}

impl Rate {
    /// Every rate, slowest first within its PHY.
    pub const ALL: [Self; 12] = [
        Self::Dsss1,
        Self::Dsss2,
        Self::Cck5_5,
        Self::Cck11,
        Self::Ofdm6,
        Self::Ofdm9,
        Self::Ofdm12,
        Self::Ofdm18,
        Self::Ofdm24,
        Self::Ofdm36,
        Self::Ofdm48,
        Self::Ofdm54,
    ];

    /// Bits per second.
    #[must_use]
    pub const fn bps(self) -> u64 {
        match self {
            Self::Dsss1 => 1_000_000,
            Self::Dsss2 => 2_000_000,
            Self::Cck5_5 => 5_500_000,
            Self::Cck11 => 11_000_000,
            Self::Ofdm6 => 6_000_000,
            Self::Ofdm9 => 9_000_000,
            Self::Ofdm12 => 12_000_000,
            Self::Ofdm18 => 18_000_000,
            Self::Ofdm24 => 24_000_000,
            Self::Ofdm36 => 36_000_000,
            Self::Ofdm48 => 48_000_000,
            Self::Ofdm54 => 54_000_000,
        }
    }

    /// Megabits per second, as rates are named.
    #[must_use]
    pub fn mbps(self) -> f64 {
        self.bps() as f64 / 1e6
    }

    /// Returns whether the rate is an OFDM rate of 802.11a.
    #[must_use]
    pub const fn is_ofdm(self) -> bool {
        !matches!(self, Self::Dsss1 | Self::Dsss2 | Self::Cck5_5 | Self::Cck11)
    }

    /// The slowest rate that every station of the rate's PHY has: 1 Mb/s of DSSS and CCK, 6 Mb/s of OFDM
    /// (802.11-2020 §16.1.1, §17.1.1).
    #[must_use]
    pub const fn lowest_mandatory(self) -> Self {
        if self.is_ofdm() { Self::Ofdm6 } else { Self::Dsss1 }
    }

    /// Time on air of a frame of `bytes` bytes, FCS included.
    ///
    /// DSSS and CCK: preamble and PLCP header of `preamble`, then the bits, rounded up to a microsecond
    /// (802.11-2020 §16.3.4, TXTIME). OFDM: 16 µs preamble, 4 µs SIGNAL, then whole 4 µs symbols that carry SERVICE (16),
    /// data and tail (6) bits (§17.3.2.4, §17.4.3).
    #[must_use]
    pub const fn airtime(self, bytes: u32, preamble: Preamble) -> Duration {
        let bits = 8 * bytes as u64;
        if self.is_ofdm() {
            let bits_per_symbol = 4 * self.bps() / 1_000_000;
            Duration::from_micros(20 + 4 * (16 + bits + 6).div_ceil(bits_per_symbol))
        } else {
            let plcp = preamble.duration().as_nanos();
            let micros = Duration::of_bits(bits, self.bps()).as_nanos().div_ceil(1_000);
            Duration::from_nanos(plcp + 1_000 * micros)
        }
    }
}

/// Preamble of DSSS and CCK frames. OFDM has only one and ignores this.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Preamble {
    /// 144 + 48 bits at 1 Mb/s: 192 µs.
    #[default]
    Long,
    /// 72 bits at 1 Mb/s and 48 bits at 2 Mb/s: 96 µs.
    Short,
}

impl Preamble {
    /// Time of preamble and PLCP header.
    #[must_use]
    pub const fn duration(self) -> Duration {
        match self {
            Self::Long => Duration::from_micros(192),
            Self::Short => Duration::from_micros(96),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dsss_frames_take_preamble_and_bits() {
        let us = |rate: Rate, bytes| rate.airtime(bytes, Preamble::Long);
        assert_eq!(us(Rate::Dsss1, 20), Duration::from_micros(352));
        assert_eq!(us(Rate::Dsss1, 14), Duration::from_micros(304));
        assert_eq!(us(Rate::Dsss2, 1528), Duration::from_micros(6304));
        assert_eq!(us(Rate::Cck11, 1528), Duration::from_micros(192 + 1112));
        assert_eq!(Rate::Dsss2.airtime(1528, Preamble::Short), Duration::from_micros(6208));
    }

    #[test]
    fn ofdm_frames_take_whole_symbols() {
        // 14 bytes at 6 Mb/s: 134 bits in symbols of 24: 6 symbols, 44 µs, the well-known ACK time of 802.11a.
        assert_eq!(Rate::Ofdm6.airtime(14, Preamble::Long), Duration::from_micros(44));
        assert_eq!(Rate::Ofdm24.airtime(14, Preamble::Long), Duration::from_micros(28));
        assert_eq!(Rate::Ofdm54.airtime(1500, Preamble::Long), Duration::from_micros(244));
    }
}
