//! Received power as a function of distance, and the parameters of the transmitting radio.
//!
//! Units are in the names: watts, metres, hertz; `db` for ratios, `dbm` for power over one milliwatt. Gains and
//! system loss are linear ratios, as in Friis' formula.

use core::f64::consts::PI;
use hopline_core::{Duration, NodeId, Purpose, RandomStream};

#[cfg(test)]
mod tests;

/// Speed of light in vacuum in metres per second (exact by the definition of the metre).
pub const SPEED_OF_LIGHT_M_PER_S: f64 = 299_792_458.0;

/// Boltzmann's constant in joules per kelvin (exact in the SI of 2019).
const BOLTZMANN_J_PER_K: f64 = 1.380_649e-23;

/// Reference temperature of noise figures in kelvin (IEEE definition of the noise figure).
const REFERENCE_TEMPERATURE_K: f64 = 290.0;

/// Shadowing is cut off at this many standard deviations on either side. The cut gives every transmission a finite
/// [reach](Propagation::reach_m); it touches 0.27 % of the draws.
pub const SHADOWING_LIMIT_SIGMAS: f64 = 3.0;

/// Parameters of a radio: transmission and reception. All nodes of a network share one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RadioParams {
    /// Carrier frequency in Hz, > 0. ns-2 `Phy/WirelessPhy freq_`.
    pub frequency_hz: f64,
    /// Transmitted power in W, > 0. ns-2 `Pt_`.
    pub tx_power_w: f64,
    /// Gain of the transmitting antenna, linear, > 0. ns-2 `Gt_`.
    pub tx_gain: f64,
    /// Gain of the receiving antenna, linear, > 0. ns-2 `Gr_`.
    pub rx_gain: f64,
    /// Height of both antennas over ground in m, > 0; used by two-ray ground only. ns-2 `Z_` of the antenna.
    pub antenna_height_m: f64,
    /// System loss, linear, ≥ 1. ns-2 `L_`.
    pub system_loss: f64,
    /// Weakest power in W at which a frame can be decoded; of data frames, where that depends on the
    /// [rate](super::sensitivity::Sensitivity). ns-2 `RXThresh_`.
    pub rx_threshold_w: f64,
    /// Weakest power in W that makes the medium busy. ns-2 `CSThresh_`.
    pub cs_threshold_w: f64,
    /// Capture threshold in dB: margin of a frame over another one to be received in spite of it (pairwise capture). ns-2
    /// `CPThresh_`.
    pub capture_threshold_db: f64,
    /// Bandwidth in Hz over which noise is collected; used by SINR reception only.
    pub bandwidth_hz: f64,
    /// Noise figure of the receiver in dB, ≥ 0; used by SINR reception only.
    pub noise_figure_db: f64,
}

impl RadioParams {
    /// The 914 MHz WaveLAN card that ns-2 uses by default: 250 m transmission and 550 m carrier sense with two-ray
    /// ground. ns-2 knows no noise: the bandwidth is that of the 802.11 DSSS mask (22 MHz) and the noise figure the
    /// 10 dB that IEEE 802.11-2020 §17.3.10.2 assumes.
    #[must_use]
    pub const fn ns2_wavelan() -> Self {
        Self {
            frequency_hz: 914e6,
            tx_power_w: 0.281_838_15,
            tx_gain: 1.0,
            rx_gain: 1.0,
            antenna_height_m: 1.5,
            system_loss: 1.0,
            rx_threshold_w: 3.652e-10,
            cs_threshold_w: 1.559e-11,
            capture_threshold_db: 10.0,
            bandwidth_hz: 22e6,
            noise_figure_db: 10.0,
        }
    }

    /// Wavelength of the carrier in m.
    #[must_use]
    pub fn wavelength_m(&self) -> f64 {
        SPEED_OF_LIGHT_M_PER_S / self.frequency_hz
    }

