//! The physical layer: how far a signal carries, what of it is received, and what is corrupted.

pub mod awgn;
pub mod errors;
pub mod grid;
pub mod obstacles;
pub mod propagation;
pub mod reception;

use propagation::{Propagation, RadioParams};
use reception::ReceptionModel;

/// Radio, propagation and reception. All wireless nodes share one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Config {
    /// Powers, gains and thresholds.
    pub radio: RadioParams,
    /// How power falls with distance.
    pub propagation: Propagation,
    /// What a radio does with the signals that arrive.
    pub reception: ReceptionModel,
}

impl Config {
    /// 250 m / 550 m two-ray ground with ns-2's reception: the radio of ns-2's wireless scripts.
    #[must_use]
    pub const fn ns2_wavelan() -> Self {
        Self {
            radio: RadioParams::ns2_wavelan(),
            propagation: Propagation::TwoRayGround,
            reception: ReceptionModel::LockOnSensed,
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
}
