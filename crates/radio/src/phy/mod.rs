//! The physical layer: how far a signal carries, what of it is received, and what is corrupted.

pub mod awgn;
pub mod errors;
pub mod grid;
pub mod obstacles;
pub mod propagation;
pub mod reception;
pub mod sensitivity;

use crate::rate::Rate;
use propagation::{Propagation, RadioParams, dbm_to_watts};
use reception::ReceptionModel;
use sensitivity::Sensitivity;

/// Radio, propagation and reception. All wireless nodes share one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Config {
    /// Powers, gains and thresholds.
    pub radio: RadioParams,
    /// Propagation model: received power as a function of distance.
    pub propagation: Propagation,
    /// Reception model: treatment of arriving signals.
    pub reception: ReceptionModel,
    /// Lowest decodable power at each rate.
    pub sensitivity: Sensitivity,
}

impl Config {
    /// 250 m / 550 m two-ray ground with ns-2's reception: the radio of ns-2's wireless scripts.
    #[must_use]
    pub const fn ns2_wavelan() -> Self {
        Self {
            radio: RadioParams::ns2_wavelan(),
            propagation: Propagation::TwoRayGround,
            reception: ReceptionModel::LockOnSensed,
            sensitivity: Sensitivity::Alike,
        }
    }

    /// The same radio with the other reading of a frame that can be sensed and not decoded: energy only.
    #[must_use]
    pub const fn wavelan() -> Self {
        Self { reception: ReceptionModel::LockOnDecodable, ..Self::ns2_wavelan() }
    }

    /// The same power over 367 m two-ray ground, as in the Neighborhood RED paper, which ran in QualNet; interference adds up,
    /// as QualNet has it. How far a carrier is sensed was not published: 653 m, where 10 dB less arrive than at 367 m.
    #[must_use]
    pub fn qualnet_367() -> Self {
        let mut config = Self { reception: ReceptionModel::CumulativeSinr, ..Self::ns2_wavelan() };
        config.radio.rx_threshold_w = config.propagation.received_w(&config.radio, 367.0);
        config.radio.cs_threshold_w = config.propagation.received_w(&config.radio, 653.0);
        config
    }

    /// An 802.11b card at 15 dBm on 2437 MHz, each rate with its own range. The power is the nominal power of the card that
    /// the [sensitivities](sensitivity::DBM) describe.
    #[must_use]
    pub fn dot11b_ranges() -> Self {
        Self::wavelan().with_ranges(2437e6, 15.0, Rate::Cck11)
    }

    /// A card of 802.11a: 40 mW (IEEE 802.11a-1999, Table 89, the lower band) on 5180 MHz, each rate with its own reach.
    #[must_use]
    pub fn dot11a_ranges() -> Self {
        Self::wavelan().with_ranges(5180e6, 16.0, Rate::Ofdm54)
    }

    /// A carrier is sensed where the slowest rate, at which preambles and headers are sent, is decoded.
    fn with_ranges(mut self, frequency_hz: f64, tx_power_dbm: f64, data_rate: Rate) -> Self {
        self.radio.frequency_hz = frequency_hz;
        self.radio.tx_power_w = dbm_to_watts(tx_power_dbm);
        self.radio.cs_threshold_w = dbm_to_watts(sensitivity::dbm(data_rate.lowest_mandatory()));
        self.sensitivity = Sensitivity::ByRate(data_rate);
        self.at_data_rate(data_rate)
    }

    /// The same for data at another rate. Where each rate has its own threshold the radio's becomes that of this one.
    #[must_use]
    pub fn at_data_rate(mut self, rate: Rate) -> Self {
        if let Sensitivity::ByRate(reference) = &mut self.sensitivity {
            *reference = rate;
            self.radio.rx_threshold_w = dbm_to_watts(sensitivity::dbm(rate));
        }
        self
    }
}