    /// Distance in m from which the ray reflected by the ground counts: 4·π·ht·hr/λ. Below it two-ray ground is
    /// free space.
    #[must_use]
    pub fn crossover_m(&self) -> f64 {
        4.0 * PI * self.antenna_height_m * self.antenna_height_m / self.wavelength_m()
    }

    /// The capture threshold as a ratio of powers.
    #[must_use]
    pub fn capture_ratio(&self) -> f64 {
        db_to_ratio(self.capture_threshold_db)
    }

    /// Thermal noise in W at the receiver's decision: k·T₀·B times the noise figure, T₀ = 290 K.
    #[must_use]
    pub fn noise_floor_w(&self) -> f64 {
        BOLTZMANN_J_PER_K * REFERENCE_TEMPERATURE_K * self.bandwidth_hz * db_to_ratio(self.noise_figure_db)
    }

    /// Power in W that would arrive if the path lost nothing. No model exceeds it, however near the receiver is.
    fn max_received_w(&self) -> f64 {
        self.tx_power_w * self.tx_gain * self.rx_gain / self.system_loss
    }

    /// Friis 1946: Pt·Gt·Gr·λ²/((4π·d)²·L).
    fn friis_w(&self, distance_m: f64) -> f64 {
        let spread = self.wavelength_m() / (4.0 * PI * distance_m);
        self.max_received_w() * spread * spread
    }

    /// The distance at which Friis' formula gives `power_w`.
    fn friis_range_m(&self, power_w: f64) -> f64 {
        self.wavelength_m() / (4.0 * PI) * (self.max_received_w() / power_w).sqrt()
    }
}

/// Propagation model: received power as a function of distance.
#[derive(Clone, Copy, Debug, PartialEq, Default)]
pub enum Propagation {
    /// Friis 1946: power falls with d².
    FreeSpace,
    /// Direct ray and ground reflection (Rappaport, Wireless Communications, §4.6): free space up to the
    /// [crossover](RadioParams::crossover_m), then Pt·Gt·Gr·ht²·hr²/(d⁴·L).
    #[default]
    TwoRayGround,
    /// Power falls with a given exponent.
    LogDistance(LogDistance),
    /// Log-distance with log-normal deviations.
    Shadowing(Shadowing),
    /// Sharp circles; no physics.
    RangeDisk(RangeDisk),
}

/// Free space up to a reference distance, beyond it power falls with d to an exponent (Rappaport §4.9.1).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LogDistance {
    /// Path loss exponent, > 0: 2 free space, 2.7–5 outdoors shadowed, 1.6–6 indoors. Default 2.
    pub exponent: f64,
    /// Reference distance in m, > 0, in the far field. Default 1.
    pub reference_m: f64,
}

impl Default for LogDistance {
    /// ns-2's `Propagation/Shadowing` defaults: exponent 2, reference 1 m.
    fn default() -> Self {
        Self { exponent: 2.0, reference_m: 1.0 }
    }
}

/// Log-normal shadowing (Rappaport §4.9.2): a Gaussian deviation in dB on top of log-distance.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shadowing {
    /// The median path loss.
    pub median: LogDistance,
    /// Standard deviation in dB, ≥ 0. Default 4. Deviations are cut off at [`SHADOWING_LIMIT_SIGMAS`].
    pub deviation_db: f64,
    /// Scope of one shadowing deviation. Default: each frame at each receiver.
    pub draw: ShadowingDraw,
}

impl Default for Shadowing {
    /// ns-2's `Propagation/Shadowing` defaults: exponent 2, reference 1 m, 4 dB, a draw per frame.
    fn default() -> Self {
        Self { median: LogDistance::default(), deviation_db: 4.0, draw: ShadowingDraw::PerFrame }
    }
}

/// Scope of one shadowing deviation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShadowingDraw {
    /// Each pair of nodes, once per run, the same in both directions. Models stationary obstacles.
    PerLink,
    /// Each frame at each receiver, independently, as ns-2 does.
    PerFrame,
}

