//! Estimates in display units.

use crate::report::Measured;
use crate::stats::{Confidence, Estimate};

/// Returns the estimate times `factor`, with its interval and the values of `runs`.
pub(super) fn measured_of(
    confidence: Confidence,
    estimate: &Estimate,
    factor: f64,
    runs: Vec<f64>,
) -> Measured {
    let interval = estimate.interval(confidence);
    Measured {
        mean: estimate.mean * factor,
        interval: interval.map(|i| [i.low * factor, i.high * factor]),
        runs,
    }
}
