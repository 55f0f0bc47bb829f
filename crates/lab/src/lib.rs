//! The lab: from a scenario file to an answer one can trust.
//!
//! [`scenario`] turns a TOML file into what the simulator takes, [`run`] runs it once, [`compare`] runs variants of it
//! on all cores over paired runs, [`stats`] says how sure the numbers are, and [`output`] keeps them. Nothing here
//! prints: that is the command line's.

pub mod compare;
pub mod export;
pub mod metrics;
pub mod output;
pub mod report;
pub mod run;
pub mod scenario;
pub mod stats;
pub mod summary;

pub use compare::{Comparison, Plan};
pub use hopline_core::Duration as VirtualTime;
pub use hopline_sim::Spec;
pub use hopline_sim::outcome::NodeOutcome;
pub use hopline_sim::spec::NodeSpec;
pub use run::{Interrupted, Run, Watch};
pub use scenario::Scenario;
pub use scenario::source::{Problem, Problems};
pub use stats::Estimate;
pub use summary::Summary;