/// Sharp circles around the sender. Inside `transmission_m` power is exactly the receive threshold, so that no frame
/// captures the receiver from another; inside `interference_m` it is half of that, too weak to decode and strong
/// enough to destroy; inside `carrier_sense_m` it is the carrier-sense threshold; outside it is nothing.
///
/// Needs `transmission_m ≤ interference_m ≤ carrier_sense_m`. The radio must have
/// `cs_threshold_w · capture_ratio() ≤ rx_threshold_w`, else frames that are only sensed destroy as well.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RangeDisk {
    /// Up to here in m frames are decoded.
    pub transmission_m: f64,
    /// Up to here in m frames destroy others.
    pub interference_m: f64,
    /// Up to here in m frames make the medium busy.
    pub carrier_sense_m: f64,
}

impl RangeDisk {
    /// The circles of [`phy::Config::qualnet_367`](super::Config::qualnet_367), with interference as in the default: 10 dB.
    pub const QUALNET_367: Self =
        Self { transmission_m: 367.0, interference_m: 653.0, carrier_sense_m: 653.0 };
}

impl Default for RangeDisk {
    /// The circles of ns-2's WaveLAN: 250 m to decode, 550 m to sense. A frame from 250 m withstands another from
    /// 250·10^(1/4) ≈ 445 m (two-ray ground, 10 dB).
    fn default() -> Self {
        Self { transmission_m: 250.0, interference_m: 445.0, carrier_sense_m: 550.0 }
    }
}

impl Propagation {
    /// Received power in W at `distance_m` ≥ 0; the median where the model has a random part. Never more than
    /// arrives over a path without loss.
    #[must_use]
    pub fn received_w(&self, radio: &RadioParams, distance_m: f64) -> f64 {
        let power_w = match self {
            Self::FreeSpace => radio.friis_w(distance_m),
            Self::TwoRayGround if distance_m < radio.crossover_m() => radio.friis_w(distance_m),
            Self::TwoRayGround => {
                let ratio = radio.antenna_height_m / distance_m;
                radio.max_received_w() * (ratio * ratio) * (ratio * ratio)
            }
            Self::LogDistance(model) => model.received_w(radio, distance_m),
            Self::Shadowing(model) => model.median.received_w(radio, distance_m),
            Self::RangeDisk(disk) => return disk.received_w(radio, distance_m),
        };
        power_w.min(radio.max_received_w())
    }

    /// The distance in m at which [`Propagation::received_w`] falls below `threshold_w`; 0 if it never reaches it.
    #[must_use]
    pub fn range_for(&self, radio: &RadioParams, threshold_w: f64) -> f64 {
        if threshold_w > radio.max_received_w() {
            return 0.0;
        }
        let free_m = radio.friis_range_m(threshold_w);
        match self {
            Self::FreeSpace => free_m,
            Self::TwoRayGround if free_m < radio.crossover_m() => free_m,
            Self::TwoRayGround => {
                radio.antenna_height_m * (radio.max_received_w() / threshold_w).sqrt().sqrt()
            }
            Self::LogDistance(model) => model.range_for(radio, threshold_w),
            Self::Shadowing(model) => model.median.range_for(radio, threshold_w),
            Self::RangeDisk(disk) => disk.range_for(radio, threshold_w),
        }
    }

    /// The distance in m beyond which no frame arrives with `threshold_w`, whatever the random part does: the radius
    /// of the neighbour search.
    #[must_use]
    pub fn reach_m(&self, radio: &RadioParams, threshold_w: f64) -> f64 {
        match self {
            Self::Shadowing(model) => {
                let best = db_to_ratio(SHADOWING_LIMIT_SIGMAS * model.deviation_db);
                // Shadowing may lift a frame over the power of a lossless path, so look at the median alone.
                model.median.range_for(radio, (threshold_w / best).min(radio.max_received_w()))
            }
            _ => self.range_for(radio, threshold_w),
        }
    }

