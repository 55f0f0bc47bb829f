//! Test support shared by all agents: small networks, and the operations applied to them.

pub(crate) mod network;
pub(crate) mod operations;

use hopline_core::{Duration, NodeId};
use std::net::Ipv4Addr;

/// The address of node `index`.
pub(crate) const fn node_address(index: u32) -> Ipv4Addr {
    NodeId(index).ipv4()
}

pub(crate) fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}
