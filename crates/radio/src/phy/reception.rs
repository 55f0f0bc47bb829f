//! Reception of arriving signals by a radio: one receiver with several named models.

use super::awgn::ErrorRateCache;
use super::propagation::RadioParams;
use super::sensitivity::Sensitivity;
use crate::mac::RadioState;
use crate::rate::Rate;
use hopline_core::Instant;
pub use lock::Arrival;
use lock::{FrameCondition, LockedFrame};

mod lock;
mod sinr;
#[cfg(test)]
mod tests;

use sinr::Interference;

/// Model of a radio's reception of arriving signals.
///
/// The three differ in the treatment of a frame that can be sensed and not decoded, and in the effect of interference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum ReceptionModel {
    /// The radio locks onto every frame that it can sense, and onto no other until that has ended; a frame too weak to
    /// decode ends as an error. Pairwise capture: a locked frame survives frames weaker by the capture threshold, and
    /// any other destroys both. This is ns-2.
    LockOnSensed,
    /// The radio locks only onto frames strong enough to decode; all other frames are energy that makes the medium busy.
    /// Pairwise capture against every signal in the air. This is close to ns-3.
    #[default]
    LockOnDecodable,
    /// As [`ReceptionModel::LockOnDecodable`], but the powers of all other signals and the noise add up, and the
    /// frame's bits err at the rate that the ratio gives, piece by piece.
    CumulativeSinr,
}

/// Result for the frame onto which the radio had locked.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ReceptionResult {
    /// The radio had not locked onto it.
    NotLocked,
    /// Decodable with this probability.
    Decodable {
        /// 1 but for [`ReceptionModel::CumulativeSinr`].
        probability: f64,
    },
    /// Not decodable.
    Damaged,
}

/// Powers that decide, taken from [`RadioParams`].
#[derive(Clone, Copy, Debug)]
pub struct Thresholds {
    model: ReceptionModel,
    /// Thresholds by rate, in the order of [`Rate::ALL`].
    rx_w: [f64; Rate::ALL.len()],
    capture_ratio: f64,
    noise_w: f64,
}

impl Thresholds {
    /// The thresholds of `radio` under `model`, alike for all rates.
    #[must_use]
    pub fn new(model: ReceptionModel, radio: &RadioParams) -> Self {
        Self::by_rate(model, radio, Sensitivity::Alike)
    }

    /// The same, for each rate as `sensitivity` says.
    #[must_use]
    pub fn by_rate(model: ReceptionModel, radio: &RadioParams, sensitivity: Sensitivity) -> Self {
        Self {
            model,
            rx_w: Rate::ALL.map(|rate| sensitivity.threshold_w(radio, rate)),
            capture_ratio: radio.capture_ratio(),
            noise_w: radio.noise_floor_w(),
        }
    }

    /// Weakest power in W that can be decoded at `rate`, were nothing else in the air.
    #[must_use]
    pub const fn min_power_w(&self, rate: Rate) -> f64 {
        self.rx_w[rate as usize]
    }
}

/// State of the antenna.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
enum AntennaState {
    #[default]
    Listening,
    Sending,
}

/// The receiver of one radio.
#[derive(Clone, Debug, Default)]
pub struct Receiver {
    antenna: AntennaState,
    lock: Option<LockedFrame>,
    /// The signals in the air; not kept under [`ReceptionModel::LockOnSensed`].
    signals: Vec<(u32, f64)>,
    interference: Interference,
    error_rates: ErrorRateCache,
}

impl Receiver {
    /// Returns the state of the carrier, own transmissions aside.
    #[must_use]
    pub fn activity(&self) -> RadioState {
        match &self.lock {
            Some(_) if self.antenna == AntennaState::Listening => RadioState::Receiving,
            None if self.signals.is_empty() => RadioState::Idle,
            _ => RadioState::Sensing,
        }
    }

    /// A signal begins. Returns when it ends if the frame being received goes on in spite of it
    /// ([`ReceptionModel::LockOnSensed`] only).
    pub fn signal_begin(&mut self, with: &Thresholds, now: Instant, arrival: Arrival) -> Option<Instant> {
        match with.model {
            ReceptionModel::LockOnSensed => return self.begin_lock_on_sensed(with, arrival),
            ReceptionModel::LockOnDecodable => self.begin_lock_on_decodable(with, arrival),
            ReceptionModel::CumulativeSinr => self.begin_cumulative(with, now, arrival),
        }
        self.signals.push((arrival.id, arrival.power_w));
        None
    }

