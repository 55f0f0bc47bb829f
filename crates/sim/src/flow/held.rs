//! Packets of flows that are in flight, and the results of arrivals.

use std::collections::BTreeSet;

/// Packets of one direction of a flow that are in flight.
#[derive(Clone, Debug, Default)]
pub(crate) struct InFlight {
    pub(super) numbers: BTreeSet<u64>,
    pub(super) bytes: u64,
}

impl InFlight {
    pub(super) fn packets(&self) -> u64 {
        self.numbers.len() as u64
    }
}

/// News that an arrival brings: a packet that had not arrived, neither by itself nor by a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Novelty {
    /// There is a packet.
    New,
    /// There is no packet.
    Duplicate,
}

/// Segments with data that arrived and held nothing new.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct DuplicateSegments {
    /// Sent by the source, which has sent them, or what they repeat, again.
    pub(super) retransmitted: u64,
    /// Copies, and what a copy of it had overtaken.
    pub(super) copies: u64,
}