    /// The factor on received power that belongs to the pair `a`, `b` in this run: the same in both directions and
    /// on every call. 1 unless shadowing is [drawn per link](ShadowingDraw::PerLink).
    #[must_use]
    pub fn link_gain(&self, seed: u64, run: u64, a: NodeId, b: NodeId) -> f64 {
        match self {
            Self::Shadowing(model) if model.draw == ShadowingDraw::PerLink => {
                let owner = u64::from(a.0.min(b.0)) << 32 | u64::from(a.0.max(b.0));
                model.gain(&mut RandomStream::keyed(seed, run, owner, Purpose::Shadowing))
            }
            _ => 1.0,
        }
    }

    /// The factor on received power that belongs to one frame at one receiver. 1, without touching `stream`, unless
    /// shadowing is [drawn per frame](ShadowingDraw::PerFrame).
    #[must_use]
    pub fn frame_gain(&self, stream: &mut RandomStream) -> f64 {
        match self {
            Self::Shadowing(model) if model.draw == ShadowingDraw::PerFrame => model.gain(stream),
            _ => 1.0,
        }
    }
}

impl LogDistance {
    fn received_w(&self, radio: &RadioParams, distance_m: f64) -> f64 {
        if distance_m <= self.reference_m {
            return radio.friis_w(distance_m);
        }
        self.reference_w(radio) * libm::pow(self.reference_m / distance_m, self.exponent)
    }

    fn range_for(&self, radio: &RadioParams, threshold_w: f64) -> f64 {
        let reference_w = self.reference_w(radio);
        if threshold_w >= reference_w {
            return radio.friis_range_m(threshold_w);
        }
        self.reference_m * libm::pow(reference_w / threshold_w, 1.0 / self.exponent)
    }

    /// Power at the reference distance.
    fn reference_w(&self, radio: &RadioParams) -> f64 {
        radio.friis_w(self.reference_m).min(radio.max_received_w())
    }
}

impl Shadowing {
    fn gain(&self, stream: &mut RandomStream) -> f64 {
        let sigmas = stream.normal(0.0, 1.0).clamp(-SHADOWING_LIMIT_SIGMAS, SHADOWING_LIMIT_SIGMAS);
        db_to_ratio(sigmas * self.deviation_db)
    }
}

impl RangeDisk {
    fn received_w(&self, radio: &RadioParams, distance_m: f64) -> f64 {
        self.circles(radio).into_iter().find(|&(radius_m, _)| distance_m <= radius_m).map_or(0.0, |(_, w)| w)
    }

    fn range_for(&self, radio: &RadioParams, threshold_w: f64) -> f64 {
        let circles = self.circles(radio).into_iter().rev();
        circles.filter(|&(_, power_w)| power_w >= threshold_w).map(|(m, _)| m).next().unwrap_or(0.0)
    }

    /// Radius in m and power in W, from the inside out.
    fn circles(&self, radio: &RadioParams) -> [(f64, f64); 3] {
        [
            (self.transmission_m, radio.rx_threshold_w),
            (self.interference_m, radio.rx_threshold_w / 2.0),
            (self.carrier_sense_m, radio.cs_threshold_w),
        ]
    }
}

/// The time a signal takes over `distance_m` ≥ 0 at the speed of light, to the nearest nanosecond.
#[must_use]
pub fn propagation_delay(distance_m: f64) -> Duration {
    // Per frame and receiver where nodes move, so without the general conversion from seconds.
    Duration::from_nanos((distance_m * (1e9 / SPEED_OF_LIGHT_M_PER_S) + 0.5) as u64)
}

/// A ratio of powers given in dB.
#[must_use]
pub fn db_to_ratio(db: f64) -> f64 {
    libm::exp10(db / 10.0)
}

/// A ratio of powers > 0 in dB.
#[must_use]
pub fn ratio_to_db(ratio: f64) -> f64 {
    10.0 * libm::log10(ratio)
}

/// A power given in dBm, in W.
#[must_use]
pub fn dbm_to_watts(dbm: f64) -> f64 {
    db_to_ratio(dbm - 30.0)
}

/// A power > 0 given in W, in dBm.
#[must_use]
pub fn watts_to_dbm(watts: f64) -> f64 {
    ratio_to_db(watts) + 30.0
}
