//! Selection of the data that are stored of each run.

use serde::{Deserialize, Serialize};

/// Selection of the data that are stored of each run. The metrics of the run and of its flows are always stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Keep {
    /// Runs with stored per-second series.
    pub series: KeepSeries,
    /// Storage of the metrics of each node.
    pub nodes: KeepNodes,
    /// Storage of the metrics of every pair of flows.
    pub pairs: KeepPairs,
}

/// Runs with stored per-second series.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum KeepSeries {
    /// Run 1 of each point.
    FirstRun,
    /// All runs.
    All,
    /// No runs.
    None,
}

/// Storage of the metrics of each node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum KeepNodes {
    /// They are stored.
    Keep,
    /// They are not stored.
    Drop,
}

/// Storage of the metrics of every pair of flows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum KeepPairs {
    /// They are stored.
    Keep,
    /// They are not stored.
    Drop,
}
