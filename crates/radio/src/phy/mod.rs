//! The physical layer: how far a signal carries, what of it is received, and what is corrupted.

pub mod awgn;
pub mod errors;
pub mod grid;
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
}
