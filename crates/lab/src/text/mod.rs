//! Text of results for a terminal.

pub mod comparison;
pub mod draws;
pub mod evaluation;
pub mod explanation;
pub mod packets;
pub mod reproduction;
pub mod run;
pub mod table;
