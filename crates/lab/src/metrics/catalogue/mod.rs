//! The catalogue of metrics, one line each.

mod entry;
mod flows;
mod groups;
mod handoffs;
mod nodes;
mod runs;

use super::MetricInfo;
use entry::{flow, node, pair, run};

/// All metrics: of the run, of groups of flows, of flows, of pairs of flows, and of nodes. Names are unique
/// within a level, and mean the same on every level on which they occur.
pub const CATALOGUE: &[MetricInfo] = &all();

const LISTS: [&[MetricInfo]; 8] = [
    groups::OF_RUNS,
    runs::RUNS,
    handoffs::OF_RUNS,
    groups::GROUPS,
    flows::FLOWS,
    flows::PAIRS,
    nodes::NODES,
    handoffs::OF_NODES,
];

/// Concatenates the lists.
const fn all() -> [MetricInfo; count()] {
    let mut all = [LISTS[0][0]; count()];
    let (mut at, mut list) = (0, 0);
    while list < LISTS.len() {
        let mut n = 0;
        while n < LISTS[list].len() {
            all[at] = LISTS[list][n];
            (at, n) = (at + 1, n + 1);
        }
        list += 1;
    }
    all
}

const fn count() -> usize {
    let (mut count, mut list) = (0, 0);
    while list < LISTS.len() {
        count += LISTS[list].len();
        list += 1;
    }
    count
}
