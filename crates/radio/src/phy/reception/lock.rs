//! The frame that a radio receives.

use crate::rate::Rate;
use hopline_core::Instant;

/// The start of a signal.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Arrival {
    /// Names the transmission; unique among those in the air.
    pub id: u32,
    /// Received power in W, at least the carrier-sense threshold.
    pub power_w: f64,
    /// Time at which the signal ends at this receiver.
    pub end: Instant,
    /// Rate of the frame.
    pub rate: Rate,
    /// Length of the frame in bits.
    pub bits: u32,
}

/// The frame that the radio has locked onto.
#[derive(Clone, Copy, Debug)]
pub(super) struct LockedFrame {
    pub(super) id: u32,
    pub(super) power_w: f64,
    pub(super) end: Instant,
    pub(super) rate: Rate,
    pub(super) bits: u32,
    pub(super) condition: FrameCondition,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FrameCondition {
    Clean,
    /// Too weak, or hit by another signal, or by the station's own.
    Damaged,
}

impl LockedFrame {
    pub(super) fn new(arrival: Arrival, condition: FrameCondition) -> Self {
        Self {
            id: arrival.id,
            power_w: arrival.power_w,
            end: arrival.end,
            rate: arrival.rate,
            bits: arrival.bits,
            condition,
        }
    }
}
