//! What the tests of all agents share: small networks of them, and what may happen to those.

pub(crate) mod life;
pub(crate) mod network;

use hopline_core::{Duration, NodeId};
use std::net::Ipv4Addr;

/// The address of node `index`.
pub(crate) const fn n(index: u32) -> Ipv4Addr {
    NodeId(index).ipv4()
}

pub(crate) fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}
