//! Statistics of measurements: pure functions over slices of values, one value for each run.
//!
//! | question | answer |
//! |---|---|
//! | what is the mean, and its uncertainty? | [`Estimate`]; other than normal: [`Bootstrap`] |
//! | does a variant differ from the baseline, and by how much? | [`Pairs`]: differences, gains, t, sign and Wilcoxon tests; in per cent: [`RelativeDifference`] |
//! | how do its gains spread, and what share is positive? | [`Gains`] |
//! | what about many variants? | [`holm`] |
//! | what is typical? | [`median`], [`quantile`] |
//! | are two series correlated? | [`correlation`] |
//! | where does the start-up of a series end? | [`WarmUp`] |
//! | how many runs are enough? | [`Precision`] |
//!
//! All but [`Estimate`] refuse values that are not finite, and samples that are too small, with a [`Refusal`]
//! that names the reason. All random numbers come from a [`RandomStream`](hopline_core::RandomStream).

mod bootstrap;
mod correlation;
mod estimate;
mod gains;
mod holm;
mod log_ratio;
mod pairs;
mod percent;
mod precision;
mod quantile;
mod refusal;
mod relative;
#[cfg(test)]
mod samples;
mod share;
mod sign;
mod warm_up;
mod wilcoxon;

pub use bootstrap::{Bootstrap, Method, RESAMPLES, Statistic};
pub use correlation::correlation;
pub use estimate::{Estimate, Interval};
pub use gains::{GainStatistic, Gains};
pub use holm::holm;
pub use pairs::{Pairs, TTest};
pub use percent::{Confidence, PercentError};
pub use precision::{MAX_GROWTH, MIN_RUNS, NextStep, Precision};
pub use quantile::{median, quantile};
pub use refusal::{MAX_VALUE, Refusal};
pub use relative::RelativeDifference;
pub use share::share_interval;
pub use sign::SignTest;
pub use warm_up::WarmUp;
pub use wilcoxon::{EXACT_UP_TO, Wilcoxon};

/// Default confidence of intervals.
pub const CONFIDENCE: Confidence = Confidence::P95;
