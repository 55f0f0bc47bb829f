//! Results in the formats of other simulators and tools.

pub mod flowmon;
pub mod qlog;
