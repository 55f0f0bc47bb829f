//! Packets of flows that are in flight, and the results of arrivals.

use std::collections::BTreeSet;

/// Packets of one direction of a flow that are in flight.
#[derive(Clone, Debug, Default)]
pub(crate) struct Held {
    pub(super) numbers: BTreeSet<u64>,
    pub(super) bytes: u64,
}

impl Held {
    pub(super) fn packets(&self) -> u64 {
        self.numbers.len() as u64
    }
}

/// News that an arrival brings: a packet that had not arrived, neither by itself nor by a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum News {
    /// There is a packet.
    Packet,
    /// There is no packet.
    None,
}

/// Segments with data that arrived and held nothing new.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Repeats {
    /// Sent by the source, which has sent them, or what they repeat, again.
    pub(super) resent: u64,
    /// Copies, and what a copy of it had overtaken.
    pub(super) copies: u64,
}
