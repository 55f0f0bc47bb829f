//! The lab: from a scenario file to an answer one can trust.
//!
//! [`hopline_scenario`] turns a TOML file into the input of the simulator, and [`run`] runs it once. A
//! [`plan`] has many points; [`execute`] runs them on all cores, and a [`store`] saves the [`record`] of each
//! run as it ends; its [`engine`] may be Linux kernels over the simulated network. A [`comparison`] evaluates the records by [`stats`], in terms of [`metrics`]; [`claims`]
//! compares it with those of papers, and [`report`] shows it. This crate prints nothing: that is left to the
//! command line.

pub mod animation;
mod built_in;
pub mod claims;
pub mod comparison;
pub mod counted;
pub mod description;
mod digest;
pub mod draws;
pub mod engine;
pub mod evaluation;
pub mod execute;
pub mod experiment;
pub mod export;
pub mod file_kinds;
mod flow_ends;
pub mod map;
pub mod metrics;
pub mod objective;
pub mod output;
pub mod papers;
pub mod plan;
pub mod record;
pub mod remote;
pub mod report;
pub mod run;
pub mod stats;
pub mod store;
pub mod tables;
#[cfg(test)]
mod testing;
pub mod text;
pub mod user_defined;
pub mod view;

pub use comparison::Comparison;
pub use hopline_config::source::{Problem, Problems};
pub use hopline_core::Duration as VirtualTime;
pub use hopline_scenario::Scenario;
pub use hopline_sim::Spec;
pub use plan::Plan;
pub use run::{Interrupted, Observer, Run, RunError, Work};
pub use stats::Estimate;
