//! Receiver sensitivity: the lowest power of a decodable frame at each rate.

use super::propagation::{RadioParams, db_to_ratio};
use crate::rate::Rate;

/// The weakest power at which frames are decoded, absent interference.
#[derive(Clone, Copy, Debug, PartialEq, Default)]
pub enum Sensitivity {
    /// The receive threshold of the radio at every rate.
    #[default]
    Alike,
    /// The values of [`DBM`], all shifted so that this rate has the receive threshold of the radio.
    ByRate(Rate),
}

/// Least input level in dBm by rate, in the order of [`Rate::ALL`].
///
/// DSSS and CCK: the Agere module in Acer's MPCI-101 (its manual, §3.3.2: 25 °C, 8 % of frames of 1024 bytes lost), since the
/// standard has no more than −80 dBm at 2 Mb/s and −76 dBm at 11 Mb/s (802.11-2020, clauses 15 and 16). OFDM: what the
/// standard asks for at 20 MHz, 10 % of 1000 bytes lost (§17.3.10.2); cards do better by some dB.
pub const DBM: [f64; 12] =
    [-91.0, -88.0, -85.0, -82.0, -82.0, -81.0, -79.0, -77.0, -74.0, -70.0, -66.0, -65.0];

/// Returns the sensitivity of `rate` in [`DBM`].
#[must_use]
pub const fn dbm(rate: Rate) -> f64 {
    DBM[rate as usize]
}

impl Sensitivity {
    /// The threshold of `radio` at `rate`, in W.
    #[must_use]
    pub fn threshold_w(self, radio: &RadioParams, rate: Rate) -> f64 {
        match self {
            Self::Alike => radio.rx_threshold_w,
            Self::ByRate(reference) if reference == rate => radio.rx_threshold_w,
            Self::ByRate(reference) => radio.rx_threshold_w * db_to_ratio(dbm(rate) - dbm(reference)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::phy::propagation::watts_to_dbm;

    #[test]
    fn each_rate_has_its_threshold_and_all_move_together() {
        let radio = RadioParams::ns2_wavelan();
        let at = |sensitivity: Sensitivity, rate| watts_to_dbm(sensitivity.threshold_w(&radio, rate));
        let own = watts_to_dbm(radio.rx_threshold_w);
        assert!(Rate::ALL.into_iter().all(|rate| at(Sensitivity::Alike, rate) == own));
        let by_rate = Sensitivity::ByRate(Rate::Ofdm54);
        assert_eq!(at(by_rate, Rate::Ofdm54), own);
        assert!((at(by_rate, Rate::Ofdm6) - (own - 17.0)).abs() < 1e-9);
        assert!((at(by_rate, Rate::Cck11) - (own - 17.0)).abs() < 1e-9);
    }

    #[test]
    fn the_table_is_in_the_order_of_the_rates() {
        for (index, rate) in Rate::ALL.into_iter().enumerate() {
            assert_eq!(rate as usize, index);
        }
        assert_eq!(
            [Rate::Dsss1, Rate::Cck11, Rate::Ofdm6, Rate::Ofdm54].map(dbm),
            [-91.0, -82.0, -82.0, -65.0]
        );
    }
}