    /// The signal `id` ends.
    pub fn signal_end(&mut self, with: &Thresholds, now: Instant, id: u32) -> ReceptionResult {
        let verdict = match self.lock {
            Some(lock) if lock.id == id => {
                self.lock = None;
                self.evaluate(with, now, lock)
            }
            _ => ReceptionResult::NotLocked,
        };
        if with.model != ReceptionModel::LockOnSensed {
            self.remove_signal(with, now, id);
        }
        verdict
    }

    /// The station begins to send: what it was receiving is lost.
    pub fn transmit_begin(&mut self) {
        self.antenna = AntennaState::Sending;
        if let Some(lock) = &mut self.lock {
            lock.condition = FrameCondition::Damaged;
        }
    }

    /// The station's own transmission ends.
    pub fn transmit_end(&mut self) {
        self.antenna = AntennaState::Listening;
    }

    /// Every signal takes the receiver; of two that collide the later end decides how long.
    fn begin_lock_on_sensed(&mut self, with: &Thresholds, arrival: Arrival) -> Option<Instant> {
        let Some(lock) = &mut self.lock else {
            let decodable =
                arrival.power_w >= with.min_power_w(arrival.rate) && self.antenna == AntennaState::Listening;
            let condition = if decodable { FrameCondition::Clean } else { FrameCondition::Damaged };
            self.lock = Some(LockedFrame::new(arrival, condition));
            return None;
        };
        if lock.power_w >= with.capture_ratio * arrival.power_w {
            return Some(arrival.end);
        }
        if arrival.end > lock.end {
            *lock = LockedFrame::new(arrival, FrameCondition::Damaged);
        } else {
            lock.condition = FrameCondition::Damaged;
        }
        None
    }

    fn begin_lock_on_decodable(&mut self, with: &Thresholds, arrival: Arrival) {
        if let Some(lock) = &mut self.lock {
            if lock.power_w < with.capture_ratio * arrival.power_w {
                lock.condition = FrameCondition::Damaged;
            }
        } else if arrival.power_w >= with.min_power_w(arrival.rate) && self.antenna == AntennaState::Listening
        {
            let drowned = self.signals.iter().any(|&(_, w)| arrival.power_w < with.capture_ratio * w);
            if !drowned {
                self.lock = Some(LockedFrame::new(arrival, FrameCondition::Clean));
            }
        }
    }

    fn begin_cumulative(&mut self, with: &Thresholds, now: Instant, arrival: Arrival) {
        if let Some(lock) = &self.lock {
            let others_w = self.interference_w(lock.id);
            self.interference.advance(now, lock, with.noise_w + others_w, &mut self.error_rates);
        } else if arrival.power_w >= with.min_power_w(arrival.rate) && self.antenna == AntennaState::Listening
        {
            self.lock = Some(LockedFrame::new(arrival, FrameCondition::Clean));
            self.interference = Interference::starting(now, arrival.end);
        }
    }

    fn evaluate(&mut self, with: &Thresholds, now: Instant, lock: LockedFrame) -> ReceptionResult {
        match (self.antenna, lock.condition) {
            // A frame that ends while the station sends leaves no trace.
            (AntennaState::Sending, _) => ReceptionResult::NotLocked,
            (AntennaState::Listening, FrameCondition::Damaged) => ReceptionResult::Damaged,
            (AntennaState::Listening, FrameCondition::Clean) => {
                if with.model == ReceptionModel::CumulativeSinr {
                    let others_w = self.interference_w(lock.id);
                    self.interference.advance(now, &lock, with.noise_w + others_w, &mut self.error_rates);
                    return ReceptionResult::Decodable { probability: self.interference.success() };
                }
                ReceptionResult::Decodable { probability: 1.0 }
            }
        }
    }

    fn remove_signal(&mut self, with: &Thresholds, now: Instant, id: u32) {
        if let (ReceptionModel::CumulativeSinr, Some(lock)) = (with.model, self.lock) {
            let others_w = self.interference_w(lock.id);
            self.interference.advance(now, &lock, with.noise_w + others_w, &mut self.error_rates);
        }
        if let Some(at) = self.signals.iter().position(|&(signal, _)| signal == id) {
            self.signals.swap_remove(at);
        }
    }

    /// Sum of the powers in the air but for `id`. Added up afresh each time, so that nothing drifts.
    fn interference_w(&self, id: u32) -> f64 {
        self.signals.iter().filter(|&&(signal, _)| signal != id).map(|&(_, w)| w).sum()
    }
}
