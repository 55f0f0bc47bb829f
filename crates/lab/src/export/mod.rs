//! Results in the formats of other simulators.

pub mod flowmon;
