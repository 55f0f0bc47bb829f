//! Random networks for a comparison of congestion control algorithms.
//!
//! [`generate`] draws networks of all [`Kind`]s from a seed: [`Draw`]s. Flows of the class
//! [`LAW_CLASS`](crate::evaluation::LAW_CLASS) in their scenarios run over the compared algorithms. [`Draw::plan`] gives the plan of its runs,
//! [`Outcome::of`] what an algorithm had there, and [`Summary`] the quantiles over all draws. An algorithm that was tuned
//! on some networks is compared on others, as the seed changes. [`Traces`] give networks measured rates.

mod generate;
mod json;
mod kind;
mod measure;
mod mixes;
mod outcome;
mod paths;
mod results;
mod sketch;
mod summary;
#[cfg(test)]
mod tests;
mod traces;
mod varying;

pub use generate::generate;
pub use json::json;
pub use kind::Kind;
pub use measure::Measure;
pub use outcome::Outcome;
pub use results::Results;
pub use sketch::Draw;
pub(crate) use summary::ratio_to_best_rival;
pub use summary::{Quantiles, RatioToBbr, Summary};
pub use traces::{Stretch, Trace, Traces};
