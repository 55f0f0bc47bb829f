//! Measurement for a claim.

use crate::stats::{Interval, SignTest};
use serde_json::{Value as Json, json};

/// Measurement for a claim.
#[derive(Clone, Debug, PartialEq)]
pub struct Measurement {
    /// Number of the figure in the register.
    pub figure: usize,
    /// Label of the point.
    pub point: String,
    /// Label of the point or flow that it is compared with.
    pub against: Option<String>,
    /// Measured value: a mean, a gain, or a statistic of gains.
    pub value: f64,
    /// Number of runs.
    pub n: usize,
    /// Confidence interval; `None` for a single run.
    pub interval: Option<Interval>,
    /// Unit of both.
    pub unit: &'static str,
    /// Runs left out because their baseline is zero, so that there is no gain.
    pub excluded: usize,
    /// Sign test of a share of positive gains.
    pub sign_test: Option<SignTest>,
}

impl Measurement {
    /// Returns the JSON object of `--json`.
    #[must_use]
    pub fn json(&self) -> Json {
        json!({
            "point": self.point,
            "against": self.against,
            "n": self.n,
            "mean": self.value,
            "interval": self.interval.map(|i| [i.low, i.high]),
            "unit": self.unit,
            "excluded": self.excluded,
            "sign_p": self.sign_test.map(|test| test.p),
        })
    }
}
