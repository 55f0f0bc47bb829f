//! Stored data of a run.

use serde::{Deserialize, Serialize};

/// Stored data of a run, besides the metrics of the run and of its flows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Keep {
    /// Per-second series.
    pub series: KeepSeries,
    /// Metrics of nodes.
    pub nodes: KeepNodes,
    /// Metrics of pairs of flows.
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
