//! Results as a terminal shows them.

pub mod comparison;
pub mod explanation;
pub mod reproduction;
pub mod run;
pub mod table;
